"""The tracker in numpy: the algorithm to be read, what runs without a compiler, the tests' oracle.

Members, gates, calibration, and then one update. Arrays are those of `tables.py`: `s` has them by
name. Scores are by row and member. Two classes have one row, the second's log-odds; more have one
each, and there is one for a class to come. An update changes a copy of the state, which then takes
its place: it happens as a whole or not at all. How an example is read is in `reference_scales.py`.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from drift.models._tracker import tables as c
from drift.models._tracker.names import NUMBER_BITS, STEP, hash_of, mix
from drift.models._tracker.reference_scales import (
    NO_CONTEXT,
    PRESENT,
    Point,
    View,
    keep,
    read,
    resized,
    turns,
)
from drift.models._tracker.room import check_room

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from drift.models._tracker.plan import Plan
    from drift.types import Features, Label

    Array = NDArray[Any]

__all__ = [
    "FAMILIES",
    "Reading",
    "State",
    "back_of",
    "new_state",
    "reading",
    "ticket_of",
    "told_by",
    "updated",
]


class State(SimpleNamespace):
    """All that a tracker keeps."""

    def copy(self) -> State:
        """Return one whose arrays and lists are its own."""
        own = {k: v.copy() if hasattr(v, "copy") else v for k, v in vars(self).items()}
        return State(**own)


def new_state(plan: Plan, *, auto: bool, sparse: bool, rows: int = 1, names: int = 0) -> State:
    """Return the state of a tracker that has learnt nothing."""
    sizes = {"members": plan.n_members, "experts": plan.n_experts, "slots": 0, "rows": rows}
    sizes |= c.sizes_of(names, pairs=False, sparse=sparse)
    stored = {name: a for name, a in c.ARRAYS.items() if a.stored}
    s = State(**{name: np.zeros(a.sized(sizes), a.type) for name, a in stored.items()})
    prior = c.LATE_PRIOR if plan.late else c.GATE_PRIOR
    s.gates[:], s.covariances[:] = 1.0 / plan.n_members, prior * np.eye(plan.n_members)
    s.maps[:], s.factors[:] = 1.0 / len(s.maps), 1.0
    s.sums[[c.MEAN_LOSS, c.MEAN_WEIGHT]] = 0.7, 1.0
    s.plan, s.auto, s.sparse, s.draws = plan, auto, sparse, 0
    s.classes, s.names, s.pairs = [], [], None
    # Features and values by slot; in one slot there are none once the budget is full.
    s.supports, s.free = [], -1
    return s


class Step(NamedTuple):
    """What an example tells the members.

    Parameters
    ----------
    gradients, curvatures
        Of their log losses in their scores, the former with the other sign, by row and member.
    losses, loss
        By member, and of the first gate.
    before
        The state before the example.
    """

    gradients: Array
    curvatures: Array
    losses: Array
    loss: float
    before: State

    def of(self, members: Any) -> Step:
        """Return what it tells these members."""
        gradients, curvatures, losses, loss, before = self
        rows = gradients[:, members], curvatures[:, members]
        return Step(*rows, losses[members], loss, before)


# --- members -------------------------------------------------------------------------------------


class Kernels:
    """Kernel logistic regressions over one list of supports: gradient steps that fade."""

    weights = "coefficients", ...

    @staticmethod
    def scores(s: State, point: Point) -> Array:
        """Sums of coefficients times kernel values."""
        dots = inner_products(s, point.numbers, point.values)
        values = kernel_values(s.plan, dots, distances(s, dots, point.squared))
        scores: Array = s.factors * np.einsum("res,es->re", s.coefficients, values)
        return scores

    @staticmethod
    def learn(s: State, point: Point, step: Step) -> None:
        """Make the example a support if its loss is large beside the mean loss."""
        if not step.loss > c.INSERTION * s.sums[c.MEAN_LOSS] / s.sums[c.MEAN_WEIGHT]:
            return
        plan, slot = s.plan, s.free if s.free >= 0 else len(s.supports)
        if len(s.supports) - (s.free >= 0) == plan.budget:
            evicted, nearest, shares, s.draws = choose(step.before)
            if nearest >= 0:  # gets what the evicted one leaves, as far as their kernels agree
                left = shares * s.coefficients[:, :, evicted].astype(float)
                s.coefficients[:, :, nearest] += left.astype(np.float32)
            s.coefficients[:, :, evicted], s.squared[evicted] = 0.0, 0.0
            s.supports[evicted], s.free = (np.zeros(0, np.int32), np.zeros(0)), evicted
        s.supports[slot : slot + 1] = [(point.numbers, point.values)]
        s.coefficients = resized(s.coefficients, len(s.supports), 2)
        s.squared = resized(s.squared, len(s.supports), 0)
        s.squared[slot] = point.squared
        s.factors = s.factors * (1.0 - np.tile(plan.lost, len(plan.kernels)))
        small = s.factors < 1e-6
        s.coefficients[:, small] *= s.factors[small, np.newaxis].astype(np.float32)
        s.factors[small] = 1.0
        rates = np.tile(plan.rates, len(plan.kernels))
        s.coefficients[:, :, slot] = rates * step.gradients / s.factors


def inner_products(s: State, numbers: Array, values: Array) -> Array:
    """Inner products of an example with the supports, by slot."""
    if not len(numbers) or not s.supports:
        return np.zeros(len(s.supports))
    theirs, weights = map(np.concatenate, zip(*s.supports, strict=True))
    slots = np.repeat(np.arange(len(s.supports)), [len(own) for own, _ in s.supports])
    at = np.minimum(np.searchsorted(numbers, theirs), len(numbers) - 1)
    products = weights * values[at] * (numbers[at] == theirs)
    return np.bincount(slots, weights=products, minlength=len(s.supports))


def distances(s: State, dots: Array, squared: float) -> Array:
    """Squared distances from the supports; what is within rounding of 0 is 0."""
    total = s.squared + squared
    return np.where(total - 2.0 * dots > 1e-6 * total, total - 2.0 * dots, 0.0)


def kernel_values(plan: Plan, dots: Array, distance: Array) -> Array:
    """Values of each expert's kernel, by slot."""
    rbf = [np.where(w * distance < 40.0, np.exp(-w * distance), 0.0) for w in plan.kernels]
    values = [rbf[k] if w else dots for k, w in enumerate(plan.kernels)]
    return np.repeat(values, len(plan.rates), axis=0)


