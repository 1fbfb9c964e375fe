"""The order of several logs, against a twin that sorts them from the words of the rules alone."""

import math
from concurrent.futures import Future
from itertools import accumulate, pairwise
from unittest.mock import Mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from drift.consumers.claim import ClaimedModel
from drift.consumers.options import WorkerOptions
from drift.consumers.order import Clock, Order, Runs, sort_key
from drift.consumers.records import Message, Position
from drift.consumers.relearning import in_order
from drift.errors import CheckpointError
from tests.consumers.twin_order import in_time, times

HOUR = 3_600_000
PLACES = [("f", 0), ("f", 1), ("l", 0), ("l", 1), ("l", 2)]
OPTIONS = WorkerOptions(topic="f", group="g", labels="l")


# --- logs and fetches ---------------------------------------------------------------------------


def log(place, stamps, gaps=()):
    """A log of these timestamps; gaps are where transactions have left their marks."""
    offset, made = 0, []
    for n, stamp in enumerate(stamps):
        offset += n in gaps
        made.append(Message(Position(*place, offset), None, b"", (), stamp))
        offset += 1
    return made


#: Small steps, hours more or less, and years.
STEPS = st.one_of(
    st.integers(0, 5_000), st.integers(-9_000, 0), st.sampled_from([HOUR - 1, HOUR, HOUR + 1])
)
JUMPS = st.sampled_from([2 * HOUR, -2 * HOUR, 300_000 * HOUR, -300_000 * HOUR])


@st.composite
def stamps(draw, max_size=12):
    """Timestamps that mostly grow; some are of wrong clocks, for one record or more."""
    now, made = draw(st.integers(0, 9_000)) + 400_000 * HOUR, []
    for _ in range(draw(st.integers(0, max_size))):
        step = draw(STEPS)
        wrong = draw(st.one_of(st.just(0), st.just(0), st.just(0), JUMPS))
        made.append(max(-1, now + step + wrong))  # -1 is none
        if draw(st.booleans()):  # else the next one is as if this had not been
            now = made[-1]
    return made


@st.composite
def logs(draw):
    made = {}
    for place in PLACES[: draw(st.integers(1, 5))]:
        made[place] = log(place, draw(stamps()), draw(st.sets(st.integers(0, 12), max_size=3)))
    return made


def started(places, **options):
    order = Order("l", **options)
    for place in places:
        order.start(place, Clock())
    return order


class Broker:
    """Logs that are fetched piece by piece; a step of a test is a second."""

    def __init__(self, logs):
        self.logs, self.at, self.now = logs, dict.fromkeys(logs, 0), 0
        self.answered = dict.fromkeys(logs, -math.inf)

    def fetch(self, order, place, count):
        """Have an answer that brings so many records."""
        begin = self.at[place]
        self.at[place] = min(begin + count, len(self.logs[place]))
        self.answered[place] = self.now
        order.add(place, self.logs[place][begin : self.at[place]], self.now)

    def ended_at(self, place):
        at_end = self.at[place] == len(self.logs[place])
        return self.answered[place] if at_end else -math.inf


def all_of(given_logs):
    """An order that has all records of these logs, and knows that there are no others."""
    order, broker = started(given_logs), Broker(given_logs)
    for place in given_logs:
        broker.fetch(order, place, 100)
    return [*order.take(broker.ended_at)]


# --- the order ----------------------------------------------------------------------------------


@given(logs(), st.data())
def test_logs_that_are_there_are_sorted_whatever_the_fetches(given_logs, data):
    order, broker = started(given_logs), Broker(given_logs)
    actual = [*order.take(broker.ended_at)]
    fetches = st.lists(st.tuples(st.sampled_from([*given_logs]), st.integers(0, 4)), max_size=40)
    for place, count in [*data.draw(fetches), *((place, 100) for place in [*given_logs] * 2)]:
        broker.now += 1
        broker.fetch(order, place, count)
        order.idle(1.0)
        actual += order.take(broker.ended_at)
    broker.now += 1
    for place in given_logs:  # the last answers: nothing is there that was not known
        broker.fetch(order, place, 1)
    actual += order.take(broker.ended_at)
    assert actual == in_time(given_logs)
    assert (order.forced, bool(order)) == (0, False)


