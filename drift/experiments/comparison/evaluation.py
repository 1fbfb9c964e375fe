"""One model on one stream: test, then train, and everything that is recorded of it."""

from __future__ import annotations

import time
from contextlib import suppress
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from river.base import Classifier

from drift._late import final_step, keeps_tickets
from drift.errors import one_line
from drift.experiments.comparison.measures import measure, recoveries
from drift.experiments.comparison.predictions import Predictions
from drift.experiments.comparison.protocol import Fork, counted_rows
from drift.experiments.comparison.sample import Sample
from drift.experiments.jobs import edges_of, tell
from drift.experiments.memory import memory
from drift.models import Threshold
from drift.streams.stream import labels_of, unpacked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from drift.experiments.jobs import Record
    from drift.streams.stream import Drift
    from drift.types import Features, Label

__all__ = ["NO_LABEL", "N_WINDOWS", "Settings", "Task", "evaluate"]

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


class Settings(NamedTuple):
    """What all runs of a comparison share: see `drift.experiments.compare`."""

    delay: str | None = None
    moment: str | None = None
    seeds: int | None = None
    folds: int = 1
    forks: str = "cross"
    windows: int = N_WINDOWS
    time_limit: float | None = None
    predictions: bool = False
    explain: bool = False

    @property
    def late(self) -> bool:
        """Whether labels come late of what was predicted; with folds none is of what is learnt."""
        return self.delay is not None and self.folds == 1


class Task(NamedTuple):
    """What a worker is sent beside the model and the arrays of the stream."""

    settings: Settings
    #: Those that are known.
    drifts: Sequence[Drift] = ()
    #: As from `forks_of`; None: every example is predicted and learnt once.
    fork: Fork | None = None
    #: The class that recall, precision and F1 are of; None: they are not measured.
    positive: Label | None = None


def evaluate(model: Any, packed: NDArray[np.uint8], order: NDArray[np.int64], task: Task) -> Record:
    """Have a model predict and learn in the order of a protocol.

    Parameters
    ----------
    model
        It learns: any classifier of River's interface.
    packed
        The examples, as `Stream.packed`.
    order
        As from `order_of`.
    task
        The rest.

    Returns
    -------
    dict
        With what the columns of `drift.experiments.compare`'s tables say.
    """
    run = _Run(model, unpacked(packed), order, task)
    status, message = run.through()
    record: Record = {"status": status, "message": message, **run.whole(), "windows": run.parts()}
    width = max(_LEAST, round(len(run.examples) / len(run.bytes)))
    record["drifts_met"] = recoveries(run.wrong, task.drifts, width)
    if run.sample is not None:
        record["importances"] = run.sample.record()
    if task.settings.predictions:
        record["predictions_made"] = run.kept()
    return record


class _TimeUpError(Exception):
    """A run has taken longer than it may."""


class _Run:
    def __init__(
        self,
        model: Any,
        examples: Sequence[tuple[Features, Label]],
        order: NDArray[np.int64],
        task: Task,
    ) -> None:
        n, settings = len(examples), task.settings
        self.model, self.examples, self.order = model, examples, order
        self.counted = counted_rows(order, task.fork)
        self.edges = edges_of(n, settings.windows)
        self.predictions = Predictions(labels_of(examples), task.positive)
        self.threshold: float | None = None
        self.sample = Sample(model, n) if settings.explain else None
        self.taken = 0
        self.seconds = [0.0] * (len(self.edges) - 1)
        self.bytes: list[int | None] = [None] * (len(self.edges) - 1)
        self._rows = enumerate(examples)
        self._waiting = dict[int, Any]()  # rows are asked in their order, and learnt in any
        fork = task.fork or Fork(np.ones(n, dtype=bool), np.ones(n, dtype=int))
        self._tested, self._learnt = fork.tested.tolist(), fork.learnt.tolist()
        # Asked once, as the time of each step counts.
        self._last, self._has_tickets = final_step(model), keeps_tickets(model)
        # A label that is the most probable one, as River has it, is made of the probabilities.
        own = getattr(type(self._last), "predict_one", None)
        self._asks_once = own is Classifier.predict_one
        self._gives_shares = hasattr(model, "predict_proba_one")
        self._limit = float("inf") if settings.time_limit is None else settings.time_limit

    def through(self) -> tuple[str, str]:
        """Predict and learn; return what became of it, and why."""
        n, order = len(self.examples), self.order
        if self.counted.known >= n:
            return NO_LABEL, "no label comes before the last row is predicted: there is no error"
        questions = np.flatnonzero(order >= 0)
        cuts = [0, *questions[self.edges[1:-1]].tolist(), len(order)]
        looking = 0.0
        self._began, self._deadline = time.process_time(), time.perf_counter() + self._limit
        try:
            for window, (start, stop) in enumerate(pairwise(cuts)):
                spent = _Spent()
                try:
                    for at in range(start, stop, _TOLD):
                        self._step(order[at : min(at + _TOLD, stop)].tolist(), spent)
                        tell(at * n // len(order))
                finally:
                    self.seconds[window] = spent.seconds
                    if self.sample is not None:
                        self.sample.end_window()
                if looking <= _LOOKING * sum(self.seconds) or stop == len(order):
                    before = time.perf_counter()
                    self.bytes[window] = memory(self.model)
                    looking += time.perf_counter() - before
        except _TimeUpError:
            return "time limit", f"more than {self._limit:g} s"
        except Exception as error:  # noqa: BLE001 - a model of anyone's may raise anything
            return "failed", one_line(f"{type(error).__name__}: {error}")
        finally:
            self.taken, _ = next(self._rows, (n, None))
            own = isinstance(self._last, Threshold)
            decided = self.predictions.decide(order, self.counted.known, own=own)
            self.threshold = self._last.threshold if own else decided
        return "ok", self.predictions.foreign(self.counted.known)

    def _step(self, events: list[int], spent: _Spent) -> None:
        clock, learn, sample = time.perf_counter, self.model.learn_one, self.sample
        for event in events:
            before = clock()
            if before > self._deadline:
                left = self._limit - (time.process_time() - self._began)
                if left <= 0:
                    raise _TimeUpError
                self._deadline = before + left
            row = event if event >= 0 else ~event
            more = {"ticket": row} if self._has_tickets else {}
            if event < 0:
                x, y = self._waiting.pop(row)
                for _ in range(self._learnt[row]):
                    learn(x, y, **more)
                seconds = clock() - before
            else:
                _, self._waiting[row] = next(self._rows)
                if not self._tested[row]:
                    continue
                x, _ = self._waiting[row]
                label, shares, seconds = self._ask(x, more)
                self.predictions.put(row, label, shares)
            spent.busy += seconds
            if sample is not None:
                sample.earn(seconds)
                if event >= 0:
                    sample.look(row, x)

    def _ask(self, x: Features, more: dict[str, Any]) -> tuple[Any, dict[Any, float] | None, float]:
        """Return label and probabilities, and seconds of the prediction alone."""
        clock, model = time.perf_counter, self.model
        before = clock()
        if self._asks_once:
            shares = model.predict_proba_one(x, **more)
            label = max(shares, key=shares.get) if shares else None
            return label, shares or None, clock() - before
        label = model.predict_one(x, **more)
        seconds, shares = clock() - before, None
        if self._gives_shares:
            with suppress(NotImplementedError):
                shares = model.predict_proba_one(x, **more)
        return label, shares or None, seconds

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