def choose(s: State) -> tuple[int, int, Array, int]:
    """Choose which support to evict.

    Returns
    -------
    tuple[int, int, Array, int]
        Of some that are drawn, the slot of the one that the first gate misses least; that of the
        nearest to it; the shares of its coefficients that this one gets, by expert; and the state
        of the draws.
    """
    kernels, draws, slots = s.plan.kernels, s.draws, []
    live = [slot for slot in range(len(s.supports)) if slot != s.free]
    for _ in range(c.DRAWS):
        draws = (draws + STEP) % 2**64
        slots.append(live[(mix(draws) >> 32) * len(live) >> 32])
    weights = s.gates[0, : s.plan.n_experts] * s.factors
    found = weights[:, np.newaxis] * s.coefficients[:, :, slots]
    sums = abs(found.reshape(len(found), len(kernels), -1, c.DRAWS).sum(axis=2)).sum(axis=0)
    norms = np.sqrt(s.squared[slots])
    cost = sum(row * (1.0 if w else norms) for w, row in zip(kernels, sums, strict=True))
    evicted = slots[int(np.argmin(cost))]
    dots = inner_products(s, *s.supports[evicted])
    distance = distances(s, dots, s.squared[evicted])
    shares = kernel_values(s.plan, dots / np.maximum(s.squared, 1e-6), distance)
    distance[[evicted, evicted if s.free < 0 else s.free]] = math.inf
    nearest = int(distance.argmin())
    if distance[nearest] == math.inf:
        nearest = -1
    return evicted, nearest, shares[:, nearest], draws


