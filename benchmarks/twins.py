"""Every scenario checks, before it times anything, that the models still make the right mistakes.

The naive twins of the tests learn a prefix of the same stream; a model that makes one mistake more,
one less, or another one fails its scenario.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from drift.kernels import DEFAULT_KERNEL, RBF, Polynomial
from tests.models import oracles, oracles_margin, oracles_multiclass, oracles_projection
from tests.models.cases import largest_self_kernel, random_victim

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from benchmarks.data import Stream

#: Twin of a model, over a Gram matrix, by the name of its class.
TWINS: dict[str, Callable[[Any, Any], Any]] = {
    "Perceptron": lambda g, m: oracles.Perceptron(g),
    "SPA": lambda g, m: oracles.SPA(g, m.decay),
    "RBP": lambda g, m: oracles.RBP(g, m.budget, m.seed),
    "LBP": lambda g, m: oracles.LBP(g, m.budget),
    "Forgetron": lambda g, m: oracles.Forgetron(
        g, m.budget, m.shrinking, largest_self_kernel(m.kernel)
    ),
    "SOP": lambda g, m: oracles.SOP(g, m.ridge),
    "RBSOP": lambda g, m: oracles.SOP(g, m.ridge, m.budget, random_victim(m.budget, m.seed)),
    "LBSOP": lambda g, m: oracles.SOP(g, m.ridge, m.budget, lambda: 0),
    "VotedPerceptron": lambda g, m: oracles.VotedPerceptron(g, m.averaged),
    "PassiveAggressive": lambda g, m: oracles.PassiveAggressive(g, m.aggressiveness),
    "Projectron": lambda g, m: oracles_projection.Projectron(g, m.tolerance),
    "ProjectronPlusPlus": lambda g, m: oracles_projection.Projectron(g, m.tolerance, plus=True),
    "CKS": lambda g, m: oracles_margin.CKS(g, m.budget, m.margin),
    "VariableCachePerceptron": lambda g, m: oracles_margin.VariableCachePerceptron(
        g, m.margin, m.margin
    ),
    "ROMMA": lambda g, m: oracles_margin.ROMMA(g, m.aggressive),
    "ALMA2": lambda g, m: oracles_projection.ALMA2(g, m.alpha, 1 / m.alpha, m.C, m.tolerance),
    "MIRA": lambda g, m: oracles_multiclass.MIRA(g, m.margin, m.cache, m.budget),
    "MRBP": lambda g, m: oracles_multiclass.MRBP(g, m.budget, m.seed),
}
#: Those that take class labels, not signs.
_CLASSES = {"MIRA", "MRBP"}
#: Rows that an array is cut into; mistakes are compared after each piece.
_PIECE = 100


def gram(stream: Stream, kernel: Any) -> NDArray[np.float64]:
    """Kernel matrix of a stream, straight from the kernel's definition."""
    kernel = DEFAULT_KERNEL if kernel is None else kernel
    products = np.asarray((stream.X @ stream.X.T).todense(), dtype=np.float64)
    squared = products.diagonal().copy()
    if kernel.scales_rows:
        norms = np.sqrt(np.where(squared > 0.0, squared, 1.0))
        products, squared = products / norms / norms[:, None], squared / norms**2
    if isinstance(kernel, RBF):
        distances = squared[:, None] + squared - 2.0 * products
        return np.exp(-kernel.gamma * np.maximum(distances, 0.0))
    if isinstance(kernel, Polynomial):
        values = (products + kernel.coef0) ** kernel.degree
        if kernel.normalize and not kernel.scales_rows:
            lengths = np.sqrt(values.diagonal())
            values *= (1.0 + kernel.coef0) ** kernel.degree / lengths / lengths[:, None]
        return values
    return products


def check(
    stream: Stream, models: Mapping[str, Callable[[], Any]], *, arrays: bool = False
) -> list[str]:
    """Compare the mistakes of models with their twins' over a short stream.

    Parameters
    ----------
    stream
        The prefix.
    models
        What makes a fresh model, by the contender's name.
    arrays
        Learn the rows as a matrix, through `learn_many`, instead of as dicts.

    Returns
    -------
    list of str
        What was checked.

    Raises
    ------
    AssertionError
        If a model's count of mistakes leaves its twin's.
    """
    matrices: dict[str, NDArray[np.float64]] = {}
    examples = list(stream)
    for name, make in models.items():
        model = make()
        kernel = repr(model.kernel)
        if kernel not in matrices:
            matrices[kernel] = gram(stream, model.kernel)
        trace = _trace(model, matrices[kernel], examples)
        _compare(name, model, trace, stream if arrays else examples)
    return [f"{name}: the twin's mistakes on {len(stream)} rows" for name in models]


def _trace(model: Any, matrix: NDArray[np.float64], examples: list[Any]) -> list[int]:
    """Mistakes of a model's twin after each example."""
    twin = TWINS[type(model).__name__](matrix, model)
    classes = type(model).__name__ in _CLASSES
    if not classes:
        twin.recognise(examples)
    mistakes = []
    for t, (_, y) in enumerate(examples):
        twin.step(t, y if classes else 1 if y else -1)
        mistakes.append(int(twin.mistakes))
    return mistakes


def _compare(name: str, model: Any, trace: list[int], rows: Any) -> None:
    if isinstance(rows, list):
        for t, (x, y) in enumerate(rows):
            model.predict_one(x)
            model.learn_one(x, y)
            assert model.n_mistakes == trace[t], f"{name} leaves its twin at row {t}"
        return
    for start in range(0, len(rows), _PIECE):
        piece = rows.part(start, start + _PIECE)
        model.predict_learn_many(piece.X, piece.y)
        last = start + len(piece) - 1
        assert model.n_mistakes == trace[last], f"{name} leaves its twin by row {last}"
