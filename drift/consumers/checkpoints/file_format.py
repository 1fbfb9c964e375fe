"""The file of a checkpoint, whatever the model in it: a frame of `drift._format`.

Its header is JSON: offsets, identity, epoch, sequence, configuration, metrics, versions, time, ...
Its payload is the model, as `drift.models._state.codec` has it or as a pickle; then,
with the sizes that the header has as "shadow" and "join", the second model and the state
of labels that come later, as JSON, and the values of features that wait.
"""

from __future__ import annotations

import errno
import hmac
import json
from contextlib import contextmanager
from copy import deepcopy
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple

from drift import _format
from drift._durations import END
from drift.consumers.checkpoints.objects import as_path
from drift.consumers.order import Clock
from drift.consumers.records import Position
from drift.errors import CheckpointError, DamagedCheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from os import PathLike

    from drift.consumers.checkpoints.objects import ObjectPath
    from drift.consumers.records import TopicPartition

__all__ = [
    "FIELDS",
    "Description",
    "Written",
    "check_signature",
    "describe",
    "id_of",
    "load",
    "naming",
    "next_offsets",
    "seal",
    "written",
    "written_id",
]


class Description(NamedTuple):
    """What a file says of itself, its checksum right, its model not yet built.

    Attributes
    ----------
    version
        Version of the format.
    header
        Offsets, configuration and the rest, as JSON has them.
    payload
        The model's bytes.
    signature
        HMAC-SHA256 of `signed`; None where the file has none.
    signed
        The bytes that are signed.
    """

    version: int
    header: dict[str, Any]
    payload: bytes
    signature: bytes | None
    signed: bytes


def seal(header: dict[str, Any], payload: Sequence[bytes], secret: bytes | None) -> bytes:
    """Return the file of a header and the parts of a payload, signed if there is a key."""
    try:
        text = json.dumps(header | {"signed": secret is not None}).encode()
    except (TypeError, ValueError, RecursionError) as problem:
        raise CheckpointError(f"configuration and metrics must be JSON: {problem}") from problem
    return _format.seal(text, payload, secret)


def describe(data: bytes) -> Description:
    """Return the parts of a file's bytes, as `drift._format.unseal` does; no model is built."""
    frame = _format.unseal("checkpoint", data)
    return Description(**frame._asdict() | {"header": _header(frame.header)})


def _entries(numbers: Mapping[TopicPartition, int]) -> list[list[Any]]:
    return [[*place, n] for place, n in sorted(numbers.items())]


def _numbers(entries: list[list[Any]]) -> dict[TopicPartition, int]:
    return {(topic, partition): n for topic, partition, n in entries}


def _clock_entries(clocks: Mapping[TopicPartition, Clock]) -> list[list[Any]]:
    return [[*place, *clock] for place, clock in sorted(clocks.items())]


def _clocks(entries: list[list[Any]]) -> dict[TopicPartition, Clock]:
    return {(topic, partition): Clock(time, far) for topic, partition, time, far in entries}


def _positions(entries: list[list[Any]]) -> list[Position]:
    return [Position(*entry) for entry in entries]


def _as_it_is(value: Any) -> Any:
    return value


class Field(NamedTuple):
    """How the header has an attribute of a `Checkpoint`.

    Attributes
    ----------
    kind
        Its type there.
    stored, read
        What makes it of the attribute, and the attribute of it.
    entries
        The types in each entry of a list.
    default
        What it is in a header that lacks it; ``...`` where that is refused.
    """

    kind: Any
    stored: Callable[[Any], Any] = _as_it_is
    read: Callable[[Any], Any] = _as_it_is
    entries: Sequence[Sequence[type]] = ()
    default: Any = ...


_PLACE = str, int
#: The attributes of a `Checkpoint` that the header has.
FIELDS = {
    "time": Field((int, float)),
    "epoch": Field(int),
    "sequence": Field(int),
    "offsets": Field(list, _entries, _numbers, [[*_PLACE, int]]),
    "identity": Field(dict, dict),
    "leader_epochs": Field(list, _entries, _numbers, [[*_PLACE, int]]),
    "clocks": Field(list, _clock_entries, _clocks, [[*_PLACE, int, int], [*_PLACE, int, NoneType]]),
    "configuration": Field(dict, dict),
    "metrics": Field(dict, dict),
    "answering": Field(dict, dict, default={}),
    "digest": Field(int, default=0),
    "promotions": Field(list, list, default=[]),
    "skips": Field(list, list, _positions, [[*_PLACE, int]], default=[]),
    "models": Field((list, NoneType), entries=[[int, int]], default=None),
    "is_blank": Field(bool, default=False),
}
#: The types of what else it has.
_MORE = {"model": str, "payload": str, "signed": bool, "versions": dict}
#: The same of its shadow, if it has one, and of each promotion.
_OF_SHADOW = {"model": str, "payload": str, "size": int, "state": dict}
_OF_PROMOTION = {"number": int, "promoted": dict, "replaced": dict}


