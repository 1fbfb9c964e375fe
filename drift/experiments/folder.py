"""The folder of an experiment: runs are appended as they finish, and a later call resumes there.

One JSON object a line: a crash tears at most the last line, and a running experiment can be read.
Each has a checksum, so that a changed or damaged line is not mistaken for a result.
"""

from __future__ import annotations

import csv
import json
import os
import platform
import re
import sys
import warnings
from contextlib import contextmanager, nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

import drift
from drift.errors import DataError, ParameterError
from drift.experiments.jobs import Record, fingerprint
from drift.models import compiled

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from matplotlib.figure import Figure
    from pandas import DataFrame

__all__ = ["RunFolder", "as_it_was", "locked_folder"]

#: What spreadsheets take for a formula; numbers are none. Behind apostrophes, those stay apart.
_FORMULA = re.compile(r"'*[=@\t\r\n]|'*[+-](?![\d.]+(e[+-]?\d+)?\Z)", re.IGNORECASE)


class RunFolder:
    """The folder that an experiment leaves.

    Parameters
    ----------
    path
        Where; made with its parents if it does not exist. What other calls left there stays.

    Raises
    ------
    ParameterError
        The folder cannot be made.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from drift.experiments import RunFolder
    >>> with TemporaryDirectory() as path:
    ...     folder = RunFolder(path)
    ...     folder.append({"key": "1f", "mistakes": 7})
    ...     folder.read()
    {'1f': {'key': '1f', 'mistakes': 7}}
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._is_alone = False
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ParameterError(
                f"output {self.path}: {error.strerror}; give a folder that can be made and written"
            ) from error

    @property
    def runs(self) -> Path:
        """The file of the runs, ``runs.jsonl``."""
        return self.path / "runs.jsonl"

    @contextmanager
    def alone(self) -> Iterator[Self]:
        """Keep all others from writing to the folder as long as this lasts; they may read it.

        Within it, this object's methods may be called, and this one again. A last line that was
        torn by a crash is cut off, so that its run is computed again.

        Raises
        ------
        ParameterError
            Another process, or another object, is writing, or this one cannot.

        Warns
        -----
        RuntimeWarning
            A line was cut off.
        """
        if self._is_alone:
            yield self
            return
        with _saying_why(self.runs):
            file = self.runs.open("ab")
        with file:
            if not _lock(file):
                raise ParameterError(
                    f"output {self.path}: another call is writing there: wait for its end, or give "
                    "another folder"
                )
            self._cut_torn_line()
            self._is_alone = True
            try:
                yield self
            finally:
                self._is_alone = False

    def _cut_torn_line(self) -> None:
        whole, newline, torn = self.runs.read_bytes().rpartition(b"\n")
        if torn:
            os.truncate(self.runs, len(whole + newline))
            warnings.warn(
                f"{self.runs}: dropped the last line, which was cut short while it was written; "
                "its run is computed again",
                RuntimeWarning,
                stacklevel=4,
            )

    def read(self) -> dict[str, Record]:
        """Read every run in the folder, by key; of runs with one key, the last.

        A last line without its end is left out: it was torn, or is being written.

        Raises
        ------
        DataError
            Another line is not a run, or not as it was written.
        """
        if not self.runs.exists():
            return {}
        records = {}
        with _saying_why(self.runs):
            whole, _, _ = self.runs.read_bytes().rpartition(b"\n")
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                record = json.loads(line)
                key, check = record["key"], record.pop("check")
            except (ValueError, TypeError, KeyError, RecursionError):
                raise self._bad(number, "not a run") from None
            if check != fingerprint(record):
                raise self._bad(number, "not as it was written")
            records[key] = record
        return records

    def _bad(self, number: int, what: str) -> DataError:
        problem = f"{what}: delete the line, and its run is computed again"
        return DataError(self.runs, number, problem)

    def append(
        self, record: Record, predictions: Mapping[str, Sequence[Any]] | None = None
    ) -> None:
        """Add a run; it is with the operating system when this returns.

        Parameters
        ----------
        record
            The run, with its `key`; what JSON can hold.
        predictions
            Columns of a table of the run's predictions, for the folder ``predictions``; None: none.

        Raises
        ------
        ParameterError
            Another call is writing to the folder, or this one cannot: the disk is full, say.
        """
        if predictions is not None:
            (self.path / "predictions").mkdir(exist_ok=True)
            cells = zip(*predictions.values(), strict=True)
            rows = (dict(zip(predictions, row, strict=True)) for row in cells)
            self.write_table(f"predictions/{record['key']}", rows, list(predictions))
        line = json.dumps({**record, "check": fingerprint(record)}) + "\n"
        with self.alone(), _saying_why(self.runs), self.runs.open("a", encoding="utf-8") as file:
            file.write(line)

    def append_missing(self, records: Iterable[Record]) -> None:
        """Add the runs among `records` whose keys the folder lacks."""
        with self.alone():
            known = self.read()
            for record in records:
                if known.setdefault(record["key"], record) is record:
                    self.append(record)

    def write_table(
        self, name: str, rows: Iterable[Mapping[str, Any]], columns: Sequence[str] | None = None
    ) -> None:
        """Write rows as CSV, replacing what was there.

        Texts that a spreadsheet would run as a formula get an apostrophe before them: names and
        labels come from anyone. `as_it_was` takes it off.

        Parameters
        ----------
        name
            The file's name, without suffix.
        rows
            With the same keys each.
        columns
            These keys; None: those of the first row, and nothing where there is none.
        """
        if columns is None:
            rows = list(rows)
            columns = list(rows[0]) if rows else ()
        path = self.path / f"{name}.csv"
        with _saying_why(path), path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            if writer.fieldnames:
                writer.writeheader()
            writer.writerows({key: _harmless(value) for key, value in row.items()} for row in rows)

    def write_parquet(self, name: str, frame: DataFrame) -> None:
        """Write a data frame as Parquet, replacing what was there.

        Parameters
        ----------
        name
            The file's name, without suffix.
        frame
            Of pandas.
        """
        path = self.path / f"{name}.parquet"
        with _saying_why(path):
            frame.to_parquet(path, index=False)

    def manifest(self) -> dict[str, Any]:
        """Return what the manifest says of the ``data``, the ``parameters`` and the ``seconds``.

        Raises
        ------
        DataError
            There is none.
        """
        path = self.path / "manifest.json"
        try:
            about = json.loads(path.read_text(encoding="utf-8"))
            return {
                "data": {name: dict(part) for name, part in about["data"].items()},
                "parameters": dict(about["parameters"]),
                "seconds": float(about["seconds"]),
            }
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise DataError(path, None, "is no manifest: delete it, or the folder") from None

    def check_data(self, streams: Mapping[str, Record]) -> None:
        """Refuse to mix two data of one name.

        Parameters
        ----------
        streams
            By name, with the fingerprint ``sha256``.

        Raises
        ------
        ParameterError
            The manifest in the folder has another fingerprint under one of the names.
        """
        known = self.manifest()["data"] if (self.path / "manifest.json").exists() else {}
        for name, about in streams.items():
            if known.get(name, about).get("sha256") != about["sha256"]:
                raise ParameterError(
                    f"output {self.path}: holds results of another {name}, with another target, "
                    "other rows or other columns: give another folder, or delete this one"
                )

    def write_manifest(
        self, streams: Mapping[str, Record], settings: Mapping[str, Any], seconds: float
    ) -> None:
        """Write how results came about: versions, settings, data, machine and wall time."""
        about = {
            "versions": {"python": platform.python_version(), "drift": drift.__version__}
            | {name: version(name) for name in ("river", "numpy", "scipy")},
            "compiled": compiled,
            "data": dict(streams),
            "parameters": dict(settings),
            "machine": {"cpus": os.cpu_count(), "platform": platform.platform()},
            "seconds": round(seconds, 2),
        }
        self.write_text("manifest.json", json.dumps(about, indent=2) + "\n")

    def write_text(self, name: str, text: str) -> None:
        """Write a text, replacing what was there.

        Parameters
        ----------
        name
            The file's name.
        text
            Its content.
        """
        with _saying_why(self.path / name):
            (self.path / name).write_text(text, encoding="utf-8")

    def write_figure(self, name: str, figure: Figure) -> None:
        """Write a figure as PNG and as SVG, replacing what was there.

        Parameters
        ----------
        name
            The files' name, without suffix.
        figure
            The figure.
        """
        from drift.experiments.plots import save  # noqa: PLC0415 - matplotlib is optional

        path = self.path / name
        with _saying_why(path):
            path.parent.mkdir(exist_ok=True)
            figure.savefig(f"{path}.png", dpi=150)
            save(figure, f"{path}.svg")


def as_it_was(cell: str) -> str:
    """Return the text that a cell of a table was made of.

    Examples
    --------
    >>> from drift.experiments.folder import as_it_was
    >>> as_it_was("'=1+1"), as_it_was("'tis")
    ('=1+1', "'tis")
    """
    return cell[1:] if cell[:1] == "'" and _FORMULA.match(cell, 1) else cell


def _harmless(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def locked_folder(output: str | os.PathLike[str] | RunFolder | None) -> AbstractContextManager[Any]:
    """Make a folder of an output and keep others from writing there; None stays None."""
    if output is None:
        return nullcontext()
    return (output if isinstance(output, RunFolder) else RunFolder(output)).alone()


@contextmanager
def _saying_why(path: Path) -> Iterator[None]:
    """Turn what the operating system refuses into an error that says what to do."""
    try:
        yield
    except OSError as error:
        raise ParameterError(
            f"output {path}: {error.strerror}; make room, or give a folder that can be written: "
            "runs that ended are kept, and the same call computes only what is missing"
        ) from error


def _lock(file: IO[bytes]) -> bool:
    """Have a file alone until it is closed, or the process ends; False where another one has it."""
    try:
        if sys.platform == "win32":
            file.seek(1 << 40)  # far beyond the end: locked bytes can be neither read nor written
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:  # a file system that has no locks
        return True
    return True
