"""A model as the state of a stream processor, which keeps bytes for each key: Spark, Quix Streams.

>>> from drift.engines import step
>>> from drift.models import LBP
>>> state, predictions = step(None, [({"rain": 1.0}, True)], LBP(budget=10))
>>> step(state, [({"rain": 2.0}, None)])[1]
[True]
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Any

from drift import _format
from drift._checks import check_instance
from drift.errors import (
    CheckpointError,
    ConfigurationError,
    DriftError,
    FeatureError,
    FeatureTypeError,
    LabelError,
    ParameterError,
)
from drift.models._state import codec
from drift.models._template.contract import OnlineClassifier
from drift.models.threshold import Threshold
from drift.models.tracker import Tracker

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from drift.types import Features, Label

    Model = OnlineClassifier | Threshold
    Example = tuple[Features, Label | None] | tuple[Features, Label | None, float]

__all__ = ["step", "tolerant_step"]

log = logging.getLogger("drift.engines")

#: Bytes of the states whose models are kept.
_MOST = 32 << 20


class _Kept:
    """The models of the states that were returned last, by the digests of these.

    A state that comes back need not be read and checked again: its model continues.

    Parameters
    ----------
    most
        Bytes of the states, at most.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._left = most
        self._models: OrderedDict[bytes, tuple[Model, int]] = OrderedDict()
        self._lock = Lock()

    def put(self, state: bytes, model: Model) -> None:
        """Keep the model of a state, which nobody else has; of equal states one is enough."""
        with self._lock:
            self._take(_format.digest_of(state))
            self._models[_format.digest_of(state)] = model, len(state)
            self._left -= len(state)
            while self._left < 0:
                self._take(next(iter(self._models)))

    def take(self, state: bytes) -> Model | None:
        """Return the model of a state, which then is no longer kept; None if there is none."""
        with self._lock:
            model = self._take(_format.digest_of(state))
        if model is not None:
            _format.unseal("model", state)  # it may have the digest and other bytes
        return model

    def _take(self, digest: bytes) -> Model | None:
        model, size = self._models.pop(digest, (None, 0))
        self._left += size
        return model


_KEPT = _Kept(_MOST)


def step(
    state: bytes | None, examples: Iterable[Example], model: Model | None = None
) -> tuple[bytes, list[Label]]:
    """Predict each example, and learn it then if it has a label.

    A function of its arguments alone, which it leaves as they are: an engine may repeat it. However
    a stream is cut into steps, the last state has the same bytes, those of one model that predicts
    and learns the whole stream. The models of the last states, of 32 MB, stay in memory: the next
    step of such a state need not read it.

    Parameters
    ----------
    state
        What the step before returned, as bytes; None for a new model.
    examples
        Features by name and the label, or None where it is not known. A third item is the weight,
        1 by default.
    model
        A new state starts with its clone; default: ``Tracker()``. A model that draws needs a seed.

    Returns
    -------
    tuple
        The new state, as `to_bytes` of the model gives it, and the labels that were predicted.

    Raises
    ------
    ParameterError
        If `model` is none of drift's, `state` is no bytes, an example no such tuple, or a weight
        none.
    ConfigurationError
        If `state` is of another class or has other parameters than `model`.
    CheckpointError
        If `state` is not what a step returned: damaged, forged, or in another format; or if a
        `Threshold` has a model in it that is none of drift's.
    LabelError, FeatureError, FeatureTypeError
        If an example cannot be learnt or predicted; the message starts with its number, from 0.

    Examples
    --------
    >>> from drift.models import LBP
    >>> night, day = ({"sun": -1.0}, False), ({"sun": 1.0}, True)
    >>> state, predictions = step(None, [night, day, night, day], LBP(budget=10))
    >>> predictions
    [False, False, False, True]
    >>> step(state, [({"sun": 2.0}, None)], LBP(budget=20))
    Traceback (most recent call last):
    drift.errors.ConfigurationError: the state is of LBP ( budget=10 kernel=None ), the model is
        LBP ( budget=20 kernel=None ): pass the model that the state started with, or None as the
        state
    """
    if model is not None:
        _check(model)
    learner = _new(model) if state is None else _restored(state, model)
    predictions: list[Label] = []
    for number, example in enumerate(examples):
        try:
            x, y, *weight = _parts(example)
            predictions.append(learner.predict_one(x))
            if y is not None:
                learner.learn_one(x, y, *weight)
        except DriftError as error:
            error.args = (f"example {number}: {error}",)
            raise
    new = learner.to_bytes()
    _KEPT.put(new, learner)
    return new, predictions


