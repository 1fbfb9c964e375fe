"""Beyond the papers: streams in the order of time that none of them tuned for, beside River."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from drift.experiments.reproduction.setting import Reproduction, Setting, sweep
from drift.kernels import RBF, Polynomial

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["BEYOND"]

_BUDGETS = (100, 400, 1_600)
#: Their memory and their updates are of the order of the budget squared.
_SMALL = (100, 400)
_LOGISTIC, _PASSIVE = "River LogisticRegression", "River PAClassifier"
_PERCEPTRON, _TREE = "River Perceptron", "River HoeffdingAdaptiveTreeClassifier"
#: Whose number it is that was chosen.
_OWNERS = {"decay": "SPA", "learning_rate": _LOGISTIC, "C": _PASSIVE, "grace_period": _TREE}


def _contenders(gamma: float, chosen: Mapping[str, float]) -> dict[str, Setting]:
    """Every model as it comes; and again with its one number chosen, where that is another."""
    rbf = RBF(gamma=gamma)
    tuned = {
        f"{_OWNERS[name]} tuned": Setting(_OWNERS[name], {name: value})
        for name, value in chosen.items()
    }
    linear = (_PERCEPTRON, _LOGISTIC, _PASSIVE)
    best = [f"{name} tuned" if f"{name} tuned" in tuned else name for name in linear]
    return {
        **_each("Perceptron", "PassiveAggressive", "SPA"),
        **_sweeps(("RBP", "LBP", "Forgetron"), _BUDGETS),
        **_sweeps(("LBSOP",), _SMALL),
        "Perceptron rbf": Setting("Perceptron", kernel=rbf),
        "PassiveAggressive rbf": Setting("PassiveAggressive", kernel=rbf),
        **_sweeps(("LBP", "Forgetron"), _BUDGETS, rbf),
        **_sweeps(("LBSOP",), _SMALL, rbf),
        "Perceptron ADWIN": Setting("Perceptron", adwin=True),
        "PassiveAggressive ADWIN": Setting("PassiveAggressive", adwin=True),
        "LBP 400 ADWIN": Setting("LBP", {"budget": 400}, adwin=True),
        "LBP rbf 400 ADWIN": Setting("LBP", {"budget": 400}, kernel=rbf, adwin=True),
        **_each(_PERCEPTRON, _LOGISTIC, _PASSIVE, _TREE, "River NoChangeClassifier"),
        **tuned,
        **{f"{name} ADWIN": replace(tuned.get(name, Setting(name)), adwin=True) for name in best},
    }


def _each(*names: str) -> dict[str, Setting]:
    return {name: Setting(name) for name in names}


def _sweeps(
    names: Sequence[str], budgets: Sequence[int], kernel: RBF | None = None
) -> dict[str, Setting]:
    end = "" if kernel is None else " rbf"
    return {
        point: replace(one, kernel=kernel)
        for name in names
        for point, one in sweep(f"{name}{end}", name, "budget", budgets).items()
    }


def _stream(
    stream: str, target: str | tuple[str, ...], length: int, gamma: float, **chosen: float
) -> Reproduction:
    """Make an experiment; `gamma` and `chosen` had the lowest error on the first tenth.

    They are of five each (see the page); where that is a model's default it is left out.
    """
    return Reproduction(
        paper="none: a stream in the order of time, beside River's models",
        stream=stream,
        target=target,
        kernel=Polynomial(normalize="rows"),
        contenders=_contenders(gamma, chosen),
        length=length,
        permutations=3,
        as_stream=True,
    )


_ON_EARN = {"gamma": 1.0, "decay": 0.1, "learning_rate": 10.0}

#: Reuters-21578: its most frequent topic; another whose share moves; and the four most frequent in
#: turn, with the settings of the first. Electricity: whether the price is up.
BEYOND = {
    "beyond-reuters": _stream("reuters21578", "earn", 21_577, **_ON_EARN),
    "beyond-reuters-money-fx": _stream(
        *("reuters21578", "money-fx", 21_577), gamma=10.0, decay=0.1, learning_rate=10.0
    ),
    "beyond-reuters-shifts": _stream(
        "reuters21578", ("earn", "acq", "money-fx", "crude"), 21_577, **_ON_EARN
    ),
    "beyond-electricity": _stream(
        *("elec", "1", 45_312),
        gamma=10.0,
        decay=0.01,
        learning_rate=10.0,
        C=10.0,
        grace_period=50,
    ),
}
