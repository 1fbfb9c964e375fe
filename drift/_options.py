"""Options, each declared once: in a dataclass that the command line, TOML files and callers read.

A field has a name, a type and a default, as in any dataclass; `option` adds its help and bounds.
"""

from __future__ import annotations

import dataclasses
import math
import re
import types
import typing
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drift._checks import check_choice, check_names, listed
from drift._durations import seconds_of, shown
from drift.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "KINDS",
    "Checked",
    "Option",
    "declared",
    "from_table",
    "from_tables",
    "option",
]

_META = "drift.option"
#: Options by their dataclass: its hints take a while to resolve, and a codec checks its options.
_DECLARED: dict[type, tuple[Option, ...]] = {}
#: What values of a type are, to who writes them into a file.
KINDS: Mapping[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a string",
    object: "a label: a string, a whole number, true or false",
    Path: "a path in quotes",
    Mapping: "a table",
}
_WHOLE = re.compile(r"-?\d{1,18}")
_T = typing.TypeVar("_T")


@dataclasses.dataclass(frozen=True)
class Option:
    """What is declared of an option.

    Attributes
    ----------
    field
        Its name in Python.
    name
        Its name; with dashes, on the command line.
    key
        Its name in a file.
    table
        The table of a file that has it; None for the one of its dataclass.
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
    duration
        Whether it is a number of seconds, which a text may give with a unit, as ``"90s"`` or
        ``"30 days"``.
    empty
        Whether a text may be empty, which it is where a variable of the shell is not set.
    """

    field: str
    name: str
    key: str
    table: str | None
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
    duration: bool
    empty: bool

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
        if self.most == math.inf:
            least = f"{'above' if self.above else 'at least'} {self.least}"
            return least if self.least > -math.inf else ""
        if self.least == -math.inf:
            return f"at most {self.most}"
        least = f"above {self.least} and up" if self.above else f"from {self.least}"
        return f"{least} to {self.most}"

    def wanted(self) -> str | None:
        """Say what one of its values is."""
        return "a number of seconds, or as '30d'" if self.duration else KINDS.get(self.kind)

    def check(self, value: Any, where: str) -> None:
        """Refuse a value that it cannot have, under the name of where it was given."""
        if value is None and self.optional:
            return
        many = isinstance(value, (list, tuple))
        values = value if many else [value]
        if many != self.many or not all(map(self._is_kind, values)):
            wanted = filter(None, ["a list" * self.many, self.wanted()])
            raise ParameterError(f"{where} must be {', each '.join(wanted)}, not {value!r:.80}")
        for one in values:
            if one == "" and self.kind in {str, Path} and not (many or self.empty):
                raise ParameterError(f"{where} must not be empty")
            if self.choices:
                check_choice(where, one, self.choices)
            if self.bounds() and not (
                (self.least < one if self.above else self.least <= one) and one <= self.most
            ):
                raise ParameterError(f"{where} must be {self.bounds()}, not {one}")
            if self.kind is float and not -math.inf < one < math.inf:
                raise ParameterError(f"{where} must be a finite number, not {one}")

    def shown(self) -> str:
        """Return its default as the help shows it; a duration in the largest unit that fits."""
        if self.duration and isinstance(self.default, (int, float)):
            return shown(self.default)
        return "" if self.required else _shown(self.default)

    def made(self, value: Any) -> Any:
        """Return what the dataclass has for a file's value; one that it cannot have as it is."""
        if self.kind is Path and isinstance(value, str) and value:  # "" would be where one is
            return Path(value)
        if self.duration and isinstance(value, str):
            seconds = seconds_of(value)
            return value if seconds is None else seconds
        return value

    def read(self, text: str) -> Any:
        """Return the value of a text of the command line; ValueError where it has none."""
        if self.kind is object:
            known: dict[str, bool] = {"true": True, "false": False}
            return known.get(text, int(text) if _WHOLE.fullmatch(text) else text)
        value = self.made(text)
        return self.kind(value) if value is text and self.kind is not Path else value

    def _is_kind(self, value: object) -> bool:
        wider: dict[type, Any] = {int: Integral, float: Real, Path: (str, Path)}
        if self.kind is object:
            return isinstance(value, (str, int))
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
    duration: bool = False,
    empty: bool = False,
    name: str | None = None,
    table: str | None = None,
    key: str | None = None,
) -> Any:
    """Return a field of a dataclass that is an option, as `Option` describes it.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Saving:
    ...     every: int = option("Messages between checkpoints.", 20_000, least=1)
    >>> Saving().every
    20000
    >>> from_table(Saving, {"evry": 5}, "[saving]")
    Traceback (most recent call last):
    drift.errors.ParameterError: [saving] has no 'evry': did you mean 'every'?
    """
    fields = {
        "help": help,
        "least": least,
        "most": most,
        "above": above,
        "choices": choices,
        "argument": argument,
        "duration": duration,
        "empty": empty,
        "name": name,
        "table": table,
        "key": key,
    }
    return dataclasses.field(default=default, metadata={_META: fields})


