"""Updates that need a matrix of the supports, against the BLAS calls that they cannot avoid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import blas

from benchmarks.data import Examples, stories
from benchmarks.timing import Contender, filled, on_copies, progress, take_turns
from benchmarks.twins import check
from drift.models import LBSOP, RBSOP, SOP, Projectron, ProjectronPlusPlus

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.scenarios import Settings

SIZE = 1000
#: Examples learnt, each as a mistake, in a round.
UPDATES = 40


class Calls:
    """The BLAS calls, on matrices of the size that the models have."""

    def __init__(self, size: int) -> None:
        rng = np.random.default_rng(0)
        self.matrix = np.asfortranarray(np.eye(size) + 1e-4 * rng.random((size, size)))
        self.row = rng.random(size)

    def symv(self) -> None:
        """Symmetric matrix times a row: the inverse times the kernel row of a mistake."""
        blas.dsymv(1.0, self.matrix, self.row, lower=1)

    def syr(self) -> None:
        """Rank-one update in place: a support comes, or goes."""
        blas.dsyr(1e-12, self.row, lower=1, a=self.matrix, overwrite_a=1)

    def trsv(self) -> None:
        """Triangular solve: half of what the inverse of a Gram matrix does to a kernel row."""
        blas.dtrsv(self.matrix, self.row, lower=1)


#: A model that holds no more than SIZE supports, and the calls that its update cannot do without.
UNAVOIDABLE: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    # A k for the mistake; the inverse takes the support in.
    "SOP": (SOP, ("symv", "syr")),
    # And loses the one that goes; its column gives A k after that in O(m).
    "RBSOP": (lambda: RBSOP(SIZE, seed=1), ("symv", "syr", "syr")),
    "LBSOP": (lambda: LBSOP(SIZE), ("symv", "syr", "syr")),
    # G^-1 k, by a factor: forwards for the distance, backwards for the coefficients.
    "Projectron": (lambda: Projectron(100.0), ("trsv", "trsv")),
    "ProjectronPlusPlus": (lambda: ProjectronPlusPlus(100.0), ("trsv", "trsv")),
}


def second_order(settings: Settings) -> dict[str, Any]:
    """Mistakes of models with 1,000 supports: predict and learn."""
    stream = stories(settings.pick(20_000, 5_000))
    checked = check(
        stream.part(0, settings.pick(400, 150)),
        {name: make for name, (make, _) in UNAVOIDABLE.items()},
    )
    examples = list(stream)
    calls = Calls(SIZE)
    contenders: dict[str, Contender] = {}
    for name, (make, needed) in progress(UNAVOIDABLE.items(), "learning"):
        model = make()
        rest = all_kept(model, examples)
        contenders[f"{name}, {SIZE} supports"] = updates(model, rest[:UPDATES])
        contenders[f"{name}: {' + '.join(needed)}"] = blas_calls(calls, needed)
    times = take_turns(contenders, settings.pick(9, 3), "second-order: rounds")
    figures = {}
    for name, (_, needed) in UNAVOIDABLE.items():
        pair = f"{name}, {SIZE} supports", f"{name}: {' + '.join(needed)}"
        figures[f"{pair[0]} / its BLAS calls"] = times.ratio(*pair)
    return {
        "stream": {"name": stream.name},
        "checked": checked,
        "table": [{"contender": name, "us an update": times.microseconds(name)} for name in times],
        "figures": figures,
    }


def all_kept(model: Any, examples: Examples) -> Examples:
    """Learn until there are so many supports; return the rest.

    The Projectrons keep what they cannot project; their tolerance lets them keep everything until
    then, and nothing afterwards.
    """
    tolerance = getattr(model, "tolerance", None)
    if tolerance is not None:
        model.tolerance = 0.0
    wanted = SIZE - (UPDATES // 2 if type(model) is SOP else 0)  # SOP grows as it is timed
    rest = list(filled(model, examples, wanted))
    if tolerance is not None:
        model.tolerance = tolerance
    return rest


def updates(model: Any, examples: Examples) -> Contender:
    """Predict examples, and learn the opposite of what is predicted."""

    def learn(copied: Any) -> None:
        for x, _ in examples:
            copied.learn_one(x, not copied.predict_one(x))

    return on_copies(model, learn, len(examples))


def blas_calls(calls: Calls, needed: tuple[str, ...]) -> Contender:
    """The calls of so many updates."""
    functions = [getattr(calls, name) for name in needed]

    def run() -> None:
        for _ in range(UPDATES):
            for function in functions:
                function()

    return Contender(lambda: run, UPDATES)
