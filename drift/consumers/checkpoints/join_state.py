"""How a checkpoint has what waits in `drift.consumers.join`: JSON columns, and values."""

from __future__ import annotations

from base64 import b64decode, b64encode
from bisect import bisect_right
from itertools import accumulate, chain, compress, pairwise
from operator import itemgetter
from types import NoneType
from typing import TYPE_CHECKING, Any

from drift.consumers.records import (
    headers_as_json,
    headers_from_json,
    message_as_json,
    message_from_json,
)
from drift.consumers.waiting import Early, Waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from drift.consumers.records import TopicPartition
    from drift.consumers.waiting import Id

__all__ = ["STORED", "as_columns", "before", "check_state", "early_of", "waiting_of"]

#: Bytes of waiting features that a checkpoint stores: of the oldest. Newer ones are read again.
STORED = 4 << 20
#: Columns of all features that wait, and of those whose values are stored, the first of them.
_BY_ROW = "ids", "place", "offsets", "times", "predicted", "sizes", "shadowed"
_BY_STORED = "lengths", "headers", "keys", "timestamps"


def as_columns(
    state: dict[str, Any],
    ids: list[Id],
    rows: list[Waiting],
    done: Callable[[], list[list[Any]]],
    early: tuple[list[Id], list[Early]],
) -> tuple[dict[str, Any], bytes]:
    """Return what waits as JSON, and the values of the oldest features.

    Parameters
    ----------
    state
        What is stored as it is.
    ids, rows
        Of the features that wait.
    done
        Returns the labelled ids, and their times.
    early
        Ids and labels that wait.
    """
    # Columns rather than rows: an object for each of 100,000 ids takes garbage collections.
    columns = [[*map(itemgetter(i), rows)] for i in range(len(Waiting._fields))]
    places, offsets, times, predicted, sizes, values, headers, chances, shadowed, *own = columns
    shadow = {"shadowed": shadowed} if any(value is not None for value in shadowed) else {}
    width = 4 * len(state["classes"])  # classes that came later have 0
    number = {place: i for i, place in enumerate(dict.fromkeys(places))}
    stored = bisect_right([*accumulate(sizes)], STORED)
    return state | shadow | {
        "done": done(),
        "early": [
            [name, item.label, item.weight, item.time, message_as_json(item.message)]
            for name, item in zip(*early, strict=True)
        ],
        "ids": ids,
        "places": [*number],
        "place": [number[place] for place in places],
        "offsets": offsets,
        "times": times,
        "predicted": predicted,
        "sizes": sizes,
        "lengths": [*map(len, values[:stored])],
        "headers": [packed and headers_as_json(packed) for packed in headers[:stored]],
        "keys": [key if key is None else key.decode("latin-1") for key in own[0][:stored]],
        "timestamps": own[1][:stored],
        "chances": b64encode(b"".join(packed.ljust(width, b"\0") for packed in chances)).decode(),
    }, b"".join(values[:stored])


def early_of(state: Mapping[str, Any]) -> Iterator[tuple[Id, Early]]:
    """Yield the labels that wait, with their ids."""
    for name, label, weight, time, message in state["early"]:
        yield name, Early(message_from_json(message), label, weight, time)


def waiting_of(state: Mapping[str, Any], values: bytes) -> Iterator[tuple[Id, Waiting]]:
    """Yield the features that wait, with their ids; those whose values are not stored come last."""
    places = [(topic, number) for topic, number in state["places"]]
    # Those of an earlier version had neither.
    absent = [None] * len(state["lengths"])
    own = state.get("keys", absent), state.get("timestamps", absent)
    end, stored = 0, zip(state["lengths"], state["headers"], *own, strict=True)
    chances, width = b64decode(state["chances"]), 4 * len(state["classes"])
    columns = ("ids", "place", "offsets", "times", "predicted", "sizes")
    shadowed = state.get("shadowed", [None] * len(state["ids"]))
    rows = zip(*(state[column] for column in columns), shadowed, strict=True)
    for i, (name, place, offset, time, predicted, size, second) in enumerate(rows):
        length, headers, key, timestamp = next(stored, (0, (), None, None))
        value = values[end : end + length]
        end += length
        packed = chances[i * width : (i + 1) * width]
        key = None if key is None else key.encode("latin-1")
        kept = size, value, headers_from_json(headers), packed, second, key, timestamp
        yield name, Waiting(places[place], offset, time, predicted, *kept)


