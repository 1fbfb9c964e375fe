"""Every model with the twin it must agree with; a test keeps this complete."""

import io
import math
import pickle
import random
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np

from drift.kernels import RBF, Linear, Polynomial
from drift.models import (
    ALMA2,
    CKS,
    LBP,
    LBSOP,
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
from tests.models import oracles, oracles_margin, oracles_projection
from tests.models.oracles import Case

#: drift's kernel (None is the default), the name and parameters of the naive one.
KERNELS = {
    "default": (None, "polynomial", dict(degree=4, coef0=1.0, normalize=True)),
    "linear": (Linear(), "linear", {}),
    "linear-unit": (Linear(normalize=True), "linear", dict(normalize=True)),
    "quadratic": (Polynomial(degree=2, coef0=0.5), "polynomial", dict(degree=2, coef0=0.5)),
    "cubic-unit": (
        Polynomial(degree=3, normalize="rows"),
        "polynomial",
        dict(degree=3, normalize="rows"),
    ),
    "rbf": (RBF(gamma=0.7), "rbf", dict(gamma=0.7)),
    "rbf-unit": (RBF(gamma=2.0, normalize="rows"), "rbf", dict(gamma=2.0, normalize="rows")),
}


@dataclass(frozen=True)
class Laplace:
    """A user's kernel."""

    gamma: float = 0.5

    def __call__(self, dot, squared_norm_a, squared_norm_b):
        squared_distance = np.maximum(squared_norm_a + squared_norm_b - 2 * dot, 0.0)
        return np.exp(-self.gamma * np.sqrt(squared_distance))


EVERY_KERNEL = {name: kernel for name, (kernel, _, _) in KERNELS.items()} | {"own": Laplace()}


class Canonical(pickle.Pickler):
    """Arrays by their content: numpy's own pickles depend on which of them share a dtype object."""

    def reducer_override(self, value):
        if isinstance(value, np.ndarray):
            return bytes, (value.tobytes("A"),)
        return NotImplemented


def canonical(model, *, shared=True):
    """Bytes of a model's values, and of which texts are one object if `shared`."""
    buffer = io.BytesIO()
    pickler = Canonical(buffer)
    pickler.fast = not shared
    pickler.dump(model)
    return buffer.getvalue()


@cache
def with_gram(stream, kernel):
    """Examples of a stream, a function, and their Gram matrix under a kernel, by its name."""
    examples = list(stream())
    _, name, parameters = KERNELS[kernel]
    rows = [{k: float(v) for k, v in x.items() if v == v} for x, _ in examples]
    gram = oracles.naive_gram(rows, name, **parameters)
    gram.setflags(write=False)
    return examples, gram


def largest_self_kernel(kernel):
    """max k(x, x), by hand, for kernels that have one."""
    if kernel is None:
        return 16.0
    if isinstance(kernel, RBF):
        return 1.0
    if not kernel.normalize:
        return None
    return (1.0 + kernel.coef0) ** kernel.degree if isinstance(kernel, Polynomial) else 1.0


def reach(kernel, share, *, squared=False):
    """Tolerance of this share of the largest sqrt(k(x, x)), so that some is projected, not all."""
    norm = math.sqrt(largest_self_kernel(kernel) or 1.0)
    return (share * norm) ** 2 if squared else share * norm


def random_victim(budget, seed):
    """Draws among the supports, as the randomized budget algorithms specify."""
    rng = random.Random(seed)
    return lambda: rng.randrange(budget)


CASES = {
    "Perceptron": Case(lambda k, B: Perceptron(kernel=k), lambda g, k, B: oracles.Perceptron(g)),
    "SPA": Case(lambda k, B: SPA(decay=2.5, kernel=k), lambda g, k, B: oracles.SPA(g, 2.5)),
    "SPA-fast": Case(lambda k, B: SPA(decay=40.0, kernel=k), lambda g, k, B: oracles.SPA(g, 40.0)),
    "RBP": Case(lambda k, B: RBP(B, kernel=k, seed=3), lambda g, k, B: oracles.RBP(g, B, 3)),
    "RBP-one": Case(lambda k, B: RBP(1, kernel=k, seed=5), lambda g, k, B: oracles.RBP(g, 1, 5)),
    "LBP": Case(lambda k, B: LBP(B, kernel=k), lambda g, k, B: oracles.LBP(g, B)),
    "Forgetron": Case(
        lambda k, B: Forgetron(B, kernel=k),
        lambda g, k, B: oracles.Forgetron(g, B, "self-tuned", largest_self_kernel(k)),
        feeds_back=True,
    ),
    "Forgetron-basic": Case(
        lambda k, B: Forgetron(B, kernel=k, shrinking="basic"),
        lambda g, k, B: oracles.Forgetron(g, B, "basic", largest_self_kernel(k)),
    ),
    "VotedPerceptron": Case(
        lambda k, B: VotedPerceptron(kernel=k),
        lambda g, k, B: oracles.VotedPerceptron(g, False),
    ),
    "VotedPerceptron-averaged": Case(
        lambda k, B: VotedPerceptron(kernel=k, averaged=True),
        lambda g, k, B: oracles.VotedPerceptron(g, True),
    ),
    "PassiveAggressive": Case(
        lambda k, B: PassiveAggressive(kernel=k), lambda g, k, B: oracles.PassiveAggressive(g, 1.0)
    ),
    "PassiveAggressive-timid": Case(
        lambda k, B: PassiveAggressive(0.01, kernel=k),
        lambda g, k, B: oracles.PassiveAggressive(g, 0.01),
    ),
    "PassiveAggressive-budget": Case(
        lambda k, B: PassiveAggressive(kernel=k, budget=B),
        lambda g, k, B: oracles_margin.BudgetedPassiveAggressive(g, 1.0, B),
        feeds_back=True,
    ),
    "PassiveAggressive-budget-timid": Case(
        lambda k, B: PassiveAggressive(0.01, k, B),
        lambda g, k, B: oracles_margin.BudgetedPassiveAggressive(g, 0.01, B),
    ),
    "PassiveAggressive-one": Case(
        lambda k, B: PassiveAggressive(kernel=k, budget=1),
        lambda g, k, B: oracles_margin.BudgetedPassiveAggressive(g, 1.0, 1),
    ),
    "SOP": Case(lambda k, B: SOP(0.7, kernel=k), lambda g, k, B: oracles.SOP(g, 0.7)),
    "RBSOP": Case(
        lambda k, B: RBSOP(B, 1.0, kernel=k, seed=3),
        lambda g, k, B: oracles.SOP(g, 1.0, B, random_victim(B, 3)),
    ),
    "LBSOP": Case(
        lambda k, B: LBSOP(B, 1.0, kernel=k),
        lambda g, k, B: oracles.SOP(g, 1.0, B, lambda: 0),
    ),
    "Projectron": Case(
        lambda k, B: Projectron(reach(k, 0.6), kernel=k),
        lambda g, k, B: oracles_projection.Projectron(g, reach(k, 0.6)),
    ),
    "Projectron-squared": Case(
        lambda k, B: Projectron(reach(k, 0.45, squared=True), kernel=k, squared=True),
        lambda g, k, B: oracles_projection.Projectron(
            g, reach(k, 0.45, squared=True), squared=True
        ),
    ),
    "Projectron-exact": Case(
        lambda k, B: Projectron(0.0, kernel=k),
        lambda g, k, B: oracles_projection.Projectron(g, 0.0),
    ),
    "ProjectronPlusPlus": Case(
        lambda k, B: ProjectronPlusPlus(reach(k, 0.6), kernel=k),
        lambda g, k, B: oracles_projection.Projectron(g, reach(k, 0.6), plus=True),
    ),
    "ProjectronPlusPlus-squared": Case(
        lambda k, B: ProjectronPlusPlus(reach(k, 0.45, squared=True), kernel=k, squared=True),
        lambda g, k, B: oracles_projection.Projectron(
            g, reach(k, 0.45, squared=True), squared=True, plus=True
        ),
    ),
    "ProjectronPlusPlus-exact": Case(
        lambda k, B: ProjectronPlusPlus(0.0, kernel=k),
        lambda g, k, B: oracles_projection.Projectron(g, 0.0, plus=True),
    ),
    "ALMA2": Case(
        lambda k, B: ALMA2(kernel=k),
        lambda g, k, B: oracles_projection.ALMA2(g, 0.9, 1 / 0.9, math.sqrt(2)),
    ),
    "ALMA2-projected": Case(
        lambda k, B: ALMA2(tolerance=0.12, kernel=k),
        lambda g, k, B: oracles_projection.ALMA2(g, 0.9, 1 / 0.9, math.sqrt(2), 0.12),
    ),
    "ALMA2-wide": Case(
        lambda k, B: ALMA2(0.3, 0.8, 0.6, 0.01, k),
        lambda g, k, B: oracles_projection.ALMA2(g, 0.3, 0.8, 0.6, 0.01),
    ),
    "CKS": Case(lambda k, B: CKS(B, kernel=k), lambda g, k, B: oracles_margin.CKS(g, B, 0.0)),
    "CKS-margin": Case(
        lambda k, B: CKS(B, margin=1.0, kernel=k), lambda g, k, B: oracles_margin.CKS(g, B, 1.0)
    ),
    "CKS-one": Case(lambda k, B: CKS(1, kernel=k), lambda g, k, B: oracles_margin.CKS(g, 1, 0.0)),
    "VariableCachePerceptron": Case(
        lambda k, B: VariableCachePerceptron(kernel=k),
        lambda g, k, B: oracles_margin.VariableCachePerceptron(g, 0.01, 0.01),
    ),
    "VariableCachePerceptron-wide": Case(
        lambda k, B: VariableCachePerceptron(1.0, kernel=k, distill_margin=0.5),
        lambda g, k, B: oracles_margin.VariableCachePerceptron(g, 1.0, 0.5),
    ),
    "ROMMA": Case(lambda k, B: ROMMA(kernel=k), lambda g, k, B: oracles_margin.ROMMA(g, False)),
    "ROMMA-aggressive": Case(
        lambda k, B: ROMMA(aggressive=True, kernel=k),
        lambda g, k, B: oracles_margin.ROMMA(g, True),
    ),
    "ROMMA-noise": Case(
        lambda k, B: ROMMA(aggressive=True, noise=2.0, kernel=k),
        lambda g, k, B: oracles_margin.ROMMA(g, True, 2.0),
    ),
}
# A file may have a twin with its own cases.
for path in sorted(Path(__file__).parent.glob("twin_*.py")):
    CASES |= import_module(f"tests.models.{path.stem}").CASES
