"""Which messages a codec leaves out, and what it reads of their headers."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from drift.consumers._json import found_at
from drift.errors import MessageError, ParameterError, SkippedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drift.consumers.records import Headers

__all__ = ["HEADER", "TOMBSTONE", "AbsentError", "Rule", "header", "literal"]

#: What the path of a header begins with.
HEADER = "header:"
#: The rule for messages without a value.
TOMBSTONE = "tombstone"
_RULE = re.compile(r"\s*(?P<path>[^=!]*[^=!\s])\s*(?P<differs>!?)=\s*(?P<value>.+)", re.DOTALL)
_SCALARS = (bool, int, float, str, type(None))


class AbsentError(SkippedError):
    """A message is left out as it has nothing where a rule wants one value: perhaps by mistake."""


@dataclass(frozen=True)
class Rule:
    """A rule of ``skip``: messages with a value, or with any other one, are left out.

    Parameters
    ----------
    path
        Where the value is.
    value
        What it is compared with; None is absent, too.
    differs
        Whether messages with another value are left out, not those with this one.

    Examples
    --------
    >>> rule = Rule.read('op = "d"')
    >>> rule.check({"op": "c"})
    >>> rule.check({"op": "d"})
    Traceback (most recent call last):
    drift.errors.SkippedError: op is "d", which [codec] skips
    """

    path: str
    value: Any
    differs: bool = False

    @classmethod
    def read(cls, text: str) -> Rule:
        """Return the rule of a text.

        Raises
        ------
        ParameterError
            If it is none.
        """
        match = _RULE.fullmatch(text)
        try:
            value = json.loads(match["value"]) if match else ()
        except ValueError:
            value = ()
        if match is None or not isinstance(value, _SCALARS):
            raise ParameterError(
                f'skip has {text!r:.80}: write "{TOMBSTONE}", or a path and a value, as \'op = '
                "\"d\"', 'kind != \"sale\"' or 'after = null'"
            )
        return cls(match["path"], value, bool(match["differs"]))

    def check(self, tree: Mapping[str, Any]) -> None:
        """Raise SkippedError for a message that is to be left out."""
        found = found_at(tree, self.path)
        # A header is a text, and 1 is no true.
        same = found == self.value and isinstance(found, bool) == isinstance(self.value, bool)
        if same is self.differs:
            return
        value = json.dumps(self.value)
        if self.differs and found is None:
            raise AbsentError(self.path, f"is absent, so it is not {value}, which [codec] skips")
        word = "is not" if self.differs else "is"
        raise SkippedError(self.path, f"{word} {value}, which [codec] skips")

    def check_headers(self, headers: Headers) -> None:
        """Do the same by the headers alone."""
        found = header(headers, self.path)
        if found is not None and not isinstance(self.value, str):
            found = literal(found)
        self.check({self.path: found})


def header(headers: Headers, path: str) -> str | None:
    """Return the text of a header by its path, of several the last; None without.

    Raises
    ------
    MessageError
        If it is no UTF-8.

    Examples
    --------
    >>> header([("ce_id", b"a7"), ("ce_type", b"sale")], "header:ce_id")
    'a7'
    """
    wanted, found = path.removeprefix(HEADER), None
    for name, value in headers:
        if name == wanted:
            found = value
    try:
        return None if found is None else found.decode()
    except UnicodeDecodeError:
        raise MessageError(path, "is no UTF-8: send text") from None


def literal(text: str) -> Any:
    """Return the number or bool that a text is in JSON, or the text.

    >>> literal("true"), literal("3"), literal("three")
    (True, 3, 'three')
    """
    try:
        value = json.loads(text, parse_constant=str)
    except ValueError:
        return text
    return value if type(value) in {bool, int, float} else text
