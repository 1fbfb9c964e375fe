"""A checkpoint: a model and its offsets, which change together.

A checksum detects accidents, not forgeries: loading drift's own models runs nothing of the
file, and a pickle is loaded only if allowed, after its HMAC was verified if a key is given.
"""

from __future__ import annotations

import pickle
import time as clock
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib.metadata import version
from platform import python_version
from typing import TYPE_CHECKING, Any

from drift import __version__
from drift.consumers._json import library
from drift.consumers.checkpoints.file_format import (
    FIELDS,
    Description,
    check_signature,
    describe,
    seal,
    written_id,
)
from drift.errors import CheckpointError
from drift.models._state import codec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from drift.consumers.order import Clock
    from drift.consumers.records import Position, TopicPartition

__all__ = [
    "Checkpoint",
    "check_readable",
    "decode_model",
    "encode_model",
    "encoding",
    "from_bytes",
    "split",
    "to_bytes",
    "verify",
]


@dataclass(frozen=True)
class Checkpoint:
    """A model with its next offsets, and what belongs to them.

    `drift.consumers.checkpoints.file_format.FIELDS` has how each is stored.

    Parameters
    ----------
    model
        Any classifier; drift's own are stored without pickle.
    offsets
        Next offset to learn, by topic and partition.
    epoch
        Number of the claim under which it was written; see `CheckpointFolder`.
    sequence
        Its number among the checkpoints of that epoch, from 1.
    configuration
        What must be the same to continue: JSON values by name.
    metrics
        What is counted across restarts: a JSON value by name.
    time
        When it was made, seconds since 1970.
    identity
        The identity of its topic, as far as the broker has it:
        ``topic_id``, ``cluster_id``.
    leader_epochs
        Leader epoch of the last message learnt, by topic and partition; -1 where it is not known.
    clocks
        Time by topic and partition; see `drift.consumers.order`.
    join
        State of `drift.consumers.join.Join`, where labels have a topic of their own; else None.
    shadow
        A second model, and the state of `drift.consumers.shadow.Shadow`; None for none.
    promotions
        The last promotions of a shadow: see `drift.consumers.shadow.promotion`.
    models
        Lineage of the models of keys, which are beside it: see
        `drift.consumers.checkpoints.keyed_file`; None where there are none.
    digest
        Of all that the model has learnt: see `drift.consumers.learner.Learner`.
    answering
        State of `drift.consumers.answers.Answering`.
    skips
        Messages that are to be left out, as `drift checkpoint skip` says.
    is_blank
        Whether a worker wrote it to note where it starts: any configuration continues it.
    is_signed
        Whether it was read from a file with a signature.

    Examples
    --------
    >>> from drift.models import LBP
    >>> checkpoint = Checkpoint(LBP(budget=3), {("news", 0): 17}, configuration={"budget": 3})
    >>> describe(to_bytes(checkpoint)).header["offsets"]
    [['news', 0, 17]]
    """

    model: Any
    offsets: Mapping[TopicPartition, int]
    epoch: int = 0
    sequence: int = 0
    configuration: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    time: float = field(default_factory=clock.time)
    identity: Mapping[str, str] = field(default_factory=dict)
    leader_epochs: Mapping[TopicPartition, int] = field(default_factory=dict)
    clocks: Mapping[TopicPartition, Clock] = field(default_factory=dict)
    join: tuple[Mapping[str, Any], bytes] | None = None
    shadow: tuple[Any, Mapping[str, Any]] | None = None
    promotions: Sequence[Mapping[str, Any]] = ()
    models: Sequence[Sequence[int]] | None = None
    digest: int = 0
    answering: Mapping[str, Any] = field(default_factory=dict)
    skips: Sequence[Position] = ()
    is_blank: bool = False
    is_signed: bool = False

    @property
    def id(self) -> str:
        """Epoch and sequence, as ``"3-17"``: no two checkpoints of a folder share them."""
        return written_id(self.epoch, self.sequence)


@lru_cache
def _versions() -> dict[str, str]:
    return {
        "drift": __version__,
        "python": python_version(),
        "river": version("river"),
        "numpy": version("numpy"),
    }


