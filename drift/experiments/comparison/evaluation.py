"""One model on one stream: test, then train, and everything that is recorded of it."""

from __future__ import annotations

import time
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from river.base import Classifier

from drift._late import final_step, keeps_tickets
from drift.errors import one_line
from drift.experiments.comparison.measures import measure, recoveries
from drift.experiments.comparison.meter import Meter, TimeUpError
from drift.experiments.comparison.predictions import Predictions
from drift.experiments.comparison.protocol import Fork, counted_rows
from drift.experiments.comparison.sample import Sample
from drift.experiments.jobs import edges_of, tell
from drift.models import Threshold
from drift.streams.stream import labels_of, unpacked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from drift.experiments.comparison.protocol import CountedRows
    from drift.experiments.jobs import Record
    from drift.streams.stream import Drift
    from drift.types import Features, Label

__all__ = ["NO_LABEL", "N_WINDOWS", "Settings", "Task", "evaluate"]

#: Status of a run that learnt nothing before its last prediction.
NO_LABEL = "no label in time"
#: Windows of a stream, unless another number is asked for.
N_WINDOWS = 50

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
    made, meter, edges = _Measured(run.predictions, run.counted), run.meter, run.edges
    record: Record = {
        "status": status,
        "message": message,
        **made.whole(),
        "threshold": run.threshold,
        "microseconds": _microseconds(sum(meter.seconds), run.taken),
        "memory": meter.largest(model),
        "windows": [
            {
                "start": start,
                "stop": stop,
                **made.part(start, stop),
                "microseconds": _microseconds(seconds, min(stop, run.taken) - start),
                "memory": size,
            }
            for (start, stop), seconds, size in zip(
                pairwise(edges), meter.seconds, meter.bytes, strict=True
            )
        ],
    }
    width = max(_LEAST, round(edges[-1] / (len(edges) - 1)))
    record["drifts_met"] = recoveries(made.wrong, task.drifts, width)
    if run.sample is not None:
        record["importances"] = run.sample.record()
    if task.settings.predictions:
        record["predictions_made"] = made.rows()
    return record


def _microseconds(seconds: float, rows: int) -> float:
    return 1e6 * seconds / max(1, rows)


