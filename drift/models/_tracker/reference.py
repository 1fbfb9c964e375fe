"""The tracker in numpy: the algorithm to read, the fallback without a compiler, the tests' oracle.

The order is members, gates, calibration, update. `s` holds the arrays of `tables.py` by name.
Scores are indexed by row and member. Two classes share one row, the log-odds of the second; more
classes have a row each, and the last row belongs to the next new class. An update changes a copy of
the state and then replaces it, so that it is atomic. `reference_scales.py` reads examples.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from drift.models._tracker import tables as c
from drift.models._tracker.names import STEP, mix, number_of
from drift.models._tracker.reference_scales import (
    NO_CONTEXT,
    PRESENT,
    Point,
    View,
    becomes_sparse,
    commit,
    float32,
    resized,
)
from drift.models._tracker.reference_trees import ContextTrees, Trees, add_trees, new_forests
from drift.models._tracker.room import check_room

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from drift.models._tracker.plan import Plan
    from drift.types import Label

    Array = NDArray[Any]

__all__ = [
    "FAMILIES",
    "Prediction",
    "State",
    "evidence_of",
    "make_ticket",
    "new_state",
    "predict",
    "ticket_deviations",
    "update",
]


class State(SimpleNamespace):
    """State of a tracker."""

    def copy(self) -> State:
        """Return a copy that shares no array or list."""
        copied = {k: v.copy() if hasattr(v, "copy") else v for k, v in vars(self).items()}
        return State(**copied)


def new_state(  # noqa: PLR0913
    plan: Plan, seed: int = 0, *, auto: bool, sparse: bool, rows: int = 1, names: int = 0
) -> State:
    """Return the state of a tracker that has learnt nothing."""
    sizes = {
        "members": plan.n_members,
        "kernel_members": plan.n_kernel_members,
        "slots": 0,
        "rows": rows,
    }
    sizes |= {"window": 0, "context_window": 0}
    sizes |= c.sizes_of(names, sparse=sparse, trees=plan.trees * c.TREES)
    stored = {name: a for name, a in c.ARRAYS.items() if a.stored}
    s = State(**{name: np.zeros(a.sized(sizes), a.type) for name, a in stored.items()})
    prior = c.LATE_PRIOR if plan.late else c.GATE_PRIOR
    s.gates[:], s.covariances[:] = 1.0 / plan.n_members, prior * np.eye(plan.n_members)
    s.maps[:], s.factors[:] = 1.0 / len(s.maps), 1.0
    s.sums[[c.MEAN_LOSS, c.MEAN_WEIGHT]] = 0.7, 1.0
    s.plan, s.auto, s.sparse, s.draws = plan, auto, sparse, seed % 2**64
    new_forests(s, seed)
    s.classes, s.names = [], []
    # Features and values by slot; on a full budget one slot is free.
    s.supports, s.free = [], -1
    return s


class Step(NamedTuple):
    """What the members learn from an example.

    Parameters
    ----------
    gradients, curvatures
        Minus the gradients of their log losses in their scores, and the curvatures, by row and
        member.
    scores, probabilities
        Their scores by row and member, and probabilities by class and member.
    losses, loss
        Log losses of the members, and of the first gate.
    number, weight
        Number of the example's class, and its weight.
    sizes
        Dimensions after the example.
    before
        The state before the example.
    """

    gradients: Array
    curvatures: Array
    scores: Array
    probabilities: Array
    losses: Array
    loss: float
    number: int
    weight: float
    sizes: dict[str, int]
    before: State

    def of(self, members: Any) -> Step:
        """Return the part of these members."""
        names = "gradients", "curvatures", "scores", "probabilities"
        rows = {name: getattr(self, name)[:, members] for name in names}
        return self._replace(losses=self.losses[members], **rows)


# --- members -------------------------------------------------------------------------------------


class Kernels:
    """Kernel logistic regressions over one list of supports: gradient steps that fade."""

    weights: ClassVar[dict[str, Any]] = {"coefficients": ...}

    @staticmethod
    def scores(s: State, point: Point) -> Array:
        """Sums of coefficients times kernel values."""
        dots = inner_products(s, point.numbers, point.values)
        values = kernel_values(s.plan, dots, distances(s, dots, point.squared))
        scores: Array = s.factors * np.einsum("res,es->re", s.coefficients, values)
        return scores

    @staticmethod
    def learn(s: State, point: Point, step: Step) -> None:
        """Add the example as a support if its loss is above a share of the mean loss."""
        if not step.loss > c.INSERTION * s.sums[c.MEAN_LOSS] / s.sums[c.MEAN_WEIGHT]:
            return
        plan, slot = s.plan, s.free if s.free >= 0 else len(s.supports)
        if len(s.supports) - (s.free >= 0) == plan.budget:
            evicted, nearest, shares, s.draws = choose_evicted(step.before)
            if nearest >= 0:  # absorbs the evicted one's coefficients, times their kernel
                moved = shares * s.coefficients[:, :, evicted].astype(float)
                s.coefficients[:, :, nearest] = float32(s.coefficients[:, :, nearest] + moved)
            s.coefficients[:, :, evicted], s.squared[evicted] = 0.0, 0.0
            s.supports[evicted], s.free = (np.zeros(0, np.int32), np.zeros(0)), evicted
        s.supports[slot : slot + 1] = [(point.numbers, point.values)]
        s.coefficients = resized(s.coefficients, len(s.supports), 2)
        s.squared = resized(s.squared, len(s.supports), 0)
        s.squared[slot] = point.squared
        s.factors = s.factors * (1.0 - np.tile(plan.forgetting, len(plan.kernels)))
        small = s.factors < 1e-6
        s.coefficients[:, small] *= s.factors[small, np.newaxis].astype(np.float32)
        s.factors[small] = 1.0
        rates = np.tile(plan.rates, len(plan.kernels))
        s.coefficients[:, :, slot] = float32(rates * step.gradients / s.factors)


def inner_products(s: State, numbers: Array, values: Array) -> Array:
    """Inner products of an example with the supports, by slot."""
    if not len(numbers) or not s.supports:
        return np.zeros(len(s.supports))
    features, weights = map(np.concatenate, zip(*s.supports, strict=True))
    slots = np.repeat(np.arange(len(s.supports)), [len(numbers) for numbers, _ in s.supports])
    at = np.minimum(np.searchsorted(numbers, features), len(numbers) - 1)
    products = weights * values[at] * (numbers[at] == features)
    return np.bincount(slots, weights=products, minlength=len(s.supports))


def distances(s: State, dots: Array, squared: float) -> Array:
    """Squared distances from the supports; 0 within rounding."""
    total = s.squared + squared
    return np.where(total - 2.0 * dots > 1e-6 * total, total - 2.0 * dots, 0.0)


def kernel_values(plan: Plan, dots: Array, distance: Array) -> Array:
    """Values of each member's kernel, by slot."""
    rbf = [np.where(w * distance < 40.0, np.exp(-w * distance), 0.0) for w in plan.kernels]
    values = [rbf[k] if w else dots for k, w in enumerate(plan.kernels)]
    return np.repeat(values, len(plan.rates), axis=0)


