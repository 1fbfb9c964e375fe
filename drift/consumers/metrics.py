"""Counts of a worker and its models; `drift.consumers.exporter` exports them."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from drift._late import final_step
from drift.consumers.alarms import MEASURES, Alarms
from drift.consumers.measures import Measures
from drift.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable

    from drift.consumers.alarms import Alarm
    from drift.consumers.answers import Answer
    from drift.consumers.options import WorkerOptions
    from drift.consumers.records import Position, TopicPartition
    from drift.types import Features, Label

__all__ = ["Metrics", "WorkerMetrics"]

_NONE: Features = {}

_COUNTS = ("examples", "unlabelled", "mistakes", "blind", "dead_letters", "skipped")
#: Those that are younger than the others.
_LATER = ("blind", "skipped")
#: Counts that are set from outside, and known from then on.
_SET = (
    *("updates", "orphans", "duplicates"),
    *("repeated", "expired", "evicted", "silent", "corrected"),
)


class Metrics:
    """Counts of one model: of one partition, or of all that it learns from.

    Parameters
    ----------
    topic
        The topic.
    partition
        The partition; None for a model over all of them.
    group
        The consumer group.
    positive, window
        As of `drift.consumers.measures.Measures`.
    alarm_level
        As `level` of `drift.consumers.alarms.Alarms`; 0 for no alarms.
    contributions
        As of `drift.consumers.alarms.Movement`: whether alarms name features by these.

    Attributes
    ----------
    model : str or None
        Name of the model's class; None before `counts_of` was called.
    measures : Measures
        How good predictions are.
    alarmed : dict
        Number of alarms by what has risen; a checkpoint keeps it.
    raised : list of Alarm
        Alarms not yet sent.
    examples, unlabelled, mistakes, blind, dead_letters, skipped : int
        Counts of messages; a checkpoint keeps them. `blind` are mistakes whose prediction was None,
        as the model knew no label yet: of all measures, only the error counts them.
    learn_seconds : float
        Time in predicting and learning, of this process.
    jumps : int
        Records of this process whose timestamp was too far from the time of their partition.
    supports, updates : int or None
        What the worker sets now and then; None while unknown.
    lags : dict
        By topic and partition, messages up to the end, and the time at which the oldest of them was
        sent, in milliseconds since 1970; None where none can be read, or that is not known.
    late : dict
        The same of labels that come later, by its name in the log; empty where none do.
    shadow : dict
        The same of a shadow; empty where there is none.
    keyed : dict
        The same of models of keys; empty where there are none.
    checkpoint_time : float or None
        When the newest checkpoint was written, in seconds since 1970; None before the first.

    Raises
    ------
    ParameterError
        If `window` is not at least 1.

    Examples
    --------
    >>> from drift.consumers.answers import Answer
    >>> metrics = Metrics("news", 0)
    >>> for label in ("rain", "sun", "sun", "sun"):
    ...     metrics.learnt(label, Answer("sun"))
    >>> metrics.windowed_error
    0.25
    >>> print(metrics.line())
    topic=news partition=0 examples=4 unlabelled=0 mistakes=1 blind=0 windowed_error=0.25
    windowed_recall=0.5 windowed_precision=0.375 windowed_f1=0.428571 windowed_base_rate=0.75
    learn_seconds=0 jumps=0 dead_letters=0 skipped=0 alarms=0
    """

    def __init__(  # noqa: PLR0913
        self,
        topic: str,
        partition: int | None = None,
        *,
        group: str = "",
        positive: Label = None,
        alarm_level: float = 0.0,
        contributions: bool = False,
        window: int = 1000,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.group = group
        self.model: str | None = None
        self.measures = Measures(positive, window=window)
        self.alarmed = dict.fromkeys(MEASURES, 0)
        self.raised: list[Alarm] = []
        self._alarms = Alarms(alarm_level, contributions=contributions) if alarm_level else None
        self._alarmed_before = dict(self.alarmed)
        self.examples = self.unlabelled = self.mistakes = self.blind = 0
        self.dead_letters = self.skipped = 0
        self.learn_seconds = 0.0
        self.jumps = 0
        self.supports: int | None = None
        self.updates: int | None = None
        self.lags: dict[TopicPartition, tuple[int, int | None]] = {}
        self.late: dict[str, float] = {}
        self.shadow: dict[str, float] = {}
        self.keyed: dict[str, float] = {}
        self.checkpoint_time: float | None = None
        self._before: dict[str, float] = dict.fromkeys((*_COUNTS, "jumps"), 0)

    @classmethod
    def of(cls, options: WorkerOptions, partition: int | None = None) -> Metrics:
        """Return the metrics of what a worker with these options learns, or of one partition."""
        return cls(
            options.topic,
            options.partition if partition is None else partition,
            group=options.group,
            positive=options.positive,
            alarm_level=options.alarm_level,
            contributions=bool(options.explain) and options.labels is None,  # none wait for labels
        )

    def __repr__(self) -> str:
        return f"<Metrics {self.line()}>"

    def learnt(
        self, label: Label, answer: Answer, features: Features = _NONE, delay: float | None = None
    ) -> None:
        """Count an example that was predicted and learnt.

        Parameters
        ----------
        label
            Its label.
        answer
            What was predicted, or sent, before it was learnt.
        features
            Its features.
        delay
            Seconds from the features to the label; None where they came together.
        """
        self.examples += 1
        wrong = bool(answer.predicted != label)  # not numpy's
        self.mistakes += wrong
        self.blind += answer.predicted is None
        loss = self.measures.learnt(label, answer, delay)
        if self._alarms is None:
            return
        moving = answer.reasons if self._alarms.contributions else features
        for alarm in self._alarms.learnt(wrong, loss, moving):
            self.raised.append(alarm)
            self.alarmed[alarm.measure] += 1

    def counts_of(self, model: Any, **late: float) -> None:
        """Copy the counts of one of drift's models, and of a join."""
        self.model = type(final_step(model)).__name__
        self.supports = getattr(model, "n_supports", None)
        self.updates = getattr(model, "n_updates", None)
        self.late = late
        now = self._counts()
        known = {name: value for name in _SET if (value := now.get(name)) is not None}
        self._before = {**known, **self._before}

    def counted(self) -> dict[str, float]:
        """Return the counts of this process, which never fall."""
        now = self._counts()
        return {name: max(0, (now[name] or 0) - was) for name, was in self._before.items()}

    def alarms_counted(self) -> dict[str, int]:
        """Return the number of alarms of this process, by measure."""
        return {name: n - self._alarmed_before[name] for name, n in self.alarmed.items()}

    def checkpointed(self, at: float | None = None) -> None:
        """Set the time of the newest checkpoint: now, or seconds since 1970."""
        self.checkpoint_time = time.time() if at is None else at

    @property
    def windowed_error(self) -> float:
        """Share of mistakes in the last `window` examples, NaN before the first."""
        return self.measures.error

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint: JSON types.

        Examples
        --------
        >>> Metrics("news", 0).state()
        {'examples': 0, 'unlabelled': 0, 'mistakes': 0, 'blind': 0, 'dead_letters': 0, ...}
        """
        counts = {name: getattr(self, name) for name in _COUNTS}
        return {
            **counts,
            "measures": self.measures.state(),
            "alarmed": dict(self.alarmed),
            "alarms": None if self._alarms is None else self._alarms.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore `state`: counts and measures continue exactly.

        So do the references of alarms, which start where they were not kept, or where other
        features are named now. Times are of the process and stay as they are.

        Raises
        ------
        ParameterError
            If the state is none of `state`; nothing is changed.
        """
        counts: dict[str, Any] = {name: state.get(name) for name in _COUNTS}
        counts |= {name: state.get(name, 0) for name in _LATER}
        for name, count in counts.items():
            if type(count) is not int or count < 0:
                raise ParameterError(f"state[{name!r}] must be a count, not {count!r:.40}")
        alarmed = state.get("alarmed")
        if not isinstance(alarmed, dict) or set(map(type, alarmed.values())) - {int}:
            raise ParameterError(f"state['alarmed'] must be counts, not {alarmed!r:.40}")
        measures, alarms, kept = self.measures, self._alarms, state.get("alarms")
        measures = Measures.restore(
            state.get("measures"), measures.positive, window=measures.window
        )
        if alarms is not None and kept is not None:
            alarms = Alarms.restore(kept, alarms.level, contributions=alarms.contributions)
        self.measures, self._alarms = measures, alarms
        self.alarmed = {name: alarmed.get(name, 0) for name in MEASURES}
        self._alarmed_before = dict(self.alarmed)
        for name, count in counts.items():
            setattr(self, name, count)
        self._before.update(counts)

    def values(self) -> dict[str, float | None]:
        """Return the values of the log line by name; None if unknown."""
        counts = self._counts()
        first = ("examples", "unlabelled", "mistakes", "blind")
        measures = self.measures.windowed().items()
        return {
            **{name: counts.pop(name) for name in first},
            **{f"windowed_{name}": value for name, value in measures},
            **counts,
        }

    def lag_seconds(self) -> dict[TopicPartition, float]:
        """Return for how long the oldest message of each partition has waited; 0 where none does.

        Examples
        --------
        >>> metrics = Metrics("news")
        >>> metrics.lags = {("news", 0): (0, None), ("news", 1): (7, 1_790_000_000_000)}
        >>> metrics.lag_seconds()
        {('news', 0): 0.0, ('news', 1): ...}
        """
        now = time.time()
        return {
            place: 0.0 if oldest is None else max(0.0, now - oldest / 1000)
            for place, (_, oldest) in self.lags.items()
        }

    def faded(self) -> dict[str, float]:
        """Return the faded measures, by their names in Prometheus."""
        return {f"faded_{name}": value for name, value in self.measures.faded().items()}

    def _counts(self) -> dict[str, float | None]:
        at = self.checkpoint_time
        return {
            "examples": self.examples,
            "unlabelled": self.unlabelled,
            "mistakes": self.mistakes,
            "blind": self.blind,
            "supports": self.supports,
            "updates": self.updates,
            "lag": sum(lag for lag, _ in self.lags.values()) if self.lags else None,
            "lag_seconds": max(self.lag_seconds().values(), default=None),
            "learn_seconds": self.learn_seconds,
            "jumps": self.jumps,
            "checkpoint_age_seconds": None if at is None else max(0.0, time.time() - at),
            "dead_letters": self.dead_letters,
            "skipped": self.skipped,
            "alarms": sum(self.alarmed.values()),
            **self.late,
            **self.shadow,
            **self.keyed,
        }

    @property
    def _no_label_yet(self) -> bool:
        """Whether labels are late and none has been learnt."""
        return bool(self.late) and not self.examples

    def known(self) -> dict[str, Any]:
        """Return the known values of the log line: JSON types.

        Where labels come later there are no mistakes before the first label.

        Examples
        --------
        >>> Metrics("news", 0).known()
        {'topic': 'news', 'partition': 0, 'examples': 0, ...}
        """
        return {
            "topic": self.topic,
            "partition": "all" if self.partition is None else self.partition,
            **{
                name: round(value, 6) if isinstance(value, float) else value
                for name, value in self.values().items()
                if value is not None
                and not math.isnan(value)
                and not (name == "mistakes" and self._no_label_yet)
            },
        }

    def line(self) -> str:
        """Return a line for the log: ``name=value`` between spaces."""
        shown = [
            f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in self.known().items()
        ]
        return " ".join([*shown, *(["(no label yet)"] * self._no_label_yet)])