class Waiting:
    """Who may be taken, by lists, from the words of the rules."""

    def __init__(self, places, max_idle):
        self.rest = {place: [] for place in places}  # (key, time of the fetch, message)
        self.held, self.max_idle, self.forced = None, max_idle, 0

    def step(self, broker, brought, seconds):
        """A poll of so many seconds: what it brings by partition; return who is taken."""
        if self.held is not None:
            self.held += seconds
        for place, rows in brought.items():
            self.rest[place] += rows
        taken = []
        while True:
            heads = [(rows[0], place) for place, rows in self.rest.items() if rows]
            if not heads:
                self.held = None
                return taken
            (_, read_at, message), first = min(heads)
            if any(not r and broker.ended_at(p) < read_at for p, r in self.rest.items()):
                self.held = self.held or 0.0
                if self.held < self.max_idle:
                    return taken
                self.forced += 1
            self.held = None
            taken.append(message)
            self.rest[first].pop(0)


@given(logs(), st.data())
def test_nobody_is_taken_while_a_partition_has_to_be_waited_for(given_logs, data):
    order, broker = started(given_logs, max_idle=1.0), Broker(given_logs)
    rows = {
        place: [(time, place[0] == "l", *place, n) for n, time in enumerate(times(values))]
        for place, values in ((p, [m.time for m in log]) for p, log in given_logs.items())
    }
    lists = Waiting(given_logs, 1.0)
    fetched = st.dictionaries(st.sampled_from([*given_logs]), st.integers(0, 3))
    polls = st.tuples(fetched, st.sampled_from([0.3, 0.6]))
    for fetches, seconds in data.draw(st.lists(polls, max_size=30)):
        broker.now += 1
        brought = {}
        for place, count in fetches.items():
            begin = broker.at[place]
            broker.fetch(order, place, count)
            brought[place] = [
                (rows[place][n], broker.now, given_logs[place][n])
                for n in range(begin, broker.at[place])
            ]
        order.idle(seconds)
        assert [*order.take(broker.ended_at)] == lists.step(broker, brought, seconds)
        assert (order.forced, order.held) == (lists.forced, lists.held or 0.0)


def never(_):
    return -math.inf


def test_a_partition_that_brings_nothing_is_waited_for_as_long_as_it_takes():
    order = started(PLACES[:3])
    order.add(PLACES[0], log(PLACES[0], [1, 2]), 1.0)
    order.add(PLACES[2], log(PLACES[2], [3]), 1.0)
    order.idle(9.0)  # nobody was held back yet
    assert [*order.take(never)] == []
    assert (order.awaited, order.held) == ({PLACES[1]}, 0.0)
    for _ in range(1000):
        order.idle(60.0)
        assert [*order.take(never)] == []
    assert (order.awaited, order.held, order.forced) == ({PLACES[1]}, 60_000.0, 0)
    order.add(PLACES[1], log(PLACES[1], [1]), 2.0)
    assert [message.position[:2] for message in order.take(never)] == PLACES[:2]
    assert (order.awaited, order.held, order.forced) == ({PLACES[1]}, 0.0, 0)


def test_after_max_idle_one_record_is_taken_and_the_next_one_waits_again():
    order = started(PLACES[:2], max_idle=0.5)
    order.add(PLACES[0], log(PLACES[0], [1, 2, 3]), 1.0)
    for seconds, taken in ((0, 0), (0.25, 0), (0.125, 0), (0.125, 1), (0, 0), (0.375, 0), (5, 1)):
        order.idle(seconds)
        assert len([*order.take(never)]) == taken
    assert order.forced == 2
    order.idle(0.25)
    order.add(PLACES[1], log(PLACES[1], [2, 4]), 3.0)
    assert [message.time for message in order.take(never)] == [2, 3]
    assert (order.forced, order.held) == (2, 0.0)


def test_an_operator_lets_a_partition_go_that_never_comes_back():
    order = started(PLACES[:2], max_idle=0)
    order.add(PLACES[0], log(PLACES[0], [1, 2, 3]), 1.0)
    assert [message.time for message in order.take(never)] == [1, 2, 3]
    assert order.forced == 3


