r"""One file for all that has to change together: the model, and the offsets it has learnt up to.

::

    8 bytes   \x89drift\r\n                what the file is; a transfer as text shows
    u32       version of this format, 1
    u32, u64  sizes of the header and of the payload, little-endian
    header    JSON: offsets, epoch, sequence, configuration, metrics, versions, time, ...
    payload   the model: of drift.consumers._state, or a pickle
    32 bytes  HMAC-SHA256 of everything before, if the header says that it is signed
    32 bytes  SHA-256 of everything before

The first 12 bytes and the last 32 mean the same in every version. A checksum tells accidents, not
forgeries: loading drift's own models runs nothing that is in the file, and a pickle is loaded where
that is allowed, and after its HMAC was verified if a key is given.
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import json
import pickle
import struct
import time as clock
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from drift import __version__
from drift.consumers import _state
from drift.errors import CheckpointError, DamagedCheckpointError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from os import PathLike

__all__ = [
    "VERSION",
    "Checkpoint",
    "Description",
    "describe",
    "from_bytes",
    "load",
    "naming",
    "read",
    "to_bytes",
    "verify",
]

#: Version of the format that is written; this and older ones are read.
VERSION = 1

_MAGIC = b"\x89drift\r\n"
_SIZES = struct.Struct("<8sIIQ")
_DIGEST = 32
_NOT_ONE = "no checkpoint of drift"


@dataclass(frozen=True)
class Checkpoint:
    """A model with the offsets that it has learnt up to, and what belongs to them.

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
        What must be the same to go on: JSON values by name.
    metrics
        What is counted across restarts: a JSON value by name.
    time
        When it was made, seconds since 1970.

    Examples
    --------
    >>> from drift.models import LBP
    >>> checkpoint = Checkpoint(LBP(budget=3), {("news", 0): 17}, configuration={"budget": 3})
    >>> describe(to_bytes(checkpoint)).header["offsets"]
    [['news', 0, 17]]
    """

    model: Any
    offsets: Mapping[tuple[str, int], int]
    epoch: int = 0
    sequence: int = 0
    configuration: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    time: float = field(default_factory=clock.time)

    @property
    def id(self) -> str:
        """Epoch and sequence, ``"3-17"``: no two checkpoints of a folder share them."""
        return f"{self.epoch}-{self.sequence}"


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


@lru_cache
def _versions() -> dict[str, str]:
    from importlib.metadata import version  # noqa: PLC0415
    from platform import python_version  # noqa: PLC0415

    return {
        "drift": __version__,
        "python": python_version(),
        "river": version("river"),
        "numpy": version("numpy"),
    }


def to_bytes(
    checkpoint: Checkpoint, *, key: bytes | None = None, allow_pickle: bool = False
) -> bytes:
    """Return a checkpoint as the bytes of its file.

    Parameters
    ----------
    checkpoint
        The checkpoint.
    key
        Sign it with this.
    allow_pickle
        Pickle a model that is not of drift's own; loading it needs this, too.

    Returns
    -------
    bytes
        The file.

    Raises
    ------
    CheckpointError
        If the model cannot be stored, or the configuration or metrics are no JSON.
    """
    payload, kind = _payload(checkpoint.model, allow_pickle=allow_pickle)
    header = {
        "model": type(checkpoint.model).__name__,
        "payload": kind,
        "signed": key is not None,
        "time": checkpoint.time,
        "epoch": checkpoint.epoch,
        "sequence": checkpoint.sequence,
        "offsets": [[topic, part, n] for (topic, part), n in sorted(checkpoint.offsets.items())],
        "configuration": dict(checkpoint.configuration),
        "metrics": dict(checkpoint.metrics),
        "versions": _versions(),
    }
    try:
        text = json.dumps(header).encode()
    except (TypeError, ValueError, RecursionError) as problem:
        raise CheckpointError(f"configuration and metrics must be JSON: {problem}") from problem
    parts = [_SIZES.pack(_MAGIC, VERSION, len(text), len(payload)), text, payload]
    if key is not None:
        parts.append(hmac.digest(key, b"".join(parts), "sha256"))
    parts.append(hashlib.sha256(b"".join(parts)).digest())
    return b"".join(parts)


def _payload(model: Any, *, allow_pickle: bool) -> tuple[bytes, str]:
    try:
        return _state.encode(model), "drift"
    except CheckpointError as problem:
        if not allow_pickle:
            raise
        try:
            return pickle.dumps(model, protocol=5), "pickle"
        except Exception as also:  # whatever the model's own code raises
            raise CheckpointError(
                f"the model can neither be stored ({problem}) nor pickled ({also})"
            ) from also


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
        If they are of a newer version of drift.
    """
    if len(data) < _SIZES.size:
        raise DamagedCheckpointError(f"{_NOT_ONE}: {len(data)} bytes")
    magic, version, header_size, payload_size = _SIZES.unpack_from(data)
    if magic != _MAGIC:
        raise DamagedCheckpointError(f"{_NOT_ONE}: it starts with {data[:8]!r}")
    if version > VERSION and hashlib.sha256(data[:-_DIGEST]).digest() == data[-_DIGEST:]:
        raise CheckpointError(
            f"written in version {version} of the format, and drift {__version__} reads up to "
            f"version {VERSION}: install the drift that wrote it, or a newer one"
        )
    body = _SIZES.size + header_size + payload_size
    if len(data) not in {body + _DIGEST, body + 2 * _DIGEST}:
        raise DamagedCheckpointError(f"cut short or damaged: {len(data)} bytes")
    if hashlib.sha256(data[:-_DIGEST]).digest() != data[-_DIGEST:]:
        raise DamagedCheckpointError("damaged: the checksum is wrong")
    if version != VERSION:
        raise CheckpointError(f"there is no version {version} of the format")
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
    for entry in header["offsets"]:
        if not isinstance(entry, list) or [*map(type, entry)] != [str, int, int]:
            raise CheckpointError("the header's offsets are no list of topic, partition, offset")
    return header


