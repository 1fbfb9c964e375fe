"""What a worker refuses at its start, and what a checkpoint must agree on for it to go on."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from drift.consumers.codec import JsonCodec
from drift.errors import ParameterError

if TYPE_CHECKING:
    from drift.consumers.codec import Codec
    from drift.consumers.options import WorkerOptions

__all__ = ["check_codec", "check_model", "settings"]

#: Options on which it depends what is learnt.
_SETTINGS = ("labels", "max_age", "grace", "pending", "pending_bytes", "timestamps")


def check_model(model: Any, codec: Codec) -> None:
    """Refuse what is no classifier, or cannot learn what the messages say.

    Raises
    ------
    ParameterError
        If it is none.

    Examples
    --------
    >>> from river.linear_model import LinearRegression
    >>> from drift.consumers.codec import JsonCodec
    >>> check_model(LinearRegression(), JsonCodec())
    Traceback (most recent call last):
    drift.errors.ParameterError: LinearRegression is not a classifier: a worker predicts labels. ...
    """
    from river import base, compose  # noqa: PLC0415 - takes a while

    final = model
    while isinstance(final, compose.Pipeline):
        *_, final = final.steps.values()
    if not isinstance(final, base.Classifier):
        raise ParameterError(
            f"{type(model).__name__} is not a classifier: a worker predicts labels. Give one of "
            "drift's or River's, a pipeline that ends in one, or a function that returns one"
        )
    if getattr(codec, "weight", None) is None:
        return
    learn = inspect.signature(final.learn_one).parameters.values()
    if not any(one.name == "w" or one.kind is one.VAR_KEYWORD for one in learn):
        raise ParameterError(
            f"{type(model).__name__} learns without weights: leave weight out of the codec"
        )


def check_codec(codec: Codec) -> None:
    """Refuse what cannot read labels of a topic of their own.

    Raises
    ------
    ParameterError
        If it has no method for them, or they could not be found.

    Examples
    --------
    >>> check_codec(JsonCodec(require_label=True))
    Traceback (most recent call last):
    drift.errors.ParameterError: require_label would refuse all features, whose labels come ...
    """
    if not hasattr(codec, "decode_label"):
        raise ParameterError(
            f"{type(codec).__name__} has no decode_label: labels of a topic of their own take one"
        )
    if not isinstance(codec, JsonCodec):
        return
    if codec.require_label:
        raise ParameterError(
            "require_label would refuse all features, whose labels come later: leave it out"
        )
    if codec.label is not None and codec.id is None:
        raise ParameterError("labels find their features by the id: say where it is, id in [codec]")


def settings(options: WorkerOptions) -> dict[str, Any]:
    """Return the settings that must be the same for a model to go on, by their names."""
    names = {name: name if name == "labels" else f"labels.{name}" for name in _SETTINGS}
    return {names[name]: getattr(options, name) for name in _SETTINGS}
