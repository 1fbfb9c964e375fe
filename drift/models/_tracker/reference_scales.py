"""How the reference reads an example: dense features standardised, sparse rows at unit norm.

Statistics that scale an example are of that one and those before it. NaN is a missing value; of a
name that an example does not have, the statistics tell whether it is missing or 0.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from drift.models._store.features import LARGEST, as_dict, culprit, in_order, number
from drift.models._tracker import tables as c
from drift.models._tracker.names import NUMBER_BITS, STEP, hash_of, mix

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    from drift.types import Features

    Array = NDArray[Any]

__all__ = ["NO_CONTEXT", "PRESENT", "Point", "keep", "note", "read", "resized", "turns"]

#: Columns of the statistics.
_MEAN, _VARIANCE, _COUNT, _SHARE, _LEVEL, _LAST = range(6)
_STEPS, _RECENT, PRESENT, _SINCE, _ZERO = range(6, len(c.FEATURE))


class View(NamedTuple):
    """What linear experts and splines read of an example.

    Parameters
    ----------
    cells, inputs
        Cells of the linear experts, the bias left out, and their inputs.
    knots, near, scales
        Knots of the splines, the bias left out, how near each is, and one over the root of the
        number of curves, or of surfaces.
    """

    cells: Array
    inputs: Array
    knots: Array
    near: Array
    scales: Array


#: Of what is not dense there are no curves, and of wide rows there is no context.
_NO_CURVES = np.zeros(0, int), np.zeros(0), np.zeros(0)
NO_CONTEXT = View(np.zeros(0, int), np.zeros(0), *_NO_CURVES)


class Point(NamedTuple):
    """An example as it was read.

    Parameters
    ----------
    numbers, values
        Its features among the supports, ascending, and their values.
    plain, context
        Its features by themselves, and beside their context.
    names, pairs
        Names once the example is learnt, and whether there are surfaces.
    n_values
        Number of values that are not 0.
    learnt, squares
        Arrays of the state then; and what is added to the sums of squared norms.
    key, back
        What its ticket is found by; and its deviations from running means.
    """

    numbers: Array
    values: Array
    plain: View
    context: View
    names: list[Hashable]
    pairs: bool | None
    n_values: int
    learnt: dict[str, Array]
    key: int
    squares: tuple[float, float] = (0.0, 0.0)
    back: Array = NO_CONTEXT.inputs

    @property
    def squared(self) -> float:
        """Squared norm among the supports."""
        return float(self.values @ self.values)


def read(s: Any, x: Features, back: Array | None = None) -> Point:
    """Return an example as a tracker's state scales it; FeatureError for what cannot be learnt.

    `back` has its deviations from the running means if it is of another time.
    """
    values = values_of(x)
    return _read_sparse(s, values) if s.sparse else _read_dense(s, values, back)


def note(s: Any, point: Point) -> None:
    """Let a state have what an example tells of its context, as it is predicted."""
    if not s.sparse:
        s.means = point.learnt["means"][: len(s.means)]  # names that are new have none yet


def keep(s: Any, point: Point, *, noted: bool) -> None:
    """Let a state have what an example tells of scales, or what `note` did not give it."""
    if noted and not s.sparse:  # names that are new had no means yet
        point.learnt["means"][: len(s.means)] = s.means
    vars(s).update(point.learnt, names=point.names, pairs=point.pairs)
    s.sums[[c.EXAMPLES, c.VALUES]] += 1.0, point.n_values
    s.sums[[c.SQUARES, c.CONTEXT_SQUARES]] += point.squares
    if not s.sparse:
        s.common = np.zeros(len(s.names), np.int32)


def turns(s: Any, point: Point) -> bool:
    """Whether rows are sparse from the next one on: they have few of many names."""
    if not s.auto or s.sparse:
        return False
    if len(point.names) >= c.DENSE_NAMES:
        return True
    active = np.count_nonzero(point.learnt["features"][:, PRESENT])
    if active <= c.FEW_NAMES:
        return False
    least = c.SPARSE_SHARE * (s.sums[c.EXAMPLES] + 1.0)
    if active <= c.MANY_NAMES:
        least = min(least, c.SPARSE_VALUES)
    return bool(s.sums[c.VALUES] + point.n_values < least * active)


def values_of(x: Features) -> dict[Hashable, float]:
    """Return the values of an example, NaN where one is missing, or refuse it."""
    features = as_dict(x)
    try:
        values = {name: math.nan if v is None else number(v) for name, v in features.items()}
        squares = math.fsum(v * v for v in values.values() if v == v)
    except (TypeError, ValueError, OverflowError) as problem:
        raise culprit(features, problem) from None
    if not squares <= LARGEST:
        raise culprit({name: v for name, v in features.items() if v is not None})
    return values


def resized(array: Array, size: int, axis: int) -> Array:
    """Return an array with at least so many along an axis, zeros behind what it has."""
    shape = list(array.shape)
    if shape[axis] >= size:
        return array
    shape[axis] = size
    larger = np.zeros(shape, array.dtype)
    larger[tuple(map(slice, array.shape))] = array
    return larger


# --- running statistics --------------------------------------------------------------------------


def _taken_in(f: Array, x: Array) -> Array:
    """Return statistics of features, a row each, with the values given; others are NaN.

    Those of a feature restart where errors have been far larger than the deviation for a while, or
    steps from value to value far smaller than they used to be.
    """
    given, f = ~np.isnan(x), f.copy()
    x = np.where(given, x, f[:, _LAST])
    mean, variance, count = f[:, _MEAN], f[:, _VARIANCE], f[:, _COUNT]
    error, step = x - mean, np.where(count > 0.0, x - f[:, _LAST], 0.0)
    rate = np.maximum(1.0 / (count + 1.0), c.RATE)
    far = np.where((count >= c.EARLY) & (variance > 0.0), c.FAR * np.sqrt(variance), math.inf)
    error = np.clip(error, -far, far)
    steps, recent, level = f[:, _STEPS], f[:, _RECENT], f[:, _LEVEL]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        u = (1.0 - c.LEVEL_RATE) * level + c.LEVEL_RATE * (error**2 / variance)
    level = np.where(variance > 0.0, u, level)
    steps = steps + rate * (step**2 - steps)
    recent = recent + np.maximum(rate, c.LEVEL_RATE) * (step**2 - recent)
    count = count + 1.0
    restarts = (level > c.LEVEL_HIGH) | (recent < c.LEVEL_LOW * steps)
    restarts &= count > c.EARLY
    mean = np.where(restarts, x, mean + rate * error)
    variance = np.where(restarts, 0.0, (1.0 - rate) * (variance + rate * error**2))
    variance[variance <= 1e-24 * mean**2] = 0.0  # what is left is rounding
    count, level = np.where(restarts, 2.0, count), np.where(restarts, 0.0, level)
    steps = np.where(restarts, recent, steps)
    zero, present = np.maximum(f[:, _ZERO], x == 0.0), f[:, PRESENT] + (x != 0.0)
    share, since = f[:, _SHARE], f[:, _SINCE]
    new = (mean, variance, count, share, level, x, steps, recent, present, since, zero)
    return np.where(given[:, np.newaxis], np.stack(new, axis=1), f)


def _in_deviations(x: Array, mean: Array, variance: Array) -> Array:
    """Deviations from the mean, in units of the standard one; 0 of what does not vary."""
    deviation = np.sqrt(variance)
    varies, z = deviation > 0.0, np.zeros(len(x))
    z[varies] = ((x - mean)[varies] / deviation[varies]).clip(-c.CLIPPED, c.CLIPPED)
    return z


# --- dense features ------------------------------------------------------------------------------


class Standardised(NamedTuple):
    """Values in deviations from their means, 0 where missing; and which of them have a curve."""

    z: Array
    curved: Array
    statistics: Array  # once they are learnt


def _standardise(f: Array, x: Array, absent: Array, n: float) -> Standardised:
    """Standardise the n-th example: NaN is missing; of an `absent` name the statistics tell."""
    f = f.copy()
    f[(f[:, _COUNT] == 0.0) & ~np.isnan(x), _SINCE] = n - 1.0
    f = _taken_in(f, x)
    told = absent | ~np.isnan(x)
    f[told, _SHARE] += max(1.0 / n, c.RATE) * (~absent - f[:, _SHARE])[told]
    mean, variance, share = f[:, _MEAN], f[:, _VARIANCE], f[:, _SHARE]
    # An absent feature is missing if it was ever given as 0, or if most examples since the first
    # have it and 0, standardised, would be clipped. Else it is 0, and so are all that were absent.
    often = 2.0 * f[:, PRESENT] >= n - f[:, _SINCE]
    gaps = (f[:, _ZERO] > 0.0) | (often & (mean**2 >= (1.0 - 1e-9) * c.CLIPPED**2 * variance))
    gaps &= variance > 0.0
    missing, x = np.where(absent, gaps, np.isnan(x)), np.where(absent, 0.0, x)
    variance = np.where(gaps, variance, share * (variance + (1.0 - share) * mean**2))
    mean = np.where(gaps, mean, share * mean)
    z = np.where(missing, 0.0, _in_deviations(x, mean, variance))
    rare = (x == 0.0) & (2.0 * mean**2 <= (1.0 + 1e-9) * variance)  # 0, as in most examples
    return Standardised(z, ~missing & ~rare, f)


def _read_dense(s: Any, values: dict[Hashable, float], given: Array | None) -> Point:
    """Standardise the features; a missing value is 0 then, and has no curve."""
    known = set(s.names)
    fresh = in_order([name for name, v in values.items() if name not in known and v == v])
    names = s.names + fresh[: max(c.DENSE_NAMES - len(known), 0)]
    n, absent = s.sums[c.EXAMPLES] + 1.0, np.array([name not in values for name in names], bool)
    raw = x = np.array([values.get(name, math.nan) for name in names], float)
    z, curved, f = _standardise(resized(s.features, len(names), 0), x, absent, n)
    n_values = sum(v == v != 0.0 for v in values.values())
    pairs = n_values <= c.PAIRED if s.pairs is None else s.pairs
    plain, squares = _view(z, curved, s.sums[c.SQUARES], n, pairs=pairs)
    some = np.flatnonzero(plain.inputs)
    learnt = {"features": f, "common": np.zeros(len(names), np.int32)}
    context, beside, back = NO_CONTEXT, 0.0, np.zeros((0, len(c.HORIZONS)))
    means = resized(s.means, min(len(names), c.CONTEXT), 0)
    deviations = resized(s.deviations, len(means), 0)
    if 0 < len(names) <= c.CONTEXT:
        # Deviations from the means of the values before, which have weights of their own.
        mean, weight = means[..., 0], means[..., 1]
        x = np.where(absent, math.nan, x)[:, np.newaxis]
        back = x - mean / np.where(weight > 0.0, weight, math.nan)
        back = back.astype(np.float32).astype(float)  # as tickets keep it
        if given is not None:
            later = np.full(back.size - len(given), math.nan)  # names that have come since
            back = np.append(given, later).reshape(back.shape)
        flat = deviations.reshape(-1, len(c.FEATURE))
        found = _standardise(flat, back.ravel(), np.zeros(back.size, bool), n)
        both = np.column_stack([z, found.z.reshape(back.shape)]).ravel()
        curved = np.column_stack([curved, found.curved.reshape(back.shape)]).ravel()
        context, beside = _view(both, curved, s.sums[c.CONTEXT_SQUARES], n, pairs=False)
        deviations = found.statistics.reshape(deviations.shape)
        step = np.stack([x - mean, 1.0 - weight], axis=-1) / np.array(c.HORIZONS)[:, np.newaxis]
        means = means + np.where(np.isnan(x)[..., np.newaxis], 0.0, step)
    learnt |= {"means": means, "deviations": deviations}
    own = some, plain.inputs[some], plain, context
    held = {name: v for name, v in zip(names, raw.tolist(), strict=True) if v == v}
    key = _key({hash_of(name) >> (64 - NUMBER_BITS): v for name, v in held.items()})
    return Point(*own, names, pairs, n_values, learnt, key, (squares, beside), back)


def _key(values: dict[int, float]) -> int:
    """Sum over an example's values, by the numbers of their names, in no order."""
    bits = {n: struct.unpack("<Q", struct.pack("<d", v + 0.0))[0] for n, v in values.items()}
    return sum(mix(n ^ mix((b + STEP) % 2**64)) for n, b in bits.items()) % 2**64


