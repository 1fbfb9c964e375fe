"""What drift's models are compared with on streams: River's, and resets where a detector fires."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["resetting", "river"]


def river(path: str, **parameters: Any) -> Any:
    """Make something of River's by its path; River takes a second to import.

    Examples
    --------
    >>> from drift.experiments.river_models import river
    >>> river("linear_model.PAClassifier", C=0.1).C
    0.1
    """
    module, _, name = path.rpartition(".")
    return getattr(import_module(f"river.{module}"), name)(**parameters)


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
    return river(
        "drift.DriftRetrainingClassifier",
        model=model,
        drift_detector=river("drift.ADWIN"),
        train_in_background=False,
    )
