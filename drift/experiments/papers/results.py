"""What a comparison came to: tables and figures, on screen and in a folder."""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from rich.jupyter import JupyterMixin

from drift.errors import ParameterError
from drift.experiments.folder import held
from drift.experiments.tracking.report import label, mean_and_deviation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from os import PathLike

    from matplotlib.figure import Figure
    from rich.console import RenderableType

    from drift.experiments.folder import Record, RunFolder
    from drift.experiments.papers.reproduction import Printed

__all__ = ["PaperResults"]

#: Columns of the table that have a mean and a deviation: what of a record, and the digits.
_COLUMNS: dict[str, tuple[Callable[[Record], float], int]] = {
    "error": (lambda record: 100.0 * record["mistakes"] / record["n_samples"], 3),
    "test_error": (itemgetter("test_error"), 3),
    "supports": (itemgetter("supports"), 1),
    "updates": (itemgetter("updates"), 1),
    "seconds": (itemgetter("seconds"), 3),
    "megabytes": (lambda record: record["bytes"] / 1e6, 4),
    "microseconds": (lambda record: 1e6 * record["seconds"] / record["n_samples"], 2),
}
#: Those of them that a stream has.
_STREAM = ("error", "supports", "megabytes", "microseconds")
#: Figures by the name that `PaperResults.plot` takes: what draws them, and the name of their file.
_FIGURES = {
    "time": ("over_time", "over_time"),
    "supports": ("against_supports", "against_supports"),
    "epochs": ("by_epoch", "test_error_by_epoch"),
    "cost": ("against_cost", "against_cost"),
    "windows": ("in_windows", "error_over_time"),
}


