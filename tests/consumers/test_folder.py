"""The folder: who may write to it, and what is left in it after anything goes wrong."""

import builtins
import errno
import hashlib
import logging
import os
import re
import resource
import signal
import stat
import subprocess
import sys
import threading
from contextlib import contextmanager

import numpy as np
import pytest

from drift.consumers import CheckpointFolder, crash_points
from drift.consumers.checkpoints import files
from drift.consumers.checkpoints import folder as folder_module
from drift.consumers.checkpoints.checkpoint import Checkpoint, from_bytes
from drift.consumers.checkpoints.file_format import load, naming
from drift.consumers.checkpoints.files import ModelFolder
from drift.consumers.checkpoints.journal import read_order
from drift.errors import (
    CheckpointError,
    ConfigurationError,
    DamagedCheckpointError,
    FencedError,
    ParameterError,
)
from drift.models import LBP, Tracker
from drift.models._state.codec import encode
from drift.models._tracker.reference_core import TrackerCore
from tests.consumers import killed
from tests.crash_points import CHECKPOINT_POINTS, CLAIM_POINTS
from tests.models.streams import drifting_stream

TP = ("news", 0)
#: No checkpoint is kept for its hour: a test may run as one ends.
LAST = {"keep_ten_minutes": 0, "keep_hourly": 0, "keep_daily": 0}
POINTS = [*CLAIM_POINTS, *CHECKPOINT_POINTS]


STREAM = list(drifting_stream(60))


def model(n):
    """Model after n examples."""
    trained = LBP(5)
    for x, y in STREAM[:n]:
        trained.learn_one(x, y)
    return trained


@pytest.fixture(params=["folder", "s3"])
def root(request, tmp_path):
    """Where checkpoints are to be: a folder of files, or a bucket."""
    if request.param == "folder":
        return tmp_path / "root"
    return request.getfixturevalue("bucket")


@pytest.fixture
def folder(root):
    return CheckpointFolder(root, {"budget": 5}, **LAST)


@pytest.fixture
def local(tmp_path):
    return CheckpointFolder(tmp_path / "root", {"budget": 5})


def save(folder, epoch, n):
    return folder.save(TP, epoch, model(n), {TP: n}, {"examples": n})


def names(folder, tp=TP):
    """The files of a partition, but for those of the order, which last."""
    found = (path.name for path in folder.folder(tp).iterdir())
    return sorted(name for name in found if not name.startswith("order-"))


def newest_of(folder):
    """Offset of the newest checkpoint, whose model and metrics must be those of that offset."""
    checkpoint = folder.newest(TP)
    if checkpoint is None:
        return None
    [n] = checkpoint.offsets.values()
    assert checkpoint.model.supports == model(n).supports
    assert checkpoint.metrics == {"examples": n}
    return n


class Stop(BaseException):
    """What ends a step where a test wants it."""


@contextmanager
def at(point, action):
    crash_points.install(point, action)
    try:
        yield
    finally:
        crash_points.remove(point)


def stop():
    raise Stop


# --- the ordinary way ------------------------------------------------------------------------


def test_there_is_none_at_first(folder):
    assert folder.newest(TP) is None
    assert folder.claim(TP) == (1, None)
    assert folder.newest(TP) is None


def test_the_newest_is_found_by_the_next_claim(folder):
    epoch, _ = folder.claim(TP)
    for n in (10, 20):
        save(folder, epoch, n)
    epoch, checkpoint = folder.claim(TP)
    assert (epoch, checkpoint.id, checkpoint.offsets) == (2, "1-2", {TP: 20})
    assert save(folder, epoch, 30).id == "2-1"
    assert newest_of(folder) == 30


def test_a_file_in_place_of_the_folder_does_not_pass(tmp_path):
    """Else a worker would wait for 30 s, and be started again."""
    (tmp_path / "c").write_text("")
    with pytest.raises(CheckpointError, match=f"^{tmp_path}/c is a file: give another") as raised:
        CheckpointFolder(tmp_path / "c").claim(TP)
    assert raised.value.__cause__ is None


