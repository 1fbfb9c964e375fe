"""Models of keys: in memory and in the file they are those of a plain dict, whatever happens."""

import json
import re
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from copy import deepcopy
from weakref import WeakSet

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river import compose, naive_bayes, preprocessing

from drift.consumers import CheckpointFolder, WorkerOptions, crash_points
from drift.consumers.checkpoints import files, mounts
from drift.consumers.checkpoints.keyed_file import Row
from drift.consumers.checkpoints.keyed_store import ModelStore
from drift.consumers.checkpoints.objects import ObjectPath
from drift.consumers.checkpoints.rollback import plan
from drift.consumers.json_codec import JsonCodec
from drift.consumers.keyed import KeyedLearner
from drift.consumers.keyed_models import KeyedModels
from drift.consumers.learner import Learner
from drift.consumers.metrics import Metrics
from drift.consumers.preparing import prepared, prepared_shadow
from drift.consumers.records import Message, Position
from drift.consumers.relearning import relearn
from drift.consumers.warm import warm
from drift.errors import (
    CheckpointError,
    ConfigurationError,
    ConsumerError,
    FencedError,
    ParameterError,
    UnavailableError,
)
from drift.models import LBP, Tracker
from drift.models._state.codec import encode
from drift.models._tracker.reference_core import TrackerCore
from drift.testing import Abort, Aborted
from tests.consumers.claimed import KEY, Claimed
from tests.consumers.killed import kill_at, save_models
from tests.crash_points import CHECKPOINT_POINTS, MODELS_POINTS


def saved(folder, keys):
    """Learn an example of each key, save a checkpoint, and leave."""
    one = Claimed(folder, 9, {})
    for n, key in enumerate(keys):
        one.learn(key, n)
    one.prepare()()
    one.store.close()
    return one


pytestmark = pytest.mark.usefixtures("stores")


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(ModelStore, "at_once", 2)


LEARN = st.tuples(st.just("learn"), st.sampled_from("abcde"), st.integers(0, 29))
SAVE = st.tuples(st.just("save"), st.lists(LEARN, max_size=12))
POINTS = [*MODELS_POINTS[1:], *CHECKPOINT_POINTS]
CRASH = st.tuples(st.just("crash"), st.none() | st.sampled_from(POINTS), st.integers(1, 3))
BACK = st.tuples(st.just("back"), st.integers(0, 4))


@settings(max_examples=25)
@given(
    st.lists(LEARN | LEARN | LEARN | SAVE | SAVE | CRASH | BACK, max_size=40),
    st.integers(1, 6),
    st.integers(1, 3),
)
def test_models_are_those_of_a_dict_whatever_leaves_crashes_or_goes_back(
    tmp_path_factory, steps, most, keep
):
    folder = CheckpointFolder(
        tmp_path_factory.mktemp("c"), keep=keep, keep_ten_minutes=0, keep_hourly=0, keep_daily=0
    )
    expected = {}
    one = Claimed(folder, most, expected)
    one.prepare()()
    for step in steps:
        if step[0] == "learn":
            one.learn(*step[1:])
        elif step[0] == "save":
            write = one.prepare()
            for other in step[1]:  # while it is being written
                one.learn(*other[1:])
            write()
        elif step[0] == "crash":
            _, point, count = step
            if point is not None:
                write = one.prepare()  # so that it is known what a checkpoint has
                epoch = one.epoch
                was = dict(one.twin)
                with suppress(Aborted), Abort(point, count=count):
                    write()
                    was = None
                if was is not None:
                    newest = folder.newest(KEY)
                    if newest.epoch == epoch and newest.id not in expected:
                        expected[newest.id] = was  # renamed before
            one.store.close()
            one = Claimed(folder, most, expected)
        else:
            _, n = step
            [*ids] = [f"{e}-{s}" for e, s in folder._files(KEY).listing().checkpoints]
            target = ids[n % len(ids)]
            if target != ids[-1]:
                found = plan(folder._files(KEY), target).write(None)
                expected[found] = expected[target]
                one.store.close()
                one = Claimed(folder, most, expected)
    one.check()
    one.store.close()
    again = Claimed(folder, most, expected)
    again.check()
    again.store.close()


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("point", POINTS)
def test_a_crash_at_any_point_leaves_the_models_of_the_newest_checkpoint(tmp_path, point, count):
    folder, expected = CheckpointFolder(tmp_path), {}
    one = Claimed(folder, 2, expected)
    for n, key in enumerate("abcdabcd"):
        one.learn(key, n)
    one.prepare()()
    for n, key in enumerate("abcdabceda"):
        one.learn(key, 3 * n)
    was = dict(one.twin)
    with Abort(point, count=count) as abort, suppress(Aborted):
        one.prepare()()
    assert abort.times >= 1
    if folder.newest(KEY).id == "1-2":
        expected["1-2"] = was
    one.store.close()
    other = Claimed(folder, 2, expected)
    for n, key in enumerate("bdf"):
        other.learn(key, n)
    other.check()
    other.prepare()()
    other.check()


