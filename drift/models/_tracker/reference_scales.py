"""How the reference reads an example: dense features standardised, sparse rows at unit norm.

The statistics that scale an example include that example. NaN is a missing value. The statistics
decide whether a name that an example lacks is missing or 0.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from drift._values import number
from drift.models._base.examples import LARGEST, as_dict, in_order, refusal_of
from drift.models._tracker import tables as c
from drift.models._tracker.names import STEP, mix, number_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from numpy.typing import NDArray

    from drift.types import Features

    Array = NDArray[Any]
    Recall = Callable[[int], Array | None]

__all__ = [
    "NO_CONTEXT",
    "PRESENT",
    "Point",
    "becomes_sparse",
    "commit",
    "float32",
    "read",
    "resized",
    "update_context",
]

#: Columns of the statistics that others than `_update_statistics` read.
_MEAN, _VARIANCE, _COUNT, _SHARE, *_, PRESENT, _SINCE, _ZERO = range(len(c.FEATURE))


class View(NamedTuple):
    """What linear members and splines read of an example: first the bias, an input of 1.

    Parameters
    ----------
    cells, inputs
        Cells of the linear members and their inputs.
    knots, basis, heights
        Knots of the splines; the value of each knot's basis function; and that over the root of the
        number of curves.
    """

    cells: Array
    inputs: Array
    knots: Array
    basis: Array
    heights: Array


#: Sparse rows have no curves, and wide rows have no context.
_NO_CURVES = np.zeros(1, int), np.ones(1), np.ones(1)
NO_CONTEXT = View(np.zeros(1, int), np.ones(1), *_NO_CURVES)


class Point(NamedTuple):
    """An example as it was read.

    Parameters
    ----------
    numbers, values
        Its features among the supports, ascending, and their values.
    plain, context
        Its features, without and with their context.
    names
        Names once the example is learnt.
    n_values
        Number of values that are not 0.
    updates, squares
        The state's arrays after the example, and what it adds to the sums of squared norms.
    key, deviations
        The key of its ticket, 0 unless labels are late; its deviations from the running means.
    tree_row, context_tree_row
        What trees read, without and with the context; None where they read nothing.
    """

    numbers: Array
    values: Array
    plain: View
    context: View
    names: list[Hashable]
    n_values: int
    updates: dict[str, Array]
    key: int
    squares: tuple[float, float] = (0.0, 0.0)
    deviations: Array = np.zeros(0)
    tree_row: Array | None = None
    context_tree_row: Array | None = None

    @property
    def squared(self) -> float:
        """Squared norm among the supports."""
        return float(self.values @ self.values)


def read(s: Any, x: Features, recall: Recall | None = None) -> Point:
    """Return an example as a tracker's state scales it; FeatureError for what cannot be learnt.

    Where labels are late, `recall` returns an example's deviations from the running means when it
    was predicted, by its key, or None for those of now.
    """
    values = values_of(x)
    return _read_sparse(s, values, recall) if s.sparse else _read_dense(s, values, recall)


def update_context(s: Any, point: Point) -> None:
    """Update the running means by an example that is predicted."""
    if not s.sparse:
        s.means = point.updates["means"][: len(s.means)]  # new names have none yet


def commit(s: Any, point: Point, *, context_updated: bool) -> None:
    """Store an example's statistics, and its means unless `update_context` did."""
    if context_updated and not s.sparse:  # new names had no means
        point.updates["means"][: len(s.means)] = s.means
    vars(s).update(point.updates, names=point.names)
    s.sums[[c.EXAMPLES, c.VALUES]] += 1.0, point.n_values
    s.sums[[c.SQUARES, c.CONTEXT_SQUARES]] += point.squares
    if not s.sparse:
        s.common = np.zeros(len(s.names), np.int32)


def becomes_sparse(s: Any, point: Point) -> bool:
    """Whether rows are sparse from the next one on: they hold few of many names."""
    if not s.auto or s.sparse:
        return False
    if len(point.names) >= c.DENSE_NAMES:
        return True
    active = np.count_nonzero(point.updates["features"][:, PRESENT])
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
        raise refusal_of(features, problem) from None
    if not squares <= LARGEST:
        raise refusal_of({name: v for name, v in features.items() if v is not None})
    return values


def float32(numbers: Array) -> Array:
    """Return numbers in float32; the largest one in place of infinity."""
    most = np.finfo(np.float32).max
    clipped: Array = numbers.clip(-most, most).astype(np.float32)
    return clipped


def resized(array: Array, size: int, axis: int) -> Array:
    """Return an array padded with zeros to at least `size` along an axis."""
    shape = list(array.shape)
    if shape[axis] >= size:
        return array
    shape[axis] = size
    larger = np.zeros(shape, array.dtype)
    larger[tuple(map(slice, array.shape))] = array
    return larger


# --- running statistics --------------------------------------------------------------------------


