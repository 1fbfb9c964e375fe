"""A worker's options, each declared once, and what it refuses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from drift._late import final_step, keeps_tickets, takes_weights, with_late_labels
from drift._options import check_options, option
from drift.consumers.checkpoints.files import network_file_system
from drift.consumers.checkpoints.objects import ObjectPath
from drift.consumers.codec import Codec
from drift.consumers.join import JoinOptions
from drift.consumers.json_codec import JsonCodec
from drift.errors import ConfigurationError, ParameterError

if TYPE_CHECKING:
    from drift._decision import Goal
    from drift.consumers.checkpoints.folder import CheckpointFolder

__all__ = [
    "ServiceOptions",
    "WorkerOptions",
    "check_codec",
    "check_model",
    "codec_settings",
    "is_keyed",
    "prepare_folder",
    "prepared",
    "prepared_shadow",
    "refuse_keyed",
    "refuse_shadow",
]

#: Names that brokers take for topics, but "." and "..".
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
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
        "Where a partition without checkpoint begins; a group without checkpoints needs it.",
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
        "Label that recall and precision are of; default: true, or 1, where there is no third one.",
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
    max_models: int = option("Models of keys in memory.", 10_000, least=1, table="keyed")
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
    drift.errors.ParameterError: news, news: what is learnt, predictions and dead letters need ...
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
        topics = [topic for topic in (self.topic, self.labels, *self.outputs) if topic]
        for topic in topics:
            if not _TOPIC.fullmatch(topic) or topic in {".", ".."}:
                raise ParameterError(
                    f"{topic!r:.80} is no name of a topic, which has up to 249 letters, digits, "
                    "dots, '_' and '-' of ASCII: correct it"
                )
        if len(set(topics)) < len(topics):
            raise ParameterError(
                f"{', '.join(topics)}: what is learnt, predictions and dead letters need a topic "
                "each, or what is sent is learnt again"
            )

    @property
    def outputs(self) -> tuple[str | None, ...]:
        """The topics that are sent to."""
        return self.predictions, self.dead_letters, self.orphans, self.events

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
class ServiceOptions:
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
    >>> from drift.consumers.json_codec import JsonCodec
    >>> check_model(LinearRegression(), JsonCodec())
    Traceback (most recent call last):
    drift.errors.ParameterError: LinearRegression is not a classifier: a worker predicts labels. ...
    """
    from river import base  # noqa: PLC0415 - takes a while

    final = final_step(model)
    if not isinstance(final, base.Classifier):
        raise ParameterError(
            f"{type(model).__name__} is not a classifier: a worker predicts labels. Give one of "
            "drift's or River's, a pipeline that ends in one, or a function that returns one"
        )
    if not any(paths.get("weight") for paths in (codec.paths, codec.label_paths)):
        return
    if not takes_weights(model):
        raise ParameterError(
            f"{type(model).__name__} learns without weights: leave weight out of the codec"
        )


def prepared(model: Any, folder: CheckpointFolder, options: WorkerOptions, codec: Codec) -> Any:
    """Return the model as it is to learn, after a look at all that would be refused later.

    Parameters
    ----------
    model
        As it was given; where labels have a separate topic a `Tracker` that does not say
        whether they come late gets ``late=True``, at the end of a pipeline, too.
    folder
        Where it is to be stored; where labels have a separate topic its configuration gets the
        options on which it depends what is learnt.
    options
        The worker's.
    codec
        The worker's.

    Raises
    ------
    ParameterError
        If the model is no classifier, or one for late labels where each key has a model; or if the
        codec reads no labels.
    CheckpointError
        If the model cannot be stored.
    """
    check_model(model, codec)
    if options.explain or options.goal:
        from drift.explain import Explainer  # noqa: PLC0415 - takes a while

        Explainer(model)  # refuses a model without probabilities
    prepare_folder(folder, options, codec)
    if is_keyed(codec) and keeps_tickets(model):
        raise ParameterError("where each key has a model labels come at once: leave late=True out")
    if options.labels:
        model = with_late_labels(model)
    folder.check(model)
    return model


def prepare_folder(folder: CheckpointFolder, options: WorkerOptions, codec: Codec) -> None:
    """Have a folder's configuration name all on which it depends what is learnt.

    Raises
    ------
    ParameterError
        If labels have a separate topic, and the codec cannot read them; or if each key has a
        model of its own, and labels have a topic, one partition is meant, or the folder is an
        object store's or on another machine.
    """
    settings = codec_settings(codec)
    if is_keyed(codec):
        _check_keyed(options, folder)
        settings |= {"keyed": codec.key, "keyed.prior": options.prior}
    if options.labels:
        check_codec(codec, options.silence)
        settings |= options.settings()
    folder.configuration = {**(folder.configuration or {}), **settings}