class WorkerMetrics:
    """Counts of a worker, beside those of its models.

    Parameters
    ----------
    group
        The consumer group.
    topic
        The topic that it learns.

    Attributes
    ----------
    poll_seconds : float
        Time spent waiting for messages.
    taken_over : int
        Partitions assigned and started since the worker began, counted again each time.
    partitions : int
        Partitions assigned and started.
    forced_steps : callable
        Returns the number of records learnt because `max_idle` was over.
    held : float
        Seconds for which the next record has waited for other partitions.
    at : Position or None
        The message that is taken now.
    takeovers : list of str
        How far those are that are under way. Replace it rather than change it.
    takeover_seconds : float
        Seconds for which the longest of them has lasted.
    reread : int
        Messages that takeovers have read again.
    waits : list of str
        What is waited for, where that takes long. Replace it rather than change it.
    connections : callable
        Returns the number of brokers that are connected, also while the worker waits for them.
    polled : float
        `time.monotonic` at its last poll.
    silence : float
        Seconds without a poll after which the group expels the worker.
    trouble : dict
        The last error of claiming or writing a checkpoint, by topic and partition.
        Replace it rather than change it, as `models`.
    models : list of Metrics
        Those of the models that the worker holds now. Replace the list rather than change it: the
        exporter reads it from its own thread.

    Examples
    --------
    >>> worker = WorkerMetrics()
    >>> worker.taken_over += 1
    >>> worker.models = [Metrics("news", 0), Metrics("news", 1)]
    """

    def __init__(self, group: str = "", topic: str = "") -> None:
        self.group, self.topic = group, topic
        self.poll_seconds = 0.0
        self.taken_over = self.partitions = 0
        self.connections: Callable[[], int] = int
        self.forced_steps: Callable[[], int] = int
        self.at: Position | None = None
        self.takeovers: list[str] = []
        self.takeover_seconds = 0.0
        self.reread = 0
        self.held = 0.0
        self.waits: list[str] = []
        self.polled, self.silence = time.monotonic(), 300.0
        self.trouble: dict[tuple[str, int | None], str] = {}
        self.models: list[Metrics] = []

    def is_alive(self) -> bool:
        """Whether the worker has polled in time."""
        return time.monotonic() - self.polled <= self.silence

    def problems(self) -> list[str]:
        """Return why the worker does not learn; empty if it does.

        Examples
        --------
        >>> WorkerMetrics().problems()
        ['no broker is connected', 'no partition is assigned']
        """
        silent, at = round(time.monotonic() - self.polled), self.at
        amid = "" if at is None else f", amid message {at}"
        problems = [] if self.is_alive() else [f"no poll for {silent} s{amid}"]
        problems += [] if self.connections() else ["no broker is connected"]
        idle = not self.partitions and not self.takeovers
        problems += ["no partition is assigned"] if idle else self.takeovers
        return [*problems, *self.waits, *(f"no checkpoint: {w}" for w in self.trouble.values())]