def _update_statistics(f: Array, x: Array) -> Array:
    """Update the statistics of features, a row each, by their values; NaN updates nothing.

    They restart where errors have long exceeded the deviation by far, or where steps between values
    have become far smaller than they were.
    """
    mean, variance, count, share, level, last, steps, recent, present, since, zero = f.T
    given = ~np.isnan(x)
    x = np.where(given, x, last)
    error, step = x - mean, np.where(count > 0.0, x - last, 0.0)
    rate = np.maximum(1.0 / (count + 1.0), c.STATISTICS_RATE)
    far = np.where((count >= c.WARM_UP) & (variance > 0.0), c.OUTLIER * np.sqrt(variance), math.inf)
    error = error.clip(-far, far)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        variances = np.minimum(error**2 / variance, c.LEVEL_MOST)
    level = np.where(variance > 0.0, level + c.LEVEL_RATE * (variances - level), level)
    steps = steps + rate * (step**2 - steps)
    recent = recent + np.maximum(rate, c.LEVEL_RATE) * (step**2 - recent)
    count = count + 1.0
    restarts = (level > c.LEVEL_HIGH) | (recent < c.LEVEL_LOW * steps)
    restarts &= count > c.WARM_UP
    mean = np.where(restarts, x, mean + rate * error)
    variance = np.where(restarts, 0.0, (1.0 - rate) * (variance + rate * error**2))
    variance[variance <= 1e-24 * mean**2] = 0.0  # rounding
    count, level = np.where(restarts, 2.0, count), np.where(restarts, 0.0, level)
    steps = np.where(restarts, recent, steps)
    zero, present = np.maximum(zero, x == 0.0), present + (x != 0.0)
    new = [mean, variance, count, share, level, x, steps, recent, present, since, zero]
    return np.where(given, np.array(new), f.T).T.copy()


def _z_scores(x: Array, mean: Array, variance: Array) -> Array:
    """Standard scores, clipped; 0 for what does not vary."""
    deviation = np.sqrt(variance)
    varies, z = deviation > 0.0, np.zeros(len(x))
    z[varies] = ((x - mean)[varies] / deviation[varies]).clip(-c.VALUE_LIMIT, c.VALUE_LIMIT)
    return z


# --- dense features ------------------------------------------------------------------------------


class Standardised(NamedTuple):
    """Standard scores, 0 where missing, which of them have a curve, and raw values."""

    z: Array
    curved: Array
    statistics: Array  # after the example
    values: Array  # NaN where missing


def _standardise(f: Array, x: Array, absent: Array, n: float) -> Standardised:
    """Standardise the n-th example: NaN is missing; an `absent` name is missing or 0."""
    f = f.copy()
    f[(f[:, _COUNT] == 0.0) & ~np.isnan(x), _SINCE] = n - 1.0
    f = _update_statistics(f, x)
    observed = absent | ~np.isnan(x)
    f[observed, _SHARE] += max(1.0 / n, c.STATISTICS_RATE) * (~absent - f[:, _SHARE])[observed]
    mean, variance, share = f[:, _MEAN], f[:, _VARIANCE], f[:, _SHARE]
    # An absent feature is missing if 0 was ever given, or if most examples since the first have it
    # and the standard score of 0 would be clipped. Else it is 0, as it was in earlier examples.
    often = 2.0 * f[:, PRESENT] >= n - f[:, _SINCE]
    gaps = (f[:, _ZERO] > 0.0) | (often & (mean**2 >= (1.0 - 1e-9) * c.VALUE_LIMIT**2 * variance))
    gaps &= variance > 0.0
    missing, x = np.where(absent, gaps, np.isnan(x)), np.where(absent, 0.0, x)
    variance = np.where(gaps, variance, share * (variance + (1.0 - share) * mean**2))
    mean = np.where(gaps, mean, share * mean)
    z = np.where(missing, 0.0, _z_scores(x, mean, variance))
    rare = (x == 0.0) & (2.0 * mean**2 <= (1.0 + 1e-9) * variance)  # most are 0
    return Standardised(z, ~missing & ~rare, f, np.where(missing, math.nan, x))


