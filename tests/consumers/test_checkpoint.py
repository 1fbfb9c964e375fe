"""The file: what it keeps, what it says of itself, and what it refuses."""

import hashlib
import json
import math
import pickle
import random
import re
import struct
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from river import compose, linear_model, preprocessing

from drift import __version__
from drift._format import FORMAT
from drift.cli import app
from drift.consumers import CheckpointFolder, JsonCodec, WorkerOptions
from drift.consumers.checkpoints.checkpoint import Checkpoint, from_bytes, to_bytes, verify
from drift.consumers.checkpoints.file_format import describe, seal
from drift.consumers.learner import Learner
from drift.consumers.metrics import Metrics
from drift.consumers.order import Clock
from drift.consumers.records import Message, Position
from drift.errors import CheckpointError, DamagedCheckpointError
from drift.models import LBP, RBP, Tracker
from tests.models.streams import drifting_stream

PAGE = Path(__file__).parents[2] / "docs" / "one_model.md"
KEY = b"a key"


def trained(model):
    for x, y in drifting_stream(60):
        model.learn_one(x, y)
    return model


def some(model=None):
    return Checkpoint(
        trained(RBP(5, seed=1)) if model is None else model,
        {("news", 0): 17, ("news", 10): 3},
        4,
        2,
        {"budget": 5, "kernel": "RBF(gamma=0.5)", "classes": ["a", "b"]},
        {"examples": 20, "error": 0.25},
        1e9,
        {"cluster_id": "c1"},
        {("news", 0): 4},
        {("news", 0): Clock(1_700_000_000_000), ("news", 10): Clock(5, 7)},
    )


class Armed:
    """Unpickling one of these is noticed."""

    fired = 0

    def __reduce__(self):
        return Armed.fire, ()

    @staticmethod
    def fire():
        Armed.fired += 1
        return "fired"


def test_a_checkpoint_comes_back():
    before = some()
    after = from_bytes(to_bytes(before))
    assert after.model.supports == before.model.supports
    assert (after.offsets, after.metrics) == (before.offsets, before.metrics)
    assert after.configuration == before.configuration
    assert (after.identity, after.leader_epochs) == (before.identity, before.leader_epochs)
    assert (after.id, after.time) == ("4-2", 1e9)
    with pytest.raises(FrozenInstanceError):
        after.epoch = 5


@pytest.mark.parametrize(
    ("version", "remedy"),
    [
        (0, "or train a new model"),
        (FORMAT - 1, "or train a new model"),
        (FORMAT + 1, "or a newer one"),
    ],
)
def test_another_format_is_refused_with_the_remedy(version, remedy):
    data = bytearray(to_bytes(some())[:-32])
    struct.pack_into("<I", data, 8, version)
    data += b"and a field that only it knows"
    expected = rf"in version {version} of .* {__version__} reads version {FORMAT}: .*{remedy}"
    with pytest.raises(CheckpointError, match=expected):
        from_bytes(bytes(data) + hashlib.sha256(data).digest())


@given(st.data())
@pytest.mark.parametrize("key", [None, KEY])
def test_a_changed_byte_is_noticed(key, data):
    whole = bytearray(to_bytes(some(LBP(2)), secret=key))
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(DamagedCheckpointError):
        from_bytes(bytes(whole), secret=key)


def test_every_torn_write_is_noticed():
    whole = to_bytes(some(LBP(2)))
    for length in range(len(whole)):
        with pytest.raises(DamagedCheckpointError):
            from_bytes(whole[:length])
        with pytest.raises(DamagedCheckpointError):
            from_bytes(whole[:length] + bytes(len(whole) - length))
    with pytest.raises(DamagedCheckpointError):
        from_bytes(whole + b"\0")


def resealed(whole, change):
    """Forge a header, with the checksum that goes with it."""
    magic, version, size, payload_size = struct.unpack_from("<8sIIQ", whole)
    header = json.loads(whole[24 : 24 + size])
    text = json.dumps(change(header)).encode()
    data = struct.pack("<8sIIQ", magic, version, len(text), payload_size) + text
    data += whole[24 + size : -32]
    return data + hashlib.sha256(data).digest()


