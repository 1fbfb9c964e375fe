"""What SIGTERM and Ctrl-C do to a command, until what it runs handles them."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Terminated", "ending_at_sigterm", "leave_at_signals"]

_BOTH = signal.SIGTERM, signal.SIGINT


class Terminated(KeyboardInterrupt):
    """SIGTERM, which a command takes as Ctrl-C."""


@contextmanager
def ending_at_sigterm() -> Iterator[None]:
    """Raise `Terminated` at SIGTERM, so that what runs cleans up; also in a container.

    Its first process gets no signal that it does not handle. Who handles SIGTERM already keeps
    that, and in the end both signals do what they did before, whoever took them meanwhile.
    """
    if threading.current_thread() is not threading.main_thread():  # others cannot handle signals
        yield
        return
    before = {number: signal.getsignal(number) for number in _BOTH}
    try:
        if before[signal.SIGTERM] is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, _terminate)
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:  # as where it was not set by Python
                signal.signal(number, handler)


def _terminate(*_: object) -> None:
    raise Terminated


def leave_at_signals() -> None:
    """End the process at SIGTERM and Ctrl-C, until what runs handles them.

    Nothing has started, imports may swallow an exception, and clients that connect would log
    errors.
    """
    for number in _BOTH:
        signal.signal(number, lambda *_: os._exit(0))
