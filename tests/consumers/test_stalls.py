"""Catch-ups on a broker that stalls, its clock simulated, against a plain merge by time."""

import json
from itertools import count
from random import Random
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("kafka")

from kafka import TopicPartition

from drift.consumers import order
from drift.consumers.client import consumer, workarounds
from drift.consumers.fed import FedLearner
from drift.consumers.json_codec import JsonCodec
from drift.consumers.late import learner_of
from drift.consumers.options import WorkerOptions
from drift.consumers.records import Message, Position
from drift.consumers.relearning import relearn
from drift.models import LBP

OPTIONS = WorkerOptions(topic="f", group="g", labels="l", timestamps="create", max_age=1e9)
PLACES = [("f", 0), ("f", 1), ("f", 2), ("l", 0), ("l", 1)]
POLL = 0.05


# --- logs of transactions ------------------------------------------------------------------------


def logs(draw, n):
    """Logs of entries (message, transaction); no message at a mark, no transaction at a plain one.

    Some transactions are aborted: those of odd numbers.
    """
    made = {place: [] for place in PLACES}
    numbers, opened, events = count(), {}, []
    for t in range(1, n + 1):
        x = {"a": draw.gauss(0, 1), "b": draw.gauss(0, 1)}
        label = x["a"] > (x["b"] if t < n / 2 else -x["b"])
        events.append((1000 * t, "f", {"id": t, "features": x}))
        if draw.random() < 0.95:
            events.append((1000 * t + draw.randrange(60_000), "l", {"id": t, "label": label}))
    for time, topic, body in sorted(events, key=lambda event: event[:2]):
        place = topic, draw.randrange(3 if topic == "f" else 2)
        log = made[place]
        if draw.random() < 0.1 and place in opened:
            log.append((None, opened.pop(place)))
        if draw.random() < 0.1 and place not in opened:
            opened[place] = next(numbers)
        transaction = opened.get(place)
        if transaction is not None and transaction % 2:
            log.append((message(place, len(log), time, body), transaction))
            transaction = None  # sent again by another producer, amid it
        log.append((message(place, len(log), time, body), transaction))
    for place, transaction in opened.items():
        made[place].append((None, transaction))
    return made


def message(place, offset, time, body):
    return Message(Position(*place, offset), None, json.dumps(body).encode(), (), time)


def committed(log):
    return [one for one, number in log if one is not None and not (number or 0) % 2]


def merged(logs):
    """A plain merge by time and what it teaches a model: the times of these logs never fall."""
    rows = [
        (one.time, topic == "l", partition, one.position.offset, one.value)
        for (topic, partition), log in logs.items()
        for one in committed(log)
    ]
    model, waiting = LBP(budget=9), {}
    for _, is_label, *_, value in sorted(rows):
        body = json.loads(value)
        if not is_label:
            waiting[body["id"]] = body["features"]
        elif body["id"] in waiting:
            model.learn_one(waiting.pop(body["id"]), body["label"])
    return model


# --- a broker that stalls ------------------------------------------------------------------------


class Stalling(consumer.GroupConsumer):
    """Answers fetches of these logs as Kafka does; a partition that has not changed is left out.

    What is behind an open transaction is not sent. `stalled` has until when partitions, or None for
    all, get no answer.
    """

    def __init__(self, logs, draw):
        self.logs, self.draw = logs, draw
        self.now, self.stalled, self.open = 0.0, {}, {}
        self.positions, self.paused, self.told = {}, set(), {}
        self.told_wrong = {}  # an error, or a quota that is used up
        fetcher = SimpleNamespace(
            config={"isolation_level": "read_committed"}, _handle_fetch_response=lambda *_: None
        )
        self.answered, fetches = workarounds._note_answers(fetcher)
        self.answer = fetcher._handle_fetch_response
        self.consumer = SimpleNamespace(
            drift_fetches=fetches,
            _subscription=SimpleNamespace(
                is_assigned=self.positions.__contains__,
                position=lambda place: SimpleNamespace(
                    offset=self.positions[place], leader_epoch=-1
                ),
            ),
        )

    def start(self, place, offset, leader_epoch=-1):
        self.positions[TopicPartition(*place)] = offset
        self.paused.discard(place)
        self.told.pop(place, None)  # it enters the session anew

    def pause(self, place):
        self.paused.add(place)

    def stable(self, place):
        """Where the first open transaction begins, or the log ends."""
        log, transaction = self.logs[place], self.open.get(place)
        if transaction is None:
            return len(log)
        return next(n for n, (_, number) in enumerate(log) if number == transaction)

    def poll(self):
        """A poll of 50 ms, in which a fetch is answered, unless the broker stalls."""
        self.now += POLL
        if self.now < self.stalled.get(None, 0.0):
            return []
        offsets = {
            place: at
            for place, at in self.positions.items()
            if place not in self.paused and self.now >= self.stalled.get(place, 0.0)
        }
        partitions, batches = [], []
        for place, at in offsets.items():
            end = min(self.stable(place), at + self.draw.choice([0, 0, 3, 50]))
            last, size = self.stable(place), len(self.logs[place])
            if end > at or self.told.get(place) != size:
                self.told[place] = size
                partitions.append((place, last, size))
                batches.append((place, at, end))
        responses = [
            SimpleNamespace(
                topic=topic,
                partitions=[
                    SimpleNamespace(
                        partition_index=n,
                        last_stable_offset=last,
                        high_watermark=size,
                        error_code=0,
                    )
                ],
            )
            for (topic, n), last, size in partitions
        ]
        response = {"error_code": 0, "throttle_time_ms": 0, "responses": responses}
        response = SimpleNamespace(**response | self.told_wrong)
        self.answer(0, offsets, self.now, response)
        read = []
        for place, at, end in batches:
            self.positions[place] = end
            self.consumer.drift_fetches.read[place] = self.answered[place]
            if found := committed(self.logs[place][at:end]):
                read.append((tuple(place), found))
        return read