def choose_evicted(s: State) -> tuple[int, int, Array, int]:
    """Choose the support to evict.

    Returns
    -------
    tuple[int, int, Array, int]
        The slot of the support drawn whose removal changes the first gate's score least; the slot
        of its nearest neighbour, or -1; the share of its coefficients that the neighbour absorbs,
        by member; and the state of the draws.
    """
    kernels, draws, slots = s.plan.kernels, s.draws, []
    live = [slot for slot in range(len(s.supports)) if slot != s.free]
    for _ in range(c.DRAWS):
        draws = (draws + STEP) % 2**64
        slots.append(live[(mix(draws) >> 32) * len(live) >> 32])
    weights = s.gates[0, : s.plan.n_kernel_members] * s.factors
    weighted = weights[:, np.newaxis] * s.coefficients[:, :, slots]
    sums = abs(weighted.reshape(len(weighted), len(kernels), -1, c.DRAWS).sum(axis=2)).sum(axis=0)
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
    px = (c.PRIOR - reduced) * x
    divisor = 1.0 + step.curvatures * (px @ x)
    weights += (step.gradients / divisor)[:, np.newaxis] * px
    reduced += (step.curvatures / divisor)[:, np.newaxis] * px**2 - walk
    np.maximum(reduced, 0.0, out=reduced)


