"""Models, folders and codecs as a worker takes them, and what it refuses before it starts."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from drift._late import final_step, keeps_tickets, takes_weights, with_late_labels
from drift.consumers.checkpoints.mounts import network_file_system
from drift.consumers.checkpoints.objects import ObjectPath
from drift.consumers.codec import Codec, codec_settings, is_keyed
from drift.consumers.json_codec import JsonCodec
from drift.errors import ConfigurationError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drift.consumers.checkpoints.folder import CheckpointFolder
    from drift.consumers.options import WorkerOptions

__all__ = [
    "check_model",
    "check_reads_labels",
    "is_compacted",
    "prepare_folder",
    "prepared",
    "prepared_shadow",
    "refuse_keyed",
    "refuse_shadow",
    "warn_of_compaction",
]

log = logging.getLogger("drift.consumers")


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
        check_reads_labels(codec, options.silence)
        settings |= options.settings()
    folder.configuration = {**(folder.configuration or {}), **settings}


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


def check_reads_labels(codec: Codec, silence: object | None = None) -> None:
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
    >>> check_reads_labels(JsonCodec(require_label=True))
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


def is_compacted(configs: Mapping[str, Mapping[str, str]], topic: str) -> bool:
    """Whether a topic is compacted, as far as its configuration is known.

    Examples
    --------
    >>> is_compacted({"orders": {"cleanup.policy": "compact,delete"}}, "orders")
    True
    """
    return "compact" in configs.get(topic, {}).get("cleanup.policy", "")


def warn_of_compaction(configs: Mapping[str, Mapping[str, str]], options: WorkerOptions) -> None:
    """Warn of topics that lose what the worker reads, or what it sends.

    Parameters
    ----------
    configs
        The configuration of topics, as far as it is known.
    options
        The worker's.
    """
    if options.labels is None and is_compacted(configs, options.topic):
        log.warning(
            "%s is compacted: of messages with one key only the last stays, and those that are "
            "gone before they are learnt are missed by nobody. Set cleanup.policy=delete",
            options.topic,
        )
    for topic in filter(None, options.outputs):
        if is_compacted(configs, topic):
            log.warning(
                "%s is compacted: of what is sent there with one key only the last stays. Set "
                "cleanup.policy=delete",
                topic,
            )
