r"""The file of a checkpoint, whatever the model in it.

::

    8 bytes   \x89drift\r\n                what the file is; a transfer as text shows
    u32       version of this format and of the models' states, drift._format.FORMAT
    u32, u64  sizes of the header and of the payload, little-endian
    header    JSON: offsets, identity, epoch, sequence, configuration, metrics, versions, time, ...
    payload   the model: of drift.consumers.checkpoints.state, or a pickle; and behind it, as JSON
              of so many bytes as "join" of the header says, the state of labels that come later
    32 bytes  HMAC-SHA256 of everything before, if the header says that it is signed
    32 bytes  SHA-256 of everything before

The first 12 bytes and the last 32 mean the same in every version.
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import json
import struct
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from drift._format import FORMAT, check_format
from drift.consumers.checkpoints.objects import place
from drift.errors import CheckpointError, DamagedCheckpointError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike

    from drift.consumers.checkpoints.objects import ObjectPath

__all__ = [
    "Description",
    "check_signature",
    "describe",
    "load",
    "naming",
    "seal",
]

_MAGIC = b"\x89drift\r\n"
_SIZES = struct.Struct("<8sIIQ")
_DIGEST = 32
#: Seconds since 1970 at the end of what a calendar has.
_END = 253_402_300_800
_NOT_ONE = "no checkpoint of drift"


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


def seal(header: dict[str, Any], payload: bytes, key: bytes | None) -> bytes:
    """Return the file of a header and a model, signed if there is a key."""
    try:
        text = json.dumps(header | {"signed": key is not None}).encode()
    except (TypeError, ValueError, RecursionError) as problem:
        raise CheckpointError(f"configuration and metrics must be JSON: {problem}") from problem
    data = b"".join([_SIZES.pack(_MAGIC, FORMAT, len(text), len(payload)), text, payload])
    if key is not None:
        data += hmac.digest(key, data, "sha256")
    return data + hashlib.sha256(data).digest()


def describe(data: bytes) -> Description:
    """Check a file's checksum and take it apart; the model is not built.

    Parameters
    ----------
    data
        The file.

    Returns
    -------
    Description
        Its parts.

    Raises
    ------
    DamagedCheckpointError
        If these are not the bytes that were written.
    CheckpointError
        If they are in the format of another version of drift.
    """
    if len(data) < _SIZES.size:
        raise DamagedCheckpointError(f"{_NOT_ONE}: {len(data)} bytes")
    magic, version, header_size, payload_size = _SIZES.unpack_from(data)
    if magic != _MAGIC:
        raise DamagedCheckpointError(f"{_NOT_ONE}: it starts with {data[:8]!r}")
    whole = hashlib.sha256(data[:-_DIGEST]).digest() == data[-_DIGEST:]
    if whole:
        check_format("the checkpoint", version)
    body = _SIZES.size + header_size + payload_size
    if len(data) not in {body + _DIGEST, body + 2 * _DIGEST}:
        raise DamagedCheckpointError(f"cut short or damaged: {len(data)} bytes")
    if not whole:
        raise DamagedCheckpointError("damaged: the checksum is wrong")
    signature = data[body:-_DIGEST] or None
    header = _header(data[_SIZES.size : _SIZES.size + header_size])
    payload = data[_SIZES.size + header_size : body]
    return Description(version, header, payload, signature, data[:body])


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
    "configuration": dict,
    "metrics": dict,
    "versions": dict,
}


def _header(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise CheckpointError(f"the header is no JSON: {problem}") from problem
    if not isinstance(header, dict):
        raise CheckpointError("the header is no JSON object")
    for name, kind in _FIELDS.items():
        if not isinstance(header.get(name), kind):
            raise CheckpointError(f"the header has no {name}, or not one of its type")
    if not 0 <= header["time"] < _END:
        raise CheckpointError(f"the header's time is {header['time']!r:.40}")
    for name in ("offsets", "leader_epochs"):
        for entry in header[name]:
            if not isinstance(entry, list) or [*map(type, entry)] != [str, int, int]:
                raise CheckpointError(
                    f"the header's {name} are no list of topic, partition, number"
                )
    return header


def check_signature(description: Description, key: bytes | None) -> None:
    """Refuse a file that is not signed with a key; without a key take any."""
    if key is None:
        return
    if description.signature is None:
        raise CheckpointError(
            "it is not signed, and a key is set: someone else's, or written before the key was; "
            "if it is yours, load it without the key and save it with the key"
        )
    if not hmac.compare_digest(
        hmac.digest(key, description.signed, "sha256"), description.signature
    ):
        raise CheckpointError("its signature is not that of this key: it is not to be trusted")


def load(path: str | PathLike[str] | ObjectPath) -> bytes:
    """Return a file's bytes; FileNotFoundError and CheckpointError say why there are none."""
    try:
        return place(path).read_bytes()
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


def is_whole(path: str | PathLike[str] | ObjectPath) -> bool:
    """Whether there is a file, and its checksum is right."""
    try:
        describe(load(path))
    except (CheckpointError, FileNotFoundError):
        return False
    return True


@contextmanager
def naming(path: str | PathLike[str] | ObjectPath) -> Iterator[None]:
    """Have errors about a checkpoint name its file."""
    try:
        yield
    except CheckpointError as problem:
        raise type(problem)(f"{path}: {problem}") from problem.__cause__
