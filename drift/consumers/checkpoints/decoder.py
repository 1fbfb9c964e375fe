"""From the nodes and numbers that `drift.consumers.checkpoints.state` describes back to a model."""

from __future__ import annotations

import json
import math
import random
import struct
import sys
from array import array
from typing import TYPE_CHECKING, Any

from drift.consumers.checkpoints import storable
from drift.kernels import Builtin

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Decoder"]

_SCALARS = {bool, int, float, str, type(None)}


class Decoder:
    """Objects of nodes."""

    def __init__(self, blobs: memoryview, version: int) -> None:
        self._blobs = blobs
        self._version = version
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
        fields = self._state(state)
        if self._version == 1 and issubclass(kind, Builtin):
            fields = kind.of_version_1(fields)
        value = kind(**fields)  # its own checks are made
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
