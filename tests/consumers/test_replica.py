"""A replica has its worker's model, in whatever order records come here and there."""

import copy
import json
import math
import pickle
import random
import re
from time import monotonic
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import preprocessing

from drift._late import final_step
from drift.consumers import CheckpointFolder, WorkerOptions
from drift.consumers.checkpoints import join_state
from drift.consumers.checkpoints.adoption import skip
from drift.consumers.checkpoints.file_format import id_of
from drift.consumers.checkpoints.files import files_in
from drift.consumers.checkpoints.promotion import promote
from drift.consumers.codec import Codec
from drift.consumers.json_codec import JsonCodec
from drift.consumers.late import LateLearner
from drift.consumers.learner import Learner
from drift.consumers.metrics import Metrics
from drift.consumers.order import Clock, Order, Runs, sort_key
from drift.consumers.records import Gap, Message, Position
from drift.consumers.shadow import Shadow
from drift.errors import (
    CheckpointError,
    ConfigurationError,
    ParameterError,
    UnavailableError,
)
from drift.models import LBP, MIRA, Threshold, Tracker
from drift.models._state.codec import encode
from tests.consumers.late_logs import JOIN, logs, messages
from tests.consumers.stepping import close, learner_of, until

pytest.importorskip("kafka")

from drift.consumers import course as course_module
from drift.consumers import replica as module
from drift.consumers.course import Taken
from drift.consumers.replica import Replica

KEY = ("f", None)
LATE = {"labels": "l", "timestamps": "create"} | JOIN


class Source:
    """The logs as a consumer has them: as many messages a poll as `few` says, up to `ends`."""

    def __init__(self, given_logs, few=lambda: 100):
        self.logs, self.few = given_logs, few
        self.ends = {place: len(log) for place, log in given_logs.items()}
        self.first = 0
        self.late = set()  # partitions that bring nothing, as behind a broker that is away
        self.now = 1.0
        self.asked = 0  # for what was read before
        self.is_away = False  # for that
        self.ids = {"topic_id": "7"}
        self.positions, self.read, self.paused = {}, {}, set()

    def poll(self, seconds):
        if any(offset < self.first for offset in self.positions.values()):
            raise Gap({p: o for p, o in self.positions.items() if o < self.first})
        self.now += 1
        for place, position in self.positions.items():
            if place in self.paused | self.late:
                continue
            result = self.logs[place][position : min(position + self.few(), self.ends[place])]
            self.read[place] = self.now
            self.positions[place] += len(result)
            if result:
                yield place, result

    def read_at(self, place):
        return self.read.get(place, -math.inf)

    def ended_at(self, place):
        return self.read_at(place) if self.positions[place] == self.ends[place] else -math.inf

    def position(self, place):
        return self.positions[place], -1

    def end(self, place):
        return self.ends[place]

    def assign(self, places):
        self.positions = dict.fromkeys(places, 0)
        self.read, self.paused = {}, set()

    def start(self, place, offset, leader_epoch=-1):
        self.positions[place] = offset
        self.paused.discard(place)

    def pause(self, place):
        self.paused.add(place)

    def reread(self, place, offset):
        self.asked += 1
        assert self.asked < 1000, "nobody else gets a turn"
        result = [] if self.is_away else self.logs[place][offset : offset + 5]
        return result, offset + len(result)

    def bound(self, place, start):
        return self.first if start == "earliest" else len(self.logs[place])

    def lacks(self, place):
        return place not in self.logs

    def identity(self):
        return self.ids

    def knows_topics(self):
        return True

    def close(self):
        self.positions = None


class Worker:
    """What a worker does, without Kafka: takes messages in an order, and writes checkpoints."""

    def __init__(self, folder, model, options, learnt_from=None):
        self.folder, self.options = folder, options
        kind = LateLearner if options.labels else Learner
        self.learner = kind(model, JsonCodec(), Metrics(*KEY), options)
        self.epoch, checkpoint = folder.claim(KEY)
        if checkpoint is not None:
            self.learner.restore(checkpoint)
            self.learner.read_again(learnt_from, folder.path)

    def take(self, taken):
        for message in taken:
            self.learner.take(message)

    def save(self, *, previous=None):
        one = self.learner
        one.epoch, one.identity = self.epoch, {"topic_id": "7", "group": "g"}
        given = {"join": one.join_state(), "runs": one.runs.all(), "previous": one.checkpoint}
        written = self.folder.prepare(KEY, one.snapshot(), **given)()
        one.checkpoint, one.runs = written.id, Runs()
        return written.id


