"""What the stores ask of a model that learns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from drift.types import Features, Label

__all__ = ["Learner"]


class Learner(Protocol):
    """What a store reads and calls of a binary model that it lets learn: a `KernelClassifier`.

    The model is a `Part` whose score is the supports' sum. The plain store calls its `_step`. The
    compiled store takes the same step itself. Of the model's attributes it sets only the two
    counts; hooks change the others.
    """

    n_mistakes: int
    n_updates: int
    _kind: str
    _labels: tuple[Label, Label]
    _weight: float

    @property
    def _update_margin(self) -> float:
        """An example with a margin above this causes no update. `learn_rows` reads it once."""

    def _would_adopt(self, y: Label) -> bool:
        """Whether ``_adopt(y)`` would change the labels that are predicted or can be learnt."""

    def _should_update(self, x: Features, sign: float, score: float) -> bool:
        """Whether the example read last changes the hypothesis."""

    def _update(self, x: Features, sign: float, score: float) -> None:
        """Change the hypothesis by the example read last."""

    def _adopt(self, y: Label) -> None:
        """Predict labels of this kind from now on."""

    def _step(self, x: Features, y: Label, sign: float, score: float) -> None:
        """Count the example, ask `_should_update`, and do what the compiled store does."""
