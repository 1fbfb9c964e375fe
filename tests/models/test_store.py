"""The compiled store does what the plain one does, in any order of operations."""

import contextlib
import copy
import math
import random
import sys
from array import array
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from drift.errors import FeatureError, FeatureTypeError
from drift.kernels import RBF, Linear, Polynomial
from drift.models import Perceptron, compiled
from drift.models._base.guard import Part
from drift.models._base.rows import Row, Rows
from drift.models._store import plain
from drift.models._store.shared_supports import SharedStore, SharedSupports
from drift.models._store.supports import SupportSet
from tests.models.streams import random_stream

if compiled:
    from drift.models._store.columns import ColumnStore, prefix_votes

needs_compiled = pytest.mark.skipif(not compiled, reason="the compiled extension is missing")

#: Both stores, or the plain one without the extension.
BOTH = pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda *kernel: ColumnStore(*kernel), marks=needs_compiled, id="compiled"),  # noqa: PLW0108
        pytest.param(plain.ColumnStore, id="plain"),
    ],
)

NAMES = [*"abcdefghijklmnop", 0, 1, 2, 3, ("a", "b"), 2.5, True]
#: What stands for a name where features are numbers; two share their last bits.
NUMBERS = {name: (j * 2**27 + j // 2) % 2**31 for j, name in enumerate(NAMES)}
KERNELS = [
    Linear(),
    Polynomial(3),
    Polynomial(normalize=True),
    Polynomial(normalize="rows"),
    RBF(0.3),
    RBF(1.0, normalize="rows"),
]
examples = st.dictionaries(
    st.sampled_from(NAMES),
    st.one_of(st.integers(-4, 4), st.floats(-2, 2, allow_subnormal=False), st.just(float("nan"))),
    max_size=14,
)


def in_row(x):
    """Return an example as the row of a matrix."""
    numbers, values = np.array(list(x), dtype=np.int32), np.array(list(x.values()), dtype=float)
    return Row(Rows(values, 2**31, np.array([0, len(x)], dtype=np.int64), numbers), 0)


def uses_of_the_point(store):
    """What reads the columns of a store's point."""
    row = np.zeros(4000)
    return [
        store.score,
        lambda: store.write_kernels(row),
        lambda: store.class_scores(np.zeros((1, 4000)), np.zeros(1), np.zeros(1)),
    ]


def sharing(kernel):
    """The supports of one hypothesis of several."""
    return SharedSupports(SharedStore(kernel, wide=True), None)


class TwoStores(RuleBasedStateMachine):
    """Do the same to both stores, and compare what they say."""

    @initialize(
        kernel=st.sampled_from(KERNELS),
        limit=st.sampled_from([None, 5, 40]),
        rows=st.booleans(),
    )
    def start(self, kernel, limit, rows):
        self.kernel, self.limit, self.rows = kernel, limit, rows
        self.fast = ColumnStore(kernel, True, limit)
        self.plain = plain.ColumnStore(kernel, True, limit)
        self.live = []

    def of(self, store, x):
        """An example as the store takes it: in a dict or in a row of a matrix."""
        if not self.rows:
            return x
        x = {NUMBERS[name]: float(v) for name, v in x.items()}
        return in_row(x) if store is self.fast else x

    @rule(x=examples, coefficient=st.floats(-3, 3))
    def add(self, x, coefficient):
        for store in (self.fast, self.plain):
            store.read(self.of(store, x))
        slots = {store.add(self.of(store, x), coefficient) for store in (self.fast, self.plain)}
        assert len(slots) == 1
        self.live.extend(slots)

    @rule(copies=st.integers(10, 60), x=examples)
    def add_many(self, copies, x):
        for _ in range(copies):
            self.add(x, 1.0)

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def remove(self, data):
        slot = self.live.pop(data.draw(st.integers(0, len(self.live) - 1)))
        for store in (self.fast, self.plain):
            store.evict_slot(slot)

    @precondition(lambda self: len(self.live) > 1)
    @rule(data=st.data())
    def merge(self, data):
        if (
            self.fast.slots_by_age() == self.plain.slots_by_age()
        ):  # a checkpoint without the order loses it
            assert self.fast.slot_of_smallest() == self.plain.slot_of_smallest()
        slot = self.live.pop(data.draw(st.integers(0, len(self.live) - 1)))
        parts = []
        for store in (self.fast, self.plain):
            target, share = store.nearest(slot, array("i", self.live))
            row = array("d", bytes(8 * 3000))
            store.write_kernels(row)
            parts.append(share * row[target])  # squared norm of the projection
        assert parts[0] == pytest.approx(parts[1], rel=1e-9, abs=1e-9)
        for store in (self.fast, self.plain):
            store.merge(slot, target, share)

    @rule(
        steps=st.lists(
            st.one_of(
                examples,
                st.integers(0, 99),
                st.floats(-2, 2),
                st.sampled_from([1e-80, "add", "set", "merge"]),
            ),
            max_size=30,
        )
    )
    def take_an_update_back(self, steps):
        """An example comes, a support goes, coefficients change, and nothing has been."""
        before = (
            self.fast.state(),
            self.fast.slots_by_age(),
            self.fast.serials_by_age(),
            self.fast.n_added,
        )
        self.fast.start()
        for step in steps:
            if isinstance(step, dict):
                self.fast.read(self.of(self.fast, step))
                self.fast.add(self.of(self.fast, step), 1.0)
            elif isinstance(step, float):
                self.fast.scale_coefficients(step)
            elif step == "add":
                self.fast.add_coefficients(array("d", range(3000)))
            elif step == "set":
                self.fast.set_coefficients(array("d", range(3000)))
            elif step == "merge":
                if self.fast.n_supports() > 1:
                    self.fast.merge(self.fast.slot(0), self.fast.slot(1), 0.5)
            elif self.fast.n_supports():
                assert self.fast.slot(step % self.fast.n_supports()) == self.fast.evict(
                    step % self.fast.n_supports()
                )
        self.fast.undo()
        after = (
            self.fast.state(),
            self.fast.slots_by_age(),
            self.fast.serials_by_age(),
            self.fast.n_added,
        )
        assert after == before

    @rule(comers=st.lists(examples, max_size=20), data=st.data())
    def finish_an_update(self, comers, data):
        self.fast.start()
        for x in comers:
            self.add(x, 1.0)
        for _ in range(data.draw(st.integers(0, len(self.live)))):
            self.remove(data)
        self.fast.finish()

    @precondition(lambda self: len(self.live) > 20)
    @rule()
    def remove_most(self):
        while len(self.live) > 3:
            slot = self.live.pop(len(self.live) // 2)
            for store in (self.fast, self.plain):
                store.evict_slot(slot)

    @rule(factor=st.floats(-2, 2))
    def multiply(self, factor):
        for store in (self.fast, self.plain):
            store.scale_coefficients(factor)

    @rule(seed=st.integers(0, 99))
    def add_to_every_coefficient(self, seed):
        rng = random.Random(seed)
        values = array("d", (rng.uniform(-2, 2) for _ in range(3000)))
        for store in (self.fast, self.plain):
            store.add_coefficients(values)

    @rule()
    def cancel_every_coefficient(self):
        for store in (self.fast, self.plain):
            negative = array("d", bytes(8 * 3000))
            used = store.write_coefficients(negative)
            for slot in range(used):
                negative[slot] *= -1.0 + 1e-15
            store.add_coefficients(negative)
            assert store.write_coefficients(negative) == used
            assert not any(negative[:used])

    @invariant()
    def coefficients_are_those_of_the_slots(self):
        if not hasattr(self, "live"):
            return
        columns = []
        for store in (self.fast, self.plain):
            column = array("d", bytes(8 * 3000))
            columns.append(list(column[: store.write_coefficients(column)]))
            for slot, coefficient in enumerate(columns[-1]):
                if slot in self.live:
                    assert coefficient == store.coefficient_in_slot(slot)
                else:
                    assert coefficient == 0.0
                    for method in (
                        store.coefficient_in_slot,
                        store.support_in_slot,
                        store.read_slot,
                    ):
                        with pytest.raises(IndexError, match=f"no support is in slot {slot}"):
                            method(slot)
        assert columns[0] == pytest.approx(columns[1], rel=1e-9, abs=1e-9)

    @rule(x=examples)
    def score(self, x):
        scores = []
        for store in (self.fast, self.plain):
            store.read(self.of(store, x))
            scores.append(store.score())
            assert store.score() == scores[-1]
        assert scores[0] == pytest.approx(scores[1], rel=1e-9, abs=1e-9)

    @rule(x=examples)
    def row(self, x):
        rows = []
        for store in (self.fast, self.plain):
            store.read(self.of(store, x))
            row = array("d", bytes(8 * 3000))
            rows.append(list(row[: store.write_kernels(row)]))
        assert rows[0] == pytest.approx(rows[1], rel=1e-9, abs=1e-9)

    @rule(x=examples, seed=st.integers(0, 9))
    def classes(self, x, seed):
        results = []
        for store in (self.fast, self.plain):
            coefficients = np.random.default_rng(seed).normal(size=(3, 4000))
            coefficients[:, [slot for slot in range(4000) if slot not in self.live]] = 0.0
            store.read(self.of(store, x))
            scores, error_bounds = np.empty(3), np.empty(3)
            store.class_scores(coefficients, scores, error_bounds)
            results += [*scores, *error_bounds]
        assert results[:6] == pytest.approx(results[6:], rel=1e-9, abs=1e-9)

    @precondition(lambda self: self.live)
    @rule(x=examples, seed=st.integers(0, 9), averaged=st.booleans())
    def votes(self, x, seed, averaged):
        results, n = [], len(self.live)
        rng = np.random.default_rng(seed)
        signs, survived = rng.choice([-1.0, 1.0], n), rng.integers(9, size=n + 1).astype(float)
        for store, votes in ((self.fast, prefix_votes), (self.plain, plain.prefix_votes)):
            store.read(self.of(store, x))
            results += votes(store, array("i", self.live), signs, survived, averaged)
        assert results[:2] == pytest.approx(results[2:], rel=1e-9, abs=1e-9)

    @precondition(lambda self: self.live)
    @rule(data=st.data(), coefficient=st.floats(-3, 3))
    def look_at_a_support(self, data, coefficient):
        slot = data.draw(st.sampled_from(self.live))
        scores = []
        for store in (self.fast, self.plain):
            coefficients = array("d", bytes(8 * 3000))
            store.write_coefficients(coefficients)
            coefficients[slot] = coefficient
            store.set_coefficients(coefficients)
            assert store.coefficient_in_slot(slot) == pytest.approx(coefficient)
            store.read_slot(slot)
            scores.append((store.score(), store.self_kernel()))
        assert scores[0] == pytest.approx(scores[1], rel=1e-9, abs=1e-9)

    @precondition(lambda self: self.live)
    @rule(x=examples, evict=st.booleans())
    def change_the_supports_under_the_point(self, x, evict):
        for store in (self.fast, self.plain):
            store.read(self.of(store, x))
        if evict:
            gone = {store.evict(0) for store in (self.fast, self.plain)}
            self.live = [slot for slot in self.live if slot not in gone]
        else:
            self.live += {store.add(self.of(store, x), 1.0) for store in (self.fast, self.plain)}
        for store in (self.fast, self.plain):
            for use in uses_of_the_point(store):
                with pytest.raises(RuntimeError, match="the store has no point"):
                    use()

    @rule()
    def go_through_a_checkpoint(self):
        state = self.fast.state()
        self.fast = ColumnStore.restore(self.kernel, self.limit, state)
        assert self.fast.state() == state

    @rule()
    def change_places(self):
        self.fast, self.plain = (
            ColumnStore.restore(self.kernel, self.limit, self.plain.state()),
            plain.ColumnStore.restore(self.kernel, self.limit, self.fast.state()),
        )

    @invariant()
    def no_more_is_held_than_the_supports(self):
        if not hasattr(self, "live"):
            return
        names = {name for slot in self.live for name in self.plain.support_in_slot(slot)}
        for store in (self.fast, self.plain):
            state = store.state()
            live = len(state["names"]) - len(state["free_columns"])
            assert live == len(names)
            assert sum(state["sizes"]) == len(state["ids"]) == len(state["values"])


@needs_compiled
def test_the_two_stores_agree():
    run_state_machine_as_test(TwoStores, settings=settings(stateful_step_count=40))


class TwoHypotheses(RuleBasedStateMachine):
    """Do the same to supports in a store of their own and to some that share one."""

    @initialize(kernel=st.sampled_from([Linear(), Polynomial(normalize=True), RBF(0.3)]))
    def start(self, kernel):
        shared = SharedStore(kernel, wide=True)
        self.other = SharedSupports(shared, None)  # its supports are of some of the examples
        self.pair = SupportSet(kernel, wide=True), SharedSupports(shared, None)
        self.x = None

    def agree(self, ask):
        """Compare the answers: numbers, or that there is no point."""
        answers = []
        for supports in self.pair:
            try:
                answers.append(ask(supports))
            except RuntimeError as problem:
                answers.append(str(problem))
        own, shared = answers
        assert shared == (own if isinstance(own, str) else pytest.approx(own, rel=1e-9, abs=1e-9))

    @rule(x=examples)
    def read(self, x):
        self.x = x
        for supports in self.pair:
            supports.read(x)

    @precondition(lambda self: self.x is not None)
    @rule()
    def read_again(self):
        self.read(self.x)

    @precondition(lambda self: self.x is not None)
    @rule(coefficient=st.floats(-3, 3), other=st.booleans())
    def add(self, coefficient, other):
        self.read(dict(self.x))  # a hypothesis adds an example once
        for supports in self.pair:
            supports.add(self.x, coefficient)
        if other:
            self.other.add(self.x, 1.0)

    @precondition(lambda self: len(self.pair[0]))
    @rule(data=st.data())
    def evict(self, data):
        i = data.draw(st.integers(0, len(self.pair[0]) - 1))
        for supports in self.pair:
            supports.evict(i)

    @precondition(lambda self: len(self.other))
    @rule()
    def evict_of_the_other(self):
        self.other.evict(0)
        self.read(self.x)  # the store has no point for anyone

    @precondition(lambda self: len(self.pair[0]) > 1)
    @rule(share=st.sampled_from([0.0, 0.5]))
    def merge(self, share):
        for supports in self.pair:
            slots = supports.own_slots_by_age or supports.slots_by_age
            supports.merge(slots[0], slots[1], share)

    @rule(c=st.sampled_from([-1.0, 0.5, 1e-150, 1e150]))
    def scale(self, c):
        for supports in self.pair:
            supports.scale_coefficients(c)

    @precondition(lambda self: len(self.pair[0]))
    @rule(data=st.data())
    def read_support(self, data):
        i = data.draw(st.integers(0, len(self.pair[0]) - 1))
        for supports in self.pair:
            supports.read_support(i)
        self.agree(lambda supports: supports.self_kernel())

    @precondition(lambda self: self.x is not None)
    @rule()
    def score(self):
        self.agree(lambda supports: supports.score())

    @precondition(lambda self: self.x is not None)
    @rule()
    def error_bound(self):
        self.agree(lambda supports: supports.score() + supports.error_bound())

    @invariant()
    def supports_are_equal(self):
        if hasattr(self, "pair"):
            own, shared = map(list, self.pair)
            assert [x for x, _ in own] == [x for x, _ in shared]
            assert [a for _, a in own] == pytest.approx(
                [a for _, a in shared], rel=1e-9, abs=1e-300
            )


@pytest.mark.usefixtures("tolerance")
def test_a_hypothesis_that_shares_its_supports_scores_like_one_that_does_not():
    run_state_machine_as_test(TwoHypotheses, settings=settings(stateful_step_count=25))


@pytest.mark.usefixtures("tolerance")
def test_adding_to_coefficients_by_hand():
    supports = SupportSet(Linear(), wide=True)
    for name, coefficient in [("a", 1.0), ("b", 2.0), ("c", 5.0)]:
        supports.read({name: 1.0})
        supports.add({name: 1.0}, coefficient)
    freed = supports.evict(1)
    supports.scale_coefficients(0.5)
    supports.read({"a": 1.0, "c": 1.0})
    assert supports.score() == 3.0
    values = array("d", [7.0] * 4)
    values[0] = -0.5 + 1e-16  # all of it except for rounding
    supports.add_coefficients(values)
    assert supports.score() == 9.5  # not the score from before
    out = array("d", bytes(32))
    assert supports.write_coefficients(out) == 3
    assert out.tolist() == [0.0, 0.0, 9.5, 0.0]
    assert freed == 1


@pytest.mark.usefixtures("tolerance")
def test_merging_by_hand():
    supports = SupportSet(Linear(), wide=True)
    for x, coefficient in [
        ({"a": 2.0}, 3.0),
        ({"b": 1.0, "c": 1.0}, -0.5),
        ({"b": 4.0}, 0.5),
        ({}, 0.0),
    ]:
        supports.read(x)
        supports.add(x, coefficient)
    assert supports.slot_of_smallest() == 1  # of two the older one, and the newest does not count
    assert supports.slot_of_smallest(array("d", [1.0, 2.0, 0.5, 0.0])) == 2
    assert supports.nearest(0) == (-1, 0.0)
    assert supports.nearest(1) == (2, 0.25)  # 4 of 16
    supports.merge(1, 2, 0.25)
    assert [coefficient for _, coefficient in supports] == [3.0, 0.375, 0.0]
    supports.merge(2, 0, -8.0 + 1e-14)
    assert [coefficient for _, coefficient in supports] == [0.0, 0.0]  # what cancels is 0


@pytest.mark.usefixtures("tolerance")
def test_buffers_shorter_than_the_slots_are_refused():
    supports = SupportSet(Linear())
    for name in "ab":
        supports.read({name: 1.0})
        supports.add({name: 1.0}, 1.0)
    supports.read({"a": 1.0})
    for call in (
        supports.store.write_kernels,
        supports.write_coefficients,
        supports.set_coefficients,
        supports.add_coefficients,
        supports.slot_of_smallest,
    ):
        with pytest.raises(ValueError, match="a buffer of 1 items, where 2 are needed"):
            call(array("d", [3.0]))
    assert [coefficient for _, coefficient in supports] == [1.0, 1.0]


@needs_compiled
def test_memory_follows_the_supports_and_not_the_stream():
    supports = SupportSet(Polynomial(normalize=True), budget=20)
    sizes = []
    for t in range(4000):
        x = {f"word{t}-{k}": 1.0 for k in range(30)} | {"common": 1.0}
        supports.read(x)
        supports.add(x, 1.0)
        if len(supports) > 20:
            supports.evict(0)
        if t >= 1000:
            sizes.append(sys.getsizeof(supports.store) + len(supports.store.state()["names"]))
    assert max(sizes) <= 1.02 * sizes[0]


@needs_compiled
def test_a_dense_column_turns_sparse_again():
    store = ColumnStore(Linear(), False, None)
    slots = []
    for t in range(64):
        x = {"common": 1.0 + t}
        store.read(x)
        slots.append(store.add(x, 1.0))
    assert store.state()["dense"] == [0]
    for slot in slots[:-3]:
        store.evict_slot(slot)
    assert store.state()["dense"] == []
    store.read({"common": 1.0})
    assert store.score() == 62.0 + 63.0 + 64.0


def test_a_score_is_computed_again_when_the_model_or_the_example_has_changed():
    model = Perceptron(kernel=Linear())
    x = {"a": 1.0}
    model.learn_one(x, True)
    assert model.decision_function_one(x) == 1.0
    x["a"] = 2.0
    assert model.decision_function_one(x) == 2.0
    model.learn_one({"b": 1.0}, True)
    x["b"] = 5.0
    assert model.decision_function_one(x) == 7.0


def test_the_rbf_knows_neighbours_far_from_the_origin(tolerance):
    gamma = 0.5
    supports = SupportSet(RBF(gamma))
    rng = random.Random(5)
    far = [{name: rng.uniform(-1e9, 1e9) for name in "abcdef"} for _ in range(30)]
    for x in far:
        supports.read(x)
        supports.add(x, 1.0)
        assert supports.self_kernel() == 1.0
    row = array("d", bytes(8 * supports.capacity))
    for i, x in enumerate(far):
        supports.read(x)
        supports.store.write_kernels(row)
        assert list(row[:30]) == [float(i == k) for k in range(30)]
        for step in (0.0, 1.5, 0.5):
            supports.read(x | {"new": step})
            supports.store.write_kernels(row)
            assert row[i] == pytest.approx(math.exp(-gamma * step**2), rel=tolerance)
            assert supports.score() == pytest.approx(row[i], rel=tolerance)
        supports.read_support(i)
        supports.store.write_kernels(row)
        assert row[i] == 1.0


def test_scaling_to_nothing_and_far_below():
    supports = SupportSet(Linear())
    supports.read({"a": 1.0})
    supports.add({"a": 1.0}, 1.0)
    for _ in range(40):
        supports.scale_coefficients(1e-5)
    assert supports.coefficient(0) == pytest.approx(1e-200)
    supports.scale_coefficients(0.0)
    supports.add({"b": 2.0}, 3.0)
    assert list(supports) == [({"a": 1.0}, 0.0), ({"b": 2.0}, 3.0)]


@pytest.mark.parametrize("make", [SupportSet, sharing], ids=["own", "shared"])
def test_scaling_far_above(make):
    supports = make(Linear())
    supports.read({"a": 1.0})
    supports.add({"a": 1.0}, 1e-300)
    for _ in range(6):  # their product is infinite
        supports.scale_coefficients(1e60)
    assert supports.score_of({"b": 2.0}) == 0.0
    supports.add({"b": 2.0}, 1e-200)
    assert [a for _, a in supports] == [pytest.approx(1e60), pytest.approx(1e-200)]


@pytest.mark.parametrize("make", [SupportSet, sharing], ids=["own", "shared"])
def test_a_score_is_of_the_point_and_the_coefficients_as_they_are(make):
    supports, x = make(Linear()), {"a": 2.0}
    supports.read({"a": 1.0})
    supports.add({"a": 1.0}, 3.0)
    supports.read(x)
    supports.read_support(0)
    assert supports.score() == 3.0
    supports.read(x)
    assert supports.score() == 6.0
    supports.scale_coefficients(1e-150)
    assert supports.score() == pytest.approx(6e-150)
    with pytest.raises(FeatureError):
        supports.read({"a": math.inf})
    with pytest.raises(RuntimeError, match="the store has no point"):
        supports.score()
    copied = copy.deepcopy(supports)
    copied.read_support(0)
    assert copied.score() == pytest.approx(3e-150)


@pytest.mark.parametrize("n", [0, 1])
def test_the_newest_support_is_never_the_smallest(n):
    for supports in (
        SupportSet(Linear()),
        sharing(Linear()),
        plain.ColumnStore(Linear(), wide=True),
    ):
        if n:
            supports.read({"a": 1.0})
            supports.add({"a": 1.0}, 2.0)
        with pytest.raises(IndexError, match="no support but the newest"):
            supports.slot_of_smallest()


@needs_compiled
def test_neighbours_far_from_the_origin_keep_their_distance():
    store = ColumnStore(RBF(gamma=0.5), False, None)
    far = {"a": 1024.0, "b": 2048.0}
    store.read(far)
    store.add(far, 1.0)
    store.read(far | {"b": 2049.0, "c": 1.0})
    assert store.score() == pytest.approx(2.718281828459045**-1.0, rel=1e-9)


@pytest.mark.parametrize("wide", [False, True])
@needs_compiled
def test_the_order_of_features_that_no_support_has_does_not_matter_far_from_the_origin(wide):
    rng = random.Random(4)
    store = ColumnStore(RBF(gamma=0.5), wide, None)
    far = {"a": 2.0**20, "b": 2.0**21}  # on the path for neighbours in both types
    store.read(far)
    store.add(far, 1.0)
    for _ in range(50):
        features = [*far.items(), *((f"new{k}", rng.uniform(0, 0.5)) for k in range(20))]
        scores = set()
        for _ in range(10):
            rng.shuffle(features)
            store.read(dict(features))
            scores.add(store.score())
        squared = math.fsum(v * v for name, v in features if name not in far)
        assert len(scores) == 1
        assert scores.pop() == pytest.approx(math.exp(-0.5 * squared), rel=1e-9)


class Ugly:
    """A value that changes the dict while it is being read."""

    def __init__(self, x):
        self.x = x

    def __float__(self):
        self.x.update({f"more{k}": 1.0 for k in range(500)})
        return 1.0


def test_a_dict_that_changes_while_it_is_read_does_no_harm():
    model = Perceptron()
    x = {"a": 1.0}
    x["ugly"] = Ugly(x)
    with contextlib.suppress(RuntimeError, FeatureError):
        model.learn_one(x, True)
    assert model.predict_one({"a": 1.0}) in {True, False}


@dataclass(frozen=True)
class Cosine:
    """A user's kernel that has no value at norm 0."""

    def __call__(self, dot, squared_norm_a, squared_norm_b):
        return dot / (squared_norm_a * squared_norm_b) ** 0.5


def test_what_the_plain_store_saves_before_an_update_stays_as_it_was():
    store = plain.ColumnStore(Linear())
    store.add({"a": 1.0, "b": 2.0}, 1.0)
    added = store.rollback_copy()
    store.add({"a": 3.0, "c": 1.0}, 1.0)
    evicted = store.rollback_copy()
    store.evict(0)
    assert (added["_columns"], added["_features"]) == ([{0: 1.0}, {0: 2.0}], [[0, 1]])
    assert evicted["_columns"] == [{0: 1.0, 1: 3.0}, {0: 2.0}, {1: 1.0}]
    assert evicted["_features"] == [[0, 1], [0, 2]]


@pytest.mark.usefixtures("tolerance")
def test_free_slots_are_not_shown_to_a_users_kernel():
    supports = SupportSet(Cosine())
    for name in "abc":
        supports.read({name: 2.0})
        supports.add({name: 2.0}, 1.0)
    supports.evict(1)
    supports.read({"a": 3.0, "b": 4.0})
    assert supports.score() == pytest.approx(0.6)
    row = array("d", [7.0] * 3)
    supports.store.write_kernels(row)
    assert row.tolist() == pytest.approx([0.6, 0.0, 0.0])


#: What is wrong with a state: compiled code would reach beyond its memory, or the stores differ.
DAMAGED = [
    {"ids": lambda ids: array("i", [-1]) + ids[1:]},
    {"ids": lambda ids: array("i", [10**6]) + ids[1:]},
    {"sizes": lambda sizes: array("i", [-1]) + sizes[1:]},
    {"capacity": lambda capacity: 1},
    {"capacity": lambda capacity: 2**40},
    {"names": lambda names: names[:1]},
    {"weight": lambda weight: weight[:1]},
    {"values": lambda values: values[:-1]},
    {"free_slots": lambda slots: [0]},
    {"free_slots": lambda slots: [10**6]},
    {"free_columns": lambda columns: [0]},
    {"dense": lambda dense: [-1]},
    {"serials": lambda serials: array("q", [-1]) + serials[1:]},
    {"serials": lambda serials: array("q", [0]) + serials[1:]},
    {"serials": lambda serials: serials[1:2] + serials[1:]},
    {"serials": lambda serials: array("i", serials)},
    {"n_added": lambda n: -1},
    {"serials": lambda serials: serials[1:] + array("q", [10**6])},
    {"n_added": lambda n: 0},
    {"n_added": lambda n: 2**62},
    {"n_added": lambda n: 2**63 - 1},
    {"names": lambda names: [[], *names[1:]]},
    {"names": lambda names: [("a", []), *names[1:]]},
    {"names": tuple},
    {"names": lambda names: None},
    {"factor": lambda factor: 0.0},
    {"factor": lambda factor: math.nan},
    {"factor": lambda factor: math.inf},
    {"factor": lambda factor: -1e101},
    {"factor": lambda factor: 1e-101},
    {"factor": lambda factor: 1},
    {"weight": lambda weight: array("d", [math.nan]) + weight[1:]},
    {"weight": lambda weight: array("d", [-math.inf]) + weight[1:]},
    {"weight": lambda weight: array("d", [1e308]) + weight[1:], "factor": lambda factor: 10.0},
    {"scale": lambda scale: array("d", [0.0]) + scale[1:]},
    {"scale": lambda scale: array("d", [5e-324]) + scale[1:]},
    {"scale": lambda scale: array("d", [3.0]) + scale[1:]},
    {"scale": lambda scale: array("d", [-1.0]) + scale[1:]},
    {"scale": lambda scale: array("d", [math.nan]) + scale[1:]},
    {"scale": lambda scale: array("d", [math.inf]) + scale[1:]},
    {"squared": lambda squared: array("d", [-1.0]) + squared[1:]},
    {"squared": lambda squared: array("d", [math.nan]) + squared[1:]},
    {"calibration": lambda calibration: calibration[1:] * 2},
    {"calibration": lambda calibration: [*calibration, 1.0]},
    {"calibration": lambda calibration: None},
    {"calibration": lambda calibration: [0.0, *calibration[1:]]},
    {"calibration": lambda calibration: [1e4, *calibration[1:]]},
    {"calibration": lambda calibration: [1.0, 1e301, 1.0]},
    {"calibration": lambda calibration: [*calibration[:2], math.nan]},
]


@pytest.mark.usefixtures("tolerance")
def test_a_value_that_vanishes_in_its_column_is_refused():
    """In float32 its cell would remain in a column that is freed."""
    supports = SupportSet(Linear())
    supports.read({"a": 1.0, "b": 0.5})
    supports.add({"a": 1.0, "b": 0.5}, 1.0)
    state = supports.__getstate__()
    values = state["store"]["values"]
    state["store"]["values"] = array("d", [values[0], 1e-60])
    restored = SupportSet.__new__(SupportSet)
    if isinstance(supports.store, plain.ColumnStore) or supports.store.wide:
        restored.__setstate__(state)
        assert restored.__getstate__() == state
    else:
        with pytest.raises(ValueError, match="a value vanishes"):
            restored.__setstate__(state)


@pytest.mark.parametrize("damage", DAMAGED, ids=lambda damage: next(iter(damage)))
def test_a_damaged_state_is_refused(damage):
    """By one check for all stores, before one is made: it is tried on the store that there is."""
    model = Perceptron()
    for x, y in random_stream(30):
        model.learn_one(x, y)
    state = model._supports.__getstate__()
    changed = {name: change(state["store"][name]) for name, change in damage.items()}
    state["store"] = state["store"] | changed
    with pytest.raises(ValueError, match="is inconsistent"):
        SupportSet.__new__(SupportSet).__setstate__(state)


@BOTH
@pytest.mark.parametrize("name", ["sizes", "weight", "squared", "serials"])
def test_a_free_slot_that_has_something_is_refused(make, name):
    store = make(Linear())
    for feature in "abc":
        store.add({feature: 3.0}, 2.0)
    store.evict(1)
    state = store.state()
    assert [state[by_slot][1] for by_slot in (name, "scale")] == [0, 0]
    changed = state[name][:]
    changed[1] = 1
    with pytest.raises(ValueError, match="is inconsistent"):
        type(store).restore(Linear(), None, state | {name: changed})


@BOTH
def test_what_is_no_state_is_refused(make):
    for state in (None, [], 3, {}):
        with pytest.raises(ValueError, match="is inconsistent"):
            type(make(Linear())).restore(Linear(), None, state)


@pytest.mark.usefixtures("tolerance")
def test_a_budget_below_the_number_of_supports_is_refused():
    model = Perceptron()
    for x, y in random_stream(30):
        model.learn_one(x, y)
    state = model._supports.__getstate__()
    SupportSet.__new__(SupportSet).__setstate__(state | {"budget": model.n_supports})
    with pytest.raises(ValueError, match="there are more supports than `budget`"):
        SupportSet.__new__(SupportSet).__setstate__(state | {"budget": model.n_supports - 1})


@BOTH
def test_a_state_without_a_part_is_refused(make):
    store = make(Linear())
    store.add({"a": 1.0}, 1.0)
    state = store.state()
    for name in state:
        damaged = {key: value for key, value in state.items() if key != name}
        with pytest.raises(ValueError, match=rf"inconsistent: without \['{name}'\]"):
            type(store).restore(Linear(), None, damaged)


def of_two_supports(make):
    store = make(Linear())
    for value in (1.0, 2.0):
        store.add({"a": value}, 1.0)
    store.read({"a": 1.0})
    return store


@BOTH
def test_a_buffer_of_another_type_is_refused(make):
    store = of_two_supports(make)
    room, doubles = store.capacity, np.zeros(2)
    votes = plain.prefix_votes if isinstance(store, plain.ColumnStore) else prefix_votes
    for call in (
        lambda: store.set_coefficients(np.full(room, 5)),
        lambda: store.add_coefficients(np.ones(room, np.int64)),
        lambda: store.write_coefficients(np.zeros(room, np.float32)),
        lambda: store.write_kernels(np.zeros(room, np.float32)),
        lambda: store.slot_of_smallest(np.zeros(room, np.int64)),
        lambda: store.nearest(0, np.zeros(2)),
        lambda: store.class_scores(np.zeros((2, room), np.float32), doubles, doubles),
        lambda: store.class_scores(np.zeros((2, room)), np.zeros(2, np.int64), doubles),
        lambda: store.class_scores(np.zeros((2, room)), doubles, np.zeros(2, np.int64)),
        lambda: store.learn_rows_with([{"a": 1.0}], [], [True], np.ones(1), Perceptron()),
        lambda: votes(store, doubles, doubles, np.zeros(3), False),
        lambda: votes(store, None, np.ones(2, np.int64), np.zeros(3), False),
        lambda: votes(store, None, doubles, np.ones(3, np.int64), False),
    ):
        with pytest.raises(ValueError, match="a buffer with items of type"):
            call()
    assert store.score_of({"a": 1.0}) == 3.0


@BOTH
def test_a_buffer_with_gaps_is_refused(make):
    store = of_two_supports(make)
    room, doubles = store.capacity, np.zeros(2)
    for call in (
        lambda: store.set_coefficients(np.ones(2 * room)[::2]),
        lambda: store.write_kernels(np.zeros(2 * room)[::2]),
        lambda: store.class_scores(np.zeros((2, room), order="F"), doubles, doubles),
        lambda: store.class_scores(np.zeros((2, 2 * room))[:, ::2], doubles, doubles),
    ):
        with pytest.raises(ValueError, match="contiguous"):
            call()


@BOTH
def test_rows_of_coefficients_need_all_slots_rounded_up(make):
    store = make(Linear())
    for value in range(33):
        store.add({"a": value}, 1.0)
    store.read({"a": 1.0})
    scores = np.zeros(2)
    store.class_scores(np.repeat([[1.0], [2.0]], 48, axis=1), scores, np.zeros(2))
    assert scores.tolist() == [528.0, 1056.0]
    with pytest.raises(ValueError, match="another shape than 2 rows for 48 slots"):
        store.class_scores(np.zeros((2, 47)), scores, np.zeros(2))


@BOTH
def test_a_size_that_is_nan_is_not_the_smallest(make):
    store = make(Linear())
    for feature in "abc":
        store.add({feature: 1.0}, 1.0)
    magnitudes = array("d", [math.nan, 3.0, 1.0, *[0.0] * 13])
    assert store.slot_of_smallest(magnitudes) == 1
    magnitudes[1] = math.nan
    with pytest.raises(ValueError, match="all magnitudes are NaN"):
        store.slot_of_smallest(magnitudes)


class Raising:
    """A name whose hash raises after so many calls."""

    left = 10**6

    def __hash__(self):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return 1

    def __repr__(self):
        return "raising"


@BOTH
def test_a_support_is_added_whole_or_not_at_all(make):
    """Even outside of an update, whichever call of a name's code raises."""
    kernel, calls = Polynomial(2, 1.0), 0
    while True:
        store, name = make(kernel), Raising()
        for feature in "abc":
            store.add({feature: 1.0}, 1.0)
        store.evict(1)
        before = store.state()
        x = {"b": 1.0, "c": 2.0, name: 1.0, "z": 4.0}
        name.left = calls
        try:
            store.add(x, 1.0)
        except KeyboardInterrupt:
            name.left = 10**6
        else:
            break
        assert store.state() == before
        with pytest.raises(RuntimeError, match="the store has no point"):
            store.score()
        calls += 1
        assert store.score_of({"a": 2.0}) == 10.0  # (2 + 1)^2 + 1
        store.add(x, 1.0)
        assert type(store).restore(kernel, None, store.state()).state() == store.state()
    assert calls >= 3


@BOTH
@pytest.mark.parametrize("refused", [{"a": math.inf}, {"a": 1e200}, {"a": "x"}, {"b": []}, 3])
def test_a_refused_example_leaves_no_point(make, refused):
    store = make(Linear())
    store.add({"a": 1.0}, 1.0)
    store.read({"a": 5.0})
    assert store.self_kernel() == 25.0
    with pytest.raises((FeatureError, FeatureTypeError)):
        store.read(refused)
    for use in (*uses_of_the_point(store), store.self_kernel):
        with pytest.raises(RuntimeError, match="the store has no point"):
            use()
    store.read({"a": 5.0})
    assert (store.score(), store.self_kernel()) == (5.0, 25.0)


@BOTH
def test_rows_and_signs_of_another_number_are_refused(make):
    store = make(Linear())
    store.add({"a": 1.0}, 1.0)
    store.read({"a": 1.0})
    room = store.capacity
    for rows, width in ((3, room), (1, room), (2, room - 1)):
        with pytest.raises(ValueError, match="another shape than 2 rows"):
            store.class_scores(np.zeros((rows, width)), np.zeros(2), np.zeros(2))
    with pytest.raises(ValueError, match="a buffer of 1 items, where 2 are needed"):
        store.class_scores(np.zeros((2, room)), np.zeros(2), np.zeros(1))
    model, predictions = Perceptron(), []
    with pytest.raises(ValueError, match="a buffer of 1 items, where 2 are needed"):
        store.learn_rows_with([{"a": 1.0}] * 2, predictions, [True] * 2, array("b", [1]), model)
    assert not predictions


@BOTH
def test_what_needs_a_point_says_that_there_is_none(make):
    used = make(Linear())
    used.add({"a": 1.0}, 1.0)
    restored = type(used).restore(Linear(), None, used.state())
    for store in (make(Linear()), restored):
        for call in (
            store.score,
            store.error_bound,
            store.self_kernel,
            lambda store=store: store.write_kernels(np.zeros(16)),
            lambda store=store: store.class_scores(np.zeros((1, 16)), np.zeros(1), np.zeros(1)),
        ):
            with pytest.raises(RuntimeError, match="the store has no point"):
                call()


def test_a_hypothesis_of_a_shared_store_has_no_point_either():
    shared = SharedStore(Linear(), wide=True)
    supports = SharedSupports(shared, None)
    for call in (supports.score, supports.error_bound, supports.self_kernel):
        with pytest.raises(RuntimeError, match="the store has no point"):
            call()


@BOTH
def test_the_error_bound_is_that_of_the_score(make):
    store = make(Linear(), True)
    store.add({"a": 3.0}, 2.0)
    store.read({"a": 1.0})
    assert store.error_bound() == 2.0**-40 * 6.0  # without a score before
    store.scale_coefficients(-0.5)
    assert store.error_bound() == 2.0**-40 * 3.0
    store.set_coefficients(np.full(16, 4.0))
    assert store.error_bound() == 2.0**-40 * 12.0
    store.read({"a": 2.0})
    assert store.error_bound() == 2.0**-40 * 24.0


def test_rows_end():
    rows = Rows(np.eye(3)[1:2], 3)
    assert [dict(row) for row in rows] == [{0: 0.0, 1: 1.0, 2: 0.0}]
    for i in (1, -1):
        with pytest.raises(IndexError, match=f"row {i} of 1"):
            rows[i]


@BOTH
@pytest.mark.parametrize("other", [{"a": 2.0}, {"b": 5.0}, {"a": 1.0, "b": 1.0}, {}])
def test_an_example_is_added_that_is_not_the_point(make, other):
    store = make(Linear())
    store.add({"a": 1.0}, 1.0)
    store.read(other)
    slot = store.add({"a": 3.0, "c": 4.0}, 2.0)
    assert store.support_in_slot(slot) == {"a": 3.0, "c": 4.0}
    assert store.score_of({"a": 1.0, "b": 7.0}) == 1.0 + 2.0 * 3.0
    store.read(other)
    slot = store.add({"a": 3.0}, 1.0)  # no feature of it is new
    assert store.support_in_slot(slot) == {"a": 3.0}


@BOTH
@pytest.mark.parametrize("i", [1, -2])
def test_a_support_that_is_not_there_is_named(make, i):
    store = make(Linear())
    store.add({"a": 4.0}, 3.0)
    for use in (store.slot, store.evict):
        with pytest.raises(IndexError, match=f"support {i} of 1"):
            use(i)
    assert store.slots_by_age() == [0]


@BOTH
def test_the_nearest_support_may_be_opposite_and_is_never_the_support_itself(make):
    store = make(Linear())
    for x in ({"a": 4.0}, {"a": -2.0}, {"a": 1.0, "b": 1.0}):
        store.add(x, 3.0)
    assert store.nearest(0) == (1, -2.0)  # (-8)^2 / 4 = 16 is more than 4^2 / 2
    with pytest.raises(ValueError, match="support 0 cannot be merged into itself"):
        store.merge(0, 0, 1.0)
    assert [store.coefficient_in_slot(slot) for slot in range(3)] == [3.0, 3.0, 3.0]


@BOTH
@pytest.mark.parametrize("change", ["evict", "merge", "add", "undo", "refuse", None])
def test_a_point_whose_supports_have_changed_is_not_scored(make, change):
    """Its columns may be gone, and those of its new features are unknown."""
    store = make(Linear())
    x = {"a": 2.0, "new": 3.0}
    if change is not None:
        store.add({"a": 1.0}, 1.0)
        store.add({"b": 1.0}, 1.0)
        store.read(x)
        assert store.score() == 2.0
    if change == "evict":
        store.evict(0)
    elif change == "merge":
        store.merge(0, 1, 0.5)
    elif change == "add":
        store.add(x, 1.0)
        assert store.self_kernel() == 13.0  # known without the columns
    elif change == "undo":
        with pytest.raises(ZeroDivisionError):
            store.guard.update(Holder(store), lambda: store.evict(0) / 0)
    elif change == "refuse":
        with pytest.raises(FeatureError):
            store.read({"a": math.inf})
    if change is not None:
        for use in uses_of_the_point(store):
            with pytest.raises(RuntimeError, match="the store has no point: read an example"):
                use()
    store.read(x)
    scores = {"evict": 0.0, "merge": 0.0, "add": 15.0, "undo": 2.0, "refuse": 2.0, None: 0.0}
    assert store.score() == scores[change]


class Holder(Part):
    """A part with a store."""

    def __init__(self, store):
        self.supports = store


@BOTH
@pytest.mark.parametrize("slot", [-1, 1, 2, 16, 10**8])
def test_a_slot_without_a_support_is_refused(make, slot):
    store = make(Linear())
    for name in "abc":
        store.add({name: 1.0}, 1.0)
    store.evict(1)
    store.evict(1)
    before = store.state()
    for call in (
        lambda: store.coefficient_in_slot(slot),
        lambda: store.support_in_slot(slot),
        lambda: store.read_slot(slot),
        lambda: store.nearest(slot),
        lambda: store.nearest(0, array("i", [slot])),
        lambda: store.merge(slot, 0, 0.5),
        lambda: store.merge(0, slot, 0.5),
        lambda: store.evict_slot(slot),
    ):
        with pytest.raises(IndexError, match=f"no support is in slot {slot}"):
            call()
    assert store.state() == before
    votes = plain.prefix_votes if isinstance(store, plain.ColumnStore) else prefix_votes
    store.read({"a": 1.0})
    with pytest.raises(IndexError, match=f"no support is in slot {slot}"):
        votes(store, array("i", [slot]), array("d", [1.0]), array("d", [1.0, 1.0]), False)


@BOTH
def test_a_support_evicted_in_an_update_has_no_slot_until_it_is_undone(make):
    store = make(Polynomial(2, normalize=True))
    store.add({"a": 2.0, "b": 1.0}, 3.0)
    before = store.state()

    def change():
        store.evict(0)
        with pytest.raises(IndexError, match="no support is in slot 0"):
            store.coefficient_in_slot(0)
        raise KeyError

    with pytest.raises(KeyError):
        store.guard.update(Holder(store), change)
    assert store.state() == before
    assert store.coefficient_in_slot(0) == 3.0


@dataclass(frozen=True)
class Undefined:
    """A user's kernel that is NaN or infinite at norm 0."""

    value: float

    def __call__(self, dot, squared_norm_a, squared_norm_b):
        return dot + self.value if np.ndim(squared_norm_b) == 0 and squared_norm_b == 0.0 else dot


@BOTH
@pytest.mark.parametrize("kernel", [Cosine(), Undefined(math.nan), Undefined(math.inf)], ids=repr)
def test_an_example_without_a_kernel_value_is_not_added(make, kernel):
    store = make(kernel)
    store.add({"a": 2.0}, 1.0)
    before = store.state()
    with pytest.raises(FeatureError, match=r"the kernel .* has no finite value at this example"):
        store.add({}, 1.0)
    assert store.state() == before
    store.read({"a": 2.0})
    assert store.score() == pytest.approx(1.0 if kernel == Cosine() else 4.0)


@pytest.mark.usefixtures("tolerance")
@pytest.mark.parametrize("kernel", [Cosine(), Undefined(math.nan), Undefined(math.inf)], ids=repr)
def test_a_model_refuses_what_a_users_kernel_is_undefined_at(kernel):
    model = Perceptron(kernel=kernel)
    for x in ({}, {"a": 0.0}):
        with pytest.raises(FeatureError, match=r"has no finite value at this example: scale"):
            model.learn_one(x, True)
    assert (model.n_mistakes, model.n_updates, len(model._supports)) == (0, 0, 0)
    model.learn_one({"a": 2.0}, True)
    assert model.predict_one({"a": 3.0}) is True
    assert model.predict_one({"a": -3.0}) is False
