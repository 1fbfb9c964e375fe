"""Experiments of the papers by name: each is a configuration, `permuted` is the engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from drift._checks import check_names
from drift.errors import ParameterError
from drift.experiments.papers.beyond import BEYOND
from drift.experiments.papers.crammer import CRAMMER
from drift.experiments.papers.permutations import permuted
from drift.experiments.papers.projectron import PROJECTRON
from drift.experiments.papers.reproduction import Reproduction
from drift.experiments.papers.romma import ROMMA
from drift.streams import ShiftingStream, load, load_split

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from os import PathLike

    from drift.experiments.papers.results import PaperResults
    from drift.experiments.setting import Setting
    from drift.streams import Documents

__all__ = ["REPRODUCTIONS", "Reproduction", "reproduce"]

#: What can be reproduced, by name.
REPRODUCTIONS: dict[str, Reproduction] = {**PROJECTRON, **ROMMA, **CRAMMER, **BEYOND}


def reproduce(  # noqa: PLR0913 - an experiment's settings, by keyword
    name: str,
    *,
    data: str | PathLike[str] | None = None,
    rows: int | None = None,
    permutations: int | None = None,
    models: Iterable[str] | None = None,
    quick: bool = False,
    jobs: int = -1,
    backend: str = "loky",
    address: str | None = None,
    output: str | PathLike[str] | None = None,
    progress: bool = False,
) -> PaperResults:
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
    jobs, backend, address, output, progress
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
    >>> [(row["contender"], row["runs"]) for row in results.table()]
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
    documents, target = _asked(documents, one.target)
    contenders = one.contenders_of(len(documents))
    return permuted(
        documents,
        target,
        {name: contenders[name] for name in chosen},
        test=test,
        kernel=one.kernel,
        epochs=one.epochs,
        permutations=one.permutations if permutations is None else permutations,
        as_stream=one.as_stream,
        printed=one.printed,
        jobs=jobs,
        backend=backend,
        address=address,
        output=output,
        progress=progress,
    )


def _asked(
    documents: Documents, target: str | tuple[str, ...] | None
) -> tuple[Documents, str | None]:
    """Documents and their target; several become one topic, which is each of them in its part."""
    if not isinstance(target, tuple):
        return documents, target
    stream, name = ShiftingStream(documents, target), ", then ".join(target)
    return replace(stream.documents, topics=stream.y[:, np.newaxis], topic_names=(name,)), name


def _chosen(contenders: Mapping[str, Setting], models: Iterable[str]) -> list[str]:
    """Names of the contenders wanted, those they take their budget from included, in order."""
    asked = set(models)
    known = [*contenders, *dict.fromkeys(one.series for one in contenders.values() if one.series)]
    if not asked:
        raise ParameterError(f"models is empty: choose among {', '.join(known)}")
    check_names("no model", asked, known)
    wanted = {name for name, one in contenders.items() if {name, one.series} & asked}
    wanted |= {contenders[name].budget_of or name for name in wanted}
    return [name for name in contenders if name in wanted]