@pytest.fixture(autouse=True)
def no_waits(monkeypatch):
    monkeypatch.setattr(module, "_EVERY", 0.0)
    monkeypatch.setattr(module, "_APART", 0.0)


def worker_options(**more):
    return WorkerOptions(topic="f", group="g", predictions="out", dead_letters="dead", **more)


def replica(folder, source, options, **more):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LoneConsumer", lambda *_, **__: source)
        return Replica(folder, {}, options, **more)


def plain_logs(n=40, partitions=2):
    """Labelled messages, whose times alternate between the partitions."""
    rng = random.Random(0)
    made = {}
    for p in range(partitions):
        for i in range(n):
            x = {name: rng.gauss(0, 1) for name in "abc"}
            value = json.dumps({"features": x, "label": sum(x.values()) > 0}).encode()
            at = Position("f", p, i)
            made.setdefault(("f", p), []).append(Message(at, None, value, (), 100 * i + p))
    return made


def in_time(given_logs):
    """All messages in the order of a catch-up."""
    order = Order("l", 3600, math.inf)
    for place in given_logs:
        order.start(place, Clock())
    for place, log in given_logs.items():
        order.add(place, log, 0.0)
    return list(order.take(lambda _: 1.0))


def same(one, worker):
    """Whether a replica answers by the worker's model, to the last bit."""
    served = one._serving.learner
    assert served.offsets == worker.learner.offsets
    return encode(served.model) == encode(worker.learner.model)


def settle(one):
    """Have a replica look and read until nothing more comes."""
    for _ in range(100):
        before = one.version
        one.step(0)
        source = one._consumer
        is_read = all(source.positions[p] == source.ends[p] for p in source.positions)
        is_idle = one.version == before and not (one._course and one._course.order)
        if is_read and is_idle and one._starting is None and one._serving is one._course:
            return
    raise AssertionError(one.version)


# --- the same model ------------------------------------------------------------------------------


@given(
    st.integers(0, 10**6), st.booleans(), st.sampled_from([0, 4 << 20]), st.sampled_from([0, 60])
)
def test_whatever_comes_when_a_replica_has_the_model_of_the_newest_checkpoint(
    tmp_path_factory, seed, by_time, stored, patience
):
    rng = random.Random(seed)
    given_logs = messages(logs(30, seed))
    options = worker_options(**LATE)
    folder = CheckpointFolder(tmp_path_factory.mktemp("c"), options.settings())
    source = Source(given_logs, lambda: rng.randrange(6))
    source.ends = dict.fromkeys(given_logs, 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join_state, "STORED", stored)
        patch.setattr(module, "_PATIENCE", patience)
        worker = Worker(folder, Tracker(6, late=True), options)
        worker.learner.start(dict.fromkeys(given_logs, 0))
        worker.save()
        taken = in_time(given_logs)
        if not by_time:
            sizes = {place: iter(log) for place, log in given_logs.items()}
            places = [m.position[:2] for m in taken]
            rng.shuffle(places)
            taken = [next(sizes[place]) for place in places]
        one = replica(folder, source, options)
        for message in taken:
            place, offset = message.position[:2], message.position.offset
            source.ends[place] = max(source.ends[place], offset + 1)
            worker.take([message])
            if rng.random() < 0.1:
                worker.save()
            if rng.random() < 0.05:  # it is killed, and another one takes over
                worker = Worker(folder, Tracker(6, late=True), options, source)
                worker.take(m for m in taken[: taken.index(message) + 1])
            if rng.random() < 0.5:
                one.fetch(0)
                one.learn(rng.choice([0, math.inf]))
            if one.version["checkpoint"]:
                for _ in range(rng.randrange(3)):
                    one.answer({"w1": rng.choice([1.0, 2.0]), "w3": 1.0})
        worker.save()
        settle(one)
    assert one.version["checkpoint"] == worker.learner.checkpoint
    assert same(one, worker)
    assert one.staleness < math.inf
    assert one.differs is None


def start_replica(tmp_path, given_logs=None, model=None, **more):
    """A worker with a first checkpoint, and a replica of it."""
    given_logs = given_logs or plain_logs()
    options = worker_options(**more)
    late = options.settings() if options.labels else {}
    folder = CheckpointFolder(tmp_path, {"codec": "JsonCodec", **late})
    worker = Worker(folder, model or LBP(9), options)
    worker.learner.start(dict.fromkeys(given_logs, 0))
    worker.save()
    source = Source(given_logs)
    return worker, source, replica(folder, source, options)