def declared(kind: type) -> tuple[Option, ...]:
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
    if kind not in _DECLARED:
        _DECLARED[kind] = tuple(_options(kind))
    return _DECLARED[kind]


def _options(kind: type) -> Iterator[Option]:
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        if _META in field.metadata:
            fields = dict(field.metadata[_META])
            name = fields.pop("name") or field.name
            key, table = fields.pop("key") or name, fields.pop("table")
            hint = _kind(hints[field.name])
            yield Option(field.name, name, key, table, *hint, field.default, **fields)


def _shown(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, tuple):
        return ",".join(map(_shown, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _kind(hint: Any) -> tuple[type, bool, bool]:
    """Return the type of a value, whether there is a list of them, and whether it may be None."""
    optional = isinstance(hint, types.UnionType)
    if optional:
        [hint] = [one for one in typing.get_args(hint) if one is not types.NoneType]
    if typing.get_origin(hint) is Mapping:
        return Mapping, False, optional
    many = typing.get_origin(hint) in {list, tuple, Sequence}
    return (typing.get_args(hint)[0] if many else hint), many, optional


class Checked:
    """A dataclass of options that refuses those of a wrong type or out of bounds.

    A duration that is a text with a unit becomes seconds, as in a file.

    Raises
    ------
    ParameterError
        By the name of the field.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Saving(Checked):
    ...     every: int = option("Messages between checkpoints.", 20_000, least=1)
    >>> Saving(every=0)
    Traceback (most recent call last):
    drift.errors.ParameterError: every must be at least 1, not 0
    """

    def __post_init__(self) -> None:
        """Check each option; a subclass checks what is between them after that."""
        for one in declared(type(self)):
            value = one.made(given := getattr(self, one.field))
            one.check(value, one.field)
            if value is not given:
                object.__setattr__(self, one.field, value)  # of a frozen dataclass, too


def from_table(kind: type[_T], table: Mapping[str, Any], where: str) -> _T:
    """Make the dataclass of a file's table, or refuse a key or value by its name.

    Parameters
    ----------
    kind
        The dataclass; all its options are in this table.
    table
        Values by the options' keys.
    where
        What a message calls the table.

    Raises
    ------
    ParameterError
        If there is no such option, its value cannot be, or by all their names if some are missing.
    """
    known = {one.key: one for one in declared(kind)}
    check_names(f"{where} has no", table, known)
    for key, value in table.items():
        known[key].check(known[key].made(value), f"{where} {key}")
    missing = _missing(known.values(), {known[key].name: value for key, value in table.items()})
    if missing:
        raise ParameterError(f"{where} lacks {listed(one.key for one in missing)}")
    return kind(**{known[key].field: known[key].made(value) for key, value in table.items()})


def from_tables(
    kind: type[_T], home: str, tables: Mapping[str, Mapping[str, Any]], given: Mapping[str, Any]
) -> _T:
    """Make the dataclass of a file's tables and of the command line, which comes before them.

    Parameters
    ----------
    kind
        The dataclass.
    home
        The name of the table that has the options which name none.
    tables
        Values by the options' keys, by the table's name.
    given
        Values by the options' names.

    Raises
    ------
    ParameterError
        If there is no such option in a table, which says where it is if another has it; if a value
        cannot be, or by all their names if some are missing.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Learning:
    ...     rate: float = option("The rate.", 1.0)
    ...     labels: str | None = option("Topic of labels.", None, table="labels", key="topic")
    >>> from_tables(Learning, "worker", {"labels": {"topic": "frauds"}}, {"rate": 0.5})
    Learning(rate=0.5, labels='frauds')
    >>> from_tables(Learning, "worker", {"worker": {"labels": "frauds"}}, {})
    Traceback (most recent call last):
    drift.errors.ParameterError: [worker] has no 'labels': write topic in [labels]
    """
    options = declared(kind)
    values = {}
    for name, table in tables.items():
        known = {one.key: one for one in options if (one.table or home) == name}
        for key, value in table.items():
            if key not in known:
                _refuse_elsewhere(key, name, home, options)
                check_names(f"[{name}] has no", [key], known)
            values[known[key].name] = value
    values |= given
    by_name = {one.name: one for one in options}
    for name, value in values.items():
        one = by_name[name]
        where = f"{one.flag} ({one.key} in [{one.table or home}])"
        one.check(one.made(value), where)
    missing = _missing(options, values)
    if missing:
        words = listed(f"the {one.name}" if one.argument else one.flag for one in missing)
        names = listed(one.key for one in missing)
        raise ParameterError(f"give {words}, or {names} in [{home}] of the --config file")
    return kind(**{by_name[n].field: by_name[n].made(value) for n, value in values.items()})


def _refuse_elsewhere(key: str, table: str, home: str, options: Iterable[Option]) -> None:
    """Refuse a key that stands in another table, or under another name."""
    for one in options:
        if key in {one.key, one.name}:
            raise ParameterError(
                f"[{table}] has no {key!r}: write {one.key} in [{one.table or home}]"
            )


def _missing(options: Iterable[Option], values: Mapping[str, Any]) -> list[Option]:
    return [one for one in options if one.required and values.get(one.name) is None]
