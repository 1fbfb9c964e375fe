"""What a command is: a dataclass of its options, whose docstring is its help.

`as_click` reads such classes and makes what parses the command line; nothing else knows of click
except for what it prints.
"""

from __future__ import annotations

import inspect
import re
import shutil
import sys
import textwrap
import warnings
from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar

import click

from drift._options import KINDS, declared
from drift.cli._signals import Terminated, ending_at_sigterm
from drift.errors import CheckpointError, DriftError, ParameterError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import ModuleType

    from drift._options import Option

__all__ = ["Command", "as_click", "ask", "fail", "noting", "raise_all", "say", "warn"]

#: A comma that is not between parentheses: those of parameters stay.
_ANY_COMMA = re.compile(r",(?![^()]*(?:\([^()]*\)[^()]*)*\))")
#: One that is not between double quotes either: those of names stay.
_COMMA = re.compile(_ANY_COMMA.pattern + r'(?=(?:[^"]*"[^"]*")*[^"]*$)')
_QUOTED = re.compile(r'"([^"]*)"').fullmatch
_Answer = TypeVar("_Answer")
_WORDS = {bool: "SWITCH", int: "INTEGER", float: "NUMBER", str: "TEXT", object: "LABEL"}


class Command(ABC):
    """A command of the command line.

    Attributes
    ----------
    shared : type or None
        A dataclass of further options, which a ``--config`` file may give as well.
    unused : frozenset of str
        Those of them that do nothing here, by their fields: a file may have them, and the command
        line is refused with them.
    given : dict
        What the command line gives of `shared`, by the options' names.
    interrupted : str
        What Ctrl-C and SIGTERM print.
    """

    shared: ClassVar[type | None] = None
    unused: ClassVar[frozenset[str]] = frozenset()
    given: dict[str, Any]

    @property
    def interrupted(self) -> str:
        """What Ctrl-C and SIGTERM print."""
        return "interrupted"

    @abstractmethod
    def _run(self) -> None:
        """Do what the command is for."""

    def answer(self) -> None:
        """Run; what the user did becomes a message and an exit code, instead of a traceback."""
        try:
            with ending_at_sigterm(), warnings.catch_warnings():
                warnings.showwarning = warn
                self._run()
        except KeyboardInterrupt as interrupt:
            say(self.interrupted, err=True)
            # 128 and the number of the signal, as in shells.
            code = 143 if isinstance(interrupt, Terminated) else 130
            raise click.exceptions.Exit(code) from None
        except Exception as error:
            answer = self.answer_to(error)
            if answer is None:
                raise
            fail(*answer)

    def answer_to(self, error: Exception) -> tuple[str, int] | None:
        """Return the line and the exit code that an error becomes; None for a traceback."""
        if isinstance(error, DriftError):
            return str(error), 1 if isinstance(error, UnavailableError) else 2
        # A reader closed the pipe: click ends quietly.
        if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            return f"{error.filename}: {error.strerror}" if error.filename else str(error), 2
        return None


def fail(message: str, code: int) -> NoReturn:
    """End with a line and an exit code: 2 for the user to fix, 1 for what may pass."""
    say(f"error: {message}", err=True)
    raise click.exceptions.Exit(code) from None


def raise_all(problems: Sequence[DriftError]) -> None:
    """Raise several errors as one; its exit code is 1 only if each of them may pass."""
    if problems:
        may_pass = all(isinstance(problem, UnavailableError) for problem in problems)
        kind = UnavailableError if may_pass else CheckpointError
        raise kind("; ".join(map(str, problems)))


@contextmanager
def noting(problems: list[DriftError]) -> Iterator[None]:
    """Note an error instead of raising it, so that others are found: see `raise_all`."""
    try:
        yield
    except DriftError as problem:
        problems.append(problem)


def say(line: str, *, err: bool = False) -> None:
    """Print a line; in a terminal it is wrapped between words, in a pipe or a log it is not."""
    if (sys.stderr if err else sys.stdout).isatty():
        width = shutil.get_terminal_size().columns
        line = textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)
    click.echo(line, err=err)


def ask(prompt: Callable[[str], _Answer], text: str, option: str) -> _Answer:
    """Return an answer; without anybody who gives one, name the option that says it.

    Parameters
    ----------
    prompt
        `click.prompt` or `click.confirm`.
    text
        The question.
    option
        What stands for the answer on the command line.
    """
    try:
        return prompt(text)
    except click.Abort as abort:
        click.echo(err=True)  # behind the question
        if isinstance(abort.__context__, KeyboardInterrupt):  # and not the end of what is read
            raise abort.__context__ from None
        if sys.stdin.isatty():
            raise KeyboardInterrupt from None
        raise ParameterError(f"nobody is there to answer: give {option}") from None


