"""Messages that end the process whenever they come, and an operator who leaves one out."""

import errno
import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from drift.cli import app
from drift.consumers import CheckpointFolder, WorkerOptions, crash_points, poison
from drift.consumers.checkpoints import adoption
from drift.consumers.checkpoints.files import files_in
from drift.consumers.checkpoints.journal import read_order
from drift.consumers.checkpoints.objects import as_path
from drift.consumers.checkpoints.promotion import promote
from drift.consumers.checkpoints.rollback import plan
from drift.consumers.json_codec import JsonCodec
from drift.consumers.learner import Learner
from drift.consumers.metrics import Metrics
from drift.consumers.poison import PoisonNotes, folder_of_notes
from drift.consumers.records import Message, Position
from drift.consumers.relearning import relearn
from drift.consumers.shadow import Shadow
from drift.errors import CheckpointError, FencedError, UnavailableError
from drift.models import LBP
from drift.models._state.codec import encode
from drift.testing import produce

KEY = ("t", None)
AT = {("t", 0): 5}


def message(offset):
    return Position("t", 0, offset)


def test_deaths_in_other_messages_give_none_up(tmp_path):
    """As of workers that somebody kills again and again."""
    for epoch in range(1, 30):
        notes = PoisonNotes(tmp_path, epoch, AT)
        assert not any(notes.is_given_up(message(n)) for n in range(5, 9))
        notes.note(message(5 + epoch % 3))
    assert [file.name for file in tmp_path.iterdir()] == ["attempt-00000029.json"]


def test_a_worker_that_ends_between_messages_blames_none(tmp_path):
    for epoch in range(1, 9):
        notes = PoisonNotes(tmp_path, epoch, AT)
        assert (notes.is_careful, notes.suspect) == (epoch > 1, None)
        notes.note(message(5))
        notes.note(None)
    notes.saved({("t", 0): 6})
    assert not notes.is_careful
    notes = PoisonNotes(tmp_path, 9, {("t", 0): 6})  # which has died after the checkpoint
    assert (notes.starts, notes.is_careful) == (2, True)
    notes.saved({("t", 0): 8})
    notes.end()
    assert not PoisonNotes(tmp_path, 10, {("t", 0): 8}).is_careful


def test_a_message_that_is_noted_at_its_end_stays_noted(tmp_path):
    notes = PoisonNotes(tmp_path, 1, AT)
    notes.note(message(7))
    notes.end()
    assert PoisonNotes(tmp_path, 2, AT).suspect == message(7)


def test_notes_on_an_object_store_are_in_a_folder_of_this_user(tmp_path, monkeypatch):
    monkeypatch.setattr(poison.tempfile, "gettempdir", lambda: str(tmp_path))
    assert folder_of_notes(tmp_path) == tmp_path
    one, other = (as_path(f"s3://notes/{name}/t-all") for name in "ab")
    found = folder_of_notes(one)
    assert found == folder_of_notes(one) != folder_of_notes(other)
    assert found.parent.stat().st_mode & 0o777 == 0o700
    PoisonNotes(found, 1, AT).note(message(7))
    assert PoisonNotes(folder_of_notes(one), 2, AT).suspect == message(7)
    monkeypatch.setattr(poison.os, "getuid", lambda found=found: 1 + found.stat().st_uid)
    (tmp_path / f"drift-{poison.os.getuid()}").mkdir()  # by somebody else
    assert folder_of_notes(one) is None
    monkeypatch.setattr(poison.tempfile, "gettempdir", lambda: str(tmp_path / "none"))
    assert folder_of_notes(one) is None


def test_a_message_is_suspected_until_a_checkpoint_is_behind_it(tmp_path):
    notes = PoisonNotes(tmp_path, 1, AT)
    notes.note(message(7))
    notes = PoisonNotes(tmp_path, 2, {("t", 0): 6})  # others before it were saved
    assert (notes.suspect, notes.deaths, notes.is_careful) == (message(7), 1, True)
    notes.saved({("t", 0): 7})
    assert notes.is_careful
    notes.note(message(7))
    notes = PoisonNotes(tmp_path, 3, {("t", 0): 7})
    assert (notes.suspect, notes.deaths) == (message(7), 2)
    notes.saved({("t", 0): 8})
    assert (notes.suspect, notes.is_careful) == (None, False)
    notes = PoisonNotes(tmp_path, 4, {("t", 0): 7})
    notes.note(message(7))
    assert PoisonNotes(tmp_path, 5, {("t", 0): 8}).suspect is None  # somebody else took it


