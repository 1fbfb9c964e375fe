"""The template of all models with one list of supports.

`KernelClassifier` (binary.py) and `MulticlassKernelClassifier` (multiclass.py) derive from it and
do not know each other. `TwoOrMore` (two_or_more.py) is both.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from drift._checks import check_instance
from drift.errors import ParameterError
from drift.kernels import DEFAULT_KERNEL, Kernel
from drift.models._base.guard import alone
from drift.models._store.supports import SupportSet
from drift.models._template.scored import Scored

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    from drift.models._store.built import Calibration, Guard
    from drift.types import Features

__all__ = ["KernelModel"]


class KernelModel(Scored):
    """Classifier whose hypotheses are weighted sums of kernels over one list of supports.

    Parameters
    ----------
    kernel
        Kernel between examples; None for ``Polynomial(degree=4, coef0=1, normalize=True)``.
    budget
        Largest number of supports, None for no limit. Algorithms without a budget leave this out.

    Attributes
    ----------
    n_mistakes : int
        Number of examples learnt that were mistakes before their update.
    n_updates : int
        Number of examples that changed the hypothesis.

    Raises
    ------
    ParameterError
        If the kernel cannot be called.
    """

    def __init__(self, kernel: Kernel | None = None, budget: int | None = None) -> None:
        check_instance("kernel", kernel)
        if kernel is not None and not isinstance(kernel, Kernel):
            raise ParameterError(
                f"kernel must be called as kernel(dot, squared_norm_a, squared_norm_b), "
                f"as those of drift.kernels are, not {kernel!r}"
            )
        super().__init__()
        self.kernel = kernel
        self.n_mistakes = 0
        self.n_updates = 0
        self._supports = SupportSet(
            DEFAULT_KERNEL if kernel is None else kernel, budget, wide=self._wide
        )

    @property
    def _guard(self) -> Guard:  # type: ignore[override]
        return self._supports.guard

    @property
    def _calibration(self) -> Calibration:  # type: ignore[override]
        return self._supports.calibration

    @property
    def _safe_norm2(self) -> float:  # type: ignore[override]
        return self._supports.safe_squared_norm

    def _share_guard(self, guard: Any) -> None:
        """Use another model's guard, so that an update of both is undone as one."""
        self._supports.guard = guard

    def _read(self, x: Features) -> None:
        self._supports.read(x)

    # --- the supports ---------------------------------------------------------------------------

    def _over_budget(self, coming: int = 0) -> bool:
        """Whether the supports, with `coming` more, exceed the budget, if any.

        Models that always have a budget may compare by themselves, as `LBP` does: this call would
        take a twentieth of its update.
        """
        supports = self._supports
        return supports.budget is not None and supports.n_supports() + coming > supports.budget

    def _evict_support(self, i: int) -> int:
        """Evict the `i`-th support, 0 being the oldest; return its slot.

        Hooks for several classes must use this, which also clears the classes' coefficients. Hooks
        for two classes may call the supports' own `evict`, which saves a call.
        """
        return self._supports.evict(i)

    @abstractmethod
    def _expansion(self) -> NDArray[Any]:
        """Coefficients by hypothesis and support, the oldest support first."""

    @property
    def n_supports(self) -> int:
        """Number of supports."""
        return len(self._supports)

    @property
    @alone
    def supports(self) -> list[tuple[dict[Hashable, float], Any]]:
        """The supports and their coefficients (by label with several classes), the oldest first.

        A support is divided by its norm if the kernel uses an example's direction alone, as with
        ``normalize="rows"``.
        """
        return self._pairs()

    def _pairs(self) -> list[tuple[dict[Hashable, float], Any]]:
        """Return the value of `supports`."""
        return list(self._supports)
