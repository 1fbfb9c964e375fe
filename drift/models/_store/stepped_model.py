"""What the stores ask of a model that learns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from drift.types import Features, Label

__all__ = ["SteppedModel"]


class SteppedModel(Protocol):
    """What a store reads and calls of a binary model that it lets learn: a `KernelClassifier`.

    The model is a `Part` whose score is the supports' sum. The plain store calls its `_step`. The
    compiled store takes the same step itself. Of the model's attributes it sets only the two
    counts; hooks change the others. It reads the counts, `_kind`, `_labels` and `_only_sign` from
    the model's `__dict__`, so a class must not make properties of them.
    """

    n_mistakes: int
    n_updates: int
    #: The kind of labels learnt, a key of `SIGNS` in `binary_labels.py`; "any" at first.
    _kind: str
    #: The negative and the positive label, as they are predicted.
    _labels: tuple[Label, Label]
    #: The sign of all labels learnt, in the `__dict__` only while `_would_adopt` must be asked
    #: about labels of a kind that is known; else None.
    _only_sign: float | None
    #: Weight of the example: other than 1 only within an update.
    _weight: float

    @property
    def _update_margin(self) -> float:
        """An example with a margin above this causes no update. `learn_rows_with` reads it once."""

    def _would_adopt(self, y: Label) -> bool:
        """Whether ``_adopt(y)`` would change what the model knows of labels."""

    def _should_update(self, x: Features, sign: float, score: float) -> bool:
        """Whether the point changes the hypothesis."""

    def _update(self, x: Features, sign: float, score: float) -> None:
        """Change the hypothesis by the point."""

    def _adopt(self, y: Label) -> None:
        """Record that a label is learnt. Later predictions are of its kind."""

    def _step(self, x: Features, y: Label, sign: float, score: float) -> None:
        """Learn the point within an update: count it, ask `_should_update`, update, adopt."""
