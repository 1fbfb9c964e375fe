"""One model on one stream: test, then train, and everything that is recorded of it."""

from __future__ import annotations

import time
from contextlib import suppress
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from river.base import Classifier
from river.compose import Pipeline

from drift._late import keeps_tickets
from drift.errors import one_line
from drift.experiments.comparison.importances import Sample
from drift.experiments.comparison.measures import measure, recoveries
from drift.experiments.comparison.predictions import Predictions
from drift.experiments.jobs import edges_of, tell
from drift.experiments.memory import memory
from drift.models import Threshold
from drift.streams.stream import Drift, labels_of, unpacked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from drift.experiments.comparison.protocol import Counted, Fork
    from drift.experiments.jobs import Record
    from drift.types import Label

__all__ = ["NO_LABEL", "N_WINDOWS", "evaluate"]

#: Status of a run that learnt nothing before its last prediction.
NO_LABEL = "no label in time"
#: Windows of a stream, unless another number is asked for.
N_WINDOWS = 50

#: Share of a run's time, at most, that looking at the model's memory takes.
_LOOKING = 0.1
#: Events after which a run says how far it is.
_TOLD = 1 << 12
#: Least number of rows for the error before and after a drift.
_LEAST = 100

_Answer = tuple[Any, "dict[Any, float] | None"]


