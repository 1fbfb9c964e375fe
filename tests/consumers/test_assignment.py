"""Which of a worker's partitions have started, and who of a group has them."""

import random
import uuid
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift.consumers.assignment import Assignment
from drift.consumers.gaps import first_offset
from drift.errors import ConsumerError

pytest.importorskip("kafka")

from kafka.coordinator.assignors.abstract import RebalanceProtocol

from drift.consumers.client.assignor import LeadAssignor  # after the check that there is a client

PLACES = [("t", 0), ("t", 1), ("t", 2)]


def assigned(n):
    """An assignment of the first `n` partitions, which have all started."""
    assignment = Assignment()
    assignment.assign(PLACES[:n])
    for place in PLACES[:n]:
        assignment.start(place)
    return assignment


def test_only_assigned_partitions_are_paused():
    assignment = assigned(1)
    assert assignment.hold(PLACES) == PLACES[:1]
    assert assignment.places == {("t", 0): False}
    assert (assignment.waiting(), assignment.started()) == ([("t", 0)], [])


def test_what_is_assigned_waits_until_it_is_started():
    assignment = assigned(2)
    assignment.assign(PLACES[2:])
    assert (assignment.started(), assignment.waiting()) == (PLACES[:2], PLACES[2:])
    assignment.start(PLACES[2])
    assert (assignment.started(), assignment.waiting()) == (PLACES, [])


def test_a_partition_that_is_lost_is_no_more_the_workers():
    assignment = assigned(2)
    assignment.revoke([("t", 0), ("t", 2)])
    assert assignment.places == {("t", 1): True}


def test_where_a_partition_starts(caplog):
    bounds = {"earliest": 3, "latest": 9}
    broker = SimpleNamespace(committed=lambda _: None, bound=lambda _, start: bounds[start])
    asked = broker, ("t", 0)
    assert first_offset(*asked, "earliest", "folder", added=False) == 3
    assert caplog.text == ""
    assert first_offset(*asked, "latest", "folder", added=False) == 9
    assert "t:0 starts at its end, 9 (latest): 6 messages before it are" in caplog.text
    for start in ("latest", None):
        assert first_offset(*asked, start, "folder", added=True) == 3
    with pytest.raises(ConsumerError, match="t:0 has no checkpoint: say where to start"):
        first_offset(*asked, None, "folder", added=False)
    broker.committed = lambda _: 7
    assert first_offset(*asked, None, "folder", added=True) == 3
    with pytest.raises(ConsumerError, match="t:0 has been learnt up to 7, but folder has no"):
        first_offset(*asked, "earliest", "folder", added=False)


# --- the lead -----------------------------------------------------------------------------------

CLUSTER = SimpleNamespace(partitions_for_topic={"f": {0, 1}, "l": {0, 1, 2}}.get)


class Member:
    """A worker of a group: what it tells the leader is as kafka-python has it."""

    def __init__(self, name, instance=None, partition=None, topics=("f", "l")):
        self.name, self.instance, self.topics = name, instance, topics
        self.assignor = LeadAssignor(partition)
        self.has = []

    def joined(self):
        metadata = self.assignor.metadata(set(self.topics))
        return SimpleNamespace(
            member_id=self.name, group_instance_id=self.instance, metadata=metadata
        )


def agree(members, generation, leader=None):
    """Have the members agree, with any of them as the leader; return who has the partitions."""
    leader = leader or random.Random(generation).choice(members)
    parts = leader.assignor.assign(CLUSTER, [one.joined() for one in members])
    for one in members:
        part = parts[one.name]
        one.assignor.on_assignment(part, generation)
        one.has = [tuple(place) for place in part.partitions()]
    [first] = [one for one in members if one.has]
    return first


MEMBERS = st.integers(0, 3)
ALL = [("f", 0), ("f", 1), ("l", 0), ("l", 1), ("l", 2)]


def test_one_member_has_all_partitions_of_both_topics():
    members = [Member(name) for name in "cab"]
    first = agree(members, 1)
    assert (first.name, sorted(first.has)) == ("a", ALL)


def test_a_standby_that_joins_does_not_take_the_lead_whatever_its_id():
    rng = random.Random(0)

    def member():
        return Member(f"drift-{uuid.UUID(int=rng.getrandbits(128))}")

    lead, standby, lower = Member("drift-8"), None, 0
    agree([lead], 1)
    for generation in range(2, 1002):
        lower += (joins := member()).name < lead.name
        members = [joins, lead] if standby is None else [standby, joins, lead]
        rng.shuffle(members)
        assert agree(members, generation) is lead
        standby = joins
    assert 300 < lower < 700  # half of them would have been the first by their id


def test_who_takes_over_keeps_the_lead_when_the_other_comes_back():
    one, other = Member("b"), Member("c")
    assert agree([one, other], 1) is one
    assert agree([other], 2) is other
    assert agree([Member("a"), other], 3) is other  # with a new id, as it was started anew
    assert agree([one, other], 4) is other  # and as it was frozen, which led in an older generation


@given(
    st.lists(
        st.tuples(st.sets(MEMBERS, min_size=1), st.sets(MEMBERS), st.randoms(use_true_random=False))
    )
)
def test_who_has_the_partitions_keeps_them_as_long_as_it_is_in_the_group(rounds):
    """Whoever joins, leads, was frozen, or never gets to know what it was given."""
    members = [Member(name) for name in "abcd"]
    owner = None
    for generation, (joined, frozen, draw) in enumerate(rounds, 1):
        group = [members[number] for number in joined]
        draw.shuffle(group)
        parts = group[0].assignor.assign(CLUSTER, [one.joined() for one in group])
        [first] = [one for one in group if parts[one.name].partitions()]
        assert sorted(map(tuple, parts[first.name].partitions())) == ALL
        if owner in group:
            assert first is owner
        for number in joined - frozen:
            members[number].assignor.on_assignment(parts[members[number].name], generation)
            if members[number] is first:
                owner = first


def test_members_keep_their_partitions_while_the_group_rebalances():
    assert LeadAssignor().supported_protocols() == [RebalanceProtocol.COOPERATIVE]


def test_of_static_members_the_first_by_name_starts():
    members = [Member("a", "second"), Member("b", "first")]
    assert agree(members, 1).instance == "first"
    assert agree([*members, Member("c")], 2).instance == "first"


def test_of_one_partition_it_is_that_of_both_topics():
    members = [Member(name, partition=1) for name in "ab"]
    assert agree(members, 1).has == [("f", 1), ("l", 1)]


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ({"topics": ["orders"]}, "orders"),
        ({"topics": ["l", "orders"]}, "l and orders"),
        ({"partition": 1}, "partition 1 of f and l"),
    ],
)
def test_a_member_that_is_to_read_something_else_says_so_and_changes_nothing(more, wanted, caplog):
    other = Member("b", **more)
    members = [other, Member("a"), Member("c")]
    for leader in members:  # which assigns
        caplog.clear()
        first = agree(members, 1, leader)
        assert (first.name, sorted(first.has)) == ("a", ALL)
        [warning] = caplog.messages
        assert f"the group reads f and l, this one is to read {wanted}: nothing is read" in warning


def test_members_that_are_to_read_the_same_warn_of_nothing(caplog):
    for generation in (1, 2):
        agree([Member("a"), Member("b", topics=["l", "f"])], generation)
    assert caplog.messages == []
