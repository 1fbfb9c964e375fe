"""Models that start afresh where ADWIN finds that their error has changed."""

from __future__ import annotations

from typing import Any

from river.drift import ADWIN, DriftRetrainingClassifier

__all__ = ["resetting"]


def resetting(model: Any) -> DriftRetrainingClassifier:
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
    >>> from drift.experiments.rivals import resetting
    >>> from drift.models import LBP
    >>> model = resetting(LBP(budget=9))
    >>> model.learn_one({"a": 1.0}, True)
    >>> model.predict_one({"a": 2.0}), model.model.n_supports
    (True, 1)
    """
    detector: Any = ADWIN()  # the parameter's type, in River, has no detectors without a warning
    return DriftRetrainingClassifier(model, detector, train_in_background=False)