def evaluate(  # noqa: PLR0913, PLR0917 - all that a worker is sent
    model: Any,
    packed: NDArray[np.uint8],
    order: NDArray[np.int64],
    fork: Fork | None,
    counted: Counted,
    drifts: Sequence[tuple[int, int]],
    windows: int,
    time_limit: float | None,
    predictions: bool,  # noqa: FBT001
    positive: Label | None = None,
    explain: bool = False,  # noqa: FBT001, FBT002
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
    counted
        The rows that count in measures, as from `counted_of`.
    drifts
        Row and width of each.
    windows
        Number of equal parts of the stream that measures are recorded in.
    time_limit
        Seconds of processor time after which the run ends.
    predictions
        Whether to return the predictions, too.
    positive
        The class that recall, precision and F1 are of; None: they are not measured.
    explain
        Whether to return importances of features, too.

    Returns
    -------
    dict
        With what the columns of `drift.experiments.compare`'s tables say.
    """
    run = _Run(model, unpacked(packed), windows, counted, positive)
    if explain:
        run.sample = Sample(model, len(run.examples))
    status, message = run.through(order, fork, time_limit)
    record: Record = {"status": status, "message": message, **run.whole(), "windows": run.parts()}
    width = max(_LEAST, round(len(run.examples) / len(run.bytes)))
    record["drifts_met"] = recoveries(run.wrong, [Drift(*drift) for drift in drifts], width)
    if run.sample is not None:
        record["importances"] = run.sample.record()
    if predictions:
        record["predictions_made"] = run.kept()
    return record


class _TimeUpError(Exception):
    """A run has taken longer than it may."""


class _Run:
    def __init__(
        self,
        model: Any,
        examples: Sequence[Any],
        windows: int,
        counted: Counted,
        positive: Label | None,
    ) -> None:
        self.model, self.examples, self.counted = model, examples, counted
        self.edges = edges_of(len(examples), windows)
        self.predictions = Predictions(labels_of(examples), positive)
        self.threshold: float | None = None
        self.sample: Sample | None = None
        self.taken = 0
        self.seconds = [0.0] * (len(self.edges) - 1)
        self.bytes: list[int | None] = [None] * (len(self.edges) - 1)

    def through(
        self, order: NDArray[np.int64], fork: Fork | None, time_limit: float | None
    ) -> tuple[str, str]:
        """Predict and learn; return what became of it, and why."""
        n = len(self.examples)
        if self.counted.known >= n:
            return NO_LABEL, "no label comes before the last row is predicted: there is no error"
        everything = (True,) * n, (1,) * n
        tested, learnt = everything if fork is None else (column.tolist() for column in fork)
        put, sample = self.predictions.put, self.sample
        rows = enumerate(self.examples)
        step = _stepping(self.model, rows, put, tested, learnt, time_limit, sample)
        questions = np.flatnonzero(order >= 0)
        cuts = [0, *questions[self.edges[1:-1]].tolist(), len(order)]
        looking = 0.0
        try:
            for window, (start, stop) in enumerate(pairwise(cuts)):
                spent = _Spent()
                try:
                    for at in range(start, stop, _TOLD):
                        step(order[at : min(at + _TOLD, stop)].tolist(), spent)
                        tell(at * n // len(order))
                finally:
                    self.seconds[window] = spent.seconds
                    if sample is not None:
                        sample.end_window()
                if looking <= _LOOKING * sum(self.seconds) or stop == len(order):
                    before = time.perf_counter()
                    self.bytes[window] = memory(self.model)
                    looking += time.perf_counter() - before
        except _TimeUpError:
            return "time limit", f"more than {time_limit:g} s"
        except Exception as error:  # noqa: BLE001 - a model of anyone's may raise anything
            return "failed", one_line(f"{type(error).__name__}: {error}")
        finally:
            self.taken, _ = next(rows, (n, None))
            last = _last(self.model)
            own = isinstance(last, Threshold)
            decided = self.predictions.decide(order, self.counted.known, own=own)
            self.threshold = last.threshold if own else decided
        return "ok", ""

    @cached_property
    def wrong(self) -> NDArray[np.float64]:
        """1 where a prediction was wrong, 0 where right, NaN where none counts."""
        made = self.predictions
        wrong = np.where(made.labelled, (made.predicted != made.truth).astype(float), np.nan)
        wrong[: self.counted.known] = np.nan
        return wrong

    def _measured(self, start: int, stop: int) -> Record:
        start = min(max(start, self.counted.known), stop)
        outcome = self.predictions.outcome(start, stop)
        rows = int(self.predictions.asked[start:stop].sum())
        return {"rows": rows, "unpredicted": rows - len(outcome.truth), **measure(outcome)}

    def parts(self) -> list[Record]:
        """Measures of every window."""
        parts = []
        for i, (start, stop) in enumerate(pairwise(self.edges)):
            part = {"start": start, "stop": stop, **self._measured(start, stop)}
            part["microseconds"] = 1e6 * self.seconds[i] / max(1, min(stop, self.taken) - start)
            parts.append(part | {"memory": self.bytes[i]})
        return parts

    def whole(self) -> Record:
        """Measures of the run. Rows that came before the first label are mistakes of everyone."""
        first, known = self.counted
        measures = self._measured(0, len(self.examples))
        measures["blind"] = blind = int(self.predictions.asked[first:known].sum())
        measures["mistakes"] = blind + int(np.nansum(self.wrong))
        labelled = measures["rows"] - measures["unpredicted"]
        measures["rows"] += blind
        if labelled:
            measures["error"] = measures["mistakes"] / (labelled + blind)
        measures["threshold"] = self.threshold
        measures["microseconds"] = 1e6 * sum(self.seconds) / max(1, self.taken)
        known_sizes = [size for size in self.bytes if size is not None]
        measures["memory"] = max(known_sizes) if known_sizes else memory(self.model)
        return measures

    def kept(self) -> Record:
        """Predictions of the rows that count, as columns; None where there was none."""
        made = self.predictions
        rows = np.flatnonzero(made.asked[self.counted.first :]) + self.counted.first
        labels = np.array([*made.numbers, None], dtype=object)  # None: number -1
        return {
            "row": rows,
            "truth": labels[made.truth[rows]],
            "prediction": labels[made.predicted[rows]],
        }


class _Spent:
    """Processor time of the model's calls, measured without a system call for each.

    The clock that costs nothing says which share of the time they take, and the processor's clock,
    read at the start and at the end, what that comes to: others on the machine do not count.
    """

    def __init__(self) -> None:
        self.busy = 0.0
        self._began, self._began_cpu = time.perf_counter(), time.process_time()

    @property
    def seconds(self) -> float:
        took = time.perf_counter() - self._began
        return self.busy * (time.process_time() - self._began_cpu) / took


def _stepping(  # noqa: PLR0913, PLR0917 - what the loop needs
    model: Any,
    rows: Iterator[tuple[int, Any]],
    put: Callable[..., None],
    tested: Sequence[bool],
    learnt: Sequence[int],
    time_limit: float | None,
    sample: Sample | None,
) -> Callable[[list[int], _Spent], None]:
    ask, learn, clock = _asked(model), model.learn_one, time.perf_counter
    limit = float("inf") if time_limit is None else time_limit
    has_tickets = keeps_tickets(model)  # asked once, as the time of each step counts
    began, deadline = time.process_time(), clock() + limit
    waiting = dict[int, Any]()  # rows are asked in their order, and learnt in any

    def step(events: list[int], spent: _Spent) -> None:
        nonlocal deadline
        for event in events:
            before = clock()
            if before > deadline:
                left = limit - (time.process_time() - began)
                if left <= 0:
                    raise _TimeUpError
                deadline = before + left
            if event < 0:
                x, y = waiting.pop(~event)
                more = {"ticket": ~event} if has_tickets else {}
                for _ in range(learnt[~event]):
                    learn(x, y, **more)
                seconds = clock() - before
                spent.busy += seconds
                if sample is not None:
                    sample.earn(seconds)
                continue
            waiting[event] = example = next(rows)[1]
            if tested[event]:
                more = {"ticket": event} if has_tickets else {}
                (label, shares), seconds = ask(example[0], more)
                spent.busy += seconds
                put(event, label, shares)
                if sample is not None:
                    sample.earn(seconds)
                    sample.look(event, example[0])

    return step


def _last(model: Any) -> Any:
    """Return what predicts: the last step of a pipeline."""
    return list(model.steps.values())[-1] if isinstance(model, Pipeline) else model


def _asked(model: Any) -> Callable[[Any, dict[str, Any]], tuple[_Answer, float]]:
    """Return what predicts: label and probabilities, and seconds of the prediction alone.

    A model whose label is its most probable one, as River says it, is asked once.
    """
    clock = time.perf_counter
    if getattr(type(_last(model)), "predict_one", None) is Classifier.predict_one:

        def once(x: Any, more: dict[str, Any]) -> tuple[_Answer, float]:
            before = clock()
            shares = model.predict_proba_one(x, **more)
            label = max(shares, key=shares.get) if shares else None
            return (label, shares or None), clock() - before

        return once
    gives = hasattr(model, "predict_proba_one")

    def twice(x: Any, more: dict[str, Any]) -> tuple[_Answer, float]:
        before = clock()
        label = model.predict_one(x, **more)
        seconds, shares = clock() - before, None
        if gives:
            with suppress(NotImplementedError):
                shares = model.predict_proba_one(x, **more)
        return (label, shares or None), seconds

    return twice
