"""Starting warm: a history that is in no log is learnt, and becomes a group's first checkpoint."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from drift.consumers.checkpoints.files import files_in
from drift.consumers.codec import Example
from drift.consumers.dead_letters import caught
from drift.consumers.json_codec import checked_codec
from drift.consumers.late import learner_of
from drift.consumers.preparing import prepared, prepared_shadow, refuse_keyed
from drift.consumers.shadow import Shadow
from drift.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from drift.consumers.checkpoints.checkpoint import Checkpoint
    from drift.consumers.checkpoints.folder import CheckpointFolder
    from drift.consumers.codec import Codec
    from drift.consumers.learner import Learner
    from drift.consumers.options import WorkerOptions
    from drift.consumers.records import TopicPartition

__all__ = ["refuse_learnt", "warm"]


def refuse_learnt(folder: CheckpointFolder, options: WorkerOptions) -> None:
    """Raise CheckpointError where a model has learnt: a history comes before all else."""
    checkpoint = folder.newest((options.topic, options.partition))
    if checkpoint is not None:
        _refuse(folder, options, checkpoint)


def _refuse(folder: CheckpointFolder, options: WorkerOptions, checkpoint: Checkpoint) -> None:
    raise CheckpointError(
        f"{folder.folder((options.topic, options.partition))} has checkpoint {checkpoint.id}: a "
        "history is learnt before anything else, give another folder and group"
    )


def warm(  # noqa: PLR0913
    model: Any,
    folder: CheckpointFolder,
    options: WorkerOptions,
    history: Iterable[Example | bytes],
    first: Mapping[TopicPartition, int],
    *,
    codec: Codec | None = None,
    identity: Mapping[str, str] | None = None,
    left_out: Callable[[int, Exception | None], None] = lambda *_: None,
    shadow: Any = None,
) -> Checkpoint:
    """Learn a history, and write the checkpoint that a worker starts from.

    Each example is predicted, then learnt, before the next one is: labels do not come late in a
    history. A model that is to learn late labels predicts each as well, so that all of it learns.

    Parameters
    ----------
    model
        As of `Worker`.
    folder
        The worker's.
    options
        The worker's.
    history
        Messages as the topic would have them, with their labels, the oldest first; or examples,
        which the codec makes messages of, so that their features have the names that those of the
        topic have.
    first
        Offsets where the worker starts, by topic and partition: those of the labels, too.
    codec
        The worker's; None for `JsonCodec`.
    identity
        The identity of topics and group, as the worker will find them.
    left_out
        Called with the number of each example that is left out, from 1, and why: it cannot be
        learnt; or None where it has no label.
    shadow
        As of `Worker`: it learns the history, too, and may be promoted in it.

    Returns
    -------
    Checkpoint
        The first; its metrics count the history.

    Raises
    ------
    CheckpointError
        If the folder has a checkpoint of the topic, or it cannot be written; or if nothing was
        learnt. Then nothing was written.
    ParameterError, CheckpointError
        Where the worker would refuse the model, or its shadow.

    Examples
    --------
    >>> import tempfile
    >>> from drift.consumers import CheckpointFolder, WorkerOptions
    >>> from drift.models import LBP
    >>> folder = CheckpointFolder(tempfile.mkdtemp())
    >>> options = WorkerOptions(topic="news", group="readers")
    >>> history = [Example({"rain": 1.0}, True), b'{"features": {"sun": 2}, "label": false}']
    >>> checkpoint = warm(LBP(9), folder, options, history, {("news", 0): 17})
    >>> checkpoint.id, checkpoint.metrics["examples"], checkpoint.offsets
    ('1-1', 2, {('news', 0): 17})
    """
    codec = checked_codec(codec)
    refuse_keyed(codec, "a history")
    model = prepared(model, folder, options, codec)
    shadow = prepared_shadow(shadow, folder, options, codec)
    refuse_learnt(folder, options)
    key = options.topic, options.partition
    options = replace(options, alarm_level=0)  # alarms are about what comes
    learner = learner_of(model.clone(), codec, options)
    learner.configuration = dict(folder.configuration or {})
    learner.shadow = None if shadow is None else Shadow(shadow.clone())
    why: Exception | str = "no example of the history has a label"
    for number, example in enumerate(history, 1):
        is_learnt, problem = caught(_learn, learner, codec, example, number)
        if not is_learnt:
            left_out(number, problem)
            why = problem or why
    if not learner.metrics.examples:
        raise CheckpointError(f"nothing was learnt: {why}")
    epoch, checkpoint = folder.claim(key, identity)
    if checkpoint is not None:
        _refuse(folder, options, checkpoint)
    learner.epoch, learner.identity = epoch, dict(identity or {})
    learner.start(first)
    written = folder.prepare(
        key, learner.snapshot(), join=learner.join_state(), runs=learner.runs.all()
    )()
    files_in(folder.folder(key)).look_again(epoch)
    return written


def _learn(learner: Learner, codec: Codec, source: Example | bytes, number: int) -> bool:
    """Learn an example as the codec reads it; say whether it has a label."""
    example = codec.decode(codec.encode(source) if isinstance(source, Example) else source)
    if example.label is None:
        return False
    learner.learn_history(example, number)
    return True