@pytest.mark.parametrize(("offset", "deaths"), [(0, 0), (4, 0), (5, 3), (6, 3), (8, 0)])
def test_of_a_log_that_begins_anew_no_message_is_suspected(tmp_path, offset, deaths):
    """As after drift checkpoint adopt --offset 0: it has another message there."""
    for epoch in range(1, 4):
        PoisonNotes(tmp_path, epoch, AT).note(message(7))
    notes = PoisonNotes(tmp_path, 4, {("t", 0): offset, ("t", 1): 9})
    assert notes.deaths == deaths
    assert notes.is_given_up(message(7)) == bool(deaths)
    assert notes.is_careful == bool(deaths)


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "{}", '{"at": 5}', '{"at": [1], "deaths": 1}', "\0"),
        '{"starts": 1, "offsets": [], "at": ["t", 0, "7"], "suspect": null, "deaths": 1}',
    ],
)
def test_a_damaged_note_counts_for_nothing(tmp_path, text):
    (tmp_path / "attempt-00000001.json").write_text(text)
    notes = PoisonNotes(tmp_path, 2, AT)
    assert (notes.starts, notes.suspect, notes.is_careful) == (1, None, False)


def test_a_note_whose_end_is_of_a_longer_one_is_read(tmp_path):
    """As a claim leaves it that dies between writing and cutting off."""
    PoisonNotes(tmp_path, 1, AT).note(message(7))
    with (tmp_path / "attempt-00000001.json").open("a") as file:
        file.write("0}}")
    assert PoisonNotes(tmp_path, 2, AT).suspect == message(7)


def test_a_shorter_note_leaves_nothing_of_the_one_before(tmp_path):
    notes = PoisonNotes(tmp_path, 1, AT)
    notes.note(message(7))
    notes.note(None)
    assert json.loads((tmp_path / "attempt-00000001.json").read_bytes())["at"] is None


@pytest.mark.parametrize("before", [None, message(8)])
def test_a_message_that_ends_while_it_is_named_stays_unnamed(tmp_path, before):
    """The next one may be noted by then, where messages are taken with care."""
    notes = PoisonNotes(tmp_path, 1, AT)
    notes.note(before)
    for lasts, noted in ((False, before), (True, message(7))):
        notes.note_while(lambda lasts=lasts: lasts, message(7))
        written = json.loads((tmp_path / "attempt-00000001.json").read_bytes())["at"]
        assert notes.at == noted == (written and Position(*written))


@pytest.mark.parametrize("step", ["glob", "unlink"])
def test_a_folder_that_cannot_be_cleaned_up_ends_nothing(tmp_path, monkeypatch, step):
    """As one that turns read-only between the claim and the first message."""
    PoisonNotes(tmp_path, 1, AT).note(message(7))

    def refuse(*_given, **_more):
        raise OSError(errno.EROFS, "Read-only file system")

    with monkeypatch.context() as patch:
        patch.setattr(Path, step, refuse)
        patch.setattr(poison, "private", refuse)
        notes = PoisonNotes(tmp_path, 2, AT)
    assert notes.suspect == (None if step == "glob" else message(7))
    assert [file.name for file in tmp_path.iterdir()] == ["attempt-00000001.json"]


# --- workers -------------------------------------------------------------------------------------


def value(n):
    return json.dumps({"features": {f"w{n % 3}": 1.0 + n}, "label": n % 2 == 0, "id": n}).encode()


class Fatal(JsonCodec):
    """Ends the process, or cannot be reached, at one message."""

    error = MemoryError("one message")

    def decode(self, value, headers=()):
        example = super().decode(value, headers)
        if example.id == 7 and self.error is not None:
            raise self.error
        return example


def worker(broker, folder, codec=None, **more):
    pytest.importorskip("kafka")
    from drift.consumers.worker import Worker  # noqa: PLC0415 - needs the client

    options = {"start": "earliest", "dead_letters": "dead", "predictions": "out"} | more
    return Worker(
        LBP(budget=5),
        CheckpointFolder(folder),
        broker.client_args,
        WorkerOptions(topic="t", group="g", **options),
        codec=codec or Fatal(),
        # The mock cluster has who comes after somebody left wait for the session less a second.
        consumer={"session_timeout_ms": 1100, "heartbeat_interval_ms": 200},
    )


def loop(numbers):
    model = LBP(budget=5)
    for n in numbers:
        model.learn_one({f"w{n % 3}": 1.0 + n}, n % 2 == 0)
    return model


def learnt(one):
    return next(iter(one._claims.values())).learner.offsets.get(("t", 0)) == 20


