"""The experiments of Orabona, Keshet and Caputo: the Projectrons beside Perceptrons and budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drift.experiments.papers.reproduction import Reproduction, sweep
from drift.experiments.setting import Setting
from drift.kernels import RBF, Linear, Polynomial

if TYPE_CHECKING:
    from collections.abc import Sequence

    from drift.kernels import Kernel

__all__ = ["PROJECTRON"]

_PAPER = (
    "F. Orabona, J. Keshet, B. Caputo, Bounded kernel-based online learning, "
    "Journal of Machine Learning Research 10 (2009), figure"
)
_PA = Setting("PassiveAggressive", {"aggressiveness": 1.0})
#: The published toolbox bounds the squared norm of a projection's error, and the printed numbers of
#: supports agree with that.
_SQUARED = {"squared": True}


def _at_one(  # noqa: PLR0913, PLR0917 - what differs from set to set
    figure: int, stream: str, gamma: float, tolerance: float, supports: int, length: int
) -> Reproduction:
    """Make the comparison at one tolerance: budgets are what the Projectron ends with."""
    projection = {"tolerance": tolerance, **_SQUARED}
    return Reproduction(
        paper=f"{_PAPER} {figure}",
        stream=stream,
        target="+1",
        kernel=RBF(gamma=gamma),
        contenders={
            "Perceptron": Setting("Perceptron"),
            "PassiveAggressive": _PA,
            "Projectron": Setting("Projectron", projection),
            "ProjectronPlusPlus": Setting("ProjectronPlusPlus", projection),
            "Forgetron": Setting("Forgetron", budget_of="Projectron"),
            "RBP": Setting("RBP", budget_of="Projectron"),
        },
        length=length,
        printed={name: {"supports": (supports,)} for name in ("Projectron", "Forgetron", "RBP")},
    )


def _range(  # noqa: PLR0913, PLR0917 - what differs from set to set
    figure: str,
    stream: str,
    target: str | None,
    kernel: Kernel,
    tolerances: Sequence[float],
    length: int,
    missing: str = "",
) -> Reproduction:
    """Make the curves against supports: budgets are what Projectron++ ends with at a tolerance."""
    projectron = "ProjectronPlusPlus"
    free = Setting("Perceptron") if target is not None else Setting("MRBP", {"budget": length})
    contenders = {
        "Perceptron": free,  # of several classes: MRBP with a budget that is never reached
        "PassiveAggressive": _PA,
        **sweep(projectron, projectron, "tolerance", tolerances, **_SQUARED),
    }
    for model in ("Forgetron", "RBP") if target is not None else ("MRBP",):
        contenders |= {
            f"{model} {tolerance}": Setting(
                model, budget_of=f"{projectron} {tolerance}", series=model
            )
            for tolerance in tolerances
        }
    return Reproduction(
        paper=f"{_PAPER} {figure}",
        stream=stream,
        target=target,
        kernel=kernel,
        contenders=contenders,
        length=length,
        missing=missing,
    )


#: One tolerance (figures 6 and 7), and a range of them (8, 9 and 10).
PROJECTRON = {
    "projectron-a9a": _at_one(6, "a9a", 0.04, 0.1, 793, 32_561),
    "projectron-synthetic": _at_one(7, "gaussians", 1.0, 0.04, 103, 10_000),
    "projectron-ijcnn1-range": _range(
        "8(a)", "ijcnn1", "+1", RBF(gamma=8.0), (0.05, 0.1, 0.2, 0.4, 0.6, 0.8), 49_990
    ),
    "projectron-a9a-range": _range(
        "8(b)", "a9a", "+1", RBF(gamma=0.04), (0.05, 0.1, 0.2, 0.3, 0.4, 0.6), 32_561
    ),
    "projectron-usps-range": _range(
        *("9(a)", "usps", None, Polynomial(13, normalize="rows")),
        (6_000, 11_000, 13_000, 14_500, 15_500, 16_000),  # of k(x, x) = 8,192
        7_291,
    ),
    "projectron-mnist-range": _range(
        *("9(b)", "mnist", None, Polynomial(7, coef0=0.0, normalize="rows")),
        (0.7, 1.3, 1.55, 1.75, 1.85, 1.95),  # of k(x, x) = 1
        60_000,
    ),
    "projectron-news20-range": _range(
        *("8(c)", "news20", "+1", Linear(normalize="rows"), (0.2, 0.4, 0.6, 0.8, 0.9)),
        length=19_996,
        missing="LIBSVM's news20.binary",
    ),
    "projectron-vehicle-range": _range(
        *("8(d)", "vehicle", "3", RBF(gamma=0.125), (0.05, 0.1, 0.2, 0.4, 0.6)),
        length=78_823,
        missing="LIBSVM's vehicle (combined)",
    ),
    "projectron-timit-range": _range(
        *("10(a)", "timit", None, RBF(gamma=80.0), (0.1, 0.2, 0.4, 0.6, 0.8)),
        length=150_000,
        missing="the TIMIT corpus, which is sold",
    ),
}