def test_epochs_go_on_from_a_checkpoint_that_is_all_there_is(folder):
    for _ in range(3):
        epoch, _ = folder.claim(TP)
    save(folder, epoch, 10)
    (folder.folder(TP) / f"epoch-{epoch:08d}").unlink()
    assert folder.claim(TP).epoch == 4


def test_the_last_ones_are_kept_and_nothing_else_piles_up(root):
    folder = CheckpointFolder(root, keep=2, **LAST)
    for _ in range(5):
        epoch, _ = folder.claim(TP)
        for n in (1, 2, 3):
            save(folder, epoch, n)
    assert names(folder) == [
        "checkpoint-00000005-0000000002.drift",
        "checkpoint-00000005-0000000003.drift",
        "epoch-00000005",
    ]


def test_partitions_do_not_meet(folder):
    first, second, every = (
        folder.claim((topic, n)).epoch for topic, n in [TP, ("a", 7), ("a", None)]
    )
    save(folder, first, 10)
    folder.save(("a", None), every, model(5), {("a", 0): 3, ("a", 7): 2})
    assert folder.newest(("a", 7)) is None
    assert second == 1
    assert folder.claim(("a", None)).checkpoint.offsets == {("a", 0): 3, ("a", 7): 2}


@pytest.mark.parametrize(
    "topic",
    [
        "..",
        ".",
        "../../etc",
        "/etc/passwd",
        "a/b",
        "a\0b",
        "a\nb",
        ".hidden",
        "ü" * 200,
        "t" * 249,
        "",
    ],
)
def test_any_topic_is_safe_as_the_name_of_a_folder(folder, topic):
    tp = (topic, 3)
    epoch, _ = folder.claim(tp)
    folder.save(tp, epoch, model(3), {tp: 3})
    assert folder.newest(tp).offsets == {tp: 3}
    assert folder.folder(tp).parent == folder.path
    assert folder.folder(tp).is_dir()
    assert not folder.folder(tp).name.startswith(".")


def test_topics_have_folders_of_their_own(local):
    topics = ["a", "a-0", "a%2D0", ".a", "%2Ea", "t" * 249, "t" * 248 + "u"]
    pairs = [(topic, number) for topic in topics for number in (0, 1, None)]
    assert len({local.folder(tp) for tp in pairs}) == len(pairs)


@pytest.mark.parametrize(
    ("name", "value"), [("keep", 0), ("keep", 1.5), ("keep", True), ("keep_hourly", -1)]
)
def test_keep_is_checked(tmp_path, name, value):
    with pytest.raises(ParameterError, match=f"{name} must be"):
        CheckpointFolder(tmp_path, **{name: value})


def at_times(monkeypatch, *seconds):
    """Have checkpoints be written at these times."""
    times = iter(seconds)

    def timed(*given, **more):
        return Checkpoint(*given, time=next(times), **more)

    monkeypatch.setattr("drift.consumers.checkpoints.folder.Checkpoint", timed)


def test_the_last_one_of_an_hour_and_of_a_day_is_kept_by_whoever_writes(root, monkeypatch):
    hours = [0, 0.5, 0.9, 1.1, 2.5, 25, 26, 26.5, 26.9]
    at_times(monkeypatch, *(3600 * hour for hour in hours))
    for n in range(9):  # each by a process that did not write the one before
        folder = CheckpointFolder(root, keep=2, keep_ten_minutes=0, keep_hourly=3, keep_daily=2)
        save(folder, folder.claim(TP).epoch, n)
    kept = [n for n in names(folder) if n.startswith("checkpoint-")]
    # The last ones, the last of hours 2, 25 and 26, and the last of each day.
    assert [int(name[11:19]) for name in kept] == [5, 6, 8, 9]