def filter_step(weights: Array, reduced: Array, x: Array, step: Step, walk: Any) -> None:
    """Step diagonal Kalman filters of logistic regressions; variances are `PRIOR - reduced`."""
    share = (c.PRIOR - reduced) * x
    divisor = 1.0 + step.curvatures * (share @ x)
    weights += (step.gradients / divisor)[:, np.newaxis] * share
    reduced += (step.curvatures / divisor)[:, np.newaxis] * share**2 - walk
    np.maximum(reduced, 0.0, out=reduced)


class Linear:
    """Gradient descent at two rates, AdaGrad, and a diagonal Kalman filter.

    A cell has their weights, AdaGrad's sum of squares, and by how much the filter's variance is
    below the prior.
    """

    weights, size, view = ("linear", (..., slice(0, 4))), "cells", "plain"
    descents = 2

    @classmethod
    def cells(cls, s: State, point: Point) -> Array:
        """Cells by row, those of new names included."""
        return resized(getattr(s, cls.weights[0]), sizes_after(s, point)[cls.size], 1)

    @classmethod
    def scores(cls, s: State, point: Point) -> Array:
        """Inner products, and a bias."""
        view: View = getattr(point, cls.view)
        cells = cls.cells(s, point)[..., : cls.descents + 2].astype(float)
        products = cells[:, 1 + view.cells] * view.inputs[:, np.newaxis]
        scores: Array = cells[:, 0] + products.sum(axis=1)
        return scores

    @classmethod
    def learn(cls, s: State, point: Point, step: Step) -> None:
        """One step of each."""
        view, rows = getattr(point, cls.view), cls.cells(s, point)
        setattr(s, cls.weights[0], rows)
        if view is NO_CONTEXT:
            return
        places, x = np.append(0, 1 + view.cells), np.append(1.0, view.inputs)
        cells, bias = rows[:, places].astype(float), c.SPARSE_BIAS**2 if s.sparse else 1.0
        gradients = step.gradients[:, np.newaxis] * x[:, np.newaxis]
        rates = c.DESCENT_SPARSE if s.sparse else c.DESCENT_DENSE
        n = cls.descents
        if n:
            cells[:, 0, :n] += rates * gradients[:, 0, :n] * bias
            cells[:, 1:, :n] += rates * gradients[:, 1:, :n]
        cells[..., n + 2] += gradients[..., n] ** 2
        cells[..., n] += c.ADAGRAD * gradients[..., n] / (np.sqrt(cells[..., n + 2]) + 1e-6)
        filter_step(cells[..., n + 1], cells[..., n + 3], x, step.of(n + 1), 0.0)
        rows[:, places] = cells
        if s.sparse:
            cls.catch_up(s, step)

    @staticmethod
    def catch_up(s: State, step: Step) -> None:
        """Over sparse rows let those that fell behind take over, or start anew."""
        patience = max(c.PATIENCE, c.PATIENCE_BY_WEIGHT * s.linear[..., 0].size)
        s.lags = np.maximum(s.lags - np.diff([*step.losses[:2], step.loss]), 0.0)
        if s.lags[0] > patience:
            s.linear[..., 0], s.lags[0] = s.linear[..., 1], 0.0
        if s.lags[1] > patience:
            s.linear[..., 1], s.lags[1] = 0.0, 0.0


