"""The tracking paper's experiment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from drift._options import option
from drift.cli._experiment import Experiment
from drift.cli._named import build, parse

__all__ = ["Track"]


@dataclass(kw_only=True)
class Track(Experiment):
    """Run the tracking paper's experiment: budgeted models on streams whose target shifts.

    What the output folder already holds is not computed again.
    """

    stream: str = option(
        "newswire, rcv1, reuters21578, segments, a9a or a LIBSVM file.", "newswire"
    )
    targets: tuple[str, ...] | None = option("Topics to ask for; default: the stream's own.", None)
    data: Path | None = option("Folder of the stream's files; default: in $DRIFT_DATA.", None)
    rows: int | None = option("Take the first examples only.", None, least=1)
    shifts: tuple[int, ...] = option(
        "Numbers of shifts; a group of streams for each.", (0, 1, 3, 7), least=0
    )
    models: tuple[str, ...] | None = option(
        "Perceptron,SPA,RBP,LBP,Forgetron; also SOP,RBSOP,LBSOP,CKS,Tracker.", None
    )
    budgets: tuple[int, ...] | None = option(
        "For models on a budget; default: in proportion to the stream's length.", None, least=1
    )
    decays: tuple[float, ...] | None = option("For SPA; default: 0.1,0.5,1,2,4.", None)
    seeds: int | None = option(
        "Runs of RBP and RBSOP a setting; default: 5 (newswire 2) and 1.", None, least=1
    )
    seed: int = option("Seed of the streams.", 0)
    kernel: str | None = option(
        "For example 'RBF(gamma=2)'; default: the paper's, of degree 4.", None
    )

    @property
    def folder(self) -> Path:
        """Where the results go."""
        return self.output or Path("results", f"track-{Path(self.stream).stem}")

    def _run(self) -> None:
        from drift.experiments import track

        kernel = None if self.kernel is None else build(parse(self.kernel))

        self.show(track(**self.settings() | {"kernel": kernel}))