def test_a_message_that_ends_the_process_three_times_is_left_out(broker, tmp_path, caplog):
    """It is named at once; those before it are sent once more, as it has a checkpoint then."""
    from tests.consumers.stepping import close, until  # noqa: PLC0415 - needs the client
    from tests.consumers.topics import everything  # noqa: PLC0415 - needs the client

    for topic in ("t", "dead", "out"):
        broker.create_topic(topic, 1)
    produce(broker, "t", [value(n) for n in range(20)])
    for start in range(1, 4):
        with pytest.raises(MemoryError):
            worker(broker, tmp_path).run(signals=False)
        assert CheckpointFolder(tmp_path).newest(KEY).offsets == {("t", 0): 0 if start < 2 else 7}
    one = worker(broker, tmp_path)
    until(one, lambda: one._claims and learnt(one))
    close(one)
    newest = CheckpointFolder(tmp_path).newest(KEY)
    assert encode(newest.model) == encode(loop([n for n in range(20) if n != 7]))
    log = [Message(message(n), None, value(n)) for n in range(20)]
    order = read_order(tmp_path / "t-all", newest.id)
    again, sent = relearn(LBP(budget=5), {("t", 0): log}, order, one.options)
    assert encode(again.model) == encode(newest.model)
    [relearnt] = (out for out in sent if out.topic == "dead")
    [letter] = everything(broker, "dead")
    for headers in (dict(letter.headers()), dict(relearnt.headers)):
        assert headers["drift.error"] == b"message has ended the worker 3 times"
    assert headers["drift.offset"] == b"7"
    command = f"drift checkpoint skip {tmp_path / 't-all'} t:0:7"
    ends = f"t:0:7 ends the worker: MemoryError('one message'). {command} leaves it out"
    assert caplog.text.count(ends) == 3
    died = "a worker died in message t:0:7, 3 of the 3 times after which it is left out"
    assert f"{died}; sooner by {command}" in caplog.text
    sent = [json.loads(record.value())["id"] for record in everything(broker, "out")]
    assert set(sent) == set(range(20)) - {7}
    assert max(sent.count(n) for n in range(7)) <= 2


def test_a_message_that_was_taken_with_care_is_noted_no_longer(
    broker, tmp_path, monkeypatch, caplog
):
    from tests.consumers.stepping import kill, until  # noqa: PLC0415 - needs the client

    (tmp_path / "t-all").mkdir()
    PoisonNotes(tmp_path / "t-all", 0, {("t", 0): 0})
    monkeypatch.setattr(Fatal, "error", None)
    for topic in ("t", "dead", "out"):
        broker.create_topic(topic, 1)
    produce(broker, "t", [value(n) for n in range(20)])
    one = worker(broker, tmp_path, checkpoint_every=1_000, checkpoint_seconds=3600.0)
    until(one, lambda: one._claims and learnt(one))
    [note] = (tmp_path / "t-all").glob("attempt-*")
    assert json.loads(note.read_text())["at"] is None
    kill(one)
    assert "a worker died 1 time among the messages from t:0:0 on" in caplog.text


class Slow(JsonCodec):
    """Does what a test wants while a message is decoded."""

    def decode(self, value, headers=()):
        example = super().decode(value, headers)
        if example.id == 7:
            self.meanwhile()
        return example


def test_a_message_that_hangs_is_named_while_it_does(broker, tmp_path, caplog):
    from tests.consumers.stepping import kill, until  # noqa: PLC0415 - needs the client

    for topic in ("t", "dead", "out"):
        broker.create_topic(topic, 1)
    produce(broker, "t", [value(n) for n in range(20)])
    slow = Slow()
    one = worker(broker, tmp_path, slow, checkpoint_every=1_000, checkpoint_seconds=3600.0)
    said = []

    def hang():
        one._name_hang()
        assert "kept the worker" not in caplog.text
        polled, one.metrics.polled = one.metrics.polled, -1000.0 - one.metrics.silence
        one._name_hang()
        one._name_hang()
        said.extend(one.metrics.problems())
        [note] = (tmp_path / "t-all").glob("attempt-*")
        said.append(json.loads(note.read_text())["at"])
        one.metrics.polled = polled

    slow.meanwhile = hang
    until(one, lambda: one._claims and learnt(one))
    assert said[0].startswith("no poll for ")
    assert said[0].endswith(" s, amid message t:0:7")
    assert said[-1] == ["t", 0, 7]
    assert caplog.text.count("t:0:7 has kept the worker for ") == 1
    assert f"drift checkpoint skip {tmp_path / 't-all'} t:0:7" in caplog.text
    [note] = (tmp_path / "t-all").glob("attempt-*")
    assert json.loads(note.read_text())["at"] is None  # as it has ended
    kill(one)