class Splines:
    """Sums of curves and of surfaces of pairs, by diagonal Kalman filters whose weights walk."""

    weights, size, view = ("splines", 0), "knots", "plain"

    @classmethod
    def cells(cls, s: State, point: Point) -> Array:
        """Weights of the knots and their variances by row, those of new names included."""
        return resized(getattr(s, cls.weights[0]), sizes_after(s, point)[cls.size], 2)

    @classmethod
    def scores(cls, s: State, point: Point) -> Array:
        """Weights of the knots around the values, by how near these are; and a bias."""
        view: View = getattr(point, cls.view)
        cells, x = cls.cells(s, point)[:, 0].astype(float), view.near * view.scales
        scores: Array = cells[:, 0] + np.einsum("rie,i->re", cells[:, 1 + view.knots], x)
        return scores

    @classmethod
    def learn(cls, s: State, point: Point, step: Step) -> None:
        """One step of each. Variances grow with how near a value is to a knot."""
        if s.sparse:
            return
        view, rows = getattr(point, cls.view), cls.cells(s, point)
        setattr(s, cls.weights[0], rows)
        if view is NO_CONTEXT:
            return
        places = np.append(0, 1 + view.knots)
        near, x = np.append(1.0, view.near), np.append(1.0, view.near * view.scales)
        cells = rows[:, :, places].astype(float)
        for k, walk in enumerate(c.SPLINE_WALKS):
            filter_step(cells[:, 0, :, k], cells[:, 1, :, k], x, step.of(k), walk * near)
        rows[:, :, places] = cells


def sizes_after(s: State, point: Point) -> dict[str, int]:
    """Return the dimensions once the example is learnt."""
    names = len(s.common) if s.sparse else len(point.names)
    return c.sizes_of(names, pairs=bool(point.pairs), sparse=s.sparse)


class ContextLinear(Linear):
    """The last two over the features beside their context, where there is one."""

    weights, size, view = ("context_linear", (..., slice(0, 2))), "context_cells", "context"
    descents = 0


class ContextSplines(Splines):
    """Sums of curves of the features beside their context, where there is one."""

    weights, size, view = ("context_splines", 0), "context_knots", "context"


#: In the order of their members, as in `tables.FAMILIES`.
FAMILIES: tuple[Any, ...] = (Kernels, Linear, Splines, ContextLinear, ContextSplines)


# --- gates ---------------------------------------------------------------------------------------


def softmax(scores: Array, most: float = math.inf) -> Array:
    """Probabilities by class, of log-odds up to so much where there is one row."""
    if len(scores) == 1:
        half = np.clip(scores, -most, most) / 2.0
        scores = np.concatenate([-half, half])
    powers = np.exp(scores - scores.max(axis=0))
    chances: Array = powers / powers.sum(axis=0)
    return chances


def clipped(chances: Array) -> Array:
    """Return probabilities by gate and class, none below `CLIP` unless there are many classes."""
    least = min(c.CLIP, 0.5 / chances.shape[1])
    raised: Array = least + (1.0 - chances.shape[1] * least) * chances
    return raised


def learn_gates(s: State, scores: Array, number: int, weights: Any, walks: Any) -> None:
    """Step extended Kalman filters of weights that walk, each by its weight of the example.

    The gradient of a gate's log loss in its weights is the probability of all other classes, times
    how far the class's scores are above their mean.
    """
    chances = softmax(scores @ s.gates.T).T
    if len(scores) == 1:
        scores = np.concatenate([-scores, scores]) / 2.0
    for g, (w, walk) in enumerate(zip(weights, walks, strict=True)):
        others = np.where(np.arange(len(scores)) == number, 0.0, chances[g])
        u = float(others.sum())
        if u <= c.SURE:
            continue
        z = scores[number] - others / u @ scores
        curvature = w * u * (1.0 - u)
        covariance = s.covariances[g] + walk * np.eye(len(z))
        gain = covariance @ z
        share = 1.0 / (1.0 + curvature * float(gain @ z))
        s.covariances[g] = covariance - curvature * share * np.outer(gain, gain)
        s.gates[g] += w * u * share * gain


# --- calibration ---------------------------------------------------------------------------------


