"""Starting warm: what a history leaves, and what a worker makes of it."""

import pytest

from drift.consumers import CheckpointFolder, Example, JsonCodec, WorkerOptions, crash_points
from drift.consumers.learner import Learner
from drift.consumers.metrics import Metrics
from drift.consumers.warm import warm
from drift.errors import CheckpointError, FencedError, ParameterError
from drift.models import LBP, Tracker
from drift.models._state.codec import encode
from tests.consumers.late_logs import JOIN
from tests.crash_points import CHECKPOINT_POINTS, CLAIM_POINTS

KEY, FIRST = ("t", None), {("t", 0): 7, ("t", 1): 9}
OPTIONS = WorkerOptions(topic="t", group="g")
LATE = WorkerOptions(topic="t", group="g", labels="l", **JOIN)


def history(n=40):
    """Examples of a target that depends on both features, one of them a text."""
    for i in range(n):
        colour = ("red", "blue")[i * i % 3 == 1]
        yield Example({"size": 1.0 + i % 7, "colour": colour}, (i % 7 > 3) ^ (colour == "red"))


CODEC = JsonCodec(one_hot=True)


def loop(model, examples):
    """A plain loop, by what the codec would make of the texts."""
    wrong = []
    for features, label, *_ in examples:
        x = {"size": features["size"], f"colour={features['colour']}": 1}
        wrong.append(model.predict_one(x) != label)
        model.learn_one(x, label)
    return model, wrong


@pytest.fixture(params=["folder", "s3"])
def folder(request, tmp_path):
    root = tmp_path / "root" if request.param == "folder" else request.getfixturevalue("bucket")
    return CheckpointFolder(root, {"model": "x"})


def test_the_first_checkpoint_has_the_model_of_a_plain_loop(folder):
    made = warm(Tracker(9), folder, OPTIONS, history(), FIRST, codec=CODEC, identity={"group": "g"})
    assert (made.id, made.offsets) == ("1-1", FIRST)
    newest = folder.newest(KEY, {"group": "g"})
    model, wrong = loop(Tracker(9), history())
    assert encode(newest.model) == encode(model)
    counts = {"examples": 40, "unlabelled": 0, "mistakes": sum(wrong), "dead_letters": 0}
    assert newest.metrics.items() >= counts.items()
    measures = newest.metrics["measures"]
    pairs = zip(measures["of"], measures["predicted"], strict=True)
    assert [label != predicted for label, predicted in pairs] == wrong
    assert newest.metrics["alarms"] is None
    assert (newest.identity, newest.configuration, newest.join) == (
        {"group": "g"},
        {"model": "x", "codec": "JsonCodec", "codec.one_hot": True},
        None,
    )


def test_messages_and_examples_are_the_same_history(tmp_path):
    models = []
    for name, rows in (("a", history()), ("b", map(CODEC.encode, history()))):
        folder = CheckpointFolder(tmp_path / name)
        models.append(warm(LBP(9), folder, OPTIONS, rows, FIRST, codec=CODEC).model)
    assert encode(models[0]) == encode(models[1])


def test_a_tracker_of_late_labels_learns_a_history_with_its_gates(tmp_path):
    folder = CheckpointFolder(tmp_path)
    made = warm(Tracker(9), folder, LATE, history(), FIRST, codec=CODEC)
    assert made.model.late
    assert encode(made.model) == encode(loop(Tracker(9, late=True), history())[0])
    unpredicted = Tracker(9, late=True)
    for features, label, *_ in history():
        x = {"size": features["size"], f"colour={features['colour']}": 1}
        unpredicted.learn_one(x, label)
    assert encode(made.model) != encode(unpredicted)
    assert folder.newest(KEY).join[0]["ids"] == []
    assert folder.newest(KEY).configuration == LATE.settings() | {
        "codec": "JsonCodec",
        "codec.one_hot": True,
    }


def test_a_learner_continues_at_a_given_offset(tmp_path):
    folder = CheckpointFolder(tmp_path)
    warm(LBP(9), folder, OPTIONS, history(), FIRST, codec=CODEC)
    learner = Learner(LBP(9), CODEC, Metrics(*KEY), OPTIONS)
    learner.restore(folder.newest(KEY))
    assert (learner.offsets, learner.metrics.examples) == (FIRST, 40)


