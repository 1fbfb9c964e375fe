"""The tracker in numpy: what runs where the compiled core is missing, and what that is tested by.

It works on the store's public contract. Updates are atomic by the guard, which copies what changes.
One class has the whole contract of the compiled core, in more than 300 lines.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from drift.models._store import supports as stores
from drift.models._store.class_labels import check_class
from drift.models._store.undo import Part
from drift.models._tracker.check import check_tracker
from drift.models._tracker.mixture import Mixture
from drift.models._tracker.plan import (
    ADAGRAD,
    BIAS,
    DESCENT,
    DRAWS,
    KALMAN,
    KNOTS,
    N_LINEAR,
    N_SPLINES,
    PATIENCE,
    PATIENCE_BY_WEIGHT,
    SPLINES,
)
from drift.models._tracker.room import more_rows, no_room
from drift.models._tracker.rows import RowByRow
from drift.models._tracker.scaling import Scaling, values_of
from drift.models._tracker.scores import TIE, gradients, softmax_of
from drift.models._tracker.slots import STEP, mix

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    from drift.models._store.supports import Guard
    from drift.models._tracker.mixture import Said
    from drift.models._tracker.plan import Plan
    from drift.models._tracker.scaling import Point
    from drift.types import Features, Label

    Array = NDArray[Any]

__all__ = ["TrackerCore"]


class TrackerCore(RowByRow, Part):
    """State of a tracker, and how it learns.

    Parameters
    ----------
    plan
        Its parameters.
    scale
        ``"auto"``, ``"dense"`` or ``"sparse"``.
    seed
        Seed of the draws, any integer.
    wide
        Keep the supports in float64 columns.
    """

    _kept = frozenset({"linear", "splines"})

    def __init__(self, plan: Plan, scale: str, seed: int, wide: bool = False) -> None:  # noqa: FBT001, FBT002
        self.guard: Guard = stores.Guard()
        self.plan = plan
        self.classes: list[Label] = []
        self._numbers: dict[Hashable, int] = {}
        self.mixture = Mixture(plan)
        self.draws = seed % 2**64
        #: The example read last, unless something was learnt since, and what the members say of it.
        self.values: dict[Hashable, float] = {}
        self.point: Point | None = None
        self.said: Said | None = None
        self._begin(Scaling(scale, pairs=plan.pairs), wide)

    def _begin(self, scaling: Scaling, wide: bool) -> None:  # noqa: FBT001
        """Start without supports, and with linear experts that know nothing."""
        n_classes, plan = len(self.classes), self.plan
        if scaling.sparse:
            self.mixture.leave_out_splines()
        #: Scores of an expert: one of two classes, one for each of several and for a new one.
        rows = n_classes + 1 if n_classes > 2 else 1
        self.scaling = scaling
        self.store = stores.ColumnStore(scaling.kernel, wide, plan.budget + 1)
        self.store.guard = self.guard
        self.squared = np.zeros(0)  # norms by slot
        self.coefficients = np.zeros((plan.n_experts, rows, 0), np.float32)
        self.factors = np.ones(plan.n_experts)  # of each expert's coefficients
        #: By row, bias and slots: weights, AdaGrad's sum of squares, what the filter knows.
        self.linear = np.zeros((rows, 1 + scaling.n_slots, N_LINEAR + 2), np.float32)
        #: By row, bias and knots: the splines' weights, and what their filters know.
        self.splines = np.zeros((rows, 1, 2 * N_SPLINES), np.float32)
        self.norms = 0.0  # sum of |x|^2, the bias included
        self.lags = np.zeros(2)  # log loss by which the experts by gradient descent fell behind

    # --- what is predicted ---------------------------------------------------------------------

    def read(self, x: Features) -> None:
        """Take an example as the one that `score` is about; FeatureError changes nothing."""
        values = values_of(x)
        if self.point is None or values != self.values:
            self.point = self.said = None  # first: an interrupt leaves no half of an example
            self.point, self.values = self.scaling.read(values), values

    def _say(self) -> Said:
        """Let the members say what they think of the example read last."""
        if self.said is None:
            assert self.point is not None  # noqa: S101
            self.store.read(self.point.features)
            dots = self._row()
            distance = _distances(dots, self.point.squared, self.squared)
            kernel = self._kernels(dots.astype(np.float32), distance.astype(np.float32))
            point = self.point
            linear = _linear_scores(self.linear, N_LINEAR, point.slots, point.values)
            hats = point.hats
            cells = self._spline_cells(point)
            splines = _linear_scores(cells, self.plan.n_splines, hats.knots, hats.values)
            scores = [self._expert_scores(kernel), linear, splines]
            self.said = self.mixture.say(np.vstack(scores), len(self.classes))
        return self.said

    def score(self) -> tuple[int, list[float]]:
        """Number of the class that is predicted, -1 before any was met, and all probabilities."""
        said = self._say()
        return said.prediction, self.mixture.chances(said).tolist()

    @property
    def n_learnt(self) -> int:
        """Number of examples learnt."""
        return self.mixture.n_learnt

    def predict(self, x: Features) -> int:
        """Return the number of the class that is predicted; -1 before anything was learnt."""
        self.guard.run(self.read, x)
        return self._say().prediction

    def _spline_cells(self, point: Point) -> Array:
        """Cells of the splines with room for a point's names; without surfaces if it ends them."""
        if self.scaling.sparse:
            return self.splines
        pairs, cells = point.learnt["pairs"], self.splines
        if self.scaling.pairs and not pairs:
            cells = cells[:, : 1 + KNOTS * len(self.scaling.names)]
        return _longer(cells, self.plan.n_knots(len(point.values), pairs=pairs))

    def _row(self) -> Array:
        """Inner products of the point with the supports, by slot."""
        dots = np.zeros(self.store.capacity)
        self.store.fill_row(dots)
        return dots[: self.squared.size]

    def _kernels(self, dots: Array, distance: Array) -> Array:
        """Values of each kernel, in the type of its arguments."""
        values: list[Array] = []
        before = 0.0
        for width in self.plan.kernels:
            if width == 0.0:
                values.append(dots)
            elif width == 8.0 * before:
                values.append(values[-1] ** 8)
            else:
                values.append(np.exp(-distance.dtype.type(width) * distance))
            before = width
        return np.array(values)

    def _by_expert(self, by_kernel: Any) -> Array:
        """Repeat what each kernel has for its experts."""
        return np.repeat(by_kernel, self.plan.n_experts // len(self.plan.kernels), axis=0)

    def _expert_scores(self, kernel: Array) -> Array:
        scores = np.einsum("ers,es->er", self.coefficients, self._by_expert(kernel))
        result: Array = scores * self.factors[:, np.newaxis]
        return result

    # --- what is learnt ------------------------------------------------------------------------

    def learn(self, x: Features, y: Label, w: float, behind: TrackerCore | None = None) -> int:
        """Learn an example; return the number of the class that was predicted before.

        Where labels come late, `behind` is what this core was when it predicted the example.
        """
        number = self._number(y)
        prediction: int = self.guard.update(self, self._learn, x, y, number, w, behind)
        return prediction

    def _number(self, y: Label) -> int:
        """Return a class's number; -1 for a new one, LabelError for what is none."""
        try:
            return self._numbers[y]
        except (KeyError, TypeError):
            check_class(y)
            return -1

    def _learn(
        self, x: Features, y: Label, number: int, w: float, behind: TrackerCore | None
    ) -> int:
        self.read(x)
        said, point = self._say(), self.point
        assert point is not None  # noqa: S101
        if w == 0.0:
            return said.prediction
        if behind:
            behind.read(x)
            self.mixture.weigh_late(behind.mixture, behind._say(), number, w)  # noqa: SLF001
        scores, softmax = said.scores, said.softmax
        new = number < 0
        number = len(self.classes) if new else number
        gate, losses = self.mixture.gates[-1], self.mixture.losses
        inserts = self.mixture.learn(said, number, w)
        self.norms += point.squared + BIAS[self.scaling.sparse] ** 2
        if new:
            scores = self._meet(y, scores)
            softmax = softmax_of(scores)
        rows, n = scores.shape[1], self.plan.n_experts
        steps = w * gradients(softmax, number)[:, -rows:]
        known = w * softmax[:, -rows:] * (1.0 - softmax[:, -rows:])
        last = n + N_LINEAR
        self._learn_linear(point, steps[n:last], known[last - 1])
        if self.scaling.sparse:
            losses = self.mixture.losses - losses
            self._catch_up(losses[n], losses[n + 1], losses[-1])
        if self.plan.splines and not self.scaling.sparse:
            self._learn_splines(point, steps[last:], known[last:])
        self.point = self.said = None
        if self.scaling.learn(point):
            self._begin(self.scaling, self.store.wide)
        elif inserts:
            self._insert(point, steps[:n], gate[:n])
        return said.prediction

    def _meet(self, y: Label, scores: Array) -> Array:
        """Let a new class join: it takes the spare row over; return the scores by row."""
        self.classes.append(y)
        self._numbers[y] = len(self.classes) - 1
        if len(self.classes) < 3:
            return scores
        if len(self.classes) == 3:
            self.coefficients = _parted(self.coefficients)
            scores = _parted(scores)
            self.linear = _parted_cells(self.linear, N_LINEAR)
            self.splines = _parted_cells(self.splines, N_SPLINES)
        last = self.coefficients[:, -1:]
        try:
            self.linear = _with_last_twice(self.linear)
            self.splines = _with_last_twice(self.splines)
            self.coefficients = np.concatenate([self.coefficients, last], axis=1)
        except MemoryError:
            size = self.linear[0].nbytes + self.splines[0].nbytes + last.nbytes
            raise no_room(y, len(self.classes), size) from None
        return np.hstack([scores, scores[:, -1:]])

    def _learn_linear(self, point: Point, steps: Array, known: Array) -> None:
        """Step the linear experts; `known` is the second derivative of the filter's loss by row."""
        if not self.scaling.sparse:
            self.linear = _longer(self.linear, len(point.slots))
        places, values = _with_bias(point.slots, point.values)
        cells = self.linear[:, places]
        n = (self.scaling.n_examples + 1) / self.norms
        descent = np.append(np.float32(BIAS[self.scaling.sparse] ** 2), values[1:])
        for i, rate in enumerate(DESCENT[self.scaling.sparse]):
            step = (steps[i] * rate * n).astype(np.float32)
            cells[..., i] += step[:, np.newaxis] * descent
        step = steps[2].astype(np.float32)[:, np.newaxis] * values
        cells[..., 4] += step * step
        cells[..., 2] += np.float32(ADAGRAD) * step / (np.sqrt(cells[..., 4]) + 1e-6)
        _filter(cells[..., 3], cells[..., 5], values, steps[3], known, KALMAN[1])
        # At the end of the update: to copy all slots before it takes longer than all else.
        self.guard.defer(partial(self.linear.__setitem__, (slice(None), places), cells))

    def _catch_up(self, slow: float, fast: float, gate: float) -> None:
        """Let experts by gradient descent that fell behind, by these losses, begin anew.

        The slower one takes the weights of the faster one over, and that one has none.
        """
        self.lags = np.maximum(self.lags + np.array([slow - fast, fast - gate]), 0.0)
        cells = self.linear
        late = self.lags > max(PATIENCE, PATIENCE_BY_WEIGHT * cells.shape[0] * cells.shape[1])
        self.lags[late] = 0.0
        if late[0]:
            self.guard.defer(lambda: np.copyto(cells[..., 0], cells[..., 1]))
        if late[1]:
            self.guard.defer(partial(cells[..., 1].fill, 0.0))

    def _learn_splines(self, point: Point, steps: Array, known: Array) -> None:
        """Step the splines; `known` is the second derivative of each one's loss by row."""
        self.splines = self._spline_cells(point)
        places, values = _with_bias(point.hats.knots, point.hats.values)
        cells = self.splines[:, places]
        # Variances grow with how near a value is to a knot, so that it does not matter on which
        # side of one rounding leaves it.
        near = np.append([1.0], point.hats.near)
        for i, walk in enumerate(SPLINES):
            told = cells[..., N_SPLINES + i]
            _filter(cells[..., i], told, values, steps[i], known[i], walk * near)
        self.guard.defer(partial(self.splines.__setitem__, (slice(None), places), cells))

    # --- the supports --------------------------------------------------------------------------

    def _insert(self, point: Point, steps: Array, gate: Array) -> None:
        """Make an example a support; on a full budget a cheap one is merged into its nearest."""
        plan = self.plan
        if self.store.n_held() == plan.budget:
            self._evict(gate)
        self.factors = self.factors * (1.0 - np.tile(plan.lost, len(plan.kernels)))
        for e in np.flatnonzero(self.factors < 1e-6):
            self.coefficients[e] *= np.float32(self.factors[e])
            self.factors[e] = 1.0
        slot = self.store.add(point.features, 0.0)
        more = self.store.capacity - self.squared.size
        if more:
            self.squared = np.pad(self.squared, (0, more))
            self.coefficients = np.pad(self.coefficients, ((0, 0), (0, 0), (0, more)))
        self.squared[slot] = point.squared
        rates = np.tile(plan.rates, len(plan.kernels))
        own = [max(point.squared, 1e-6) if width == 0.0 else 1.0 for width in plan.kernels]
        rates = rates / self.factors / self._by_expert(own)
        self.coefficients[:, :, slot] = rates[:, np.newaxis] * steps

    def _evict(self, gate: Array) -> None:
        slots = self.store.slots()
        drawn = np.array([slots[self._draw(len(slots))] for _ in range(DRAWS)])
        b = int(drawn[self._costs(drawn, gate).argmin()])
        if len(slots) > 2:
            self._merge(b, [slot for slot in slots if slot != b])
        self.store.remove(b)
        self.coefficients[:, :, b] = 0.0
        self.squared[b] = 0.0

    def _draw(self, below: int) -> int:
        self.draws = (self.draws + STEP) % 2**64
        return (mix(self.draws) >> 32) * below >> 32

    def _costs(self, slots: Array, gate: Array) -> Array:
        """What would be lost with each support: of the experts, and of what the gate sums up."""
        kernels = self.plan.kernels
        weights, trust = self.mixture.weights[: self.plan.n_experts], self.mixture.weights[-1]
        found = self.coefficients[:, :, slots] * self.factors[:, np.newaxis, np.newaxis]
        found = found.reshape(len(kernels), -1, *found.shape[1:])  # kernel, expert, row, support
        own = [self.squared[slots] ** (0.5 * (width == 0.0)) for width in kernels]
        sizes = np.einsum("ke,kers->ks", weights.reshape(len(kernels), -1), abs(found))
        sums = abs(np.einsum("ke,kers->krs", gate.reshape(len(kernels), -1), found)).sum(axis=1)
        costs: Array = ((sizes + trust * sums) * own).sum(axis=0)
        return costs

    def _merge(self, b: int, others: list[int]) -> None:
        """Project a support onto its two nearest, in every expert."""
        self.store.read_support(b)
        distance = _distances(self._row(), self.squared[b], self.squared)
        three = [b]
        for _ in range(2):  # the oldest of those that are nearest, within rounding
            rest = [slot for slot in others if slot not in three]
            beyond = distance[rest] - TIE * (self.squared[rest] + self.squared[b])
            three.append(rest[int((beyond <= distance[rest].min()).argmax())])
        k = np.zeros((3, len(self.plan.kernels), 3))  # by support, kernel, support
        for row, slot in zip(k, three, strict=True):
            self.store.read_support(slot)
            dots = self._row()[three]
            row[:] = self._kernels(dots, _distances(dots, self.squared[slot], self.squared[three]))
        jj, ll = k[1, :, 1] * 1.001 + 1e-4, k[2, :, 2] * 1.001 + 1e-4
        bj, bl, jl = k[0, :, 1], k[0, :, 2], k[1, :, 2]
        det = jj * ll - jl * jl
        for slot, share in zip(three[1:], (bj * ll - bl * jl, bl * jj - bj * jl), strict=True):
            shares = self._by_expert(share / det)[:, np.newaxis]
            self.coefficients[:, :, slot] += shares * self.coefficients[:, :, b]

    # --- what there is -------------------------------------------------------------------------

    @property
    def late(self) -> Array | None:
        """Where labels come late, weights of the members, and of the whole; see `Mixture.late`."""
        return self.mixture.late

    @late.setter
    def late(self, weights: Array) -> None:
        self.mixture.late, self.said = weights, None

    @property
    def n_supports(self) -> int:
        """Number of supports held."""
        return self.store.n_held()

    def supports(self) -> list[dict[Hashable, float]]:
        """Return the supports, the oldest first."""
        found = [self.store.support(slot) for slot in self.store.slots()]
        names: Any = self.scaling.names
        return (
            found if self.scaling.sparse else [{names[j]: v for j, v in x.items()} for x in found]
        )

    def record(self) -> dict[str, Any]:
        """Return what every member did so far, and the mixture."""
        names = ("weights", "errors", "losses", "path", "switches", "log_loss", "mistakes", "total")
        record = {name: copy.copy(getattr(self.mixture, name)) for name in names}
        return record | {"examples": self.mixture.n_learnt, "sparse": self.scaling.sparse}

    def state(self) -> dict[str, Any]:
        """Return all that a tracker is, as plain values and arrays."""
        return copy.deepcopy(self.guard.run(self._state))

    def _state(self) -> dict[str, Any]:
        state = {name: vars(self)[name] for name in _STATE}
        state |= {name: part for name, part in vars(self.mixture).items() if name not in _APART}
        state |= {name: part for name, part in vars(self.scaling).items() if name not in _APART}
        state["store"], state["order"] = self.store.state(), self.store.slots()
        state["coefficients"] = self.coefficients[:, :, : len(state["store"]["sizes"])]
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Be the tracker that gave `state`."""
        check_tracker(self.plan, state)
        vars(self).update({name: state[name] for name in _STATE})
        for part in (self.mixture, self.scaling):
            vars(part).update({name: state[name] for name in vars(part) if name not in _APART})
        n_names, n_cells = len(state["names"]), state["splines"].shape[1]
        self.scaling.pairs = self.plan.has_surfaces(n_names, n_cells)
        self._numbers = {label: number for number, label in enumerate(self.classes)}
        order = state["order"], list(range(1, len(state["order"]) + 1)), len(state["order"])
        self.store = stores.ColumnStore.restore(
            self.scaling.kernel, self.plan.budget + 1, state["store"], order
        )
        self.store.guard = self.guard
        more = self.store.capacity - len(state["store"]["sizes"])
        self.squared = np.pad(np.array(state["store"]["squared"]), (0, more))
        self.coefficients = np.pad(self.coefficients, ((0, 0), (0, 0), (0, more)))


#: What a state has of the core by its own names.
_STATE = ("classes", "coefficients", "draws", "factors", "lags", "linear", "norms", "splines")
#: What it has not of the mixture and the scaling.
_APART = ("plan", "late", "pairs")


def _distances(dots: Array, squared: float, others: Array) -> Array:
    """Squared distances; what is within rounding of 0 is 0."""
    sums = others + squared
    distance = sums - 2.0 * dots
    return np.where(distance <= TIE * sums, 0.0, distance)


def _parted(rows: Array) -> Array:
    """One score's rows as those of two classes and a spare one, along the second axis."""
    return np.concatenate([-0.5 * rows, 0.5 * rows, 0.0 * rows], axis=1)


def _parted_cells(cells: Array, n: int) -> Array:
    """Do so along the first axis, but for what is behind the `n` weights of a cell."""
    parted = _parted(cells.transpose(1, 0, 2)).transpose(1, 0, 2)
    parted[:2, :, n:] = cells[..., n:]
    return parted


def _with_last_twice(cells: Array) -> Array:
    """Rows and the last one again, which takes spare room behind them where there is some."""
    n, room = len(cells), cast("Array", cells.base)
    if np.shape(room)[1:] != cells.shape[1:] or n == len(room):
        room = np.zeros((more_rows(n + 1, n, cells[0].nbytes), *cells.shape[1:]), cells.dtype)
        room[:n] = cells
    room[n] = cells[-1]
    return room[: n + 1]


def _longer(cells: Array, n: int) -> Array:
    """Cells with room for the bias and `n` more, along the second axis."""
    more = 1 + n - cells.shape[1]
    return np.pad(cells, ((0, 0), (0, more), (0, 0))) if more > 0 else cells


def _with_bias(places: Array, values: Array) -> tuple[Array, Array]:
    return np.append([0], 1 + places), np.append(np.ones(1, np.float32), values)


def _linear_scores(cells: Array, n: int, places: Array, values: Array) -> Array:
    """Scores of the `n` models whose weights begin a cell, by model and row."""
    known = places < cells.shape[1] - 1  # a new name has no weight yet
    weights = cells[:, 1 + places[known], :n].astype(float)
    scores: Array = np.einsum("rse,s->er", weights, values[known])
    return scores + cells[:, 0, :n].T


def _filter(  # noqa: PLR0913, PLR0917 - a filter's state and an example
    weights: Array, told: Array, values: Array, steps: Array, known: Array, walk: Any
) -> None:
    """Step diagonal Kalman filters, by row; `told` is by how much variances are below the prior."""
    spread = (KALMAN[0] - told.astype(float)) * values
    divisor = 1.0 + known * (spread @ values.astype(float))
    weights += (steps / divisor)[:, np.newaxis] * spread
    told += (known / divisor)[:, np.newaxis] * spread * spread - walk
    np.maximum(told, 0.0, out=told)