@pytest.mark.parametrize(
    "change",
    [
        lambda header: [],
        lambda header: {},
        lambda header: header | {"payload": "yaml"},
        lambda header: header | {"offsets": [["news", 0]]},
        lambda header: header | {"offsets": [["news", 0, "1"]]},
        lambda header: header | {"offsets": [[[], 0, 1]]},
        lambda header: header | {"clocks": [["news", 0, 1]]},
        lambda header: header | {"clocks": [["news", 0, 1, "2"]]},
        lambda header: header | {"clocks": [["news", 0, None, None]]},
        lambda header: header | {"clocks": {}},
        lambda header: header | {"configuration": []},
        lambda header: header | {"payload": "pickle"},
        *(
            lambda header, name=name: {k: v for k, v in header.items() if k != name}
            for name in ("model", "signed", "time", "epoch", "sequence", "metrics", "versions")
        ),
    ],
)
def test_a_forged_header_is_refused(change):
    with pytest.raises(CheckpointError):
        from_bytes(resealed(to_bytes(some()), change))


@given(st.binary(max_size=300))
def test_any_bytes_are_refused(data):
    with pytest.raises(CheckpointError):
        from_bytes(data)
    sealed = struct.pack("<8sIIQ", b"\x89drift\r\n", 1, len(data), 0) + data
    with pytest.raises(CheckpointError):
        from_bytes(sealed + hashlib.sha256(sealed).digest(), allow_pickle=True)


# --- pickles and signatures ------------------------------------------------------------------


def pipeline():
    return trained(
        compose.Pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression())
    )


def test_a_river_pipeline_is_stored_only_if_pickle_is_allowed():
    before = some(pipeline())
    with pytest.raises(CheckpointError, match=r"Pipeline.*allow pickle"):
        to_bytes(before)
    data = to_bytes(before, allow_pickle=True)
    with pytest.raises(CheckpointError, match="--allow-pickle"):
        from_bytes(data)
    after = from_bytes(data, allow_pickle=True)
    for x, _ in drifting_stream(20, seed=9):
        assert after.model.predict_proba_one(x) == before.model.predict_proba_one(x)


def test_drifts_own_models_are_no_pickle_even_where_that_is_allowed():
    assert from_bytes(to_bytes(some(), allow_pickle=True)).model.n_supports == 5


def forged():
    return resealed(to_bytes(some(Armed()), allow_pickle=True), lambda header: header)


def test_a_pickle_is_not_loaded_before_its_signature_is_verified():
    signed = to_bytes(some(Armed()), secret=b"another key", allow_pickle=True)
    before = Armed.fired
    for data, message in [(forged(), "not signed"), (signed, "not that of this key")]:
        with pytest.raises(CheckpointError, match=message):
            from_bytes(data, secret=KEY, allow_pickle=True)
        with pytest.raises(CheckpointError, match="--allow-pickle"):
            from_bytes(data)
        verify(data)
        describe(data)
    assert Armed.fired == before
    assert from_bytes(forged(), allow_pickle=True).model == "fired"


def test_a_signature_covers_the_header():
    data = resealed(to_bytes(some(), secret=KEY), lambda header: header | {"epoch": 5})
    assert from_bytes(data).epoch == 5
    with pytest.raises(CheckpointError, match="not to be trusted"):
        from_bytes(data, secret=KEY)


@pytest.mark.parametrize("model", [trained(LBP(3)), pipeline()])
def test_a_signed_checkpoint_comes_back(model):
    data = to_bytes(some(model), secret=KEY, allow_pickle=True)
    assert from_bytes(data, secret=KEY, allow_pickle=True).offsets == some().offsets
    assert KEY not in data


def test_an_unsigned_checkpoint_is_refused_where_a_key_is_set():
    with pytest.raises(CheckpointError, match=r"not signed.*another folder and group with the key"):
        from_bytes(to_bytes(some()), secret=KEY)


def test_a_broken_pickle_says_why():
    data = to_bytes(some(pipeline()), allow_pickle=True)
    sizes = list(struct.unpack_from("<8sIIQ", data))
    header = data[24 : 24 + sizes[2]]
    payload = pickle.dumps(Armed()).replace(b"Armed", b"Armor")
    whole = struct.pack("<8sIIQ", *sizes[:3], len(payload)) + header + payload
    with pytest.raises(CheckpointError, match="Armor"):
        from_bytes(whole + hashlib.sha256(whole).digest(), allow_pickle=True)


def test_what_can_neither_be_stored_nor_pickled():
    with pytest.raises(CheckpointError, match="neither be stored"):
        to_bytes(some(lambda: 0), allow_pickle=True)


