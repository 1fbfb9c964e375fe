"""What a worker is told, declared once for all who tell it, and what it refuses."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from drift._options import check_options, option
from drift.consumers.codec import JsonCodec
from drift.consumers.join import JoinOptions
from drift.errors import ParameterError

if TYPE_CHECKING:
    from drift.consumers.codec import Codec

__all__ = ["ServiceOptions", "WorkerOptions", "check_codec", "check_model"]

#: Options of labels that come later on which it depends what is learnt.
_SETTINGS = (
    *("max_age", "grace", "pending", "pending_bytes", "timestamps", "max_jump"),
    *("silence", "after", "correct_for"),
)


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
    partition: int | None = option(
        "Learn this partition alone, with a group and a folder of its own; default: all.",
        None,
        least=0,
    )
    max_jump: float = option(
        "Seconds by which one record moves the time.", 3600.0, least=0, duration=True
    )
    max_idle: float = option(
        "Seconds for which a silent partition is waited for.", 0.5, least=0, duration=True
    )
    checkpoint_every: int = option("Messages between checkpoints.", 20_000, least=1)
    checkpoint_seconds: float = option("Seconds between checkpoints.", 10.0, least=0)
    labels: str | None = option(
        "Topic of labels that come later.", None, table="labels", key="topic"
    )


@dataclass(frozen=True, kw_only=True)
class WorkerOptions(JoinOptions, _TopicOptions):
    """What a worker learns, where it begins, what it sends and when it saves.

    Parameters
    ----------
    topic
        The topic to learn.
    group
        The consumer group; one of its workers learns, the others stand by.
    start
        Where a partition without checkpoint and without committed offset begins: ``"earliest"``,
        ``"latest"``, or None to refuse.
    on_gap
        What to do where the broker has deleted messages before they were learnt: ``"stop"``, or
        ``"skip"`` them and say so in the log.
    predictions, dead_letters
        Topics to send to; None for none.
    partition
        Learn this partition alone, of `labels`, too; with a group and a folder of its own.
    max_jump, max_idle
        By how many seconds a single record moves its partition's time, and for how many a partition
        that brings nothing is waited for: see `drift.consumers.order`.
    checkpoint_every, checkpoint_seconds
        A checkpoint is written after so many messages or seconds, whichever comes first.
    labels
        The topic of the labels, where they come later: `topic` is predicted as it comes, and learnt
        by these; None where messages have their labels.
    max_age, grace, pending, pending_bytes, silence, after, correct_for
        How long features and labels wait for each other, how many, and what it means that no label
        comes: see `drift.consumers.join.JoinOptions`.
    orphans
        Topic for labels whose features have not come, or are gone; None for none.
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

    orphans: str | None = option("Topic for labels without features.", None, table="labels")
    timestamps: str = option(
        "Clock of late labels: the log's, or that of the producers.",
        "log",
        choices=("log", "create"),
        table="labels",
    )

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        super().__post_init__()
        named = (self.topic, self.labels, self.predictions, self.dead_letters, self.orphans)
        topics = [one for one in named if one]
        if len(set(topics)) < len(topics):
            raise ParameterError(
                f"{', '.join(topics)}: what is learnt, predictions and dead letters need a topic "
                "each, or what is sent is learnt again"
            )

    def settings(self) -> dict[str, Any]:
        """Return what must be the same for a model to go on, where labels come later."""
        join = {f"labels.{name}": getattr(self, name) for name in _SETTINGS}
        return {"labels": self.labels, **join}


@dataclass(frozen=True, kw_only=True)
class ServiceOptions:
    """How predictions are served over HTTP, and what is refused: see `drift.consumers.service`.

    Parameters
    ----------
    host, port
        Where it listens.
    max_staleness
        Seconds by which a model may be behind the logs; beyond, it is not asked. None for any.
    max_examples
        Examples of a request.
    max_features
        Features of an example.
    timeout
        Seconds for which the body of a request may take to come.

    Raises
    ------
    ParameterError
        If one of them cannot be.
    """

    host: str = option("Address to listen at.", "127.0.0.1", table="serve")
    port: int = option("Port to listen at.", 8000, least=1, most=65535, table="serve")
    max_staleness: float | None = option(
        "Answer 503 once the model is so many seconds behind; default: never.",
        None,
        least=0,
        duration=True,
        table="serve",
    )
    max_examples: int = option(
        "Largest number of examples in a request.", 100, least=1, table="serve"
    )
    max_features: int = option(
        "Largest number of features in an example.", 10_000, least=1, table="serve"
    )
    timeout: float = option(
        "Seconds in which the body of a request has to come.",
        5.0,
        least=0,
        above=True,
        duration=True,
        table="serve",
    )

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        check_options(self)


def check_model(model: Any, codec: Codec) -> None:
    """Refuse what is no classifier, or cannot learn what the messages say.

    Raises
    ------
    ParameterError
        If it is none.

    Examples
    --------
    >>> from river.linear_model import LinearRegression
    >>> from drift.consumers.codec import JsonCodec
    >>> check_model(LinearRegression(), JsonCodec())
    Traceback (most recent call last):
    drift.errors.ParameterError: LinearRegression is not a classifier: a worker predicts labels. ...
    """
    from river import base, compose  # noqa: PLC0415 - takes a while

    final = model
    while isinstance(final, compose.Pipeline):
        *_, final = final.steps.values()
    if not isinstance(final, base.Classifier):
        raise ParameterError(
            f"{type(model).__name__} is not a classifier: a worker predicts labels. Give one of "
            "drift's or River's, a pipeline that ends in one, or a function that returns one"
        )
    labels = getattr(codec, "labels", None) or {}
    if getattr(codec, "weight", None) is None and "weight" not in labels:
        return
    learn = inspect.signature(final.learn_one).parameters.values()
    if not any(one.name == "w" or one.kind is one.VAR_KEYWORD for one in learn):
        raise ParameterError(
            f"{type(model).__name__} learns without weights: leave weight out of the codec"
        )


def check_codec(codec: Codec) -> None:
    """Refuse what cannot read labels of a topic of their own.

    Raises
    ------
    ParameterError
        If it has no method for them, or they could not be found.

    Examples
    --------
    >>> check_codec(JsonCodec(require_label=True))
    Traceback (most recent call last):
    drift.errors.ParameterError: require_label would refuse all features, whose labels come ...
    """
    if not hasattr(codec, "decode_label"):
        raise ParameterError(
            f"{type(codec).__name__} has no decode_label: labels of a topic of their own take one"
        )
    if getattr(codec, "require_label", False):
        raise ParameterError(
            "require_label would refuse all features, whose labels come later: leave it out"
        )
    if isinstance(codec, JsonCodec) and codec.label is not None and codec.id is None:
        raise ParameterError("labels find their features by the id: say where it is, id in [codec]")
