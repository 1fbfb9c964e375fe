"""Several models over random permutations of one data set: means and deviations side by side."""

from __future__ import annotations

import inspect
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from drift.errors import ParameterError
from drift.experiments._manifest import manifest
from drift.experiments.records import RunFolder
from drift.experiments.report import error, label, mean_and_deviation
from drift.experiments.run import Cell, run_cells
from drift.kernels import DEFAULT_KERNEL
from drift.models import MODELS
from drift.streams import ShiftingStream

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from os import PathLike

    from rich.console import RenderableType

    from drift.experiments.records import Record
    from drift.kernels import Kernel
    from drift.streams import Documents

__all__ = ["ComparisonResults", "Contender", "compare"]

#: Columns of the table that have a mean and a deviation, with their digits.
_COLUMNS = {"supports": 1, "updates": 1, "seconds": 3}


@dataclass(frozen=True)
class Contender:
    """A model to compare, with its setting.

    Parameters
    ----------
    model
        A name in `drift.models.MODELS`.
    parameters
        The model's parameters other than kernel and seed.
    budget_of
        Name of another contender, which runs first: the mean of the supports that it ends with,
        rounded, is this one's budget.
    """

    model: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    budget_of: str | None = None


@dataclass(frozen=True)
class ComparisonResults:
    """Records of a comparison and what they show.

    Print it with `rich.print` for the table that the command line shows.

    Parameters
    ----------
    records
        By contender, one record a permutation.
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
    stream: str
    sha256: str
    settings: dict[str, Any]
    seconds: float

    def table(self) -> list[dict[str, Any]]:
        """One row a contender.

        Returns
        -------
        list of dict
            ``contender``, ``parameters``; ``error``, of the predictions before each update, in
            percent; ``supports`` at the end; ``updates``; ``seconds`` for the whole pass; each with
            its standard deviation over permutations, as ``..._std``; ``runs``.
        """
        return [_row(name, records) for name, records in self.records.items()]

    def save(self, path: str | PathLike[str]) -> None:
        """Write ``table.csv`` and ``manifest.json``, and the runs that the folder lacks.

        Parameters
        ----------
        path
            The folder; made if need be.
        """
        folder = RunFolder(path)
        known = folder.read()
        for record in (record for records in self.records.values() for record in records):
            if known.setdefault(record["key"], record) is record:
                folder.append(record)
        folder.write_table("table.csv", self.table())
        about = manifest(self.stream, self.sha256, self.settings, self.seconds)
        folder.write_json("manifest.json", about)

    def __rich__(self) -> RenderableType:
        from drift.experiments.screen import comparison  # noqa: PLC0415 - rich is for terminals

        return comparison(self)


def compare(  # noqa: PLR0913 - an experiment's settings, by keyword
    documents: Documents,
    target: str,
    contenders: Mapping[str, Contender],
    *,
    kernel: Kernel | None = None,
    permutations: int = 5,
    jobs: int = -1,
    output: str | PathLike[str] | None = None,
    progress: bool = False,
) -> ComparisonResults:
    """Run every contender once over each of several permutations of the data.

    Parameters
    ----------
    documents
        The data.
    target
        The topic whose documents are the positive examples.
    contenders
        By the name that the table gives them.
    kernel
        Kernel between examples; None: each model's default.
    permutations
        Number of random orders of the data, with the seeds 0, 1, ...; the same ones for every
        contender. Models that draw at random get the same seeds.
    jobs
        Processes at a time; -1: one for each core.
    output
        Folder that keeps the runs: a call computes only those that it lacks. None: nothing is
        kept; `ComparisonResults.save` still can.
    progress
        Show a bar with the time left, on stderr.

    Returns
    -------
    ComparisonResults
        Records and their table, in the order of the contenders.

    Raises
    ------
    ParameterError
        A model or a contender that there is not, or a value that cannot be used.
    DataError
        Runs in `output` that cannot be read.

    Examples
    --------
    >>> from drift.experiments import Contender, compare
    >>> from drift.streams import gaussians
    >>> results = compare(
    ...     gaussians(200),
    ...     "+1",
    ...     {"Perceptron": Contender("Perceptron"), "half": Contender("LBP", {"budget": 20})},
    ...     permutations=2,
    ...     jobs=1,
    ... )
    >>> [(row["contender"], row["parameters"], row["runs"]) for row in results.table()]
    [('Perceptron', '', 2), ('half', 'budget 20', 2)]
    """
    started = time.perf_counter()
    _refuse(contenders, permutations)
    folder = None if output is None else RunFolder(output)
    stream = ShiftingStream(documents, target)
    records: dict[str, list[Record]] = {}
    for later in (False, True):
        stage = {n: one for n, one in contenders.items() if (one.budget_of is not None) is later}
        cells = {
            name: _cells(one, _parameters(one, records), stream, kernel, permutations)
            for name, one in stage.items()
        }
        queue = [cell for group in cells.values() for cell in group]
        done = iter(run_cells(queue, documents, folder=folder, jobs=jobs, progress=progress))
        records |= {name: [next(done) for _ in group] for name, group in cells.items()}
    results = ComparisonResults(
        records={name: records[name] for name in contenders},
        stream=documents.name,
        sha256=documents.sha256,
        settings={"target": target, "permutations": permutations, "rows": len(documents)}
        | {"contenders": list(contenders), "kernel": repr(kernel or DEFAULT_KERNEL)},
        seconds=time.perf_counter() - started,
    )
    if folder is not None:
        results.save(folder.path)
    return results


def _refuse(contenders: Mapping[str, Contender], permutations: int) -> None:
    if permutations < 1:
        raise ParameterError(f"permutations must be at least 1, not {permutations}")
    for name, one in contenders.items():
        if one.model not in MODELS:
            raise ParameterError(f"no model {one.model!r}: choose among {', '.join(MODELS)}")
        source = contenders.get(one.budget_of) if one.budget_of is not None else None
        if one.budget_of is not None and (source is None or source.budget_of is not None):
            raise ParameterError(
                f"{name} takes its budget from {one.budget_of!r}: "
                "compare it with that contender, which must have a setting of its own"
            )


def _parameters(one: Contender, records: Mapping[str, Iterable[Record]]) -> dict[str, Any]:
    if one.budget_of is None:
        return dict(one.parameters)
    supports = [record["supports"] for record in records[one.budget_of]]
    return {"budget": max(1, round(float(np.mean(supports)))), **one.parameters}


def _cells(
    one: Contender,
    parameters: dict[str, Any],
    stream: ShiftingStream,
    kernel: Kernel | None,
    permutations: int,
) -> list[Cell]:
    seeded = "seed" in inspect.signature(MODELS[one.model]).parameters
    return [
        Cell(one.model, parameters, stream, i, kernel, i if seeded else None, permutation=i)
        for i in range(permutations)
    ]


def _row(name: str, records: list[Record]) -> dict[str, Any]:
    mean, deviation = error(records)
    row = {
        "contender": name,
        "parameters": label(records[0]),
        "error": round(mean, 3),
        "error_std": round(deviation, 3),
    }
    for column, digits in _COLUMNS.items():
        mean, deviation = mean_and_deviation([record[column] for record in records])
        row |= {column: round(mean, digits), f"{column}_std": round(deviation, digits)}
    return row | {"runs": len(records)}
