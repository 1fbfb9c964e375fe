"""What a worker counts; `drift.consumers.exporter` shows it to Prometheus."""

from __future__ import annotations

import math
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from drift.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Metrics", "WorkerMetrics"]

_COUNTS = ("examples", "unlabelled", "mistakes", "dead_letters")
#: Counts that are set from outside, and known from then on.
_SET = (
    *("updates", "orphans", "duplicates"),
    *("expired", "evicted", "silent", "corrected"),
)


class Metrics:
    """Counts of one model: of one partition, or of all that it learns from.

    Parameters
    ----------
    topic
        The topic.
    partition
        The partition; None for a model over all of them.
    window
        Number of examples in the windowed error.

    Attributes
    ----------
    examples, unlabelled, mistakes, dead_letters : int
        Counts of messages; a checkpoint keeps them.
    learn_seconds : float
        Time in predicting and learning, of this process.
    jumps : int
        Records of this process whose timestamp was too far from the time of their partition.
    supports, updates, lag : int or None
        What the worker sets now and then; None while unknown.
    late : dict
        The same of labels that come later, by its name in the log; empty where none do.
    shadow : dict
        The same of a shadow; empty where there is none.
    checkpoint_time : float or None
        When the newest checkpoint was written, in seconds since 1970; None before the first.

    Raises
    ------
    ParameterError
        If `window` is not at least 1.

    Examples
    --------
    >>> metrics = Metrics("news", 0)
    >>> for mistake in (True, False, False, False):
    ...     metrics.learnt(mistake)
    >>> metrics.windowed_error
    0.25
    >>> print(metrics.line())
    topic=news partition=0 examples=4 unlabelled=0 mistakes=1 windowed_error=0.25
    learn_seconds=0 jumps=0 dead_letters=0
    """

    def __init__(self, topic: str, partition: int | None = None, *, window: int = 1000) -> None:
        if window < 1:
            raise ParameterError(f"window must be at least 1, not {window!r}")
        self.topic = topic
        self.partition = partition
        self.examples = self.unlabelled = self.mistakes = self.dead_letters = 0
        self.learn_seconds = 0.0
        self.jumps = 0
        self.supports: int | None = None
        self.updates: int | None = None
        self.lag: int | None = None
        self.late: dict[str, float] = {}
        self.shadow: dict[str, float] = {}
        self.checkpoint_time: float | None = None
        self._before: dict[str, float] = dict.fromkeys((*_COUNTS, "jumps"), 0)
        self._flags: deque[bool] = deque(maxlen=window)
        self._wrong = 0  # mistakes among the flags, so that the error needs no sum

    def __repr__(self) -> str:
        return f"<Metrics {self.line()}>"

    def learnt(self, mistake: bool) -> None:  # noqa: FBT001
        """Count an example that was predicted, rightly or not, and learnt."""
        flags = self._flags
        if len(flags) == flags.maxlen:
            self._wrong -= flags[0]
        flags.append(mistake)
        self._wrong += mistake
        self.examples += 1
        self.mistakes += mistake

    def counts_of(self, model: Any, **late: float) -> None:
        """Take a model's own counts, which it has if it is one of drift's, and those of a join."""
        self.supports = getattr(model, "n_supports", None)
        self.updates = getattr(model, "n_updates", None)
        self.late = late
        now = self.values()
        known = {name: value for name in _SET if (value := now.get(name)) is not None}
        self._before = {**known, **self._before}

    def counted(self) -> dict[str, float]:
        """Return the counts since these began, which never fall: those of this process."""
        now = self.values()
        return {name: max(0, (now[name] or 0) - was) for name, was in self._before.items()}

    def checkpointed(self, at: float | None = None) -> None:
        """Note that a checkpoint was written now, or at a time in seconds since 1970."""
        self.checkpoint_time = time.time() if at is None else at

    @property
    def windowed_error(self) -> float:
        """Share of mistakes in the last `window` examples, NaN before the first."""
        return self._wrong / len(self._flags) if self._flags else math.nan

    def state(self) -> dict[str, int | str]:
        """Return what a checkpoint keeps: JSON's own types.

        Examples
        --------
        >>> metrics = Metrics("news", 0)
        >>> metrics.learnt(True)
        >>> metrics.state()
        {'examples': 1, 'unlabelled': 0, 'mistakes': 1, 'dead_letters': 0, 'recent': '1'}
        """
        counts = {name: getattr(self, name) for name in _COUNTS}
        return {**counts, "recent": "".join("01"[flag] for flag in self._flags)}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to what `state` returned: counts and windowed error go on exactly as they would.

        A smaller `window` keeps the last examples, a larger one fills up again. Times are of the
        process and stay as they are.

        Raises
        ------
        ParameterError
            If the state is none of `state`; nothing is changed.
        """
        counts: dict[str, Any] = {name: state.get(name) for name in _COUNTS}
        recent = state.get("recent")
        for name, count in counts.items():
            if type(count) is not int or count < 0:
                raise ParameterError(f"state[{name!r}] must be a count, not {count!r:.40}")
        if not isinstance(recent, str) or not {"0", "1"}.issuperset(recent):
            raise ParameterError("state['recent'] must be a string of 0s and 1s")
        for name, count in counts.items():
            setattr(self, name, count)
        self._before.update(counts)
        self._flags = deque((flag == "1" for flag in recent), self._flags.maxlen)
        self._wrong = sum(self._flags)

    def values(self) -> dict[str, float | None]:
        """Return everything that is shown, by its name in the log; None for what is not known."""
        at = self.checkpoint_time
        return {
            "examples": self.examples,
            "unlabelled": self.unlabelled,
            "mistakes": self.mistakes,
            "windowed_error": self.windowed_error,
            "supports": self.supports,
            "updates": self.updates,
            "lag": self.lag,
            "learn_seconds": self.learn_seconds,
            "jumps": self.jumps,
            "checkpoint_age_seconds": None if at is None else max(0.0, time.time() - at),
            "dead_letters": self.dead_letters,
            **self.late,
            **self.shadow,
        }

    @property
    def _no_label_yet(self) -> bool:
        """Whether labels come later, and none has been learnt: nothing is known of mistakes."""
        return bool(self.late) and not self.examples

    def known(self) -> dict[str, Any]:
        """Return what is known, as the log has it: JSON's own types.

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

    Attributes
    ----------
    poll_seconds : float
        Time in waiting for messages.
    rebalances : int
        Assignments of partitions.
    partitions : int
        Partitions that are being learnt.
    forced_steps : callable
        Returns how often a partition that brought nothing was waited for in vain.
    connections : callable
        Returns the number of brokers that are connected, also while the worker waits for them.
    polled : float
        When it last asked for messages, as `time.monotonic` has it.
    silence : float
        Seconds without such a sign after which its group takes it for gone.
    trouble : dict
        Why the last checkpoint of a model could not be claimed or written, by topic and partition.
        Replace it rather than change it, as `models`.
    models : list of Metrics
        Those of the models that the worker holds now. Replace the list rather than change it: the
        exporter reads it from a thread of its own.

    Examples
    --------
    >>> worker = WorkerMetrics()
    >>> worker.rebalances += 1
    >>> worker.models = [Metrics("news", 0), Metrics("news", 1)]
    """

    def __init__(self) -> None:
        self.poll_seconds = 0.0
        self.rebalances = self.partitions = 0
        self.connections: Callable[[], int] = int
        self.forced_steps: Callable[[], int] = int
        self.polled, self.silence = time.monotonic(), 300.0
        self.trouble: dict[tuple[str, int | None], str] = {}
        self.models: list[Metrics] = []

    def is_alive(self) -> bool:
        """Say whether the worker has asked for messages lately."""
        return time.monotonic() - self.polled <= self.silence

    def problems(self) -> list[str]:
        """Return what keeps it from learning; nothing where it learns.

        Examples
        --------
        >>> WorkerMetrics().problems()
        ['no broker is connected', 'no partition is assigned']
        """
        silent = round(time.monotonic() - self.polled)
        found = [] if self.is_alive() else [f"no poll for {silent} s"]
        found += [] if self.connections() else ["no broker is connected"]
        found += [] if self.partitions else ["no partition is assigned"]
        return found + [f"no checkpoint: {why}" for why in self.trouble.values()]