def test_a_message_that_ends_as_it_is_named_is_not_blamed(broker, tmp_path, caplog):
    """The worker may end before the next message, and had died in this one then."""
    from tests.consumers.stepping import kill, until  # noqa: PLC0415 - needs the client

    for topic in ("t", "dead", "out"):
        broker.create_topic(topic, 1)
    produce(broker, "t", [value(n) for n in range(20)])
    one = worker(broker, tmp_path, JsonCodec(), checkpoint_every=1_000, checkpoint_seconds=3600.0)
    until(one, lambda: one._claims and learnt(one))
    one.metrics.at, one.metrics.polled = message(19), -1000.0 - one.metrics.silence

    class Meanwhile(logging.Handler):
        def emit(self, _):
            one.metrics.at = None

    handler = Meanwhile()
    logging.getLogger("drift.consumers").addHandler(handler)
    one._name_hang()
    logging.getLogger("drift.consumers").removeHandler(handler)
    assert "t:0:19 has kept the worker for " in caplog.text
    [note] = (tmp_path / "t-all").glob("attempt-*")
    assert json.loads(note.read_text())["at"] is None
    kill(one)


def test_what_cannot_be_reached_is_no_fault_of_the_message(broker, tmp_path, monkeypatch):
    monkeypatch.setattr(Fatal, "error", UnavailableError("the registry is away"))
    for topic in ("t", "dead", "out"):
        broker.create_topic(topic, 1)
    produce(broker, "t", [value(n) for n in range(20)])
    for _ in range(3):
        one = worker(broker, tmp_path)
        monkeypatch.setattr(one, "_save_what_is_left", lambda: None)
        with pytest.raises(UnavailableError):
            one.run(signals=False)
    notes = json.loads(max((tmp_path / "t-all").glob("attempt-*")).read_text())
    assert (notes["starts"], notes["at"], notes["suspect"]) == (0, None, None)


# --- by hand -------------------------------------------------------------------------------------


def skip(*given):
    return CliRunner().invoke(app, ["checkpoint", "skip", *map(str, given)])


def test_an_operator_leaves_a_message_out(tmp_path):
    folder = CheckpointFolder(tmp_path)
    epoch, _ = folder.claim(KEY)
    saved = folder.save(KEY, epoch, LBP(5), {("t", 0): 3}, runs=[{("t", 0): 3}])
    assert skip(tmp_path, "t:0:5").exit_code == 0
    assert skip(tmp_path / "t-all", "t:0:9").exit_code == 0
    with pytest.raises(CheckpointError, match="claimed again since"):
        folder.save(KEY, epoch, LBP(5), {("t", 0): 4})
    found = folder.newest(KEY)
    assert found.skips == [message(5), message(9)]
    assert read_order(folder.folder(KEY), saved.id) == [{("t", 0): 3}]
    one = Learner(
        None,
        JsonCodec(),
        Metrics("t"),
        WorkerOptions(topic="t", group="g", dead_letters="dead"),
    )
    one.restore(found)
    letters = [one.take(Message(message(n), None, value(n))) for n in range(3, 9)]
    assert [len(of) for of in letters] == [0, 0, 1, 0, 0, 0]
    assert one.runs.all().skips == {message(5): "was left out by drift checkpoint skip"}
    headers = dict(letters[2][0].headers)
    assert headers["drift.error"] == b"message was left out by drift checkpoint skip"
    assert encode(one.model) == encode(loop([3, 4, 6, 7, 8]))
    assert one.snapshot().skips == [message(9)]


@pytest.mark.parametrize("back", [None, "1-1"])
def test_what_an_operator_left_out_is_left_out_when_it_is_learnt_again(tmp_path, back):
    folder, before = CheckpointFolder(tmp_path), None
    options = WorkerOptions(topic="t", group="g", dead_letters="dead")
    log = [Message(message(n), None, value(n)) for n in range(9)]

    def learn(upto):
        nonlocal before
        epoch, before = folder.claim(KEY)
        one = Learner(LBP(5), JsonCodec(), Metrics("t"), options)
        if before is not None:
            one.restore(before)
        sent = [out for n in range(upto) for out in one.take(log[n])]
        made = replace(one.snapshot(), epoch=epoch)
        before = folder.prepare(KEY, made, runs=one.runs.all(), previous=before and before.id)()
        return sent

    learn(2)
    learn(4)
    assert skip(tmp_path, "t:0:5").exit_code == 0
    if back:
        plan(files_in(folder.folder(KEY)), back, keep_offsets=False, warn=print).write(None)
    sent = learn(9)
    again, sent_again = relearn(
        LBP(5), {("t", 0): log}, read_order(folder.folder(KEY), before.id), options
    )
    expected = encode(loop([0, 1, 2, 3, 4, 6, 7, 8]))
    assert encode(before.model) == encode(again.model) == expected
    [letter] = sent
    assert [(out.topic, out.value) for out in sent_again] == [("dead", value(5))]
    assert dict(sent_again[0].headers)["drift.error"] == dict(letter.headers)["drift.error"]