def test_where_the_order_was_the_same_nothing_is_learnt_again(tmp_path):
    worker, _, one = start_replica(tmp_path)
    taken = in_time(plain_logs())
    settle(one)
    for part in (taken[:30], taken[30:50], taken[50:]):
        worker.take(part)
        worker.save()
        one.step(0)
        assert one.version["checkpoint"] == worker.learner.checkpoint
        # What a checkpoint has need not be remembered.
        assert len(one._course._taken._offsets) == sum(one._course.learner.offsets.values()) - len(
            taken[: sum(worker.learner.offsets.values())]
        )
    assert one.starts == 1
    assert same(one, worker)


def test_a_replica_does_not_keep_the_runs_that_its_worker_saves(tmp_path):
    worker, source, one = start_replica(tmp_path)
    source.ends = dict.fromkeys(source.ends, 0)
    for i in range(20):  # the earlier of two comes later
        for place in (("f", 1), ("f", 0)):
            source.ends[place] = i + 1
            settle(one)
            worker.take([source.logs[place][i]])
    assert len(worker.learner.runs.all()) > 10
    assert len(one._course.learner.runs.all()) == 1
    worker.save()
    settle(one)
    assert (one.starts, one.version["checkpoint"]) == (1, "1-2")
    assert same(one, worker)


def test_a_replica_that_reads_messages_otherwise_than_its_worker_says_so(tmp_path, caplog):
    """Though its codec has the class and the settings of the worker's."""
    worker, source, one = start_replica(tmp_path)
    decode, taken = one.codec.decode, in_time(plain_logs())
    one.codec.decode = lambda *of: decode(*of)._replace(features={"a": 1.0})
    for upto in (15, 25):
        source.ends = dict.fromkeys(source.ends, upto)
        settle(one)
        assert (one.differs is None) == (upto == 15)
        worker.take(taken[: 2 * upto])
        worker.save()
        settle(one)  # from that checkpoint
        assert "something else than its worker of the messages up to checkpoint 1-2" in one.differs
        assert same(one, worker)
    assert len([line for line in caplog.messages if "something else" in line]) == 1
    one.codec.decode = decode
    source.ends = dict.fromkeys(source.ends, 40)
    settle(one)
    worker.take(taken)
    worker.save()
    settle(one)
    assert one.differs is None
    assert one.starts == 3
    assert same(one, worker)


def test_of_a_store_of_objects_each_checkpoint_is_loaded(bucket):
    """No order is stored there, so no digest is compared: what was learnt otherwise goes."""
    worker, source, one = start_replica(bucket)
    decode, taken = one.codec.decode, in_time(plain_logs())
    one.codec.decode = lambda *of: decode(*of)._replace(features={"a": 1.0})
    for upto in (15, 25):
        source.ends = dict.fromkeys(source.ends, upto)
        settle(one)
        otherwise = one._course.learner.digest
        worker.take(taken[: 2 * upto])
        worker.save()
        settle(one)
        assert one.version["checkpoint"] == worker.learner.checkpoint
        assert one._course.learner.digest == worker.learner.digest != otherwise
        assert same(one, worker)
    assert (one.starts, one.differs) == (3, None)


def test_where_the_order_was_another_it_learns_again_and_answers_meanwhile(tmp_path):
    worker, source, one = start_replica(tmp_path)
    settle(one)
    before = one.version["offsets"], encode(one._serving.learner.model)
    worker.take(source.logs["f", 1][:20])
    worker.take(source.logs["f", 0])
    worker.save()
    source.few = lambda: 1
    one.fetch(0)
    while one.learn():
        pass
    assert one._course is not one._serving  # that is behind
    assert (one.version["offsets"], encode(one._serving.learner.model)) == before
    source.few = lambda: 100
    settle(one)
    assert one.starts == 2
    worker.take(source.logs["f", 1][20:])
    assert same(one, worker)


def late_replica(tmp_path, monkeypatch):
    """A worker of late labels that has written a checkpoint without features, and a replica."""
    monkeypatch.setattr(join_state, "STORED", 0)
    given_logs = messages(logs(30))
    worker, source, one = start_replica(tmp_path, given_logs, Tracker(6, late=True), **LATE)
    taken = in_time(given_logs)
    worker.take(taken[:40])
    worker.save()
    assert worker.learner.join.pending > 0
    source.ends = {place: worker.learner.offsets[place] for place in given_logs}
    return worker, source, one, taken


