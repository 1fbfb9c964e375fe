"""Experiments of the papers by name: each is a configuration, `compare` is the engine."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from drift.errors import ParameterError
from drift.experiments.compare import Contender, compare
from drift.kernels import RBF
from drift.streams import load

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from os import PathLike

    from drift.experiments.compare import ComparisonResults
    from drift.kernels import Kernel

__all__ = ["REPRODUCTIONS", "Reproduction", "reproduce"]


@dataclass(frozen=True)
class Reproduction:
    """A table or figure of a paper as data, kernel and contenders.

    Parameters
    ----------
    paper
        Which one it is.
    stream
        What `drift.streams.load` takes.
    target
        The topic of the positive examples.
    kernel
        Kernel between examples.
    contenders
        Models with their settings, by name.
    """

    paper: str
    stream: str
    target: str
    kernel: Kernel
    contenders: Mapping[str, Contender]


def _projectron(figure: int, stream: str, gamma: float, tolerance: float) -> Reproduction:
    """Make the comparison of Orabona et al.: budgets are what the Projectron ends with."""
    projection = {"tolerance": tolerance, "squared": True}
    return Reproduction(
        paper="F. Orabona, J. Keshet, B. Caputo, Bounded kernel-based online learning, "
        f"Journal of Machine Learning Research 10 (2009), figure {figure}",
        stream=stream,
        target="+1",
        kernel=RBF(gamma=gamma),
        contenders={
            "Perceptron": Contender("Perceptron"),
            "PassiveAggressive": Contender("PassiveAggressive", {"aggressiveness": 1.0}),
            "Projectron": Contender("Projectron", projection),
            "ProjectronPlusPlus": Contender("ProjectronPlusPlus", projection),
            "Forgetron": Contender("Forgetron", budget_of="Projectron"),
            "RBP": Contender("RBP", budget_of="Projectron"),
        },
    )


#: What can be reproduced, by name.
REPRODUCTIONS = {
    "projectron-a9a": _projectron(6, "a9a", gamma=0.04, tolerance=0.1),
    "projectron-synthetic": _projectron(7, "gaussians", gamma=1.0, tolerance=0.04),
}


def reproduce(  # noqa: PLR0913 - an experiment's settings, by keyword
    name: str,
    *,
    data: str | PathLike[str] | None = None,
    rows: int | None = None,
    permutations: int = 5,
    models: Iterable[str] | None = None,
    jobs: int = -1,
    output: str | PathLike[str] | None = None,
    progress: bool = False,
) -> ComparisonResults:
    """Repeat an experiment of a paper.

    Parameters
    ----------
    name
        One of `REPRODUCTIONS`.
    data
        Folder of the data's files; None: see `drift.streams.load`.
    rows
        Take the first examples only; None: all.
    permutations
        Number of random orders of the data; the papers' is 5.
    models
        Contenders to run, by name; those whose supports are another's budget run, too. None: all.
    jobs, output, progress
        As for `compare`.

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
    if name not in REPRODUCTIONS:
        raise ParameterError(_unknown("experiment", name, REPRODUCTIONS))
    one = REPRODUCTIONS[name]
    contenders = one.contenders if models is None else _chosen(one.contenders, models)
    documents, _ = load(one.stream, None if data is None else Path(data), rows)
    return compare(
        documents,
        one.target,
        contenders,
        kernel=one.kernel,
        permutations=permutations,
        jobs=jobs,
        output=output,
        progress=progress,
    )


def _chosen(contenders: Mapping[str, Contender], models: Iterable[str]) -> dict[str, Contender]:
    wanted = set(models)
    if not wanted:
        raise ParameterError(f"models is empty: choose among {', '.join(contenders)}")
    for name in wanted:
        if name not in contenders:
            raise ParameterError(_unknown("model", name, contenders))
    wanted |= {contenders[name].budget_of or name for name in wanted}
    return {name: one for name, one in contenders.items() if name in wanted}


def _unknown(kind: str, name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, known, n=1)
    guess = f" (did you mean {near[0]!r}?)" if near else ""
    return f"no {kind} {name!r}{guess}: choose among {', '.join(known)}"
