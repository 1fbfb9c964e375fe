"""The logs for `drift checkpoint relearn`, and whether what they make is what a checkpoint has."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

from drift.consumers.checkpoints.agreement import agree
from drift.consumers.checkpoints.checkpoint import decode_model, encode_model, split
from drift.consumers.checkpoints.file_format import check_signature, id_of, naming
from drift.consumers.checkpoints.files import stored
from drift.consumers.checkpoints.rollback import meant
from drift.consumers.client.topics import Reader
from drift.consumers.relearning import gone
from drift.errors import CheckpointError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from drift.consumers import CheckpointFolder
    from drift.consumers.checkpoints.file_format import Description
    from drift.consumers.checkpoints.files import ModelFolder
    from drift.consumers.order import LearntRuns
    from drift.consumers.records import Message, TopicPartition

__all__ = ["checked", "compared", "ends_of", "logs_of", "new_file", "untrained"]


def ends_of(runs: LearntRuns) -> dict[TopicPartition, int]:
    """Return up to which offset each partition was learnt."""
    return {place: upto for run in runs for place, upto in run.items()}


@contextmanager
def logs_of(
    runs: LearntRuns,
    reading: Mapping[str, Any],
    *,
    identity: Mapping[str, str] | None = None,
    labels: str | None = None,
) -> Iterator[dict[TopicPartition, Iterator[Message]]]:
    """Open the logs of what was learnt, each from where it was started to where it ended.

    Each partition has a client of its own: one for all would fetch again what it has fetched
    whenever the order goes from one partition to another.

    Parameters
    ----------
    runs
        In which order it was learnt.
    reading
        Options of kafka-python.
    identity
        That of the topics as they were learnt, as far as it is known.
    labels
        The topic of labels; None where there is none.

    Raises
    ------
    ConsumerError
        If there is no such topic or partition.
    CheckpointError
        If messages are deleted, or a topic is another one.
    """
    logs, begins = {}, {}
    bounds: dict[str, tuple[dict[int, int], dict[int, int]]] = {}  # of all partitions, by topic
    with ExitStack() as stack:
        for place, upto in ends_of(runs).items():
            topic, number = place
            reader = stack.enter_context(Reader(topic, reading))
            reader.require(number)
            if topic not in bounds:
                _refuse_another(topic, identity or {}, reader.identity(of_labels=topic == labels))
                bounds[topic] = reader.beginnings(), reader.ends()
            beginnings, ends = bounds[topic]
            first = runs.first.get(place, 0)
            begins[place] = first, beginnings[number]
            logs[place] = reader.read({number: min(upto, ends[number])}, {number: first})
        if lost := ", ".join(gone(begins)):
            raise CheckpointError(f"{lost}: what is deleted cannot be learnt again")
        yield logs


def _refuse_another(topic: str, before: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Refuse a topic that is not the one which was learnt."""
    changed = [
        f"{name} {before[name]} then, {value} now"
        for name, value in now.items()
        if before.get(name, value) != value
    ]
    if changed:
        raise CheckpointError(
            f"{topic} is another one than was learnt ({', '.join(changed)}): give the broker that "
            "has it. What was recreated cannot be learnt again"
        )


@contextmanager
def new_file(file: Path | None) -> Iterator[BinaryIO | None]:
    """Open a new file, which gets its name once it is whole; None for none.

    Raises
    ------
    ParameterError
        If there is such a file.
    """
    if file is None:
        yield None
        return
    if file.exists():
        raise ParameterError(f"{file} is there: give another name to --out, or remove it")
    part = file.with_name(f"{file.name}.part")
    with part.open("wb") as opened:
        yield opened
    part.replace(file)


def checked(
    files: ModelFolder, to: str | None, folder: CheckpointFolder, warn: Callable[[str], None]
) -> tuple[str, Description | None]:
    """Return a checkpoint and its id; with None where its file is gone, which has an order still.

    Parameters
    ----------
    files
        The files of the model.
    to
        The id, or a time, as of `drift.consumers.checkpoints.rollback.plan`; None for the newest.
    folder
        The folder, with the worker's configuration.
    warn
        Called with a line for each checkpoint that is skipped, as it cannot be used.

    Raises
    ------
    CheckpointError
        If there is none, or it is not signed with the folder's key.
    ConfigurationError
        If it was written under another configuration.
    """
    which, is_meant = ("that can be used", lambda _: True) if to is None else meant(to)
    found = next((one for one in stored(files, warn) if is_meant(one.header)), None)
    if found is None:
        if which != to:
            raise CheckpointError(f"{files.path} has no checkpoint {which}")
        return to, None
    header = found.header
    path = files.file(header["epoch"], header["sequence"])
    with naming(path):
        check_signature(found, folder.secret)
    replaced = header["promotions"][-1]["replaced"] if header["promotions"] else None
    agree(path, header["configuration"], folder.configuration or {}, replaced, follows=True)
    return id_of(header), found


def untrained(found: Description | None) -> Any:
    """Return the model of a checkpoint as it was before it learnt anything.

    The configuration has its parameters as JSON and with their defaults, so that a model built of
    that may differ from it, by a list in place of a tuple say.

    Returns
    -------
    model or None
        None if the checkpoint's is a pickle, or was a shadow before a promotion.
    """
    if found is None or found.header["payload"] != "drift" or found.header["promotions"]:
        return None
    [(_, payload), *_], _ = split(found)
    return decode_model(payload, "drift", allow_pickle=False).clone()


def compared(found: Description | None, model: Any, *, allow_pickle: bool) -> str:
    """Say whether a model is that of a checkpoint, which is None where its file is gone.

    Raises
    ------
    CheckpointError
        If it is another.
    """
    if found is None:
        return "the same was learnt and predicted; its file is gone, so the model is not compared"
    kind = found.header["payload"]
    if kind == "pickle":
        return "the same was learnt and predicted; its model is a pickle and is not compared"
    [(_, payload), *_], _ = split(found)
    if encode_model(decode_model(payload, kind, allow_pickle=allow_pickle)) != encode_model(model):
        written = ", ".join(
            f"{name} {version}" for name, version in found.header["versions"].items()
        )
        raise CheckpointError(
            f"the model differs from that of {id_of(found.header)}, though the same was learnt. "
            f"That was written with {written}: with other versions, or on another kind of "
            "processor, models are equal up to rounding alone"
        )
    return "the model is equal to the last bit"