class Linear:
    """Gradient descent at two rates or AdaGrad, and a diagonal Kalman filter.

    A cell holds their weights, AdaGrad's sum of squares, and the reduction of the filter's variance
    below its prior.
    """

    weights: ClassVar[dict[str, Any]] = {"linear": (..., slice(0, 3))}
    size, view, descents, adagrad = "cells", "plain", 2, 0

    @classmethod
    def cells(cls, s: State, point: Point) -> Array:
        """Cells by row, new names included."""
        return resized(getattr(s, *cls.weights), sizes_after(s, point)[cls.size], 1)

    @classmethod
    def scores(cls, s: State, point: Point) -> Array:
        """Inner products, and a bias."""
        view: View = getattr(point, cls.view)
        weights = cls.cells(s, point)[:, view.cells, : cls.descents + cls.adagrad + 1].astype(float)
        scores: Array = np.einsum("rcm,c->rm", weights, view.inputs)
        return scores

    @classmethod
    def learn(cls, s: State, point: Point, step: Step) -> None:
        """One step of each."""
        view, rows = getattr(point, cls.view), cls.cells(s, point)
        [name] = cls.weights
        setattr(s, name, rows)
        if view is NO_CONTEXT:
            return
        places, x = view.cells, view.inputs
        cells, bias = rows[:, places].astype(float), c.SPARSE_BIAS**2 if s.sparse else 1.0
        gradients = step.gradients[:, np.newaxis] * x[:, np.newaxis]
        rates = c.DESCENT_SPARSE if s.sparse else c.DESCENT_DENSE
        n = cls.descents
        if n:
            cells[:, 0, :n] += rates * gradients[:, 0, :n] * bias
            cells[:, 1:, :n] += rates * gradients[:, 1:, :n]
        if cls.adagrad:
            cells[..., n + 2] += gradients[..., n] ** 2
            cells[..., n] += c.ADAGRAD * gradients[..., n] / (np.sqrt(cells[..., n + 2]) + 1e-6)
        k = n + cls.adagrad
        filter_step(cells[..., k], cells[..., -1], x, step.of(k), 0.0)
        rows[:, places] = cells
        if s.sparse:
            cls.catch_up(s, step)

    @staticmethod
    def catch_up(s: State, step: Step) -> None:
        """Over sparse rows copy the fast descent's weights to a slow one that lags, or reset."""
        patience = max(c.PATIENCE, c.PATIENCE_BY_WEIGHT * s.linear[..., 0].size)
        s.regrets = np.maximum(s.regrets - np.diff([*step.losses[:2], step.loss]), 0.0)
        if s.regrets[0] > patience:
            s.linear[..., 0], s.regrets[0] = s.linear[..., 1], 0.0
        if s.regrets[1] > patience:
            s.linear[..., 1], s.regrets[1] = 0.0, 0.0


class Splines:
    """Sums of curves, by a diagonal Kalman filter whose weights walk."""

    weights: ClassVar[dict[str, Any]] = {"splines": 0}
    size, view, walk = "knots", "plain", c.SPLINE_WALK

    @classmethod
    def cells(cls, s: State, point: Point) -> Array:
        """Weights and variances of the knots by row, new names included."""
        return resized(getattr(s, *cls.weights), sizes_after(s, point)[cls.size], 2)

    @classmethod
    def scores(cls, s: State, point: Point) -> Array:
        """Weights of the knots around the values, times their basis values; and a bias."""
        view: View = getattr(point, cls.view)
        weights = cls.cells(s, point)[:, 0, view.knots].astype(float)
        scores: Array = weights @ view.heights
        return scores[:, np.newaxis]

    @classmethod
    def learn(cls, s: State, point: Point, step: Step) -> None:
        """One step. A knot's variance grows by its basis value."""
        if s.sparse:
            return
        view, rows = getattr(point, cls.view), cls.cells(s, point)
        [name] = cls.weights
        setattr(s, name, rows)
        if view is NO_CONTEXT:
            return
        cells, x = rows[:, :, view.knots].astype(float), view.heights
        filter_step(cells[:, 0], cells[:, 1], x, step.of(0), cls.walk * view.basis)
        rows[:, :, view.knots] = cells


