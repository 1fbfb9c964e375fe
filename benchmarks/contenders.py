"""The models that the Tracker is measured beside, each as it comes and over a small grid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from river import dummy, forest, linear_model, optim, tree

from drift.experiments.river_models import resetting
from drift.kernels import RBF, Kernel, Linear, Polynomial
from drift.models import LBP, RBP, Forgetron, OneVsRest, PassiveAggressive

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
    """A model and its settings, of which the first is the default and the best the hindsight.

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


def _tracker(multiclass: bool, budget: int) -> Any:  # noqa: FBT001, ARG001
    from drift.models import Tracker  # noqa: PLC0415 - so that the rest runs without it

    return Tracker(budget=budget)


def _kernel_model(model: type[Any]) -> Callable[..., Any]:
    def make(multiclass: bool, kernel: str, **parameters: Any) -> Any:  # noqa: FBT001
        made = model(kernel=KERNELS[kernel], **parameters)
        return OneVsRest(made) if multiclass and model is not PassiveAggressive else made

    return make


def _logistic_regression(multiclass: bool, rate: float, **adwin: bool) -> Any:  # noqa: FBT001
    model = linear_model.SoftmaxRegression if multiclass else linear_model.LogisticRegression
    made = model(optimizer=optim.SGD(rate))
    return resetting(made) if adwin else made


_BY_KERNEL = tuple({"kernel": kernel} for kernel in KERNELS)
_BY_RATE = tuple({"rate": rate} for rate in RATES)

FAMILIES = {
    "Tracker": Family(_tracker, budgeted=True, raw=True),
    "LBP": Family(_kernel_model(LBP), _BY_KERNEL, budgeted=True),
    "RBP": Family(
        _kernel_model(RBP), tuple(one | {"seed": 0} for one in _BY_KERNEL), budgeted=True
    ),
    "Forgetron": Family(_kernel_model(Forgetron), _BY_KERNEL, budgeted=True),
    "PassiveAggressive": Family(
        _kernel_model(PassiveAggressive),
        tuple(
            {"kernel": kernel, "aggressiveness": C}
            for kernel in ("default", "linear", "rbf1", "rbf4")
            for C in (1.0, 0.1)
        ),
        budgeted=True,
    ),
    "LogisticRegression": Family(_logistic_regression, _BY_RATE),
    "LogisticRegression, ADWIN": Family(
        _logistic_regression, tuple(one | {"adwin": True} for one in _BY_RATE)
    ),
    "HoeffdingAdaptiveTree": Family(
        lambda multiclass: tree.HoeffdingAdaptiveTreeClassifier(seed=0), raw=True, slow=True
    ),
    "ARF": Family(lambda multiclass: forest.ARFClassifier(seed=0), raw=True, slow=True),
    "Neighbours": Family(lambda multiclass, budget: Neighbours(budget), budgeted=True),
    "no change": Family(lambda multiclass: dummy.NoChangeClassifier(), raw=True),
    "majority": Family(lambda multiclass: dummy.PriorClassifier(), raw=True),
}
