"""Options, each declared once: in a dataclass that the command line, TOML files and callers read.

A field has a name, a type and a default, as in any dataclass; `option` adds its help and bounds.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drift._checks import check_choice, check_names
from drift.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["KINDS", "Option", "check_options", "declared", "from_table", "option"]

_META = "drift.option"
#: What values of a type are, to who writes them into a file.
KINDS: Mapping[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a string",
    Path: "a path in quotes",
}
_T = typing.TypeVar("_T")


@dataclasses.dataclass(frozen=True)
class Option:
    """What is declared of an option.

    Attributes
    ----------
    field
        Its name in Python.
    name
        Its name in a file; with dashes, on the command line.
    kind
        The type of a value, or of each value of a list.
    many
        Whether it is a list.
    optional
        Whether it may be None, which no text says: it is left out then.
    default
        What holds where it is left out; `dataclasses.MISSING` where it must be given.
    help
        A sentence or two.
    least, most
        Bounds of a number; `above` excludes the lower one.
    choices
        All values that there are; empty for any.
    argument
        Whether the command line has it by its place, and not by its name.
    """

    field: str
    name: str
    kind: type
    many: bool
    optional: bool
    default: Any
    help: str
    least: float
    most: float
    above: bool
    choices: tuple[str, ...]
    argument: bool

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return self.default is dataclasses.MISSING

    @property
    def flag(self) -> str:
        """How the command line spells it."""
        return f"--{self.name.replace('_', '-')}"

    def bounds(self) -> str:
        """Say which numbers it takes; nothing where it takes all of them."""
        if self.most < math.inf:
            return f"from {self.least} to {self.most}"
        if self.least > -math.inf:
            return f"{'above' if self.above else 'at least'} {self.least}"
        return ""

    def check(self, value: Any, where: str) -> None:
        """Refuse a value that it cannot have, under the name of where it was given."""
        if value is None and self.optional:
            return
        many = isinstance(value, (list, tuple))
        values = value if many else [value]
        if many != self.many or not all(map(self._is_kind, values)):
            wanted = filter(None, ["a list" * self.many, KINDS.get(self.kind)])
            raise ParameterError(f"{where} must be {', each '.join(wanted)}, not {value!r:.80}")
        for one in values:
            if self.choices:
                check_choice(where, one, self.choices)
            if self.bounds() and not (
                (self.least < one if self.above else self.least <= one) and one <= self.most
            ):
                raise ParameterError(f"{where} must be {self.bounds()}, not {one}")
            if self.kind is float and not -math.inf < one < math.inf:
                raise ParameterError(f"{where} must be a finite number, not {one}")

    def made(self, value: Any) -> Any:
        """Return what the dataclass has for a file's value."""
        return Path(value) if self.kind is Path and isinstance(value, str) else value

    def _is_kind(self, value: object) -> bool:
        wider: dict[type, Any] = {int: Integral, float: Real, Path: (str, Path)}
        kinds = wider.get(self.kind, self.kind)
        # Python's bool is an int, and a file's true is no number.
        return isinstance(value, kinds) and not (isinstance(value, bool) and self.kind in wider)


def option(  # noqa: PLR0913 - what there is to say of an option, by keyword
    help: str,  # noqa: A002 - as click and argparse call it
    default: Any = dataclasses.MISSING,
    *,
    least: float = -math.inf,
    most: float = math.inf,
    above: bool = False,
    choices: tuple[str, ...] = (),
    argument: bool = False,
    name: str | None = None,
) -> Any:
    """Return a field of a dataclass that is an option, as `Option` describes it.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Saving:
    ...     every: int = option("Messages between checkpoints.", 20_000, least=1)
    ...
    ...     def __post_init__(self):
    ...         check_options(self)
    >>> Saving().every
    20000
    >>> Saving(every=0)
    Traceback (most recent call last):
    drift.errors.ParameterError: every must be at least 1, not 0
    >>> from_table(Saving, {"evry": 5}, "[saving]")
    Traceback (most recent call last):
    drift.errors.ParameterError: [saving] has no 'evry': did you mean 'every'?
    """
    said = {
        "help": help,
        "least": least,
        "most": most,
        "above": above,
        "choices": choices,
        "argument": argument,
        "name": name,
    }
    return dataclasses.field(default=default, metadata={_META: said})


def declared(kind: type) -> list[Option]:
    """Return the options of a dataclass, in their order; other fields are none.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Saving:
    ...     keep: int | None = option("Checkpoints kept.", None)
    >>> [(one.flag, one.kind, one.optional) for one in declared(Saving)]
    [('--keep', <class 'int'>, True)]
    """
    hints = typing.get_type_hints(kind)
    found = []
    for field in dataclasses.fields(kind):
        if _META in field.metadata:
            said = dict(field.metadata[_META])
            name = said.pop("name") or field.name
            default = field.default
            found.append(Option(field.name, name, *_kind(hints[field.name]), default, **said))
    return found


def _kind(hint: Any) -> tuple[type, bool, bool]:
    """Return the type of a value, whether there is a list of them, and whether it may be None."""
    optional = isinstance(hint, types.UnionType)
    if optional:
        [hint] = [one for one in typing.get_args(hint) if one is not types.NoneType]
    many = typing.get_origin(hint) in {list, tuple, Sequence}
    return (typing.get_args(hint)[0] if many else hint), many, optional


def check_options(options: Any) -> None:
    """Refuse options of a wrong type or out of bounds; for ``__post_init__``.

    Raises
    ------
    ParameterError
        By the name of the field.
    """
    for one in declared(type(options)):
        one.check(getattr(options, one.field), one.field)


def from_table(kind: type[_T], table: Mapping[str, Any], where: str, *, flags: bool = False) -> _T:
    """Make the dataclass of a file's table, or refuse a key or value by its name.

    Parameters
    ----------
    kind
        The dataclass.
    table
        Values by the options' names.
    where
        What a message calls the table.
    flags
        Whether the command line may give them as well: messages then say so.

    Raises
    ------
    ParameterError
        If there is no such option, its value cannot be, or by all their names if some are missing.
    """
    known = {one.name: one for one in declared(kind)}
    check_names(f"{where} has no", table, known)
    for name, value in table.items():
        one = known[name]
        one.check(value, f"{one.flag} ({name} in {where})" if flags else f"{where} {name}")
    missing = [one for one in known.values() if one.required and table.get(one.name) in {None, ""}]
    if missing:
        names = _listed(one.name for one in missing)
        if not flags:
            raise ParameterError(f"{where} lacks {names}")
        words = _listed(f"the {one.name}" if one.argument else one.flag for one in missing)
        raise ParameterError(f"give {words}, or {names} in {where} of the --config file")
    return kind(**{known[name].field: known[name].made(value) for name, value in table.items()})


def _listed(words: Iterable[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last
