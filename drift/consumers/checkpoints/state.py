"""drift's own models as a JSON tree and binary arrays, and back; nothing in a file is ever run.

More than 300 lines, as both directions of each kind are here.

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
import math
import random
import struct
import sys
from array import array
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from drift.consumers._json import is_text
from drift.consumers.checkpoints import storable
from drift.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["decode", "encode"]

_HEAD = struct.Struct("<Q")
_WORD = 2**63
_SCALARS = {bool, int, float, str, type(None)}


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
    encoder = _Encoder()
    try:
        tree = encoder.node(model)
    except RecursionError:
        raise CheckpointError(f"{type(model).__name__} holds itself: it cannot be stored") from None
    text = json.dumps(tree, separators=(",", ":"), allow_nan=False).encode()
    return b"".join([_HEAD.pack(len(text)), text, *encoder.blobs])


def decode(payload: bytes) -> Any:
    """Build the model that `encode` was given.

    Parameters
    ----------
    payload
        What `encode` returned, or anything: the classes that are built are drift's and those
        registered, their numbers are checked before compiled code sees them.

    Returns
    -------
    model
        It goes on exactly as the original would.

    Raises
    ------
    CheckpointError
        If this is not what `encode` returns, or in another format.
    """
    try:
        return _decoded(payload)
    except CheckpointError:
        raise
    except Exception as problem:  # a forged tree can make any constructor fail
        raise storable.refusal(f"{type(problem).__name__}: {problem!s:.200}") from problem


def _decoded(payload: bytes) -> Any:
    (size,) = _HEAD.unpack_from(payload)
    blobs = memoryview(payload)[_HEAD.size + size :]
    tree = json.loads(payload[_HEAD.size : _HEAD.size + size], parse_constant=_no_constant)
    decoder = _Decoder(blobs)
    model = decoder.node(tree)
    if decoder.used != len(blobs):
        raise storable.refusal("more numbers than it has")
    from drift.models._storable import check_model  # noqa: PLC0415  (imports the store)

    check_model(model, decoder.objects)
    vars(decoder).clear()  # it holds itself, and with it the model until a garbage collection
    return model


def _no_constant(name: str) -> None:
    raise storable.refusal(name)


# --- from a model to nodes ---------------------------------------------------------------------


def _is_scalar(value: Any) -> bool:
    kind = type(value)
    if kind is str:
        return is_text(value)
    if kind is float:
        return math.isfinite(value)
    if kind is int:
        return bool(-_WORD <= value < _WORD)
    return value is None or kind is bool


def _all_scalars(values: Iterable[Any]) -> bool:
    """Whether a list has scalars only; a vocabulary has tens of thousands of them."""
    kinds = set(map(type, values))
    if kinds <= {int, bool, type(None)}:
        return all(value is None or -_WORD <= value < _WORD for value in values)
    if kinds == {str}:
        return is_text("".join(values))
    return kinds <= _SCALARS and all(map(_is_scalar, values))


class _Encoder:
    """Nodes of objects, and the binary arrays that they refer to."""

    def __init__(self) -> None:
        self.blobs: list[bytes] = []
        self._offset = 0
        # Number of completion by identity, beside the object, which must not go meanwhile.
        self._seen: dict[int, tuple[int, Any]] = {}
        self._open: set[int] = set()
        self._by_kind: dict[type, Callable[[Any], Any]] = {
            int: lambda value: ["i", hex(value)],
            float: lambda value: ["f", struct.pack(">d", value).hex()],
            str: lambda value: ["s", value.encode("utf-8", "surrogatepass").hex()],
            bytes: lambda value: ["b", value.hex()],
            tuple: lambda value: ["t", *map(self.node, value)],
            frozenset: lambda value: ["z", *self._sorted(value)],
        }
        self._shared_by_kind: dict[type, Callable[[Any], Any]] = {
            list: self._list,
            dict: lambda value: [
                "d",
                *(self.node(part) for item in value.items() for part in item),
            ],
            set: lambda value: ["e", *self._sorted(value)],
            array: self._array,
            random.Random: self._random,
        }

    def node(self, value: Any) -> Any:
        """Node of any object."""
        if _is_scalar(value):
            return value
        kind = type(value)
        make = self._by_kind.get(kind)
        if make is not None:
            return make(value)
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, numpy.generic):
            return self._scalar(value)
        if storable.is_value(kind):
            state = {f.name: self.node(getattr(value, f.name)) for f in fields(value)}
            return ["k", storable.name_of(kind), state]
        known = self._seen.get(id(value))
        if known is not None:
            return ["r", known[0]]
        if id(value) in self._open:
            raise CheckpointError(f"a {kind.__name__} in the model holds itself")
        self._open.add(id(value))
        make = self._shared_by_kind.get(kind)
        if make is None:
            is_array = numpy is not None and kind is numpy.ndarray
            make = self._ndarray if is_array else self._object
        result = make(value)
        self._open.discard(id(value))
        self._seen[id(value)] = (len(self._seen), value)
        return result

    def _list(self, value: list[Any]) -> Any:
        return ["p", value] if _all_scalars(value) else ["l", *map(self.node, value)]

    def _sorted(self, value: Iterable[Any]) -> list[Any]:
        return sorted(map(self.node, value), key=json.dumps)

    def _object(self, value: Any) -> Any:
        name = storable.name_of(type(value))
        state = value.__getstate__() or {}
        return ["o", name, {attribute: self.node(part) for attribute, part in state.items()}]

    def _random(self, value: random.Random) -> Any:
        version, numbers, gauss = value.getstate()
        return ["m", version, self.node(gauss), *self._blob(array("I", numbers)), len(numbers)]

    def _array(self, value: array[Any]) -> Any:
        if value.typecode not in storable.ARRAYS:
            raise CheckpointError(f"arrays of type {value.typecode!r} cannot be stored")
        return ["a", value.typecode, *self._blob(value), len(value)]

    def _ndarray(self, value: Any) -> Any:
        kind = value.dtype.newbyteorder("<").str
        if kind not in storable.DTYPES:
            raise CheckpointError(f"numpy arrays of type {value.dtype} cannot be stored")
        order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        return ["n", kind, order, list(value.shape), *self._blob(value.ravel(order))]

    def _scalar(self, value: Any) -> Any:
        if value.dtype.kind not in storable.SCALAR_KINDS:
            raise CheckpointError(f"numpy scalars of type {value.dtype} cannot be stored")
        kind = value.dtype.newbyteorder("<")
        return ["g", kind.str, value.astype(kind).tobytes().hex()]

    def _blob(self, values: Any) -> tuple[str, int]:
        """Set numbers aside; return their type and offset there."""
        narrow = _narrowest(values)
        blob = narrow.tobytes()
        offset, self._offset = self._offset, self._offset + len(blob)
        self.blobs.append(blob)
        return narrow.dtype.str, offset


def _narrowest(values: Any) -> Any:
    """Numbers in the smallest type that holds them, little-endian."""
    import numpy as np  # noqa: PLC0415

    given = np.asarray(values)
    if given.dtype.kind == "f":
        with np.errstate(all="ignore"):
            narrow = given.astype("<f4")
            same = np.array_equal(
                narrow.astype(given.dtype).view(np.uint8),
                np.ascontiguousarray(given).view(np.uint8),
            )
        if given.dtype.itemsize == 8 and same:
            return narrow
    elif given.dtype.kind in "iu" and given.size:
        low, high = int(given.min()), int(given.max())
        sign = "i" if low < 0 else "u"
        for size in (1, 2, 4):
            limits = np.iinfo(f"{sign}{size}")
            if size < given.dtype.itemsize and limits.min <= low and high <= limits.max:
                return given.astype(f"<{sign}{size}" if size > 1 else f"|{sign}1")
    return given.astype(given.dtype.newbyteorder("<"), copy=False)


# --- and back ----------------------------------------------------------------------------------


class _Decoder:
    """Objects of nodes."""

    def __init__(self, blobs: memoryview) -> None:
        self._blobs = blobs
        self.used = 0
        self.objects: list[Any] = []
        self._values: dict[str, Any] = {}
        self._by_tag: dict[str, Callable[..., Any]] = {
            "i": lambda text: int(text, 16),
            "f": lambda text: struct.unpack(">d", bytes.fromhex(text))[0],
            "s": lambda text: bytes.fromhex(text).decode("utf-8", "surrogatepass"),
            "b": bytes.fromhex,
            "t": lambda *items: tuple(map(self.node, items)),
            "z": lambda *items: frozenset(map(self.node, items)),
            "g": self._scalar,
            "k": self._value,
            "r": lambda number: self.objects[storable.whole(number)],
        }
        self._shared_by_tag: dict[str, Callable[..., Any]] = {
            "p": _plain,
            "l": lambda *items: [*map(self.node, items)],
            "d": self._dict,
            "e": lambda *items: set(map(self.node, items)),
            "a": self._array,
            "n": self._ndarray,
            "m": self._random,
            "o": self._object,
        }

    def node(self, node: Any) -> Any:
        """Object of any node."""
        if not isinstance(node, list):
            if isinstance(node, dict):
                raise storable.refusal("an object without tag")
            return node
        tag, *rest = node
        make = self._by_tag.get(tag)
        if make is not None:
            return make(*rest)
        value = self._shared_by_tag[tag](*rest)
        self.objects.append(value)
        return value

    def _dict(self, *parts: Any) -> dict[Any, Any]:
        # One after the other: the numbers of shared objects follow the order in the file.
        flat = [self.node(part) for part in parts]
        return dict(zip(flat[::2], flat[1::2], strict=True))

    def _numbers(self, stored: str, offset: int, count: int) -> Any:
        import numpy as np  # noqa: PLC0415

        if stored not in storable.DTYPES or offset != self.used or storable.whole(count) < 0:
            raise storable.refusal("an array out of place")
        stop = offset + count * np.dtype(stored).itemsize
        if stop > len(self._blobs):
            raise storable.refusal("an array beyond the end")
        self.used = stop
        return np.frombuffer(self._blobs[offset:stop], dtype=stored)

    def _array(self, typecode: str, stored: str, offset: int, count: int) -> array[Any]:
        if typecode not in storable.ARRAYS:
            raise storable.refusal(f"type {typecode!r:.20}")
        values: array[Any] = array(typecode)
        values.frombytes(self._numbers(stored, offset, count).astype(typecode).tobytes())
        return values

    def _ndarray(self, kind: str, order: Any, shape: list[int], stored: str, offset: int) -> Any:
        if kind not in storable.DTYPES:
            raise storable.refusal(f"type {kind!r:.20}")
        count = math.prod(map(storable.whole, shape))
        import numpy as np  # noqa: PLC0415

        values = self._numbers(stored, offset, count).astype(np.dtype(kind).newbyteorder("="))
        return values.reshape(shape, order=order)

    def _scalar(self, kind: str, text: str) -> Any:
        import numpy as np  # noqa: PLC0415

        dtype = np.dtype(kind)
        if dtype.kind not in storable.SCALAR_KINDS:
            raise storable.refusal(f"type {kind!r:.20}")
        [value] = np.frombuffer(bytes.fromhex(text), dtype=dtype)
        return value

    def _random(self, version: int, gauss: Any, stored: str, offset: int, count: int) -> Any:
        numbers = tuple(self._numbers(stored, offset, count).tolist())
        rng = random.Random()
        rng.setstate((version, numbers, self.node(gauss)))
        return rng

    def _state(self, state: dict[str, Any]) -> dict[str, Any]:
        if any(not name.isidentifier() or name.startswith("__") for name in state):
            raise storable.refusal("no name of an attribute")
        return {sys.intern(name): self.node(part) for name, part in state.items()}

    def _value(self, name: str, state: dict[str, Any]) -> Any:
        kind = storable.class_of(name)
        if not storable.is_value(kind):
            raise storable.refusal(f"{name} has no fields")
        value = kind(**self._state(state))  # its own checks are made
        return self._values.setdefault(json.dumps([name, state]), value)

    def _object(self, name: str, state: dict[str, Any]) -> Any:
        kind = storable.class_of(name)
        if storable.is_value(kind):
            raise storable.refusal(f"{name} has fields")
        value: Any = object.__new__(kind)
        parts = self._state(state)
        if hasattr(kind, "__setstate__"):
            value.__setstate__(parts)
        else:
            value.__dict__.update(parts)
        return value


def _plain(values: list[Any]) -> list[Any]:
    if type(values) is not list or not set(map(type, values)) <= _SCALARS:
        raise storable.refusal("no list of scalars")
    return values
