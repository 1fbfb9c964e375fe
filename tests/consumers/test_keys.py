"""`drift keys`: what is stored of a key, and that a deleted one does not come back."""

import errno
import json
import os
import re
import shutil
import sqlite3
from contextlib import closing, suppress
from copy import deepcopy
from itertools import islice, product
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from river import naive_bayes

from drift.cli import app
from drift.consumers import CheckpointFolder, WorkerOptions
from drift.consumers.checkpoints import keyed_file, stored_keys
from drift.consumers.checkpoints.files import newest
from drift.consumers.checkpoints.keyed_file import Row
from drift.consumers.checkpoints.keyed_store import ModelStore
from drift.consumers.checkpoints.rollback import plan
from drift.consumers.checkpoints.stored_keys import KeyFacts, StoredKeys
from drift.consumers.json_codec import JsonCodec
from drift.consumers.keyed import KeyedLearner
from drift.consumers.keyed_models import KeyedModels
from drift.consumers.metrics import Metrics
from drift.consumers.records import Message, Position
from drift.errors import CheckpointError, ConsumerError
from drift.models import LBP, from_bytes
from drift.models._state.codec import encode
from drift.testing import Abort, Aborted
from tests.consumers.claimed import KEY, Claimed, example
from tests.crash_points import CHECKPOINT_POINTS, MODELS_POINTS

pytestmark = pytest.mark.usefixtures("stores")