def test_what_cannot_be_read_now_is_not_removed(root, monkeypatch, caplog):
    rule = {"keep": 1, "keep_ten_minutes": 0, "keep_hourly": 2, "keep_daily": 0}
    folder = CheckpointFolder(root, **rule)
    at_times(monkeypatch, 10, 3700, 3800, 3900)
    epoch, _ = folder.claim(TP)
    for n in (10, 20):
        save(folder, epoch, n)
    first = folder._files(TP).file(1, 1)

    def away(path):
        if path == first:
            raise CheckpointError("cannot be read: timed out") from OSError("timed out")
        return load(path)

    with monkeypatch.context() as patched:
        patched.setattr("drift.consumers.checkpoints.file_format.load", away)
        save(CheckpointFolder(root, **rule), epoch, 30)
    assert [s for _, s in folder._files(TP).listing().checkpoints] == [1, 2, 3]
    assert "timed out: no older checkpoint is removed" in caplog.text
    save(CheckpointFolder(root, **rule), epoch, 40)
    assert [s for _, s in folder._files(TP).listing().checkpoints] == [1, 4]


def test_a_damaged_one_is_kept_for_no_hour(root, monkeypatch):
    folder = CheckpointFolder(root, keep=1, keep_ten_minutes=0, keep_hourly=9, keep_daily=0)
    at_times(monkeypatch, 10, 20, 3700)
    epoch, _ = folder.claim(TP)
    for n in (10, 20):
        save(folder, epoch, n)
    damage(folder, -1, lambda data: data[:-1])
    save(CheckpointFolder(root, keep=1, keep_ten_minutes=0, keep_hourly=9, keep_daily=0), epoch, 30)
    assert [s for _, s in folder._files(TP).listing().checkpoints] == [3]


def test_a_checkpoint_in_another_partitions_folder_is_refused(local):
    epoch, _ = local.claim(TP)
    save(local, epoch, 3)
    local.folder(TP).rename(local.folder(("news", 1)))
    with pytest.raises(CheckpointError, match="it is of news:0"):
        local.claim(("news", 1))


@pytest.mark.parametrize("topic", ["a", "a-1", ".a", "t" * 249])
def test_models_of_single_partitions_are_refused_where_all_are_to_have_one(root, topic):
    folder = CheckpointFolder(root)
    for number in (3, 12):
        epoch, _ = folder.claim((topic, number))
        folder.save((topic, number), epoch, model(3), {(topic, number): 3})
    folder.claim((topic, 7))  # it has no checkpoint
    parts = ", ".join(sorted(folder.folder((topic, n)).name for n in (3, 12)))
    message = f"models of single partitions, {re.escape(parts)}, and one learns all of {topic} now"
    for call in (folder.claim, folder.newest):
        with pytest.raises(CheckpointError, match=message):
            call((topic, None))
    assert folder.newest((topic, 3)).offsets == {(topic, 3): 3}
    assert folder.claim((topic, 4)).checkpoint is None
    other = "a-1-2" if topic == "a" else "a"
    assert folder.claim((other, None)).checkpoint is None  # another topic, of a like name


def test_who_has_a_model_of_all_partitions_may_have_others_of_single_ones(folder):
    for key in (("a", None), ("a", 3)):
        epoch, _ = folder.claim(key)
        folder.save(key, epoch, model(3), {("a", 3): 3})
    assert folder.claim(("a", None)).checkpoint.offsets == {("a", 3): 3}


# --- another configuration -------------------------------------------------------------------


def test_another_configuration_is_refused_with_the_difference(root):
    before = CheckpointFolder(root, {"budget": 5, "kernel": "RBF(1.0)", "topic": "news", "x": (1,)})
    epoch, _ = before.claim(TP)
    save(before, epoch, 3)
    now = CheckpointFolder(root, {"budget": 9, "topic": "news", "x": [1], "decay": 0.5})
    with pytest.raises(ConfigurationError) as refused:
        now.claim(TP)
    assert str(refused.value).splitlines()[1:-1] == [
        "  budget: 5 in the checkpoint, 9 now",
        "  decay: absent in the checkpoint, 0.5 now",
        '  kernel: "RBF(1.0)" in the checkpoint, absent now',
    ]
    save(before, epoch, 4)  # the refused one has claimed nothing
    assert CheckpointFolder(root).claim(TP).checkpoint.offsets == {TP: 4}


