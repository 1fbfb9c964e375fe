"""The order in which messages were learnt, beside the checkpoints: what a kill leaves of it."""

import errno
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drift.consumers import CheckpointFolder
from drift.consumers.checkpoints import adoption, files
from drift.consumers.checkpoints.checkpoint import Checkpoint
from drift.consumers.checkpoints.journal import order_line, read_order
from drift.errors import CheckpointError
from drift.models import LBP

KEY = "f", None
PLACES = st.tuples(st.sampled_from(["f", "é", "l\n"]), st.integers(0, 20))
RUNS = st.lists(st.dictionaries(PLACES, st.integers(1, 2**40), min_size=1), max_size=4)


def saved(folder, epoch, runs, previous):
    model = LBP(2)
    return folder.save(KEY, epoch, model, {("f", 0): 1}, runs=runs, previous=previous).id


@pytest.fixture
def folder(tmp_path):
    return CheckpointFolder(tmp_path)


def order_files(folder):
    return sorted(folder.folder(KEY).glob("order-*"))


@given(st.lists(st.tuples(RUNS, st.booleans()), min_size=1, max_size=5))
@settings(max_examples=8)  # each line waits for the disk
def test_the_order_of_a_checkpoint_is_that_of_all_before_it(tmp_path_factory, saves):
    folder = CheckpointFolder(tmp_path_factory.mktemp("c"))
    epoch, _ = folder.claim(KEY)
    expected, previous = [], None
    for runs, claims in saves:
        if claims:
            epoch, _ = folder.claim(KEY)
        previous = saved(folder, epoch, runs, previous)
        expected += runs
        assert read_order(folder.folder(KEY), previous) == expected


def test_a_line_whose_end_a_kill_cut_off_spoils_nothing(folder):
    epoch, _ = folder.claim(KEY)
    first = saved(folder, epoch, [{("f", 0): 1}], None)
    [file] = order_files(folder)
    before = file.read_bytes()
    line = order_line("1-2", first, [{("f", 0): 2}])
    for length in range(len(line)):  # its checkpoint was never started
        file.write_bytes(before + line[:length])
        assert read_order(folder.folder(KEY), first) == [{("f", 0): 1}]
    epoch, _ = folder.claim(KEY)
    second = saved(folder, epoch, [{("f", 0): 3}], first)
    assert read_order(folder.folder(KEY), second) == [{("f", 0): 1}, {("f", 0): 3}]


def test_of_a_checkpoint_that_was_tried_again_the_last_line_counts(folder):
    epoch, _ = folder.claim(KEY)
    first = saved(folder, epoch, [{("f", 0): 1}], None)
    # The disk was full as the checkpoint was written: what came since is in the next line, too.
    folder._files(KEY).append_order(epoch, 2, order_line("1-2", first, [{("f", 0): 2}]))
    second = saved(folder, epoch, [{("f", 0): 2}, {("f", 1): 7}], first)
    assert second == "1-2"
    assert read_order(folder.folder(KEY), second) == [{("f", 0): 1}, {("f", 0): 2}, {("f", 1): 7}]


@pytest.mark.parametrize("lost", ["line", "file", "middle"])
def test_an_order_that_lacks_something_is_refused(folder, lost):
    previous = None
    for n in range(3):
        epoch, _ = folder.claim(KEY)
        previous = saved(folder, epoch, [{("f", 0): n + 1}], previous)
    _, middle, _ = order_files(folder)
    if lost == "file":
        middle.unlink()
    else:
        data = middle.read_bytes()
        middle.write_bytes(b"" if lost == "line" else data[: len(data) // 2])
    with pytest.raises(CheckpointError, match="no order of what checkpoint 2-1 learnt: its files"):
        read_order(folder.folder(KEY), previous)
    assert read_order(folder.folder(KEY), "1-1") == [{("f", 0): 1}]


def test_a_file_ends_where_it_is_large_and_the_oldest_go(folder, monkeypatch):
    monkeypatch.setattr(files, "_ORDER_BYTES", 150)
    epoch, _ = folder.claim(KEY)
    previous = None
    for n in range(10):
        previous = saved(folder, epoch, [{("f", 0): n + 1}], previous)
    names = [file.name for file in order_files(folder)]
    assert len(names) == 5  # of two lines each
    assert names[1] == f"order-{epoch:08d}-{3:010d}.jsonl"
    assert len(read_order(folder.folder(KEY), previous)) == 10


def test_an_order_file_may_be_deleted_while_a_checkpoint_is_written(folder):
    epoch, _ = folder.claim(KEY)
    previous = saved(folder, epoch, [{("f", 0): 1}], None)
    checkpoint = Checkpoint(LBP(2), {("f", 0): 2}, epoch)
    write = folder.prepare(KEY, checkpoint, runs=[{("f", 0): 2}], previous=previous)
    [file] = order_files(folder)
    file.unlink()
    assert write().id == "1-2"
    assert read_order(folder.folder(KEY), "1-2", previous) == [{("f", 0): 2}]


def test_an_order_file_out_of_reach_is_an_error_of_the_checkpoint(folder, monkeypatch):
    """Which a worker survives: it tries again later."""
    epoch, _ = folder.claim(KEY)
    previous = saved(folder, epoch, [{("f", 0): 1}], None)
    checkpoint = Checkpoint(LBP(2), {("f", 0): 2}, epoch)
    write = folder.prepare(KEY, checkpoint, runs=[{("f", 0): 2}], previous=previous)
    [file] = order_files(folder)

    def stale(path, *_given, **_more):
        raise OSError(errno.ESTALE, "Stale file handle", path)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "stat", stale)
        patch.setattr(files, "private", stale)
        with pytest.raises(CheckpointError, match=rf"{file}: cannot be written: Stale file handle"):
            write()
    assert write().id == "1-2"


@pytest.mark.parametrize(("offset", "codec"), [(None, False), (5, False), (None, True)])
def test_an_adopted_checkpoint_has_an_order_where_all_is_read_as_before(folder, offset, codec):
    folder.configuration = {"codec": "JsonCodec"}
    epoch, _ = folder.claim(KEY)
    before = saved(folder, epoch, [{("f", 0): 1}], None)
    [(partition, _)] = files.newest(folder.path)
    adoption.adopt(partition, "f", offset, None, codec=codec)
    found, goes_on = folder.newest(KEY), offset is None and not codec
    assert (before, found.id, found.offsets) == ("1-1", "2-1", {("f", 0): offset or 1})
    own = [file.name for file in order_files(folder)]
    assert own == [f"order-{n:08d}-{1:010d}.jsonl" for n in ((1, 2) if goes_on else (1,))]
    epoch, _ = folder.claim(KEY)
    later = saved(folder, epoch, [{("f", 0): 9}], found.id)
    if goes_on:
        assert read_order(folder.folder(KEY), later) == [{("f", 0): 1}, {("f", 0): 9}]
        return
    with pytest.raises(CheckpointError, match="no order of what checkpoint 2-1 learnt"):
        read_order(folder.folder(KEY), later)


def test_a_line_is_json_whatever_the_topic():
    line = order_line("1-1", None, [{("a\nb", 0): 1}, {("a\nb", 1): 2, ("a\nb", 0): 3}])
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert json.loads(line) == {
        "checkpoint": "1-1",
        "previous": None,
        "places": [["a\nb", 0], ["a\nb", 1]],
        "runs": [[[0, 1]], [[1, 2], [0, 3]]],
        "models": [0, None],
    }
