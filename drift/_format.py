r"""The format of what is stored: one number for checkpoints, bytes and pickles of models.

A checkpoint is a frame, and so are the bytes of a model, which have no header::

    8 bytes   \x89drift\r\n                what it is; a transfer as text shows
    u32       version of the format, FORMAT, in which the model's state is, too
    u32, u64  sizes of the header and of the payload, little-endian
    header
    payload
    32 bytes  HMAC-SHA256 of everything before, if it is signed
    32 bytes  SHA-256 of everything before

The first 12 bytes and the last 32 mean the same in every version.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from typing import TYPE_CHECKING, NamedTuple

from drift import __version__
from drift.errors import CheckpointError, DamagedCheckpointError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["FORMAT", "Frame", "check_format", "digest_of", "seal", "unseal"]

_MAGIC = b"\x89drift\r\n"
_SIZES = struct.Struct("<8sIIQ")
_DIGEST = 32

#: The only one that is read so far; it rises when earlier versions could not read what is written.
FORMAT = 5


def check_format(what: str, found: int) -> None:
    """Refuse, with CheckpointError, what was written in another format.

    Parameters
    ----------
    what
        What it is, for the message.
    found
        Its version of the format.
    """
    if found == FORMAT:
        return
    remedy = "train a new model, from the data or, with another folder and group, from the topic"
    raise CheckpointError(
        f"{what} was written in version {found} of the format, and drift {__version__} reads "
        f"version {FORMAT}: install the drift that wrote it, or "
        f"{'a newer one' if found > FORMAT else remedy}"
    )


def digest_of(data: bytes) -> bytes:
    """Return the SHA-256 that a frame ends with; `unseal` checks it."""
    return data[-_DIGEST:]


class Frame(NamedTuple):
    """What is in a frame whose checksum is right.

    Attributes
    ----------
    version
        Version of the format.
    header, payload
        As they were given.
    signature
        HMAC-SHA256 of `signed`; None where it is not signed.
    signed
        The bytes that are signed; empty where none are.
    """

    version: int
    header: bytes
    payload: bytes
    signature: bytes | None
    signed: bytes


def seal(header: bytes, payload: Sequence[bytes], secret: bytes | None = None) -> bytes:
    """Return the frame of a header and the parts of a payload, signed if there is a key."""
    sizes = _SIZES.pack(_MAGIC, FORMAT, len(header), sum(map(len, payload)))
    data = b"".join([sizes, header, *payload])
    if secret is not None:
        data += hmac.digest(secret, data, "sha256")
    return data + hashlib.sha256(data).digest()


def unseal(what: str, data: bytes) -> Frame:
    """Check a frame's checksum and take it apart.

    Parameters
    ----------
    what
        What it is, for the messages.
    data
        The frame.

    Raises
    ------
    DamagedCheckpointError
        If these are not the bytes that were written.
    CheckpointError
        If they are in the format of another version of drift.
    """
    if len(data) < _SIZES.size:
        raise DamagedCheckpointError(f"no {what} of drift: {len(data)} bytes")
    magic, version, header_size, payload_size = _SIZES.unpack_from(data)
    if magic != _MAGIC:
        raise DamagedCheckpointError(f"no {what} of drift: it starts with {data[:8]!r}")
    whole = hashlib.sha256(memoryview(data)[:-_DIGEST]).digest() == data[-_DIGEST:]
    if whole:
        check_format(f"the {what}", version)
    middle = _SIZES.size + header_size
    body = middle + payload_size
    if len(data) not in {body + _DIGEST, body + 2 * _DIGEST}:
        raise DamagedCheckpointError(f"cut short or damaged: {len(data)} bytes")
    if not whole:
        raise DamagedCheckpointError("damaged: the checksum is wrong")
    signature = data[body:-_DIGEST] or None
    signed = data[:body] if signature else b""
    return Frame(version, data[_SIZES.size : middle], data[middle:body], signature, signed)