def test_what_waits_is_read_again_a_fetch_at_a_time(tmp_path, monkeypatch):
    """Else none stops it, and nobody sees that it lives, while a broker is away."""
    worker, source, one, _ = late_replica(tmp_path, monkeypatch)
    source.is_away = True
    for _ in range(4):
        before = source.asked
        one.step(0)
        assert source.asked <= before + 1
    assert (one.starts, source.asked) == (0, 3)
    said = r"reads again what waits for a label in checkpoint 1-2, f:\d from \d+ on"
    assert re.fullmatch(said, one.waits)
    source.is_away = False
    settle(one)
    assert (one.starts, one.waits, one.version["checkpoint"]) == (1, None, "1-2")
    assert same(one, worker)


def test_the_present_model_learns_on_while_what_waits_is_read_again(tmp_path, monkeypatch):
    worker, source, one, taken = late_replica(tmp_path, monkeypatch)
    settle(one)
    source.is_away = True
    rest = taken[40:]
    order = sorted(rest[:12], key=lambda message: message.position)  # one log after the other
    assert order != rest[:12]
    worker.take(order)
    worker.save()
    source.now = monotonic()
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: source.now))
    source.ends = {place: worker.learner.offsets[place] for place in source.ends}
    for _ in range(9):
        one.step(0)
    assert one._starting is not None
    assert one.version["checkpoint"] == "1-2"
    assert one._serving.learner.offsets == worker.learner.offsets
    assert one.staleness == 0
    source.is_away = False
    settle(one)
    assert (one.starts, one.version["checkpoint"]) == (2, "1-3")
    assert same(one, worker)


def test_its_order_is_put_right_now_and_then(tmp_path, monkeypatch):
    worker, source, one = start_replica(tmp_path)
    settle(one)
    monkeypatch.setattr(module, "_APART", 60.0)
    for part in (slice(0, 20), slice(20, 40)):
        worker.take(source.logs["f", 1][part])
        worker.take(source.logs["f", 0][part])
        worker.save()
        settle(one)
        assert (one.starts, one.version["checkpoint"]) == (1, "1-1")
    monkeypatch.setattr(module, "_APART", 0.0)
    one._following.retry()  # as time passes
    settle(one)
    assert (one.starts, one.version["checkpoint"]) == (2, "1-3")
    assert same(one, worker)


def test_a_replica_that_is_behind_for_long_continues_from_the_checkpoint(tmp_path, monkeypatch):
    worker, source, one = start_replica(tmp_path)
    source.ends = dict.fromkeys(source.ends, 3)
    settle(one)
    worker.take(in_time(plain_logs()))
    worker.save()
    one.step(0)
    assert (one.starts, one.version["checkpoint"]) == (1, "1-1")
    monkeypatch.setattr(module, "_PATIENCE", 0.0)
    one.step(0)
    assert (one.starts, one.version["checkpoint"]) == (2, "1-2")
    assert one.staleness < math.inf  # it knows what was known before
    assert same(one, worker)


def test_a_replica_that_is_behind_for_a_moment_continues_as_it_is(tmp_path):
    worker, source, one = start_replica(tmp_path)
    source.ends = dict.fromkeys(source.ends, 3)
    settle(one)
    worker.take(in_time(plain_logs()))
    worker.save()
    one.step(0)
    source.ends = dict.fromkeys(source.ends, 40)
    settle(one)
    assert (one.starts, one.version["checkpoint"]) == (1, "1-2")
    assert same(one, worker)


def gone_back(tmp_path):
    """A replica, and a worker that went back to the checkpoint before, which is to be seen."""
    worker, source, one = start_replica(tmp_path)
    taken = in_time(plain_logs())
    worker.take(taken[:40])
    worker.save()
    old = worker.folder.newest(KEY)
    worker.take(taken[40:])
    worker.save()
    settle(one)
    again = Worker(worker.folder, LBP(9), worker.options)
    again.learner.restore(old)
    again.save()
    source.few = lambda: 0
    return one, again, taken


def test_a_checkpoint_that_somebody_went_back_to_answers_at_once(tmp_path):
    one, again, _ = gone_back(tmp_path)
    before = one.version
    one.fetch(0)  # on another thread, while requests are answered
    assert one.version == before
    one.learn()
    assert one.version == {"checkpoint": "2-1", "offsets": {"f": {"0": 20, "1": 20}}}
    assert one.staleness == math.inf
    assert same(one, again)


