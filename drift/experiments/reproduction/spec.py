"""What an experiment of a paper is: models by their names, and their data."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from drift.experiments.jobs import float64_columns
from drift.experiments.rivals.batch_svm import BatchSVM
from drift.models import MODELS, OneVsRest, Tracker

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from drift.kernels import Kernel

__all__ = ["SVM", "ModelSpec", "Printed", "Reproduction", "sweep"]

#: Name of `drift.experiments.rivals.BatchSVM` among the models.
SVM = "SVM"


@dataclass(frozen=True)
class ModelSpec:
    """A model by its name, and what an experiment of a paper makes of it.

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
        Its kernel; None: that of the experiment.
    series
        The curve against supports that it is a point of; empty: one of its own.

    Examples
    --------
    >>> from drift.experiments.reproduction import ModelSpec
    >>> ModelSpec("RBP", {"budget": 10}).make(seed=7).seed
    7
    """

    model: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    budget_of: str | None = None
    one_vs_rest: bool = False
    factor: float = 1.0
    kernel: Kernel | None = None
    series: str = ""

    @property
    def _class(self) -> Any:
        return {**MODELS, "Tracker": Tracker, SVM: BatchSVM}[self.model]

    def _has(self, parameter: str) -> bool:
        return parameter in inspect.signature(self._class).parameters

    @property
    def draws(self) -> bool:
        """Whether it draws at random: whether it has a parameter called ``seed``."""
        return self._has("seed")

    @float64_columns()
    def make(self, seed: int | None = None) -> Any:
        """Make the model, which has learnt nothing and, if it is drift's, keeps float64 columns."""
        arguments = dict(self.parameters)
        if seed is not None:
            arguments["seed"] = seed
        if self._has("kernel"):
            arguments["kernel"] = self.kernel
        model = self._class(**arguments)
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
        By name.
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
    contenders: Mapping[str, ModelSpec]
    length: int
    tested: bool = False
    epochs: int = 1
    permutations: int = 5
    printed: Printed = field(default_factory=dict)
    quick_rows: int = 1_000
    missing: str = ""

    def contenders_of(self, rows: int) -> dict[str, ModelSpec]:
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
        return {name: _shrunk(spec, share) for name, spec in self.contenders.items()}


def _shrunk(spec: ModelSpec, share: float) -> ModelSpec:
    if "budget" not in spec.parameters:
        return spec
    budget = max(1, round(spec.parameters["budget"] * share))
    return replace(spec, parameters={**spec.parameters, "budget": budget})


def sweep(
    series: str, model: str, parameter: str, values: Sequence[Any], **parameters: Any
) -> dict[str, ModelSpec]:
    """Contenders that are the points of one curve.

    Parameters
    ----------
    series
        The curve's name.
    model
        As for `ModelSpec`.
    parameter
        The parameter that differs.
    values
        Its values.
    **parameters
        The other ones.

    Examples
    --------
    >>> from drift.experiments.reproduction.spec import sweep
    >>> {name: spec.parameters for name, spec in sweep("LBP", "LBP", "budget", [5, 9]).items()}
    {'LBP 5': {'budget': 5}, 'LBP 9': {'budget': 9}}
    """
    return {
        f"{series} {value}": ModelSpec(model, {**parameters, parameter: value}, series=series)
        for value in values
    }
