"""drift's own models as a JSON tree and binary arrays, and back; nothing in a file is ever run.

A node of the tree is a JSON scalar for None, bool, a str, an int of 64 bits or a finite float, and
else a list that starts with a tag:

====  ============================================================================================
tag   then
====  ============================================================================================
p     a list of scalars
l t   the nodes of a list's, a tuple's items
d     the values of a dict by their keys, which are texts
h     key, value, key, value, ... of another dict
e z   the nodes of a set's, a frozenset's items, sorted by their text
f     eight bytes of a float that is not finite, in hexadecimal
i     an int beyond 64 bits, in hexadecimal
b s   bytes, a str that is no valid Unicode: in hexadecimal
a     array.array: typecode, stored type, offset, count
n     numpy array: type, C or F order, shape, stored type, offset
y     the same of float64 in C order whose last two axes mirror each other up to rounding: shape,
      stored type and offset of the numbers from the diagonal on, by rows, and of by how many last
      places those before it are above their images
g     numpy scalar: type, its bytes in hexadecimal
m     random.Random: version, Gaussian left over, stored type, offset and count of its numbers
k     kernel, or another frozen dataclass of registered kind: name, fields; equal ones become one
o     other object of registered kind: name, state by attribute
r     the list, set, dict, array or object that was completed as number so-and-so, shared
====  ============================================================================================

Numbers are stored in the narrowest type that gives back the same bits. Where many are 0, a stored
type begins with z: a bit for each number says whether it is another one, and those follow. What a
model is, is equal to its bytes here: two models that would continue alike have the same
bytes.
"""

from __future__ import annotations

import json
import math
import random
import struct
import sys
from array import array
from dataclasses import fields
from functools import lru_cache
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from drift import _format
from drift._checks import is_text
from drift.errors import CheckpointError
from drift.models._state import kinds
from drift.models._store.check import check_shared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from drift.models._store.shared_supports import SharedSupports

__all__ = ["decode", "encode", "from_bytes", "parameters", "to_bytes"]

_HEAD = struct.Struct("<Q")
_WORD = 2**63
#: How many numbers are looked at before all are.
_FIRST = 32
_SCALARS = {bool, int, float, str, type(None)}
_DTYPES = {name: np.dtype(name) for name in kinds.DTYPES}
_NATIVE = {name: dtype.newbyteorder("=") for name, dtype in _DTYPES.items()}


def _no_constant(name: str) -> None:
    raise kinds.refusal(name)


#: Made once: a small model's JSON takes less time than a new coder of it.
_dumps = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False).encode
_loads = json.JSONDecoder(parse_constant=_no_constant).decode


