"""A worker with a shadow against the broker inside the process, and what the commands show."""

import json
from itertools import count

import pytest
from click.testing import CliRunner

from drift.cli import _settings, app
from drift.cli._log import Secrets
from drift.consumers import CheckpointFolder, WorkerOptions, relearn
from drift.consumers.checkpoints.journal import read_order
from drift.errors import ConfigurationError, ParameterError
from drift.models import LBP
from drift.models._state.codec import encode
from drift.testing import Abort, Aborted
from tests.consumers.shadow_logs import AT, conf, learner, loop, messages
from tests.consumers.stepping import SESSION, claim_of, close, kill, learner_of, offsets, until

pytest.importorskip("kafka")
pytest.importorskip("confluent_kafka")

from drift.consumers.worker import Worker
from tests.consumers.topics import everything, send

KEY, PLACE = ("t", None), ("t", 0)
LOG = list(messages())
#: Groups that nobody was in: the mock cluster has whoever comes after somebody else wait.
GROUPS = count()


@pytest.fixture
def topics(broker):
    """The first half of the log, and a topic of predictions."""
    broker.create_topic("t")
    broker.create_topic("out")
    send(broker, LOG[:120])
    return broker


def worker(broker, folder, model=2, shadow=30, **more):
    given = {"topic": "t", "start": "earliest", "predictions": "out", "checkpoint_every": 20}
    one = Worker(
        LBP(model),
        CheckpointFolder(folder, conf(model, shadow)),
        broker.client_args,
        WorkerOptions(**{**given, "group": f"g{next(GROUPS)}", **more}),
        consumer={
            "session_timeout_ms": SESSION,
            "heartbeat_interval_ms": 200,
            "max_poll_records": 10,
        },
        shadow=None if shadow is None else LBP(shadow),
    )
    one._identity = one._consumer.identity  # without the group, which is another each time
    return one


def reach(one, offset):
    until(one, lambda: offsets(one).get(PLACE, 0) >= offset)
    return learner_of(one)


def of_all(one):
    """What must be equal, to the last bit."""
    return (encode(one.model), encode(one.shadow.model), one.shadow.test.state(), one.offsets)


@pytest.mark.parametrize(
    ("point", "times"),
    [
        *(("model.promoted", 1), ("outputs.flushed", 4)),
        *(("checkpoint.half-written", 4), ("checkpoint.renamed", 4)),
    ],
)
def test_a_worker_that_is_killed_about_a_promotion_continues_as_if_it_was_not(
    topics, tmp_path, point, times
):
    whole = learner(promote=AT)
    for message in LOG[:120]:
        whole.take(message)
    assert whole.promotions
    one = worker(topics, tmp_path, promote=AT)
    with Abort(point, count=times), pytest.raises(Aborted):
        reach(one, 120)
    kill(one)
    other = worker(topics, tmp_path, promote=AT)
    reach(other, 120)
    close(other)
    checkpoint = CheckpointFolder(tmp_path).newest(KEY)
    actual = learner()
    actual.restore(checkpoint)
    assert of_all(actual) == of_all(whole)
    assert [one["number"] for one in checkpoint.promotions] == [1]
    output = {}
    for record in everything(topics, "out"):
        offset, predicted = record.key().split(b":")[-1], json.loads(record.value())["predicted"]
        output.setdefault(int(offset), set()).add(predicted)
    expected = loop(LOG[:120], AT)[0]
    assert [*output.values()] == [{one} for one in expected]


def test_drift_promote_has_a_running_worker_continue_with_the_other_model(topics, tmp_path, caplog):
    one = worker(topics, tmp_path)
    reach(one, 120)
    assert one._end_save(claim_of(one))
    at = CheckpointFolder(tmp_path).newest(KEY).offsets[PLACE]
    assert CliRunner().invoke(app, ["promote", str(tmp_path)], input="n\n").exit_code == 0
    assert not CheckpointFolder(tmp_path).newest(KEY).promotions
    asked = CliRunner().invoke(app, ["promote", str(tmp_path)], input="y\n")
    assert "LBP is the shadow of LBP. Promote it" in asked.output
    send(topics, LOG[120:])
    reach(one, 240)
    until(one, lambda: learner_of(one) and learner_of(one).promotions)
    reach(one, 240)
    _, *models, pairs, _ = loop(LOG, by_hand=[at])
    learnt = learner_of(one)
    assert [encode(learnt.model), encode(learnt.shadow.model)] == models
    assert (learnt.shadow.test.wins, learnt.shadow.test.losses) == (
        *(sum(pairs), len(pairs) - sum(pairs)),
    )
    assert "continues with the model that was promoted, not with that of [model]" in caplog.text
    assert 'write [model] class = "LBP", budget = 30; [models.shadow] class' in caplog.text
    close(one)
    runs = read_order(one.folder.folder(KEY), one.folder.newest(KEY).id)
    again, _ = relearn(LBP(2), {PLACE: LOG}, runs, one.options, shadow=LBP(30))
    assert [encode(again.model), encode(again.shadow.model)] == models
    # The file is mended, and the old model left out.
    other = worker(topics, tmp_path, model=30, shadow=None)
    reach(other, 240)
    assert (encode(learner_of(other).model), learner_of(other).shadow) == (models[0], None)
    close(other)