def to_bytes(
    checkpoint: Checkpoint,
    *,
    secret: bytes | None = None,
    allow_pickle: bool = False,
    encoded: Sequence[tuple[bytes, str]] = (),
) -> bytes:
    """Return a checkpoint as the bytes of its file.

    Parameters
    ----------
    checkpoint
        The checkpoint.
    secret
        Sign it with this.
    allow_pickle
        Pickle a model that is not of drift's own; loading it needs this, too.
    encoded
        What `encode_model` made of its model, and of its shadow, if that is done.

    Returns
    -------
    bytes
        The file.

    Raises
    ------
    CheckpointError
        If the model cannot be stored, or the configuration or metrics are no JSON.
    """
    models = [checkpoint.model, *(checkpoint.shadow or ())[:1]]
    encoded = encoded or [encode_model(model, allow_pickle=allow_pickle) for model in models]
    payload, kind = encoded[0]
    header = {
        "model": type(checkpoint.model).__name__,
        "payload": kind,
        **{name: of.stored(getattr(checkpoint, name)) for name, of in FIELDS.items()},
        "versions": _versions(),
    }
    parts = [payload]
    if checkpoint.shadow is not None:
        second, kind = encoded[1]
        parts.append(second)
        header["shadow"] = {
            "model": type(models[1]).__name__,
            "payload": kind,
            "size": len(second),
            "state": dict(checkpoint.shadow[1]),
        }
    if checkpoint.join is not None:  # after the model, so that the header stays small
        state, values = checkpoint.join
        parts += [library()[1](state), values]
        header["join"] = [*map(len, parts[-2:])]
    return seal(header, parts, secret)


def encode_model(
    model: Any, *, allow_pickle: bool = False, narrow: bool = True
) -> tuple[bytes, str]:
    """Return the bytes of a model and their format; CheckpointError if it cannot be stored."""
    try:
        return codec.encode(model, narrow=narrow), "drift"
    except CheckpointError as problem:
        if not allow_pickle:
            raise
        try:
            return pickle.dumps(model, protocol=5), "pickle"
        except Exception as also:  # whatever the model's own code raises
            raise CheckpointError(
                f"the model can neither be stored ({problem}) nor pickled ({also})"
            ) from also


def encoding(model: Any, *, allow_pickle: bool = False) -> Callable[[], tuple[bytes, str]]:
    """Return a function that encodes a model as it is now, on any thread.

    A model with `_snapshot` may learn while it is encoded; any other is encoded here.
    For a Tracker with 100,000 tickets it takes 30 ms.

    Raises
    ------
    CheckpointError
        If the model cannot be stored; the function may raise it, too.
    """
    snapshot = getattr(model, "_snapshot", None)
    if snapshot is not None:
        return partial(encode_model, snapshot(), allow_pickle=allow_pickle)
    encoded = encode_model(model, allow_pickle=allow_pickle)
    return lambda: encoded


def check_readable(encoded: Sequence[tuple[bytes, str]]) -> None:
    """Refuse what `encode_model` made of drift's own models if it could not be read again.

    Raises
    ------
    CheckpointError
        If a model cannot be built from it, as where a number has overflowed: it names the array.
    """
    for payload, kind in encoded:
        if kind != "drift":
            continue
        try:
            codec.decode(payload)
        except CheckpointError as problem:
            raise CheckpointError(
                f"the model could not be read again, so that it is not written: {problem}. The "
                "checkpoint before stays; to continue from that, start the worker again, and leave "
                "out the message that did it by drift checkpoint skip"
            ) from None


def verify(data: bytes, *, secret: bytes | None = None) -> Description:
    """Check everything that can be checked without running what is in the file.

    Parameters
    ----------
    data
        The file.
    secret
        Key that it must be signed with; None to leave the signature out.

    Returns
    -------
    Description
        Its parts.

    Raises
    ------
    CheckpointError
        If the checksum or signature is wrong, or a model of drift's own cannot be built from it.
    """
    description = describe(data)
    check_signature(description, secret)
    models, _ = split(description)
    for header, payload in models:
        if header["payload"] == "drift":
            codec.decode(payload)
    return description