def test_what_somebody_went_back_to_answers_also_behind_two_looks(tmp_path):
    """The second checkpoint comes before anything was learnt of the first."""
    one, again, taken = gone_back(tmp_path)
    one.fetch(0)
    again.take(taken[40:50])
    again.save()
    for file in again.folder.folder(KEY).glob("order-*"):
        file.unlink()
    one.fetch(0)
    one.learn()
    assert one.version == {"checkpoint": "2-2", "offsets": {"f": {"0": 25, "1": 25}}}
    assert same(one, again)


def test_a_damaged_checkpoint_is_skipped(tmp_path):
    worker, _, one = start_replica(tmp_path)
    taken = in_time(plain_logs())
    settle(one)
    worker.take(taken[:40])
    name = worker.save()
    (file,) = worker.folder.folder(KEY).glob(f"*-{int(name[2:]):010d}.drift")
    file.write_bytes(file.read_bytes()[:-9])
    for journal in worker.folder.folder(KEY).glob("order-*"):
        journal.unlink()
    one.step(0)
    assert one.version["checkpoint"] == "1-1"
    assert (one.starts, one.trouble) == (1, None)


def test_without_the_order_it_learns_again(tmp_path):
    worker, _, one = start_replica(tmp_path)
    settle(one)
    worker.take(in_time(plain_logs()))
    worker.save()
    for file in worker.folder.folder(KEY).glob("order-*"):
        file.unlink()
    settle(one)
    assert one.starts == 2
    assert same(one, worker)


def test_a_partition_that_was_added_is_read_from_the_next_checkpoint_on(tmp_path):
    worker, source, one = start_replica(tmp_path, plain_logs(partitions=1))
    settle(one)
    more = plain_logs(partitions=2)
    source.logs, source.ends = more, {place: len(log) for place, log in more.items()}
    worker.take(more["f", 0])
    worker.learner.start({("f", 1): 0})
    worker.save()
    settle(one)
    assert one.version["offsets"] == {"f": {"0": 40}}
    worker.take(more["f", 1][:20])
    worker.save()
    source.few = lambda: 20
    one.step(0)
    worker.take(more["f", 1][20:])
    settle(one)
    assert same(one, worker)


def test_a_partition_that_was_adopted_and_is_gone_is_not_waited_for(tmp_path):
    """As of a topic that was recreated with fewer."""
    worker, _, one = start_replica(tmp_path, plain_logs(partitions=1))
    worker.learner.start({("f", 3): 0})
    worker.save()
    settle(one)
    assert one.staleness < math.inf
    assert one.version["offsets"] == {"f": {"0": 40}}


# --- what is not there ---------------------------------------------------------------------------


def test_before_the_first_checkpoint_there_is_no_answer(tmp_path):
    one = replica(CheckpointFolder(tmp_path), Source(plain_logs()), worker_options())
    one.step(0)
    assert one.staleness == math.inf
    assert one.version == {"checkpoint": None, "offsets": {}}
    with pytest.raises(UnavailableError, match="has no checkpoint yet: start a worker"):
        one.answer({"a": 1.0})


def test_it_is_stale_since_it_knew_all_that_there_was(tmp_path, monkeypatch):
    _, source, one = start_replica(tmp_path)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: source.now))
    settle(one)
    knew = source.now
    assert one.staleness == 0
    source.now += 30
    assert one.staleness == 30
    source.logs["f", 1].append(source.logs["f", 1][-1]._replace(position=Position("f", 1, 40)))
    source.ends["f", 1] += 2
    one.step(0)  # one of two
    assert one.staleness == source.now - knew > 30
    source.ends["f", 1] -= 1
    one.step(0)
    assert one.staleness == 0


def test_messages_that_are_gone_are_waited_for_in_a_checkpoint(tmp_path, caplog):
    worker, source, one = start_replica(tmp_path)
    source.first = 10
    one.step(0)
    one.step(0)
    assert "the broker has not what comes next of f:0, f:1" in one.trouble
    assert len([r for r in caplog.records if "waiting for a newer" in r.message]) == 1
    assert one.staleness == math.inf
    worker.take(in_time(plain_logs()))
    worker.save()
    settle(one)
    assert one.trouble is None
    assert same(one, worker)


def test_of_a_partition_that_is_far_ahead_no_more_is_fetched(tmp_path, monkeypatch):
    monkeypatch.setattr("drift.consumers.order._AHEAD", 5)
    monkeypatch.setattr("drift.consumers.order._AGAIN", 3)
    worker, source, one = start_replica(tmp_path)
    source.few = lambda: 8
    source.late = {("f", 1)}
    one.step(0)
    one.step(0)
    assert (source.paused, source.positions["f", 0]) == ({("f", 0)}, 8)
    source.late = set()
    settle(one)
    assert not source.paused
    worker.take(in_time(plain_logs()))
    assert same(one, worker)


