"""Beyond the papers: streams in the order of time that none of them tuned for, beside River."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from drift.experiments.papers.reproduction import Reproduction, sweep
from drift.experiments.setting import Setting
from drift.kernels import RBF, Polynomial

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["BEYOND"]

_BUDGETS = (100, 400, 1_600)
#: Their memory and their updates are of the order of the budget squared.
_SMALL = (100, 400)
_LOGISTIC, _PASSIVE = "River LogisticRegression", "River PAClassifier"
_PERCEPTRON, _TREE = "River Perceptron", "River HoeffdingAdaptiveTreeClassifier"


class _Chosen(NamedTuple):
    """Settings that had the lowest error on the first tenth, of five each (see the page).

    Where that is a model's default there is no contender of its own for it.
    """

    gamma: float
    decay: float
    learning_rate: float
    C: float = 1.0
    grace_period: int = 200


def _contenders(chosen: _Chosen) -> dict[str, Setting]:
    """Every model as it comes; and again with its one number chosen, where that is another."""
    rbf = RBF(gamma=chosen.gamma)
    tuned = {
        "SPA tuned": Setting("SPA", {"decay": chosen.decay}),
        f"{_LOGISTIC} tuned": Setting(_LOGISTIC, {"learning_rate": chosen.learning_rate}),
    }
    if chosen.C != 1.0:
        tuned[f"{_PASSIVE} tuned"] = Setting(_PASSIVE, {"C": chosen.C})
    if chosen.grace_period != 200:
        tuned[f"{_TREE} tuned"] = Setting(_TREE, {"grace_period": chosen.grace_period})
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
        **_resetting(_PERCEPTRON, Setting(_PERCEPTRON)),
        **_resetting(f"{_LOGISTIC} tuned", tuned[f"{_LOGISTIC} tuned"]),
        **_resetting(_PASSIVE, tuned.get(f"{_PASSIVE} tuned", Setting(_PASSIVE))),
    }


def _resetting(name: str, one: Setting) -> dict[str, Setting]:
    end = " tuned" if one.parameters and not name.endswith("tuned") else ""
    return {f"{name}{end} ADWIN": replace(one, adwin=True)}


def _each(*names: str) -> dict[str, Setting]:
    return {name: Setting(name) for name in names}


def _sweeps(
    names: Sequence[str], budgets: Sequence[int], kernel: RBF | None = None
) -> dict[str, Setting]:
    end = "" if kernel is None else " rbf"
    found: dict[str, Setting] = {}
    for name in names:
        points: dict[str, Any] = sweep(f"{name}{end}", name, "budget", budgets)
        found |= {point: replace(one, kernel=kernel) for point, one in points.items()}
    return found


def _stream(
    stream: str, target: str | tuple[str, ...], length: int, chosen: _Chosen
) -> Reproduction:
    return Reproduction(
        paper="none: a stream in the order of time, beside River's models",
        stream=stream,
        target=target,
        kernel=Polynomial(normalize="rows"),
        contenders=_contenders(chosen),
        length=length,
        permutations=3,
        as_stream=True,
    )


_ON_EARN = _Chosen(gamma=1.0, decay=0.1, learning_rate=10.0)

#: Reuters-21578: its most frequent topic; another whose share moves; and the four most frequent in
#: turn, with the settings of the first. Electricity: whether the price is up.
BEYOND = {
    "beyond-reuters": _stream("reuters21578", "earn", 21_577, _ON_EARN),
    "beyond-reuters-money-fx": _stream(
        "reuters21578", "money-fx", 21_577, _Chosen(gamma=10.0, decay=0.1, learning_rate=10.0)
    ),
    "beyond-reuters-shifts": _stream(
        "reuters21578", ("earn", "acq", "money-fx", "crude"), 21_577, _ON_EARN
    ),
    "beyond-electricity": _stream(
        *("elec", "1", 45_312),
        _Chosen(gamma=10.0, decay=0.01, learning_rate=10.0, C=10.0, grace_period=50),
    ),
}
