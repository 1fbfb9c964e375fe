"""What an experiment of a paper is: contenders by the names of their models, and their data."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from drift.experiments.comparison.contender import Contender
from drift.experiments.jobs import float64_columns
from drift.experiments.rivals import BatchSVM
from drift.models import MODELS, OneVsRest, Tracker

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from drift.kernels import Kernel

__all__ = ["SVM", "Printed", "Reproduction", "Setting", "sweep"]

#: Name of `drift.experiments.rivals.BatchSVM` among the models.
SVM = "SVM"


@dataclass(frozen=True)
class Setting(Contender):
    """A contender by the name of its model, and what an experiment of a paper makes of it.

    Parameters
    ----------
    model
        A name in `drift.models.MODELS`; ``Tracker``; or ``SVM``, scikit-learn's, trained at once.
    parameters
        The model's parameters other than kernel and seed.
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
    >>> from drift.experiments.reproduction import Setting
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
        known: dict[str, Any] = {**MODELS, "Tracker": Tracker, SVM: BatchSVM}
        made = known[self.model]
        arguments: dict[str, Any] = dict(self.parameters) | ({} if seed is None else {"seed": seed})
        if "kernel" in inspect.signature(made).parameters:
            arguments["kernel"] = self.kernel
        model = made(**arguments)
        return OneVsRest(model) if self.one_vs_rest else model


#: Numbers of a paper by contender and column, one an epoch.
Printed: TypeAlias = "Mapping[str, Mapping[str, Sequence[float]]]"


@dataclass(frozen=True)
class Reproduction:
    """A table or figure of a paper as data, kernel and contenders.

    Parameters
    ----------
    paper
        Which one it is.
    stream
        What `drift.streams.load` takes, or `drift.streams.load_split` where there is a test part.
    target
        The topic of the positive examples; None: each topic is a class.
    kernel
        Kernel between examples.
    contenders
        Models with their settings, by name.
    length
        Number of examples; budgets are for so many.
    tested
        Whether there is a test part.
    epochs
        Passes over the examples.
    permutations
        Random orders of the examples, as many as the paper has.
    printed
        Numbers of the paper, by contender and column, one an epoch.
    quick_rows
        Examples of the quick form, and at most as many to test on.
    missing
        What one has to get before it can run, where no page of drift could; else empty.
    """

    paper: str
    stream: str
    target: str | None
    kernel: Kernel
    contenders: Mapping[str, Setting]
    length: int
    tested: bool = False
    epochs: int = 1
    permutations: int = 5
    printed: Printed = field(default_factory=dict)
    quick_rows: int = 1_000
    missing: str = ""

    def contenders_of(self, rows: int) -> dict[str, Setting]:
        """Contenders for fewer examples: budgets are in proportion.

        Parameters
        ----------
        rows
            Number of examples taken.

        Examples
        --------
        >>> from drift.experiments import REPRODUCTIONS
        >>> one = REPRODUCTIONS["crammer-usps"]
        >>> one.contenders["fixed 1000"].parameters["budget"]
        1000
        >>> one.contenders_of(729)["fixed 1000"].parameters["budget"]
        100
        """
        share = min(1.0, rows / self.length)
        return {name: _shrunk(setting, share) for name, setting in self.contenders.items()}


def _shrunk(setting: Setting, share: float) -> Setting:
    if "budget" not in setting.parameters:
        return setting
    budget = max(1, round(setting.parameters["budget"] * share))
    return replace(setting, parameters={**setting.parameters, "budget": budget})


def sweep(
    series: str, model: str, parameter: str, values: Sequence[Any], **parameters: Any
) -> dict[str, Setting]:
    """Contenders that are the points of one curve.

    Parameters
    ----------
    series
        The curve's name.
    model
        As for `Setting`.
    parameter
        The parameter that differs.
    values
        Its values.
    **parameters
        The other ones.

    Examples
    --------
    >>> from drift.experiments.reproduction.setting import sweep
    >>> {
    ...     name: setting.parameters
    ...     for name, setting in sweep("LBP", "LBP", "budget", [5, 9]).items()
    ... }
    {'LBP 5': {'budget': 5}, 'LBP 9': {'budget': 9}}
    """
    return {
        f"{series} {value}": Setting(model, {**parameters, parameter: value}, series=series)
        for value in values
    }
