"""The error that a model makes against the time that it takes: stories with seven shifts.

Every contender goes through the whole stream from nothing, predicting each story before it learns
it. Those that are fast do so several times, in turns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from river import linear_model

from benchmarks import peers
from benchmarks.data import Missing, Stream, stories
from benchmarks.timing import Times, figure, mistakes, order_of, progress, seconds
from benchmarks.twins import check
from drift.kernels import RBF, Linear
from drift.models import (
    ALMA2,
    CKS,
    LBP,
    LBSOP,
    MIRA,
    MRBP,
    RBP,
    RBSOP,
    ROMMA,
    SOP,
    SPA,
    Forgetron,
    PassiveAggressive,
    Perceptron,
    Projectron,
    ProjectronPlusPlus,
    VariableCachePerceptron,
    VotedPerceptron,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.scenarios import Settings

BUDGETS = (100, 300, 1000, 2000)
GAMMA = 2.0
#: Contenders above this, in microseconds an example, get one round.
SLOW = 60.0


def drift_models() -> dict[str, Callable[[], Any]]:
    """Every model, at several sizes where it has a budget, a decay or a tolerance."""
    unit, rbf = Linear(normalize="rows"), RBF(gamma=GAMMA, normalize="rows")
    made: dict[str, Callable[[], Any]] = {
        "Perceptron": Perceptron,
        "SPA": SPA,
        "VotedPerceptron": VotedPerceptron,
        "PassiveAggressive": PassiveAggressive,
        "ALMA2": ALMA2,
        "ROMMA": ROMMA,
        "SOP": SOP,
        "VariableCachePerceptron": VariableCachePerceptron,
        "MIRA B=300": lambda: MIRA(budget=300, cache="fixed"),
    }
    for b in BUDGETS:
        made[f"RBP B={b}"] = lambda b=b: RBP(b, seed=1)
        made[f"LBP B={b}"] = lambda b=b: LBP(b)
        made[f"Forgetron B={b}"] = lambda b=b: Forgetron(b)
        made[f"LBP linear B={b}"] = lambda b=b: LBP(b, kernel=unit)
        made[f"LBP rbf B={b}"] = lambda b=b: LBP(b, kernel=rbf)
        made[f"MRBP B={b}"] = lambda b=b: MRBP(b, seed=1)
    for b in BUDGETS[:3]:
        made[f"RBSOP B={b}"] = lambda b=b: RBSOP(b, seed=1)
        made[f"LBSOP B={b}"] = lambda b=b: LBSOP(b)
    for b in BUDGETS[:2]:
        made[f"CKS B={b}"] = lambda b=b: CKS(b)
    for share in (0.8, 0.9):
        made[f"Projectron tolerance={4 * share:g}"] = lambda s=share: Projectron(4 * s)
        made[f"ProjectronPlusPlus tolerance={4 * share:g}"] = lambda s=share: ProjectronPlusPlus(
            4 * s
        )
    return made


def river_models() -> dict[str, Callable[[], Any]]:
    """River's, at its defaults and at a learning rate that suits these stories."""
    aggressive = linear_model.PAClassifier
    return {
        **peers.LINEAR,
        "River LogisticRegression, rate 1": lambda: peers.logistic_regression(1.0),
        "River LogisticRegression, rate 10": lambda: peers.logistic_regression(10.0),
        "River PAClassifier, C = 1": lambda: aggressive(C=1.0, mode=1),
    }


def one_by_one(make: Callable[[], Any], examples: list[Any]) -> Callable[[], int]:
    """Mistakes of a fresh model over the stream."""
    return lambda: mistakes(make(), examples)


def scikit_learn(stream: Stream) -> dict[str, Callable[[], int]]:
    """SGDClassifier in blocks of 100 rows, on features that are fitted to the first 300."""
    pieces, sample = peers.blocks(stream, 100), stream.part(0, 300)
    return {
        f"scikit-learn {sampler}({size}) + SGDClassifier, blocks of 100": (
            lambda sampler=sampler, size=size: peers.ScikitLearn(  # type: ignore[misc]
                sampler, GAMMA, sample, size
            ).run(pieces)
        )
        for sampler, size in (("RBFSampler", 300), ("RBFSampler", 1000), ("Nystroem", 300))
    }


def fast(settings: Settings) -> dict[str, Any]:
    """All that take less than a millisecond."""
    stream = stories(settings.pick(20_000, 2_000))
    models = drift_models()
    checked = check(stream.part(0, settings.pick(500, 300)), models)
    examples = list(stream)
    contenders = {
        name: one_by_one(make, examples) for name, make in (models | river_models()).items()
    }
    contenders["VW linear"] = lambda: peers.VowpalWabbit(peers.VW["VW linear"]).run(examples)
    contenders |= scikit_learn(stream)
    result = race(contenders, len(examples), settings.pick(3, 1))
    return {"stream": {"name": stream.name, "rows": len(stream)}, "checked": checked} | result


def slow(settings: Settings) -> dict[str, Any]:
    """Peers above a millisecond: ten minutes and more."""
    stream = stories(settings.pick(20_000, 500))
    makers = {"LBP B=1000": lambda: LBP(1000)}
    checked = check(stream.part(0, 500), makers)
    examples = list(stream)
    contenders = {name: one_by_one(make, examples) for name, make in makers.items()}
    contenders["River RBFSampler(100) + LogisticRegression"] = one_by_one(
        lambda: peers.river_sampler(GAMMA), examples
    )
    contenders["VW --ksvm"] = lambda: peers.VowpalWabbit(peers.VW["VW --ksvm"]).run(examples)
    result = race(contenders, len(examples), 1)
    return {"stream": {"name": stream.name, "rows": len(stream)}, "checked": checked} | result


def race(contenders: dict[str, Callable[[], int]], count: int, rounds: int) -> dict[str, Any]:
    """Error and time of each contender; those that are slow, or missing, get one round."""
    times = Times()
    errors: dict[str, float] = {}
    skipped: dict[str, str] = {}
    turns = [(name, k) for k in range(rounds) for name in order_of(k, list(contenders))]
    for name, k in progress(turns, "error-time: runs"):
        if name in skipped or (k and times[name][0] > SLOW):
            continue
        wrong: list[int] = []
        try:
            spent = seconds(lambda: wrong.append(contenders[name]()))  # noqa: B023 - called here
        except Missing as missing:
            skipped[name] = str(missing)
            continue
        times.setdefault(name, []).append(1e6 * spent / count)
        errors[name] = wrong[0] / count
    table = [
        {
            "contender": name,
            "error": errors[name],
            "us": figure(times[name]),
            "mistakes": round(errors[name] * count),
        }
        for name in contenders
        if name in times
    ]
    return {"skipped": skipped, "table": table, "figures": {}}