def test_a_topic_that_was_made_anew_ends_it(tmp_path):
    _, source, one = start_replica(tmp_path)
    settle(one)
    source.ids = {"topic_id": "8"}
    with pytest.raises(CheckpointError, match="learnt from another f"):
        one.step(0)


def test_a_first_checkpoint_of_another_configuration_is_refused(tmp_path):
    options = worker_options(**LATE)
    folder = CheckpointFolder(tmp_path, options.settings())
    Worker(folder, LBP(9), options).save()
    other = worker_options(**LATE | {"grace": 9})
    one = replica(CheckpointFolder(tmp_path), Source(plain_logs()), other)
    with pytest.raises(ConfigurationError, match=r"labels\.grace: 2 in the checkpoint, 9 now"):
        one.step(0)


@pytest.mark.parametrize(
    ("identity", "configuration", "remedy"),
    [
        ({"group": "h"}, {}, "Give the group of the checkpoint"),
        ({"topic_id": "8"}, {}, "once they learn. Or give the broker of the workers"),
        ({"topic_id": "8", "group": "h"}, {}, "Or give the broker of the workers"),
        ({}, {"budget": 5}, "Use the checkpoint's, which the worker's file has"),
        ({}, {"codec": "Csv"}, "Use the checkpoint's, which the worker's file has"),
    ],
)
def test_what_a_replica_refuses_is_not_its_to_accept(tmp_path, identity, configuration, remedy):
    folder = CheckpointFolder(tmp_path, {"budget": 4, "codec": "JsonCodec"} | configuration)
    Worker(folder, LBP(9), worker_options()).save()
    one = replica(CheckpointFolder(tmp_path, {"budget": 4}), Source(plain_logs()), worker_options())
    one._consumer.ids = {"topic_id": "7", "group": "g"} | identity
    one._identity = one._consumer.identity
    with pytest.raises(CheckpointError, match=remedy) as refusal:
        one.step(0)
    assert "adopt" not in str(refusal.value)


def test_a_checkpoint_with_a_shadow_is_refused_beside_a_threshold(tmp_path):
    folder = CheckpointFolder(tmp_path)
    worker = Worker(folder, LBP(9), worker_options())
    worker.learner.start({("f", 0): 0})
    worker.learner.shadow = Shadow(MIRA())
    worker.take(plain_logs()["f", 0][:5])
    saved = worker.save()
    one = replica(folder, Source(plain_logs()), worker_options(rate=0.1))
    with pytest.raises(ConfigurationError, match=rf"{saved} has a shadow, MIRA; .* leave \[decis"):
        one.step(0)
    worker.learner.shadow = None  # as that of a worker whose file names none
    worker.save()
    settle(one)
    assert one.answer({"a": 1.0})[0] is not None


@pytest.mark.parametrize("learns_on", [False, True])
def test_a_model_that_was_promoted_by_hand_answers(tmp_path, learns_on):
    """Nothing was learnt between the two checkpoints."""
    worker, source, one = start_replica(tmp_path)
    taken = in_time(plain_logs())
    worker.learner.shadow = Shadow(MIRA())
    worker.take(taken[:40])
    worker.save()
    source.ends = dict.fromkeys(source.ends, 20)
    settle(one)
    before = encode(worker.learner.model), encode(worker.learner.shadow.model)
    made = promote(files_in(worker.folder.folder(KEY)), None)
    settle(one)
    assert one.version["checkpoint"] == id_of(made) == "2-1"
    served = one._serving.learner
    assert (encode(served.model), encode(served.shadow.model)) == before[::-1]
    if learns_on:
        worker = Worker(worker.folder, None, worker.options)
        source.ends = dict.fromkeys(source.ends, 40)
        settle(one)
        worker.take(taken[40:])
        worker.save()
        starts = one.starts
        settle(one)
        assert (one.starts, one.trouble, one.differs) == (starts, None, None)
        assert same(one, worker)


