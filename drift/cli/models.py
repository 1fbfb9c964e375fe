"""Which model to take, and a list of all."""

from __future__ import annotations

from dataclasses import dataclass

from drift.cli import _lazy
from drift.cli._command import Command

__all__ = ["Models"]


@dataclass(kw_only=True)
class Models(Command):
    """Say which model to take, and list all: parameters, memory, time of an update, paper."""

    def _run(self) -> None:
        _lazy.Console(width=80).print(_lazy.listing())