def sizes_after(s: State, point: Point) -> dict[str, int]:
    """Return the dimensions after the example."""
    names = len(s.common) if s.sparse else len(point.names)
    return c.sizes_of(names, sparse=s.sparse, trees=len(s.tree_places))


class ContextLinear(Linear):
    """AdaGrad and a diagonal Kalman filter over the features and their context."""

    weights: ClassVar[dict[str, Any]] = {"context_linear": (..., slice(0, 2))}
    size, view, descents, adagrad = "context_cells", "context", 0, 1


class ContextSplines(Splines):
    """Sums of curves of the features and their context."""

    weights: ClassVar[dict[str, Any]] = {"context_splines": 0}
    size, view, walk = "context_knots", "context", c.CONTEXT_SPLINE_WALK


#: In the order of their members, as in `tables.FAMILIES`.
FAMILIES: tuple[Any, ...] = (
    *(Kernels, Linear, Splines, ContextLinear, ContextSplines),
    *(Trees, ContextTrees),
)


def families_of(plan: Plan) -> list[tuple[Any, slice]]:
    """Return a tracker's families, and which members each has."""
    families, first = [], 0
    for family, names in zip(FAMILIES, plan.families.values(), strict=False):
        last = first + (len(names) or plan.n_kernel_members)
        families.append((family, slice(first, last)))
        first = last
    return families


# --- gates ---------------------------------------------------------------------------------------


def softmax(scores: Array, most: float = math.inf) -> Array:
    """Probabilities by class; log-odds in a single row are clipped at `most`."""
    if len(scores) == 1:
        half = scores.clip(-most, most) / 2.0
        scores = np.concatenate([-half, half])
    powers = np.exp(scores - scores.max(axis=0))
    probabilities: Array = powers / powers.sum(axis=0)
    return probabilities


def clipped(probabilities: Array) -> Array:
    """Bound probabilities by gate and class from below, by less than an equal share of them."""
    least = min(c.LEAST_PROBABILITY, 0.5 / probabilities.shape[1])
    bounded: Array = least + (1.0 - probabilities.shape[1] * least) * probabilities
    return bounded


def learn_gates(s: State, scores: Array, number: int, weights: Any, walks: Any) -> None:
    """Step each gate's extended Kalman filter of its weights, which follow a random walk.

    Minus the gradient of a gate's log loss in its weights is ``u z``: `u` is the probability of the
    other classes, `z` the label's scores minus the mean scores of the others, each weighted by its
    probability. The step is ``P u z / (1 + u (1 - u) z' P z)``. With two classes `z` is what each
    member gives for the label's log-odds: then this is the Kalman filter of a logistic regression.
    """
    probabilities = softmax(scores @ s.gates.T).T
    if len(scores) == 1:
        scores = np.concatenate([-scores, scores]) / 2.0
    for g, (w, walk) in enumerate(zip(weights, walks, strict=True)):
        others = np.where(np.arange(len(scores)) == number, 0.0, probabilities[g])
        u = float(others.sum())
        if u <= c.CONFIDENT:
            continue
        z = scores[number] - others / u @ scores
        curvature = w * u * (1.0 - u)
        covariance = s.covariances[g] + walk * np.eye(len(z))
        gain = covariance @ z
        factor = 1.0 / (1.0 + curvature * float(gain @ z))
        s.covariances[g] = covariance - curvature * factor * np.outer(gain, gain)
        s.gates[g] += w * u * factor * gain


# --- calibration ---------------------------------------------------------------------------------