def execute(folder, statement):
    """Do something to the file that no worker does."""
    with closing(sqlite3.connect(folder / "models.sqlite", isolation_level=None)) as db:
        return [*db.execute(statement)]


def rows(folder):
    return execute(folder.folder(KEY), "select key, version from models order by key, version")


def test_versions_that_no_checkpoint_needs_are_removed(tmp_path):
    folder = CheckpointFolder(tmp_path, keep=2, keep_ten_minutes=0, keep_hourly=0, keep_daily=0)
    one = Claimed(folder, 9, {})
    one.learn("idle", 0)
    for n in range(6):
        one.learn("busy", n)
        one.prepare()()
    # That of the newest checkpoint, and of the one before, which was kept as it was written.
    assert rows(folder) == [("busy", 4), ("busy", 5), ("busy", 6), ("idle", 1)]
    one.learn("lost", 1)
    one.prepare()
    one.store.write(one.store.version, dict.fromkeys(("", "lost"), Row(b"", "drift")))
    one.store.close()
    two = Claimed(folder, 9, one.expected)  # of which no checkpoint names the last two
    assert {("", 8), ("lost", 8)} <= {*rows(folder)}
    assert two.models.count == 2
    for n in range(4):
        two.learn("busy", n)
        two.prepare()()
    assert [row for row in rows(folder) if row[0] != "busy"] == [("idle", 1)]
    two.check()


def test_a_version_that_ends_while_checkpoints_are_looked_for_is_kept(tmp_path, monkeypatch):
    store = ModelStore(tmp_path, 1)
    store.write(1, {"a": Row(b"1", "drift")})
    listing = files.ModelFolder.listing

    def listed(folder):
        store.advance()
        return listing(folder)

    with monkeypatch.context() as patch:
        patch.setattr(files.ModelFolder, "listing", listed)
        store.refresh()
    store.write(2, {"a": Row(b"2", "drift")})
    assert execute(tmp_path, "select version from models order by version") == [(1,), (2,)]
    store.close()


def test_behind_a_damaged_checkpoint_models_are_those_of_the_one_before(tmp_path):
    folder = CheckpointFolder(tmp_path, keep=2, keep_ten_minutes=0, keep_hourly=0, keep_daily=0)
    one = Claimed(folder, 1, {})
    for n, key in enumerate("abcab"):
        one.learn(key, n)
        one.prepare()()
    one.store.close()
    path = folder._files(KEY).file(1, 5)
    path.write_bytes(path.read_bytes()[:-1])
    two = Claimed(folder, 1, one.expected)
    assert two.twin["b"] == one.expected["1-4"]["b"]
    two.check()
    before = len(rows(folder))
    two.learn("a", 6)
    two.prepare()()
    assert len(rows(folder)) == before + 1  # none is removed while that one may need it
    for n in range(4):
        two.learn("a", n)
        two.prepare()()
    assert not path.exists()
    assert [version for key, version in rows(folder) if key == "b"] == [2]
    two.check()


