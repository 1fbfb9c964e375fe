"""The states of a worker's partitions."""

from types import SimpleNamespace

import pytest

from drift.consumers.assignment import Assignment, State, first_offset
from drift.errors import ConsumerError

PLACES = [("t", 0), ("t", 1), ("t", 2)]


def given(n):
    """An assignment of the first `n` partitions, which have all begun."""
    assignment = Assignment()
    assignment.assign(PLACES[:n])
    for place in PLACES[:n]:
        assignment.begin(place)
    return assignment


def test_what_the_worker_does_not_have_is_not_held():
    assignment = given(1)
    assert assignment.hold(PLACES) == PLACES[:1]
    assert assignment.states == {("t", 0): State.HELD}
    assert assignment.waiting() == [("t", 0)]


def test_what_has_begun_waits_for_nothing():
    assignment = given(2)
    assert (assignment.begun(), assignment.waiting()) == (PLACES[:2], [])
    assignment.assign([("t", 2)])
    assert (assignment.begun(), assignment.waiting()) == (PLACES[:2], [("t", 2)])


def test_a_partition_that_is_lost_is_no_more_the_workers():
    assignment = given(2)
    assignment.lose([("t", 0), ("t", 2)])
    assert assignment.states == {("t", 1): State.BEGUN}


def test_where_a_partition_begins():
    broker = SimpleNamespace(
        committed=lambda place: None, bound=lambda place, start: {"earliest": 3, "latest": 9}[start]
    )
    given = broker, ("t", 0)
    assert first_offset(*given, "latest", "folder", added=False) == 9
    assert first_offset(*given, "earliest", "folder", added=False) == 3
    for start in ("latest", None):
        assert first_offset(*given, start, "folder", added=True) == 3
    with pytest.raises(ConsumerError, match="t:0 has no checkpoint: say where to start"):
        first_offset(*given, None, "folder", added=False)
    broker.committed = lambda place: 7
    assert first_offset(*given, None, "folder", added=True) == 3
    with pytest.raises(ConsumerError, match="t:0 has been learnt up to 7, but folder has no"):
        first_offset(*given, "earliest", "folder", added=False)