def _view(z: Array, curved: Array, squares: float, n: float, *, pairs: bool) -> tuple[View, float]:
    """Return what the members read of standardised values, and their squared norm."""
    own = float(z @ z)
    inputs = (z / math.sqrt((squares + own) / n + 1e-9)).astype(np.float32).astype(float)
    return View(np.arange(len(z)), inputs, *_hats(np.flatnonzero(curved), z, pairs=pairs)), own


def _hats(number: Array, z: Array, *, pairs: bool) -> tuple[Array, Array, Array]:
    """Return knots around the values of these features, how near each is, and its scale."""
    number = number[number < c.SPLINED]
    below, left, right = _knots(z[number], c.KNOTS)
    firsts = np.array([c.n_knots(j, pairs=pairs) - 1 for j in number.tolist()], int)
    knots = np.add.outer(firsts + below, [0, 1]).ravel()
    near = np.stack([left, right], axis=1).ravel()
    scales = np.full(len(near), 1.0 / math.sqrt(max(len(number), 1)))
    number = number[number < c.PAIRED]
    if pairs and len(number) > 1:
        below, left, right = _knots(z[number], c.PAIR_KNOTS)
        j, i = np.tril_indices(len(number), -1)
        first = firsts[j] + c.KNOTS  # of feature j's surfaces, which follow its curve
        first += c.PAIR_KNOTS * (c.PAIR_KNOTS * number[i] + below[j]) + below[i]
        corners = np.add.outer(first, [0, 1, c.PAIR_KNOTS, c.PAIR_KNOTS + 1])
        sides = left[j] * left[i], left[j] * right[i], right[j] * left[i], right[j] * right[i]
        knots, near = np.append(knots, corners), np.append(near, np.stack(sides, axis=1))
        scales = np.append(scales, np.full(corners.size, 1.0 / math.sqrt(len(i))))
    return knots, near, scales