def test_no_order_leaves_out_a_message_of_another_log(tmp_path):
    """As the next offset is that of before, and the message is another one."""
    folder = CheckpointFolder(tmp_path)
    folder.save(KEY, folder.claim(KEY).epoch, LBP(5), {("t", 0): 3}, runs=[{("t", 0): 3}])
    assert skip(tmp_path, "t:0:5").exit_code == 0
    given = ["checkpoint", "adopt", tmp_path, "--topic", "t", "--offset", 3]
    assert CliRunner().invoke(app, [*map(str, given)]).exit_code == 0
    with pytest.raises(CheckpointError, match="no order of what checkpoint 3-1 learnt"):
        read_order(folder.folder(KEY), "3-1")


@pytest.mark.parametrize(("offset", "left"), [((), [5]), (("--offset", 0), [])])
def test_of_another_log_no_message_is_left_out(tmp_path, offset, left):
    folder = CheckpointFolder(tmp_path)
    folder.save(KEY, folder.claim(KEY).epoch, LBP(5), {("t", 0): 3})
    assert skip(tmp_path, "t:0:5").exit_code == 0
    given = ["checkpoint", "adopt", tmp_path, "--topic", "t", *offset]
    assert CliRunner().invoke(app, [*map(str, given)]).exit_code == 0
    assert folder.newest(KEY).skips == [message(n) for n in left]


@pytest.mark.parametrize("keep_offsets", [False, True])
def test_a_rollback_leaves_out_what_still_is_to_be(tmp_path, keep_offsets):
    folder = CheckpointFolder(tmp_path)
    epoch, _ = folder.claim(KEY)
    for n in (2, 4):
        folder.save(KEY, epoch, LBP(5), {("t", 0): n}, runs=[{("t", 0): n}])
    assert skip(tmp_path, "t:0:5").exit_code == 0
    files = files_in(folder.folder(KEY))
    made = plan(files, "1-1", keep_offsets=keep_offsets, warn=print).write(None)
    found = folder.newest(KEY)
    assert (found.id, found.skips, found.offsets[KEY[0], 0]) == (
        made,
        [message(5)],
        4 if keep_offsets else 2,
    )


@pytest.mark.parametrize(
    ("which", "said"),
    [
        ("t:0:2", "t:0:2 has been learnt, the next offset is 3: roll back to a checkpoint before"),
        ("t:1:9", "has no checkpoint of t:1: nothing was changed"),
        ("9", "'9' is no message, as orders:3:1207"),
        ("t:0:-1", "'t:0:-1' is no message"),
    ],
)
def test_what_cannot_be_left_out_is_refused(tmp_path, which, said):
    folder = CheckpointFolder(tmp_path)
    folder.save(KEY, folder.claim(KEY).epoch, LBP(5), {("t", 0): 3})
    refused = skip(tmp_path, which)
    assert refused.exit_code == 2
    assert said in " ".join(refused.output.split())
    assert folder.newest(KEY).skips == []
    assert files_in(folder.folder(KEY)).listing().epochs == [1]  # no worker is fenced


@pytest.mark.parametrize(
    "rewrite",
    [
        lambda partition: adoption.skip(partition, message(5), None),
        lambda partition: adoption.adopt(partition, "t", 9, None),
        lambda partition: promote(partition, None),
    ],
)
def test_what_a_worker_may_not_have_seen_is_not_reported_as_done(tmp_path, rewrite):
    folder = CheckpointFolder(tmp_path)
    epoch, _ = folder.claim(KEY)
    shadow = LBP(9), Shadow(None).state()
    folder.save(KEY, epoch, LBP(5), {("t", 0): 3}, shadow=shadow)
    partition = files_in(folder.folder(KEY))
    # It has claimed, and loads the checkpoint before the new one is there.
    crash_points.install("checkpoint.checked", lambda: partition.claim("a worker"))
    try:
        with pytest.raises(FencedError, match="a worker has the partition: drift checkpoint list"):
            rewrite(partition)
    finally:
        crash_points.remove("checkpoint.checked")