def test_a_checkpoint_in_an_older_format_is_refused_and_stays_as_it_is(tmp_path):
    folder = CheckpointFolder(tmp_path)
    save(folder, folder.claim(TP).epoch, 3)
    path = folder.folder(TP) / "checkpoint-00000001-0000000001.drift"
    older = bytearray(path.read_bytes()[:-32])
    older[8] -= 1  # the version of the format
    path.write_bytes(bytes(older) + hashlib.sha256(older).digest())
    before = names(folder), path.read_bytes()
    for call in (folder.claim, folder.newest):
        with pytest.raises(CheckpointError, match=rf"{path.name}: the checkpoint was written in"):
            call(TP)
    assert (names(folder), path.read_bytes()) == before


def test_a_parameter_that_came_later_means_what_was_before(tmp_path, monkeypatch):
    before = CheckpointFolder(tmp_path, {"model": "LBP", "model.budget": 5})
    epoch, _ = before.claim(TP)
    save(before, epoch, 3)
    monkeypatch.setattr(LBP, "columns", "float32", raising=False)  # as CONTRIBUTING.md asks for
    same = before.configuration | {"model.columns": "float32"}
    assert CheckpointFolder(tmp_path, same).newest(TP).model.columns == "float32"
    other = before.configuration | {"model.columns": "float64", "model.rows": 1}
    with pytest.raises(ConfigurationError) as refused:
        CheckpointFolder(tmp_path, other).newest(TP)
    assert str(refused.value).splitlines()[1:-1] == [
        '  model.columns: "float32" in the checkpoint, "float64" now',
        "  model.rows: absent in the checkpoint, 1 now",
    ]


@pytest.mark.parametrize(
    ("before", "now", "same"),
    [
        (1, 1.0, True),
        ([1, {"a": 2.0}], (1.0, {"a": 2}), True),
        (2**60 + 1, 2**60 + 1, True),
        (2**60 + 1, 2**60, False),
        (1, True, False),
        (0.5, 0, False),
        (None, "null", False),
        (float("inf"), float("inf"), True),
        ("absent", None, False),
    ],
)
def test_numbers_are_compared_as_numbers(tmp_path, before, now, same):
    folder = CheckpointFolder(tmp_path, {"x": before})
    save(folder, folder.claim(TP).epoch, 3)
    again = CheckpointFolder(tmp_path, {"x": now})
    if same:
        assert newest_of(again) == 3
    else:
        with pytest.raises(ConfigurationError, match="in the checkpoint"):
            again.newest(TP)


# --- fencing ---------------------------------------------------------------------------------


def test_who_claimed_before_cannot_save(folder):
    old, _ = folder.claim(TP)
    save(folder, old, 10)
    new, _ = folder.claim(TP)
    with pytest.raises(FencedError, match="our epoch is 1 and the newest 2"):
        save(folder, old, 20)
    assert newest_of(folder) == 10
    save(folder, new, 30)
    assert newest_of(folder) == 30


def test_what_was_saved_just_before_a_claim_counts(folder):
    old, _ = folder.claim(TP)
    save(folder, old, 10)
    with at("claim.checked", lambda: save(folder, old, 20)):
        assert folder.claim(TP).checkpoint.offsets == {TP: 20}


def test_a_claim_reads_the_checkpoint_once_where_nothing_came_between(folder, monkeypatch):
    epoch, _ = folder.claim(TP)
    save(folder, epoch, 10)
    read = []
    load = folder_module.load
    monkeypatch.setattr(folder_module, "load", lambda file: (read.append(file), load(file))[1])
    assert folder.claim(TP).checkpoint.offsets == {TP: 10}
    assert len(read) == 1