def _knots(z: Array, knots: int) -> tuple[Array, Array, Array]:
    """Return of each value the knot below, and how near it is to that one and to the next."""
    most = (knots - 1) / 4.0
    place = most * np.clip(z, -2.0, 2.0) + 2.0 * most
    below = np.minimum(place.astype(int), knots - 2)
    return below, below + 1 - place, place - below


# --- sparse rows ---------------------------------------------------------------------------------


def _read_sparse(s: Any, values: dict[Hashable, float]) -> Point:
    """Divide by the norm; features are numbered by hashes, and common ones standardised."""
    found: dict[int, float] = {}
    for name, v in values.items():
        if v == v != 0.0:
            hashed = hash_of(name) >> (64 - NUMBER_BITS)
            found[hashed] = found.get(hashed, 0.0) + v
    numbers = np.array(sorted(found), np.int64)
    x = np.array([found[number] for number in numbers.tolist()], float)
    given, common = np.full(len(s.common), math.nan), np.isin(numbers, s.common)
    place = np.searchsorted(s.common, numbers[common])
    given[place] = x[common]
    f = _taken_in(s.features, given)
    x[common] = _in_deviations(x[common], f[place, _MEAN], f[place, _VARIANCE])
    unit = (x / (math.sqrt(float(x @ x)) or math.inf)).astype(np.float32).astype(float)
    some = unit != 0.0
    numbers, unit = numbers[some], unit[some]
    cells, at = np.unique(numbers * c.SLOTS >> NUMBER_BITS, return_inverse=True)
    inputs = np.bincount(at, weights=unit, minlength=len(cells))
    plain = View(cells, inputs, *_NO_CURVES)
    learnt, key = {"features": f}, _key(found)
    return Point(numbers, unit, plain, NO_CONTEXT, s.names, s.pairs, len(found), learnt, key)
