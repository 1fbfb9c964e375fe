"""What drift's models are compared with on streams: River's, and resets where a detector fires."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["RIVALS", "resetting"]


def _river(module: str) -> Any:
    """Return a module of River; they take a second to import."""
    return import_module(f"river.{module}")


def _logistic_regression(learning_rate: float = 0.01) -> Any:
    optimizer = _river("optim").SGD(learning_rate)
    return _river("linear_model").LogisticRegression(optimizer=optimizer)


def _perceptron() -> Any:
    return _river("linear_model").Perceptron()


def _passive_aggressive(C: float = 1.0) -> Any:
    return _river("linear_model").PAClassifier(C=C)


def _hoeffding_adaptive_tree(grace_period: int = 200, seed: int | None = None) -> Any:
    return _river("tree").HoeffdingAdaptiveTreeClassifier(grace_period=grace_period, seed=seed)


def _no_change() -> Any:
    return _river("dummy").NoChangeClassifier()


#: River's models by name, with those of their parameters that are numbers and River's defaults.
RIVALS: dict[str, Callable[..., Any]] = {
    "River LogisticRegression": _logistic_regression,
    "River Perceptron": _perceptron,
    "River PAClassifier": _passive_aggressive,
    "River HoeffdingAdaptiveTreeClassifier": _hoeffding_adaptive_tree,
    "River NoChangeClassifier": _no_change,
}


def resetting(model: Any) -> Any:
    """Wrap a model so that it starts afresh whenever ADWIN finds that its error has changed.

    Parameters
    ----------
    model
        A classifier that has learnt nothing, of River or of drift.

    Returns
    -------
    river.drift.DriftRetrainingClassifier
        With River's ADWIN at its defaults over the mistakes, and no model in the background.

    References
    ----------
    .. [1] A. Bifet, R. Gavaldà, "Learning from time-changing data with adaptive windowing", SIAM
       International Conference on Data Mining (2007).

    Examples
    --------
    >>> from drift.experiments.river_models import resetting
    >>> from drift.models import LBP
    >>> model = resetting(LBP(budget=9))
    >>> model.learn_one({"a": 1.0}, True)
    >>> model.predict_one({"a": 2.0}), model.model.n_supports
    (True, 1)
    """
    detector = _river("drift").ADWIN()
    return _river("drift").DriftRetrainingClassifier(
        model, drift_detector=detector, train_in_background=False
    )