def split(
    description: Description,
) -> tuple[list[tuple[Mapping[str, Any], bytes]], tuple[Any, bytes] | None]:
    """Return model and shadow, each with its header and bytes; and the join.

    Raises
    ------
    CheckpointError
        If the sizes do not fit the payload.
    """
    header = description.header
    payload, join = _joined(description)
    shadow = header.get("shadow")
    if shadow is None:
        return [(header, payload)], join
    size = len(payload) - shadow["size"]
    if not 0 <= size <= len(payload):
        raise CheckpointError(f"the header's shadow has {shadow['size']!r:.40} bytes")
    return [(header, payload[:size]), (shadow, payload[size:])], join


def _joined(description: Description) -> tuple[bytes, tuple[Any, bytes] | None]:
    """Return the models' bytes, and the state of the join."""
    sizes, payload = description.header.get("join"), description.payload
    if sizes is None:
        return payload, None
    if not isinstance(sizes, list) or [*map(type, sizes)] != [int, int] or min(sizes) < 0:
        raise CheckpointError(f"the header's join is {sizes!r:.40}, not two numbers of bytes")
    first, second = len(payload) - sum(sizes), len(payload) - sizes[1]
    if first < 0:
        raise CheckpointError(f"the header's join is {sizes!r:.40}, more bytes than there are")
    try:
        return payload[:first], (library()[0](payload[first:second]), payload[second:])
    except (ValueError, RecursionError) as problem:
        raise CheckpointError(f"the state of its labels is no JSON: {problem}") from problem


def with_join(
    description: Description,
    change: Callable[[Any, bytes], tuple[Mapping[str, Any], bytes]],
) -> tuple[dict[str, Any], list[bytes]]:
    """Return header and payload with another state of late labels, where there is one."""
    payload, join = _joined(description)
    if join is None:
        return description.header, [payload]
    try:
        state, values = change(*join)
    except (AttributeError, KeyError, TypeError, ValueError, IndexError) as problem:
        raise CheckpointError(f"it has no state of labels: {problem!r:.80}") from problem
    parts = [library()[1](state), values]
    return description.header | {"join": [*map(len, parts)]}, [payload, *parts]


def from_bytes(
    data: bytes, *, secret: bytes | None = None, allow_pickle: bool = False
) -> Checkpoint:
    """Return the checkpoint that a file holds.

    Parameters
    ----------
    data
        The file.
    secret
        Key that it must be signed with; None to leave the signature out.
    allow_pickle
        Load a pickle, which runs what is in it.

    Returns
    -------
    Checkpoint
        Its model continues exactly as the one that was stored.

    Raises
    ------
    DamagedCheckpointError
        If these are not the bytes that were written.
    CheckpointError
        If it is in another format, not signed with this key, forged, or a pickle that is not
        allowed.

    Examples
    --------
    >>> from drift.models import LBP
    >>> from_bytes(to_bytes(Checkpoint(LBP(budget=3), {("news", 0): 17}))).offsets
    {('news', 0): 17}
    """
    description = describe(data)
    check_signature(description, secret)
    header = description.header
    models, join = split(description)
    model, *shadow = (
        decode_model(payload, header["payload"], allow_pickle=allow_pickle)
        for header, payload in models
    )
    return Checkpoint(
        model,
        join=join,
        shadow=(shadow[0], header["shadow"]["state"]) if shadow else None,
        is_signed=description.signature is not None,
        **{name: of.read(header[name]) for name, of in FIELDS.items()},
    )


def decode_model(payload: bytes, kind: str, *, allow_pickle: bool) -> Any:
    """Build a model from the bytes and the format that `encode_model` returned.

    Raises
    ------
    CheckpointError
        If it cannot be built, or is a pickle, and that is not allowed.
    """
    if kind == "drift":
        return codec.decode(payload)
    if kind != "pickle":
        raise CheckpointError(f"the model is stored as {kind!r:.40}, which drift does not know")
    if not allow_pickle:
        raise CheckpointError(
            "the model is stored as a pickle, and loading one runs what is in it. If you trust "
            "everybody who can write to the folder: CheckpointFolder(..., allow_pickle=True), or "
            "--allow-pickle"
        )
    try:
        return pickle.loads(payload)
    except Exception as problem:  # whatever the model's own code raises
        raise CheckpointError(
            f"the pickled model cannot be loaded here: {type(problem).__name__}: {problem}"
        ) from problem