def test_another_shadow_starts_anew_and_none_is_dropped(topics, tmp_path):
    one = worker(topics, tmp_path)
    reach(one, 120)
    close(one)
    first = LBP(2)
    _, model, shadow, *_ = loop(LOG[:120], model=first, shadow=LBP(30))
    other = worker(topics, tmp_path, shadow=9)
    learnt = reach(other, 120)
    assert encode(learnt.model) == model
    assert encode(learnt.shadow.model) == encode(LBP(9))
    assert learnt.shadow.since == {PLACE: 120}
    send(topics, LOG[120:180])
    reach(other, 180)
    close(other)
    _, model, shadow, *_ = loop(LOG[120:180], model=first, shadow=LBP(9))
    alone = worker(topics, tmp_path, shadow=None)
    learnt = reach(alone, 180)
    assert (encode(learnt.model), learnt.shadow) == (model, None)
    learnt.since_checkpoint = 1
    close(alone)
    assert CheckpointFolder(tmp_path).newest(KEY).shadow is None
    changed = worker(topics, tmp_path, model=3)
    with pytest.raises(ConfigurationError, match=r"model\.budget: 2 in the checkpoint, 3 now"):
        reach(changed, 1)
    close(changed)
    assert shadow != encode(LBP(9))


def test_a_promotion_takes_a_shadow(topics, tmp_path):
    with pytest.raises(ParameterError, match=r"promote takes a shadow: .* \[models.shadow\]"):
        worker(topics, tmp_path, shadow=None, promote=100.0)


# --- what files and commands say -----------------------------------------------------------------


def read(tmp_path, toml):
    path = tmp_path / "worker.toml"
    path.write_text(toml, encoding="utf-8")
    worker = {"topic": "t", "group": "g", "checkpoints": "c"}
    return _settings.read(path, {}, worker, {"class": "RBP"}, "h:1", Secrets())


def test_the_file_names_a_shadow_and_when_it_is_promoted(tmp_path):
    actual = read(
        tmp_path,
        '[models.shadow]\nclass = "Tracker"\n[promote]\nat = 100\n[labels]\ntopic = "l"',
    )
    assert actual.shadow == {"class": "Tracker", "late": True}
    assert actual.worker.promote == 100
    assert read(tmp_path, "").shadow is None


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("[promote]\nat = 100", r"there is no \[models.shadow\]"),
        ("[promote]\nat = 0.5", "must be at least 1"),
        ('[models.shado]\nclass = "LBP"', "has no 'shado': did you mean 'shadow'"),
        ("[models.shadow]\nbudget = 3", "needs a class"),
        ("[models]\nshadow = 'LBP'", "shadow must be a table"),
        ('[models.shadow]\nclass = "LBP"\nbudgt = 3', "no parameter 'budgt'"),
        ('[worker]\npromote = 100\n[models.shadow]\nclass = "LBP"', r"write at in \[promote\]"),
    ],
)
def test_a_shadow_that_cannot_be_is_refused(tmp_path, toml, message):
    with pytest.raises(ParameterError, match=message):
        read(tmp_path, toml)


def test_drift_watch_shows_both(topics, tmp_path):
    one = worker(topics, tmp_path / "c")
    reach(one, 120)
    close(one)
    config = tmp_path / "worker.toml"
    config.write_text(
        f'[worker]\ncheckpoints = "{tmp_path / "c"}"\n[models.shadow]\nclass = "LBP"\n'
        "[kafka]\napi_version = [2, 3]\n",
        encoding="utf-8",
    )
    asked = ["watch", "out", "--bootstrap", topics.address, "--config", str(config)]
    shown = CliRunner().invoke(app, [*asked, "--seconds", "0.5"])
    assert shown.exit_code == 0, shown.output
    count = one_of(tmp_path / "c").metrics["examples"]
    assert f"t-all: shadow LBP, {count} compared, error " in shown.output
    assert "that it errs less" in " ".join(shown.output.split())


def one_of(folder):
    return CheckpointFolder(folder).newest(KEY)
