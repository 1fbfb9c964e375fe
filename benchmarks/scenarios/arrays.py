"""Rows of an array against rows as dicts, and against what numpy does with a matrix of supports."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from benchmarks import peers
from benchmarks.data import Stream, digits, stories
from benchmarks.timing import Contender, Times, on_copies, on_examples, prequential, take_turns
from benchmarks.twins import check
from drift.kernels import RBF, Polynomial
from drift.models import RBP

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.scenarios import Settings
    from drift.kernels import Kernel

    Floats = NDArray[np.float32]

PREFIX = 1500
GAMMA = 1.0
#: Those of the loop in numpy, which has rows of unit norm.
KERNELS: dict[str, Kernel] = {
    "poly4": Polynomial(normalize="rows"),
    "rbf": RBF(gamma=GAMMA, normalize="rows"),
}


class GemvLoop:
    """RBP as one writes it in numpy: a float32 matrix of supports, one product for each row.

    It starts from the supports of a model that has learnt arrays, and is given rows of unit norm.
    """

    def __init__(self, model: RBP, width: int) -> None:
        self.supports = np.zeros((model.n_supports, width), dtype=np.float32)
        self.signs = np.zeros(model.n_supports, dtype=np.float32)
        for i, (x, coefficient) in enumerate(model.supports):
            self.supports[i, list(x)] = list(x.values())
            self.signs[i] = coefficient
        self.rbf = isinstance(model.kernel, RBF)
        self.rng = np.random.default_rng(0)

    def run(self, rows: Floats, labels: NDArray[np.bool_]) -> int:
        """Predict and learn each row; return the mistakes."""
        mistakes = 0
        for x, y in zip(rows, labels.tolist(), strict=True):
            products = self.supports @ x
            if self.rbf:
                values = np.exp(2.0 * GAMMA * (products - 1.0))
            else:
                values = np.square(np.square(1.0 + products))
            if bool(self.signs @ values > 0.0) != y:
                mistakes += 1
                victim = self.rng.integers(len(self.signs))
                self.supports[victim], self.signs[victim] = x, 1.0 if y else -1.0
        return mistakes


def unit_rows(stream: Stream) -> Floats:
    """Rows as a dense float32 matrix of unit norm."""
    dense = stream.X.toarray()
    norms = np.linalg.norm(dense, axis=1, keepdims=True)
    return np.ascontiguousarray(dense / np.where(norms > 0.0, norms, 1.0), dtype=np.float32)


def batches(model: Any, rows: Any, labels: Any) -> Contender:
    """Learn the rows of an array at once, with a copy of a model."""
    return on_copies(model, lambda one: one.predict_learn_many(rows, labels), len(labels))


def loops(model: Any, timed: Stream, count: int) -> Contender:
    """Learn some of the rows with the loop in numpy, which continues from round to round."""
    loop = GemvLoop(model, timed.X.shape[1])
    rows, labels = unit_rows(timed.part(0, count)), timed.y[:count]
    return Contender(lambda: lambda: loop.run(rows, labels), count)


def result(stream: Stream, timed: Stream, times: Times, checked: list[str]) -> dict[str, Any]:
    """What is common to the scenarios of this module."""
    return {
        "stream": {"name": stream.name, "timed": len(timed)},
        "checked": checked,
        "table": [
            {
                "contender": name,
                "us": times.microseconds(name),
                "examples/s": times.rate(name, 1.0),
            }
            for name in times
        ],
    }


def rcv1(settings: Settings) -> dict[str, Any]:
    """Stories: CSR, dicts, the floor and, at B = 100 and 1,000, a dense matrix of supports."""
    budgets = (100, 300, 1000, 2000)
    stream = stories(settings.pick(20_000, 5_000))
    makers = {f"CSR B={b}": lambda b=b: RBP(b, seed=1) for b in budgets}
    checked = check(stream.part(0, settings.pick(PREFIX, 500)), makers, arrays=True)
    split = len(stream) - settings.pick(4_000, 1_000)
    learnt, timed = stream.part(0, split), stream.part(split)
    contenders: dict[str, Contender] = {}
    examples = list(timed)
    for b in budgets:
        model, worded = RBP(b, seed=1), RBP(b, seed=1)
        model.learn_many(learnt.X, learnt.y)
        prequential(worded, learnt)
        contenders[f"CSR B={b}"] = batches(model, timed.X, timed.y)
        contenders[f"dicts B={b}"] = on_examples(worded, examples)
        contenders[f"floor B={b}"] = peers.floor(worded, examples)
        if b in {100, 1000}:
            contenders[f"gemv loop B={b}"] = loops(model, timed, 20)
    times = take_turns(contenders, settings.pick(9, 3), "rcv1-arrays: rounds")
    figures = {}
    for b in budgets:
        figures[f"CSR B={b} / floor B={b}"] = times.ratio(f"CSR B={b}", f"floor B={b}")
        figures[f"dicts B={b} / CSR B={b}"] = times.ratio(f"dicts B={b}", f"CSR B={b}")
    return result(stream, timed, times, checked) | {"figures": figures}


def mnist(settings: Settings) -> dict[str, Any]:
    """Images: CSR, dense arrays, dicts and the loop in numpy."""
    stream = digits(settings.pick(60_000, 6_000))
    budgets = (1000, 5000)
    makers = {
        f"dense {label} B={b}": lambda k=k, b=b: RBP(b, kernel=k, seed=1)
        for label, k in KERNELS.items()
        for b in budgets
    }
    checked = check(stream.part(0, settings.pick(PREFIX, 500)), makers, arrays=True)
    split = len(stream) - settings.pick(2_000, 500)
    learnt, timed = stream.part(0, split), stream.part(split)
    dense, examples = timed.X.toarray(), list(timed)
    contenders: dict[str, Contender] = {}
    for name, make in makers.items():
        model, of = make(), name.removeprefix("dense ")
        model.learn_many(learnt.X, learnt.y)
        contenders[name] = batches(model, dense, timed.y)
        contenders[f"CSR {of}"] = batches(model, timed.X, timed.y)
        contenders[f"dicts {of}"] = on_examples(model, examples)
        contenders[f"gemv loop {of}"] = loops(model, timed, settings.pick(500, 100))
    times = take_turns(contenders, settings.pick(7, 3), "mnist-arrays: rounds")
    figures = {}
    for name in makers:
        of = name.removeprefix("dense ")
        for way in (name, f"CSR {of}", f"dicts {of}"):
            figures[f"gemv loop {of} / {way}"] = times.ratio(f"gemv loop {of}", way)
    return result(stream, timed, times, checked) | {"figures": figures}


def dense(settings: Settings) -> dict[str, Any]:
    """Images on a noisy ground, so that no pixel is zero, against the rate of sgemm."""
    stream = grounded(digits(settings.pick(60_000, 6_000)))
    checked = check(
        stream.part(0, settings.pick(1_000, 400)),
        {"dense poly4 B=5000": lambda: RBP(5000, KERNELS["poly4"], seed=1)},
        arrays=True,
    )
    split = len(stream) - settings.pick(1_000, 300)
    learnt, timed = stream.part(0, split), stream.part(split)
    model = RBP(5000, KERNELS["poly4"], seed=1)
    model.learn_many(learnt.X, learnt.y)
    n_supports, width = model.n_supports, stream.X.shape[1]
    rng = np.random.default_rng(0)
    left = rng.random((512, width), dtype=np.float32)
    right = rng.random((width, n_supports), dtype=np.float32)
    rows = timed.X.toarray()
    contenders = {
        "dense poly4 B=5000": batches(model, rows, timed.y),
        "gemv loop poly4 B=5000": loops(model, timed, settings.pick(300, 50)),
        "sgemm": Contender(lambda: lambda: left @ right, len(left)),
    }
    times = take_turns(contenders, settings.pick(7, 3), "dense-arrays: rounds")
    outcome = result(stream, timed, times, checked)
    for row in outcome["table"]:
        work = 2e-9 * width * n_supports
        row["GFLOP/s"] = times.rate(row["contender"], work)
    outcome["notes"] = [f"{n_supports} supports, {width} features"]
    name = "dense poly4 B=5000"
    outcome["figures"] = {
        f"share of sgemm's rate, {name.removeprefix('dense ')}": times.ratio("sgemm", name),
        f"gemv loop poly4 B=5000 / {name}": times.ratio("gemv loop poly4 B=5000", name),
    }
    return outcome


def grounded(stream: Stream) -> Stream:
    """Rows with a little noise in every column: none of them is zero."""
    rng = np.random.default_rng(0)
    noise = rng.uniform(0.02, 0.1, size=stream.X.shape)
    return replace(stream, X=csr_array(stream.X.toarray() + noise), name="mnist + noise")
