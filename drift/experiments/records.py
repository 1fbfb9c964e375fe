"""The folder of an experiment: runs are appended as they finish, and a later call resumes there.

One JSON object a line survives a crash with at most its last line torn, can be read while the
experiment goes on, and never has to be rewritten.
"""

from __future__ import annotations

import csv
import json
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from drift.errors import DataError, MissingExtraError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from matplotlib.figure import Figure

__all__ = ["Record", "RunFolder"]

#: One run: what identifies it, its `key`, and what came out.
Record: TypeAlias = dict[str, Any]


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

    def read(self) -> dict[str, Record]:
        """Read every run in the folder, by key; of runs with one key, the last.

        A last line that was torn by a crash is cut off with a `RuntimeWarning`, so that its run is
        computed again.

        Raises
        ------
        DataError
            Another line is not a run.
        """
        if not self.runs.exists():
            return {}
        whole, newline, torn = self.runs.read_bytes().rpartition(b"\n")
        if torn:
            warnings.warn(
                f"{self.runs}: dropped the last line, which was cut short while it was written; "
                "its run is computed again",
                RuntimeWarning,
                stacklevel=2,
            )
            os.truncate(self.runs, len(whole + newline))
        records = {}
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                record = json.loads(line)
                records[record["key"]] = record
            except (ValueError, TypeError, KeyError):
                raise DataError(
                    self.runs, number, "not a run: delete the line, and its run is computed again"
                ) from None
        return records

    def append(self, record: Record) -> None:
        """Add a run; it is with the operating system when this returns.

        Parameters
        ----------
        record
            The run, with its `key`; what JSON can hold.
        """
        with self.runs.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    def append_missing(self, records: Iterable[Record]) -> None:
        """Add the runs among `records` whose keys the folder lacks."""
        known = self.read()
        for record in records:
            if known.setdefault(record["key"], record) is record:
                self.append(record)

    def write_table(
        self, name: str, rows: Sequence[Mapping[str, Any]], headings: Sequence[str] | None = None
    ) -> None:
        """Write rows as CSV, replacing what was there.

        Parameters
        ----------
        name
            The file's name.
        rows
            With the same keys each.
        headings
            These keys, for a table that may have no rows. None: those of the first row; without
            rows the file is empty.
        """
        if headings is None:
            headings = list(rows[0]) if rows else []
        with (self.path / name).open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, headings)
            if headings:
                writer.writeheader()
            writer.writerows(rows)

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Write a JSON file, replacing what was there.

        Parameters
        ----------
        name
            The file's name.
        content
            What JSON can hold.
        """
        text = json.dumps(content, indent=2)
        (self.path / name).write_text(text + "\n", encoding="utf-8")

    def write_figures(self, draw: Callable[[], Mapping[str, Figure]]) -> None:
        """Write figures as PNG and as SVG, replacing what was there.

        Parameters
        ----------
        draw
            Returns them by the name of their files, without suffix.

        Warns
        -----
        RuntimeWarning
            matplotlib is not installed: there are no figures.
        """
        try:
            figures = draw()
        except MissingExtraError as error:
            warnings.warn(f"no figures: {error}", RuntimeWarning, stacklevel=3)
            return
        for name, figure in figures.items():
            figure.savefig(self.path / f"{name}.png", dpi=150)
            figure.savefig(self.path / f"{name}.svg", metadata={"Date": None})