def test_who_was_fenced_writes_nothing_to_the_file(tmp_path):
    folder = CheckpointFolder(tmp_path)
    one = Claimed(folder, 1, {})
    one.learn("a", 0)
    one.prepare()()
    before = rows(folder)
    two = Claimed(folder, 1, one.expected)
    one.learn("b", 1)
    one.learn("c", 2)
    with pytest.raises(FencedError, match="our epoch is 1 and the newest 2"):
        one.learn("d", 3)
    assert rows(folder) == before
    two.check()
    two.store.close()
    with pytest.raises(FencedError):
        ModelStore(folder.folder(KEY), 1)


def test_a_zombies_checkpoint_still_has_its_models(tmp_path):
    """One that was frozen before its rename, which came between another one's look and cleaning."""
    folder, expected = CheckpointFolder(tmp_path), {}
    one = Claimed(folder, 1, expected)
    one.learn("a", 0)
    one.prepare()()
    one.learn("a", 1)
    one.learn("b", 2)
    one.prepare()()
    zombie = folder._files(KEY).file(1, 2)
    late = zombie.read_bytes()
    zombie.unlink()
    two = Claimed(folder, 1, expected)
    two.check()  # that of the checkpoint that there was
    two.learn("a", 5)
    two.learn("c", 6)
    two.learn("d", 7)
    zombie.write_bytes(late)
    two.store.close()  # and dies before its first checkpoint
    three = Claimed(folder, 1, expected)
    assert set(three.twin) == {"a", "b"}
    three.check()


def test_a_full_disk_costs_a_checkpoint_and_no_model(tmp_path, monkeypatch):
    folder, expected = CheckpointFolder(tmp_path), {}
    one = Claimed(folder, 3, expected)
    for n, key in enumerate("abc"):
        one.learn(key, n)
    write = one.prepare()
    with monkeypatch.context() as patch:
        full = UnavailableError("models.sqlite: database or disk is full")
        calls = []

        def fail(*given):
            calls.append(given)
            if len(calls) > 1:
                raise full
            type(one.store).write(one.store, *given)

        patch.setattr(one.store, "write", fail)
        with pytest.raises(CheckpointError, match="disk is full"):
            write()
    for n, key in enumerate("dab"):
        one.learn(key, n)
    one.check()
    one.prepare()()
    one.check()
    one.store.close()
    Claimed(folder, 3, expected).check()


def test_what_had_left_before_a_save_that_failed_is_in_the_next_one(tmp_path, monkeypatch):
    folder, expected = CheckpointFolder(tmp_path), {}
    one = Claimed(folder, 1, expected)
    one.store.at_once = 9
    for n, key in enumerate("ab"):
        one.learn(key, n)
    write = one.prepare()
    with monkeypatch.context() as patch:

        def fail(*_):
            raise UnavailableError("models.sqlite: database or disk is full")

        patch.setattr(one.store, "write", fail)
        with pytest.raises(CheckpointError, match="disk is full"):
            write()
    one.prepare()()
    one.store.close()
    Claimed(folder, 1, expected).check()


def test_of_two_rows_that_left_while_one_was_written_the_later_counts(tmp_path):
    """The first is of the checkpoint, the second was written before it."""
    folder, expected = CheckpointFolder(tmp_path), {}
    one = Claimed(folder, 1, expected)
    for n, key in enumerate("abc"):
        one.learn(key, n)
    write = one.prepare()
    for n, key in enumerate("abcabcabc"):
        one.learn(key, 2 * n)
    one.check()
    write()
    one.check()
    one.store.close()
    two = Claimed(folder, 1, expected)
    two.check()


