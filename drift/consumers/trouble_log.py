"""One line a minute at most for each kind of trouble, with how often it came meanwhile."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator
    from logging import Logger

__all__ = ["LIMITED", "OncePerMinute", "TroubleLog", "others"]

#: What marks a record of the log whose kind has been limited.
LIMITED = {"limited": True}

_MINUTE = 60.0


def others(count: int) -> str:
    """Say how often it came besides.

    >>> others(0), others(3)
    ('', ' (and 3 like it before)')
    """
    return f" (and {count} like it before)" if count else ""


@dataclass
class _Kind:
    """When it was last said, how often it came since, and what was to be said then."""

    since: float
    unsaid: int = 0
    last: Any = None


class OncePerMinute:
    """What is said of a kind of trouble: the first at once, then the last one of each minute.

    Examples
    --------
    >>> limit = OncePerMinute()
    >>> [limit.admits("disk", line) for line in ("full", "still full", "full again")]
    [True, False, False]
    >>> list(limit.over(at_once=True)), list(limit.over(at_once=True))
    ([('full again', 2)], [])
    """

    def __init__(self) -> None:
        self._kinds: dict[Hashable, _Kind] = {}

    def admits(self, kind: Hashable, line: Any) -> bool:
        """Say whether a line of a kind is to be said now; else it is kept."""
        now = time.monotonic()
        known = self._kinds.get(kind)
        if known is None:
            self._kinds[kind] = _Kind(now)
            return True
        known.unsaid, known.last = known.unsaid + 1, line
        return False

    def over(self, *, at_once: bool = False) -> Iterator[tuple[Any, int]]:
        """Yield the last line of each kind whose minute is over, and how many there were in it.

        Parameters
        ----------
        at_once
            Do not wait for the end of the minute.
        """
        if not self._kinds:
            return
        now = time.monotonic()
        for kind, known in [*self._kinds.items()]:
            if not at_once and now < known.since + _MINUTE:
                continue
            if known.unsaid:
                self._kinds[kind] = _Kind(now)
                yield known.last, known.unsaid
            else:
                del self._kinds[kind]


class TroubleLog:
    """Writes what goes wrong with messages to a log; of a flood of one kind, a line a minute.

    Parameters
    ----------
    log
        The log.
    """

    def __init__(self, log: Logger) -> None:
        self._log = log
        self._limit = OncePerMinute()

    def say(self, level: int, kind: Hashable, line: str) -> None:
        """Write a line of a kind of trouble, now or when its minute is over."""
        self.say_again()
        if self._limit.admits(kind, (level, line)):
            self._log.log(level, "%s", line, extra=LIMITED)

    def say_again(self, *, at_once: bool = False) -> None:
        """Write what was left out, once its minute is over, or `at_once`."""
        for (level, line), count in self._limit.over(at_once=at_once):
            self._log.log(level, "%s%s", line, others(count - 1), extra=LIMITED)