@pytest.mark.parametrize("promote_here", [None, 2.0])
@pytest.mark.parametrize("promote", [None, 2.0])
def test_a_shadow_that_begins_later_is_followed_and_promoted_by_the_worker_alone(
    tmp_path, caplog, promote, promote_here
):
    worker, source, one = start_replica(tmp_path, model=LBP(1), promote=promote)
    one = replica(worker.folder, source, worker_options(promote=promote_here))
    taken = in_time(plain_logs())
    source.ends = dict.fromkeys(source.ends, 10)
    settle(one)
    worker.take(taken[:20])
    worker.save()
    settle(one)
    assert one.starts == 1
    worker.learner.shadow = Shadow(LBP(60), worker.learner.offsets)
    worker.take(taken[20:22])
    worker.save()
    source.ends = dict.fromkeys(source.ends, 11)
    settle(one)
    assert (one.starts, one._serving.learner.shadow.since) == (2, {("f", 0): 10, ("f", 1): 10})
    source.ends = dict.fromkeys(source.ends, 40)
    settle(one)
    worker.take(taken[22:70])
    assert bool(worker.learner.promotions) is (promote is not None)
    worker.save()
    settle(one)
    starts = 2 + len(worker.learner.promotions)
    assert one.starts == starts
    worker.take(taken[70:])
    assert same(one, worker)
    worker.save()
    settle(one)
    assert (one.starts, one.trouble, one.differs) == (starts, None, None)
    assert same(one, worker)
    promoted = [line for line in caplog.messages if line.startswith("f: promoted")]
    assert len(promoted) == len(worker.learner.promotions)  # as the worker says


def test_a_replica_does_not_say_that_it_sends_a_dead_letter(tmp_path, caplog):
    given_logs = {("f", 0): [Message(Position("f", 0, 0), None, b"{", (), 1)]}
    _, _, one = start_replica(tmp_path, given_logs)
    settle(one)
    [line] = [line for line in caplog.messages if line.startswith("f:0:0")]
    assert line.startswith("f:0:0 is left out, as by the worker: value is no JSON")


def test_a_message_that_its_worker_has_left_out_is_left_out_here(tmp_path):
    worker, source, one = start_replica(tmp_path)
    taken = in_time(plain_logs())
    source.ends = dict.fromkeys(source.ends, 20)
    settle(one)
    poison = taken[24].position  # the digest has one example in eight, not this one
    worker.learner.skips[poison] = "has ended the worker 3 times"
    worker.take(taken[:40])
    worker.save()
    settle(one)
    assert (one.starts, one.trouble, one.differs) == (2, None, None)
    assert same(one, worker)
    assert worker.learner.metrics.examples == 39
    for upto, last in ((30, 60), (40, 80)):
        source.ends = dict.fromkeys(source.ends, upto)
        settle(one)
        worker.take(taken[:last])
        worker.save()
        settle(one)
    assert one.starts == 2  # what was left out before is known
    assert same(one, worker)


def test_a_message_that_an_operator_leaves_out_is_left_out_before_it_comes_here(tmp_path):
    worker, source, one = start_replica(tmp_path)
    taken = in_time(plain_logs())
    source.ends = dict.fromkeys(source.ends, 5)
    worker.take(taken[:5])
    worker.save()
    settle(one)
    starts, poison = one.starts, taken[24].position
    skip(files_in(worker.folder.folder(KEY)), poison, None)
    settle(one)
    assert (one.starts, one.trouble) == (starts + 1, None)
    assert [*one._course.learner.skips] == [poison]


def test_a_later_checkpoint_that_cannot_be_used_leaves_the_model_as_it_is(tmp_path, caplog):
    worker, _, one = start_replica(tmp_path)
    settle(one)
    worker.folder.configuration = {"budget": 5}
    one.folder = CheckpointFolder(tmp_path, {"budget": 4})
    worker.take(in_time(plain_logs())[::-1][:0])
    worker.learner.checkpoint = None
    worker.save()
    one.step(0)
    one.step(0)
    assert "budget: 5 in the checkpoint, 4 now" in one.trouble
    assert len(caplog.records) == 1
    assert one.answer({"a": 1.0})[0] is not None


def test_a_folder_that_is_away_for_a_moment_is_looked_at_again(tmp_path, monkeypatch):
    _, _, one = start_replica(tmp_path)

    def away(*_):
        raise CheckpointError("away") from OSError("away")

    with monkeypatch.context() as patch:
        patch.setattr(CheckpointFolder, "newest", away)
        one.step(0)
        assert (one.trouble, one.starts) == ("away", 0)
    one.step(0)
    assert (one.trouble, one.starts) == (None, 1)


