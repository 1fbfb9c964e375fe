"""Hashes of names, for the features of sparse rows, which have no vocabulary.

The first bits of a name's hash are its number among the supports; the first of those are the slot
of its weights in the linear members. Unlike Python's hashes of texts, they are the same in every
process.
"""

from __future__ import annotations

from numbers import Number
from typing import TYPE_CHECKING

from drift.models._tracker.tables import NUMBER_BITS

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

__all__ = ["hash_of", "mix", "number_of"]

#: What SplitMix64 adds to its state from one number to the next.
STEP = 0x9E3779B97F4A7C15
_MASK = 2**64 - 1
#: Kinds of names, so that the empty ones differ, from each other and from 0.
_TEXT, _BYTES, _TUPLE, _SET = 2, 3, 4, 5


def mix(z: int) -> int:
    """Scatter the bits of a number, as SplitMix64 does at the end.

    >>> hex(mix(0x9E3779B97F4A7C15))  # its first number from the seed 0
    '0xe220a8397b1dcdaf'
    """
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & _MASK
    return z ^ z >> 31


def hash_of(name: Hashable) -> int:
    """Hash a name to 64 bits: equal ones of numbers, texts and tuples alike.

    >>> hash_of(3) == hash_of(3.0) != hash_of("3") != hash_of(b"3")
    True
    """
    if isinstance(name, Number):
        return mix((hash(name) + STEP) & _MASK)  # 1, 1.0 and True have one
    if isinstance(name, tuple):
        return _chained(_TUPLE, len(name), map(hash_of, name))
    if isinstance(name, frozenset):
        return _chained(_SET, len(name), sorted(map(hash_of, name)))
    if not isinstance(name, (str, bytes)):
        name = repr(name)
    data = name.encode("utf-8", "surrogatepass") if isinstance(name, str) else name
    words = (int.from_bytes(data[k : k + 8], "little") for k in range(0, len(data), 8))
    return _chained(_BYTES if data is name else _TEXT, len(data), words)


def number_of(name: Hashable) -> int:
    """Return a name's number among the supports."""
    return hash_of(name) >> (64 - NUMBER_BITS)


def _chained(kind: int, length: int, words: Iterable[int]) -> int:
    state = mix((length + kind * STEP) & _MASK)
    for word in words:
        state = mix(state ^ word)
    return state