def test_who_is_fenced_is_told_by_whom(root):
    ours, others = CheckpointFolder(root), CheckpointFolder(root)
    others.owner = "process 7 on tuesday, of the group other,"
    epoch, _ = ours.claim(TP)
    newer, _ = others.claim(TP)
    with pytest.raises(FencedError, match="2: process 7 on tuesday, of the group other, has the"):
        ours.save(TP, epoch, LBP(2), {TP: 1})
    replace(ours._files(TP), ours.folder(TP) / f"epoch-{newer:08d}", b"\xff")
    with pytest.raises(FencedError, match="2: another worker has the partition"):
        ours.save(TP, epoch, LBP(2), {TP: 1})
    assert f"process {os.getpid()} on " in ours.owner


@pytest.mark.parametrize("point", CHECKPOINT_POINTS[:6])
def test_a_claim_while_another_saves_fences_it(folder, point):
    old, _ = folder.claim(TP)
    save(folder, old, 10)
    claims = []
    with at(point, lambda: claims.append(folder.claim(TP))), pytest.raises(FencedError):
        save(folder, old, 20)
    [(new, checkpoint)] = claims
    assert checkpoint.offsets == {TP: 10}
    assert newest_of(folder) == 10
    save(folder, new, 15)
    assert newest_of(folder) == 15
    assert [name for name in names(folder) if "tmp" in name] == []


def test_a_line_of_the_order_that_a_full_disk_cut_spoils_none_behind_it(local):
    def full():
        raise OSError(errno.ENOSPC, "No space left on device")

    epoch, _ = local.claim(TP)
    first = local.save(TP, epoch, LBP(2), {TP: 1}, runs=[{TP: 1}])
    with at("checkpoint.order-half-written", full), pytest.raises(CheckpointError, match="space"):
        local.save(TP, epoch, LBP(2), {TP: 2}, runs=[{TP: 2}], previous=first.id)
    second = local.save(TP, epoch, LBP(2), {TP: 3}, runs=[{TP: 3}], previous=first.id)
    assert read_order(local.folder(TP), second.id) == [{TP: 1}, {TP: 3}]


def test_the_order_lasts_longer_than_a_few_claims(local, monkeypatch):
    before = None
    for claim in range(50):
        epoch, _ = local.claim(TP)
        to = {TP: claim + 1}
        before = local.save(TP, epoch, LBP(2), to, runs=[to], previous=before).id
    assert len(read_order(local.folder(TP), before)) == 50
    left = sorted(local.folder(TP).glob("order-*"))
    monkeypatch.setattr(files, "_ORDER_ALL", sum(file.stat().st_size for file in left[40:]) + 100)
    local.save(TP, epoch, LBP(2), {TP: 51}, previous=before)
    assert sorted(local.folder(TP).glob("order-*")) == left[40:]


def test_a_zombie_between_its_look_and_its_rename_does_not_count_for_long(folder, monkeypatch):
    old, _ = folder.claim(TP)
    looks, owned = [], ModelFolder.owned
    monkeypatch.setattr(ModelFolder, "clean", lambda *_: None)  # as if it had not come to that

    def frozen(self, epoch):
        listing = owned(self, epoch)
        looks.append(epoch)
        if looks == [old, old]:
            new, _ = folder.claim(TP)
            save(folder, new, 30)
        return listing

    monkeypatch.setattr(ModelFolder, "owned", frozen)
    assert save(folder, old, 20).epoch == old
    assert newest_of(folder) == 30


def test_of_many_claims_at_once_each_gets_an_epoch_of_its_own(folder):
    epochs, start = [], threading.Barrier(6)

    def claim():
        start.wait()
        epochs.extend(folder.claim(TP).epoch for _ in range(5))

    threads = [threading.Thread(target=claim) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(epochs)) == 30
    assert names(folder) == [f"epoch-{max(epochs):08d}"]


# --- other users of the machine --------------------------------------------------------------


def modes(folder):
    return {stat.S_IMODE(path.stat().st_mode) for path in folder.folder(TP).iterdir()}


