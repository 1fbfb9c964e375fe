"""The model that a pipeline ends in, and whether it takes tickets of late labels, or weights.

And predictions that change nothing.

River's `isinstance` takes a pipeline for the class of its last step, at any depth. Where the object
itself is meant, ask ``issubclass(type(model), C)``.
"""

from __future__ import annotations

import inspect
import sys
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator
    from contextlib import AbstractContextManager

__all__ = [
    "asking_only",
    "final_step",
    "keeps_tickets",
    "takes_weights",
    "ticket_for",
    "with_late_labels",
]

_LEARNS = "_LEARN_UNSUPERVISED_DURING_PREDICT"
_AS_IT_IS = nullcontext()


def final_step(model: Any) -> Any:
    """Return the model that a pipeline ends in, or the model itself."""
    while isinstance(steps := getattr(model, "steps", None), dict):
        *_, model = steps.values()
    return model


def with_late_labels(model: Any) -> Any:
    """Return a model as it is to be run where labels come late.

    A `Tracker` that does not say whether they do gets ``late=True``, in a `Threshold` and at the
    end of a pipeline, too. Any other model is returned as it is.

    Examples
    --------
    >>> from river.preprocessing import StandardScaler
    >>> from drift.models import Tracker
    >>> with_late_labels(StandardScaler() | Tracker())["Tracker"].late
    True
    """
    if isinstance(steps := getattr(model, "steps", None), dict):
        *front, (name, last) = steps.items()
        late = with_late_labels(last)
        return model if late is last else type(model)(*front, (name, late))
    with_late = getattr(model, "_with_late_labels", None)
    return model if with_late is None else with_late()


def keeps_tickets(model: Any) -> bool:
    """Whether a prediction leaves a ticket, by which its label finds it.

    Examples
    --------
    >>> from drift.models import LBP, Tracker
    >>> keeps_tickets(Tracker(late=True)), keeps_tickets(LBP(budget=9))
    (True, False)
    """
    return bool(getattr(final_step(model), "_counts_predictions", False))


def takes_weights(model: Any) -> bool:
    """Whether a model learns with weights `w`; a `Threshold` takes them for the model in it.

    Examples
    --------
    >>> from river.naive_bayes import GaussianNB
    >>> from drift.models import LBP, Threshold
    >>> takes_weights(Threshold(LBP(budget=9))), takes_weights(Threshold(GaussianNB()))
    (True, False)
    """
    model = final_step(model)
    if hasattr(model, "_takes_weights"):
        return bool(model._takes_weights)  # noqa: SLF001 - drift's
    parameters = inspect.signature(model.learn_one).parameters.values()
    return any(one.name == "w" or one.kind is one.VAR_KEYWORD for one in parameters)


def ticket_for(model: Any, ticket: Hashable) -> dict[str, Any]:
    """Return the argument by which a model learns or predicts with a ticket; others get none.

    `ticket` is that of `drift.models.Tracker.predict_one`. A Tracker may be the last step of a
    pipeline, or in a `Threshold`.

    Examples
    --------
    >>> from drift.models import LBP, Threshold, Tracker
    >>> ticket_for(Threshold(Tracker(late=True)), "a7"), ticket_for(LBP(budget=9), "a7")
    ({'ticket': 'a7'}, {})
    """
    return {"ticket": ticket} if ticket is not True and keeps_tickets(model) else {}


def asking_only() -> AbstractContextManager[None]:
    """Have predictions that nobody asked for change nothing.

    Within River's `compose.learn_during_predict` a pipeline's scaler would learn by each.
    """
    # Where nobody has imported it, nobody is within it.
    pipeline = getattr(sys.modules.get("river.compose.pipeline"), "Pipeline", None)
    return _unlearning(pipeline) if getattr(pipeline, _LEARNS, False) else _AS_IT_IS


@contextmanager
def _unlearning(pipeline: Any) -> Iterator[None]:
    setattr(pipeline, _LEARNS, False)
    try:
        yield
    finally:
        setattr(pipeline, _LEARNS, True)
