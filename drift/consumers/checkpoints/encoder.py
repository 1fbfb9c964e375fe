"""From a model to the nodes and numbers that `drift.consumers.checkpoints.state` describes."""

from __future__ import annotations

import json
import math
import random
import struct
import sys
from array import array
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from drift.consumers.checkpoints import storable
from drift.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["Encoder"]

_WORD = 2**63


def _is_text(value: str) -> bool:
    """Whether JSON gives it back: two lone surrogates in a row come back as one character."""
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_scalar(value: Any) -> bool:
    kind = type(value)
    if kind is str:
        return _is_text(value)
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
        return _is_text("".join(values))
    return kinds <= {int, bool, float, str, type(None)} and all(map(_is_scalar, values))


class Encoder:
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