@dataclass(frozen=True, repr=False)
class PaperResults(JupyterMixin):
    """Records of a comparison and what they show.

    Print it with `rich.print` for the tables that the command line shows; a notebook shows them.

    Parameters
    ----------
    records
        By contender, one record a permutation.
    series
        By contender, the curve against supports that it is a point of.
    printed
        Numbers of a paper, by contender and column.
    stream
        What was learnt.
    sha256
        Fingerprint of its source.
    settings
        What was asked for.
    seconds
        Wall time of the call that made this.
    """

    records: dict[str, list[Record]]
    series: dict[str, str]
    printed: Printed
    stream: str
    sha256: str
    settings: dict[str, Any]
    seconds: float

    def __repr__(self) -> str:
        return f"<PaperResults of {self.stream}: {', '.join(self.records)}>"

    def table(self) -> list[dict[str, Any]]:
        """One row a contender.

        Returns
        -------
        list of dict
            ``contender``, ``parameters``; ``error``, of the predictions before each update in the
            first epoch, in percent; ``test_error`` at the end, in percent, where there is a test
            part; ``supports`` at the end; ``updates``; ``seconds`` of processor time for learning;
            each with its standard deviation over permutations, as ``..._std``, and None where a
            contender has no such number; ``rows_per_second`` of learning; ``paper_...`` for each
            column that is printed; ``runs``. Of a stream ``megabytes``, the most that the model
            took, and ``microseconds`` for predicting and learning an example, in place of updates
            and seconds.
        """
        columns = self._columns
        printed = [name for name in columns if any(name in one for one in self.printed.values())]
        rows = []
        for name, records in self.records.items():
            row: dict[str, Any] = {"contender": name, "parameters": label(records[0])}
            for column in columns:
                row |= _mean(column, records, *_COLUMNS[column])
            learnt = sum(record["n_samples"] * record.get("epochs", 1) for record in records)
            row["rows_per_second"] = round(learnt / sum(record["seconds"] for record in records))
            own = self.printed.get(name, {})
            row |= {f"paper_{column}": own.get(column, [None])[-1] for column in printed}
            rows.append(row | {"runs": len(records)})
        return rows

    def epoch_table(self) -> list[dict[str, Any]]:
        """One row a contender and epoch.

        Returns
        -------
        list of dict
            ``contender``, ``epoch``; ``test_error`` in percent, where there is a test part;
            ``mistakes`` and ``updates`` so far, of `OneVsRest` the sum over its classes;
            ``supports``; each with its standard deviation over permutations, as ``..._std``;
            ``paper_...`` for each column that is printed; ``runs``.
        """
        rows = []
        names = [("test_error", 3)] if self.is_tested else []
        columns = [*names, ("mistakes", 1), ("updates", 1), ("supports", 1)]
        printed = {column for one in self.printed.values() for column in one}
        for name, records in self.records.items():
            states = zip(*(record.get("by_epoch", []) for record in records), strict=True)
            for epoch, group in enumerate(states, start=1):
                row: dict[str, Any] = {"contender": name, "epoch": epoch}
                for column, digits in columns:
                    row |= _mean(column, group, itemgetter(column), digits)
                    if column in printed:
                        paper = self.printed.get(name, {}).get(column, ())
                        row[f"paper_{column}"] = paper[epoch - 1] if epoch <= len(paper) else None
                rows.append(row | {"runs": len(records)})
        return rows

    @property
    def is_tested(self) -> bool:
        """Whether there is a test part."""
        return self.settings["test_rows"] is not None

    @property
    def _columns(self) -> list[str]:
        if self.is_stream:
            return list(_STREAM)
        kept = [name for name in _COLUMNS if name in {"error", "supports"} or name not in _STREAM]
        return [name for name in kept if name != "test_error" or self.is_tested]

    @property
    def is_stream(self) -> bool:
        """Whether the documents came in their own order, one by one."""
        return bool(self.settings["as_stream"])

    def plot(self, figure: str) -> Figure:
        """Draw a figure.

        Parameters
        ----------
        figure
            ``"time"``: error and supports over time. ``"supports"``: error, and where there is a
            test part test error and updates, against supports. ``"epochs"``: test error by epoch.
            Of a stream ``"cost"``: error against memory, and against time; and ``"windows"``: error
            over time of the contenders that are best on the whole.

        Raises
        ------
        ParameterError
            There is no such figure.
        MissingExtraError
            matplotlib is not installed.
        """
        from drift.experiments.papers import plots  # noqa: PLC0415 - optional

        if figure not in _FIGURES or (figure in {"cost", "windows"} and not self.is_stream):
            raise ParameterError(f"no figure {figure!r}: choose among {', '.join(_FIGURES)}")
        draw: Callable[[PaperResults], Figure] = getattr(plots, _FIGURES[figure][0])
        return draw(self)

    @property
    def figures(self) -> dict[str, Figure]:
        """Figures by the name of their file: those that these results are enough for."""
        if self.is_stream:
            wanted = ["cost", "windows"]
        elif self.settings["epochs"] > 1:
            wanted = ["epochs"] if self.is_tested else []
        else:
            wanted = ["supports"] if any(self.series.values()) else ["time"]
        return {_FIGURES[name][1]: self.plot(name) for name in wanted}

    def save(self, path: str | PathLike[str] | RunFolder) -> None:
        """Write tables, manifest and figures; the figures only where matplotlib is there.

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
            folder.append_missing(record for records in self.records.values() for record in records)
            folder.write_table("table.csv", self.table())
            if self.settings["epochs"] > 1:
                folder.write_table("epochs.csv", self.epoch_table())
            folder.write_manifest({self.stream: self.sha256}, self.settings, self.seconds)
            folder.write_figures(lambda: self.figures)

    def __rich__(self) -> RenderableType:
        from drift.experiments.terminal import comparison  # noqa: PLC0415 - rich is for terminals

        return comparison(self)


def _mean(
    column: str, group: Sequence[Record], value: Callable[[Record], float], digits: int
) -> dict[str, float | None]:
    """Mean and deviation of a column; None where the records have no such number."""
    try:
        mean, deviation = mean_and_deviation([value(one) for one in group])
    except KeyError:
        return {column: None, f"{column}_std": None}
    return {column: round(mean, digits), f"{column}_std": round(deviation, digits)}