def warn(message: Warning | str, *_where: object, **_more: object) -> None:
    """Print a warning; without the place in the code."""
    say(f"warning: {message}", err=True)


def as_click(module: ModuleType) -> click.Command:
    """Return the command of a module, or the group where it has several."""
    kinds = [
        kind
        for kind in vars(module).values()
        if isinstance(kind, type)
        and issubclass(kind, Command)
        and kind.__module__ == module.__name__
        and not kind.__name__.startswith("_")
    ]
    if len(kinds) == 1:
        return _command(kinds[0])
    return click.Group(
        module.__name__.rpartition(".")[2],
        commands=[_command(kind) for kind in kinds],
        help=inspect.getdoc(module),
    )


class _Click(click.Command):
    """A command whose help says what its arguments are."""

    def __init__(self, *, arguments: list[tuple[str, str]], **others: Any) -> None:
        super().__init__(**others)
        self.arguments = arguments

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.arguments:
            with formatter.section("Arguments"):
                formatter.write_dl(self.arguments)
        super().format_options(ctx, formatter)


def _command(kind: type[Command]) -> click.Command:
    local = declared(kind)
    shared = declared(kind.shared) if kind.shared else ()

    def callback(**texts: Any) -> None:
        given = {name: text for name, text in texts.items() if text is not None}
        if idle := [one.flag for one in shared if one.field in kind.unused and one.field in given]:
            fail(
                f"{kind.__name__.lower()} has no use for {', '.join(idle)}: leave it out; the file "
                "may have it, for the worker",
                2,
            )
        try:
            values = {
                one.field: _value(one, given[one.field]) for one in local if one.field in given
            }
            more = {one.name: _value(one, given[one.field]) for one in shared if one.field in given}
        except ParameterError as error:
            fail(str(error), 2)
        command = kind(**values)
        command.given = more
        command.answer()

    first = [one for one in local if one.field in kind.__annotations__]
    options = [*first, *shared, *(one for one in local if one not in first)]
    help = inspect.getdoc(kind) or ""  # noqa: A001 - as click calls it
    return _Click(
        name=kind.__name__.lower(),
        help=help,
        short_help=" ".join(help.split("\n\n", maxsplit=1)[0].split()),  # click would cut it
        params=[
            _parameter(one, two_ways=one in shared, hidden=one.field in kind.unused)
            for one in options
        ],
        callback=callback,
        arguments=[(one.name.upper(), _help(one)) for one in options if one.argument],
    )


def _parameter(one: Option, *, two_ways: bool, hidden: bool) -> click.Parameter:
    required = one.required and not two_ways  # what a file may give is missed later
    if one.argument:
        return click.Argument([one.field], required=required)
    if one.kind is bool:
        no = f"--no-{one.flag[2:]}"
        flags = f"{one.flag}/{no}" if two_ways else one.flag
        help = _help(one)  # noqa: A001 - as click calls it
        if two_ways:
            help += f"  [default: {one.flag if one.default else no}]"  # noqa: A001
        return click.Option(
            [flags, one.field], is_flag=True, default=None, help=help, hidden=hidden
        )
    word = "DURATION" if one.duration else _WORDS.get(one.kind, "PATH")
    word = f"[{'|'.join(one.choices)}]" if one.choices else word
    return click.Option(
        [one.flag, one.field],
        metavar=f"{word},..." if one.many else word,
        required=required,
        help=_help(one),
        hidden=hidden,
    )


def _help(one: Option) -> str:
    default = one.shown()
    commas = "separated by commas" if one.many else ""
    known = [part for part in (commas, default and f"default: {default}", one.bounds()) if part]
    return f"{one.help}  [{'; '.join(known)}]" if known else one.help


def _value(one: Option, text: Any) -> Any:
    """Return the value of an option's text, or refuse that by the option."""
    where = one.name.upper() if one.argument else one.flag
    parts = [text]
    if one.many:
        comma = _ANY_COMMA if text.count('"') % 2 else _COMMA
        parts = [part.strip() for part in comma.split(text)]
        # What is quoted may be empty: the name of a nameless column.
        parts = [found[1] if (found := _QUOTED(part)) else part for part in parts if part]
    try:
        values = [one.read(part) for part in parts]
    except ValueError:
        kind = one.wanted() or KINDS[one.kind]  # "a number"
        wanted = f"{kind.removeprefix('a ')}s between commas" if one.many else kind
        raise ParameterError(f"{where} takes {wanted}, not {text!r}") from None
    value = tuple(values) if one.many else values[0]
    one.check(value, where)
    return value