def tolerant_step(
    state: bytes | None, examples: Iterable[Example], model: Model | None = None
) -> tuple[bytes, list[Label | None]]:
    """Do as `step`, but leave out examples that cannot be learnt or predicted.

    Each becomes a warning in the log of ``drift.engines``, with its number. The state has the bytes
    that the other examples alone give it.

    Parameters
    ----------
    state, examples, model
        As those of `step`.

    Returns
    -------
    tuple
        The new state, and the labels that were predicted, None for an example that is left out.

    Raises
    ------
    ParameterError, ConfigurationError, CheckpointError
        As `step` does, except for a weight: these are no fault of one example.

    Examples
    --------
    >>> from drift.models import LBP
    >>> examples = [({"sum": "x"}, True), ({"sum": 31.5}, True), ({"sum": 2.5}, None)]
    >>> tolerant_step(None, examples, LBP(budget=10))[1]
    [None, False, True]
    """
    left = list(examples)
    predictions: list[Label | None] = []
    while True:
        taken: list[Example] = []
        try:
            state, predicted = step(state, _noted(left, taken), model)
        except (FeatureError, FeatureTypeError, LabelError, ParameterError) as error:
            if not taken:  # it is the model's or the state's fault
                raise
            *before, culprit = taken
            _parts(culprit)
            state, predicted = step(state, before, model)
            why = str(error).removeprefix(f"example {len(before)}: ")
            predictions += predicted
            log.warning("left out: example %d: %s", len(predictions), why)
            predictions.append(None)
            left = left[len(taken) :]
        else:
            return state, predictions + predicted


def _noted(examples: Iterable[Example], taken: list[Example]) -> Iterator[Example]:
    """Yield examples, and note those that were asked for."""
    for example in examples:
        taken.append(example)
        yield example


def _new(model: Model | None) -> Model:
    """Return a model that has learnt nothing."""
    new: Model = Tracker() if model is None else model.clone()
    return new


def _check(model: Any) -> None:
    """Refuse what is no model of drift's."""
    check_instance("model", model)
    if not _has_bytes(model):
        raise ParameterError(
            f"model is {type(model).__name__}, which is none of drift's and has no bytes: give one "
            "of drift.models, such as Tracker(budget=50)"
        )


def _has_bytes(model: Any) -> bool:
    """Whether a model is one of drift's; `isinstance` takes pipelines that end in one for it."""
    return issubclass(type(model), (OnlineClassifier, Threshold))


def _restored(state: Any, model: Model | None) -> Model:
    """Build the model that a state is; refuse what is none, or another one."""
    if not isinstance(state, (bytes, bytearray)):  # Spark gives either
        raise ParameterError(
            f"state must be the bytes that a step returned, or None, not {type(state).__name__}"
        )
    try:
        state = bytes(state)
        learner = _KEPT.take(state)
        if learner is None:
            learner = codec.from_bytes(state)
    except CheckpointError as error:
        error.args = (f"the state cannot be used: {error}",)
        raise
    if not _has_bytes(learner):
        raise CheckpointError(f"the state is of {type(learner).__name__}, which no step returns")
    if model is not None and not _alike(learner, model):
        raise ConfigurationError(
            f"the state is of {_text(learner)}, the model is {_text(model)}: pass the model that "
            "the state started with, or None as the state"
        )
    return learner


def _alike(one: Model, other: Model) -> bool:
    """Whether two models have the same class and parameters.

    Their texts do not tell: these round numbers, and have not every kernel's parameters.
    """
    if type(one) is type(other):
        own, others = codec.parameters(one), codec.parameters(other)
        if own is not None and own == others:
            return True  # which takes a hundredth of the time
    # Clones without a seed draw their own.
    if one._is_stochastic and other._is_stochastic:  # noqa: SLF001 - River's
        return repr(one) == repr(other)
    return one.clone().to_bytes() == other.clone().to_bytes()


def _text(model: Model) -> str:
    return " ".join(repr(model).split())


def _parts(example: Any) -> Any:
    match example:
        case (_, _) | (_, _, _):
            return example
    raise ParameterError(
        "give (features, label) or (features, label, weight), with None for a label that is not "
        f"known, not {example!r:.80}"
    )
