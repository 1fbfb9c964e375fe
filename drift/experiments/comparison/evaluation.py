"""One model on one stream: test, then train, and everything that is recorded of it."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from river.base import Classifier
from river.compose import Pipeline

from drift.errors import one_line
from drift.experiments.comparison.measures import Outcome, measure, recoveries
from drift.experiments.memory import memory
from drift.streams.stream import Drift, unpacked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from drift.experiments.comparison.protocol import Fork
    from drift.experiments.folder import Record

__all__ = ["evaluate"]

#: Share of a run's time, at most, that looking at the model's memory takes.
_LOOKING = 0.1
#: Rows, at least, that the error before and behind a drift is taken over.
_LEAST = 100

_Answer = tuple[Any, "dict[Any, float] | None"]


def evaluate(  # noqa: PLR0913, PLR0917 - all that a worker is sent
    model: Any,
    packed: NDArray[np.uint8],
    order: NDArray[np.int64],
    fork: Fork | None,
    drifts: Sequence[tuple[int, int]],
    windows: int,
    time_limit: float | None,
    predictions: bool,  # noqa: FBT001
) -> Record:
    """Have a model predict and learn in the order of a protocol.

    Parameters
    ----------
    model
        It learns: any classifier of River's interface.
    packed
        The examples, as `Stream.packed`.
    order
        As from `order_of`.
    fork
        As from `forks_of`; None: every example is predicted and learnt once.
    drifts
        Row and width of each.
    windows
        Number of equal parts of the stream that measures are recorded in.
    time_limit
        Seconds after which the run ends.
    predictions
        Whether to return the predictions, too.

    Returns
    -------
    dict
        As `ComparisonResults` describes it.
    """
    run = _Run(model, unpacked(packed), windows)
    status, message = run.through(order.tolist(), fork, time_limit)
    found: Record = {"status": status, "message": message, **run.whole(), "windows": run.parts()}
    width = max(_LEAST, round(len(run.examples) / len(run.bytes)))
    found["drifts_met"] = recoveries(run.wrong(), [Drift(*drift) for drift in drifts], width)
    if predictions:
        names = ("row", "truth", "prediction")
        found["predictions_made"] = [dict(zip(names, row, strict=True)) for row in run.rows]
    return found


class _Run:
    def __init__(self, model: Any, examples: list[Any], windows: int) -> None:
        self.model, self.examples = model, examples
        n = len(examples)
        self.edges = np.linspace(0, n, min(windows, n) + 1).round().astype(int).tolist()
        self.answers: list[_Answer | None] = [None] * n
        self.spent = np.zeros(n)
        self.bytes: list[int | None] = [None] * (len(self.edges) - 1)

    def through(
        self, order: list[int], fork: Fork | None, time_limit: float | None
    ) -> tuple[str, str]:
        """Predict and learn; return what became of it, and why."""
        ask, learn, clock = _asked(self.model), self.model.learn_one, time.process_time
        tested = [True] * len(self.examples) if fork is None else fork.tested.tolist()
        learnt = [1] * len(self.examples) if fork is None else fork.learnt.tolist()
        ends = iter([*enumerate(self.edges[1:-1]), (0, len(self.examples) + 1)])
        window, end = next(ends)
        started = time.perf_counter()
        deadline = float("inf") if time_limit is None else started + time_limit
        looking = 0.0
        try:
            for event in order:
                if time.perf_counter() > deadline:
                    return "time limit", f"more than {time_limit:g} s"
                if event < 0:
                    x, y = self.examples[~event]
                    before = clock()
                    for _ in range(learnt[~event]):
                        learn(x, y)
                    self.spent[~event] += clock() - before
                    continue
                if event == end:
                    now = time.perf_counter()
                    if looking < _LOOKING * (now - started) or window == 0:
                        self.bytes[window] = memory(self.model)
                        looking += 2 * (time.perf_counter() - now)  # the next may take longer
                    window, end = next(ends)
                if tested[event]:
                    self.answers[event], self.spent[event] = ask(self.examples[event][0])
        except Exception as error:  # noqa: BLE001 - a model of anyone's may raise anything
            return "failed", one_line(f"{type(error).__name__}: {error}")
        finally:
            self.bytes[-1] = memory(self.model)
        return "ok", ""

    @property
    def rows(self) -> list[tuple[int, Any, Any]]:
        """Number, truth and prediction of the rows that were tested."""
        return [
            (i, y, answer[0])
            for i, ((_, y), answer) in enumerate(zip(self.examples, self.answers, strict=True))
            if answer is not None
        ]

    def wrong(self) -> NDArray[np.float64]:
        wrong = np.full(len(self.examples), np.nan)
        for i, truth, prediction in self.rows:
            if prediction is not None:
                wrong[i] = prediction != truth
        return wrong

    def _outcome(self, start: int, stop: int) -> tuple[Record, Outcome]:
        asked = [i for i in range(start, stop) if self.answers[i] is not None]
        told = [i for i in asked if self.answers[i][0] is not None]  # type: ignore[index]
        labels = [self.examples[i][1] for i in told]
        columns = zip(*(self.answers[i] for i in told), strict=True) if told else ((), ())
        outcome = Outcome(labels, *map(list, columns))
        return {"rows": len(asked), "unpredicted": len(asked) - len(told)}, outcome

    def parts(self) -> list[Record]:
        """Measures of every window."""
        found = []
        for (start, stop), size in zip(pairwise(self.edges), self.bytes, strict=True):
            counts, outcome = self._outcome(start, stop)
            microseconds = 1e6 * float(self.spent[start:stop].mean())
            where = {"start": start, "stop": stop, **counts}
            found.append(
                {**where, **measure(outcome), "microseconds": microseconds, "memory": size}
            )
        return found

    def whole(self) -> Record:
        """Measures of the run."""
        counts, outcome = self._outcome(0, len(self.examples))
        found = counts | measure(outcome)
        found["mistakes"] = int(np.nansum(self.wrong()))
        seen = max(1, int(np.count_nonzero(self.spent)))
        found["microseconds"] = 1e6 * float(self.spent.sum()) / seen
        found["memory"] = max(size for size in self.bytes if size is not None)
        return found


def _asked(model: Any) -> Callable[[Any], tuple[_Answer, float]]:
    """Return what predicts: label and probabilities, and seconds of the prediction alone.

    A model whose label is its most probable one, as River says it, is asked once.
    """
    last = list(model.steps.values())[-1] if isinstance(model, Pipeline) else model
    clock = time.process_time
    if getattr(type(last), "predict_one", None) is Classifier.predict_one:

        def once(x: Any) -> tuple[_Answer, float]:
            before = clock()
            shares = model.predict_proba_one(x)
            label = max(shares, key=shares.get) if shares else None
            return (label, shares or None), clock() - before

        return once
    gives = hasattr(model, "predict_proba_one")

    def twice(x: Any) -> tuple[_Answer, float]:
        nonlocal gives
        before = clock()
        label = model.predict_one(x)
        seconds = clock() - before
        shares = None
        if gives:
            try:
                shares = model.predict_proba_one(x)
            except NotImplementedError:
                gives = False
        return (label, dict(shares) if shares else None), seconds

    return twice
