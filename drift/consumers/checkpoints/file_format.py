r"""The file of a checkpoint, whatever the model in it.

::

    8 bytes   \x89drift\r\n                what the file is; a transfer as text shows
    u32       version of this format and of the models' states, drift._format.FORMAT
    u32, u64  sizes of the header and of the payload, little-endian
    header    JSON: offsets, identity, epoch, sequence, configuration, metrics, versions, time, ...
    payload   the model: of drift.consumers.checkpoints.state, or a pickle; behind it, of so many
              bytes as "shadow" of the header says, a second one; and, of so many as "join" says,
              the state of labels that come later, as JSON, and the values of features that wait
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
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple

from drift._format import FORMAT, check_format
from drift.consumers.checkpoints.objects import place
from drift.errors import CheckpointError, DamagedCheckpointError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
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


def seal(header: dict[str, Any], payload: Sequence[bytes], key: bytes | None) -> bytes:
    """Return the file of a header and the parts of a payload, signed if there is a key."""
    try:
        text = json.dumps(header | {"signed": key is not None}).encode()
    except (TypeError, ValueError, RecursionError) as problem:
        raise CheckpointError(f"configuration and metrics must be JSON: {problem}") from problem
    sizes = _SIZES.pack(_MAGIC, FORMAT, len(text), sum(map(len, payload)))
    data = b"".join([sizes, text, *payload])
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
    "clocks": list,
    "configuration": dict,
    "metrics": dict,
    "versions": dict,
    "promotions": list,
}

#: The types in each entry of its lists.
_ENTRIES: dict[str, list[list[type]]] = {
    "offsets": [[str, int, int]],
    "leader_epochs": [[str, int, int]],
    "clocks": [[str, int, int, int], [str, int, int, NoneType]],
}


def _header(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise CheckpointError(f"the header is no JSON: {problem}") from problem
    if not isinstance(header, dict):
        raise CheckpointError("the header is no JSON object")
    header.setdefault("clocks", [])  # of models that learnt before partitions had a time
    header.setdefault("promotions", [])
    for name, kind in _FIELDS.items():
        if not isinstance(header.get(name), kind):
            raise CheckpointError(f"the header has no {name}, or not one of its type")
    if not 0 <= header["time"] < _END:
        raise CheckpointError(f"the header's time is {header['time']!r:.40}")
    if not all(map(_is_promotion, header["promotions"])):
        raise CheckpointError("the header's promotions do not say what was promoted")
    for name, kinds in _ENTRIES.items():
        for entry in header[name]:
            if not isinstance(entry, list) or [*map(type, entry)] not in kinds:
                raise CheckpointError(
                    f"the header's {name} are no list of topic, partition and numbers"
                )
    return header


def _is_promotion(one: Any) -> bool:
    kinds = {"number": int, "promoted": dict, "replaced": dict}
    return isinstance(one, dict) and all(isinstance(one.get(n), k) for n, k in kinds.items())


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
