"""How the tracker sees an example: dense features standardised, sparse rows at unit norm.

What is absent is 0, and what is 0 is absent. Statistics that scale an example are of that one and
those before it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from drift.kernels import Linear
from drift.models._store.features import as_dict, culprit, in_order, number
from drift.models._store.undo import Part
from drift.models._tracker.plan import KNOTS, PAIR_KNOTS, PAIRED, SPLINED, SURFACES
from drift.models._tracker.slots import NUMBER_BITS, SLOTS, hash_of

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    from drift.types import Features

__all__ = ["DENSE_NAMES", "Point", "Scaling", "values_of"]

#: Names that dense scaling tells apart.
DENSE_NAMES = 4096
#: Names up to which nothing is sparse, and the share of them that examples have where it is.
FEW_NAMES, SPARSE_SHARE = 256, 0.25
#: Names come back in tables, and in texts others come: up to so many names, rows are sparse only
#: where a name has had fewer values, on average. Beyond, zeros would take too much time.
MANY_NAMES, SPARSE_VALUES = 1024, 3.0
#: What such a share of the examples had, if they were so many, is standardised there, too.
COMMON_SHARE, FEW_EXAMPLES = 0.5, 8
#: Rate of the running mean and deviation, the largest value in deviations, and least mean square.
RATE, MOST, LEAST = 1e-3, 3.0, 1e-9
#: Behind as many examples a value counts in mean and deviation as at most so many deviations off,
#: so that one far away does not leave the others without a difference. The variance of what is
#: seldom there thus fades; at next to nothing it begins anew.
EARLY, FAR, FADED = 10, 5.0, 1e-200


class Hats(NamedTuple):
    """An example to the splines: curves of the dense features that it has, surfaces of their pairs.

    Parameters
    ----------
    knots
        Behind the bias: of a curve those on either side of the value, of a surface the four around
        the pair.
    values
        How near each is, which is linear from knot to knot, over the root of the number of these
        curves or surfaces.
    near
        How near each is: from 0 to 1.
    """

    knots: NDArray[np.int64]
    values: NDArray[np.float32]
    near: NDArray[np.float64]


class Point(NamedTuple):
    """An example as it was read.

    Parameters
    ----------
    features
        For the store, by number: of a dense name its own, of a sparse one its hash. The store
        scales sparse rows by itself.
    squared
        Squared norm, scaled.
    slots, values
        Of the linear experts' weights.
    hats
        Of the splines' weights.
    n_values
        Number of values that are not absent.
    learnt
        What of `Scaling` changes where the example is learnt.
    """

    features: dict[int, float]
    squared: float
    slots: NDArray[np.int64]
    values: NDArray[np.float32]
    hats: Hats
    n_values: int
    learnt: dict[str, Any]


#: Slots and values of nothing, and hats.
_NONE = np.zeros(0, np.int64), np.zeros(0, np.float32)
_NO_HATS = Hats(*_NONE, np.zeros(0))


def _places(
    z: NDArray[np.float64], knots: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return of each value the knot below, and how near it is to that one and to the next."""
    most = (knots - 1) / 4.0
    place = most * np.clip(z, -2.0, 2.0) + 2.0 * most
    below = np.minimum(place.astype(int), knots - 2)
    return below, below + 1 - place, place - below


def _splined(z: NDArray[np.float64], present: NDArray[np.bool_], pairs: bool) -> Hats:  # noqa: FBT001
    """Return the knots of standardised values: of their curves, and of pairs' surfaces."""
    number = np.flatnonzero(present[:SPLINED])
    below, left, right = _places(z[number], KNOTS)
    first = KNOTS * number + SURFACES * (pairs & (number >= PAIRED))
    knots = np.add.outer(first + below, [0, 1]).ravel()
    near = np.stack([left, right], axis=1).ravel()
    hats = near / math.sqrt(max(len(number), 1))
    number = number[number < PAIRED]
    if pairs and len(number) > 1:
        below, left, right = _places(z[number], PAIR_KNOTS)
        j, i = np.tril_indices(len(number), -1)
        pair = number[j] * (number[j] - 1) // 2 + number[i]
        first = PAIR_KNOTS * (PAIR_KNOTS * pair + below[j]) + below[i]
        corners = np.add.outer(KNOTS * PAIRED + first, [0, 1, PAIR_KNOTS, PAIR_KNOTS + 1])
        sides = left[j] * left[i], left[j] * right[i], right[j] * left[i], right[j] * right[i]
        products = np.stack(sides, axis=1).ravel()
        knots, near = np.append(knots, corners), np.append(near, products)
        hats = np.append(hats, products / math.sqrt(len(i)))
    return Hats(knots, hats.astype(np.float32), near)


def _number(name: Hashable) -> int:
    return hash_of(name) >> (64 - NUMBER_BITS)


