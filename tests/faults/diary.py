"""A model that knows in which order it has learnt, for one model over all partitions.

The log orders the messages of each partition, and nothing orders those of two. One model over all
of them learns in some order that the log allows, and after a crash may learn again in another one.
So it keeps a diary, which goes into the checkpoints with it: what counts in the end is a plain loop
in the very order of the diary.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from river import base

from drift.consumers.codec import Example, JsonCodec

if TYPE_CHECKING:
    from drift.types import Features, Label

__all__ = ["Diary", "NumberedCodec"]

#: The feature that tells a diary which message it is.
_NUMBER = "#"


class NumberedCodec(JsonCodec):
    """Has the number of a message among its features."""

    def decode(self, value: bytes | None, headers: Any = ()) -> Example:
        example = super().decode(value, headers)
        return example._replace(features={**example.features, _NUMBER: example.id})


class Diary(base.Classifier):
    """A model that notes the messages that it learns, in their order."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.order = array("I")

    @property
    def n_supports(self) -> int:
        return self.model.n_supports

    @property
    def n_updates(self) -> int:
        return self.model.n_updates

    def predict_one(self, x: Features, **_: Any) -> Any:
        return self.model.predict_one(_without_number(x))

    def predict_proba_one(self, x: Features, **_: Any) -> Any:
        return self.model.predict_proba_one(_without_number(x))

    def decision_function_one(self, x: Features) -> float:
        return self.model.decision_function_one(_without_number(x))

    def learn_one(self, x: Features, y: Label, **_: Any) -> None:
        self.model.learn_one(_without_number(x), y)
        self.order.append(x[_NUMBER])


def _without_number(x: Features) -> Features:
    return {name: value for name, value in x.items() if name != _NUMBER}
