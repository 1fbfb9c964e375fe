"""Named points between steps that must survive a kill, at which tests can stop a worker.

A point costs a look into an empty dict unless a test has put a handler there, or the environment
variable ``DRIFT_ABORT_AT`` names it: ``checkpoint.renamed`` has the process kill itself with
SIGKILL when that point is first reached, ``checkpoint.renamed:3`` at the third time.
"""

from __future__ import annotations

import os
import signal
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["install", "reached", "remove"]

_handlers: dict[str, Callable[[], None]] = {}


def reached(name: str) -> None:
    """Run the handler of a point, if it has one; what that raises ends the step."""
    handler = _handlers.get(name)
    if handler is not None:
        handler()


def install(name: str, handler: Callable[[], None]) -> None:
    """Call a handler whenever a point is reached, in place of the last one."""
    _handlers[name] = handler


def remove(name: str) -> None:
    """Remove the handler of a point."""
    _handlers.pop(name, None)


def _obey(wish: str) -> None:
    name, _, number = wish.partition(":")
    times = count(1)

    def handler() -> None:
        if next(times) == int(number or 1):
            os.kill(os.getpid(), signal.SIGKILL)

    install(name, handler)


if os.environ.get("DRIFT_ABORT_AT"):
    _obey(os.environ["DRIFT_ABORT_AT"])
