"""drift's own models as a JSON tree and binary arrays, and back; nothing in a file is ever run.

A node of the tree is a JSON scalar for None, bool, a str, an int of 64 bits or a finite float, and
else a list that starts with a tag:

====  ============================================================================================
tag   then
====  ============================================================================================
p     a list of scalars
l t   the nodes of a list's, a tuple's items
d     key, value, key, value, ... of a dict
e z   the nodes of a set's, a frozenset's items, sorted by their text
f     eight bytes of a float that is not finite, in hexadecimal
i     an int beyond 64 bits, in hexadecimal
b s   bytes, a str that is no valid Unicode: in hexadecimal
a     array.array: typecode, stored type, offset, count
n     numpy array: type, C or F order, shape, stored type, offset
g     numpy scalar: type, its bytes in hexadecimal
m     random.Random: version, Gaussian left over, stored type, offset and count of its numbers
k     kernel, or another frozen dataclass of registered kind: name, fields; equal ones become one
o     other object of registered kind: name, state by attribute
r     the list, set, dict, array or object that was completed as number so-and-so, shared
====  ============================================================================================

Numbers are stored in the narrowest type that gives back the same bits. What a model is, is equal to
its bytes here: two models that would go on in the same way have the same bytes.
"""

from __future__ import annotations

import json
import struct
from typing import Any

from drift.consumers.checkpoints import storable
from drift.consumers.checkpoints.decoder import Decoder
from drift.consumers.checkpoints.encoder import Encoder
from drift.consumers.checkpoints.file_format import VERSION
from drift.errors import CheckpointError

__all__ = ["decode", "encode"]

_HEAD = struct.Struct("<Q")


def encode(model: Any) -> bytes:
    """Return all that a model of drift is.

    Parameters
    ----------
    model
        Any model of `drift.models`, its parameters and feature names of built-in kinds.

    Returns
    -------
    bytes
        Equal for models that would go on in the same way.

    Raises
    ------
    CheckpointError
        If something in it is of no registered kind; the message names its class.

    Examples
    --------
    >>> from drift.models import LBP
    >>> model = LBP(budget=10)
    >>> model.learn_one({"rain": 1.0}, True)
    >>> decode(encode(model)).supports
    [({'rain': 1.0}, 1.0)]
    """
    encoder = Encoder()
    try:
        tree = encoder.node(model)
    except RecursionError:
        raise CheckpointError(f"{type(model).__name__} holds itself: it cannot be stored") from None
    text = json.dumps(tree, separators=(",", ":"), allow_nan=False).encode()
    return b"".join([_HEAD.pack(len(text)), text, *encoder.blobs])


def decode(payload: bytes, version: int = VERSION) -> Any:
    """Build the model that `encode` was given.

    Parameters
    ----------
    payload
        What `encode` returned, or anything: the classes that are built are drift's and those
        registered, their numbers are checked before compiled code sees them.
    version
        Version of the format of the file that it is from.

    Returns
    -------
    model
        It goes on exactly as the original would.

    Raises
    ------
    CheckpointError
        If this is not what `encode` returns.
    """
    try:
        return _decoded(payload, version)
    except CheckpointError:
        raise
    except Exception as problem:  # a forged tree can make any constructor fail
        raise storable.refusal(f"{type(problem).__name__}: {problem!s:.200}") from problem


def _decoded(payload: bytes, version: int) -> Any:
    (size,) = _HEAD.unpack_from(payload)
    blobs = memoryview(payload)[_HEAD.size + size :]
    tree = json.loads(payload[_HEAD.size : _HEAD.size + size], parse_constant=_no_constant)
    decoder = Decoder(blobs, version)
    model = decoder.node(tree)
    if decoder.used != len(blobs):
        raise storable.refusal("more numbers than it has")
    from drift.models._storable import check_model  # noqa: PLC0415  (imports the store)

    check_model(model, decoder.objects)
    return model


def _no_constant(name: str) -> None:
    raise storable.refusal(name)