def map_chances(chances: Array, known: int) -> Array:
    """Probabilities by map and class met: powers of each gate's, mixed with equal chances."""
    powers = clipped(chances)[:, np.newaxis, :known] ** np.array(c.SLOPES)[:, np.newaxis]
    powers = (powers / powers.sum(axis=2, keepdims=True))[:, :, np.newaxis]
    floors = np.array(c.FLOORS)[:, np.newaxis]
    maps: Array = (1.0 - floors) * powers + floors / known
    return maps.reshape(-1, known)


def learn_maps(s: State, mapped: Array, w: float) -> None:
    """Weigh the maps by the probability that they gave the class."""
    weights = s.maps * (mapped / mapped.max()) ** w
    s.maps = (1.0 - c.MAP_SHARE) * weights / weights.sum() + c.MAP_SHARE / len(weights)


# --- one update ----------------------------------------------------------------------------------


class Told(NamedTuple):
    """What gates and maps are told by an example.

    Parameters
    ----------
    counts
        Whether they learn from it.
    said
        What the members said when it was predicted; None where that is what they say now.
    """

    counts: bool = True
    said: Array | None = None


def told_by(s: State, ticket: bytes | None, *, waiting: bool) -> Told:
    """Read what a ticket tells.

    An example without one tells nothing as long as others wait for their labels.
    """
    if ticket is None:
        return Told(counts=not waiting)
    said, now = _opened(s, ticket)[0], len(s.linear)
    if len(said) == 1 < now:
        others = np.zeros((now - 2, s.plan.n_members))
        said = np.concatenate([-0.5 * said, 0.5 * said, others])
    # A class that has come since had the scores of the one to come.
    return Told(said=said[np.minimum(np.arange(now), len(said) - 1)])


def back_of(s: State, ticket: bytes) -> Array:
    """Return a ticket's deviations from the means of its time."""
    return _opened(s, ticket)[1]


def _opened(s: State, ticket: bytes) -> tuple[Array, Array]:
    rows = int(np.frombuffer(ticket, np.int32, 1)[0])
    numbers = np.frombuffer(ticket, np.float32, offset=8).astype(float)
    n = rows * s.plan.n_members
    return numbers[:n].reshape(rows, -1), numbers[n:]


def ticket_of(s: State, found: Reading) -> bytes:
    """Return what is to be kept of an example that is predicted."""
    back = found.point.back[: len(s.names)].ravel()  # new names have none
    head = np.array([len(found.scores), len(back)], np.int32)
    return head.tobytes() + np.append(found.scores.ravel(), back).astype(np.float32).tobytes()


class Reading(NamedTuple):
    """What is said of an example."""

    point: Point
    scores: Array
    gates: Array
    chances: Array  # shown, by class met

    @property
    def prediction(self) -> int:
        """Number of the class that is predicted, -1 before any was met."""
        return int(self.chances.argmax()) if len(self.chances) else -1


def reading(s: State, x: Features, back: Array | None = None) -> Reading:
    """Read an example and predict its class, in the context of another time if there is `back`."""
    point, known = read(s, x, back), len(s.classes)
    scores = np.hstack([family.scores(s, point) for family in FAMILIES])
    gates = softmax(scores @ s.gates.T).T
    chances = s.maps @ map_chances(gates, known) if known else np.zeros(0)
    return Reading(point, scores, gates, chances)


