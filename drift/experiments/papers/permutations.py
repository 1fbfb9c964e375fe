"""Several models over random permutations of one data set: means and deviations side by side."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from drift._checks import check_integer
from drift.errors import ParameterError
from drift.experiments.folder import held
from drift.experiments.papers.problem import Problem
from drift.experiments.papers.results import PaperResults
from drift.experiments.papers.runs import paper_run
from drift.experiments.river_models import RIVALS
from drift.experiments.runner import run_all
from drift.experiments.setting import SVM, Setting
from drift.kernels import DEFAULT_KERNEL
from drift.models import MODELS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from os import PathLike

    from drift.experiments.folder import Record
    from drift.experiments.jobs import Run
    from drift.experiments.papers.reproduction import Printed
    from drift.kernels import Kernel
    from drift.streams import Documents

__all__ = ["Setting", "permuted"]


def permuted(  # noqa: PLR0913 - an experiment's settings, by keyword
    documents: Documents,
    target: str | None,
    contenders: Mapping[str, Setting],
    *,
    test: Documents | None = None,
    kernel: Kernel | None = None,
    epochs: int = 1,
    permutations: int = 5,
    as_stream: bool = False,
    printed: Printed | None = None,
    jobs: int = -1,
    backend: str = "loky",
    address: str | None = None,
    output: str | PathLike[str] | None = None,
    progress: bool = False,
) -> PaperResults:
    """Run every contender over each of several permutations of the data.

    Parameters
    ----------
    documents
        The data.
    target
        The topic whose documents are the positive examples; None: each topic is a class.
    contenders
        By the name that the table gives them.
    test
        What every contender is tested on after each epoch; None: nothing.
    kernel
        Kernel between examples; None: each model's default.
    epochs
        Passes over the data, in the same order.
    permutations
        Number of random orders of the data, with the seeds 0, 1, ...; the same ones for every
        contender. Models that draw at random get the same seeds. An SVM is trained once.
    as_stream
        Take the documents in their own order instead, one after the other as dicts, which River's
        models need, too; measure the memory. `permutations` is then the number of runs, with the
        seeds 0, 1, ..., of models that draw at random; the others run once.
    printed
        What a paper prints, by contender and by column of the table, one number an epoch; it is
        shown beside what comes out.
    jobs
        Processes at a time; -1: one for each core.
    backend, address
        Where they run, as for `run_all`: ``loky``, ``dask`` or ``ray``.
    output
        Folder that keeps the runs: a call computes only those that it lacks. None: nothing is
        kept; `PaperResults.save` still can.
    progress
        Show a bar with the time left, on stderr.

    Returns
    -------
    PaperResults
        Records, tables and figures, in the order of the contenders.

    Raises
    ------
    ParameterError
        A model or a contender that there is not, or a value that cannot be used.
    DataError
        Runs in `output` that cannot be read.

    Examples
    --------
    >>> from drift.experiments.papers import Setting, permuted
    >>> from drift.streams import gaussians
    >>> results = permuted(
    ...     gaussians(200),
    ...     "+1",
    ...     {"Perceptron": Setting("Perceptron"), "half": Setting("LBP", {"budget": 20})},
    ...     permutations=2,
    ...     jobs=1,
    ... )
    >>> [(row["contender"], row["parameters"], row["runs"]) for row in results.table()]
    [('Perceptron', '', 2), ('half', 'budget 20', 2)]
    """
    started = time.perf_counter()
    permutations = check_integer("permutations", permutations)
    epochs = check_integer("epochs", epochs)
    if as_stream and (epochs > 1 or test is not None):
        raise ParameterError("a stream passes once and has no test part: no epochs, and no test")
    _refuse(contenders, as_stream=as_stream)
    contenders = {n: replace(one, kernel=one.kernel or kernel) for n, one in contenders.items()}
    problems = {
        factor: Problem(documents, target, test, factor)
        for factor in {one.factor for one in contenders.values()}
    }
    with held(output) as folder:
        records: dict[str, list[Record]] = {}
        for later in (False, True):
            stage = {
                n: one for n, one in contenders.items() if (one.budget_of is not None) is later
            }
            runs = {
                name: _runs(
                    *(_with_budget(one, records), problems[one.factor], permutations, epochs),
                    as_stream=as_stream,
                )
                for name, one in stage.items()
            }
            queue = [run for group in runs.values() for run in group]
            done = iter(
                run_all(
                    queue,
                    folder=folder,
                    jobs=jobs,
                    backend=backend,
                    address=address,
                    progress=progress,
                )
            )
            records |= {name: [next(done) for _ in group] for name, group in runs.items()}
        results = PaperResults(
            records={name: records[name] for name in contenders},
            series={name: one.series for name, one in contenders.items()},
            printed=printed or {},
            stream=documents.name,
            sha256=documents.sha256,
            settings={"target": target, "permutations": permutations, "rows": len(documents)}
            | {"test_rows": None if test is None else len(test), "epochs": epochs}
            | {"contenders": list(contenders), "kernel": repr(kernel or DEFAULT_KERNEL)}
            | {"as_stream": as_stream},
            seconds=time.perf_counter() - started,
        )
        if folder is not None:
            results.save(folder)
    return results


def _refuse(contenders: Mapping[str, Setting], *, as_stream: bool) -> None:
    known = [*MODELS, *RIVALS] if as_stream else [*MODELS, SVM]
    for name, one in contenders.items():
        if one.model not in known or (one.adwin and not as_stream):
            hint = "compare as_stream, or " if one.model in RIVALS or one.adwin else ""
            raise ParameterError(f"no model {one.model!r}: {hint}choose among {', '.join(known)}")
        source = one if one.budget_of is None else contenders.get(one.budget_of)
        if source is None or source.budget_of is not None:
            raise ParameterError(
                f"{name} takes its budget from {one.budget_of!r}: "
                "compare it with that contender, which must have a setting of its own"
            )


def _with_budget(one: Setting, records: Mapping[str, Iterable[Record]]) -> Setting:
    if one.budget_of is None:
        return one
    supports = [record["supports"] for record in records[one.budget_of]]
    budget = max(1, round(float(np.mean(supports))))
    return replace(one, parameters={"budget": budget, **one.parameters})


def _runs(
    one: Setting, problem: Problem, permutations: int, epochs: int, *, as_stream: bool
) -> list[Run]:
    if one.model == SVM:
        return [paper_run(one, problem, 0)]
    runs, draws = range(permutations), one.draws
    if as_stream:
        return [paper_run(one, problem, None, seed) for seed in (runs if draws else [None])]
    return [paper_run(one, problem, i, i if draws else None, epochs) for i in runs]
