"""Experiments of the papers by name: each is a configuration, `permuted` runs it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import numpy as np

from drift._checks import check_integer, check_names
from drift.errors import ParameterError
from drift.experiments.reproduction.papers import REPRODUCTIONS
from drift.experiments.reproduction.problem import Problem
from drift.experiments.reproduction.runs import run_of
from drift.experiments.reproduction.spec import SVM
from drift.experiments.reproduction.tables import PAPER
from drift.experiments.runner import run_experiment
from drift.kernels import DEFAULT_KERNEL
from drift.models import MODELS
from drift.streams import load, load_split

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from os import PathLike

    from drift.experiments.jobs import Record, Run
    from drift.experiments.reproduction.spec import ModelSpec, Printed
    from drift.experiments.results import Results
    from drift.experiments.runner import How
    from drift.kernels import Kernel
    from drift.streams import Documents

__all__ = ["permuted", "reproduce"]


def reproduce(  # noqa: PLR0913 - an experiment's settings, by keyword
    name: str,
    *,
    data: str | PathLike[str] | None = None,
    rows: int | None = None,
    permutations: int | None = None,
    models: Iterable[str] | None = None,
    quick: bool = False,
    output: str | PathLike[str] | None = None,
    **how: Unpack[How],
) -> Results:
    """Repeat an experiment of a paper.

    Parameters
    ----------
    name
        One of `REPRODUCTIONS`.
    data
        Folder of the data's files; None: see `drift.streams.load`.
    rows
        Take the first examples only, and at most as many to test on; None: all. Budgets are in
        proportion.
    permutations
        Number of random orders of the data; None: the paper's.
    models
        Contenders to run, or curves of several, by name; those whose supports are another's budget
        run, too. None: all.
    quick
        Take so few examples, in one order unless `permutations` says otherwise, that it is done
        within a minute.
    output, **how
        As for `permuted`.

    Raises
    ------
    ParameterError
        A name or a value that cannot be used; the message says which, and what would do.
    DataError
        Data files, or runs in `output`, that cannot be read.

    Examples
    --------
    >>> from drift.experiments import reproduce
    >>> results = reproduce(
    ...     "projectron-synthetic", rows=300, permutations=2, models=["Perceptron"], jobs=1
    ... )
    >>> [(row["contender"], row["runs"]) for row in results.rows("table")]
    [('Perceptron', 2)]
    """
    check_names("no experiment", [name], REPRODUCTIONS)
    one = REPRODUCTIONS[name]
    chosen = one.contenders if models is None else _chosen(one.contenders, models)
    if quick:
        rows = one.quick_rows if rows is None else rows
        permutations = 1 if permutations is None else permutations
    folder = None if data is None else Path(data)
    if one.tested:
        documents, test = load_split(one.stream, folder, rows, rows)
    else:
        documents, test = load(one.stream, folder, rows)[0], None
    contenders = one.contenders_of(len(documents))
    return permuted(
        documents,
        one.target,
        {name: contenders[name] for name in chosen},
        test=test,
        kernel=one.kernel,
        epochs=one.epochs,
        permutations=one.permutations if permutations is None else permutations,
        printed=one.printed,
        output=output,
        **how,
    )


def _chosen(contenders: Mapping[str, ModelSpec], models: Iterable[str]) -> list[str]:
    """Names of the contenders wanted, those they take their budget from included, in order."""
    asked = set(models)
    known = [
        *contenders,
        *dict.fromkeys(contender.series for contender in contenders.values() if contender.series),
    ]
    if not asked:
        raise ParameterError(f"models is empty: choose among {', '.join(known)}")
    check_names("no model", asked, known)
    wanted = {name for name, contender in contenders.items() if {name, contender.series} & asked}
    wanted |= {contenders[name].budget_of or name for name in wanted}
    return [name for name in contenders if name in wanted]


def permuted(  # noqa: PLR0913 - an experiment's settings, by keyword
    documents: Documents,
    target: str | None,
    contenders: Mapping[str, ModelSpec],
    *,
    test: Documents | None = None,
    kernel: Kernel | None = None,
    epochs: int = 1,
    permutations: int = 5,
    output: str | PathLike[str] | None = None,
    printed: Printed | None = None,
    **how: Unpack[How],
) -> Results:
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
    printed
        What a paper prints, by contender and by column of the table, one number an epoch; it is
        shown beside what comes out.
    output
        Folder that keeps the runs: a call computes only those that it lacks. None: nothing is
        kept; `Results.save` still can.
    **how
        As for `run_all`: ``jobs``, ``backend``, ``address`` and ``progress``.

    Returns
    -------
    Results
        Records, tables and figures, in the order of the contenders.

    Raises
    ------
    ParameterError
        A model or a contender that there is not, or a value that cannot be used.
    DataError
        Runs in `output` that cannot be read.

    Examples
    --------
    >>> from drift.experiments.reproduction import ModelSpec, permuted
    >>> from drift.streams import gaussians
    >>> results = permuted(
    ...     gaussians(200),
    ...     "+1",
    ...     {"Perceptron": ModelSpec("Perceptron"), "half": ModelSpec("LBP", {"budget": 20})},
    ...     permutations=2,
    ...     jobs=1,
    ... )
    >>> [(row["contender"], row["parameters"], row["runs"]) for row in results.rows("table")]
    [('Perceptron', '', 2), ('half', 'budget 20', 2)]
    """
    permutations = check_integer("permutations", permutations)
    epochs = check_integer("epochs", epochs)
    _refuse(contenders)
    contenders = {
        n: replace(contender, kernel=contender.kernel or kernel)
        for n, contender in contenders.items()
    }
    problems = {
        factor: Problem(documents, target, test, factor)
        for factor in {contender.factor for contender in contenders.values()}
    }

    def stages(records: list[Record]) -> Iterator[list[tuple[str, Run]]]:
        for later in (False, True):  # those whose budget is what others end with come later
            yield [
                (name, run)
                for name, contender in contenders.items()
                if (contender.budget_of is not None) is later
                for run in _runs(
                    _with_budget(contender, records),
                    problems[contender.factor],
                    permutations,
                    epochs,
                )
            ]

    return run_experiment(
        PAPER,
        stages,
        {documents.name: {"sha256": documents.sha256, "rows": len(documents)}},
        {"target": target, "permutations": permutations, "rows": len(documents)}
        | {"test_rows": None if test is None else len(test), "epochs": epochs}
        | {"contenders": list(contenders), "kernel": repr(kernel or DEFAULT_KERNEL)}
        | {"series": {name: contender.series for name, contender in contenders.items()}}
        | {"printed": printed or {}},
        output,
        **how,
    )


def _refuse(contenders: Mapping[str, ModelSpec]) -> None:
    for name, contender in contenders.items():
        check_names("no model", [contender.model], [*MODELS, SVM])
        source = contender if contender.budget_of is None else contenders.get(contender.budget_of)
        if source is None or source.budget_of is not None:
            raise ParameterError(
                f"{name} takes its budget from {contender.budget_of!r}: "
                "compare it with that contender, which must not take its own from another"
            )


def _with_budget(spec: ModelSpec, records: Iterable[Record]) -> ModelSpec:
    if spec.budget_of is None:
        return spec
    supports = [record["supports"] for record in records if record["contender"] == spec.budget_of]
    budget = max(1, round(float(np.mean(supports))))
    return replace(spec, parameters={"budget": budget, **spec.parameters})


def _runs(spec: ModelSpec, problem: Problem, permutations: int, epochs: int) -> list[Run]:
    if spec.model == SVM:
        return [run_of(spec, problem, 0)]
    draws = spec.draws
    return [
        run_of(spec, problem, i, i if draws else None, epochs=epochs) for i in range(permutations)
    ]