def test_an_end_holds_nobody_back_that_was_fetched_no_later():
    order = started(PLACES[:3])
    order.add(PLACES[0], log(PLACES[0], [1]), 1.0)
    order.add(PLACES[0], log(PLACES[0], [1, 2])[1:], 2.0)
    ends = {PLACES[0]: 2.0, PLACES[1]: 1.0, PLACES[2]: 7.0}
    assert [message.time for message in order.take(ends.get)] == [1]
    assert [*order.take(ends.get)] == []
    assert order.awaited == {PLACES[1]}
    ends[PLACES[1]] = 2.0
    assert [message.time for message in order.take(ends.get)] == [2]
    assert (order.forced, order.awaited) == (0, set())


def test_who_stops_amid_the_records_finds_the_others_there():
    order = started(PLACES[:2])
    order.add(PLACES[0], log(PLACES[0], [1, 3, 5]), 0.0)
    order.add(PLACES[1], log(PLACES[1], [2, 4]), 0.0)
    actual = []
    while order:
        for message in order.take(lambda place: 1.0):
            actual.append(message.time)
            break
    assert actual == [1, 2, 3, 4, 5]


def test_at_one_time_features_come_before_labels_and_partitions_by_their_number():
    given_logs = {place: log(place, [7, 7]) for place in reversed(PLACES)}
    actual = [message.position[:2] for message in all_of(given_logs)]
    assert actual == [place for place in PLACES for _ in range(2)]


@pytest.mark.parametrize("topic", ["f", "l"])
@pytest.mark.parametrize("years", [31, -31])
def test_a_record_of_a_wrong_clock_costs_itself_alone(topic, years):
    odd = 400_000 * HOUR + years * 8766 * HOUR
    clean = {place: [400_000 * HOUR + 1000 * n for n in range(20)] for place in PLACES}
    spoilt = {place: list(stamps) for place, stamps in clean.items()}
    spoilt[topic, 1][10] = odd
    orders = []
    for stamps in (clean, spoilt):
        given_logs = {place: log(place, values) for place, values in stamps.items()}
        orders.append([message.position for message in all_of(given_logs)])
    without = [[one for one in order if one != (topic, 1, 10)] for order in orders]
    assert without[0] == without[1]
    # It has the time of the one before it, and comes right after that.
    assert orders[1].index((topic, 1, 10)) == orders[1].index((topic, 1, 9)) + 1


def test_two_records_in_a_row_move_the_time():
    far, farther = 9 * HOUR, 99 * HOUR
    assert times([0, far, 1, far, far + 1, far + 2]) == [0, 0, 1, 1, far, far + 2]
    for given_stamps, expected in [
        ([0, far, 1, far, far + 1, far + 2], [0, 0, 1, 1, far, far + 2]),
        ([0, farther, far], [0, 0, far]),
        ([0, far, farther], [0, 0, far]),  # as far as both say so
        ([farther, 0, far], [farther, farther, far]),
        ([farther, far, 0], [farther, farther, far]),
        ([far, 0, farther, 0], [far, far, far, far]),  # one ahead and one behind agree on nothing
        ([0, HOUR, 2 * HOUR + 1], [0, HOUR, HOUR]),
        ([HOUR, 0, -1], [HOUR, HOUR, HOUR]),
        ([-1, far, -1, -1, far + 1], [-1, far, far, far, far + 1]),  # some have no timestamp
    ]:
        assert times(given_stamps) == expected
        clocks = accumulate(given_stamps, lambda c, stamp: c.after(stamp, HOUR), initial=Clock())
        assert [clock.time for clock in clocks][1:] == expected


@given(stamps(30), st.integers(0, 30))
@example([-1, -1, 5], 1)
def test_a_clock_continues_from_where_it_was(given_stamps, at):
    clock, actual = Clock(), []
    for n, stamp in enumerate(given_stamps):
        if n == at:
            clock = Clock(*[int(one) if one is not None else None for one in clock])
        clock = clock.after(stamp, HOUR)
        actual.append(clock.time)
    assert actual == times(given_stamps)


