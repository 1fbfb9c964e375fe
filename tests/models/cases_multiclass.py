"""Every multiclass model with the twin it must agree with, and streams of several classes."""

import random

from drift.models import MIRA, MRBP, PassiveAggressive, ProjectronPlusPlus
from tests.models import oracles_multiclass as oracles
from tests.models.cases import KERNELS
from tests.models.streams import clusters


def degenerate(n=120, seed=1):
    rng = random.Random(seed)
    pool = [
        {},
        {"a": 1.0},
        {"a": 0.7, "b": 0.4},
        {"b": 1},
        {"a": 0.0},
        {"b": 2.0, "c": float("nan")},
    ]
    for _ in range(n):
        yield rng.choice(pool), rng.choice(["x", ("y", 1), 7])


STREAMS = {
    "words": lambda: clusters(["red", "green", "blue", "white", "black"]),
    "digits": lambda: clusters(list(range(6)), seed=2),
    "drifting": lambda: clusters([-1, 1, "other", True, "none"], 120, seed=3, drift=True),
    "degenerate": degenerate,
}

KERNELS = {name: KERNELS[name] for name in ("default", "linear", "quadratic", "rbf")}

CASES = {
    "MRBP": (lambda k: MRBP(12, kernel=k, seed=4), lambda g: oracles.MRBP(g, 12, 4)),
    "PassiveAggressive": (
        lambda k: PassiveAggressive(kernel=k),
        lambda g: oracles.PassiveAggressive(g, 1.0),
    ),
    "PassiveAggressive-timid": (
        lambda k: PassiveAggressive(0.05, kernel=k),
        lambda g: oracles.PassiveAggressive(g, 0.05),
    ),
    "PassiveAggressive-budget": (
        lambda k: PassiveAggressive(0.5, k, budget=12),
        lambda g: oracles.BudgetedPassiveAggressive(g, 0.5, 12),
    ),
    "PassiveAggressive-one": (
        lambda k: PassiveAggressive(kernel=k, budget=1),
        lambda g: oracles.BudgetedPassiveAggressive(g, 1.0, 1),
    ),
    "ProjectronPlusPlus": (
        lambda k: ProjectronPlusPlus(1.0, k),
        lambda g: oracles.ProjectronPlusPlus(g, 1.0),
    ),
    "ProjectronPlusPlus-squared": (
        lambda k: ProjectronPlusPlus(0.5, k, squared=True),
        lambda g: oracles.ProjectronPlusPlus(g, 0.5, squared=True),
    ),
    "MIRA": (lambda k: MIRA(kernel=k), lambda g: oracles.MIRA(g, 0.01)),
    "MIRA-ultra": (lambda k: MIRA(0.0, kernel=k), lambda g: oracles.MIRA(g, 0.0)),
    "MIRA-fixed": (
        lambda k: MIRA(0.1, 10, "fixed", k),
        lambda g: oracles.MIRA(g, 0.1, "fixed", 10),
    ),
    "MIRA-variable": (
        lambda k: MIRA(0.1, cache="variable", kernel=k),
        lambda g: oracles.MIRA(g, 0.1, "variable"),
    ),
    "MIRA-variable-half": (
        lambda k: MIRA(0.1, cache="variable", kernel=k, distill_margin=0.05),
        lambda g: oracles.MIRA(g, 0.1, "variable", distill=0.05),
    ),
}