@pytest.mark.parametrize("value", [object(), {1: {2}}, b"x"])
def test_a_configuration_that_is_no_json_is_refused(value):
    with pytest.raises(CheckpointError, match="JSON"):
        to_bytes(Checkpoint(LBP(2), {}, configuration={"x": value}))


# --- the command line ------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "some.drift"
    path.write_bytes(to_bytes(some(), secret=KEY))
    return path


def run(*arguments):
    return CliRunner().invoke(app, ["checkpoint", *map(str, arguments)])


def test_show(file):
    shown = run("show", file)
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    assert "model as drift" in lines[0]
    assert lines[0].endswith(", signed")
    assert lines[1:14] == [
        "model    RBP",
        "id       4-2",
        "time     2001-09-09 01:46:40+00:00",
        "offsets",
        "  news:0 17",
        "  news:10 3",
        "identity",
        "  cluster_id c1",
        "configuration",
        "  budget 5",
        "  kernel RBF(gamma=0.5)",
        '  classes ["a", "b"]',
        "metrics",
    ]
    assert f"  drift {__version__}" in lines


def test_show_leaves_out_the_states_of_measures_and_alarms(tmp_path):
    state = Metrics("news", 0, alarm_level=0.01).state()
    assert {"measures", "alarms"} <= state.keys()
    file = tmp_path / "some.drift"
    file.write_bytes(to_bytes(Checkpoint(LBP(2), {("news", 0): 5}, metrics=state)))
    lines = run("show", file).stdout.splitlines()
    shown = lines[lines.index("metrics") + 1 : lines.index("versions")]
    assert [line.split()[0] for line in shown] == [
        name for name in state if name not in {"measures", "alarms"}
    ]


def test_show_has_a_line_for_each_partition_of_a_folder(tmp_path):
    folder = CheckpointFolder(tmp_path)
    counts = {"examples": 12_345, "mistakes": 67, "unlabelled": 0, "dead_letters": 8}
    for partition, metrics in ((0, counts), (1, None)):
        epoch, _ = folder.claim(("news", partition))
        for offset in (17, 170 + partition):
            folder.save(("news", partition), epoch, LBP(2), {("news", partition): offset}, metrics)
    shown = run("show", tmp_path)
    first, second = (line.split("  ") for line in shown.stdout.splitlines())
    assert (first[:2], first[3:]) == (
        ["news:0 at 170", "1-2"],
        ["LBP", "examples 12,345", "mistakes 67", "unlabelled 0", "dead letters 8"],
    )
    assert (second[:2], second[3:]) == (["news:1 at 171", "1-2"], ["LBP"])
    assert run("show", tmp_path / "news-1").stdout.split("  ") == [*second[:3], "LBP\n"]


def test_a_partition_of_which_nothing_is_whole_is_named(tmp_path):
    folder = CheckpointFolder(tmp_path)
    for partition in range(2):
        epoch, _ = folder.claim(("news", partition))
        for offset in range(2):
            folder.save(("news", partition), epoch, LBP(2), {("news", partition): offset})
    for path in (tmp_path / "news-0").glob("*.drift"):
        path.write_bytes(path.read_bytes()[:-1])
    newest = max((tmp_path / "news-1").glob("*.drift"))
    newest.write_bytes(b"")
    shown = run("show", tmp_path)
    assert shown.exit_code == 2
    assert shown.stdout.startswith("news:1 at 0  1-1  ")
    *passed_over, error = shown.stderr.splitlines()
    assert len(passed_over) == 3
    assert passed_over[2] == f"warning: {newest}: no checkpoint of drift: 0 bytes"
    assert error == f"error: {tmp_path / 'news-0'}: no checkpoint can be used"
    adopted = run("adopt", tmp_path, "--topic", "news")
    assert (adopted.exit_code, "news-0: no checkpoint can be used" in adopted.stderr) == (2, True)
    assert [path.name for path in (tmp_path / "news-1").glob("epoch*")] == ["epoch-00000001"]


@pytest.mark.parametrize(
    "header",
    [{"time": 1e300}, {"time": -1.0}, {"time": math.nan}, {"metrics": {"examples": "many"}}],
)
def test_a_forged_header_is_shown_or_refused(file, header):
    whole = describe(file.read_bytes())
    path = file.with_name("checkpoint-00000001-0000000001.drift")
    path.write_bytes(seal(whole.header | header, [whole.payload], None))
    for shown in (run("show", path), run("show", path.parent)):
        assert shown.exit_code == (2 if "time" in header else 0)