def apply_maps(probabilities: Array, n_classes: int) -> Array:
    """Return probabilities by map and class: powers of each gate's, mixed with equal ones."""
    powers = clipped(probabilities)[:, np.newaxis, :n_classes] ** np.array(c.SLOPES)[:, np.newaxis]
    powers = (powers / powers.sum(axis=2, keepdims=True))[:, :, np.newaxis]
    floors = np.array(c.FLOORS)[:, np.newaxis]
    maps: Array = (1.0 - floors) * powers + floors / n_classes
    return maps.reshape(-1, n_classes)


def learn_maps(s: State, mapped: Array, w: float) -> None:
    """Multiply the maps' weights by their probabilities of the label; a share is redistributed."""
    weights = s.maps * (mapped / mapped.max()) ** w
    s.maps = (1.0 - c.MAP_SHARE) * weights / weights.sum() + c.MAP_SHARE / len(weights)


# --- one update ----------------------------------------------------------------------------------


class Evidence(NamedTuple):
    """What gates and maps learn from.

    Parameters
    ----------
    valid
        Whether they learn from the example.
    ticket_scores
        The members' scores when the example was predicted; None for those of now.
    """

    valid: bool = True
    ticket_scores: Array | None = None


def evidence_of(s: State, ticket: bytes | None, *, waiting: bool) -> Evidence:
    """Return the evidence of a ticket.

    An example without one is no evidence while other tickets wait.
    """
    if ticket is None:
        return Evidence(valid=not waiting)
    scores, now = _opened(s, ticket)[0], len(s.linear)
    if len(scores) == 1 < now:
        others = np.zeros((now - 2, s.plan.n_members))
        scores = np.concatenate([-0.5 * scores, 0.5 * scores, others])
    # Classes that are newer than the ticket had the scores of its last row.
    return Evidence(ticket_scores=scores[np.minimum(np.arange(now), len(scores) - 1)])


def ticket_deviations(s: State, ticket: bytes) -> Array:
    """Return a ticket's deviations from the running means."""
    return _opened(s, ticket)[1]


def _opened(s: State, ticket: bytes) -> tuple[Array, Array]:
    rows = int(np.frombuffer(ticket, np.int32, 1)[0])
    numbers = np.frombuffer(ticket, np.float32, offset=8).astype(float)
    n = rows * s.plan.n_members
    return numbers[:n].reshape(rows, -1), numbers[n:]


def make_ticket(s: State, prediction: Prediction) -> bytes:
    """Return a ticket: the sizes, scores and deviations of a prediction."""
    scores = prediction.scores
    deviations = prediction.point.deviations[: len(s.names)].ravel()  # new names have none
    head = np.array([len(scores), len(deviations)], np.int32)
    return head.tobytes() + float32(np.append(scores.ravel(), deviations)).tobytes()


class Prediction(NamedTuple):
    """Scores of an example by row and member, and probabilities by gate and by class."""

    point: Point
    scores: Array
    gates: Array
    probabilities: Array

    @property
    def number(self) -> int:
        """Number of the class that is predicted; -1 without any class."""
        return int(self.probabilities.argmax()) if len(self.probabilities) else -1


def predict(s: State, point: Point) -> Prediction:
    """Predict an example's class."""
    n_classes = len(s.classes)
    scores = np.hstack([family.scores(s, point) for family, _ in families_of(s.plan)])
    gates = softmax(scores @ s.gates.T).T
    probabilities = s.maps @ apply_maps(gates, n_classes) if n_classes else np.zeros(0)
    return Prediction(point, scores, gates, probabilities)


