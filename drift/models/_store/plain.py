"""The column store in plain Python: the oracle of the compiled one, and the fallback without it.

`columns.pyi` says what each public method does; methods stand here in its order. Values are those
of the examples, of unit norm if the kernel normalises them: there are no divisors, except in
`state`. Values and sums are double, even if `wide` is False. A rollback is the guard's: it restores
what `rollback_copy` returned.
"""

from __future__ import annotations

import copy
import math
from array import array
from typing import TYPE_CHECKING, Any, cast

from drift._values import number
from drift.errors import FeatureError
from drift.kernels import RBF, Linear, Polynomial
from drift.models._base.examples import LARGEST, as_dict, in_order, refusal_of
from drift.models._base.guard import Guard, alone, undoes_itself
from drift.models._base.rounding import RELATIVE_TOLERANCE, sum_or_zero
from drift.models._store.calibration import Calibration
from drift.models._store.check import check_store
from drift.models._store.constants import (
    DENSE,
    EXACT_ABOVE,
    LANES,
    MAX_FLOAT32_ZERO,
    SAME_EXAMPLE_TOLERANCE,
)
from drift.models._store.precision import power_of_two
from drift.models._store.refusals import NO_POINT, finite_self_kernel, no_finite_value

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from drift.kernels import Kernel
    from drift.models._base.guard import Part
    from drift.models._base.rows import Rows
    from drift.models._store.classes import ClassHypotheses
    from drift.models._store.stepped_model import SteppedModel
    from drift.types import Features, Label

__all__ = ["ColumnStore", "prefix_votes"]


#: A point: its terms, and |x|^2.
_Point = tuple[list[tuple[int, float]], float]
_NO_POINT: _Point = ([], -1.0)


