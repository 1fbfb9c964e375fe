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
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple

from drift import _format
from drift._durations import END
from drift.consumers.checkpoints.objects import as_path
from drift.errors import CheckpointError, DamagedCheckpointError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from os import PathLike

    from drift.consumers.checkpoints.objects import ObjectPath

__all__ = [
    "Description",
    "check_signature",
    "describe",
    "id_of",
    "load",
    "naming",
    "seal",
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


#: What a header holds, and of what type.
_FIELDS: dict[str, Any] = {
    "model": str,
    "payload": str,
    "signed": bool,
    "time": (int, float),
    "epoch": int,
    "sequence": int,
    "offsets": list,
    "identity": dict,
    "leader_epochs": list,
    "clocks": list,
    "configuration": dict,
    "metrics": dict,
    "answering": dict,
    "digest": int,
    "versions": dict,
    "promotions": list,
}
#: The same of its shadow, if it has one, and of each promotion.
_OF_SHADOW = {"model": str, "payload": str, "size": int, "state": dict}
_OF_PROMOTION = {"number": int, "promoted": dict, "replaced": dict}

#: The types in each entry of its lists.
_ENTRIES: dict[str, list[list[type]]] = {
    "offsets": [[str, int, int]],
    "leader_epochs": [[str, int, int]],
    "clocks": [[str, int, int, int], [str, int, int, NoneType]],
    "models": [[int, int]],
    "skips": [[str, int, int]],
}


def _header(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise CheckpointError(f"the header is no JSON: {problem}") from problem
    if not isinstance(header, dict):
        raise CheckpointError("the header is no JSON object")
    header.setdefault("promotions", [])
    header.setdefault("answering", {})
    header.setdefault("digest", 0)
    for name, kind in _FIELDS.items():
        if not isinstance(header.get(name), kind):
            raise CheckpointError(f"the header has no {name}, or not one of its type")
    if not 0 <= header["time"] < END:
        raise CheckpointError(f"the header's time is {header['time']!r:.40}")
    _check_shadow(header)
    for name, kinds in _ENTRIES.items():
        entries = header.get(name, [])
        if not isinstance(entries, list) or not all(
            isinstance(entry, list) and [*map(type, entry)] in kinds for entry in entries
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


def id_of(header: Mapping[str, Any]) -> str:
    """Return a checkpoint's identifier: epoch and sequence."""
    return f"{header['epoch']}-{header['sequence']}"


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


def written_at(path: str | PathLike[str] | ObjectPath) -> float | None:
    """Return when a file was written; None if there is none, or it is damaged.

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
        return float(describe(data).header["time"])
    except CheckpointError:
        return None


@contextmanager
def naming(path: str | PathLike[str] | ObjectPath) -> Iterator[None]:
    """Have errors about a checkpoint name its file."""
    try:
        yield
    except CheckpointError as problem:
        raise type(problem)(f"{path}: {problem}") from problem.__cause__
