"""The options of a worker and of its service, each declared once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from drift._options import Checked, option
from drift.consumers.join import JoinOptions
from drift.consumers.records import check_topic
from drift.errors import ParameterError

if TYPE_CHECKING:
    from drift._decision import Goal

__all__ = ["ServiceOptions", "WorkerOptions"]

#: Options that name the topics that are learnt from, and those that are sent to.
_INPUTS = "topic", "labels"
_OUTPUTS = "predictions", "dead_letters", "orphans", "events"
#: Options of labels that come later on which it depends what is learnt.
_SETTINGS = (
    *("max_age", "grace", "pending", "pending_bytes", "timestamps", "max_jump"),
    *("silence", "after", "correct_for"),
)


@dataclass(frozen=True, kw_only=True)
class _TopicOptions:
    """Those that come before the ones of late labels, in the help and on the page of options."""

    topic: str = option("The topic to learn from.", argument=True)
    group: str = option("Consumer group.")
    start: str | None = option(
        "Where a new group begins, which needs it; a later partition is read from its start.",
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
    headers: tuple[str, ...] = option(
        "Headers of messages that their predictions get, too.", ("traceparent", "tracestate")
    )
    partition: int | None = option(
        "Learn this partition alone, with a group and a folder of its own; default: all.",
        None,
        least=0,
    )
    max_jump: float = option(
        "How far a timestamp may jump, forward or back, before the next record confirms it.",
        3600.0,
        least=0,
        duration=True,
    )
    max_idle: float | None = option(
        "How long to wait for a partition that may have earlier records; default: for ever.",
        None,
        least=0,
        duration=True,
    )
    probabilities: bool = option(
        "Measure log loss, AUC and calibration where no predictions are sent; false saves time.",
        default=True,
    )
    top_probabilities: int = option(
        "How many probabilities and scores a prediction has, the largest ones.", 100, least=0
    )
    positive: object | None = option(
        "Label that recall and precision are of; default: true or 1, with two labels.",
        None,
    )
    cost: tuple[float, ...] | None = option(
        "Predict positive where it costs least: what a false alarm and a miss cost.",
        None,
        table="decision",
    )
    recall: float | None = option(
        "Predict positive so that this share of the class is found.", None, table="decision"
    )
    precision: float | None = option(
        "Predict positive so that this share of it is right.", None, table="decision"
    )
    rate: float | None = option(
        "Predict this share of all examples positive.", None, table="decision"
    )
    explain: int = option(
        "Features in an answer, with their contributions, the largest; 0 for none.",
        0,
        least=0,
        table="answers",
    )
    alarm_level: float = option(
        "Bound on the probability of a false alarm, for each measure; 0 for no alarms.",
        0.01,
        least=0,
        most=0.5,
    )
    events: str | None = option("Topic for alarms.", None)
    checkpoint_every: int = option(
        "Messages after which a checkpoint is due before its time.", 20_000, least=1
    )
    checkpoint_seconds: float = option("Time between checkpoints.", 10.0, least=0, duration=True)
    promote: float | None = option(
        "E-value at which the shadow takes the model's place; default: by `drift promote` alone.",
        None,
        least=1,
        table="promote",
        key="at",
    )
    max_models: int = option(
        "Models of keys in memory, an equal part for each partition.",
        10_000,
        least=1,
        table="keyed",
    )
    prior: bool = option(
        "Let a new key begin with a copy of the model of all keys, not with an empty one.",
        default=True,
        table="keyed",
    )
    expire: float | None = option(
        "How long a key is kept that learns nothing; default: for ever.",
        None,
        least=0,
        above=True,
        duration=True,
        table="keyed",
    )
    labels: str | None = option(
        "Topic of labels that come later.", None, table="labels", key="topic"
    )


@dataclass(frozen=True, kw_only=True)
class WorkerOptions(JoinOptions, _TopicOptions):
    """What a worker learns, where it starts, what it sends and when it saves.

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
    headers
        Names of the headers of messages that their predictions get, too. Dead letters have all.
    partition
        Learn this partition alone, of `labels`, too; with a group and a folder of its own.
    max_jump, max_idle
        By how many seconds a single record moves its partition's time, and after how many one is
        learnt although another partition may have an earlier one: see `drift.consumers.order`.
    probabilities
        Ask the model for probabilities where no predictions are sent, too: log loss, AUC and
        calibration are measured by them. False spares their time.
    top_probabilities
        How many probabilities a prediction has at most, and how many scores where each label has
        one, the largest: those of thousands of labels are more bytes than a topic takes.
    positive
        The label that recall, precision, F1 and base rate are of: see `drift.consumers.measures`.
    cost, recall, precision, rate
        One of them: predict `positive`, true by default, from the probability on that
        `drift.models.Threshold` would learn for it. None of them: as the model predicts.
    explain
        How many contributions an answer has, see `drift.explain`; each answer then takes 16
        predictions a feature.
    alarm_level
        Bound on the probability of an alarm without a rise of error or log loss, for each of the
        two, until the next alarm: see `drift.consumers.alarms`; 0 for no alarms.
    events
        Topic for alarms; None for none.
    checkpoint_every, checkpoint_seconds
        A checkpoint is written after so many messages or seconds, whichever comes first.
    promote
        Evidence at which a shadow takes the model's place, see `drift.consumers.shadow`: at 100,
        one that is no better does with a probability of at most 1 %. None to wait for
        `drift promote`.
    max_models
        How many models of keys a worker has in memory, where the codec has a `key`; the others are
        in a file. See `drift.consumers.keyed`.
    prior
        Whether the topic's own model learns all, too, and that of a new key starts as it is then.
    expire
        After how many seconds of the log a key that learns nothing is forgotten: its model is
        deleted, and if it comes again it begins as a new one; None for never.
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
    drift.errors.ParameterError: topic and predictions are both 'news': give each a topic of ...
    """

    orphans: str | None = option("Topic for labels without features.", None, table="labels")
    timestamps: str = option(
        "Whose timestamps time late labels: the log's, or those that producers create.",
        "log",
        choices=("log", "create"),
        table="labels",
    )

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        super().__post_init__()
        _ = self.goal  # refuses what cannot be
        used: dict[str, str] = {}
        for name in (*_INPUTS, *_OUTPUTS):
            topic = getattr(self, name)
            if not topic:
                continue
            check_topic(topic)
            if topic in used:
                is_learnt = used[topic] in _INPUTS and name in _OUTPUTS
                raise ParameterError(
                    f"{used[topic]} and {name} are both {topic!r}: give each a topic of its own"
                    + ", or what is sent is learnt again" * is_learnt
                )
            used[topic] = name

    @property
    def topics(self) -> list[str]:
        """The topics that are learnt from: that of the labels comes last, where they have one."""
        return [self.topic, *filter(None, [self.labels])]

    @property
    def outputs(self) -> tuple[str | None, ...]:
        """The topics that are sent to."""
        return tuple(getattr(self, name) for name in _OUTPUTS)

    @property
    def goal(self) -> Goal | None:
        """What a threshold is to be good at; None where the model itself decides."""
        given = self.cost, self.recall, self.precision, self.rate
        if given == (None,) * 4:
            return None
        from drift._decision import goal_of  # noqa: PLC0415 - takes a while

        return goal_of(*given)

    def settings(self) -> dict[str, Any]:
        """Return what must be the same for a model to continue, where labels come later."""
        join = {f"labels.{name}": getattr(self, name) for name in _SETTINGS}
        return {"labels": self.labels, **join}


@dataclass(frozen=True, kw_only=True)
class ServiceOptions(Checked):
    """How predictions are served over HTTP, and what is refused: see `drift.consumers.service`.

    Parameters
    ----------
    host, port
        Where it listens.
    hosts
        Names in the header Host that are answered, beside ``localhost`` and addresses. Empty: any
        name, or none if `host` is this machine's alone, so that no web page in a browser of this
        machine can ask by a name of its own.
    max_staleness
        Largest lag of the model behind the logs, in seconds; beyond, it does not answer. None: any.
    max_examples
        Examples of a request.
    max_features
        Features of an example.
    timeout
        Seconds for which the head of a request may take to come, and its body.

    Raises
    ------
    ParameterError
        If one of them cannot be.
    """

    host: str = option("Address to listen at.", "127.0.0.1", table="serve")
    port: int = option("Port to listen at.", 8000, least=1, most=65535, table="serve")
    hosts: tuple[str, ...] = option(
        "Names by which it may be asked, beside localhost and addresses; default: any, or none "
        "where it listens on this machine alone.",
        (),
        table="serve",
    )
    max_staleness: float | None = option(
        "Answer 503 once the model is behind by more; default: never.",
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
        "Time in which the head of a request has to come, and its body.",
        5.0,
        least=0,
        above=True,
        duration=True,
        table="serve",
    )