@pytest.mark.parametrize("fails", [False, True])
def test_memory_is_bounded_while_a_checkpoint_waits_and_after_it_failed(tmp_path, fails):
    """It fails before anything is written, as where the folder cannot be listed."""
    folder, expected = CheckpointFolder(tmp_path), {}
    one = Claimed(folder, 5, expected)
    in_memory = WeakSet()

    def learn(numbers):
        for n in numbers:
            one.learn(f"k{n % 40}", n)
            in_memory.add(one.models.get(f"k{n % 40}"))
            assert len(in_memory) <= 5
            unwritten = one.models._unwritten
            assert len(one.models._evicted) + len(unwritten.rows if unwritten else ()) < 5 + 2 * 2

    def fail():
        raise CheckpointError("cannot be listed")

    learn(range(20))
    for start in range(20, 200, 7):
        if fails:
            crash_points.install("checkpoint.begun", fail)
            try:
                with pytest.raises(CheckpointError, match="cannot be listed"):
                    one.prepare()
            finally:
                crash_points.remove("checkpoint.begun")
            learn(range(start, start + 7))
        else:
            write = one.prepare()
            learn(range(start, start + 7))
            write()
    one.prepare()()
    one.check()
    one.store.close()
    Claimed(folder, 5, expected).check()


@pytest.mark.parametrize("most", [1, 3])
def test_models_change_and_leave_while_another_thread_writes_them(tmp_path, most):
    folder, expected = CheckpointFolder(tmp_path, keep=99), {}
    one = Claimed(folder, most, expected)
    with ThreadPoolExecutor(1) as writer:
        for n in range(6):
            for k in range(5):
                one.learn("abcdefg"[(n * k + k) % 7], n + k)
            written = writer.submit(one.prepare())
            k = 0
            while not written.done() or k < 3:
                one.learn("abcdefg"[(n + 3 * k) % 7], n * k)
                k += 1
            written.result()
    one.check()
    one.store.close()
    for checkpoint in list(expected):
        two = Claimed(folder, most, expected)
        if checkpoint != folder.newest(KEY).id:
            expected[plan(folder._files(KEY), checkpoint).write(None)] = expected[checkpoint]
        two.store.close()
        three = Claimed(folder, most, expected)
        three.check()
        three.store.close()


def test_where_nothing_can_leave_the_memory_the_worker_ends(tmp_path):
    one = learner(tmp_path, LBP(budget=4), most=1)
    one.take(message(0, "a"))
    one.models._store._db.execute("pragma query_only = 1")
    one.take(message(1, "b"))
    with pytest.raises(UnavailableError, match=r"models.*: attempt to write a readonly"):
        one.take(message(3, "c"))


@pytest.mark.parametrize("secret", [None, b"secret"])
def test_damage_is_noticed_and_the_other_keys_go_on(tmp_path, secret):
    folder = CheckpointFolder(tmp_path, secret=secret)
    one = saved(folder, "ab")
    execute(
        folder.folder(KEY),
        "update models set state = substr(state, 1, 50) || x'00' where key = 'b'",
    )
    for _ in range(2):
        two = Claimed(folder, 9, one.expected)
        with pytest.raises(CheckpointError, match="damaged, or not signed with this key"):
            two.models.get("b")
        two.twin.pop("b", None)
        two.check()
        two.learn("a", 7)
        two.prepare()()
        two.store.close()


@pytest.mark.parametrize(
    "damage",
    ["kind = cast(x'ff' as text)", "version = 'x'", "digest = 7", "examples = 9", "time = 9"],
)
def test_a_damaged_row_costs_its_key_alone(tmp_path, damage):
    folder = CheckpointFolder(tmp_path)
    one = saved(folder, "ab")
    execute(folder.folder(KEY), f"update models set {damage} where key = 'b'")  # noqa: S608
    execute(
        folder.folder(KEY),
        "insert into models values (9, cast(x'ff' as text), 1, 0, 0, 0, '', '', '')",
    )
    two = Claimed(folder, 9, one.expected)
    with pytest.raises(CheckpointError, match="damaged, or not signed with this key"):
        two.models.get("b")
    two.twin.pop("b")
    for _ in range(2):
        two.learn("a", 7)
        two.prepare()()
    two.check()