def _standardised(
    v: NDArray[np.float64], mean: NDArray[np.float64], variance: NDArray[np.float64], rate: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return values by a running mean and variance that have them, and these."""
    error = v - mean
    if rate < 1.0 / EARLY:
        most = FAR * np.sqrt(variance)
        error = np.where(variance > 0.0, np.clip(error, -most, most), error)
    mean = mean + rate * error
    variance = (1.0 - rate) * (variance + rate * error * error)
    deviation = np.sqrt(variance)
    varies = deviation > 1e-12 * abs(mean)
    z = np.clip((v - mean) / np.where(varies, deviation, 1.0), -MOST, MOST) * varies
    return z, mean, variance * (variance > FADED)


def values_of(x: Features) -> dict[Hashable, float]:
    """Return the values that are not absent, or refuse the example."""
    features = as_dict(x)
    try:
        values = {name: number(value) for name, value in features.items()}
        values = {name: v for name, v in values.items() if v == v != 0.0}
        squared = math.fsum(v * v for v in values.values())
    except (TypeError, ValueError, OverflowError) as problem:
        raise culprit(features, problem) from None
    if not squared <= 1e300:
        raise culprit(features)
    return values


class Scaling(Part):
    """The scale of the features, and what kind it is.

    Parameters
    ----------
    scale
        ``"dense"``, ``"sparse"``, or ``"auto"``: dense until the examples look sparse.
    pairs
        Have surfaces, until an example with more than 16 features brings the 17th name.
    """

    _kept = frozenset({"mean", "variance", "names", "present", "common"})

    def __init__(self, scale: str, *, pairs: bool) -> None:
        self.auto = scale == "auto"
        self.sparse = scale == "sparse"
        self.pairs = pairs
        self.names: list[Hashable] = []
        self.mean = np.zeros(0)
        self.variance = np.zeros(0)
        #: How many examples had each name.
        self.present = np.zeros(0)
        #: Of sparse rows the numbers, in order, of what mean and variance are of.
        self.common = np.zeros(0, np.int64)
        self.squares = 0.0
        self.n_examples = 0
        self.n_values = 0

    @property
    def kernel(self) -> Linear:
        """Inner product of examples as they come to the store."""
        return Linear(normalize=self.sparse)

    @property
    def n_slots(self) -> int:
        """Number of weights of a linear expert."""
        return SLOTS if self.sparse else len(self.names)

    def read(self, values: dict[Hashable, float]) -> Point:
        """Scale an example, as `values_of` gives it; nothing changes."""
        return self._unit(values) if self.sparse else self._dense(values)

    def _unit(self, values: dict[Hashable, float]) -> Point:
        numbered = [(_number(name), v) for name, v in values.items()]
        learnt: dict[str, Any] = {}
        if len(self.common):
            given, v = dict(numbered), self.mean.copy()
            at = {n: j for j, n in enumerate(self.common.tolist()) if n in given}
            v[list(at.values())] = [given[n] for n in at]
            rate = max(RATE, 1.0 / (self.n_examples + FEW_EXAMPLES + 1))
            z, learnt["mean"], learnt["variance"] = _standardised(v, self.mean, self.variance, rate)
            numbered = [(n, float(z[at[n]]) if n in at else v) for n, v in numbered]
            numbered = [(n, v) for n, v in numbered if v]
        norm = math.sqrt(math.fsum(v * v for _, v in numbered))
        if not norm:  # no values, or such small ones that their squares vanish
            return Point({}, 0.0, *_NONE, _NO_HATS, 0, learnt)
        features: dict[int, float] = {}
        for n, value in numbered:
            features[n] = features.get(n, 0.0) + value
        slots = np.array(list(features)) * SLOTS >> NUMBER_BITS
        unit = np.array(list(features.values())) / norm
        taken, place = np.unique(slots, return_inverse=True)
        shares = np.bincount(place, weights=unit, minlength=len(taken)).astype(np.float32)
        return Point(features, 1.0, taken, shares, _NO_HATS, len(numbered), learnt)

    def _dense(self, values: dict[Hashable, float]) -> Point:
        known = dict.fromkeys(self.names)
        fresh = in_order([name for name in values if name not in known])
        names = self.names + fresh[: DENSE_NAMES - len(known)]
        n, d = self.n_examples + 1, len(names)
        v = np.array([values.get(name, 0.0) for name in names])
        rate = max(RATE, 1.0 / n)
        more = 0, d - len(known)
        z, mean, variance = _standardised(
            v, np.pad(self.mean, more), np.pad(self.variance, more), rate
        )
        pairs = self.pairs and not (len(known) <= PAIRED < min(d, len(values)))
        # What is 0 in most examples; if it is 0 or 1, in two of three, as rounding may have it.
        rare = 2.0 * mean * mean <= (1.0 + 1e-9) * variance
        hats = _splined(z, (v != 0.0) | ~rare, pairs)
        squares = self.squares + float(z @ z)
        z /= math.sqrt(squares / n + LEAST)
        learnt = {"names": names, "mean": mean, "variance": variance, "squares": squares}
        learnt |= {"pairs": pairs, "present": np.pad(self.present, more) + (v != 0.0)}
        values32 = z.astype(np.float32)
        features = {j: v for j, v in enumerate(values32.tolist()) if v}
        norm2 = float(np.square(values32, dtype=float).sum())
        return Point(features, norm2, np.arange(d), values32, hats, len(values), learnt)

    def learn(self, point: Point) -> bool:
        """Keep what an example tells; return whether rows are sparse from the next one on."""
        vars(self).update(point.learnt)
        self.n_examples += 1
        self.n_values += point.n_values
        n_names = len(self.names)
        if self.sparse or not self.auto or n_names <= FEW_NAMES:
            return False
        most = SPARSE_SHARE * self.n_examples
        if n_names <= MANY_NAMES:
            most = min(most, SPARSE_VALUES)
        rare = self.n_values < most * n_names
        if rare or n_names == DENSE_NAMES:
            common = self._common()
            place = list(common.values())
            kept = {"mean": self.mean[place], "variance": self.variance[place]}
            kept["common"] = np.array(list(common), np.int64)
            vars(self).update(Scaling("sparse", pairs=False).__dict__, auto=True, **kept)
            return True
        return False

    def _common(self) -> dict[int, int]:
        """Return what many of not too few examples had, by the number it gets in sparse rows."""
        if self.n_examples < FEW_EXAMPLES:
            return {}
        places = np.flatnonzero(self.present >= COMMON_SHARE * self.n_examples).tolist()
        return dict(sorted({_number(self.names[j]): j for j in places}.items()))