def test_verify(file, tmp_path):
    unchecked = f"{file}: sound, its signature not checked: give --key-file\n"
    assert run("verify", file).stdout == unchecked
    key_file = tmp_path / "key"
    key_file.write_bytes(KEY + b"\n")
    sound = run("verify", file, "--key-file", key_file)
    assert sound.stdout == f"{file}: sound, signed with this key\n"
    key_file.write_bytes(b"wrong")
    refused = run("verify", file, "--key-file", key_file)
    assert (refused.exit_code, "not to be trusted" in refused.stderr) == (2, True)
    key_file.write_bytes(b"\n")
    refused = run("verify", file, "--key-file", key_file)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr == f"error: {key_file} is empty: write a key into it\n"


def test_verify_builds_a_model_of_drifts_own():
    data = to_bytes(some())[:-32]
    at = data.rindex(b"RBP")
    forged = data[:at] + b"RPB" + data[at + 3 :]
    with pytest.raises(CheckpointError, match="RPB"):
        verify(forged + hashlib.sha256(forged).digest())


def test_verify_loads_no_pickle(tmp_path):
    path = tmp_path / "armed.drift"
    path.write_bytes(forged())
    before = Armed.fired
    assert run("verify", path).stdout == f"{path}: sound, its model a pickle that was not loaded\n"
    assert run("show", path).exit_code == 0
    assert Armed.fired == before


@pytest.mark.parametrize("command", ["show", "verify"])
def test_a_fault_is_reported_in_a_line(command, file, tmp_path):
    file.write_bytes(file.read_bytes()[:-40])
    wrong = run(command, file)
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith(f"error: {file}: cut short or damaged: ")
    missing = run(command, tmp_path / "none.drift")
    assert missing.stderr == f"error: {tmp_path / 'none.drift'}: No such file or directory\n"
    assert run(command, tmp_path).stderr.startswith(f"error: {tmp_path} has no checkpoint: ")


def test_verify_checks_all_of_a_folder(tmp_path):
    folder = CheckpointFolder(tmp_path)
    for topic in ("a", "b"):
        epoch, _ = folder.claim((topic, 0))
        for offset in (1, 2):
            folder.save((topic, 0), epoch, LBP(budget=3), {(topic, 0): offset})
    files = sorted(tmp_path.rglob("checkpoint-*"))
    assert len(files) == 4
    sound = run("verify", tmp_path)
    assert (sound.exit_code, sound.stdout) == (0, "".join(f"{one}: sound\n" for one in files))
    assert run("verify", tmp_path / "a-0").stdout == f"{files[0]}: sound\n{files[1]}: sound\n"
    files[1].write_bytes(files[1].read_bytes()[:-40])
    damaged = run("verify", tmp_path)
    lines = damaged.stdout.splitlines()
    assert [line.partition(": ")[0] for line in lines] == [*map(str, files)]
    assert "cut short or damaged" in lines[1]
    assert (damaged.exit_code, damaged.stderr) == (2, "error: 1 of 4 checkpoints cannot be used\n")


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("model", "n"), [(Tracker(300), 3_000), (RBP(500, seed=1), 1_500)], ids=["Tracker", "RBP"]
)
def test_the_page_has_the_size_of_a_checkpoint(model, n):
    rows = dict(
        re.findall(r"^\| `?([\w ()]+)`? \| (\d.*) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    )
    sizes = rows[f"{type(model).__name__}({model.budget})"].replace(",", "").split(" | ")
    rng = random.Random(1)
    options = WorkerOptions(topic="t", group="g")
    for width, size in zip(rows["dense features"].split(" | "), sizes, strict=True):
        learner = Learner(model.clone(), JsonCodec(), Metrics.of(options), options)
        for offset in range(n):
            features = {f"f{i}": rng.gauss(0, 1) for i in range(int(width))}
            value = json.dumps({"features": features, "label": rng.random() < 0.5}).encode()
            learner.take(Message(Position("t", 0, offset), None, value, (), offset))
        taken = len(to_bytes(learner.snapshot())) / 1000
        assert taken == pytest.approx(float(size), rel=0.05), width