def _read_dense(s: Any, values: dict[Hashable, float], recall: Recall | None) -> Point:
    """Standardise the features; a missing value becomes 0 and has no curve."""
    old = set(s.names)
    new = in_order([name for name, v in values.items() if name not in old and v == v])
    names = s.names + new[: max(c.DENSE_NAMES - len(old), 0)]
    d, n = len(names), s.sums[c.EXAMPLES] + 1.0
    absent = np.array([name not in values for name in names], bool)
    x, key = np.array([values.get(name, math.nan) for name in names], float), 0
    if recall is not None:
        given = zip(names, x.tolist(), strict=True)
        key = _key([(number_of(name), v) for name, v in given if v == v])
    features, means = resized(s.features, d, 0), resized(s.means, min(d, c.CONTEXT), 0)
    statistics = resized(s.deviation_statistics, len(means), 0)
    deviations = np.zeros((0, len(c.HORIZONS)))
    if 0 < d <= c.CONTEXT:
        # Deviations from the means of earlier values: weighted sums over their sums of weights.
        mean, weight = means[..., 0], means[..., 1]
        deviations = x[:, np.newaxis] - mean / np.where(weight > 0.0, weight, math.nan)
        deviations = float32(deviations).astype(float)  # as in tickets
        recalled = None if recall is None else recall(key)
        if recalled is not None:
            later = np.full(deviations.size - len(recalled), math.nan)  # of names since then
            deviations = np.append(recalled, later).reshape(deviations.shape)
        step = np.stack([x[:, np.newaxis] - mean, 1.0 - weight], axis=-1)
        step /= np.array(c.HORIZONS)[:, np.newaxis]
        means = means + np.where(np.isnan(x)[:, np.newaxis, np.newaxis], 0.0, step)
        features = np.concatenate([features, statistics.reshape(-1, len(c.FEATURE))])
        absent = np.append(absent, np.zeros(deviations.size, bool))
    z, curved, features, values_read = _standardise(features, np.append(x, deviations), absent, n)
    row, context_row = values_read.clip(-c.COLUMN_LIMIT, c.COLUMN_LIMIT).astype(np.float32), None
    n_values = sum(v == v != 0.0 for v in values.values())
    plain, squares = _view(z[:d], curved[:d], s.sums[c.SQUARES], n)
    context, context_squares = NO_CONTEXT, 0.0
    if len(deviations):
        both, curved, context_row = (
            np.column_stack([a[:d], a[d:].reshape(d, -1)]).ravel() for a in (z, curved, row)
        )
        context, context_squares = _view(both, curved, s.sums[c.CONTEXT_SQUARES], n)
        statistics = features[d:].reshape(statistics.shape)
    updates = {"features": features[:d], "common": np.zeros(d, np.int32)}
    updates |= {"means": means, "deviation_statistics": statistics}
    some = np.flatnonzero(plain.inputs[1:])
    views = some, plain.inputs[1 + some], plain, context
    norms = squares, context_squares
    rows = row[: min(d, c.TREE_COLUMNS)], context_row
    return Point(*views, names, n_values, updates, key, norms, deviations, *rows)


def _key(values: Iterable[tuple[int, float]]) -> int:
    """Hash an example's values by the numbers of their names, whatever their order."""
    bits = [(n, struct.unpack("<Q", struct.pack("<d", v + 0.0))[0]) for n, v in values]
    return sum(mix(n ^ mix((b + STEP) % 2**64)) for n, b in bits) % 2**64


def _view(z: Array, curved: Array, squares: float, n: float) -> tuple[View, float]:
    """Return the members' view of standardised values, and their squared norm."""
    squared = float(z @ z)
    inputs = np.append(1.0, z / math.sqrt((squares + squared) / n + 1e-9))
    inputs = inputs.astype(np.float32).astype(float)
    hats = _hats(np.flatnonzero(curved), z)
    return View(np.arange(len(inputs)), inputs, *hats), squared


def _hats(number: Array, z: Array) -> tuple[Array, Array, Array]:
    """Return the knots around the values of these features, their basis values and heights."""
    number = number[number < c.SPLINED]
    most = (c.KNOTS - 1) / 4.0
    place = most * z[number].clip(-2.0, 2.0) + 2.0 * most
    below = np.minimum(place.astype(int), c.KNOTS - 2)
    knots = np.append(0, np.add.outer(1 + c.KNOTS * number + below, [0, 1]))
    basis = np.append(1.0, np.array([below + 1 - place, place - below]).T)
    heights = basis * (1.0 / math.sqrt(max(len(number), 1)))
    heights[0] = 1.0
    return knots, basis, heights


# --- sparse rows ---------------------------------------------------------------------------------


def _read_sparse(s: Any, values: dict[Hashable, float], recall: Recall | None) -> Point:
    """Divide by the norm; number features by hash, and standardise common ones."""
    slots: dict[int, float] = {}
    for name, v in values.items():
        if v == v != 0.0:
            number = number_of(name)
            slots[number] = slots.get(number, 0.0) + v
    numbers = np.array(sorted(slots), np.int64)
    x = np.array([slots[number] for number in numbers.tolist()], float)
    given, common = np.full(len(s.common), math.nan), np.isin(numbers, s.common)
    place = np.searchsorted(s.common, numbers[common])
    given[place] = x[common]
    f = _update_statistics(s.features, given)
    x[common] = _z_scores(x[common], f[place, _MEAN], f[place, _VARIANCE])
    unit = (x / (math.sqrt(float(x @ x)) or math.inf)).astype(np.float32).astype(float)
    some = unit != 0.0
    numbers, unit = numbers[some], unit[some]
    cells, at = np.unique(numbers * c.HASH_SLOTS >> c.NUMBER_BITS, return_inverse=True)
    inputs = np.bincount(at, weights=unit, minlength=len(cells))
    plain = View(np.append(0, 1 + cells), np.append(1.0, inputs), *_NO_CURVES)
    updates, key = {"features": f}, 0 if recall is None else _key(slots.items())
    return Point(numbers, unit, plain, NO_CONTEXT, s.names, len(slots), updates, key)
