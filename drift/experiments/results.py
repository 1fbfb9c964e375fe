"""What an experiment came to: its runs, tables and figures, on screen, in a folder and back."""

from __future__ import annotations

import csv
import warnings
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from rich.jupyter import JupyterMixin

from drift._checks import check_names, counted
from drift.errors import DataError, MissingExtraError, needing
from drift.experiments.folder import RunFolder, as_it_was, locked_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from os import PathLike

    import pandas as pd
    from matplotlib.figure import Figure
    from rich.console import RenderableType

    from drift.experiments.jobs import Record

__all__ = ["ExperimentKind", "Results", "TableSpec"]

_T = TypeVar("_T")
#: Columns of integers with missing values.
_INTEGERS = ("seed", "fold", "unrecovered")


class TableSpec(NamedTuple):
    """How a table is made of results, and its columns.

    Without columns they are those of its first row, and there is no file where it has no rows.
    """

    rows: Callable[[Results], Sequence[Record]]
    columns: Sequence[str] = ()


class ExperimentKind(NamedTuple):
    """What is shown of the results of an experiment."""

    #: By name, which is that of the file.
    tables: Mapping[str, TableSpec]
    #: Those that the results are enough for, by the name of the file: ``module:function`` that
    #: draws one, imported when it is requested, as matplotlib is optional.
    figures: Callable[[Results], Mapping[str, str]]
    #: What `rich.print` shows.
    shown: Callable[[Results], RenderableType]
    #: By the name of the file, with its suffix.
    texts: Mapping[str, Callable[[Results], str]]


@dataclass(frozen=True, repr=False, eq=False)
class Results(JupyterMixin):
    """Records of an experiment, and the tables and figures that are made of them.

    ``results["runs"]`` is a data frame of pandas. Print the results with `rich.print` for the
    tables that the command line shows; a notebook shows them.

    Parameters
    ----------
    kind
        What is shown: which tables and figures there are.
    records
        One a run, with the ``contender`` whose run it is.
    streams
        What is known of each stream, by name: its ``rows``, ``sha256``, ....
    settings
        The settings of the experiment.
    seconds
        Wall time of the runs; runs that the folder had count 0.
    folder
        Where the runs are kept; None: nowhere.

    Examples
    --------
    >>> from drift.experiments import track
    >>> results = track("newswire", rows=160, shifts=[7], models=["Perceptron"], jobs=1)
    >>> [row["runs"] for row in results.rows("table")], len(results.records)
    ([4], 36)
    >>> results.plot("error_vs_budget").get_size_inches().tolist()
    [5.6, 4.6]
    """

    kind: ExperimentKind
    records: list[Record]
    streams: Mapping[str, Record]
    settings: Mapping[str, Any]
    seconds: float
    folder: Path | None = None
    _made: dict[Any, Any] = field(default_factory=dict, init=False)

    def __repr__(self) -> str:
        return f"<Results of {self.stream}: {counted(len(self.records), 'run')}>"

    @property
    def stream(self) -> str:
        """Names of the streams, separated by commas."""
        return ", ".join(self.streams)

    def cached(self, make: Callable[[Results], _T]) -> _T:
        """Return what a function makes of these results, computed once."""
        if make not in self._made:
            self._made[make] = make(self)
        made: _T = self._made[make]
        return made

    def rows(self, table: str) -> Sequence[Record]:
        """Rows of a table, as dicts.

        Parameters
        ----------
        table
            Its name.

        Raises
        ------
        ParameterError
            There is no such table.
        """
        check_names("no table", [table], self.kind.tables)
        return self.cached(self.kind.tables[table].rows)

    def __getitem__(self, table: str) -> pd.DataFrame:
        """Return `rows` of a table as a data frame; MissingExtraError where pandas is not there."""
        rows = self.rows(table)
        with needing("pandas", "compare"):
            import pandas as pd  # noqa: PLC0415 - optional
        frame = pd.DataFrame(list(rows), columns=self._columns(table))
        return frame.astype({name: "Int64" for name in _INTEGERS if name in frame})

    def _columns(self, table: str) -> list[str]:
        rows = self.rows(table)
        return list(self.kind.tables[table].columns or (rows[0] if rows else ()))

    @property
    def figures(self) -> Mapping[str, str]:
        """What draws each figure that the results are enough for, by the figure's name."""
        return self.kind.figures(self)

    def plot(self, figure: str) -> Figure:
        """Draw a figure.

        Parameters
        ----------
        figure
            Its name, which is that of its file.

        Raises
        ------
        ParameterError
            There is no such figure.
        MissingExtraError
            matplotlib is not installed.
        """
        check_names("no figure", [figure], self.figures)
        drawn: Figure = resolve_name(self.figures[figure])(self)
        return drawn

    def save(self, path: str | PathLike[str] | RunFolder) -> None:
        """Write manifest, tables, texts and figures, as far as the extras for them are there.

        Parameters
        ----------
        path
            The folder; made if need be. Runs that it lacks are added. Each table is in it as CSV,
            and with pandas and pyarrow as Parquet.

        Raises
        ------
        ParameterError
            Another call is writing to the folder, or this one cannot.

        Warns
        -----
        RuntimeWarning
            matplotlib is not installed, or what a text needs: it is left out.
        """
        with locked_folder(path) as folder:
            folder.append_missing(
                {name: value for name, value in record.items() if name != "contender"}
                for record in self.records
            )
            which = ("contender", "key")
            folder.write_table(
                "records", [{n: record[n] for n in which} for record in self.records]
            )
            folder.write_manifest(self.streams, self.settings, self.seconds)
            for name in self.kind.tables:
                if columns := self._columns(name):
                    folder.write_table(name, self.rows(name), columns)
                    with suppress(MissingExtraError), needing("pyarrow", "compare"):
                        folder.write_parquet(name, self[name])
            with _telling("figures"):
                for name in self.figures:
                    folder.write_figure(name, self.plot(name))
            for name, text in self.kind.texts.items():
                with _telling(name.partition(".")[0]):
                    folder.write_text(name, text(self))

    @classmethod
    def read(cls, path: str | PathLike[str], kind: ExperimentKind) -> Results:
        """Read what `save` has written.

        Parameters
        ----------
        path
            The folder.
        kind
            That of the experiment.

        Raises
        ------
        DataError
            The folder has no results, or they are not as they were written.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> from drift.experiments import Results, track
        >>> with TemporaryDirectory() as folder:
        ...     results = track(rows=160, shifts=7, models="Perceptron", output=folder, jobs=1)
        ...     read = Results.read(folder, results.kind)
        >>> read.rows("table") == results.rows("table")
        True
        """
        if not (which := Path(path, "records.csv")).exists():
            raise DataError(which, None, "is not there: give a folder that results were saved in")
        folder = RunFolder(path)
        about, stored = folder.manifest(), folder.read()
        with which.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        if missing := {row["key"] for row in rows} - stored.keys():
            raise DataError(which, None, f"names runs that {folder.runs.name} has not: {missing}")
        records = [stored[row["key"]] | {"contender": as_it_was(row["contender"])} for row in rows]
        data, settings = about["data"], about["parameters"]
        return cls(kind, records, data, settings, about["seconds"], folder.path)

    def __rich__(self) -> RenderableType:
        return self.kind.shown(self)


@contextmanager
def _telling(what: str) -> Iterator[None]:
    """Warn of what is left out as an extra is not installed."""
    try:
        yield
    except MissingExtraError as error:
        warnings.warn(f"no {what}: {error}", RuntimeWarning, stacklevel=4)
