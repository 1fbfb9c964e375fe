"""The experiments of papers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from drift._options import option
from drift.cli._experiment import Experiment

__all__ = ["Reproduce"]


@dataclass(kw_only=True)
class Reproduce(Experiment):
    """Repeat an experiment of a paper: models side by side over permutations of its data.

    What the output folder already holds is not computed again.
    """

    name: str | None = option(
        "The experiment; without a name, all are listed.", None, argument=True
    )
    data: Path | None = option(
        "Folder of the files, or openml to fetch them; default: in $DRIFT_DATA.", None
    )
    quick: bool = option("Few examples, one permutation: under a minute.", default=False)
    rows: int | None = option("Take the first examples only.", None, least=1)
    permutations: int | None = option(
        "Random orders of the data; default: as many as the paper.", None, least=1
    )
    models: tuple[str, ...] | None = option(
        "Some of the experiment's models or curves; default: all.", None
    )

    @property
    def folder(self) -> Path:
        """Where the results go."""
        return self.output or Path("results", f"{self.name}{'-quick' * self.quick}")

    def _run(self) -> None:
        from rich.console import Console

        from drift.experiments import REPRODUCTIONS, reproduce
        from drift.experiments.reproduction.terminal import reproductions

        if self.name is None:
            Console().print(reproductions(REPRODUCTIONS))
        else:
            self.show(reproduce(**self.settings()))