def test_a_partition_is_ahead_by_the_bytes_of_values_keys_and_headers(monkeypatch):
    monkeypatch.setattr("drift.consumers.order._AHEAD_BYTES", 30)
    monkeypatch.setattr("drift.consumers.order._AGAIN_BYTES", 10)
    order, place = Order(None, 3600, math.inf), ("f", 0)
    order.start(place, Clock())
    for n, (ahead, near) in enumerate(
        [(False, True), (False, False), (False, False), (True, False)]
    ):
        message = Message(Position("f", 0, n), b"ky", b"val", [("name", b"1")], 5)  # 10 bytes
        order.add(place, [message], 0.0)
        assert (order.is_ahead(place), order.is_near(place)) == (ahead, near)


# --- runs ---------------------------------------------------------------------------------------


@given(logs(), st.data())
def test_the_runs_and_the_logs_give_back_any_order(given_logs, data):
    """That of forced steps and of logs that grow, too; in several checkpoints' worth of runs."""
    order, broker = started(given_logs, max_idle=0.5), Broker(given_logs)
    clocks, runs, all_runs, actual = {}, Runs(), [], []
    steps = st.tuples(
        st.sampled_from([*given_logs]), st.integers(0, 3), st.booleans(), st.booleans()
    )
    for place, count, all_at_end, save in data.draw(st.lists(steps, max_size=40)):
        broker.fetch(order, place, count)
        order.idle(0.2)
        for message in order.take((lambda _: 1.0) if all_at_end else never):
            where = message.position[:2]
            clocks[where] = clocks.get(where, Clock()).after(message.time, HOUR)
            runs.note(sort_key(clocks[where].time, where, "l"), where, message.position.offset)
            actual.append(message)
        if save:
            all_runs, runs = all_runs + runs.all(), Runs()
    assert list(in_order(given_logs, all_runs + runs.all(), OPTIONS)) == actual


@given(logs())
def test_what_is_in_order_is_one_run_unless_a_time_falls_back(given_logs):
    runs, clocks = Runs(), {}
    for message in in_time(given_logs):
        where = message.position[:2]
        clocks[where] = clocks.get(where, Clock()).after(message.time, HOUR)
        runs.note(sort_key(clocks[where].time, where, "l"), where, message.position.offset)
    falls = 0
    for own in given_logs.values():
        actual = times([message.time for message in own])
        falls += sum(after < before for before, after in pairwise(actual))
    assert len(runs.all()) <= 1 + falls
    assert list(in_order(given_logs, runs.all(), OPTIONS)) == in_time(given_logs)


def test_runs_of_a_checkpoint_that_failed_come_before_those_since():
    first, since = Runs(), Runs()
    for runs, stamps in ((first, (5, 3, 4)), (since, (7, 6))):
        for offset, stamp in enumerate(stamps, 3 * (runs is since)):
            runs.note(sort_key(stamp, ("f", 0), None), ("f", 0), offset)
    first.skips[Position("f", 0, 1)] = since.skips[Position("f", 0, 4)] = "died"
    both = first + since
    assert both.all().skips == {Position("f", 0, 1): "died", Position("f", 0, 4): "died"}
    assert both.all() == [{("f", 0): 1}, {("f", 0): 3}, {("f", 0): 4}, {("f", 0): 5}]
    both.note(sort_key(6, ("f", 0), None), ("f", 0), 5)
    assert both.all()[3:] == [{("f", 0): 6}]


def test_what_a_checkpoint_that_failed_was_to_have_is_in_the_next_one():
    learner = Mock(options=OPTIONS, runs=Runs(), since_checkpoint=3)
    written = Future()
    claim = ClaimedModel(learner, None, None, None)
    learner.runs.note(sort_key(5, ("f", 0), None), ("f", 0), 2)
    claim.begin_saving(Mock(), Mock(submit=lambda _: written))
    assert (learner.since_checkpoint, learner.runs.all()) == (0, [])
    learner.runs.note(sort_key(4, ("f", 0), None), ("f", 0), 3)
    learner.since_checkpoint = 1
    written.set_exception(CheckpointError("the disk is full"))
    with pytest.raises(CheckpointError):
        claim.end_saving()
    assert (learner.since_checkpoint, claim.saving) == (4, None)
    assert learner.runs.all() == [{("f", 0): 3}, {("f", 0): 4}]
