"""What a worker is told: declared once, for callers, the command line and TOML files."""

from __future__ import annotations

from dataclasses import dataclass

from drift._options import option
from drift.consumers.join import JoinOptions
from drift.errors import ParameterError

__all__ = ["WorkerOptions"]


@dataclass(frozen=True, kw_only=True)
class _TopicOptions:
    topic: str = option("The topic to learn from.", argument=True)
    group: str = option("Consumer group.")
    start: str | None = option(
        "Where a partition without checkpoint begins.",
        None,
        choices=("earliest", "latest"),
        name="from",
    )
    on_gap: str = option(
        "What to do where messages were deleted before they were learnt.",
        "stop",
        choices=("stop", "skip"),
    )
    predictions: str | None = option("Topic for predictions.", None)
    dead_letters: str | None = option("Topic for messages that cannot be learnt.", None)
    single: bool = option("One model over all partitions.", default=False)
    checkpoint_every: int = option("Messages between checkpoints.", 20_000, least=1)
    checkpoint_seconds: float = option("Seconds between checkpoints.", 10.0, least=0)
    labels: str | None = option("Topic of labels that come later.", None)


@dataclass(frozen=True, kw_only=True)
class WorkerOptions(JoinOptions, _TopicOptions):
    """What a worker learns, where it begins, what it sends and when it saves.

    Parameters
    ----------
    topic
        The topic to learn.
    group
        The consumer group; start more workers of it to share the partitions.
    start
        Where a partition without checkpoint and without committed offset begins: ``"earliest"``,
        ``"latest"``, or None to refuse.
    on_gap
        What to do where the broker has deleted messages before they were learnt: ``"stop"``, or
        ``"skip"`` them and say so in the log.
    predictions, dead_letters
        Topics to send to; None for none.
    single
        One model over all partitions, in one worker of the group; the others stand by.
    checkpoint_every, checkpoint_seconds
        A checkpoint is written after so many messages or seconds, whichever comes first.
    labels
        The topic of the labels, where they come later: `topic` is predicted as it comes, and learnt
        by these; None where messages have their labels.
    max_age, grace, pending, pending_bytes
        How long features and labels wait for each other, and how many: see
        `drift.consumers.join.JoinOptions`.
    orphans
        Topic for labels whose features have not come, or are gone; None for none.
    idle_timeout
        Seconds after which a label is given up that waits while no features come; None for never.
    timestamps
        ``"log"`` to demand timestamps that the broker set as it appended a message, ``"create"`` to
        take those of the producers, which may go back and forth.

    Raises
    ------
    ParameterError
        If one of them cannot be, or two topics are the same.

    Examples
    --------
    >>> WorkerOptions(topic="news", group="readers", predictions="news")
    Traceback (most recent call last):
    drift.errors.ParameterError: news, news: what is learnt, predictions and dead letters need ...
    """

    orphans: str | None = option("Topic for labels without features.", None)
    idle_timeout: float | None = option(
        "Seconds without any features after which a waiting label is given up; default: never.",
        None,
        above=True,
        least=0,
    )
    timestamps: str = option(
        "Clock of late labels: the log's, or that of the producers.",
        "log",
        choices=("log", "create"),
    )

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        super().__post_init__()
        named = (self.topic, self.labels, self.predictions, self.dead_letters, self.orphans)
        topics = [one for one in named if one]
        if self.single and self.labels:
            raise ParameterError(
                "single with labels: the order of two logs is known in each partition, and not "
                "between partitions; leave one of them out"
            )
        if len(set(topics)) < len(topics):
            raise ParameterError(
                f"{', '.join(topics)}: what is learnt, predictions and dead letters need a topic "
                "each, or what is sent is learnt again"
            )