class _Run:
    """The way of a model through a stream, in the order of a protocol.

    Parameters
    ----------
    model, order, task
        As of `evaluate`.
    examples
        In the order in which they come.

    Attributes
    ----------
    threshold
        The last one from which on a row was said to be of the positive class; None: there is none.
    taken
        Rows that came before the run ended.
    """

    def __init__(
        self,
        model: Any,
        examples: Sequence[tuple[Features, Label]],
        order: NDArray[np.int64],
        task: Task,
    ) -> None:
        n, settings = len(examples), task.settings
        self.edges = edges_of(n, settings.windows)
        self.counted = counted_rows(order, task.fork)
        self.predictions = Predictions(labels_of(examples), task.positive)
        self.sample = Sample(model, n) if settings.explain else None
        self.threshold: float | None = None
        self.taken = 0
        self._model, self._order = model, order
        self._calls = _Calls(model)
        self._rows = enumerate(examples)
        self._waiting = dict[int, Any]()  # rows are asked in their order, and learnt in any
        fork = task.fork or Fork(np.ones(n, dtype=bool), np.ones(n, dtype=int))
        self._tested, self._learnt = fork.tested.tolist(), fork.learnt.tolist()
        self.meter = Meter(len(self.edges) - 1, settings.time_limit)  # last: its time begins here

    def through(self) -> tuple[str, str]:
        """Predict and learn; return what became of it, and why."""
        n, order, meter = self.edges[-1], self._order, self.meter
        if self.counted.known >= n:
            return NO_LABEL, "no label comes before the last row is predicted: there is no error"
        questions = np.flatnonzero(order >= 0)
        cuts = [0, *questions[self.edges[1:-1]].tolist(), len(order)]
        try:
            for number, (start, stop) in enumerate(pairwise(cuts)):
                try:
                    with meter.window(number):
                        for at in range(start, stop, _TOLD):
                            self._take(order[at : min(at + _TOLD, stop)].tolist())
                            tell(at * n // len(order))
                finally:
                    if self.sample is not None:
                        self.sample.end_window()
                meter.weigh(number, self._model)
        except TimeUpError as error:
            return "time limit", str(error)
        except Exception as error:  # noqa: BLE001 - a model of anyone's may raise anything
            return "failed", one_line(f"{type(error).__name__}: {error}")
        finally:
            self.taken, _ = next(self._rows, (n, None))  # the number of the next one
            own = self._calls.threshold
            decided = self.predictions.decide(order, self.counted.known, own=own is not None)
            self.threshold = decided if own is None else own.threshold
        return "ok", self.predictions.foreign(self.counted.known)

    def _take(self, events: list[int]) -> None:
        clock, calls, meter, sample = time.perf_counter, self._calls, self.meter, self.sample
        for event in events:
            if (now := clock()) > meter.deadline:
                meter.check(now)
            row = event if event >= 0 else ~event
            if event < 0:
                x, y = self._waiting.pop(row)
                seconds = calls.learn(row, x, y, self._learnt[row])
            else:
                _, self._waiting[row] = next(self._rows)
                if not self._tested[row]:
                    continue
                x, _ = self._waiting[row]
                label, shares, seconds = calls.predict(row, x)
                self.predictions.put(row, label, shares)
            meter.busy += seconds
            if sample is not None:
                sample.earn(seconds)
                if event >= 0:
                    sample.look(row, x)


class _Calls:
    """How a model is called, and the seconds on the clock of each call.

    What that depends on is found out once, as the time of each step counts.

    Parameters
    ----------
    model
        The model.

    Attributes
    ----------
    threshold
        The last step of a model that decides by a threshold of its own; None of others.
    """

    def __init__(self, model: Any) -> None:
        last = final_step(model)
        self.threshold = last if isinstance(last, Threshold) else None
        self._model, self._has_tickets = model, keeps_tickets(model)
        # A label that is the most probable one, as River has it, is made of the probabilities.
        own = getattr(type(last), "predict_one", None)
        self._asks_once = own is Classifier.predict_one
        self._gives_shares = hasattr(model, "predict_proba_one")

    def learn(self, row: int, x: Features, y: Label, times: int) -> float:
        """Have it learn a row so many times; return seconds."""
        more = {"ticket": row} if self._has_tickets else {}
        learn, before = self._model.learn_one, time.perf_counter()
        for _ in range(times):
            learn(x, y, **more)
        return time.perf_counter() - before

    def predict(self, row: int, x: Features) -> tuple[Any, dict[Any, float] | None, float]:
        """Return label and probabilities, and seconds of the prediction alone."""
        more = {"ticket": row} if self._has_tickets else {}
        clock, model = time.perf_counter, self._model
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


class _Measured:
    """What predictions come to.

    Parameters
    ----------
    predictions
        Those of a run that has ended.
    counted
        The rows that count.

    Attributes
    ----------
    wrong : array of float
        1 where a prediction was wrong, 0 where right, NaN where none counts.
    """

    def __init__(self, predictions: Predictions, counted: CountedRows) -> None:
        self._made, self._counted = predictions, counted
        is_wrong = (predictions.predicted != predictions.truth).astype(float)
        self.wrong = np.where(predictions.labelled, is_wrong, np.nan)
        self.wrong[: counted.known] = np.nan

    def part(self, start: int, stop: int) -> Record:
        """Measures of some rows, without those that came before the first label."""
        start = min(max(start, self._counted.known), stop)
        outcome = self._made.outcome(start, stop)
        rows = int(self._made.asked[start:stop].sum())
        return {"rows": rows, "unpredicted": rows - len(outcome.truth), **measure(outcome)}

    def whole(self) -> Record:
        """Measures of the run. Rows that came before the first label are mistakes of everyone."""
        first, known = self._counted
        measures = self.part(0, len(self.wrong))
        measures["blind"] = blind = int(self._made.asked[first:known].sum())
        measures["mistakes"] = blind + int(np.nansum(self.wrong))
        labelled = measures["rows"] - measures["unpredicted"]
        measures["rows"] += blind
        if labelled:
            measures["error"] = measures["mistakes"] / (labelled + blind)
        return measures

    def rows(self) -> Record:
        """Predictions of the rows that count, as columns; None where there was none."""
        made, first = self._made, self._counted.first
        rows = np.flatnonzero(made.asked[first:]) + first
        labels = np.array([*made.numbers, None], dtype=object)  # None: number -1
        return {
            "row": rows,
            "truth": labels[made.truth[rows]],
            "prediction": labels[made.predicted[rows]],
        }