def before(
    state: Mapping[str, Any], values: bytes, limits: Mapping[TopicPartition, int]
) -> tuple[dict[str, Any], bytes]:
    """Return a state without the features and labels that wait at these offsets or behind them.

    Parameters
    ----------
    state, values
        As of `as_columns`.
    limits
        The first offset that goes, by partition.

    Examples
    --------
    >>> from drift.consumers.waiting import Waiting
    >>> rows = [Waiting(("f", 0), n, 9, True, 2, b"v%d" % n) for n in range(3)]
    >>> counts = {"silent": 1, "classes": [], "counts": {}}
    >>> whole = as_columns(counts, ["a", "b", "c"], rows, lambda: [[], []], ([], []))
    >>> state, values = before(*whole, {("f", 0): 1})
    >>> state["ids"], values, state["counts"]
    (['a'], b'v0', {'evicted': 2})
    """

    def stays(place: TopicPartition, offset: int) -> bool:
        return offset < limits.get(place, offset + 1)

    places = [(topic, number) for topic, number in state["places"]]
    at = zip(state["place"], state["offsets"], strict=True)
    stay = [stays(places[number], offset) for number, offset in at]
    ends = [*accumulate(state["lengths"], initial=0)]
    stored = zip(stay, pairwise(ends), strict=False)
    width = 4 * len(state["classes"])
    chances = b64decode(state["chances"])
    counts, silent = dict(state["counts"]), sum(stay[: state["silent"]])
    if evicted := len(stay) - state["silent"] - (sum(stay) - silent):
        counts["evicted"] = counts.get("evicted", 0) + evicted
    columns = (*_BY_ROW, *_BY_STORED)
    return {
        **state,
        **{name: [*compress(state[name], stay)] for name in columns if name in state},
        "early": [
            entry
            for entry in state["early"]
            for topic, number, offset in (entry[4][0],)
            if stays((topic, number), offset)
        ],
        "silent": silent,
        "counts": counts,
        "chances": b64encode(
            b"".join(chances[i * width : (i + 1) * width] for i, one in enumerate(stay) if one)
        ).decode(),
    }, b"".join(values[first:end] for one, (first, end) in stored if one)


def check_state(
    state: Mapping[str, Any], values: bytes, offsets: Mapping[TopicPartition, int]
) -> None:
    """Raise ValueError if a column has what it cannot have, or what waits is behind the offsets.

    Other faults show at once where the values are used.
    """
    done, early = state["done"][1], [time for _, _, _, time, _ in state["early"]]
    times = [state["time"], *state["times"], *done, *early]
    counts = [*state["counts"].values(), state["silent"], *state["lengths"]]
    columns = [number for name in ("place", "offsets", "sizes") for number in state[name]]
    columns += [number for _, number in state["places"]]
    columns += chain.from_iterable(position for *_, ((_, *position), *_) in state["early"])
    if {*map(type, [*times, *counts, *columns])} - {int}:
        raise ValueError("a number is none")
    if min([0, *counts, *columns]) < 0 or min(times) < -1:
        raise ValueError("a number is below 0")
    ids, lengths = state["ids"], state["lengths"]
    if max(state["silent"], len(lengths)) > len(ids) or sum(lengths) != len(values):
        raise ValueError("more or less features than there are")
    if len(b64decode(state["chances"])) != 4 * len(state["classes"]) * len(ids):
        raise ValueError("more or less probabilities than there are")
    if {*map(type, state.get("shadowed", ()))} - {str, int, float, bool, NoneType}:
        raise ValueError("what a shadow predicted is no label")
    if {*map(type, state.get("keys", ()))} - {str, NoneType}:
        raise ValueError("a key is no text")
    if {*map(type, state.get("timestamps", ()))} - {int, NoneType}:
        raise ValueError("a timestamp is no number")
    names = [*ids, *state["done"][0], *(name for name, *_ in state["early"])]
    if {*map(type, names)} - {str, int}:
        raise ValueError("an id is neither a string nor an integer")
    if len({*names}) < len(names):
        raise ValueError("an id is there twice")
    at = [position for *_, (position, *_) in state["early"]]
    number = {place: i for i, place in enumerate(dict.fromkeys((t, n) for t, n, _ in at))}
    _check_positions([*number], ((number[t, n], offset) for t, n, offset in at), offsets)
    places = [(topic, number) for topic, number in state["places"]]
    _check_positions(places, zip(state["place"], state["offsets"], strict=True), offsets)


def _check_positions(
    places: list[TopicPartition],
    positions: Iterable[tuple[int, int]],
    offsets: Mapping[TopicPartition, int],
) -> None:
    """Raise ValueError if waiting features were not read before the offsets, or are out of order.

    Positions are the number of a partition, as a hundred thousand are compared sooner, and offset.
    """
    if unknown := [place for place in places if place not in offsets]:
        raise ValueError(f"a partition that it has not learnt: {unknown[0]!r}")
    if len({*places}) < len(places):
        raise ValueError("a partition is there twice")
    last, ends = [-1] * len(places), [offsets[place] for place in places]
    for number, offset in positions:
        if offset >= ends[number]:
            raise ValueError(f"an offset that it has not learnt: {places[number]!r}, {offset}")
        if offset <= last[number]:
            raise ValueError(f"an offset twice, or before another: {places[number]!r}, {offset}")
        last[number] = offset