def test_what_cannot_be_learnt_is_omitted_and_reported(tmp_path):
    skipped = {}
    rows = [b"{", b'{"features": {"a": 1}}', Example({"a": 1.0}, True), Example({"a": "red"}, True)]
    made = warm(
        LBP(9), CheckpointFolder(tmp_path), OPTIONS, rows, FIRST, left_out=skipped.__setitem__
    )
    assert made.metrics["examples"] == 1
    assert skipped.keys() == {1, 2, 4}
    assert "value is no JSON" in str(skipped[1])
    assert skipped[2] is None
    assert "features['a'] is a string" in str(skipped[4])


def test_nothing_is_written_where_nothing_was_learnt(folder):
    with pytest.raises(CheckpointError, match="nothing was learnt: no example"):
        warm(LBP(9), folder, OPTIONS, [b'{"features": {"a": 1}}'], FIRST)
    column = Example({"fraud": 1.0, "sum": 2.0}, False)  # would be read as the label, and be lost
    with pytest.raises(CheckpointError, match=r"nothing was learnt: features\['fraud'\] is where"):
        warm(LBP(9), folder, OPTIONS, [column], FIRST, codec=JsonCodec(label="fraud"))
    assert not any(folder._files(KEY).listing())


def test_what_has_learnt_is_not_overwritten(folder):
    warm(LBP(9), folder, OPTIONS, history(), FIRST, codec=CODEC)
    with pytest.raises(CheckpointError, match="has checkpoint 1-1: a history is learnt before"):
        warm(LBP(9), folder, OPTIONS, iter([]), FIRST)
    assert folder._files(KEY).listing().epochs == [1]


def test_a_worker_that_began_meanwhile_is_not_overwritten(folder):
    def slowly():
        yield from history()
        epoch, _ = folder.claim(KEY)
        folder.save(KEY, epoch, LBP(9), {("t", 0): 1})

    with pytest.raises(CheckpointError, match="has checkpoint 1-1"):
        warm(LBP(9), folder, OPTIONS, slowly(), FIRST, codec=CODEC)
    assert folder.newest(KEY).offsets == {("t", 0): 1}


def test_a_history_that_a_worker_may_not_have_seen_is_not_reported_as_learnt(folder):
    crash_points.install("checkpoint.checked", lambda: folder._files(KEY).claim("a worker"))
    try:
        with pytest.raises(FencedError, match="a worker has the partition: drift checkpoint list"):
            warm(LBP(9), folder, OPTIONS, history(), FIRST, codec=CODEC)
    finally:
        crash_points.remove("checkpoint.checked")


@pytest.mark.parametrize(
    ("model", "options", "codec", "message"),
    [
        (object(), OPTIONS, CODEC, "is not a classifier"),
        (LBP(9), OPTIONS, JsonCodec(weight="w", require_label=True), None),
        (LBP(9), LATE, JsonCodec(require_label=True), "require_label would refuse"),
    ],
)
def test_what_a_worker_would_refuse_is_refused_first(tmp_path, model, options, codec, message):
    folder = CheckpointFolder(tmp_path / "c")
    if message is None:
        assert warm(model, folder, options, [Example({"a": 1}, True)], FIRST, codec=codec)
        return
    with pytest.raises(ParameterError, match=message):
        warm(model, folder, options, history(), FIRST, codec=codec)
    assert not (tmp_path / "c").exists()


class Stop(BaseException):
    """What ends a step."""


@pytest.mark.parametrize("point", [*CLAIM_POINTS, *CHECKPOINT_POINTS])
def test_wherever_it_ends_there_is_nothing_or_all_of_it(folder, point):
    def stop():
        raise Stop

    crash_points.install(point, stop)
    try:
        with pytest.raises(Stop):
            warm(LBP(9), folder, OPTIONS, history(), FIRST, codec=CODEC)
    finally:
        crash_points.remove(point)
    if point in {"checkpoint.renamed", "checkpoint.recorded", "checkpoint.pruned"}:
        with pytest.raises(CheckpointError, match="has checkpoint 1-1"):
            warm(LBP(9), folder, OPTIONS, history(), FIRST, codec=CODEC)
    else:
        assert folder.newest(KEY) is None
        warm(LBP(9), folder, OPTIONS, history(), FIRST, codec=CODEC)
    assert encode(folder.newest(KEY).model) == encode(loop(LBP(9), history())[0])