@undoes_itself
class ColumnStore:
    """The column store: supports by feature, and the score of an example."""

    relative_tolerance = RELATIVE_TOLERANCE

    def __init__(self, kernel: Kernel, wide: bool = False, limit: int | None = None) -> None:  # noqa: FBT001, FBT002
        self.kernel = kernel
        self.wide = wide
        self.guard = Guard()  # of the model
        self.calibration = Calibration()  # of the model's scores
        self.largest_self_kernel = LARGEST  # a bound on k(x, x), for kernels that grow with x
        # A subclass of these may override the computation.
        built_in = type(kernel) in {Linear, Polynomial, RBF}
        unit_norm = isinstance(kernel, (Linear, Polynomial, RBF)) and kernel.scales_rows
        self._unit_norm = built_in and unit_norm  # examples are stored with unit norm
        grows = isinstance(kernel, (Linear, Polynomial)) and not kernel.normalize
        self._kernel_grows = built_in and grows
        # The columns. Each dict is replaced, never changed.
        self._columns: list[dict[int, float]] = []  # values by slot
        self._names: list[Hashable] = []
        self._vocabulary: dict[Hashable, int] = {}  # the column of each name
        self._free_columns: list[int] = []
        # The slots. Each list of columns is replaced, never changed.
        self._features: list[list[int]] = []  # columns in which the slot has a value
        self._coefficients: list[float] = []
        self._squared_norms: list[float] = []  # |x|^2; -1 in a free slot
        self._free_squared_norm = 0.0 if built_in else 1.0  # a user's kernel may be undefined at 0
        self._free_slots: list[int] = []
        # The supports, the oldest first.
        self._slots_by_age: list[int] = []
        self._serials_by_age: list[int] = []
        self.n_added = 0  # the last serial number
        # The point.
        self._point = _NO_POINT
        self._unknown_squared_norm = 0.0  # sum of squares of its new features
        self.n_read = 0  # number of points read
        self._point_valid = False  # whether the point's columns are those of its features
        self._last_score: tuple[Any, float] | None = None  # the point scored last, and its score
        self._error_bound = 0.0  # of that score

    @property
    def _guard(self) -> Guard:  # for `alone`
        return self.guard

    @property
    def capacity(self) -> int:
        """Number of slots, rounded up to the lanes."""
        return -(-len(self._features) // LANES) * LANES

    # --- the point -------------------------------------------------------------------------------

    def read(self, x: Features) -> None:
        """Read an example as the point."""
        self.n_read += 1
        self._point_valid = False
        self._point = _NO_POINT
        features = as_dict(x)
        try:
            # Most values are floats: to call `number` for each would take longer than the rest.
            values = {n: v if type(v) is float else number(v) for n, v in features.items()}
            squares = [v * v for v in values.values() if v == v]
            squared_norm = math.fsum(squares)
        except (TypeError, ValueError, OverflowError) as problem:
            raise refusal_of(features, problem) from None
        largest = self.largest_self_kernel
        grown = self._self_kernel_at(squared_norm) if self._kernel_grows else 0.0
        if not (squared_norm <= LARGEST and grown <= largest):
            raise refusal_of(features, largest_self_kernel=largest)
        known = self._vocabulary
        columns = [(known[n], v) for n, v in values.items() if n in known and v == v != 0]
        self._point = (sorted(columns), squared_norm)
        unknown = [v for n, v in values.items() if n not in known and v == v]
        self._unknown_squared_norm = math.fsum([v * v for v in unknown])
        self._point_valid = True

    def read_slot(self, slot: int) -> None:
        """Read the support in a slot as the point."""
        self._check_slot(slot)
        self.n_read += 1
        self._point_valid = True
        self._point = (
            sorted((j, self._columns[j][slot]) for j in self._features[slot]),
            self._squared_norms[slot],
        )
        self._unknown_squared_norm = 0.0

    def score(self) -> float:
        """Return the point's sum of coefficient * kernel; 0 within rounding of 0."""
        point = self._point, self._unknown_squared_norm
        if not self._point_valid or self._last_score is None or self._last_score[0] != point:
            terms = [a * k for a, k in zip(self._coefficients, self._kernels(), strict=True)]
            score, self._error_bound = self._sum(terms)
            self._last_score = (point, score)
        return self._last_score[1]

    @alone
    def score_of(self, x: Features) -> float:
        """Read an example and return its score."""
        self.read(x)
        return self.score()

    def error_bound(self) -> float:
        """Return a bound on the rounding error of `score`."""
        self.score()
        return self._error_bound

    def self_kernel(self) -> float:
        """Return the kernel between the point and itself, which may have become a support."""
        if self._point[1] < 0.0:
            raise RuntimeError(NO_POINT)
        return finite_self_kernel(self.kernel, self._point[1])

    def write_kernels(self, out: Any) -> int:
        """Write the kernel between the point and each slot; return the number of slots."""
        values = self._kernels()
        _check_buffer(out, len(values))
        for slot, value in enumerate(values):
            out[slot] = value
        return len(values)

    def class_scores(self, coefficients: Any, scores: Any, error_bounds: Any) -> None:
        """Score the point under several sets of coefficients, from the same kernel values."""
        kernels, n = self._kernels(), len(scores)
        for values, least in ((coefficients, 0), (scores, n), (error_bounds, n)):
            _check_buffer(values, least)
        shape = memoryview(coefficients).shape or ()
        if n and (len(shape) != 2 or shape[0] != n or shape[1] < self.capacity):
            raise ValueError(
                f"coefficients of another shape than {n} rows for {self.capacity} slots"
            )
        for c in range(n):
            terms = [a * k for a, k in zip(coefficients[c].tolist(), kernels, strict=False)]
            scores[c], error_bounds[c] = self._sum(terms)

    def _sum(self, terms: list[float]) -> tuple[float, float]:
        """Sum, 0 within rounding of 0, and the bound on its error."""
        score = math.fsum(terms)
        if not math.isfinite(score):
            raise no_finite_value(self.kernel)
        error_bound = self.relative_tolerance * math.fsum(map(abs, terms))
        return 0.0 if abs(score) <= error_bound else score, error_bound

    def _kernels(self) -> list[float]:
        if not self._point_valid:
            raise RuntimeError(NO_POINT)
        dots, kernel, own = self._dots(), self.kernel, self._point[1]
        if type(kernel) is RBF and kernel.gamma * own > EXACT_ABOVE:
            return [math.exp(-kernel.gamma * self._squared_distance(s)) for s in range(len(dots))]
        free = self._free_squared_norm
        pairs = zip(dots, self._squared_norms, strict=True)
        try:
            return [float(kernel(dot, free if s < 0.0 else s, own)) for dot, s in pairs]
        except ArithmeticError as problem:
            raise no_finite_value(kernel) from problem

    def _dots(self) -> list[float]:
        dots = [0.0] * len(self._features)
        for j, u in self._point[0]:
            for slot, value in self._columns[j].items():
                dots[slot] += u * value
        return dots

    def _squared_distance(self, slot: int) -> float:
        """Squared distance between the point and a support, feature by feature.

        If norms are large beside it, ``|a|^2 + |b|^2 - 2 <a, b>`` is rounding error.
        """
        norm = (math.sqrt(self._point[1]) if self._unit_norm else 1.0) or 1.0
        point = {j: value / norm for j, value in self._point[0]}
        support = {j: self._columns[j][slot] for j in self._features[slot]}
        gaps = [point.get(j, 0.0) - support.get(j, 0.0) for j in point | support]
        return math.fsum([*(gap * gap for gap in gaps), self._unknown_squared_norm / norm**2])

    def _self_kernel_at(self, squared_norm: float) -> float:
        """Value k(x, x) of a kernel that grows with x."""
        try:
            return float(self.kernel(squared_norm, squared_norm, squared_norm))
        except OverflowError:
            return math.inf

    # --- learning and batches --------------------------------------------------------------------

    @alone
    def learn_with(self, x: Features, y: Any, sign: float, model: SteppedModel) -> float:
        """Read an example, let a model learn it, and return the score before the update."""
        score = self.score_of(x)
        if sign * score <= model._update_margin or model._would_adopt(y):  # noqa: SLF001
            self.guard.update(cast("Part", model), model._step, x, y, sign, score)  # noqa: SLF001
        else:
            self.calibration.learn(score, sign, model._weight)  # noqa: SLF001
        return score

    def score_rows(self, rows: Rows | list[Any], scores: list[float]) -> None:
        """Append the score of each row."""
        scores.extend(self.score_of(rows[i]) for i in range(len(rows)))

    def learn_rows_with(  # noqa: PLR0913
        self,
        rows: Rows | list[Any],
        predictions: list[Any],
        labels: list[Any] | None,
        signs: Any,
        model: SteppedModel,
        *,
        stop: int | None = None,
        until_update: bool = False,
    ) -> None:
        """Predict rows, and learn them as `learn_with` does, from row ``len(predictions)`` on."""
        first, n = len(predictions), len(rows)
        if labels is not None:
            _check_buffer(signs, n, "b")
        for i in range(first, n if stop is None else min(n, stop)):
            x, pair = rows[i], model._labels  # noqa: SLF001
            if labels is None:
                score = self.score_of(x)
            elif until_update and self._needs_update(x, labels[i], float(signs[i]), model):
                break
            else:
                score = self.learn_with(x, labels[i], float(signs[i]), model)
            predictions.append(pair[score > 0.0])

    def _needs_update(self, x: Features, y: Label, sign: float, model: SteppedModel) -> bool:
        """Whether learning an example may change more than the calibration."""
        return (
            sign * self.score_of(x) <= model._update_margin  # noqa: SLF001
            or model._would_adopt(y)  # noqa: SLF001
        )

    def learn_class_rows_until_update(
        self,
        rows: Rows | list[Any],
        predictions: list[Any],
        labels: list[Any] | None,
        classes: ClassHypotheses,
    ) -> None:
        """Predict and learn rows, from ``len(predictions)`` on, up to the first that may update."""
        (
            index_of,
            coefficients,
            factors,
            calibration,
            update_margin,
            over_rival,
            repeats_may_update,
        ) = classes
        if labels is None:
            update_margin, over_rival, repeats_may_update = 0.0, True, False
        class_labels = list(index_of)
        scores, error_bounds = (array("d", bytes(8 * len(factors))) for _ in range(2))
        for i in range(len(predictions), len(rows)):
            self.read(rows[i])
            try:
                self.class_scores(coefficients, scores, error_bounds)
            except FeatureError:
                break  # raised again when the row is learnt
            terms = zip(factors, scores, error_bounds, strict=True)
            pairs = [(f * s, abs(f) * bound) for f, s, bound in terms]
            best = max(range(len(pairs)), key=lambda c: pairs[c][0], default=0)
            k = best if labels is None else index_of.get(labels[i], len(pairs))
            if _may_update(pairs, k, update_margin, over_rival=over_rival):
                break
            if repeats_may_update and self._may_be_support():
                break
            if labels is not None:
                calibration.learn_classes([score for score, _ in pairs], k, 1.0)
            predictions.append(class_labels[k])

    def _may_be_support(self) -> bool:
        squared_norm = self._point[1]
        norm = math.sqrt(squared_norm) if self._unit_norm else 1.0  # supports have unit norm then
        least = SAME_EXAMPLE_TOLERANCE * squared_norm
        pairs = zip(self._dots(), self._squared_norms, strict=True)
        return any(
            s >= 0.0 and s * norm**2 + squared_norm - 2.0 * dot * norm <= least for dot, s in pairs
        )

    # --- the supports ----------------------------------------------------------------------------

    def n_supports(self) -> int:
        """Return the number of supports."""
        return len(self._slots_by_age)

    def slot(self, i: int) -> int:
        """Return the slot of the `i`-th oldest support, from 0; negative: from the newest, -1."""
        if not -len(self._slots_by_age) <= i < len(self._slots_by_age):
            raise IndexError(f"support {i} of {len(self._slots_by_age)}")
        return self._slots_by_age[i]

    def slots_by_age(self) -> list[int]:
        """Return the supports' slots, the oldest first."""
        return list(self._slots_by_age)

    def serials_by_age(self) -> list[int]:
        """Return the supports' serial numbers, counting all ever added from 1; the oldest first."""
        return list(self._serials_by_age)

    def support_in_slot(self, slot: int) -> dict[Hashable, float]:
        """Return a support: of unit norm if the kernel normalises examples, else as added."""
        self._check_slot(slot)
        return {self._names[j]: self._columns[j][slot] for j in self._features[slot]}

    def add(self, x: Features, coefficient: float) -> int:
        """Add an example as the newest support; return its slot."""
        self.read(x)
        self.self_kernel()  # every score of this support would be refused if it is not finite
        return cast("int", self.guard.update(cast("Part", self), self._add_point, x, coefficient))

    def _add_point(self, x: Features, coefficient: float) -> int:
        """Add the point within an update, which undoes what is left if a name's code raises."""
        self._last_score = None
        self._point_valid = False
        present = {name: number(value) for name, value in x.items()}
        squared_norm = self._point[1]
        divisor = (
            (math.sqrt(squared_norm) or 1.0) if self._unit_norm else power_of_two(squared_norm)
        )
        # The compiled store, which may restore this state, drops values that round to 0.
        least = 0.0 if self.wide else MAX_FLOAT32_ZERO
        present = {name: v for name, v in present.items() if abs(v / divisor) > least}
        for name in in_order([name for name in present if name not in self._vocabulary]):
            self._new_column(name)
        if self._free_slots:
            slot = self._free_slots.pop()
        else:
            slot = len(self._features)
            self._features.append([])
            self._coefficients.append(0.0)
            self._squared_norms.append(-1.0)
        self._features[slot] = sorted(self._vocabulary[name] for name in present)
        for name, value in present.items():
            j = self._vocabulary[name]
            self._columns[j] = self._columns[j] | {
                slot: value / divisor if self._unit_norm else value
            }
        self._coefficients[slot] = coefficient
        self._squared_norms[slot] = float(self._point[1] > 0) if self._unit_norm else self._point[1]
        self.n_added += 1
        self._slots_by_age.append(slot)
        self._serials_by_age.append(self.n_added)
        return slot

    def _new_column(self, name: Hashable) -> None:
        if self._free_columns:
            j = self._free_columns.pop()
        else:
            j = len(self._names)
            self._names.append(None)
            self._columns.append({})
        self._names[j] = name
        self._vocabulary[name] = j

    def evict(self, i: int) -> int:
        """Evict the `i`-th oldest support, as `slot` counts; return its slot."""
        return cast("int", self.guard.update(cast("Part", self), self._evict, i))

    def _evict(self, i: int) -> int:
        """Evict a support within an update, which undoes what is left if a name's code raises."""
        slot = self.slot(i)
        self._last_score = None
        self._point_valid = False
        del self._slots_by_age[i], self._serials_by_age[i]
        for j in sorted(self._features[slot], reverse=True):
            self._columns[j] = {s: value for s, value in self._columns[j].items() if s != slot}
            if not self._columns[j]:
                del self._vocabulary[self._names[j]]
                self._names[j] = None
                self._free_columns.append(j)
        self._features[slot] = []
        self._coefficients[slot] = 0.0
        self._squared_norms[slot] = -1.0  # marks a free slot
        self._free_slots.append(slot)
        return slot

    def evict_slot(self, slot: int) -> None:
        """Evict the support in a slot."""
        if slot not in self._slots_by_age:
            raise IndexError(f"no support is in slot {slot}")
        self.evict(self._slots_by_age.index(slot))

    def slot_of_smallest(self, magnitudes: Any = None) -> int:
        """Return the slot of the smallest support, without the newest; of equal ones the oldest."""
        values = array("d", self._coefficients) if magnitudes is None else magnitudes
        _check_buffer(values, len(self._coefficients))
        pairs = [(slot, abs(float(values[slot]))) for slot in self._slots_by_age[:-1]]
        if not pairs:
            raise IndexError("no support but the newest")
        smallest = min((m for _, m in pairs if m == m), default=math.nan)
        for slot, magnitude in pairs:
            if magnitude <= smallest * (1.0 + self.relative_tolerance):
                return slot
        raise ValueError("all magnitudes are NaN")

    def nearest(self, slot: int, slots_by_age: Any = None) -> tuple[int, float]:
        """Read a support as the point; return its nearest neighbour's slot and a ratio to merge."""
        if slots_by_age is not None:
            _check_buffer(slots_by_age, 0, "i")
        self.read_slot(slot)
        kernels = self._kernels()
        by_age = self._slots_by_age if slots_by_age is None else slots_by_age
        for j in by_age:
            self._check_slot(j)
        self_kernels = {
            j: finite_self_kernel(self.kernel, self._squared_norms[j]) for j in by_age if j != slot
        }
        ratios = {j: kernels[j] / own for j, own in self_kernels.items() if own > 0.0}
        largest = max((ratio * kernels[j] for j, ratio in ratios.items()), default=0.0)
        for j, ratio in ratios.items():
            if ratio * kernels[j] >= largest * (1.0 - self.relative_tolerance) > 0.0:
                return j, ratio
        return -1, 0.0

    def merge(self, slot: int, target: int, ratio: float) -> None:
        """Evict a support and add its coefficient times a ratio to another's; if they cancel, 0."""
        self._check_slot(slot)
        if ratio != 0.0:
            self._check_slot(target)
            if target == slot:
                raise ValueError(f"support {slot} cannot be merged into itself")
            self._coefficients[target] = sum_or_zero(
                self._coefficients[target], ratio * self._coefficients[slot]
            )
        self.evict_slot(slot)

    # --- coefficients ----------------------------------------------------------------------------

    def coefficient_in_slot(self, slot: int) -> float:
        """Return the coefficient of the support in a slot."""
        self._check_slot(slot)
        return self._coefficients[slot]

    def write_coefficients(self, out: Any) -> int:
        """Write the coefficient of each slot, 0 for a free one; return the number of slots."""
        _check_buffer(out, len(self._coefficients))
        for slot, coefficient in enumerate(self._coefficients):
            out[slot] = coefficient
        return len(self._coefficients)

    def set_coefficients(self, values: Any) -> None:
        """Set the coefficient of each slot; free slots ignore it."""
        _check_buffer(values, len(self._coefficients))
        self._coefficients = [float(values[slot]) for slot in range(len(self._coefficients))]
        for slot in self._free_slots:
            self._coefficients[slot] = 0.0
        self._last_score = None

    def add_coefficients(self, values: Any) -> None:
        """Add a number to the coefficient of each slot; free slots ignore it."""
        _check_buffer(values, len(self._coefficients))
        for slot, before in enumerate(self._coefficients):
            self._coefficients[slot] = sum_or_zero(before, float(values[slot]))
        for slot in self._free_slots:
            self._coefficients[slot] = 0.0
        self._last_score = None

    def scale_coefficients(self, c: float) -> None:
        """Multiply every coefficient by a number."""
        self._coefficients = [c * before for before in self._coefficients]
        self._last_score = None

    def _check_slot(self, slot: int) -> None:
        if not 0 <= slot < len(self._squared_norms) or self._squared_norms[slot] < 0.0:  # free
            raise IndexError(f"no support is in slot {slot}")

    # --- state, in the form of the compiled store ------------------------------------------------

    @alone
    def state(self) -> dict[str, Any]:
        """Return all that a store is, as plain values and arrays, with the order of sums."""
        ids, values, divisors, squared_norms = array("i"), array("d"), array("d"), array("d")
        for slot, columns in enumerate(self._features):
            squared_norm = max(self._squared_norms[slot], 0.0)  # -1 marks a free slot
            divisor = 1.0 if self._unit_norm else power_of_two(squared_norm)
            divisor = 0.0 if self._squared_norms[slot] < 0.0 else divisor
            ids.extend(columns)
            values.extend(self._columns[j][slot] / divisor for j in columns)
            divisors.append(divisor)
            squared_norms.append(squared_norm)
        serials = array("q", bytes(8 * len(self._features)))
        for slot, serial in zip(self._slots_by_age, self._serials_by_age, strict=True):
            serials[slot] = serial
        return {
            "wide": self.wide,
            "most": self.largest_self_kernel,
            "calibration": self.calibration.state(),
            "factor": 1.0,
            "capacity": self.capacity,
            "names": list(self._names),
            "free_columns": list(self._free_columns),
            "dense": [
                j for j, column in enumerate(self._columns) if len(column) > self.capacity // DENSE
            ],
            "free_slots": list(self._free_slots),
            "n_added": self.n_added,
            "serials": serials,
            "sizes": array("i", map(len, self._features)),
            "ids": ids,
            "values": values,
            "weight": array("d", self._coefficients),
            "scale": divisors,
            "squared": squared_norms,
        }

    @classmethod
    def restore(cls, kernel: Kernel, limit: int | None, state: dict[str, Any]) -> ColumnStore:
        """Build a store from the `state` of either."""
        check_store(state, keeps_float64=True)
        self = cls(kernel, state["wide"], limit)
        self.largest_self_kernel = state["most"]
        self.calibration = Calibration(*state["calibration"])
        self._names = list(state["names"])
        self._columns = [{} for _ in self._names]
        self._free_columns = list(state["free_columns"])
        self._free_slots = list(state["free_slots"])
        self._coefficients = [state["factor"] * unscaled for unscaled in state["weight"]]
        self._squared_norms = list(state["squared"])
        position = 0
        for slot, size in enumerate(state["sizes"]):
            self._features.append(list(state["ids"][position : position + size]))
            for j in self._features[slot]:
                self._columns[j][slot] = state["values"][position] * state["scale"][slot]
                position += 1
        for slot in self._free_slots:
            self._squared_norms[slot] = -1.0
        held = sorted((serial, slot) for slot, serial in enumerate(state["serials"]) if serial)
        self._slots_by_age = [slot for _, slot in held]
        self._serials_by_age = [serial for serial, _ in held]
        self.n_added = state["n_added"]
        holes = set(self._free_columns)
        self._vocabulary = {name: j for j, name in enumerate(self._names) if j not in holes}
        return self

    # --- rollback --------------------------------------------------------------------------------

    def rollback_copy(self) -> dict[str, Any]:
        """Return what `__dict__` is now; the guard restores it if an update fails."""
        copied = {
            name: value.copy() for name, value in vars(self).items() if type(value) in {list, dict}
        }
        calibration = copy.copy(self.calibration)
        no_point = {"_point": _NO_POINT, "_point_valid": False}
        return vars(self) | copied | {"calibration": calibration} | no_point


def prefix_votes(
    store: ColumnStore,
    slots_by_age: Sequence[int] | None,
    coefficients: Sequence[float],
    votes: Sequence[float],
    averaged: bool,  # noqa: FBT001
) -> tuple[float, float]:
    """Score the point under all prefixes of an expansion; return their vote and the last score."""
    kernels, relative_tolerance = array("d", bytes(8 * store.capacity)), store.relative_tolerance
    store.write_kernels(kernels)
    total = magnitude = score = vote = vote_magnitude = 0.0
    by_age = store.slots_by_age() if slots_by_age is None else slots_by_age
    if slots_by_age is not None:
        _check_buffer(slots_by_age, 0, "i")
    _check_buffer(coefficients, len(by_age))
    _check_buffer(votes, len(by_age) + 1)
    for slot in by_age:
        store._check_slot(slot)  # noqa: SLF001
    for slot, coefficient, prefix_vote in zip(by_age, coefficients, votes[1:], strict=True):
        term = coefficient * kernels[slot]
        total += term
        magnitude += abs(term)
        score = 0.0 if abs(total) <= relative_tolerance * magnitude else total
        vote += prefix_vote * (score if averaged else float(score > 0.0) - float(score < 0.0))
        vote_magnitude += prefix_vote * magnitude
    return (0.0 if averaged and abs(vote) <= relative_tolerance * vote_magnitude else vote), score


def _check_buffer(values: Any, least: int, code: str = "d") -> None:
    """Check the items of a buffer; `code` is their type, as `struct` writes it."""
    given = memoryview(values)
    if given.format != code:
        raise ValueError(f"a buffer with items of type {given.format!r}, where {code!r} is needed")
    if not given.c_contiguous:
        raise ValueError("a buffer that is not contiguous")
    if len(given) < least:
        raise ValueError(f"a buffer of {len(given)} items, where {least} are needed")


def _may_update(
    scores: list[tuple[float, float]], k: int, margin: float, *, over_rival: bool
) -> bool:
    """Whether an example of class `k` may cause an update, from scores and error bounds."""
    if not 0 <= k < len(scores):
        return True
    if not over_rival:
        signed = ((s if c == k else -s, bound) for c, (s, bound) in enumerate(scores))
        return not all(s - bound > margin for s, bound in signed)
    least = scores[k][0] - margin - 4.0 * max(bound for _, bound in scores)
    others = [s for c, (s, _) in enumerate(scores) if c != k] or [0.0]
    return not all(least > s for s in others)
