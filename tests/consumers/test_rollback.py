"""Rolling back: which checkpoint, its messages, and what a kill leaves."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from drift.consumers import CheckpointFolder, crash_points
from drift.consumers.checkpoints.adoption import adopt, skip
from drift.consumers.checkpoints.checkpoint import Checkpoint, to_bytes
from drift.consumers.checkpoints.file_format import id_of
from drift.consumers.checkpoints.files import files_in
from drift.consumers.checkpoints.journal import read_order
from drift.consumers.checkpoints.retention import Retention
from drift.consumers.checkpoints.rollback import plan
from drift.consumers.order import Clock
from drift.consumers.records import Position
from drift.errors import CheckpointError, FencedError, ParameterError
from drift.models import LBP
from tests.consumers import killed
from tests.crash_points import ROLLBACK_POINTS

TP = ("news", 0)
#: Noon of 2026-11-20, UTC.
NOON = 1_795_176_000.0


def model(n):
    """A model whose only support says when it was stored."""
    trained = LBP(2)
    trained.learn_one({f"w{n}": 1.0}, True)
    return trained


def write(folder, n, *, epoch=1, minutes=0, join=None, key=None, **more):
    """Write a checkpoint after n messages."""
    checkpoint = Checkpoint(
        model(n),
        {TP: n},
        epoch,
        n // 10,
        metrics={"examples": n},
        time=NOON + 60 * minutes,
        clocks={TP: Clock(1000 * n)},
        leader_epochs={TP: n % 7},
        join=join,
        **more,
    )
    files = files_in(folder.folder(TP))
    files.write(epoch, n // 10, to_bytes(checkpoint, secret=key))


@pytest.fixture(params=["folder", "s3"])
def folder(request, tmp_path):
    """Three checkpoints of an epoch: of noon, five and ten minutes past."""
    root = tmp_path / "root" if request.param == "folder" else request.getfixturevalue("bucket")
    folder = CheckpointFolder(root)
    assert folder.claim(TP).epoch == 1
    for n, minutes in ((10, 0), (20, 5), (30, 10)):
        write(folder, n, minutes=minutes)
    return folder


def files(folder):
    return files_in(folder.folder(TP))


def state(folder):
    """Model, offsets and what else the newest continues with."""
    one = folder.newest(TP)
    [support] = one.model.supports
    [name] = support[0]
    return int(name[1:]), one.offsets[TP], one.clocks[TP].time, one.leader_epochs[TP]


@pytest.mark.parametrize(
    ("to", "target"),
    [
        ("1-1", 10),
        ("1-2", 20),
        ("2026-11-20T12:00", 10),
        ("2026-11-20T12:04:59", 10),
        ("2026-11-20 12:05+00:00", 20),
        ("2026-11-20T13:09:00+01:00", 20),
    ],
)
def test_the_last_one_by_then_is_the_newest_then(folder, to, target):
    written = plan(files(folder), to).write(None)
    assert written == "2-1"
    assert state(folder) == (target, target, 1000 * target, target % 7)
    epoch, checkpoint = folder.claim(TP)
    assert (epoch, checkpoint.id) == (3, "2-1")


@pytest.mark.parametrize(
    ("to", "error", "said"),
    [
        ("1-9", CheckpointError, "no checkpoint 1-9: drift checkpoint list"),
        ("2026-11-20T11:59", CheckpointError, "no checkpoint from 2026-11-20 11:59:00+00:00 or"),
        ("1-3", CheckpointError, r"1-3 of 2026-11-20 12:10:00\+00:00 is the newest: there is"),
        # A day is meant to its end.
        ("2026-11-19", CheckpointError, "no checkpoint from 2026-11-19 23:59:59.999999+00:00 or"),
        ("2026-11-19T00", CheckpointError, "no checkpoint from 2026-11-19 00:00:00+00:00 or"),
        *(
            (day, CheckpointError, "is the newest: there is nothing to roll back")
            for day in ("2026-11-20", "20261120", "2026-W47-5", "2026-11-21")
        ),
        ("yesterday", ParameterError, "'yesterday' is neither a time, as 2026-11-20T08:00, nor"),
    ],
)
def test_what_cannot_be_gone_back_to_is_refused(folder, to, error, said):
    with pytest.raises(error, match=said.replace("+00:00 or", r"\+00:00 or")):
        plan(files(folder), to)
    assert state(folder)[0] == 30
    assert files(folder).listing().epochs == [1]


def test_with_the_offsets_kept_the_old_model_goes_on_where_the_new_one_would(folder):
    plan(files(folder), "1-1", keep_offsets=True).write(None)
    assert state(folder) == (10, 30, 30_000, 30 % 7)
    assert folder.newest(TP).metrics == {"examples": 10}


def test_what_waits_for_its_label_goes_with_the_offsets(tmp_path):
    folder = CheckpointFolder(tmp_path)
    folder.claim(TP)
    for n in (10, 20):
        write(folder, n, join=({"ids": [n]}, b"value" * n))
    plan(files(folder), "1-1", keep_offsets=True).write(None)
    assert state(folder)[:2] == (10, 20)
    assert folder.newest(TP).join == ({"ids": [20]}, b"value" * 20)
    plan(files(folder), "1-1").write(None)
    assert state(folder)[:2] == (10, 10)
    assert folder.newest(TP).join == ({"ids": [10]}, b"value" * 10)


def test_it_says_what_is_learnt_again(tmp_path):
    folder = CheckpointFolder(tmp_path)
    folder.claim(TP)
    write(folder, 10)
    more = Checkpoint(model(3), {TP: 1500, ("news", 1): 7}, 1, 2, {"budget": 1}, time=NOON)
    files(folder).write(1, 2, to_bytes(more))
    path = folder.folder(TP)
    when = "2026-11-20 12:00:00+00:00"
    head = f"{path}: from 1-2 of {when} back to 1-1 of {when}, 10 examples"
    tail = "  it was written under another configuration, which workers need then"
    assert plan(files(folder), "1-1").lines() == [
        head,
        "  news:0 goes back from 1500 to 10: 1,490 messages are learnt again",
        "  news:1 starts at its first offset",
        tail,
    ]
    assert plan(files(folder), "1-1", keep_offsets=True).lines() == [
        head,
        "  news:0 continues at 1500: 1,490 messages before it are not learnt again",
        "  news:1 continues at 7: all before it are not learnt again",
        tail,
    ]


def test_a_rewritten_one_has_its_own_time_and_goes_back_by_time(tmp_path):
    folder = CheckpointFolder(tmp_path)
    folder.claim(TP)
    write(folder, 10, identity={"topic_id": "a", "group": "g"})
    adopt(files(folder), "news", 30, None)
    back = plan(files(folder), "2026-11-20T12:00")
    assert id_of(back.target.header) == "1-1"
    assert "  news:0 goes back from 30 to 10: 20 messages are learnt again" in back.lines()
    adopt(files(folder), "news", 4, None)
    said = "  news:0 goes on from 4 to 10: 6 messages between count as learnt"
    assert said in plan(files(folder), "1-1").lines()
    said = "  news:0 continues at 4: 6 messages are learnt that it may have learnt before"
    assert said in plan(files(folder), "1-1", keep_offsets=True).lines()


def test_it_is_undone_by_going_to_what_was_the_newest(tmp_path):
    folder = CheckpointFolder(tmp_path)
    folder.claim(TP)
    for n in (1785, 2000):
        write(folder, n, identity={"topic_id": "a", "group": "g"})
    plan(files(folder), "1-178").write(None)
    undo = plan(files(folder), "1-200")
    said = "  news:0 goes on from 1785 to 2000: 215 messages between count as learnt"
    assert undo.lines()[1:] == [said]
    undo.write(None)
    assert state(folder)[:2] == (2000, 2000)


@pytest.mark.parametrize("by", ["rollback", "adopt", "skip"])
def test_what_was_done_by_hand_can_be_undone_for_a_day(folder, monkeypatch, by):
    """1-3 was the newest; 2-1 takes its place eleven minutes past noon."""
    now = SimpleNamespace(time=lambda: NOON + 660)
    monkeypatch.setattr("drift.consumers.checkpoints.rewriting.clock", now)
    if by == "rollback":
        plan(files(folder), "1-1").write(None)
    elif by == "adopt":
        adopt(files(folder), "news", 0, None)
    else:
        skip(files(folder), Position(*TP, 35), None)
    epoch, _ = folder.claim(TP)
    rule = Retention(keep=1, keep_ten_minutes=0, keep_hourly=0, keep_daily=0)
    for n, minutes, kept in ((40, 1450, [(1, 3), (2, 1), (3, 4)]), (50, 1451, [(3, 5)])):
        write(folder, n, epoch=epoch, minutes=minutes)
        files(folder).prune(rule, files(folder).listing().checkpoints, {})
        assert files(folder).listing().checkpoints == kept
        if n == 40:
            assert id_of(plan(files(folder), "1-3").target.header) == "1-3"


def test_adopt_is_undone_until_a_worker_has_run(tmp_path):
    folder = CheckpointFolder(tmp_path)
    folder.claim(TP)
    write(folder, 10, identity={"topic_id": "a", "group": "g"})
    adopt(files(folder), "news", 0, None)
    plan(files(folder), "1-1").write(None)
    assert state(folder)[:2] == (10, 10)
    assert folder.newest(TP).identity == {"topic_id": "a", "group": "g"}
    epoch, _ = folder.claim(TP)
    write(folder, 20, epoch=epoch, identity={"topic_id": "b", "group": "g"})
    with pytest.raises(CheckpointError, match=r"1-1 was learnt from another .* \(topic_id\), so"):
        plan(files(folder), "1-1").write(None)


def test_of_a_log_that_was_truncated_nothing_is_said_to_be_learnt_again(tmp_path):
    """Which has the identity that it had: after an adopt, the messages at old offsets are new."""
    folder = CheckpointFolder(tmp_path)
    folder.claim(TP)
    same = {"topic_id": "a", "group": "g"}
    write(folder, 50, identity=same)
    adopt(files(folder), "news", 0, None)
    epoch, _ = folder.claim(TP)
    write(folder, 20, epoch=epoch, identity=same)
    for keep, said in (
        (False, "goes on from 20 to 50: 30 messages between count as learnt"),
        (True, "continues at 20: 30 messages are learnt that it may have learnt before"),
    ):
        back = plan(files(folder), "1-5", keep_offsets=keep)
        assert back.lines()[1:] == [f"  news:0 {said}"]


def test_offsets_of_two_logs_have_no_difference(tmp_path):
    folder = CheckpointFolder(tmp_path)
    folder.claim(TP)
    for n, topic in ((20, "a"), (30, "b")):
        write(folder, n, identity={"topic_id": topic, "group": "g"})
    back = plan(files(folder), "1-2", keep_offsets=True)
    assert back.lines()[1:] == ["  news:0 continues at 30: all before it are not learnt again"]


def test_a_damaged_one_is_passed_over(folder):
    path = files(folder).file(1, 2)
    data = path.read_bytes()
    path.unlink()
    files(folder)._create(path.name, data[:-1])
    said = []
    rollback = plan(files(folder), "2026-11-20T12:06", warn=said.append)
    assert [rollback.target.header["sequence"], len(said)] == [1, 1]
    with pytest.raises(CheckpointError, match="has no checkpoint 1-2"):
        plan(files(folder), "1-2")


def test_a_signed_one_is_signed_again(tmp_path):
    folder = CheckpointFolder(tmp_path, secret=b"key")
    folder.claim(TP)
    for n in (10, 20):
        write(folder, n, key=b"key")
    rollback = plan(files(folder), "1-1")
    for key, said in ((None, "it is signed: give the file"), (b"other", "not to be trusted")):
        with pytest.raises(CheckpointError, match=said):
            rollback.write(key)
    assert files(folder).listing().epochs == [1]
    rollback.write(b"key")
    assert state(folder)[0] == 10


def test_the_offsets_of_another_log_are_not_gone_back_to(tmp_path):
    folder = CheckpointFolder(tmp_path)
    folder.claim(TP)
    for n, topic in ((10, "a"), (20, "b")):
        write(folder, n, identity={"topic_id": topic, "group": "g"})
    with pytest.raises(CheckpointError, match=r"1-1 was learnt from another .* \(topic_id\), so"):
        plan(files(folder), "1-1").write(None)
    plan(files(folder), "1-1", keep_offsets=True).write(None)
    assert folder.newest(TP).identity == {"topic_id": "b", "group": "g"}


# --- others that write meanwhile ---------------------------------------------------------------


def test_a_worker_that_was_frozen_cannot_save_what_it_had(folder):
    plan(files(folder), "1-1").write(None)
    with pytest.raises(FencedError, match="2: drift checkpoint rollback has the partition"):
        folder.save(TP, 1, model(40), {TP: 40})
    assert state(folder)[0] == 10


def test_what_was_written_since_is_not_rolled_back_unsaid(folder):
    rollback = plan(files(folder), "1-1")
    write(folder, 40)
    with pytest.raises(CheckpointError, match="1-4 was written meanwhile, nothing was rolled back"):
        rollback.write(None)
    assert state(folder)[0] == 40


def test_a_checkpoint_that_was_removed_since_is_no_target(folder):
    rollback = plan(files(folder), "1-1")
    files(folder).file(1, 1).unlink()
    with pytest.raises(CheckpointError, match="1-1 was removed meanwhile, nothing was rolled back"):
        rollback.write(None)


@pytest.mark.parametrize("point", ["rollback.claimed", "checkpoint.checked"])
def test_a_worker_that_claims_meanwhile_is_seen(folder, point):
    crash_points.install(point, lambda: folder.claim(TP))
    try:
        with pytest.raises(FencedError, match="claimed again since, our epoch is 2"):
            plan(files(folder), "1-1").write(None)
    finally:
        crash_points.remove(point)
    # Who claims a folder removes what is half written there; an object cannot be taken back.
    is_late = point == "checkpoint.checked" and not isinstance(folder.path, Path)
    assert state(folder)[0] == (10 if is_late else 30)


# --- kills -------------------------------------------------------------------------------------


@pytest.mark.parametrize("point", ROLLBACK_POINTS)
def test_a_kill_leaves_the_old_or_the_new_one(folder, point):
    keep = len(point) % 2 == 1
    killed.kill_at(point, killed.roll_back, str(folder.folder(TP)), keep)
    done = point in {"checkpoint.renamed", "rewrite.written"}
    new = (10, 30) if keep else (10, 10)
    assert state(folder)[:2] == (new if done else (30, 30))
    epoch, checkpoint = folder.claim(TP)
    folder.save(TP, epoch, model(50), {TP: 50}, previous=checkpoint.id)
    assert folder.newest(TP).offsets == {TP: 50}
    if not done:
        plan(files(folder), "1-2").write(None)
        assert state(folder)[0] == 20


def test_every_point_is_reached_in_its_order(folder):
    seen = []
    for point in ROLLBACK_POINTS:
        crash_points.install(point, lambda point=point: seen.append(point))
    try:
        plan(files(folder), "1-1").write(None)
    finally:
        for point in ROLLBACK_POINTS:
            crash_points.remove(point)
    assert seen == [*ROLLBACK_POINTS]


# --- the order ---------------------------------------------------------------------------------


@pytest.fixture
def ordered(tmp_path):
    """Checkpoints with the order of what was learnt."""
    folder, before = CheckpointFolder(tmp_path), None
    epoch, _ = folder.claim(TP)
    for n in (10, 20, 30):
        runs = [{TP: n - 5}, {TP: n}]
        before = folder.save(TP, epoch, model(n), {TP: n}, runs=runs, previous=before).id
    return folder


def test_the_order_goes_on_behind_the_one_that_it_went_back_to(ordered):
    plan(files(ordered), "1-2").write(None)
    epoch, checkpoint = ordered.claim(TP)
    last = ordered.save(TP, epoch, model(31), {TP: 31}, runs=[{TP: 31}], previous=checkpoint.id)
    runs = [5, 10, 15, 20, 31]
    assert read_order(ordered.folder(TP), last.id) == [{TP: n} for n in runs]


def test_no_order_gives_back_a_model_that_has_left_something_out(ordered):
    plan(files(ordered), "1-2", keep_offsets=True).write(None)
    epoch, checkpoint = ordered.claim(TP)
    last = ordered.save(TP, epoch, model(31), {TP: 31}, runs=[{TP: 31}], previous=checkpoint.id)
    with pytest.raises(CheckpointError, match="2-1 has the model of 1-2 and the offsets of 1-3"):
        read_order(ordered.folder(TP), last.id)
    assert len(read_order(ordered.folder(TP), "1-3")) == 6
