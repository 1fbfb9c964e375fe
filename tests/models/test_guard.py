"""A guard restores a part's attributes after an update that fails, in both forms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
