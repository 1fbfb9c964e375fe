"""Every model on every stream of a fixed list."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from drift._options import option
from drift.cli._experiment import Experiment
from drift.errors import ParameterError

__all__ = ["Arena"]


@dataclass(kw_only=True)
class Arena(Experiment):
    """Run every model on every stream of a fixed list, and say where drift loses.

    What the output folder already holds is not computed again.
    """

    streams: tuple[str, ...] | None = option(
        "Some of the streams, or a list of them: development, held-out; default: all.", None
    )
    models: tuple[str, ...] | None = option(
        "Some of the models; default: all, MOA's if CapyMOA and Java are installed.", None
    )
    delays: tuple[int, ...] | None = option(
        "Rows by which labels are late, 0: at once; default: 0, 100 and 1,000.", None, least=0
    )
    quick: bool = option("A few of them, 1,000 rows each: about a minute.", default=False)
    tables: bool = option("Run nothing: tables of what the folder has.", default=False)
    time_limit: float = option(
        "Seconds of processor time after which a run ends.", 600.0, least=0.0, duration=True
    )

    @property
    def folder(self) -> Path:
        """Where the results go."""
        return self.output or Path("results", f"arena{'-quick' * self.quick}")

    def _run(self) -> None:
        from drift.experiments.arena import arena, tables_of

        given = self.settings()
        if not given.pop("tables"):
            self.show(arena(**given))
            return
        if self.delays is not None:
            raise ParameterError("--tables takes all delays of the folder: leave --delays out")
        known = ("output", "streams", "models", "quick")
        self.show(tables_of(**{name: given[name] for name in known}))