def test_a_rollback_heals_a_key_whose_newer_row_is_damaged(tmp_path):
    folder = CheckpointFolder(tmp_path)
    one = Claimed(folder, 9, {})
    for n in range(2):
        one.learn("a", n)
        one.prepare()()
    one.store.close()
    execute(folder.folder(KEY), "update models set state = x'00' where version = 2")
    one.expected[plan(files.files_in(folder.folder(KEY)), "1-1").write(None)] = one.expected["1-1"]
    two = Claimed(folder, 9, one.expected)
    assert two.twin == {"a": (0,)}
    two.check()


def test_a_row_whose_entry_is_of_another_version_is_not_passed_over(tmp_path):
    """Else the key would go on from an older model, or anew, without a word."""
    folder = CheckpointFolder(tmp_path)
    one = Claimed(folder, 9, {})
    for n in range(2):
        one.learn("a-key", n)
        one.prepare()()
    one.store.close()
    path = folder.folder(KEY) / "models.sqlite"
    whole = path.read_bytes()
    row = b"a-key\x02\x02"  # version and examples
    places = [found.start() + 5 for found in re.finditer(row, whole)]
    assert len(places) == 2  # in the table and in the index
    for place in places:
        path.write_bytes(whole[:place] + b"\x07" + whole[place + 1 :])
        two = Claimed(folder, 9, one.expected)
        with pytest.raises(CheckpointError, match="damaged, or not signed with this key"):
            two.models.get("a-key")
        two.store.close()


def test_many_models_that_leave_are_written_in_parts(tmp_path, monkeypatch):
    one = Claimed(CheckpointFolder(tmp_path), 9, {})
    for n, key in enumerate("abcdefg"):
        one.learn(key, n)
    sizes, write = [], one.store.write
    monkeypatch.setattr(
        one.store, "write", lambda version, part: sizes.append(len(part)) or write(version, part)
    )
    one.models.most = 1
    one.models.evict()
    assert sizes == [2, 2, 2]
    one.check()


def test_a_file_that_is_gone_old_or_damaged_is_refused(tmp_path):
    folder = CheckpointFolder(tmp_path)
    one = Claimed(folder, 9, {})
    path = folder.folder(KEY) / "models.sqlite"
    one.learn("a", 0)
    one.prepare()()
    one.learn("a", 1)
    old = path.read_bytes()
    one.prepare()()
    one.store.close()
    for damage in (path.unlink, lambda: path.write_bytes(old)):
        damage()
        with pytest.raises(CheckpointError, match="has not the models that the newest checkp"):
            Claimed(folder, 9, one.expected)
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(ConsumerError, match=r"models\.sqlite: .*bring the checkpoints' folder"):
        Claimed(folder, 9, one.expected)
    path.unlink()
    path.mkdir()
    with pytest.raises(UnavailableError, match=r"models\.sqlite"):
        Claimed(folder, 9, one.expected)


@pytest.mark.parametrize("point", MODELS_POINTS)
def test_a_process_that_is_killed_leaves_the_models_of_the_checkpoint(tmp_path, point):
    folder = CheckpointFolder(tmp_path)
    one = saved(folder, "abc")
    kill_at(point, save_models, str(tmp_path))
    assert folder.newest(KEY).id == "1-1"
    Claimed(folder, 9, one.expected).check()


def test_the_file_is_its_users_alone(tmp_path):
    one = Claimed(CheckpointFolder(tmp_path), 9, {})
    assert one.store.path.stat().st_mode & 0o777 == 0o600