#: Milliseconds since 1970 at which the tests begin.
NOW = 1_790_000_000_000
CODEC = JsonCodec(key="customer")


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """The time at which keys are deleted."""

    class Clock:
        now = NOW / 1000

        def time(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(stored_keys, "time", clock)
    monkeypatch.setattr(stored_keys, "_AT_ONCE", 2)
    monkeypatch.setattr(ModelStore, "at_once", 2)
    return clock


def stored(folder, warn=pytest.fail):
    """The models of the only partition, as the command finds them."""
    [(partition, header)] = newest(folder.path)
    return StoredKeys(partition, header["models"], warn)


def listed(folder, warn):
    """What the command lists, and says of it; it ends."""
    one = stored(folder, warn)
    found = [*islice(one, 9)]
    with suppress(CheckpointError):
        one.check()
    return found


def message(offset, key, time, *, label=True, headers=(), **features):
    value = {"features": features or {"a": 1.0}, "label": label, "customer": key}
    return Message(Position("t", 0, offset), None, json.dumps(value).encode(), headers, time)


class Keyed:
    """What a worker does with a learner of keys, and a message for each `(key, seconds)`."""

    def __init__(self, folder, *, model=None, most=9, **options):
        self.folder = folder
        self.epoch, checkpoint = folder.claim(KEY)
        lineage = () if checkpoint is None else checkpoint.models
        self.store = ModelStore(folder.folder(KEY), self.epoch, lineage, secret=folder.secret)
        settings = WorkerOptions(topic="t", group="g", **options)
        self.models = KeyedModels(self.store, most, allow_pickle=True, expire=settings.expire)
        made = LBP(budget=3) if model is None else model
        self.learner = KeyedLearner(made, CODEC, Metrics("t", 0), settings, self.models)
        self.learner.start({KEY: 0})
        if checkpoint is not None:
            self.learner.restore(checkpoint)
        self.learner.epoch = self.epoch
        if not self.learner.configuration:
            self.learner.configuration = {"keyed": "customer", "keyed.prior": settings.prior}

    def take(self, *messages):
        sent = []
        for one in messages:
            sent += self.learner.take(one)
        return sent

    def save(self):
        learner = self.learner
        prepared = self.folder.prepare(KEY, learner.snapshot(), keyed=learner.prepare_models())
        return prepared().id

    def examples(self):
        return {facts.key: facts.examples for facts in stored(self.folder)}


def at(offset, key, seconds, **more):
    return message(offset, key, NOW + 1000 * seconds, **more)


def test_what_is_stored_of_each_key_is_listed_as_of_the_newest_checkpoint(tmp_path):
    folder = CheckpointFolder(tmp_path)
    one = Keyed(folder, most=1)
    one.take(at(0, "b", 1), at(1, "", 2), at(2, "b", 3, label=None), at(3, "a", 4), at(4, "b", 5))
    one.save()
    one.take(at(5, 7, 6), at(6, "b", 7), at(7, "ü", 8))
    one.save()
    one.take(at(8, "late", 9), at(9, "b", 10), at(10, "x", 11), at(11, "y", 12))
    assert one.store.load("late") is not None
    with closing(sqlite3.connect(one.store.path)) as db:
        sizes = dict(db.execute("select key, sum(length(state)) from models group by key"))
        counts = dict(db.execute("select key, count(*) from models group by key"))
    assert counts["b"] == 3
    assert [*stored(folder)] == [
        KeyFacts(key, examples, NOW + 1000 * seconds, sizes[key], counts[key])
        for key, examples, seconds in [
            ("", 1, 2),
            ("7", 1, 6),
            ("a", 1, 4),
            ("b", 3, 7),
            ("ü", 1, 8),
        ]
    ]
    assert stored(folder).facts("late") is None


def four_keys(path):
    """The folder of a worker that has learnt four keys, and ended."""
    folder = CheckpointFolder(path)
    one = Keyed(folder)
    one.take(*(at(n, name, n) for n, name in enumerate(["key-a", "key-b", "key-c", "key-d"])))
    one.save()
    one.store.close()
    return folder, one.store.path


def flips(path, bits):
    """Yield after each flip of one of these bits, counted from a key in table and index."""
    whole = path.read_bytes()
    places = [place.start() for place in re.finditer(b"key-b", whole)]
    assert len(places) == 2
    for place, bit in product(places, bits):
        damaged = bytearray(whole)
        damaged[place + bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        yield
    path.write_bytes(whole)


@pytest.mark.parametrize("size", [1, 1000])
def test_no_bit_of_a_row_is_flipped_without_a_word(tmp_path, monkeypatch, size):
    """The list ends, too, where a search in the index goes astray."""
    monkeypatch.setattr(stored_keys, "_AT_ONCE", size)
    folder, path = four_keys(tmp_path)
    whole, warned, refused = [*stored(folder)], 0, []
    for _ in flips(path, range(-8 * 8, 20 * 8, 3)):
        lines = []
        try:
            found = listed(folder, lines.append)
        except ConsumerError as error:
            refused.append(str(error))
            continue
        warned += bool(lines)
        assert lines or found == whole
        assert len(found) < 9
        assert all(
            re.search(r"models\.sqlite: row \d+, of .*: it is damaged", line) for line in lines
        )
    assert all("bring the checkpoints' folder back as a whole" in error for error in refused)
    assert all("t-0/models.sqlite: " in error for error in refused)
    assert min(warned, len(refused)) > 16


def test_whichever_bit_of_a_row_is_flipped_no_other_model_is_read(tmp_path):
    """Nor is one taken for a new key without a word in the list."""
    folder, path = four_keys(tmp_path)
    keys = ["key-a", "key-b", "key-c", "key-d"]
    whole = {key: stored(folder).load(key, None) for key in keys}
    refused, lost = 0, 0
    for _ in flips(path, range(-12 * 8, 30 * 8, 3)):
        for key in keys:
            try:
                found = stored(folder).load(key, None)
            except (CheckpointError, ConsumerError):
                refused += 1
                continue
            assert found in (whole[key], None)
            if found is None:
                lines = []
                with suppress(ConsumerError):
                    listed(folder, lines.append)
                    assert lines
                lost += 1
    assert min(refused, lost) > 33


def test_rows_out_of_order_end_a_worker_with_the_file_and_the_remedy(tmp_path):
    folder, path = four_keys(tmp_path)
    refused = r"t-0/models\.sqlite: its rows are out of order: bring the checkpoints' folder back"
    data = bytearray(path.read_bytes())
    size = int.from_bytes(data[16:18], "big")  # of a page, by SQLite's file format
    for page in range(size, len(data), size):
        if data[page] == 13 and b"key-b" in data[page : page + size]:  # a leaf of a table
            first, second = slice(page + 8, page + 10), slice(page + 10, page + 12)
            data[first], data[second] = data[second], data[first]
            break
    path.write_bytes(data)
    with pytest.raises(ConsumerError, match=refused):
        stored(folder, lambda _: None).check()
    one = Keyed(folder)
    one.take(at(4, "key-a", 4))
    one.save()
    one.take(at(5, "key-a", 5))
    with pytest.raises(ConsumerError, match=refused):
        one.save()


@pytest.mark.parametrize("damage", ["x'62'", "null", "7"])
def test_a_key_that_is_no_text_any_more_keeps_no_other_from_being_deleted(tmp_path, damage):
    folder, path = four_keys(tmp_path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("pragma writable_schema = on")
        db.execute("update sqlite_schema set sql = replace(sql, 'key text not null', 'key')")
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(f"update models set key = {damage} where key = 'key-b'")  # noqa: S608
    lines = []
    assert [facts.key for facts in listed(folder, lines.append)] == ["key-a", "key-c", "key-d"]
    assert len(lines) == 1
    assert re.search(r"models\.sqlite: row \d, of ", lines[0])
    assert stored(folder).delete("key-a") == 1
    one = Keyed(folder)
    one.take(at(4, "key-c", 4))
    one.save()
    found = listed(folder, lines.append)
    assert [(facts.key, facts.examples) for facts in found] == [("key-c", 2), ("key-d", 1)]


def test_nothing_of_a_deleted_key_is_left_in_the_folder_but_its_hash(tmp_path):
    folder = CheckpointFolder(tmp_path)
    one = Keyed(folder, most=1, prior=False)
    for n in range(4):
        one.take(at(2 * n, "anna", n, illness=1.0), at(2 * n + 1, "bob", n))
        one.save()
    one.models.evict()

    def found():
        return [
            word
            for word in (b"anna", b"illness")
            if any(word in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
        ]

    assert found() == [b"anna", b"illness"]
    assert stored(folder).delete("anna") == 4
    one.save()
    one.store.close()
    assert found() == []
    assert one.examples() == {"bob": 4}


def test_a_worker_drops_a_deleted_key_wherever_it_has_it(tmp_path, clock):
    """Changed in memory, written since, about to be written, or new."""
    for most in (1, 2, 9):
        folder = CheckpointFolder(tmp_path / str(most))
        one = Keyed(folder, most=most)
        one.take(*(at(n, key, n) for n, key in enumerate("abcd")))
        one.save()
        one.take(at(4, "a", 4), at(5, "e", 5))
        clock.now = NOW / 1000 + 6
        for key in "aeb":
            stored(folder).delete(key)
        one.take(at(6, "a", 6), at(7, "c", 7), at(8, "d", 8), at(9, "c", 9))
        one.save()
        assert one.examples() == {"c": 3, "d": 2}
        assert one.models.count == 2
        assert [one.models.get(key) for key in "abe"] == [None, None, None]
        # Of what was sent before the checkpoint that obeyed, nothing is learnt again.
        one.take(at(10, "a", 9), at(11, "b", 9, label=None), at(12, "a", 10), at(13, "a", 11))
        one.save()
        assert one.examples() == {"a": 2, "c": 3, "d": 2}
        assert one.models.count == 3


def test_what_was_sent_before_is_predicted_and_not_learnt_by_the_prior_either(tmp_path):
    folder = CheckpointFolder(tmp_path)
    one = Keyed(folder, predictions="out")
    one.take(at(0, "b", -9))
    one.save()
    stored(folder).delete("a")
    one.save()
    before = encode(one.learner.model)
    [sent] = one.take(at(1, "a", 0))
    assert json.loads(sent.value)["label"] is None
    assert encode(one.learner.model) == before
    assert (one.learner.metrics.unlabelled, one.models.get("a")) == (1, None)
    one.take(at(2, "a", 1))
    assert one.models.get("a").n_supports == 1
    # A dead letter that is sent again has its first time in a header.
    one.take(at(3, "a", 5, headers=[("drift.replayed.timestamp", b"%d" % NOW)]))
    one.take(message(4, "a", None))
    one.save()
    assert one.examples() == {"a": 1, "b": 1}


def test_a_key_that_is_deleted_again_is_not_learnt_from_before_the_first_time(tmp_path):
    """Where the clock of the log is ahead of ours."""
    folder = CheckpointFolder(tmp_path)
    one = Keyed(folder)
    one.take(at(0, "a", 60))
    one.save()
    stored(folder).delete("a")
    one.save()
    assert one.models.is_deleted("a", NOW + 60_000)
    stored(folder).delete("a")
    one.store.close()
    assert Keyed(folder).models.is_deleted("a", NOW + 60_000)


@pytest.mark.parametrize("back", [False, True])
def test_a_deleted_key_comes_back_by_no_replay(tmp_path, back):
    """The worker dies, or is rolled back: it learns its messages again, as a twin without the key.

    So does the prior, which had learnt the key before.
    """
    log = [at(n, "abac"[n % 4], n, **{f"w{n % 3}": 1.0}) for n in range(30)]
    folder = CheckpointFolder(tmp_path)
    one = Keyed(folder)
    first = one.save()
    one.take(*log[:12])
    one.save()
    one.take(*log[12:20])
    stored(folder).delete("a")
    one.take(*log[20:22])
    if back:
        one.save()
        plan(folder._files(KEY), first).write(None)
    one.store.close()
    two = Keyed(folder)
    start = 0 if back else 12
    assert two.learner.offsets == {KEY: start}
    # The log's time as the deletion was obeyed: that of its last message, or of the checkpoint.
    obeyed = NOW + 1000 * (21 if back else 0)
    two.save()
    two.take(*log[start:])
    two.save()
    own, prior = {}, LBP(budget=3)
    for sent in log:
        features, label, *_, key = CODEC.decode(sent.value)
        is_first = start == 12 and sent.position.offset < 12
        if key == "a" and not is_first and sent.timestamp <= max(obeyed, NOW + 11_000 * (not back)):
            continue
        prior.learn_one(features, label)
        if key == "a" and is_first:
            continue
        if key in own:
            own[key].learn_one(features, label)
        else:
            own[key] = deepcopy(prior)
    assert {key: encode(two.models.get(key)) for key in "abc"} == {
        key: encode(model) for key, model in own.items()
    }
    assert encode(two.learner.model) == encode(prior)


KEYS = st.sampled_from("abcd")
LEARN = st.tuples(KEYS, st.integers(0, 29))
POINTS = [None, *MODELS_POINTS[1:], *CHECKPOINT_POINTS]


@settings(max_examples=15)
@given(
    st.lists(
        st.tuples(st.lists(LEARN, max_size=6), KEYS, st.lists(LEARN, max_size=6), st.booleans())
        | st.tuples(st.lists(LEARN, max_size=6), st.sampled_from(POINTS)),
        max_size=6,
    ),
    st.integers(1, 4),
)
def test_whatever_is_written_while_keys_are_deleted_they_are_gone(tmp_path_factory, steps, most):
    """With crashes and rollbacks: the others' models are those of a plain dict."""
    folder = CheckpointFolder(tmp_path_factory.mktemp("c"))
    expected = {}
    one = Claimed(folder, most, expected)
    one.prepare()()
    for step in steps:
        for learn in step[0]:
            one.learn(*learn)
        if len(step) == 2:
            with Abort(step[1] or "message.taken"), suppress(Aborted):
                one.prepare()()
            one.store.close()
            newer = folder.newest(KEY).id
            expected.setdefault(newer, dict(one.twin))
            one = Claimed(folder, most, expected)
            continue
        _, key, others, crashes = step
        write = one.prepare()  # the rows of which may come after the deletion
        stored(folder).delete(key)
        for other, number in others:
            if other != key:
                one.learn(other, number)
                continue
            model = one.models.get(key) or LBP(budget=3)
            model.learn_one(*example(number))
            one.models.changed(key, model, time=number)
            one.models.evict()
        write()
        if crashes:
            one.store.close()
            one = Claimed(folder, most, expected)
        one.twin.pop(key, None)
        one.prepare()()
        for was in expected.values():
            was.pop(key, None)
        assert one.models.count == len(one.twin)
    one.check()
    for checkpoint in [f"{e}-{s}" for e, s in folder._files(KEY).listing().checkpoints][:-1]:
        one.store.close()
        expected[plan(folder._files(KEY), checkpoint).write(None)] = expected[checkpoint]
        one = Claimed(folder, most, expected)
        one.check()
        for key in set("abcd") - one.twin.keys():
            assert one.models.get(key) is None
    one.store.close()


def test_what_cannot_be_read_of_deletions_costs_a_checkpoint(tmp_path):
    one = Keyed(CheckpointFolder(tmp_path))
    one.save()
    one.take(at(0, "a", 0))
    one.store._db.execute("alter table deleted rename to elsewhere")
    with pytest.raises(CheckpointError, match=r"models\.sqlite: no such table"):
        one.save()
    one.store._db.execute("alter table elsewhere rename to deleted")
    one.save()
    assert one.examples() == {"a": 1}


# --- keys that expire -----------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [True, False])
@pytest.mark.parametrize("most", [1, 9])
@pytest.mark.parametrize("crash", [False, True])
def test_a_key_that_learns_nothing_for_too_long_begins_anew(tmp_path, most, prior, crash):
    """By the time of the log: the same with one model in memory or all, through a crash."""
    times = [0, 10, 20, 70, 71, 72, 130, 190, 192, 193, 250, 252]
    log = [at(n, "abca"[n % 4], seconds, **{f"w{n}": 1.0}) for n, seconds in enumerate(times)]
    folder, settings = CheckpointFolder(tmp_path), {"most": most, "prior": prior, "expire": 60.0}
    one = Keyed(folder, **settings)
    one.save()
    for n, sent in enumerate(log):
        one.take(sent)
        if n % 3 == 2:
            one.save()
        if crash and n in {4, 6, 9}:
            one.store.close()
            one = Keyed(folder, **settings)
            one.take(*log[one.learner.offsets[KEY] : n + 1])
    own, last, topic = {}, {}, LBP(budget=3)
    for n, sent in enumerate(log):
        features, label, *_, key = CODEC.decode(sent.value)
        if times[n] - last.get(key, times[n]) > 60:
            del own[key]
        last[key] = times[n]
        topic.learn_one(features, label)
        if key in own:
            own[key].learn_one(features, label)
        else:
            own[key] = deepcopy(topic) if prior else LBP(budget=3)
            if not prior:
                own[key].learn_one(features, label)
    alive = {key for key in own if times[-1] - last[key] <= 60}
    found = {key: one.models.get(key, log[-1].timestamp) for key in own}
    assert {key: model and encode(model) for key, model in found.items()} == {
        key: encode(own[key]) if key in alive else None for key in own
    }


def test_expired_keys_leave_memory_and_file(tmp_path):
    folder = CheckpointFolder(tmp_path)
    one = Keyed(folder, most=2, expire=60.0)
    one.take(*(at(n, key, n) for n, key in enumerate("bcdea")))
    one.save()
    one.take(at(5, "a", 63))
    one.save()
    assert one.examples() == {"a": 2, "b": 1, "c": 1, "d": 1, "e": 1}
    one.take(at(6, "a", 64))
    one.save()  # by the time of the checkpoint before: 63 s
    assert one.examples() == {"a": 3, "e": 1}
    one.take(at(7, "a", 65))
    one.save()
    assert one.models.count == 2
    one.take(at(8, "a", 70))
    one.save()
    assert one.examples() == {"a": 5}
    one.save()
    assert (one.models.count, len(one.models)) == (1, 1)


def test_a_key_that_comes_back_as_the_idle_ones_are_removed_stays(tmp_path, monkeypatch):
    store = ModelStore(tmp_path, epoch=1)
    store.write(store.version, {key: Row(b"old", "drift", time=1_000) for key in "abcd"})
    store.advance()
    begin, back = store._transaction, Row(b"new", "drift", time=99_000)

    def transaction(version=0):  # the worker's own thread comes before that which removes them
        monkeypatch.setattr(store, "_transaction", begin)
        store.write(store.version, {"d": back})
        return begin(version)

    monkeypatch.setattr(store, "_transaction", transaction)
    assert store.expire(5_000)
    assert [store.load(key) for key in "abcd"] == [None, None, None, back]
    store.close()


# --- the command ----------------------------------------------------------------------------------


@pytest.fixture
def drift(tmp_path, monkeypatch):
    """The command line, beside the models of two customers."""
    monkeypatch.chdir(tmp_path)
    one = Keyed(CheckpointFolder("c"))
    one.take(at(0, "c7", 0), at(1, "c7", 3600), at(2, "c8", 7200))
    one.save()
    one.store.close()
    return lambda *given, **more: CliRunner().invoke(app, ["keys", "c", *given], **more)


def test_the_command_lists_and_shows(drift):
    answer = drift()
    assert answer.exit_code == 0
    first, second = answer.output.splitlines()
    assert first.startswith("c/t-0  c7  2 examples  last 2026-09-21T15:13:20+00:00  ")
    assert first.endswith(" bytes in 1 version")
    assert second.startswith("c/t-0  c8  1 example  last 2026-09-21T16:13:20+00:00  ")
    entry = json.loads(drift("--json").output.splitlines()[1])
    assert entry.pop("size") > 100
    assert entry == {
        "folder": "c/t-0",
        "key": "c8",
        "examples": 1,
        "time": "2026-09-21T16:13:20+00:00",
        "versions": 1,
    }
    shown = drift("show", "c7").output
    assert shown.startswith(first)
    assert "budget=3" in shown
    assert shown.endswith("1 support vector\n")


def test_the_command_exports_a_model_for_python(drift, tmp_path):
    answer = drift("export", "c7", "--to", "c7.model")
    assert answer.output == "c7.model: the model of c7, for drift.models.from_bytes\n"
    model = from_bytes((tmp_path / "c7.model").read_bytes())
    assert model.predict_one({"a": 1.0}) is True
    assert "give the file to write, --to FILE" in drift("export", "c7").output


def test_the_command_deletes(drift):
    answer = drift("delete", "c7", input="n\n")
    assert answer.output.endswith("Delete c7? [y/N]: n\nnothing was changed\n")
    assert len(drift().output.splitlines()) == 2
    answer = drift("delete", "c7", "--yes")
    assert answer.exit_code == 0
    assert "c/t-0: 1 version deleted; what was sent of it up to now is not" in answer.output
    assert (
        "the prior has learnt its messages, too, these 2 examples and any before" in answer.output
    )
    assert len(drift().output.splitlines()) == 1
    again = drift("delete", "c7", "--yes")
    assert again.exit_code == 0
    assert "no checkpoint has a model of c7; a worker may have a new one" in again.output


def test_the_command_refuses_what_it_cannot_do(drift, tmp_path):
    for words, why in (
        (("delete",), "which key? drift keys c delete KEY"),
        (("show", "c9"), "c has no model of 'c9'"),
        (("show", ""), "c has no model of ''"),  # a key like any other
        (("export", "c7", "--to", ""), "--to must not be empty"),
        (("sow", "c7"), "ACTION cannot be 'sow': did you mean 'show'?"),
        (("show", "c7", "--key-file", "secret"), "secret: No such file"),
    ):
        answer = drift(*words)
        assert answer.exit_code == 2
        assert why in answer.output
    (tmp_path / "secret").write_text("hunter2")
    answer = drift("show", "c7", "--key-file", "secret")
    assert answer.output.startswith("error: c/t-0/models.sqlite: the model of 'c7': it is damaged")
    assert "not signed with this key: give the file of the key, --key-file" in answer.output
    CheckpointFolder("one").claim(KEY)
    CheckpointFolder("one").save(KEY, 1, LBP(3), {KEY: 0})
    answer = CliRunner().invoke(app, ["keys", "one"])
    assert "one/t-0 has no models of keys" in answer.output


def test_a_pickled_model_is_exported_as_it_is_and_not_loaded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = CheckpointFolder("c", allow_pickle=True)
    one = Keyed(folder, model=naive_bayes.GaussianNB())
    one.take(at(0, "c7", 0))
    one.save()
    monkeypatch.setattr("pickle.loads", None)
    assert (
        "GaussianNB, a pickle that was not loaded"
        in CliRunner().invoke(app, ["keys", "c", "show", "c7"]).output
    )
    answer = CliRunner().invoke(app, ["keys", "c", "export", "c7", "--to", "m"])
    assert answer.output == "m: the model of c7, for pickle.loads, which runs what is in it\n"
    assert (tmp_path / "m").read_bytes() == one.store.load("c7").state


LOST = r"warning: c/t-0/models\.sqlite: row \d, of 'c7': it is damaged, or its entry in the index"


def lose_c7():
    """Damage what finds a row in the index, which is behind the table."""
    path = CheckpointFolder("c").folder(KEY) / "models.sqlite"
    data = path.read_bytes()
    last = data.rindex(b"c7")
    path.write_bytes(data[:last] + b"c6" + data[last + 2 :])
    return path


def test_the_command_names_rows_that_no_search_finds(drift):
    path = lose_c7()
    for words in ((), ("show", "c7"), ("delete", "c7", "--yes")):
        answer = drift(*words)
        assert re.match(LOST, answer.stderr), words
        assert answer.stderr.endswith("error: c/t-0/models.sqlite: 1 row that no search finds\n"), (
            words
        )
        assert answer.exit_code == 2
    assert b"c7" in path.read_bytes()
    assert "of 'c7'" not in drift("show", "c9").stderr  # what is of another key
    assert drift("delete", "c8", "--yes").exit_code == 0


def test_what_is_sound_is_listed_before_the_command_fails(drift):
    lose_c7()
    shutil.copytree("c/t-0", "c/t-1")
    answer = drift("--json")
    assert answer.exit_code == 2
    listed = [(one["folder"], one["key"]) for one in map(json.loads, answer.stdout.splitlines())]
    assert ("c/t-0", "c8") in listed
    assert ("c/t-1", "c8") in listed
    assert "t-0/models.sqlite: 1 row that no search finds; c/t-1/" in answer.stderr


def test_a_key_is_deleted_in_all_partitions_whatever_is_found_in_one(drift):
    shutil.copytree("c/t-0", "c/t-1")
    lose_c7()
    answer = drift("delete", "c7", "--yes")
    assert answer.exit_code == 2
    assert "c/t-0: 0 versions deleted" in answer.output
    assert "c/t-1: 1 version deleted" in answer.output
    assert b"c7" not in (CheckpointFolder("c").path / "t-1" / "models.sqlite").read_bytes()


def test_a_key_is_deleted_beside_a_partition_that_cannot_be_read(drift):
    shutil.copytree("c/t-0", "c/t-1")
    Path("c/t-0/models.sqlite").write_bytes(b"no database" * 1000)
    answer = drift("delete", "c7", "--yes")
    assert answer.exit_code == 2
    assert "c/t-1: 1 version deleted" in answer.output
    assert answer.stderr.startswith("error: c/t-0/models.sqlite: file is not a database")
    assert "no checkpoint has" not in drift("delete", "c7", "--yes").output
    shutil.rmtree("c/t-1")
    answer = drift("delete", "c7", "--yes")
    assert answer.output.startswith("error: c/t-0/models.sqlite: file is not a database")


def verified(*words):
    return CliRunner().invoke(app, ["checkpoint", "verify", "c", *words])


def test_a_backup_that_is_read_only_is_listed_and_verified(drift, monkeypatch):
    def read_only(path, flags, *more, **others):
        if flags & (os.O_RDWR | os.O_WRONLY | os.O_CREAT):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        return opens(path, flags, *more, **others)

    def connect(path, *more, **others):
        modes.add(path.partition("?")[2])
        return connects(path, *more, **others)

    opens, connects, modes = os.open, sqlite3.connect, set()
    monkeypatch.setattr(os, "open", read_only)
    monkeypatch.setattr(os, "access", lambda _, mode: not mode & os.W_OK)
    monkeypatch.setattr(sqlite3, "connect", connect)
    assert "2 models, sound" in verified().output
    assert len(drift().output.splitlines()) == 2
    assert "budget=3" in drift("show", "c7").output
    assert modes == {"mode=ro"}
    answer = drift("delete", "c7", "--yes")
    assert answer.exit_code == 1
    assert answer.stderr.startswith("error: c/t-0/models.sqlite: [Errno 30] Read-only file system")


def test_what_is_locked_in_one_partition_keeps_no_other_from_its_turn(drift, monkeypatch):
    monkeypatch.setattr(keyed_file, "_PATIENCE", 0)
    shutil.copytree("c/t-0", "c/t-1")
    with closing(sqlite3.connect("c/t-0/models.sqlite", isolation_level=None)) as db:
        db.execute("begin immediate")  # as a worker that froze while it was writing
        assert len(drift().output.splitlines()) == 4
        answer = drift("delete", "c7", "--yes")
        assert answer.exit_code == 1
        assert answer.stderr == "error: c/t-0/models.sqlite: database is locked\n"
        assert "c/t-1: 1 version deleted" in answer.output
        db.execute("commit")
        db.execute("begin exclusive")
        for answer in (verified(), drift()):
            assert answer.exit_code == 1
            assert answer.stderr == "error: c/t-0/models.sqlite: database is locked\n"
            assert "c/t-1" in answer.stdout
        Path("c/t-1/models.sqlite").write_bytes(b"no database" * 1000)
        answer = verified()
        assert answer.exit_code == 2  # this one does not pass
        assert "is locked; c/t-1/models.sqlite: file is not a database" in answer.stderr


@pytest.mark.usefixtures("drift")
def test_verify_names_each_model_that_is_not_what_was_written(tmp_path):
    sound = verified()
    assert sound.exit_code == 0
    assert "c/t-0/models.sqlite: 2 models, sound" in sound.output
    (tmp_path / "secret").write_text("hunter2")
    answer = verified("--key-file", "secret")
    assert "c/t-0/models.sqlite: 2 of 2 models cannot be used" in answer.stderr
    path = CheckpointFolder("c").folder(KEY) / "models.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("update models set state = x'00' where key = 'c8'")
    answer = verified()
    assert answer.exit_code == 2
    assert re.search(
        r"warning: c/t-0/models\.sqlite: row \d, of 'c8': it is damaged", answer.stderr
    )
    assert answer.stderr.endswith("c/t-0/models.sqlite: 1 of 2 models cannot be used\n")
    path.write_bytes(b"no database" * 1000)
    assert "models.sqlite: file is not a database" in verified().stderr


def test_models_that_are_signed_are_not_called_sound_without_the_key(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret").write_text("hunter2")
    one = Keyed(CheckpointFolder("c", secret=b"hunter2"))
    one.take(at(0, "c7", 0))
    one.save()
    for words, line in (
        ((), "models.sqlite: signed, and not verified without --key-file"),
        (("--key-file", "secret"), "models.sqlite: 1 model, sound, signed with this key"),
    ):
        answer = verified(*words)
        assert answer.exit_code == 0, answer.output
        assert line in answer.output
