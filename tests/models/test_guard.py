"""A guard restores a part's attributes after an update that fails, in both forms."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes

from drift.models import compiled
from drift.models._base import guard
from drift.models._base.guard import Part

if compiled:
    from drift.models._store import columns

needs_compiled = pytest.mark.skipif(not compiled, reason="the compiled extension is missing")

BOTH = pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: columns.Guard(), marks=needs_compiled, id="compiled"),  # noqa: PLW0108
        pytest.param(guard.Guard, id="plain"),
    ],
)


def fail(part, change):
    change(part)
    raise KeyboardInterrupt


def undone(one, part, change):
    """Have an update of a part change it and fail."""
    with pytest.raises(KeyboardInterrupt):
        one.update(part, fail, part, change)


NAMES = st.sampled_from("abcdef")


@BOTH
@given(
    before=st.dictionaries(NAMES, st.integers()),
    steps=st.lists(st.tuples(NAMES, st.none() | st.integers())),
)
def test_attributes_that_are_added_and_deleted_are_as_before(make, before, steps):
    part = Part()
    vars(part).update(before)

    def change(part):
        for name, value in steps:
            if value is not None:
                setattr(part, name, value)
            elif hasattr(part, name):
                delattr(part, name)

    undone(make(), part, change)
    assert vars(part) == before


class Replacing(Part):
    """A part with an array that only `save` restores."""

    _not_copied = frozenset({"array"})

    def __init__(self, array):
        self.array = array


@BOTH
@given(
    shape=array_shapes(max_dims=2),
    order=st.sampled_from("CF"),
    every=st.sampled_from([1, 2]),
    slots=st.lists(st.integers(-1, 9)),
)
def test_saved_arrays_and_slots_are_as_before(make, shape, order, every, slots):
    array = np.arange(float(np.prod(shape))).reshape(shape, order=order)
    before, one, part = array.copy(), make(), Replacing(array[..., ::every])
    n_slots = part.array.shape[-1]

    def change(part):
        for slot in slots:
            if slot < n_slots:
                one.save(part.array, slot)
                part.array[... if slot < 0 else (..., slot)] -= 1.5

    undone(one, part, change)
    np.testing.assert_array_equal(array, before)


@needs_compiled
def test_an_array_that_is_saved_is_not_saved_again():
    one, part = columns.Guard(), Replacing(np.zeros(9))
    references = []

    def change(part):
        for slot in (-1, 3, -1, 3, -1):
            one.save(part.array, slot)
            references.append(sys.getrefcount(part.array))  # one more for each that is saved

    undone(one, part, change)
    assert references == [references[0]] + [references[0] + 1] * 4


@BOTH
@pytest.mark.parametrize(
    ("array", "slot", "error", "message"),
    [
        (np.zeros((2, 2, 2)), -1, TypeError, "array of 3 dimensions and type float64"),
        (np.zeros(()), -1, TypeError, "array of 0 dimensions"),
        (np.array([[], None], dtype=object), -1, TypeError, "type object: it needs one or two"),
        (np.zeros((3, 2)), 2, IndexError, "has 2 slots, so none has number 2"),
    ],
)
def test_an_array_that_no_guard_restores_is_refused(make, array, slot, error, message):
    one, part = make(), Replacing(array)
    with pytest.raises(error, match=message):
        one.update(part, one.save, array, slot)


@BOTH
def test_a_field_may_have_the_name_of_numpys_type_of_objects(make):
    array = np.array([(1.0, 2)], dtype=[("O", float), ("P", int)])
    one, part = make(), Replacing(array)

    def change(_):
        one.save(array)
        array[0] = (3.0, 4)

    undone(one, part, change)
    assert array.tolist() == [(1.0, 2)]


@BOTH
def test_items_of_containers_are_as_before(make):
    part, inner = Part(), Part()
    inner.n = 0
    part.numbers, part.rows, part.parts = {1, 2}, {"a": [1], "b": [2]}, [inner]
    part.array = np.zeros((2, 2, 2))

    def change(part):
        part.numbers.remove(1)
        part.rows["a"] = [*part.rows["a"], 3]  # replaced, not changed
        del part.rows["b"]
        part.array[1] = 5.0
        part.parts.append(Part())
        inner.n = 7

    undone(make(), part, change)
    assert part.numbers == {1, 2}
    assert part.rows == {"a": [1], "b": [2]}
    assert not part.array.any()
    assert part.parts == [inner]
    assert inner.n == 0