def update(before: State, prediction: Prediction, y: Label, w: float, evidence: Evidence) -> State:
    """Return the state that has learnt an example."""
    s, (point, scores, gates, _) = before.copy(), prediction
    n_classes = len(before.classes)
    number = s.classes.index(y) if y in s.classes else n_classes
    scored = number < gates.shape[1]
    loss = -w * math.log(clipped(gates)[0, number] if scored else c.LEAST_PROBABILITY)
    late = evidence.ticket_scores is not None
    predicted = scores if evidence.ticket_scores is None else evidence.ticket_scores
    if evidence.valid and scored:
        if number < n_classes > 1:
            gates = softmax(predicted @ s.gates.T).T
            learn_maps(s, apply_maps(gates, n_classes)[:, number], w)
        walks = c.LATE_WALKS if s.plan.late else c.GATE_WALKS
        current = np.array(c.LATE_CURRENT_SHARE) * late
        learn_gates(s, predicted, number, w * (1.0 - current), walks)
        if late:  # the weights walk once an example
            learn_gates(s, scores, number, w * current, np.zeros(len(walks)))
    losses = np.full(scores.shape[1], loss)
    if scored:
        p = softmax(predicted, c.SCORE_LIMIT)[number]
        losses = -w * np.log(np.maximum(p, c.LEAST_PROBABILITY))
    s.sums[c.LEARNT] += 1.0
    s.sums[[c.MEAN_LOSS, c.MEAN_WEIGHT]] *= c.LOSS_DECAY
    s.sums[[c.MEAN_LOSS, c.MEAN_WEIGHT]] += loss, 1.0
    if evidence.valid:
        record(s, predicted, number, w)
        s.losses += losses
    if number == n_classes:
        scores = add_class(s, scores, y)
    if becomes_sparse(before, point):
        return to_sparse(s, before)
    p = softmax(scores, c.SCORE_LIMIT)
    residuals = (np.arange(len(p)) == number)[:, np.newaxis] - p
    rows = slice(-len(scores), None)
    gradients, curvatures = w * residuals[rows], w * (p * (1.0 - p))[rows]
    sizes = sizes_after(s, point)
    step = Step(gradients, curvatures, scores, p, losses, loss, number, w, sizes, before)
    for family, members in families_of(s.plan):
        family.learn(s, point, step.of(members))
    commit(s, point, context_updated=late or not evidence.valid)
    return s


def record(s: State, scores: Array, number: int, w: float) -> None:
    """Count the members' mistakes."""
    predicted: Any = 0
    if len(scores) > 1:
        predicted = scores[: len(s.classes)].argmax(axis=0)
    elif len(s.classes) > 1:
        predicted = scores[0] > 0.0
    s.errors += w * (predicted != number)
    s.sums[c.TOTAL] += w


def add_class(s: State, scores: Array, y: Label) -> Array:
    """Give a new class the last row, and copy that; return the scores with the copy."""
    s.classes.append(y)
    n = len(s.classes)
    if n < 3:
        return scores
    if n == 3:  # half of the log-odds for the second class, half against the first
        scores = np.concatenate([-0.5 * scores, 0.5 * scores, 0.0 * scores])
        add_trees(s)
    arrays = {name: part for family in FAMILIES for name, part in family.weights.items()}
    check_room(sum(2 * getattr(s, name).nbytes for name in arrays))
    for name, weights in arrays.items():
        rows = getattr(s, name)
        if n == 3:
            rows = np.concatenate([rows, rows, 0.0 * rows])
            rows[0][weights] *= -0.5
            rows[1][weights] *= 0.5
        setattr(s, name, np.concatenate([rows, rows[-1:]]).astype(np.float32))
    return np.concatenate([scores, scores[-1:]])


def to_sparse(s: State, before: State) -> State:
    """Switch to sparse rows: supports and weights of features are dropped with their scale.

    Features that half of the examples had stay standardised.
    """
    n, common = before.sums[c.EXAMPLES], {}
    if n >= c.FEW_EXAMPLES:
        often = np.flatnonzero(before.features[:, PRESENT] >= c.COMMON_SHARE * n)
        common = {number_of(before.names[k]): k for k in often.tolist()}
    new = new_state(s.plan, auto=s.auto, sparse=True, rows=len(s.linear), names=len(common))
    new.common[:] = sorted(common)
    new.features[:] = before.features[[common[number] for number in sorted(common)]]
    for name in ("gates", "covariances", "maps", "errors", "losses", "sums", "classes", "draws"):
        setattr(new, name, getattr(s, name))
    new.sums[[c.SQUARES, c.EXAMPLES, c.VALUES, c.CONTEXT_SQUARES]] = 0.0
    return new
