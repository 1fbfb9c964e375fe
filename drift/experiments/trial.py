"""One model on one data set in a random order: some epochs, and tests on rows kept apart."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

import drift
from drift.experiments._jobs import Rows, fingerprint
from drift.experiments.baselines import BatchSVM
from drift.experiments.run import learn, updates
from drift.kernels import DEFAULT_KERNEL
from drift.models import MODELS, OneVsRest, column_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from drift.experiments.problem import Problem
    from drift.experiments.records import Record
    from drift.kernels import Kernel

__all__ = ["SVM", "Trial"]

#: Name of `drift.experiments.baselines.BatchSVM` among the models.
SVM = "SVM"
#: Windows of equal length that errors and supports are recorded in.
_WINDOWS = 50


@dataclass(frozen=True, eq=False)
class Trial:
    """One model on one problem, in one random order.

    Parameters
    ----------
    model
        A name in `drift.models.MODELS`, or ``SVM``, which is trained at once.
    parameters
        The model's parameters other than kernel and seed.
    problem
        What it learns.
    permutation
        Seed of the order of the examples, the same in every epoch.
    kernel
        Kernel between examples; None for the model's default.
    seed
        Of a model that draws at random; None for the others.
    epochs
        Number of passes over the examples.
    one_vs_rest
        Learn one model for each class, as `drift.models.OneVsRest` does.

    Examples
    --------
    >>> from drift.experiments import Problem, Trial, run_cells
    >>> from drift.streams import gaussians
    >>> problem = Problem(gaussians(200), "+1", test=gaussians(100, seed=1))
    >>> (record,) = run_cells([Trial("Perceptron", {}, problem, 0, epochs=2)], jobs=1)
    >>> [state["mistakes"] for state in record["by_epoch"]], record["test_error"]
    ([38, 72], 12.0)
    """

    model: str
    parameters: dict[str, Any]
    problem: Problem
    permutation: int
    kernel: Kernel | None = None
    seed: int | None = None
    epochs: int = 1
    one_vs_rest: bool = False

    @property
    def n_examples(self) -> int:
        """Number of examples to be learnt."""
        return self.epochs * len(self.problem.documents)

    @cached_property
    def identity(self) -> Record:
        """Everything that the result depends on."""
        return {
            "model": self.model,
            "parameters": self.parameters,
            "one_vs_rest": self.one_vs_rest,
            "seed": self.seed,
            "kernel": repr(self.kernel or DEFAULT_KERNEL),
            "columns": column_type(),
            "drift": drift.__version__,
            **self.problem.identity,
            "epochs": self.epochs,
            "permutation": self.permutation,
        }

    @cached_property
    def key(self) -> str:
        """Fingerprint of the identity: 16 hexadecimal digits."""
        return fingerprint(self.identity)

    def make(self) -> Any:
        """Make the model, which has learnt nothing.

        Raises
        ------
        ParameterError
            A parameter that the model refuses.
        """
        seed = {} if self.seed is None else {"seed": self.seed}
        if self.model == SVM:
            return BatchSVM(kernel=self.kernel, **self.parameters)
        model = MODELS[self.model](kernel=self.kernel, **self.parameters, **seed)
        return OneVsRest(model) if self.one_vs_rest else model

    def task(self) -> Callable[[Any], Record]:
        """Return what a worker calls with the model."""
        problem = self.problem
        test = problem.test_part
        parts = None if test is None else (Rows.of(test[0]), test[1])
        rows = Rows.of(problem.rows)
        if self.model == SVM:
            return partial(_fit, rows, problem.y, parts)
        return partial(_learn_epochs, rows, problem.y, parts, self.permutation, self.epochs)


_Test = tuple[Rows, "NDArray[Any]"] | None


def _learn_epochs(  # noqa: PLR0913, PLR0917 - what a worker is sent
    rows: Rows, y: NDArray[Any], test: _Test, permutation: int, epochs: int, model: Any
) -> Record:
    """Learn, test after every epoch, and say how errors and supports grew in the first."""
    order = np.random.default_rng(permutation).permutation(len(y))
    X, y = rows.all()[order], y[order]
    record = learn(model, X, y, _WINDOWS)
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
        "mistakes": sum(one.n_mistakes for one in models),
        "updates": updates(model),
        "supports": model.n_supports,
        "seconds": round(seconds, 6),
    }


def _tested(predict: Callable[[Any], Any], test: _Test) -> Record:
    """Error on the test part in percent, and the time that it took; nothing without such a part."""
    if test is None:
        return {}
    rows, y = test
    started = time.process_time()
    wrong = int((predict(rows.all()) != y).sum())
    seconds = time.process_time() - started
    return {"test_error": round(100 * wrong / len(y), 4), "test_seconds": round(seconds, 6)}


def _fit(rows: Rows, y: NDArray[Any], test: _Test, model: BatchSVM) -> Record:
    """Train at once: there is no order of the examples, and no prediction before the end."""
    started = time.process_time()
    model.fit(rows.all(), y)
    seconds = round(time.process_time() - started, 6)
    result = {"n_samples": len(y), "supports": model.n_supports, "seconds": seconds}
    return result | _tested(model.predict, test)