def encode(model: Any, *, narrow: bool = True) -> bytes:
    """Return all that a model of drift is.

    Parameters
    ----------
    model
        Any model of `drift.models`, its parameters and feature names of built-in kinds.
    narrow
        Store numbers in the narrowest type; False to take a third less time, for more bytes.

    Returns
    -------
    bytes
        Equal for models that would continue alike.

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
    encoder = _Encoder(narrow=narrow)
    try:
        with np.errstate(all="ignore"):  # as of numbers that float32 has not
            tree = encoder.node(model)
    except RecursionError:
        raise CheckpointError(f"{type(model).__name__} holds itself: it cannot be stored") from None
    text = _dumps(tree).encode()
    return b"".join([_HEAD.pack(len(text)), text, *encoder.blobs])


def decode(payload: bytes) -> Any:
    """Build the model that `encode` was given; CheckpointError for any other payload.

    Only drift's classes and registered ones are built, and their numbers are checked before
    compiled code uses them.
    """
    try:
        return _decoded(payload)
    except CheckpointError:
        raise
    except Exception as problem:  # a forged tree can make any constructor fail
        raise kinds.refusal(f"{type(problem).__name__}: {problem!s:.200}") from problem


def to_bytes(model: Any) -> bytes:
    """Return the frame around a model; see `OnlineClassifier.to_bytes`."""
    return _format.seal(b"", [encode(model)])


def from_bytes(data: bytes) -> Any:
    """Build a model of any class from the bytes of its `to_bytes`.

    Parameters
    ----------
    data
        The bytes. They are never executed, so that they need no trust.

    Returns
    -------
    model
        It continues exactly as the original.

    Raises
    ------
    DamagedCheckpointError
        If the bytes were changed or truncated.
    CheckpointError
        If they have another format version, are no model's, or forged.

    Examples
    --------
    >>> from drift.models import LBP, from_bytes
    >>> from_bytes(LBP(budget=10).to_bytes())
    LBP (
      budget=10
      kernel=None
    )
    """
    frame = _format.unseal("model", data)
    if frame.header:
        raise CheckpointError(
            "it is a checkpoint, not a model's bytes: load it with drift.consumers.CheckpointFolder"
        )
    return decode(frame.payload)


def _decoded(payload: bytes) -> Any:
    (size,) = _HEAD.unpack_from(payload)
    blobs = memoryview(payload)[_HEAD.size + size :]
    decoder = _Decoder(blobs)
    model = decoder.node(_loads(str(payload[_HEAD.size : _HEAD.size + size], "ascii")))
    if decoder.used != len(blobs):
        raise kinds.refusal("more numbers than it has")
    _check_model(model, decoder.built)
    return model


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

    def __init__(self, *, narrow: bool) -> None:
        self.blobs: list[Any] = []  # contiguous arrays
        self._is_narrow = narrow
        self._offset = 0
        # Number of completion by identity, None before that, beside the object, which must not go
        # meanwhile.
        self._seen: dict[int, tuple[int | None, Any]] = {}
        self._completed = 0

    def node(self, value: Any) -> Any:
        """Node of any object."""
        kind = type(value)
        if kind in _SCALARS and _is_scalar(value):
            return value
        make, is_shared = self._maker(kind)
        if not is_shared:
            return make(self, value)
        seen = self._seen.get(id(value))
        if seen is not None:
            if seen[0] is None:
                raise CheckpointError(f"a {kind.__name__} in the model holds itself")
            return ["r", seen[0]]
        self._seen[id(value)] = None, value
        result = make(self, value)
        self._seen[id(value)] = self._completed, value
        self._completed += 1
        return result

    def _dict(self, value: dict[Any, Any]) -> Any:
        if set(map(type, value)) <= {str} and is_text("".join(value)):
            return ["d", {key: self.node(part) for key, part in value.items()}]
        return ["h", *(self.node(part) for item in value.items() for part in item)]

    def _value(self, value: Any) -> Any:
        state = {f.name: self.node(getattr(value, f.name)) for f in fields(value)}
        return ["k", kinds.name_of(type(value)), state]

    def _object(self, value: Any) -> Any:
        name = kinds.name_of(type(value))
        state = value.__getstate__() or {}
        return ["o", name, {attribute: self.node(part) for attribute, part in state.items()}]

    def _list(self, value: list[Any]) -> Any:
        return ["p", value] if _all_scalars(value) else ["l", *map(self.node, value)]

    def _set(self, tag: str, value: Iterable[Any]) -> Any:
        return [tag, *sorted(map(self.node, value), key=json.dumps)]

    def _random(self, value: random.Random) -> Any:
        version, numbers, gauss = value.getstate()
        return ["m", version, self.node(gauss), *self._blob(array("I", numbers)), len(numbers)]

    def _array(self, value: array[Any]) -> Any:
        if value.typecode not in kinds.ARRAYS:
            raise CheckpointError(f"arrays of type {value.typecode!r} cannot be stored")
        return ["a", value.typecode, *self._blob(value), len(value)]

    def _ndarray(self, value: Any) -> Any:
        kind = value.dtype.str.replace(">", "<")
        if kind not in kinds.DTYPES:
            raise CheckpointError(f"numpy arrays of type {value.dtype} cannot be stored")
        order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        is_square = value.ndim > 1 and value.shape[-2] == value.shape[-1]
        if self._is_narrow and is_square and kind == "<f8" and order == "C":
            half, apart = map(_narrowest, _halves(value))
            if half.nbytes + apart.nbytes < value.nbytes:
                return ["y", list(value.shape), *self._stored(half), *self._stored(apart)]
        return ["n", kind, order, list(value.shape), *self._blob(value.ravel(order))]

    def _scalar(self, value: Any) -> Any:
        if value.dtype.kind not in kinds.SCALAR_KINDS:
            raise CheckpointError(f"numpy scalars of type {value.dtype} cannot be stored")
        kind = value.dtype.newbyteorder("<")
        return ["g", kind.str, value.astype(kind).tobytes().hex()]

    def _blob(self, values: Any) -> tuple[str, int]:
        """Set numbers aside; return their type and offset there."""
        return self._stored(_narrowest(values) if self._is_narrow else _little(values))

    def _stored(self, blob: Any) -> tuple[str, int]:
        stored, size = blob.dtype.str, blob.nbytes
        if self._is_narrow and (others := _without_zeros(blob)) is not None:
            blob, stored, size = others, f"z{stored}", len(others)
        offset, self._offset = self._offset, self._offset + size
        self.blobs.append(blob)
        return stored, offset

    #: What makes the node of an object, and whether the object is made once and then referred to.
    _MAKERS: ClassVar[dict[type, tuple[Callable[[Any, Any], Any], bool]]] = {
        int: (lambda _, value: ["i", hex(value)], False),
        float: (lambda _, value: ["f", struct.pack(">d", value).hex()], False),
        str: (lambda _, value: ["s", value.encode("utf-8", "surrogatepass").hex()], False),
        bytes: (lambda _, value: ["b", value.hex()], False),
        tuple: (lambda self, value: ["t", *map(self.node, value)], False),
        frozenset: (lambda self, value: self._set("z", value), False),
        list: (_list, True),
        dict: (_dict, True),
        set: (lambda self, value: self._set("e", value), True),
        array: (_array, True),
        np.ndarray: (_ndarray, True),
        random.Random: (_random, True),
    }

    def _maker(self, kind: Any) -> tuple[Callable[[Any, Any], Any], bool]:
        made = self._MAKERS.get(kind)
        if made is not None:
            return made
        if issubclass(kind, np.generic):
            return _Encoder._scalar, False
        return (_Encoder._value, False) if kinds.is_value(kind) else (_Encoder._object, True)


def _narrowest(values: Any) -> Any:
    """Numbers in the smallest type that holds them, little-endian."""
    given = np.asarray(values)
    itemsize = given.dtype.itemsize
    if given.dtype.kind == "f" and itemsize > 4:
        # Of numbers that need all their places the first ones tell.
        if _are_float32(given.ravel()[:_FIRST]) and _are_float32(given):
            return given.astype("<f4")
    elif given.dtype.kind in "iu" and given.size and itemsize > 1:
        low, high = int(given.min()), int(given.max())
        sign, bits = ("u", max(high, 0).bit_length()) if low >= 0 else ("i", _bits(low, high))
        for size in (1, 2, 4):
            if size < itemsize and bits <= 8 * size:
                return given.astype(f"<{sign}{size}" if size > 1 else f"|{sign}1")
    return _little(given)


def _bits(low: int, high: int) -> int:
    """Return the bits of integers with a sign."""
    return max((~low).bit_length(), high.bit_length()) + 1


def _are_float32(values: Any) -> bool:
    """Whether numbers are the same in float32, to the last bit."""
    again = values.astype(np.float32).astype(values.dtype)
    return bool(again.tobytes() == values.tobytes())


def _little(values: Any) -> Any:
    """Numbers in their own type, little-endian."""
    given = np.asarray(values)
    if given.dtype.str[0] != ">":
        return given
    return given.astype(given.dtype.newbyteorder("<"))


def _without_zeros(values: Any) -> bytes | None:
    """Return a bit for each number, whether it is not 0, and those that are not; None if more."""
    flat = values.ravel()
    whole = flat.view(f"u{flat.itemsize}")  # -0.0 is another number
    zeros = flat.size - np.count_nonzero(whole)
    if 8 * zeros * flat.itemsize <= flat.size + 7:
        return None
    others = whole != 0
    return bytes(np.packbits(others).tobytes() + flat[others].tobytes())


def _halves(matrices: Any) -> tuple[Any, Any]:
    """Return what is up to the diagonal, and how many last places the rest is above its image."""
    n = matrices.shape[-1]
    upper, lower, images = _triangles(n)
    flat = np.ascontiguousarray(matrices).reshape(math.prod(matrices.shape[:-2]), n * n)
    whole = flat.view(np.int64)
    apart = whole.take(lower, axis=1) - whole.take(images, axis=1)
    return flat.take(upper, axis=1).ravel(), apart.ravel()


@lru_cache(maxsize=100)
def _triangles(n: int) -> tuple[Any, Any, Any]:
    """Return where a matrix has its upper triangle, the rest, and the images of that."""
    number = np.arange(n * n).reshape(n, n)
    upper = np.triu(np.ones((n, n), bool))
    return number[upper], number[~upper], number.T[~upper]


# --- and back ----------------------------------------------------------------------------------


class _Decoder:
    """Objects of nodes."""

    def __init__(self, blobs: memoryview) -> None:
        self._blobs = blobs
        self.used = 0
        self._completed: list[Any] = []  # what nodes may refer to
        self.built: list[Any] = []  # objects of registered kinds
        self._values: dict[str, Any] = {}

    def node(self, node: Any) -> Any:
        """Object of any node."""
        if type(node) is not list:
            if type(node) is dict:
                raise kinds.refusal("an object without tag")
            return node
        make, is_shared = self._BY_TAG[node[0]]
        value = make(self, *node[1:])
        if is_shared:
            self._completed.append(value)
        return value

    def nodes(self, nodes: Iterable[Any]) -> list[Any]:
        """Objects of nodes, one after the other; most are scalars."""
        return [node if type(node) in _SCALARS else self.node(node) for node in nodes]

    def _reference(self, number: int) -> Any:
        return self._completed[kinds.whole(number)]

    def _dict(self, parts: dict[str, Any]) -> dict[str, Any]:
        for name, part in parts.items():
            if type(part) not in _SCALARS:
                parts[name] = self.node(part)
        return parts

    def _other_dict(self, *parts: Any) -> dict[Any, Any]:
        flat = self.nodes(parts)
        return dict(zip(flat[::2], flat[1::2], strict=True))

    def _numbers(self, stored: str, offset: int, count: int) -> Any:
        kind = stored.removeprefix("z")
        dtype = _DTYPES.get(kind)
        if dtype is None or offset != self.used:
            raise kinds.refusal("an array out of place")
        kinds.whole(count)
        if kind == stored:
            return np.frombuffer(self._next(count * dtype.itemsize), dtype)
        bits = np.frombuffer(self._next((count + 7) // 8), np.uint8)
        others = np.unpackbits(bits, count=count).view(bool)
        values = np.zeros(count, dtype)
        n_others = int(np.count_nonzero(others))
        values[others] = np.frombuffer(self._next(n_others * dtype.itemsize), dtype)
        return values

    def _next(self, size: int) -> memoryview:
        first, self.used = self.used, self.used + size
        if self.used > len(self._blobs):
            raise kinds.refusal("an array beyond the end")
        return self._blobs[first : self.used]

    def _array(self, typecode: str, stored: str, offset: int, count: int) -> array[Any]:
        if typecode not in kinds.ARRAYS:
            raise kinds.refusal(f"type {typecode!r:.20}")
        numbers = self._numbers(stored, offset, count)
        return array(typecode, numbers.astype(typecode, copy=False).tobytes())

    def _ndarray(self, kind: str, order: Any, shape: list[int], stored: str, offset: int) -> Any:
        dtype = _NATIVE.get(kind)
        if dtype is None:
            raise kinds.refusal(f"type {kind!r:.20}")
        count = math.prod(map(kinds.whole, shape))
        values = self._numbers(stored, offset, count).astype(dtype)
        return values if len(shape) == 1 else values.reshape(shape, order=order)

    def _mirrored(
        self, shape: list[int], stored: str, offset: int, apart_stored: str, apart_offset: int
    ) -> Any:
        *stack, n, same = map(kinds.whole, shape)
        if n != same or 0 in stack:  # a matrix of no number may have any size
            raise kinds.refusal("no matrices that mirror themselves")
        half = math.prod(stack) * n * (n - 1) // 2
        numbers = self._numbers(stored, offset, half + math.prod(stack) * n).astype(np.float64)
        apart = self._numbers(apart_stored, apart_offset, half).astype(np.int64)
        upper, lower, images = _triangles(n)
        values = np.empty((math.prod(stack), n * n))
        values[:, upper] = numbers.reshape(len(values), len(upper))
        whole = values.view(np.int64)
        whole[:, lower] = whole.take(images, axis=1) + apart.reshape(len(values), len(lower))
        return values.reshape(shape)

    def _scalar(self, kind: str, text: str) -> Any:
        dtype = np.dtype(kind)
        if dtype.kind not in kinds.SCALAR_KINDS:
            raise kinds.refusal(f"type {kind!r:.20}")
        [value] = np.frombuffer(bytes.fromhex(text), dtype=dtype)
        return value

    def _random(self, version: int, gauss: Any, stored: str, offset: int, count: int) -> Any:
        numbers = tuple(self._numbers(stored, offset, count).tolist())
        rng = random.Random()
        rng.setstate((version, numbers, self.node(gauss)))
        return rng

    def _state(self, state: dict[str, Any]) -> dict[str, Any]:
        if not _are_attributes(tuple(state)):
            raise kinds.refusal("no name of an attribute")
        return dict(zip(map(sys.intern, state), self.nodes(state.values()), strict=True))

    def _value(self, name: str, state: dict[str, Any]) -> Any:
        kind = kinds.class_of(name)
        if not kinds.is_value(kind):
            raise kinds.refusal(f"{name} has no fields")
        value = kind(**self._state(state))  # its own checks are made
        return self._values.setdefault(f"{name} {state}", value)

    def _object(self, name: str, state: dict[str, Any]) -> Any:
        kind = kinds.class_of(name)
        if kinds.is_value(kind):
            raise kinds.refusal(f"{name} has fields")
        value: Any = object.__new__(kind)
        parts = self._state(state)
        if hasattr(kind, "__setstate__"):
            value.__setstate__(parts)
        else:
            value.__dict__.update(parts)
        self.built.append(value)
        return value

    def _plain(self, values: list[Any]) -> list[Any]:
        if type(values) is not list or not set(map(type, values)) <= _SCALARS:
            raise kinds.refusal("no list of scalars")
        return values

    #: What makes the object of a node, and whether others may refer to it.
    _BY_TAG: ClassVar[dict[str, tuple[Callable[..., Any], bool]]] = {
        "i": (lambda _, text: int(text, 16), False),
        "f": (lambda _, text: struct.unpack(">d", bytes.fromhex(text))[0], False),
        "s": (lambda _, text: bytes.fromhex(text).decode("utf-8", "surrogatepass"), False),
        "b": (lambda _, text: bytes.fromhex(text), False),
        "t": (lambda self, *items: tuple(self.nodes(items)), False),
        "z": (lambda self, *items: frozenset(self.nodes(items)), False),
        "g": (_scalar, False),
        "k": (_value, False),
        "r": (_reference, False),
        "p": (_plain, True),
        "l": (lambda self, *items: self.nodes(items), True),
        "d": (_dict, True),
        "h": (_other_dict, True),
        "e": (lambda self, *items: set(self.nodes(items)), True),
        "a": (_array, True),
        "n": (_ndarray, True),
        "y": (_mirrored, True),
        "m": (_random, True),
        "o": (_object, True),
    }


@lru_cache(maxsize=1000)
def _are_attributes(names: tuple[str, ...]) -> bool:
    return all(name.isidentifier() and not name.startswith("__") for name in names)


def _attributes(model: Any) -> frozenset[str]:
    """Return what a new model with the same parameters has; it refuses those that cannot be."""
    kind: Any = type(model)
    values = tuple([getattr(model, name) for name in _parameters(kind)])
    types = tuple(map(type, values))
    if _SCALARS.issuperset(types) or all(map(_is_plain, values)):
        return _attributes_of(kind, values, types)
    return frozenset(vars(model.clone()))


def parameters(model: Any) -> list[tuple[type, Any]] | None:
    """Return the types and values of a model's parameters; None unless all are plain.

    Of a parameter that is a model, its own parameters count.
    """
    kind: Any = type(model)
    found: list[tuple[type, Any]] = []
    for name in _parameters(kind):
        value = getattr(model, name)
        part: Any = type(value)
        if not _is_plain(value):
            value = parameters(value) if _is_model(part) else None
            if value is None:
                return None
        found.append((part, value))
    return found


def _is_plain(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_is_plain, value))
    return type(value) in _SCALARS


@lru_cache
def _parameters(kind: type) -> tuple[str, ...]:
    return tuple(signature(kind).parameters)


@lru_cache(maxsize=1000)
def _attributes_of(kind: type, values: tuple[Any, ...], _types: tuple[type, ...]) -> frozenset[str]:
    """Return the attributes of a new model; one is made once, as thousands may be restored."""
    return frozenset(vars(kind(**dict(zip(_parameters(kind), values, strict=True)))))


@lru_cache(maxsize=1000)
def _is_model(kind: Any) -> bool:
    from river.base import Classifier  # noqa: PLC0415 - what decodes no model does without River

    return issubclass(kind, Classifier)


def _check_model(model: Any, parts: list[Any]) -> None:
    """Refuse, with ValueError, what is no whole model.

    Parameters
    ----------
    model
        What was built.
    parts
        All objects in it.
    """
    kind: Any = type(model)
    if not _is_model(kind):
        raise ValueError(f"{kind.__name__} is no model")
    for part in parts:
        kind = type(part)
        missing = _attributes(part) - vars(part).keys() if _is_model(kind) else ()
        if missing:
            raise ValueError(f"a {kind.__name__} without {', '.join(sorted(missing))}")
    shared = [part for part in parts if type(part).__name__ == "SharedStore"]
    users: list[SharedSupports] = [p for p in parts if type(p).__name__ == "SharedSupports"]
    if not all(any(part._shared is store for store in shared) for part in users):  # noqa: SLF001
        raise ValueError("shared supports without a store")
    for store in shared:
        check_shared(store, [part for part in users if part._shared is store])  # noqa: SLF001
