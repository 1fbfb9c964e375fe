"""A contender by the name of its model, as the papers' experiments have it."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from drift.experiments.comparison.contender import Contender
from drift.experiments.jobs import float64_columns
from drift.experiments.river_models import RIVALS, resetting
from drift.models import MODELS, OneVsRest, Tracker

if TYPE_CHECKING:
    from drift.kernels import Kernel

__all__ = ["SVM", "Setting"]

#: Name of `drift.experiments.papers.baselines.BatchSVM` among the models.
SVM = "SVM"


@dataclass(frozen=True)
class Setting(Contender):
    """A contender by the name of its model, and what an experiment of a paper makes of it.

    Parameters
    ----------
    model
        A name in `drift.models.MODELS`; ``Tracker``; ``SVM``, scikit-learn's, trained at once; or,
        on a stream, one of River's in `drift.experiments.river_models.RIVALS`.
    parameters
        The model's parameters other than kernel and seed.
    adwin
        On a stream: start afresh where ADWIN finds that the error has changed.
    budget_of
        Name of another contender, which runs first: the mean of the supports that it ends with,
        rounded, is this one's budget.
    one_vs_rest
        Learn one model for each class, as `drift.models.OneVsRest` does.
    factor
        What this one's examples are multiplied by.
    kernel
        Its kernel; None: that of the comparison.
    series
        The curve against supports that it is a point of; empty: one of its own.

    Examples
    --------
    >>> from drift.experiments.papers import Setting
    >>> Setting("RBP", {"budget": 10}).make(seed=7).seed
    7
    """

    budget_of: str | None = None
    one_vs_rest: bool = False
    factor: float = 1.0
    kernel: Kernel | None = None
    series: str = ""

    @float64_columns()
    def make(self, seed: int | None = None) -> Any:
        """Make the model, which has learnt nothing and, if it is drift's, keeps float64 columns."""
        known: dict[str, Any] = {**MODELS, "Tracker": Tracker, **RIVALS}
        if self.model == SVM:
            from drift.experiments.papers.baselines import BatchSVM  # noqa: PLC0415 - it imports us

            known[SVM] = BatchSVM
        made = known[self.model]
        own: dict[str, Any] = dict(self.parameters) | ({} if seed is None else {"seed": seed})
        if "kernel" in inspect.signature(made).parameters:
            own["kernel"] = self.kernel
        model = made(**own)
        model = OneVsRest(model) if self.one_vs_rest else model
        return resetting(model) if self.adwin else model