def codec_settings(codec: Codec) -> dict[str, Any]:
    """Return what a checkpoint's configuration says of a codec.

    Examples
    --------
    >>> codec_settings(JsonCodec(label="fraud"))
    {'codec': 'JsonCodec', 'codec.label': 'fraud'}
    """
    kind = type(codec)
    is_ours = kind.__module__.partition(".")[0] == "drift"
    name = kind.__qualname__ if is_ours else f"{kind.__module__}:{kind.__qualname__}"
    settings = {f"codec.{name}": value for name, value in codec.settings().items()}
    return {"codec": name, **settings}


def is_keyed(codec: Codec) -> bool:
    """Whether each key has its own model, by what reads the messages."""
    return codec.key is not None


def refuse_keyed(codec: Codec, what: str) -> None:
    """Refuse what takes one model where each key has one of its own."""
    if is_keyed(codec):
        raise ParameterError(
            f"{what} takes one model, and each key has one of its own: leave --keyed out, which is "
            "key in [codec]"
        )


def _check_keyed(options: WorkerOptions, folder: CheckpointFolder) -> None:
    if isinstance(folder.path, ObjectPath):
        raise ParameterError(
            "where each key has a model of its own checkpoints are in a local folder, not in "
            f"{folder.path}: for workers on several machines take Quix Streams or Spark, "
            "docs/engines.md"
        )
    if kind := network_file_system(folder.path):
        raise ParameterError(
            "where each key has a model of its own checkpoints are on a disk of the machine on "
            f"which all workers run, and {folder.path} is on {kind}, where a file of SQLite may be "
            "damaged: give another folder, or for workers on several machines take Quix Streams or "
            "Spark, docs/engines.md"
        )
    for wrong, remedy in (
        (options.labels, "labels have to be in the messages, without [labels] topic"),
        (options.partition is not None, "the group shares the partitions, without --partition"),
    ):
        if wrong:
            raise ParameterError(f"where each key has a model of its own {remedy}")


def refuse_shadow(options: WorkerOptions, which: str = "") -> None:
    """Refuse a shadow beside a threshold: one that is given, or `which`, that of a checkpoint."""
    if options.goal is None:
        return
    why = "a shadow is compared by labels, which [decision] changes for the model alone"
    if not which:
        raise ParameterError(f"{why}: leave one of the two out")
    raise ConfigurationError(
        f"{which}; {why}: leave [decision] out, or [models.shadow] out of the worker's file, whose "
        "next checkpoint has none then"
    )


def prepared_shadow(
    shadow: Any, folder: CheckpointFolder, options: WorkerOptions, codec: Codec
) -> Any:
    """Return the second model likewise; None where there is none, and none is to be promoted."""
    if shadow is not None:
        refuse_keyed(codec, "a shadow")
        refuse_shadow(options)
        return prepared(shadow, folder, options, codec)
    if options.promote is not None:
        raise ParameterError("promote takes a shadow: give one, [models.shadow] in the file")
    return None


def check_codec(codec: Codec, silence: object | None = None) -> None:
    """Refuse what cannot read labels of a separate topic.

    Parameters
    ----------
    codec
        What reads them.
    silence
        The label of features that get none; None where they are not learnt.

    Raises
    ------
    ParameterError
        If it has no method for them, they could not be found, or silence is none of its labels.

    Examples
    --------
    >>> check_codec(JsonCodec(require_label=True))
    Traceback (most recent call last):
    drift.errors.ParameterError: require_label would refuse all features, whose labels come ...
    """
    if type(codec).decode_label is Codec.decode_label:
        raise ParameterError(
            f"{type(codec).__name__} has no decode_label: labels of a topic of their own take one"
        )
    if codec.require_label:
        raise ParameterError(
            "require_label would refuse all features, whose labels come later: leave it out"
        )
    if isinstance(codec, JsonCodec) and codec.label is not None and codec.id is None:
        raise ParameterError("labels find their features by the id: say where it is, id in [codec]")
    classes = codec.classes
    if silence is not None and classes is not None and silence not in classes:
        raise ParameterError(
            f"silence is {silence!r}, which is none of the codec's classes, {[*classes]!r:.80}: "
            "give one of them, or add it to classes"
        )