def _header(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise CheckpointError(f"the header is no JSON: {problem}") from problem
    if not isinstance(header, dict):
        raise CheckpointError("the header is no JSON object")
    defaults = {name: deepcopy(of.default) for name, of in FIELDS.items() if of.default is not ...}
    header = defaults | header
    for name, kind in (_MORE | {name: of.kind for name, of in FIELDS.items()}).items():
        if not isinstance(header.get(name, ...), kind):
            raise CheckpointError(f"the header has no {name}, or not one of its type")
    if not 0 <= header["time"] < END:
        raise CheckpointError(f"the header's time is {header['time']!r:.40}")
    _check_shadow(header)
    for name, of in FIELDS.items():
        if of.entries and not all(
            isinstance(entry, list) and [*map(type, entry)] in of.entries
            for entry in header[name] or ()
        ):
            raise CheckpointError(f"the header's {name} are no list of what they should be")
    return header


def _check_shadow(header: dict[str, Any]) -> None:
    if "shadow" in header and not _has(header["shadow"], _OF_SHADOW):
        raise CheckpointError("the header's shadow has not what it needs")
    if not all(_has(promotion, _OF_PROMOTION) for promotion in header["promotions"]):
        raise CheckpointError("the header's promotions do not say what was promoted")


def _has(value: Any, kinds: dict[str, type]) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(n), k) for n, k in kinds.items())


def written_id(epoch: int, sequence: int) -> str:
    """Return a checkpoint's identifier, as ``"3-17"``: no two of a folder share one."""
    return f"{epoch}-{sequence}"


def id_of(header: Mapping[str, Any]) -> str:
    """Return the identifier of the checkpoint with a header."""
    return written_id(header["epoch"], header["sequence"])


def next_offsets(header: Mapping[str, Any]) -> dict[TopicPartition, int]:
    """Return the next offsets of the checkpoint with a header, by topic and partition."""
    return _numbers(header["offsets"])


def check_signature(description: Description | _format.Frame, secret: bytes | None) -> None:
    """Refuse a file that is not signed with a key; without a key take any."""
    if secret is None:
        return
    if description.signature is None:
        raise CheckpointError(
            "it is not signed, and a key is set: someone else's, or written before the key was; "
            "if it is yours, start another folder and group with the key"
        )
    if not hmac.compare_digest(
        hmac.digest(secret, description.signed, "sha256"), description.signature
    ):
        raise CheckpointError("its signature is not that of this key: it is not to be trusted")


def load(path: str | PathLike[str] | ObjectPath) -> bytes:
    """Return a file's bytes; FileNotFoundError and CheckpointError say why there are none."""
    try:
        return as_path(path).read_bytes()
    except FileNotFoundError:
        raise
    except IsADirectoryError:
        what = (
            "is a folder, not a checkpoint: drift checkpoint show has the newest of each partition"
        )
        raise CheckpointError(what) from None
    except OSError as problem:
        unreadable = DamagedCheckpointError if problem.errno == errno.EIO else CheckpointError
        raise unreadable(f"cannot be read: {problem.strerror or problem}") from problem


class Written(NamedTuple):
    """When a file was written, and the id of the checkpoint that it replaced by hand."""

    time: float
    replaced: str | None = None


def written(path: str | PathLike[str] | ObjectPath) -> Written | None:
    """Return when a file was written, and what it replaced; None if it is damaged, or not there.

    Raises
    ------
    CheckpointError
        If it cannot be read now.
    """
    try:
        data = load(path)
    except (DamagedCheckpointError, FileNotFoundError):
        return None
    try:
        header = describe(data).header
    except CheckpointError:
        return None
    replaced = header.get("replaced")
    return Written(float(header["time"]), replaced if isinstance(replaced, str) else None)


@contextmanager
def naming(path: str | PathLike[str] | ObjectPath) -> Iterator[None]:
    """Have errors about a checkpoint name its file."""
    try:
        yield
    except CheckpointError as problem:
        raise type(problem)(f"{path}: {problem}") from problem.__cause__
