"""The states of a worker's partitions."""

from drift.consumers.assignment import Assignment, State

PLACES = [("t", 0), ("t", 1), ("t", 2)]


def given(n, *, single=False):
    """An assignment of the first `n` partitions, which have all begun."""
    assignment = Assignment("t", single=single)
    assignment.assign(PLACES[:n])
    for place in PLACES[:n]:
        assignment.begin(place)
        assignment.learners[assignment.key(place)] = object()
    return assignment


def test_what_the_worker_does_not_have_is_not_held():
    assignment = given(1)
    assert assignment.hold(PLACES) == PLACES[:1]
    assert assignment.states == {("t", 0): State.HELD}
    assert assignment.waiting() == {("t", 0): [("t", 0)]}


def test_a_model_is_asked_for_where_its_partition_has_begun():
    assignment = given(2)
    model = assignment.learners["t", 1]
    assert assignment.learner(("t", 1)) is model
    assignment.block(("t", 1))
    assert assignment.learner(("t", 1)) is None
    assert assignment.waiting() == {}  # it is there, and waits for features
    assignment.begin(("t", 1))
    assert assignment.learner(("t", 1)) is model
    assert assignment.learner(("t", 2)) is None


def test_a_model_that_is_dropped_leaves_its_partition_to_be_begun():
    assignment = given(2)
    assert assignment.drop(("t", 0)) == [("t", 0)]
    assert assignment.states == {("t", 0): State.HELD, ("t", 1): State.BEGUN}
    assert list(assignment.learners) == [("t", 1)]


def test_a_partition_that_is_lost_is_no_more_the_workers():
    assignment = given(2)
    assignment.lose([("t", 0), ("t", 2)])
    assert assignment.states == {("t", 1): State.BEGUN}
    assert list(assignment.learners) == [("t", 1)]


def test_a_single_model_goes_with_any_of_its_partitions():
    assignment = given(3, single=True)
    assignment.lose([("t", 1)])
    assert assignment.learners == {}
    assert assignment.states == dict.fromkeys([("t", 0), ("t", 2)], State.HELD)
    assert assignment.waiting() == {("t", None): [("t", 0), ("t", 2)]}