def test_a_row_that_could_not_be_read_again_is_not_written(tmp_path):
    model, models = Tracker(5), KeyedModels(ModelStore(tmp_path, epoch=1), most=1)
    model._core = TrackerCore(model._plan(), "auto", 0)
    for n in range(20):
        model.learn_one({"a": float(n % 3)}, n % 2 == 0)
    models.changed("ann", model, time=0)
    before = models.prepare()()
    model._core._state.covariances[:] *= -1.0
    models.changed("ann", model, time=1)
    refused = "the model of the key 'ann': .* covariances, so that it cannot be stored"
    with pytest.raises(CheckpointError, match=refused):
        models.prepare()()
    models.changed("bob", LBP(3), time=1)
    with pytest.raises(CheckpointError, match=refused):
        models.evict()
    models.close()
    after = KeyedModels(ModelStore(tmp_path, epoch=2, lineage=before), most=1)
    assert after.get("ann").n_supports == model.n_supports
    after.close()


# --- the learner ----------------------------------------------------------------------------------


def message(offset, key, *, label=True, **features):
    value = {"features": features or {"a": 1.0}, "label": label, "customer": {"id": key}}
    return Message(Position("t", 0, offset), None, json.dumps(value).encode())


def learner(path, model, most=100, *, prior=True, **more):
    options = WorkerOptions(topic="t", group="g", prior=prior, predictions="out", **more)
    folder = CheckpointFolder(path).folder(KEY)
    folder.mkdir(parents=True, exist_ok=True)
    models = KeyedModels(ModelStore(folder, 1), most, allow_pickle=True)
    codec = JsonCodec(key="customer.id")
    return KeyedLearner(model, codec, Metrics("t", 0), options, models)


