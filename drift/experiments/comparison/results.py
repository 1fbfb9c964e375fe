"""What a comparison came to: tables of runs, windows, drifts and tests, and the folder of it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rich.jupyter import JupyterMixin

from drift.errors import MissingExtraError, needing
from drift.experiments.comparison.report import report
from drift.experiments.comparison.rows import (
    RUN,
    RUNS,
    SUMMARY,
    WINDOWS,
    recovery_rows,
    run_rows,
    summary,
    window_rows,
)
from drift.experiments.comparison.statistics import TESTS, pairs_of
from drift.experiments.folder import held

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from os import PathLike
    from pathlib import Path

    import pandas as pd
    from matplotlib.figure import Figure
    from rich.console import RenderableType

    from drift.experiments.folder import Record, RunFolder
    from drift.streams.stream import Stream

__all__ = ["ComparisonResults", "frame"]

#: Columns of whole numbers, some of which are missing.
_INTEGERS = ("seed", "fold", "unrecovered")


@dataclass(frozen=True, repr=False)
class ComparisonResults(JupyterMixin):
    """Records of a comparison and what they show, as data frames of pandas.

    Parameters
    ----------
    records
        One a run, as they are in the folder.
    streams
        By name.
    settings
        What was asked for.
    seconds
        Wall time of the call that made this.
    folder
        Where the runs are kept; None: nowhere.

    Attributes
    ----------
    runs : pandas.DataFrame
        One row a run: ``model``, ``stream``, ``seed``, ``delay``, ``fold`` (the last three None
        where there is none); ``status``: ``ok``, ``time limit`` or ``failed``, with a ``message``,
        and then the measures of what there was; ``rows`` that were predicted after the run
        had learnt a label, and ``unpredicted``, those of them without a prediction, which no
        measure counts; ``mistakes``; the measures, all of
        them shares but for ``log_loss``: ``error``, ``kappa``, ``kappa_temporal``, ``kappa_m``,
        ``balanced_accuracy``, ``f1``, ``auc``, ``log_loss``, ``calibration_error``; ``recovery``,
        the mean number of rows until the model is as good as before a drift, and ``unrecovered``,
        the number of drifts where it never is, both missing for no change and majority;
        ``microseconds`` of processor time for predicting and learning an example; ``memory``, the
        largest size of the model in bytes.
    windows : pandas.DataFrame
        One row a run and window: ``model``, ``stream``, ``seed``, ``fold``; ``start`` and ``stop``,
        its first row and that after its last; ``rows``, ``unpredicted``, the measures,
        ``microseconds`` and ``memory`` (at its end; missing where looking would have taken long).
    drifts : pandas.DataFrame
        One row a drift that is known: ``stream``, ``row``, ``width``.
    recoveries : pandas.DataFrame
        One row a run and drift: ``model``, ``stream``, ``seed``, ``fold``, ``row``, ``before``,
        ``rows``, ``excess``; see `drift.experiments.comparison.measures.recoveries`.
    tests : pandas.DataFrame
        One row a pair of models, over the streams that are not `shuffled`; see
        `drift.experiments.comparison.statistics.pairs_of`.

    Notes
    -----
    ``kappa_temporal`` and ``kappa_m`` are 1 - e / e0, where e0 is the error of no change and of
    majority on the same rows, with the same delay. The measures of a run are those of all its
    predictions, but for ``auc``: there it is the mean over windows, weighted by their rows.
    """

    records: list[Record]
    streams: Mapping[str, Stream]
    settings: dict[str, Any]
    seconds: float
    folder: Path | None = None

    def __repr__(self) -> str:
        models = dict.fromkeys(record["model"] for record in self.records)
        return f"<ComparisonResults of {', '.join(self.streams)}: {', '.join(models)}>"

    @cached_property
    def run_rows(self) -> list[Record]:
        """Rows of `runs`, as dicts."""
        return run_rows(self.records)

    @property
    def own_rows(self) -> list[Record]:
        """Those of `run_rows` on streams in their own order: a shuffled copy is no other stream."""
        return [row for row in self.run_rows if not self.streams[row["stream"]].shuffled]

    @cached_property
    def window_rows(self) -> list[Record]:
        """Rows of `windows`, as dicts."""
        return window_rows(self.records)

    @cached_property
    def summary_rows(self) -> list[Record]:
        """Rows of `table`, as dicts."""
        return summary(self.run_rows)

    @cached_property
    def test_rows(self) -> list[Record]:
        """Rows of `tests`, as dicts."""
        return pairs_of(self.own_rows)

    @cached_property
    def runs(self) -> pd.DataFrame:
        """One row a run."""
        return frame(self.run_rows, RUNS)

    @cached_property
    def windows(self) -> pd.DataFrame:
        """One row a run and window."""
        return frame(self.window_rows, WINDOWS)

    @cached_property
    def drifts(self) -> pd.DataFrame:
        """One row a drift that is known."""
        rows = [
            {"stream": name, **drift._asdict()}
            for name, stream in self.streams.items()
            for drift in stream.drifts
        ]
        return frame(rows, ("stream", "row", "width"))

    @cached_property
    def recoveries(self) -> pd.DataFrame:
        """One row a run and drift; none of no change and majority."""
        return frame(recovery_rows(self.records), (*RUN, "row", "before", "rows", "excess"))

    @cached_property
    def tests(self) -> pd.DataFrame:
        """One row a pair of models."""
        return frame(self.test_rows, TESTS)

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row a stream and model: means over its runs, the smallest error first."""
        return frame(self.summary_rows, SUMMARY)

    @property
    def figures(self) -> dict[str, Figure]:
        """Figures by the name of their file: against cost, over time of one stream, mean ranks.

        Raises
        ------
        MissingExtraError
            matplotlib is not installed.
        """
        from drift.experiments.comparison import plots  # noqa: PLC0415 - optional

        found = {"cost": plots.against_cost(self)}
        if len(self.streams) == 1:
            found["windows"] = plots.over_time(self, *self.streams)
        if self.test_rows:
            found["ranks"] = plots.ranks(self)
        return found

    def save(self, path: str | PathLike[str] | RunFolder) -> None:
        """Write the tables, as Parquet and CSV, figures, the manifest and ``report.html``.

        Parameters
        ----------
        path
            The folder; made if need be. Runs that it lacks are added.

        Warns
        -----
        RuntimeWarning
            matplotlib or plotly is not installed: there are no figures, or no report.
        """
        tables = ("runs", "windows", "drifts", "recoveries", "tests", "table")
        with held(path) as folder:
            folder.append_missing(self.records)
            data = {name: stream.sha256 for name, stream in self.streams.items()}
            folder.write_manifest(data, self.settings, self.seconds)
            for name in tables:
                folder.write_frame(name, getattr(self, name))
            folder.write_figures(lambda: self.figures)
            try:
                folder.write_text("report.html", report(self))
            except MissingExtraError as error:
                warnings.warn(f"no report: {error}", RuntimeWarning, stacklevel=2)

    def _repr_html_(self) -> str:
        html: str = self.table.to_html(index=False, na_rep="", float_format="{:.4g}".format)
        return html

    def __rich__(self) -> RenderableType:
        from drift.experiments.terminal import compared  # noqa: PLC0415 - rich is for terminals

        return compared(self.summary_rows, self.run_rows)


def frame(rows: list[Record], columns: Iterable[str]) -> pd.DataFrame:
    """Make a data frame of rows, with columns of whole numbers that may be missing."""
    with needing("pandas", "compare"):
        import pandas as pd  # noqa: PLC0415 - optional
    found = pd.DataFrame(rows, columns=list(columns))
    return found.astype({name: "Int64" for name in _INTEGERS if name in found})