def updated(before: State, found: Reading, y: Label, w: float, told: Told) -> State:
    """Return the state that has learnt an example."""
    s, (point, scores, gates, _), known = before.copy(), found, len(before.classes)
    number = s.classes.index(y) if y in s.classes else known
    scored = number < gates.shape[1]
    loss = -w * math.log(clipped(gates)[0, number] if scored else c.CLIP)
    said = scores if told.said is None else told.said
    if told.counts and scored:
        if number < known > 1:
            gates = softmax(said @ s.gates.T).T
            learn_maps(s, map_chances(gates, known)[:, number], w)
        now = np.array(c.LATE_NOW if told.said is not None else (0.0, 0.0))
        walks = c.LATE_WALKS if s.plan.late else c.GATE_WALKS
        learn_gates(s, said, number, w * (1.0 - now), walks)
        if told.said is not None:  # these walk once for each example
            learn_gates(s, scores, number, w * now, (0.0, 0.0))
    losses = np.full(scores.shape[1], loss)
    if scored:
        losses = -w * np.log(np.maximum(softmax(said, c.LARGEST)[number], c.CLIP))
    s.sums[c.LEARNT] += 1.0
    s.sums[[c.MEAN_LOSS, c.MEAN_WEIGHT]] *= c.MEMORY
    s.sums[[c.MEAN_LOSS, c.MEAN_WEIGHT]] += loss, 1.0
    if told.counts:
        count(s, said, number, w)
        s.losses += losses
    if number == known:
        scores = add_class(s, scores, y)
    if turns(before, point):
        return as_sparse(s, before)
    p = softmax(scores, c.LARGEST)
    own = (np.arange(len(p)) == number)[:, np.newaxis] - p
    rows = slice(-len(scores), None)
    step, first = Step(w * own[rows], w * (p * (1.0 - p))[rows], losses, loss, before), 0
    for family, names in zip(FAMILIES, c.FAMILIES.values(), strict=True):
        members = slice(first, first + (len(names) or s.plan.n_experts))
        first = members.stop
        family.learn(s, point, step.of(members))
    keep(s, point, noted=told.said is not None or not told.counts)
    return s


def count(s: State, scores: Array, number: int, w: float) -> None:
    """Note which members are wrong."""
    choices: Any = 0
    if len(scores) > 1:
        choices = scores[: len(s.classes)].argmax(axis=0)
    elif len(s.classes) > 1:
        choices = scores[0] > 0.0
    s.errors += w * (choices != number)
    s.sums[c.TOTAL] += w


def add_class(s: State, scores: Array, y: Label) -> Array:
    """Let a class take over the row of the one to come; return the scores with its row."""
    s.classes.append(y)
    n = len(s.classes)
    if n < 3:
        return scores
    if n == 3:  # half of the score is for the second class, half against the first
        scores = np.concatenate([-0.5 * scores, 0.5 * scores, 0.0 * scores])
    check_room(sum(2 * getattr(s, family.weights[0]).nbytes for family in FAMILIES))
    for family in FAMILIES:
        name, weights = family.weights
        rows = getattr(s, name)
        if n == 3:
            rows = np.concatenate([rows, rows, 0.0 * rows])
            rows[0][weights] *= -0.5
            rows[1][weights] *= 0.5
        setattr(s, name, np.concatenate([rows, rows[-1:]]).astype(np.float32))
    return np.concatenate([scores, scores[-1:]])


def as_sparse(s: State, before: State) -> State:
    """Go over to sparse rows: supports and the weights of features are on another scale, and go.

    Features that many of not too few examples had are still standardised.
    """
    n, common = before.sums[c.EXAMPLES], {}
    if n >= c.FEW_EXAMPLES:
        often = np.flatnonzero(before.features[:, PRESENT] >= c.COMMON_SHARE * n)
        common = {hash_of(before.names[k]) >> (64 - NUMBER_BITS): k for k in often.tolist()}
    new = new_state(s.plan, auto=s.auto, sparse=True, rows=len(s.linear), names=len(common))
    new.common[:] = sorted(common)
    new.features[:] = before.features[[common[hashed] for hashed in sorted(common)]]
    for name in ("gates", "covariances", "maps", "errors", "losses", "sums", "classes", "draws"):
        setattr(new, name, getattr(s, name))
    new.sums[[c.SQUARES, c.EXAMPLES, c.VALUES, c.CONTEXT_SQUARES]] = 0.0
    return new