def stream(n):
    for i in range(n):
        key = ("ann", "bob", 7)[i * i % 3 - (i % 7 == 0)]
        yield message(i, key, label=(i // 9) % 2 == 0 or None, **{f"f{i % 4}": 1.0, "b": i % 3})


@pytest.mark.parametrize("prior", [True, False])
@pytest.mark.parametrize(
    "make", [lambda: LBP(budget=4), lambda: Tracker(budget=4)], ids=["LBP", "Tracker"]
)
def test_each_key_is_learnt_by_a_model_of_its_own(tmp_path, make, prior):
    """What is predicted is what plain loops predict, with one model in memory or all."""
    one, codec = learner(tmp_path, make(), 1, prior=prior), JsonCodec(key="customer.id")
    topic, own = make(), {}
    for sent in stream(120):
        x, y, *_, key = codec.decode(sent.value)
        [outgoing] = one.take(sent)
        body = json.loads(outgoing.value)
        assert body["key"] == key
        assert body["predicted"] == own.get(key, topic).predict_one(x)
        if y is None:
            continue
        if key not in own:
            own[key] = deepcopy(topic) if prior else make()
        own[key].learn_one(x, y)
        if prior:
            topic.learn_one(x, y)
    for key, model in own.items():
        assert encode(one.models.get(str(key))) == encode(model)
    assert encode(one.model) == encode(topic)
    one.note()
    assert one.metrics.keyed["models"] == 3
    assert one.metrics.keyed["models_in_memory"] <= 4
    assert one.metrics.keyed["model_loads"] > 10


def test_a_river_pipeline_is_pickled(tmp_path):
    pipeline = compose.Pipeline(preprocessing.StandardScaler(), naive_bayes.GaussianNB())
    one = learner(tmp_path, pipeline, most=1, prior=False)
    plain = {key: pipeline.clone() for key in "ab"}
    for i in range(40):
        key, x, y = "ab"[i % 3 == 0], {"a": float(i % 5), "b": float(i % 2)}, i % 5 > 2
        one.take(message(i, key, label=y, **x))
        plain[key].learn_one(x, y)
    for key, model in plain.items():
        assert one.models.get(key).predict_proba_one({"a": 1.0, "b": 0.0}) == (
            model.predict_proba_one({"a": 1.0, "b": 0.0})
        )


class Fussy(naive_bayes.GaussianNB):
    def learn_one(self, x, y):
        if y == "many":
            raise ValueError("too much for me")
        super().learn_one(x, y)


@pytest.mark.parametrize("most", [1, 9])
def test_what_has_changed_before_it_raises_stays_wherever_it_is(tmp_path, most):
    pipeline = compose.Pipeline(preprocessing.StandardScaler(), Fussy())
    one = learner(tmp_path, pipeline, most=most, prior=False, dead_letters="dead")
    topics = []
    for n, (key, a, label) in enumerate(
        [("a", 1.0, "one"), ("a", 500.0, "many"), ("b", 2.0, "one"), ("a", 3.0, "one")]
    ):
        topics += [outgoing.topic for outgoing in one.take(message(n, key, label=label, a=a))]
    assert topics == ["out", "dead", "out", "out"]
    assert one.models.get("a")["StandardScaler"].means["a"] == pytest.approx(504.0 / 3)


def test_what_has_changed_before_it_raises_is_written_again(tmp_path):
    """Though nothing else has changed the model since its row was written."""
    pipeline = compose.Pipeline(preprocessing.StandardScaler(), Fussy())
    one = learner(tmp_path, pipeline, most=1, prior=False, dead_letters="dead")
    one.take(message(0, "a", a=1.0))
    one.prepare_models()()
    one.take(message(1, "a", label="many", a=500.0))
    one.take(message(2, "b", a=2.0))
    one.prepare_models()()
    assert one.models.get("a")["StandardScaler"].means["a"] == pytest.approx(501.0 / 2)


def test_a_row_is_on_the_disk_before_a_checkpoint_names_it(tmp_path, monkeypatch):
    monkeypatch.undo()  # what spares the other tests the disk
    folder = CheckpointFolder(tmp_path)
    epoch, _ = folder.claim(KEY)
    store = ModelStore(folder.folder(KEY), epoch)
    assert store._db.execute("pragma synchronous").fetchone() == (2,)  # full
    store.close()


def test_a_message_without_a_key_is_a_dead_letter(tmp_path):
    one = learner(tmp_path, LBP(budget=4), dead_letters="dead")
    for n, key in enumerate((None, 1.5, True, "x" * 2000)):
        [letter] = one.take(message(n, key))
        assert letter.topic == "dead"
        assert dict(letter.headers)["drift.error"].startswith(b"customer.id is ")
    assert (one.metrics.dead_letters, len(one.models)) == (4, 0)
    [prediction] = one.take(message(4, "ann"))
    assert prediction.topic == "out"


def test_a_model_that_cannot_be_read_stops_its_key_alone(tmp_path):
    one = learner(tmp_path, LBP(budget=4), most=1, dead_letters="dead")
    for n, key in enumerate("abcdef"):
        one.take(message(n, key))
    execute = one.models._store._db.execute
    execute("update models set state = x'00' where key = 'b'")
    topics = [one.take(message(9 + n, key))[0].topic for n, key in enumerate("abcb")]
    assert topics == ["out", "dead", "out", "dead"]
    [letter] = one.take(message(20, "b"))
    error = dict(letter.headers)["drift.error"].decode()
    assert error.startswith("customer.id 'b' has a model that cannot be read (it is damaged")
    assert error.endswith("roll back, or delete its rows in models.sqlite, and it starts anew")
    execute("delete from models where key = 'b'")
    [prediction] = one.take(message(21, "b"))
    assert prediction.topic == "out"


def test_no_message_of_a_worker_that_was_fenced_is_a_dead_letter(tmp_path, monkeypatch):
    one = learner(tmp_path, LBP(budget=4), dead_letters="dead")

    def load(_):
        raise FencedError("claimed again since")

    monkeypatch.setattr(one.models._store, "load", load)
    with pytest.raises(FencedError):
        one.take(message(0, "a"))
    assert one.metrics.dead_letters == 0


#: As of Linux: id, parent, device, root, where it is mounted, options, and what is mounted.
MOUNTS = """\
22 1 0:1 / / rw - ext4 /dev/sda1 rw
23 22 0:2 / HERE rw,relatime shared:7 - nfs4 10.0.0.1:/a rw
24 23 0:3 / HERE/ours\\040here rw - xfs /dev/sdb1 rw
25 23 0:4 / HERE/x rw - ext4 /dev/sdc1 rw
26 25 0:5 / HERE/x rw - fuse.sshfs one@other: rw
27 23 0:6 / HERE/y rw - fuse.mine mine rw
"""


def test_a_file_system_of_another_machine_is_told_by_where_it_is_mounted(tmp_path, monkeypatch):
    monkeypatch.setattr(mounts, "_MOUNTS", tmp_path / "mounts")
    assert mounts.network_file_system(tmp_path) is None  # as no other system lists them
    (tmp_path / "mounts").write_text(MOUNTS.replace("HERE", str(tmp_path)))
    kinds = {"": "nfs4", "new/a": "nfs4", "ours here/a": None, "x": "fuse.sshfs", "xy": "nfs4"}
    for name, kind in kinds.items():
        assert mounts.network_file_system(tmp_path / name) == kind
    assert mounts.network_file_system(tmp_path / "y" / "a") is None
    assert mounts.network_file_system(tmp_path.parent) is None
    (tmp_path / "link").symlink_to(tmp_path / "x")
    assert mounts.network_file_system(tmp_path / "ours here" / ".." / "link") == "fuse.sshfs"


def test_what_takes_one_model_refuses_keys(tmp_path, monkeypatch):
    codec, folder = JsonCodec(key="customer"), CheckpointFolder(tmp_path)
    options = WorkerOptions(topic="t", group="g")
    late = WorkerOptions(topic="t", group="g", labels="l")
    with pytest.raises(ParameterError, match="labels have to be in the messages, without"):
        prepared(LBP(3), folder, late, codec)
    with pytest.raises(ParameterError, match="without --partition"):
        prepared(LBP(3), folder, WorkerOptions(topic="t", group="g", partition=1), codec)
    objects = CheckpointFolder(ObjectPath("bucket", "c"))
    with pytest.raises(ParameterError, match=r"s3://bucket/c: .*Quix.*Spark, docs/engines.md"):
        prepared(LBP(3), objects, options, codec)
    with monkeypatch.context() as patch:
        (tmp_path / "mounts").write_text(MOUNTS.replace("HERE", str(tmp_path)))
        patch.setattr(mounts, "_MOUNTS", tmp_path / "mounts")
        with pytest.raises(ParameterError, match=rf"and {tmp_path} is on nfs4, where a file of S"):
            prepared(LBP(3), folder, options, codec)
    with pytest.raises(ParameterError, match="labels come at once: leave late=True out"):
        prepared(Tracker(3, late=True), folder, options, codec)
    with pytest.raises(ParameterError, match="labels come at once: leave late=True out"):
        prepared(preprocessing.StandardScaler() | Tracker(3, late=True), folder, options, codec)
    with pytest.raises(ParameterError, match="a shadow takes one model, and each key has one"):
        prepared_shadow(LBP(3), folder, options, codec)
    with pytest.raises(ParameterError, match="a history takes one model"):
        warm(LBP(3), folder, options, [], {}, codec=codec)
    with pytest.raises(ParameterError, match="relearn takes one model"):
        relearn(LBP(3), {}, [], options, codec)


def test_one_model_and_models_of_keys_do_not_go_on_from_each_other(tmp_path):
    folder = CheckpointFolder(tmp_path)
    one = Claimed(folder, 9, {})
    one.prepare()()
    options = WorkerOptions(topic="t", group="g")
    prepared(LBP(3), folder, options, JsonCodec(key="c"))
    with pytest.raises(ConfigurationError, match="keyed"):
        folder.claim(KEY)
    with pytest.raises(ConfigurationError, match="1-1 has a model for each key: continue so, or"):
        Learner(None, JsonCodec(), Metrics("t", 0), options).restore(
            CheckpointFolder(tmp_path).newest(KEY)
        )