def _check_signature(description: Description, key: bytes | None) -> None:
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


def verify(data: bytes, *, key: bytes | None = None) -> Description:
    """Check everything that can be checked without running what is in the file.

    Parameters
    ----------
    data
        The file.
    key
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
    _check_signature(description, key)
    if description.header["payload"] == "drift":
        _state.decode(description.payload)
    return description


def from_bytes(data: bytes, *, key: bytes | None = None, allow_pickle: bool = False) -> Checkpoint:
    """Return the checkpoint that a file holds.

    Parameters
    ----------
    data
        The file.
    key
        Key that it must be signed with; None to leave the signature out.
    allow_pickle
        Load a pickle, which runs what is in it.

    Returns
    -------
    Checkpoint
        Its model goes on exactly as the one that was stored.

    Raises
    ------
    DamagedCheckpointError
        If these are not the bytes that were written.
    CheckpointError
        If it is of a newer version, not signed with `key`, a pickle that is not allowed, or forged.

    Examples
    --------
    >>> from drift.models import LBP
    >>> from_bytes(to_bytes(Checkpoint(LBP(budget=3), {("news", 0): 17}))).offsets
    {('news', 0): 17}
    """
    description = describe(data)
    _check_signature(description, key)
    header = description.header
    return Checkpoint(
        _model(header["payload"], description.payload, allow_pickle=allow_pickle),
        {(topic, partition): offset for topic, partition, offset in header["offsets"]},
        **{
            name: header[name] for name in ("epoch", "sequence", "configuration", "metrics", "time")
        },
    )


def _model(kind: str, payload: bytes, *, allow_pickle: bool) -> Any:
    if kind == "drift":
        return _state.decode(payload)
    if kind != "pickle":
        raise CheckpointError(f"the model is stored as {kind!r:.40}, which drift does not know")
    if not allow_pickle:
        raise CheckpointError(
            "the model is stored as a pickle, and loading one runs what is in it: allow pickle "
            "(--allow-pickle) if you trust whoever can write to the folder"
        )
    try:
        return pickle.loads(payload)
    except Exception as problem:  # whatever the model's own code raises
        raise CheckpointError(
            f"the pickled model cannot be loaded here: {type(problem).__name__}: {problem}"
        ) from problem


def read(
    path: str | PathLike[str], *, key: bytes | None = None, allow_pickle: bool = False
) -> Checkpoint:
    """Read a checkpoint's file; see `from_bytes`, whose errors here name the file."""
    with naming(path):
        return from_bytes(load(path), key=key, allow_pickle=allow_pickle)


def load(path: str | PathLike[str]) -> bytes:
    """Return a file's bytes; FileNotFoundError and CheckpointError say why there are none."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise
    except OSError as problem:
        unreadable = DamagedCheckpointError if problem.errno == errno.EIO else CheckpointError
        raise unreadable(f"cannot be read: {problem.strerror}") from problem


@contextmanager
def naming(path: str | PathLike[str]) -> Iterator[None]:
    """Have errors about a checkpoint name its file."""
    try:
        yield
    except CheckpointError as problem:
        raise type(problem)(f"{path}: {problem}") from problem.__cause__
