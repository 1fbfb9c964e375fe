"""One model on one problem: in what order, how often, and how it is tested."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import drift
from drift.experiments.code import code_fingerprint
from drift.experiments.jobs import Rows, Run, float64_columns
from drift.experiments.learning import learn, updates
from drift.experiments.reproduction.spec import SVM
from drift.kernels import DEFAULT_KERNEL
from drift.models import OneVsRest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from drift.experiments.jobs import Record
    from drift.experiments.reproduction.problem import Part, Problem
    from drift.experiments.reproduction.spec import ModelSpec
    from drift.experiments.rivals import BatchSVM

__all__ = ["reproducing_code", "run_of"]


def reproducing_code() -> str:
    """Return a fingerprint of the code that decides what is recorded of a run."""
    return code_fingerprint("drift.models", __name__)


def run_of(
    spec: ModelSpec,
    problem: Problem | Part,
    permutation: int | None = None,
    seed: int | None = None,
    *,
    epochs: int = 1,
) -> Run:
    """Return the run of one contender on one problem, in one order.

    Parameters
    ----------
    spec
        The contender. Its `factor` and `budget_of` are the problem's and the experiment's.
    problem
        What it learns.
    permutation
        Seed of the order of the examples, the same in every epoch; None: their own order.
    seed
        Of a model that draws at random; None for the others.
    epochs
        Number of passes over the examples.

    Examples
    --------
    >>> from drift.experiments import Problem, run_all
    >>> from drift.experiments.reproduction import ModelSpec, run_of
    >>> from drift.streams import gaussians
    >>> problem = Problem(gaussians(200), "+1", test=gaussians(100, seed=1))
    >>> (record,) = run_all([run_of(ModelSpec("Perceptron"), problem, 0, epochs=2)], jobs=1)
    >>> [state["mistakes"] for state in record["by_epoch"]], record["test_error"]
    ([36, 64], 13.0)
    """
    identity = {
        "model": spec.model,
        "parameters": dict(spec.parameters),
        "one_vs_rest": spec.one_vs_rest,
        "seed": seed,
        "kernel": None if spec.model == "Tracker" else repr(spec.kernel or DEFAULT_KERNEL),
        "columns": "float64",
        "drift": drift.__version__,
        "code": reproducing_code(),
        **problem.identity,
        "epochs": epochs,
        "permutation": permutation,
    }
    start, stop = problem.span
    learnt, arguments = _task(spec.model, problem, permutation, epochs)
    return Run(identity, partial(spec.make, seed), learnt, arguments, epochs * (stop - start))


def _task(
    model: str, problem: Any, permutation: int | None, epochs: int
) -> tuple[Callable[..., Record], tuple[Any, ...]]:
    """Return what a worker calls with the model, and the arguments that come after it."""
    data: tuple[Any, ...] = (problem.y, *Rows.of(problem.rows))
    test = problem.test_part
    if test is not None:
        data += (test[1], *Rows.of(test[0]))
    if model == SVM:
        return _fit, data
    return _learn_epochs, (problem.windows, problem.span, permutation, epochs, *data)


_Labelled = tuple["NDArray[Any]", "csr_array"]


def _parts(
    data: Sequence[Any], span: tuple[int | None, int | None] = (None, None)
) -> tuple[_Labelled, _Labelled | None]:
    """Labels and rows to learn, those of a span, and to test on, of what a run sends."""
    each = 1 + len(Rows._fields)
    (y, *rows), test = data[:each], data[each:]
    learnt = y[slice(*span)], Rows(*rows).part(*span)
    return learnt, (test[0], Rows(*test[1:]).part()) if test else None


@float64_columns()
def _learn_epochs(
    model: Any,
    windows: int,
    span: tuple[int, int],
    permutation: int | None,
    epochs: int,
    *data: Any,
) -> Record:
    """Learn, test after every epoch, and say how errors and supports grew in the first."""
    (y, X), test = _parts(data, span)
    if permutation is not None:
        order = np.random.default_rng(permutation).permutation(len(y))
        X, y = X[order], y[order]
    record = learn(model, X, y, windows)
    if epochs == 1 and test is None:
        return record
    seconds = record["seconds"]
    states = [_state(model, seconds) | _tested(model.predict_many, test)]
    for _ in range(1, epochs):
        started = time.process_time()
        model.learn_many(X, y)
        seconds += time.process_time() - started
        states.append(_state(model, seconds) | _tested(model.predict_many, test))
    last = {name: value for name, value in states[-1].items() if name != "mistakes"}
    return record | last | {"epochs": epochs, "by_epoch": states}


def _state(model: Any, seconds: float) -> Record:
    """What a model came to after an epoch; mistakes and updates are those of all its classes."""
    models = model.models.values() if isinstance(model, OneVsRest) else [model]
    return {
        "mistakes": sum(model.n_mistakes for model in models),
        "updates": updates(model),
        "supports": model.n_supports,
        "seconds": round(seconds, 6),
    }


def _tested(predict: Callable[[Any], Any], test: _Labelled | None) -> Record:
    """Error on the test part in percent, and the time that it took; nothing without such a part."""
    if test is None:
        return {}
    y, rows = test
    started = time.process_time()
    wrong = int((predict(rows) != y).sum())
    seconds = time.process_time() - started
    return {"test_error": round(100 * wrong / len(y), 4), "test_seconds": round(seconds, 6)}


@float64_columns()
def _fit(model: BatchSVM, *data: Any) -> Record:
    """Train at once: there is no order of the examples, and no prediction before the end."""
    (y, X), test = _parts(data)
    started = time.process_time()
    model.fit(X, y)
    seconds = round(time.process_time() - started, 6)
    result = {"n_samples": len(y), "supports": model.n_supports, "seconds": seconds}
    return result | _tested(model.predict, test)