def test_checkpoints_are_for_their_user_alone(local, tmp_path):
    before = os.umask(0)
    try:
        save(local, local.claim(TP).epoch, 10)
        old = CheckpointFolder(tmp_path)
        save(old, old.claim(TP).epoch, 10)
    finally:
        os.umask(before)
    paths = [local.path, local.folder(TP), old.folder(TP)]
    assert [stat.S_IMODE(path.stat().st_mode) for path in paths] == [0o700] * 3
    assert modes(local) == {0o600}


def test_what_root_makes_gets_the_owner_of_the_folder(local, tmp_path, monkeypatch):
    owners = {}

    def chown(what, user, group):
        inode = os.fstat(what).st_ino if type(what) is int else what.stat().st_ino
        owners[inode] = (user, group)

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", chown)
    save(local, local.claim(TP).epoch, 10)
    made = {path.stat().st_ino for path in local.path.rglob("*")} | {local.path.stat().st_ino}
    around = tmp_path.stat()
    assert {inode: owners.get(inode) for inode in made} == dict.fromkeys(
        made, (around.st_uid, around.st_gid)
    )


def test_a_link_in_the_way_of_a_checkpoint_is_not_followed(local, tmp_path, monkeypatch):
    epoch, _ = local.claim(TP)
    target = tmp_path / "precious"
    target.write_bytes(b"of somebody else")
    (local.folder(TP) / f".tmp-{epoch:08d}").symlink_to(target)
    save(local, epoch, 10)
    assert newest_of(local) == 10
    monkeypatch.setattr("drift.consumers.checkpoints.files.token_hex", lambda _: "guessed")
    (local.folder(TP) / f".tmp-{epoch:08d}-guessed").symlink_to(target)
    with pytest.raises(CheckpointError, match="File exists"):
        save(local, epoch, 20)
    assert target.read_bytes() == b"of somebody else"
    assert newest_of(local) == 10


# --- damage ----------------------------------------------------------------------------------


def damage(folder, index, change):
    files = folder._files(TP)
    path = files.file(*files.listing().checkpoints[index])
    replace(files, path, change(path.read_bytes()))
    return path


def replace(files, path, data):
    path.unlink()
    files._create(path.name, data)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: data[:-1],
        lambda data: bytes(len(data)),
        lambda data: data[:200] + bytes([data[200] ^ 1]) + data[201:],
    ],
)
def test_a_damaged_newest_falls_back_loudly(root, caplog, change):
    said = []
    folder = CheckpointFolder(root, warn=said.append)
    epoch, _ = folder.claim(TP)
    for n in (10, 20):
        save(folder, epoch, n)
    path = damage(folder, -1, change)
    with caplog.at_level(logging.ERROR, "drift.consumers"):
        epoch, checkpoint = folder.claim(TP)
    assert checkpoint.offsets == {TP: 10}
    [line] = said
    assert str(path) in line
    assert line.endswith("going back to checkpoint-00000001-0000000001.drift")
    assert [record.getMessage() for record in caplog.records] == said
    save(folder, epoch, 25)
    assert newest_of(folder) == 25
    assert said == [line]


def test_damaged_ones_do_not_count_among_those_that_are_kept(folder):
    epoch, _ = folder.claim(TP)
    for n in (10, 20, 30):
        save(folder, epoch, n)
    for index in (-1, -2):
        damage(folder, index, lambda data: data[:-1])

    def kept():
        return [folder.newest(TP).offsets[TP], *(name[20:30] for name in names(folder)[:-1])]

    save(folder, epoch, 40)
    assert kept() == [40, *(f"{n:010d}" for n in (1, 2, 3, 4))]
    save(folder, epoch, 50)  # the third that is whole, and the oldest of them is still the first
    assert kept() == [50, *(f"{n:010d}" for n in (1, 2, 3, 4, 5))]
    save(folder, epoch, 60)
    assert kept() == [60, *(f"{n:010d}" for n in (4, 5, 6))]


def test_where_all_are_damaged_nothing_starts_afresh(folder):
    epoch, _ = folder.claim(TP)
    for n in (10, 20):
        save(folder, epoch, n)
    for index in (0, 1):
        damage(folder, index, lambda data: data[:-1])
    with pytest.raises(CheckpointError, match=r"restore one .* another folder and group"):
        folder.claim(TP)
    save(folder, epoch, 30)  # who has the partition can still mend it
    assert newest_of(folder) == 30


