"""What the tracking experiment came to: tables, claims and figures, on screen and in a folder."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rich.jupyter import JupyterMixin

from drift._checks import check_names, counted
from drift.experiments.folder import held
from drift.experiments.tracking.claims import Claim, claims
from drift.experiments.tracking.report import (
    CHUNK_COLUMNS,
    chunk_table,
    curves,
    of_the_paper,
    summary_rows,
    table_rows,
)

if TYPE_CHECKING:
    import os

    from matplotlib.figure import Figure
    from rich.console import RenderableType

    from drift.experiments.folder import Record, RunFolder
    from drift.experiments.tracking.report import Curves

__all__ = ["TrackingResults"]

#: Figures by the name that `TrackingResults.plot` takes, and the name of their file.
_FIGURES = {
    "error": "error_vs_budget",
    "second": "second_order_vs_budget",
    "time": "error_over_time",
}
_SECOND = ("SOP", "RBSOP", "LBSOP")


@dataclass(frozen=True, repr=False)
class TrackingResults(JupyterMixin):
    """Records of the tracking experiment and what they show.

    Print it with `rich.print` for the tables that the command line shows; a notebook shows them.

    Parameters
    ----------
    records
        One a run: model, parameters, stream, mistakes, error by window, ....
    chunks
        Runs of the models without budget, Perceptron and SOP, on single chunks.
    stream
        What was learnt.
    sha256
        Fingerprint of its source.
    settings
        The grids and seeds.
    seconds
        Wall time of the call that made this.

    Examples
    --------
    >>> from drift.experiments import track
    >>> results = track("newswire", rows=160, shifts=[7], models=["Perceptron"], jobs=1)
    >>> len(results.records), len(results.chunks)
    (4, 32)
    >>> results.plot("error").get_size_inches().tolist()
    [5.6, 4.6]
    """

    records: list[Record]
    chunks: list[Record]
    stream: str
    sha256: str
    settings: dict[str, Any]
    seconds: float

    def __repr__(self) -> str:
        return f"<TrackingResults of {self.stream}: {counted(len(self.records), 'run')}>"

    @cached_property
    def _curves(self) -> Curves:
        return curves(self.records)

    def table(self) -> list[dict[str, Any]]:
        """One row for each group, model and parameter: error and supports, mean and deviation."""
        return table_rows(self._curves)

    def summary(self) -> list[dict[str, Any]]:
        """Rows of `table` for each model's best parameter in each group."""
        return summary_rows(self._curves)

    def chunk_table(self) -> list[dict[str, Any]]:
        """Supports that Perceptron and SOP need for a chunk: the paper's Table I."""
        return chunk_table(self.chunks)

    def claims(self) -> list[Claim]:
        """What the paper says of its figures, true or false here, with the numbers.

        Decided on streams of the paper alone, which are RCV1's; empty for others.
        """
        return claims(self._curves, self.chunks) if of_the_paper(self.records) else []

    def plot(self, figure: str = "error") -> Figure:
        """Draw a figure.

        Parameters
        ----------
        figure
            ``"error"``: error against budget, a panel for each group (the paper's figures 3 and
            4), of the first-order models. ``"second"``: the same of the second-order ones, beside
            the Perceptron and LBP. ``"time"``: error over time with the most shifts (its
            figure 5).

        Raises
        ------
        ParameterError
            There is no such figure.
        MissingExtraError
            matplotlib is not installed.
        """
        from drift.experiments.tracking import plots  # noqa: PLC0415 - optional

        check_names("no figure", [figure], _FIGURES)
        if figure == "time":
            return plots.error_over_time(self._curves, self.stream)
        of_second, chunks = figure == "second", self.chunk_table()
        return plots.error_vs_budget(
            self._curves, self.stream, second_order=of_second, chunks=chunks
        )

    @property
    def figures(self) -> dict[str, Figure]:
        """Figures by the name of their file; of second order where such a model was run."""
        models = {model for curve in self._curves.values() for model in curve}
        wanted = [name for name in _FIGURES if name != "second" or not models.isdisjoint(_SECOND)]
        return {_FIGURES[name]: self.plot(name) for name in wanted}

    def save(self, path: str | os.PathLike[str] | RunFolder) -> None:
        """Write tables, claims, manifest and figures; the figures only where matplotlib is there.

        Parameters
        ----------
        path
            The folder; made if need be. Runs that it lacks are added.

        Raises
        ------
        ParameterError
            Another call is writing to the folder, or this one cannot.

        Warns
        -----
        RuntimeWarning
            matplotlib is not installed.
        """
        with held(path) as folder:
            folder.append_missing([*self.records, *self.chunks])
            folder.write_table("table.csv", self.table())
            folder.write_table("chunks.csv", self.chunk_table(), CHUNK_COLUMNS)
            claimed = [claim._asdict() for claim in self.claims()]
            folder.write_table("claims.csv", claimed, Claim._fields)
            folder.write_manifest({self.stream: self.sha256}, self.settings, self.seconds)
            folder.write_figures(lambda: self.figures)

    def __rich__(self) -> RenderableType:
        from drift.experiments.terminal import render  # noqa: PLC0415 - rich is for terminals

        return render(self)