class Simulation:
    """A learner that is fed by a broker that stalls, as a worker feeds it."""

    def __init__(self, logs, draw):
        self.broker = Stalling(logs, draw)
        self.learner = learner_of(LBP(budget=9), JsonCodec(), OPTIONS)
        self.learner.start(dict.fromkeys(PLACES, 0))
        self.fed = FedLearner(self.learner, self.broker)
        for place in PLACES:
            self.fed.start(place)

    def __enter__(self):
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(workarounds, "monotonic", lambda: self.broker.now)
        return self

    def __exit__(self, *_):
        self._patch.undo()

    def step(self):
        self.fed.read(self.broker.poll(), POLL)
        for message in self.fed.in_turn():
            self.learner.take(message)
        self.fed.resume()

    def run(self):
        """Step until all that may be read is learnt."""
        for _ in range(20_000):
            self.step()
            if self.learner.offsets == {place: self.broker.stable(place) for place in PLACES}:
                return
        raise AssertionError(self.learner.offsets)


@pytest.fixture(scope="module", autouse=True)
def _few():
    """Few records are buffered, so that partitions pause."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order, "_AHEAD", 40)
        patch.setattr(order, "_AGAIN", 10)
        yield


#: Who stalls, the steps before it does, and the seconds for which it does.
STALLS = st.lists(
    st.tuples(st.sampled_from([None, *PLACES]), st.integers(1, 15), st.floats(0, 10)), max_size=6
)


@given(st.integers(0, 1 << 30), STALLS)
def test_a_catch_up_gives_the_bytes_of_a_plain_merge_however_the_broker_stalls(seed, stalls):
    made = logs(Random(seed), 150)
    with Simulation(made, Random(seed)) as one:
        for who, steps, seconds in stalls:
            for _ in range(steps):
                one.step()
            one.broker.stalled[who] = one.broker.now + seconds
        one.run()
    assert one.learner.model.to_bytes() == merged(made).to_bytes()
    assert one.learner.join.counts["orphan"] == one.fed.order.forced == 0
    assert len(one.learner.runs.all()) == 1


@given(st.integers(0, 1 << 30), st.data())
def test_an_open_transaction_holds_back_its_own_partition_alone(seed, data):
    made = logs(Random(seed), 80)
    numbers = {
        place: sorted({number for _, number in log if number is not None})
        for place, log in made.items()
    }
    place = data.draw(st.sampled_from([p for p, found in numbers.items() if found] or PLACES[:1]))
    with Simulation(made, Random(seed)) as one:
        one.broker.open[place] = next(iter(numbers[place]), None)
        begin = one.broker.stable(place)
        one.run()  # all others to their ends, without a wait
        assert one.learner.offsets[place] == begin
        assert one.fed.order.held == one.fed.order.forced == 0
        del one.broker.open[place]
        one.run()
    again, _ = relearn(
        LBP(budget=9),
        {p: committed(log) for p, log in made.items()},
        one.learner.runs.all(),
        OPTIONS,
    )
    assert again.model.to_bytes() == one.learner.model.to_bytes()
    assert again.offsets == {p: committed(log)[-1].position.offset + 1 for p, log in made.items()}


def test_who_stalls_is_named_after_ten_seconds_of_waiting_and_once(caplog):
    with Simulation(logs(Random(7), 150), Random(7)) as one:
        for _ in range(3):
            one.step()
        one.broker.stalled["l", 1] = one.broker.now + 60
        while one.fed.trouble is None:
            assert not caplog.records
            one.step()
        assert one.fed.order.awaited == {("l", 1)}
        assert one.fed.order.held == pytest.approx(10, abs=POLL)
        at, end = one.broker.positions["l", 1], len(one.broker.logs["l", 1])
        assert one.fed.trouble == f"waiting for l:1 at offset {at} of {end}"
        one.run()
    [line] = caplog.messages
    assert line.startswith(f"waiting for l:1 at offset {at} of {end}: nothing is learnt meanwhile")
    assert one.fed.trouble is None


@pytest.mark.parametrize("told", [{"error_code": 71}, {"throttle_time_ms": 5}])
def test_an_answer_that_tells_nothing_is_no_end(told):
    with Simulation({place: [] for place in PLACES}, Random(0)) as one:
        one.step()
        before = one.broker.now
        assert {one.broker.ended_at(place) for place in PLACES} == {before}
        one.broker.told_wrong = told
        one.step()
        assert {one.broker.ended_at(place) for place in PLACES} == {before}
