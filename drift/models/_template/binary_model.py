"""What `OneVsRest` asks of the model of one class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from drift.types import Features

__all__ = ["BinaryModel"]


class BinaryModel(Protocol):
    """A model that learns signs: a `KernelClassifier`, or an `Averaged` of one.

    The flags are those of `Scored`. `OneVsRest` keeps the labels and the calibration, and a guard
    that all its models share.
    """

    @property
    def _has_binary_hooks(self) -> bool: ...

    @property
    def _score_is_sum(self) -> bool: ...

    @property
    def _shares_supports(self) -> bool: ...

    @property
    def _update_margin(self) -> float: ...

    @property
    def _new_example_margin(self) -> float: ...

    @property
    def _safe_norm2(self) -> float: ...

    @property
    def n_mistakes(self) -> int:
        """Number of examples learnt that were mistakes before their update."""

    @property
    def n_updates(self) -> int:
        """Number of examples that changed the hypothesis."""

    @property
    def n_supports(self) -> int:
        """Number of supports."""

    def clone(self) -> Self:
        """Return an untrained model with the same parameters."""

    def _share_guard(self, guard: Any) -> None:
        """Use another model's guard, so that an update of both is undone as one."""

    def _read(self, x: Features) -> None:
        """Make an example the point, or refuse it."""

    def _score(self) -> Any:
        """Score the point."""

    def _decision(self, score: Any) -> Any:
        """Value by which classes are compared, from a score."""

    def _learn_sign(self, x: Features, sign: float) -> float:
        """Learn an example of the class (sign 1) or of another one (-1), without its label.

        Return the score before the update.
        """

    def _with_weight(self, w: float, learn: Callable[..., Any], *example: Any) -> Any:
        """Call `learn`, a method of this model, with an example that has this weight."""