@pytest.mark.parametrize("wrap", [lambda model: model, Threshold], ids=["alone", "threshold"])
def test_to_ask_a_pipeline_for_late_labels_changes_nothing_in_it(tmp_path, wrap):
    options = worker_options(**LATE)
    model = preprocessing.StandardScaler() | wrap(Tracker(9, late=True))
    folder = CheckpointFolder(tmp_path, options.settings(), allow_pickle=True)
    worker = Worker(folder, model, options)
    worker.learner.start(dict.fromkeys(plain_logs(), 0))
    worker.save()
    one = replica(CheckpointFolder(tmp_path, allow_pickle=True), Source(plain_logs()), options)
    settle(one)
    served = one._serving.learner.model
    before = copy.deepcopy(served)
    one.answer({"a": 0.25})
    assert pickle.dumps(final_step(served)) == pickle.dumps(final_step(before))
    assert vars(served["StandardScaler"]) == vars(before["StandardScaler"])


def test_a_codec_without_labels_is_refused(tmp_path):
    mute = type("Mute", (Codec,), {"decode": None})()
    with pytest.raises(ParameterError, match="Mute has no decode_label"):
        replica(CheckpointFolder(tmp_path), None, worker_options(**LATE), codec=mute)


def test_it_closes_its_client(tmp_path):
    source = Source(plain_logs())
    with replica(CheckpointFolder(tmp_path), source, worker_options()):
        pass
    assert source.positions is None


# --- the order in which records were taken -------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=12), st.data())
def test_an_order_is_that_of_runs_where_the_same_records_gave_the_same_runs(steps, data):
    """Against runs that are written down of the records alone."""
    ends, records, time = {}, [], dict.fromkeys(range(3), 0)
    for number, later in steps:
        place = ("ft"[number == 2], number)
        time[number] += later
        records.append((time[number], place, ends.get(place, 0)))
        ends[place] = ends.get(place, 0) + 1
    others = data.draw(st.permutations(records))
    latest = {}
    for _, place, offset in others:  # each partition in its own order
        if offset != latest.get(place, 0):
            others = records
            break
        latest[place] = offset + 1
    cut = data.draw(st.integers(0, len(others)))
    breaks = data.draw(st.integers(0, cut))
    more = data.draw(st.integers(0, len(records)))  # are not taken yet
    runs = noted(others[:breaks]) + noted(others[breaks:cut])
    taken = Taken("t")
    for record in records[:more]:
        taken.note(*record, 0)
    both = min(cut, more)
    same = records[:both] == others[:both]
    assert taken.match(runs.all()) == ((both, both < cut) if same else None)


def noted(records):
    runs = Runs()
    for time, place, offset in records:
        runs.note(sort_key(time, place, "t"), place, offset)
    return runs


def test_of_too_many_records_the_order_is_not_known(monkeypatch):
    monkeypatch.setattr(course_module, "_KEPT", 3)
    taken = Taken(None)
    for offset in range(4):
        taken.note(offset, ("f", 0), offset, 0)
    assert taken.match([{("f", 0): 4}]) is None


# --- with a broker -------------------------------------------------------------------------------


def test_beside_a_worker_on_a_broker_it_learns_the_same(broker, tmp_path):
    from drift.consumers.worker import Worker as RealWorker  # noqa: PLC0415
    from drift.testing import produce  # noqa: PLC0415

    broker.create_topic("f", 2)
    broker.create_topic("out")
    broker.create_topic("dead")
    values = [[m.value for m in log] for log in plain_logs().values()]
    options = worker_options(start="earliest")
    consumer = {"session_timeout_ms": 6000, "heartbeat_interval_ms": 200}
    given_worker = LBP(9), CheckpointFolder(tmp_path), broker.client_args, options
    worker = RealWorker(*given_worker, consumer=consumer)
    one = Replica(CheckpointFolder(tmp_path), broker.client_args, options)
    for part in (slice(15), slice(15, 40)):
        for number in range(2):
            produce(broker, "f", values[number][part], partition=number)
        end = {("f", 0): part.stop, ("f", 1): part.stop}
        until(worker, lambda end=end: learner_of(worker) and learner_of(worker).offsets == end)
        worker._save_new()
        give_up = monotonic() + 60
        while one._serving is None or one._serving.learner.offsets != end:
            assert monotonic() < give_up
            one.step(0.2)
        one.step(0.2)
        assert one.version["checkpoint"] == learner_of(worker).checkpoint
        assert encode(one._serving.learner.model) == encode(learner_of(worker).model)
        assert one.staleness < 60
    close(worker)
    one.close()
