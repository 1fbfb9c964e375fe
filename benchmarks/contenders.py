"""The models that the Tracker is measured beside, each as it comes and over a small grid."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from drift.experiments.arena.models import MODELS
from drift.experiments.comparison.experiment import baselines
from drift.experiments.river_models import resetting
from drift.kernels import RBF, Kernel, Linear, Polynomial

if TYPE_CHECKING:
    from collections.abc import Callable

#: Rows have a mean square norm of 1 (see `Stream.scaled`), so that widths mean the same everywhere.
KERNELS: dict[str, Kernel | None] = {
    "default": None,
    "linear": Linear(),
    "poly2": Polynomial(degree=2),
    "poly4": Polynomial(degree=4),
    "rbf.25": RBF(0.25),
    "rbf1": RBF(1.0),
    "rbf4": RBF(4.0),
    "rbf16": RBF(16.0),
}
RATES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)


class Family(NamedTuple):
    """A model and its settings: the first is the default; the best one is chosen in hindsight.

    `make` takes whether there are more than two classes, the budget where there is one, and a
    setting. A `raw` one scales by itself or need not; a `slow` one gets the first rows only.
    """

    make: Callable[..., Any]
    grid: tuple[dict[str, Any], ...] = ({},)
    budgeted: bool = False
    raw: bool = False
    slow: bool = False


class Neighbours:
    """Vote of the 5 nearest of the last `budget` rows, by a matrix product, dense or sparse."""

    def __init__(self, budget: int) -> None:
        self.budget = budget

    def predict_learn_many(self, X: Any, y: Any) -> Any:
        """Predict each row from those before it."""
        squares = np.asarray((X * X).sum(axis=1)).ravel()
        predictions = []
        for start in range(0, len(y), 500):
            first, stop = max(0, start - self.budget), min(start + 500, len(y))
            products = X[start:stop] @ X[first:stop].T
            products = products if isinstance(products, np.ndarray) else products.toarray()
            for i in range(start, stop):
                low = max(0, i - self.budget)
                distances = squares[low:i] - 2 * products[i - start, low - first : i - first]
                nearest = np.argsort(distances, kind="stable")[:5]
                labels, counts = np.unique(y[low:i][nearest], return_counts=True)
                predictions.append(labels[np.argmax(counts)] if i else y[:1].dtype.type())
        return np.array(predictions)


def _with_kernel(name: str, multiclass: bool, kernel: str, **parameters: Any) -> Any:  # noqa: FBT001
    return MODELS[name].make(multiclass, kernel=KERNELS[kernel], **parameters)


def _resetting(multiclass: bool, rate: float, adwin: bool) -> Any:  # noqa: FBT001, ARG001
    return resetting(MODELS["logistic regression"].make(multiclass, rate))


def _kernels(name: str, *grid: dict[str, Any]) -> Family:
    return Family(partial(_with_kernel, name), grid or _BY_KERNEL, budgeted=True)


def _arena(name: str, **more: Any) -> Family:
    """Take a model as the arena has it."""
    return Family(MODELS[name].make, raw=MODELS[name].raw, **more)


_BY_KERNEL = tuple({"kernel": kernel} for kernel in KERNELS)
_BY_RATE = tuple({"rate": rate} for rate in RATES)

FAMILIES = {
    "Tracker": _arena("Tracker", budgeted=True),
    "LBP": _kernels("LBP"),
    "RBP": _kernels("RBP", *(one | {"seed": 0} for one in _BY_KERNEL)),
    "Forgetron": _kernels("Forgetron"),
    "PassiveAggressive": _kernels(
        "PassiveAggressive",
        *(
            {"kernel": kernel, "aggressiveness": C}
            for kernel in ("default", "linear", "rbf1", "rbf4")
            for C in (1.0, 0.1)
        ),
    ),
    "LogisticRegression": _arena("logistic regression", grid=_BY_RATE),
    "LogisticRegression, ADWIN": Family(
        _resetting, tuple(one | {"adwin": True} for one in _BY_RATE)
    ),
    "HoeffdingAdaptiveTree": _arena("Hoeffding adaptive tree", slow=True),
    "ARF": _arena("ARF", slow=True),
    "Neighbours": Family(lambda multiclass, budget: Neighbours(budget), budgeted=True),
    **{name: Family(lambda _, one=one: one.make(), raw=True) for name, one in baselines().items()},
}