def test_a_checkpoint_of_another_key_is_no_damage(root):
    epoch, _ = CheckpointFolder(root, secret=b"a").claim(TP)
    save(CheckpointFolder(root), epoch, 10)
    save(CheckpointFolder(root, secret=b"a"), epoch, 20)
    with pytest.raises(CheckpointError, match="not to be trusted") as refused:
        CheckpointFolder(root, secret=b"b").claim(TP)
    assert not isinstance(refused.value, DamagedCheckpointError)


# --- writes that fail ------------------------------------------------------------------------


@contextmanager
def largest_file(size):
    """Have every write beyond a size fail, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("size", [0, 1, 100, 1000])
def test_a_write_that_ends_half_way_leaves_the_one_before(local, size):
    epoch, _ = local.claim(TP)
    save(local, epoch, 10)
    before = names(local)
    for _ in range(5):
        with largest_file(size), pytest.raises(CheckpointError, match="the checkpoints before are"):
            save(local, epoch, 20)
        assert names(local) == before
        assert newest_of(local) == 10
    save(local, epoch, 20)
    assert newest_of(local) == 20


class Full:
    """A file on a disk that has no room after some writes."""

    def __init__(self, file, room):
        self.file = file
        self.room = room

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        self.file.close()

    def write(self, data):
        self.room -= 1
        if self.room < 0:
            self.file.write(data[:7])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.file.write(data)

    def __getattr__(self, name):
        return getattr(self.file, name)


@pytest.mark.parametrize("room", [0, 1])
def test_a_full_disk_leaves_the_one_before(local, monkeypatch, room):
    epoch, _ = local.claim(TP)
    save(local, epoch, 10)
    before = names(local)
    with monkeypatch.context() as patched:
        patched.setattr(
            "drift.consumers.checkpoints.files.open",
            lambda path, mode, **more: Full(builtins.open(path, mode, **more), room),  # noqa: SIM115, PTH123
            raising=False,
        )
        with pytest.raises(CheckpointError, match="No space left on device"):
            save(local, epoch, 20)
    assert names(local) == before
    assert newest_of(local) == 10


def test_an_fsync_that_fails_leaves_the_one_before(local, monkeypatch):
    epoch, _ = local.claim(TP)
    save(local, epoch, 10)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.EIO, "fails")))
        with pytest.raises(CheckpointError, match="fails"):
            save(local, epoch, 20)
    assert newest_of(local) == 10


def test_the_file_lasts_before_it_has_its_name_and_the_name_before_it_counts(local, monkeypatch):
    epoch, _ = local.claim(TP)
    steps = []

    def fsync(descriptor):
        steps.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")

    monkeypatch.setattr(os, "fsync", fsync)
    with (
        at("checkpoint.renamed", lambda: steps.append("renamed")),
        at("checkpoint.recorded", lambda: steps.append("recorded")),
    ):
        save(local, epoch, 10)
    # The first is the line of the order, which a checkpoint has from its beginning.
    assert steps == ["file", "file", "renamed", "folder", "recorded"]


def test_what_cannot_be_stored_leaves_the_one_before(folder):
    epoch, _ = folder.claim(TP)
    save(folder, epoch, 10)
    with pytest.raises(CheckpointError, match="allow pickle"):
        folder.save(TP, epoch, object(), {TP: 20})
    assert newest_of(folder) == 10


@pytest.mark.parametrize(
    ("name", "wrong", "said"),
    [("gates", np.inf, "gates out of bounds"), ("covariances", -1.0, "covariances")],
)
def test_a_model_that_could_not_be_read_again_is_not_written(local, name, wrong, said):
    """As where a sum has overflowed: the error names the array."""
    model = Tracker(5)
    model._core = TrackerCore(model._plan(), "auto", 0)
    for x, y in list(drifting_stream(60))[:20]:
        model.learn_one(x, y)
    epoch, _ = local.claim(TP)
    first = local.save(TP, epoch, model, {TP: 20}, runs=[{TP: 20}])
    getattr(model._core._state, name)[:] = wrong
    before = {file: file.read_bytes() for file in local.folder(TP).iterdir()}
    for models in ({"model": model}, {"model": LBP(5), "shadow": (model, {})}):
        checkpoint = Checkpoint(offsets={TP: 30}, epoch=epoch, **models)
        write = local.prepare(TP, checkpoint, runs=[{TP: 30}], previous=first.id)
        with pytest.raises(CheckpointError, match=f"{said}, so that it cannot be stored"):
            write()
    assert {file: file.read_bytes() for file in local.folder(TP).iterdir()} == before
    assert local.newest(TP).offsets == {TP: 20}


@pytest.mark.parametrize("model", [LBP(5), Tracker(5, late=True)])
def test_a_checkpoint_is_of_the_moment_that_it_was_prepared_at(folder, model):
    epoch, _ = folder.claim(TP)
    model, examples = model.clone(), list(drifting_stream(60))
    for x, y in examples[:30]:
        model.predict_one(x)
        model.learn_one(x, y)
    before, write = encode(model), folder.prepare(TP, Checkpoint(model, {TP: 30}, epoch))
    for x, y in examples[30:]:
        model.predict_one(x)
        model.learn_one(x, y)
    write()
    assert encode(folder.newest(TP).model) == before != encode(model)


# --- kills -----------------------------------------------------------------------------------


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_leaves_the_old_or_the_new_one(folder, point):
    epoch, _ = folder.claim(TP)
    save(folder, epoch, 10)
    killed.kill_at(point, killed.save, str(folder.path))
    renamed = point in {"checkpoint.renamed", "checkpoint.recorded", "checkpoint.pruned"}
    assert newest_of(folder) == (20 if renamed else 10)
    epoch, checkpoint = folder.claim(TP)
    assert checkpoint.offsets == {TP: 20 if renamed else 10}
    save(folder, epoch, 30)
    assert newest_of(folder) == 30
    assert [n for n in names(folder) if not n.startswith("checkpoint-")] == [f"epoch-{epoch:08d}"]


@pytest.mark.parametrize("point", POINTS)
def test_an_exception_leaves_the_old_or_the_new_one(folder, point):
    epoch, _ = folder.claim(TP)
    save(folder, epoch, 10)
    for _ in range(4):
        with at(point, stop), pytest.raises(Stop):
            save(folder, folder.claim(TP).epoch, 20)
        assert newest_of(folder) in {10, 20}
    epoch, _ = folder.claim(TP)
    save(folder, epoch, 30)
    assert newest_of(folder) == 30
    assert len(names(folder)) <= 4


def test_every_point_is_reached_in_its_order(folder):
    seen = []
    for point in POINTS:
        crash_points.install(point, lambda point=point: seen.append(point))
    try:
        epoch, _ = folder.claim(TP)
        save(folder, epoch, 10)
    finally:
        for point in POINTS:
            crash_points.remove(point)
    assert seen == POINTS


def test_the_third_time_can_be_meant():
    code = """
from drift.consumers.crash_points import reached
for i in range(4):
    print(i, flush=True)
    reached("x")
"""
    killed = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"DRIFT_ABORT_AT": "x:3"},
        capture_output=True,
        check=False,
    )
    assert (killed.returncode, killed.stdout.split()) == (-signal.SIGKILL, [b"0", b"1", b"2"])


def test_a_file_can_be_read_by_itself(folder):
    epoch, _ = folder.claim(TP)
    save(folder, epoch, 10)
    files = folder._files(TP)
    path = files.file(1, 1)
    assert from_bytes(load(path)).offsets == {TP: 10}
    replace(files, path, b"")
    no_one = pytest.raises(DamagedCheckpointError, match=f"^{path}: no checkpoint of drift: 0 b")
    with no_one, naming(path):
        from_bytes(load(path))
