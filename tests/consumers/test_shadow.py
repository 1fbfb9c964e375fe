"""A shadow and its promotion, without a broker: the test, the learners, the files."""

import json
from itertools import product

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import generate_latest
from river import base

from drift.cli import app
from drift.consumers import CheckpointFolder, Example, relearn
from drift.consumers.answers import Answer
from drift.consumers.checkpoints.agreement import agree
from drift.consumers.checkpoints.checkpoint import Checkpoint, from_bytes, to_bytes
from drift.consumers.checkpoints.file_format import describe, seal
from drift.consumers.checkpoints.files import newest
from drift.consumers.checkpoints.journal import read_order
from drift.consumers.checkpoints.promotion import promote
from drift.consumers.checkpoints.rollback import plan
from drift.consumers.exporter import Exporter
from drift.consumers.join import Join
from drift.consumers.json_codec import JsonCodec
from drift.consumers.late import LateLearner
from drift.consumers.learner import Learner
from drift.consumers.metrics import Metrics, WorkerMetrics
from drift.consumers.order import Runs
from drift.consumers.records import Message, Position
from drift.consumers.shadow import PairedTest, Shadow, promotion
from drift.consumers.warm import warm
from drift.errors import CheckpointError, ConfigurationError
from drift.models import LBP
from drift.models._state.codec import encode
from drift.testing import Abort, Aborted
from tests.consumers import late_logs
from tests.consumers.shadow_logs import (
    AT,
    CONFIGURATION,
    conf,
    learner,
    loop,
    messages,
    money,
    options,
)
from tests.consumers.twin_late import Twin
from tests.consumers.twin_late import learn as learn_one
from tests.consumers.twin_order import in_time
from tests.crash_points import CHECKPOINT_POINTS, CLAIM_POINTS

KEY = ("t", None)


# --- the test of pairs ---------------------------------------------------------------------------


def capital_of(pairs):
    test = PairedTest()
    for wins in pairs:
        test.add(wins, not wins)
        test.add(True, True)
        test.add(False, False)
    return test


@given(st.lists(st.booleans(), max_size=40), st.integers(0, 30), st.integers(0, 1 << 20))
@settings(deadline=None)
def test_the_e_value_is_what_a_bettor_has(few, times, tail):
    pairs = few * times + [bit == "1" for bit in f"{tail:b}"]
    test = capital_of(pairs)
    assert test.second_is_better == pytest.approx(money(pairs))
    assert test.first_is_better == pytest.approx(money([not wins for wins in pairs]))
    other = PairedTest.restore(json.loads(json.dumps(test.state())))
    for one in (test, other):
        one.add(True, False)
    assert vars(other) == vars(test)


def test_of_equal_models_the_capital_stays_one_on_average():
    capitals = [capital_of(pairs).second_is_better for pairs in product([False, True], repeat=10)]
    assert sum(capitals) / 2**10 == pytest.approx(1)


def test_who_starts_badly_need_not_win_it_back():
    assert capital_of([False] * 400 + [True] * 400).second_is_better > 1e3


def test_a_large_capital_is_finite():
    assert 1e290 < capital_of([True] * 2000).second_is_better < 1e300


@pytest.mark.parametrize(
    "state",
    [
        {"wins": 1, "losses": 0, "starts": []},
        {"wins": 1, "losses": 0, "starts": [[0, 0], [1, 0]]},
        {"wins": -1, "losses": 0, "starts": [[0, 0]]},
        {"wins": 1.0, "losses": 0, "starts": [[0, 0]]},
        {"wins": 64, "losses": 0, "starts": [[0, 0]]},
        {"wins": 64, "losses": 0, "starts": [[0, 0], [63, 1]]},
        {"wins": 9},
    ],
)
def test_counts_that_cannot_be_are_refused(state):
    shadow = Shadow(None).state() | {"test": state}
    one = Learner(LBP(2), JsonCodec(), Metrics("t"), options())
    with pytest.raises(CheckpointError, match="checkpoint 0-0 has no state of a shadow"):
        one.restore(Checkpoint(LBP(2), {}, shadow=(LBP(2), shadow)))


# --- a learner -----------------------------------------------------------------------------------


def all_of(one):
    """What a promoted and a plain one must have in common, to the last bit."""
    states = one.shadow.state(), one.metrics.state()
    return encode(one.model), encode(one.shadow.model), *map(json.dumps, states)


def assert_is(one, sent, expected):
    output, model, shadow, pairs, promotions = expected
    assert [json.loads(outgoing.value)["predicted"] for outgoing in sent] == output
    assert (encode(one.model), encode(one.shadow.model)) == (model, shadow)
    assert (one.shadow.test.wins, one.shadow.test.losses) == (sum(pairs), len(pairs) - sum(pairs))
    assert [promotion["number"] for promotion in one.promotions] == [*range(1, 1 + len(promotions))]


@pytest.mark.parametrize("at", [None, AT])
def test_a_shadow_learns_the_same_and_answers_once_it_is_promoted(at):
    one, log = learner(promote=at), list(messages())
    sent = [outgoing for message in log for outgoing in one.take(message)]
    expected = loop(log, at)
    assert bool(expected[-1]) is (at is not None)
    assert_is(one, sent, expected)
    one.note()
    assert one.metrics.shadow["shadow_examples"] == one.shadow.metrics.examples
    if at is None:
        # The same predictions as without a shadow.
        alone = Learner(LBP(2), JsonCodec(), Metrics("t"), options())
        assert [out.value for message in log for out in alone.take(message)] == [
            out.value for out in sent
        ]
        assert one.metrics.shadow["shadow_model_mistakes"] == alone.metrics.mistakes
        assert one.metrics.shadow["promotions"] == 0
    else:
        assert one.configuration["model.budget"] == 30
        assert one.promotions[0]["e_value"] >= AT
        assert one.promotions[0]["replaced"] == {"model": "LBP", "model.budget": 2}


def test_relearning_promotes_where_it_was():
    one, log = learner(promote=AT), list(messages())
    for message in log:
        one.take(message)
    runs, logs = one.runs.all(), {("t", 0): log}
    other, _ = relearn(LBP(2), logs, runs, one.options, shadow=LBP(30))
    assert all_of(other) == all_of(one)


class Failing(base.Classifier):
    """Cannot learn what has a 3 in its number, or predict what has a 5."""

    def __init__(self):
        self.learnt = 0

    def predict_one(self, x):
        if "w5" in x:
            raise ValueError("a five")
        return [] if "w7" in x else True

    def learn_one(self, x, y):
        if "w3" in x:
            raise ValueError("a three")
        self.learnt += 1


def test_a_shadow_that_raises_counts_as_wrong_there_and_continues(caplog):
    log = [
        Message(Position("t", 0, t), None, b'{"features": {"%s": 1}, "label": true}' % name)
        for t, name in enumerate([b"w3", b"w5", b"w7", b"w9", b"w9"])
    ]
    one = learner(shadow=Failing(), promote=2.0)
    letters = [out for message in log for out in one.take(message) if out.topic != "out"]
    assert (letters, one.metrics.examples, one.metrics.dead_letters) == ([], 5, 0)
    assert (one.shadow.errors, one.shadow.model.learnt, one.shadow.metrics.mistakes) == (3, 4, 3)
    assert "the shadow raises, which counts as a mistake of it: a three" in caplog.text


def test_prometheus_shows_both():
    one = learner(promote=AT)
    for message in messages():
        one.take(message)
    one.note()
    worker = WorkerMetrics()
    worker.models = [one.metrics]
    with Exporter(worker) as exporter:
        page = generate_latest(exporter.registry).decode()
    labels = '{group="g",model="LBP",topic="t"}'
    assert f"drift_promotions{labels} {float(one.promotions[-1]['number'])}" in page
    assert f"drift_shadow_mistakes{labels} {float(one.shadow.metrics.mistakes)}" in page
    assert f"drift_shadow_e_value{labels} {one.shadow.test.second_is_better}" in page
    assert "shadow_e_value=" in one.metrics.line()


# --- labels that come later ----------------------------------------------------------------------


def late(**more):
    one = LateLearner(
        LBP(2),
        JsonCodec(weight="weight"),
        Metrics("f"),
        options(topic="f", labels="l", timestamps="create", **{**late_logs.JOIN, **more}),
    )
    one.shadow = Shadow(LBP(30))
    return one


def restarted(one, log):
    """The learner that continues from a checkpoint of this one."""
    other = late()
    other.options = one.options
    state, values = one.join_state()()
    checkpoint = Checkpoint(
        *(one.model, one.offsets),
        metrics=one.metrics.state(),
        clocks=one.clocks,
        join=(state, values),
        shadow=one.shadow_state(),
        promotions=one.promotions,
    )
    other.restore(from_bytes(to_bytes(checkpoint)))
    for place in other.join.missing():
        for message in log[place]:
            other.join.supply(message)
    return other


class Pair:
    """Two models, which predict at once; and how often they have changed places."""

    def __init__(self, first, second):
        self.first, self.second, self.changes, self.pairs = first, second, 0, []

    def predict_one(self, x):
        return self.first.predict_one(x), self.second.predict_one(x), self.changes


class PairTwin(Twin):
    """Compares what both predicted as the features came, if they had their places by then."""

    def learn(self, one, label, weight, *, is_new=True):
        both, (first, second, changes) = self.model, one.predicted
        for model in (both.first, both.second):
            learn_one(model, one.x, label, weight)
        if is_new and changes == both.changes and (first == label) != (second == label):
            both.pairs.append(second == label)
            if second == label and money(both.pairs) >= self.options.promote:
                both.first, both.second, both.pairs = both.second, both.first, []
                both.changes += 1


@pytest.mark.parametrize("stored", [0, 4 << 20])
@pytest.mark.parametrize("join", [late_logs.JOIN, late_logs.SILENCE])
def test_late_labels_compare_what_was_predicted_as_the_features_came(monkeypatch, stored, join):
    monkeypatch.setattr("drift.consumers.checkpoints.join_state.STORED", stored)
    log = late_logs.messages(late_logs.logs(200))
    one = other = late(promote=1.2, **join)
    twin = PairTwin(one.options, Pair(LBP(2), LBP(30)), one.codec, with_scores=False)
    waited = 0
    for n, message in enumerate(in_time(log)):
        one.take(message)
        if n % 97 == 0:
            other = restarted(other, log)
        other.take(message)
        twin.take(message)
        waited += any(waiting.shadowed is not None for waiting in one.join._waiting.values())
    both = twin.model
    assert waited > 50
    assert both.changes == one.promotions[-1]["number"] > 0
    assert (encode(one.model), encode(one.shadow.model)) == (
        *(encode(both.first), encode(both.second)),
    )
    wins = sum(both.pairs)
    assert (one.shadow.test.wins, one.shadow.test.losses) == (wins, len(both.pairs) - wins)
    assert all_of(other) == all_of(one)


def test_a_shadow_is_not_compared_on_features_that_came_before_it():
    one = late()
    one.shadow = None
    for t in range(3):
        value = b'{"id": %d, "features": {"a": 1}}' % t
        one.take(Message(Position("f", 0, t), None, value, timestamp=t))
        if t == 1:
            one.shadow = Shadow(LBP(30), one.offsets)
    for t in range(3):
        value = b'{"id": %d, "label": true}' % t
        one.take(Message(Position("l", 0, t), None, value, timestamp=10 + t))
    assert (one.metrics.examples, one.shadow.metrics.examples) == (3, 1)
    assert encode(one.shadow.model) != encode(LBP(30))  # it has learnt all of them


def test_a_forged_prediction_of_a_shadow_is_refused():
    one = late()
    one.take(Message(Position("f", 0, 0), None, b'{"id": 1, "features": {"a": 1}}', timestamp=0))
    state, values = one.join_state()()
    state |= {"shadowed": [True]}
    restored = Join.restore(state, values, one.options, one.offsets)
    assert restored._waiting[1].shadowed is True
    for forged in ([], [True, True], [[True]], [{}]):
        with pytest.raises(ValueError, match=r"label|argument"):
            Join.restore(state | {"shadowed": forged}, values, one.options, one.offsets)


# --- a history, and back -------------------------------------------------------------------------


def test_a_shadow_learns_a_history_too(tmp_path):
    examples = [json.loads(one.value) for one in messages() if b"label" in one.value]
    history = [Example(one["features"], one["label"]) for one in examples]
    folder = CheckpointFolder(tmp_path, CONFIGURATION)
    warm(LBP(2), folder, options(promote=AT), history, {("t", 0): 7}, shadow=LBP(30))
    made = folder.newest(KEY)
    one = learner(promote=AT)
    one.restore(made)
    log = [Message(Position("t", 0, i), None, json.dumps(x)) for i, x in enumerate(examples)]
    assert_is(one, [], ([], *loop(log, AT)[1:]))
    assert one.promotions
    assert made.configuration["model.budget"] == 30


def test_who_goes_back_but_keeps_offsets_has_predicted_nothing_that_waits(tmp_path):
    folder, one = CheckpointFolder(tmp_path, CONFIGURATION), learner()
    epoch, _ = folder.claim(KEY)
    log = list(messages())
    for n, message in enumerate(log[:40]):
        one.take(message)
        if n in {19, 39}:
            save(folder, one, epoch)
    [(partition, _)] = newest(tmp_path)
    before = folder.newest(KEY)
    plan(partition, "1-1", keep_offsets=True).write(None)
    back = learner()
    back.restore(folder.newest(KEY))
    again = learner()
    for message in log[:20]:
        again.take(message)
    assert (back.offsets, back.shadow.since) == (before.offsets, {("t", 0): 40})
    assert encode(back.shadow.model) == encode(again.shadow.model)
    assert back.shadow.test.state() == again.shadow.test.state()


# --- crashes -------------------------------------------------------------------------------------


def save(folder, one, epoch):
    one.epoch = epoch
    given = {"runs": one.runs.all(), "previous": one.checkpoint}
    one.checkpoint = folder.prepare(KEY, one.snapshot(), **given)().id
    one.runs = Runs()


def learn(path, log, at=AT, every=20):
    """Learn a log into a folder from where that is, with a checkpoint for so many messages."""
    folder = CheckpointFolder(path, CONFIGURATION)
    epoch, checkpoint = folder.claim(KEY)
    one = learner(promote=at)
    if checkpoint is not None:
        one.restore(checkpoint)
    for message in log:
        one.take(message)
        if (message.position.offset + 1) % every == 0:
            save(folder, one, epoch)
    save(folder, one, epoch)
    return one


POINTS = [
    *((point, 1) for point in CLAIM_POINTS),
    *((point, count) for point in CHECKPOINT_POINTS for count in (5, 8)),
    *(("message.taken", count) for count in (30, 70, 100)),
    ("model.promoted", 1),
]


@pytest.fixture(scope="module")
def whole():
    """A log, and what a learner has of it that does not crash."""
    log, one, promotions = list(messages(115)), learner(promote=AT), []
    for message in log:
        one.take(message)
        promotions.append(len(one.promotions))
    assert (promotions[69], promotions[99], promotions[-1]) == (0, 1, 1)  # between two crashes
    return log, all_of(one)


@pytest.mark.parametrize(("point", "count"), POINTS)
def test_a_crash_changes_neither_models_nor_evidence(tmp_path, whole, point, count):
    log, expected = whole
    with Abort(point, count=count), pytest.raises(Aborted):
        learn(tmp_path, log, every=14)
    assert all_of(learn(tmp_path, log, every=14)) == expected
    folder = CheckpointFolder(tmp_path)
    one = learner(promote=AT)
    one.restore(folder.newest(KEY))
    assert all_of(one) == expected
    runs = read_order(folder.folder(KEY), folder.newest(KEY).id)
    again, _ = relearn(LBP(2), {("t", 0): log}, runs, one.options, shadow=LBP(30))
    assert all_of(again) == expected


# --- by hand -------------------------------------------------------------------------------------


HAND = 100


def by_hand(path, *more):
    return CliRunner().invoke(app, ["promote", str(path), "--yes", *map(str, more)])


def test_a_promotion_by_hand_is_that_of_a_loop(tmp_path):
    log = list(messages())
    one = learn(tmp_path, log[:HAND], at=None)
    shown = by_hand(tmp_path)
    assert shown.exit_code == 0
    assert '[models.shadow] class = "LBP", budget = 2' in shown.output
    expected = loop(log, by_hand=[HAND])
    folder = CheckpointFolder(tmp_path, CONFIGURATION)
    epoch, checkpoint = folder.claim(KEY)
    assert checkpoint.offsets == {("t", 0): HAND}
    other = learner()
    other.restore(checkpoint)
    sent = [out for message in log[HAND:] for out in other.take(message)]
    output, *rest = expected
    assert_is(other, sent, (output[-len(sent) :], *rest))
    assert (other.promotions[0]["by"], other.promotions[0]["examples"]) == (
        *("hand", one.metrics.examples),
    )
    assert other.metrics.examples == one.metrics.examples + sum(
        b"label" in message.value for message in log[HAND:]
    )
    save(folder, other, epoch)
    folder_of_it = folder.folder(KEY)
    runs = read_order(folder_of_it, folder.newest(KEY).id)
    assert max(run["t", 0] for run in runs) == len(log)  # the order is whole
    again, sent_again = relearn(LBP(2), {("t", 0): log}, runs, one.options, shadow=LBP(30))
    assert_is(again, sent_again, expected)
    assert again.shadow.since == {("t", 0): HAND}
    refused = r"by checkpoint 2-1 a shadow has .* by drift promote, promotion 1; relearn has made 0"
    with pytest.raises(CheckpointError, match=refused):
        relearn(LBP(2), {("t", 0): log}, runs, one.options)
    [line] = CliRunner().invoke(app, ["checkpoint", "show", str(tmp_path)]).output.splitlines()
    assert "shadow LBP  promotions 1" in line
    file = max(folder_of_it.glob("checkpoint-*"))
    described = CliRunner().invoke(app, ["checkpoint", "show", str(file)]).output
    assert "by hand, e " in described
    assert "compared, error" in described
    assert CliRunner().invoke(app, ["checkpoint", "verify", str(file)]).exit_code == 0


def saved_with(path, shadow, log, at=None):
    """Learn a log into a folder, from where that is, beside a shadow that begins there."""
    folder = CheckpointFolder(path, CONFIGURATION)
    epoch, checkpoint = folder.claim(KEY)
    one = learner(promote=at)
    one.shadow = None
    if checkpoint is not None:
        one.restore(checkpoint)
    one.shadow = None if shadow is None else Shadow(shadow, one.offsets)
    for message in log:
        one.take(message)
    save(folder, one, epoch)
    return one, read_order(folder.folder(KEY), one.checkpoint)


@pytest.mark.parametrize("by_hand", [False, True])
def test_relearning_begins_and_drops_a_shadow_where_the_worker_did(tmp_path, by_hand):
    log, first, second = list(messages(120)), LBP(2), LBP(30)
    saved_with(tmp_path, None, log[:40])
    saved_with(tmp_path, LBP(30), log[40:80])
    [(partition, _)] = newest(tmp_path)
    if by_hand:
        promote(partition, None)
    _, runs = saved_with(tmp_path, None, log[80:])
    again, _ = relearn(LBP(2), {("t", 0): log}, runs, options(), shadow=LBP(30))
    loop(log[:40], model=first, shadow=LBP(9))
    loop(log[40:80], model=first, shadow=second)
    last = second if by_hand else first
    loop(log[80:], model=last, shadow=LBP(9))
    assert (encode(again.model), again.shadow) == (encode(last), None)
    assert len(again.promotions) == by_hand


def test_relearning_without_what_was_promoted_is_refused_and_without_another_shadow_not(tmp_path):
    log = list(messages())
    one, runs = saved_with(tmp_path / "a", LBP(30), log, at=AT)
    assert one.promotions
    for more in ({}, {"shadow": LBP(30)}):  # the second one without `promote`
        with pytest.raises(CheckpointError, match=r"by checkpoint 1-1 .*, promotion 1; .* made 0"):
            relearn(LBP(2), {("t", 0): log}, runs, options(), **more)
    saved_with(tmp_path / "b", LBP(30), log[:40])
    one, runs = saved_with(tmp_path / "b", LBP(9), log[40:])
    again, _ = relearn(LBP(2), {("t", 0): log}, runs, options())
    assert encode(again.model) == encode(one.model) == loop(log)[1]
    with pytest.raises(CheckpointError, match="another shadow had begun by checkpoint 2-1"):
        relearn(LBP(2), {("t", 0): log}, runs, options(), shadow=LBP(30))


@pytest.mark.parametrize("point", ["checkpoint.order-half-written", *CHECKPOINT_POINTS[3:8]])
def test_a_promotion_that_is_interrupted_is_there_or_not(tmp_path, point):
    log = list(messages())[:HAND]
    before = all_of(learn(tmp_path, log, at=None))
    [(partition, _)] = newest(tmp_path)
    with Abort(point), pytest.raises(Aborted):
        promote(partition, None)
    checkpoint = CheckpointFolder(tmp_path, CONFIGURATION).newest(KEY)
    assert checkpoint.offsets == {("t", 0): HAND}
    one = learner()
    one.restore(checkpoint)
    if checkpoint.promotions:
        assert point == "checkpoint.renamed"
        assert all_of(one)[:2] == before[1::-1]
        assert one.shadow.since == {("t", 0): HAND}
    else:
        assert all_of(one) == before


def test_a_worker_that_learns_while_somebody_promotes_cannot_save(tmp_path):
    folder = CheckpointFolder(tmp_path, CONFIGURATION)
    epoch, _ = folder.claim(KEY)
    one = learner()
    save(folder, one, epoch)
    assert by_hand(tmp_path).exit_code == 0
    with pytest.raises(CheckpointError, match=r"claimed again since.*drift promote has"):
        save(folder, one, epoch)


def test_a_signed_checkpoint_is_promoted_with_its_key(tmp_path):
    (tmp_path / "key").write_bytes(b"a key")
    folder = CheckpointFolder(tmp_path / "c", secret=b"a key")
    save(folder, learner(), folder.claim(KEY).epoch)
    assert "it is signed: give the file of its key" in by_hand(tmp_path / "c").output
    assert by_hand(tmp_path / "c", "--key-file", tmp_path / "key").exit_code == 0
    assert folder.newest(KEY).promotions[0]["number"] == 1


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("second", [True, False])
def test_a_shadow_wins_where_it_alone_is_right(first, second):
    shadow = Shadow(LBP(2))
    answer = Answer(first, None, second)
    assert shadow.compare(True, answer) is (second and not first)
    assert (shadow.test.wins, shadow.test.losses) == (second and not first, first and not second)


def test_errors_of_a_shadow_and_the_last_ten_promotions_are_kept():
    shadow = Shadow(LBP(2))
    shadow.errors = 7
    assert Shadow.restore(json.loads(json.dumps(shadow.state())), LBP(2)).errors == 7
    made = []
    for _ in range(13):
        models = {"model": "LBP", "shadow": "RBP"}
        made = promotion(made, configuration=models, shadow=shadow.state(), counts={}, by="hand")
    assert [one["number"] for one in made] == [*range(4, 14)]


def test_nothing_is_promoted_where_there_is_no_shadow(tmp_path):
    folder = CheckpointFolder(tmp_path)
    folder.save(KEY, folder.claim(KEY).epoch, LBP(2), {})
    shown = by_hand(tmp_path)
    assert (shown.exit_code, "0 models with a shadow" in shown.output) == (2, True)
    [(partition, _)] = newest(tmp_path)
    with pytest.raises(CheckpointError, match="no shadow to be promoted"):
        promote(partition, None)


def test_a_forged_shadow_is_refused():
    checkpoint = Checkpoint(LBP(2), {}, shadow=(LBP(30), Shadow(None).state()))
    old = describe(to_bytes(checkpoint))
    for forged in (
        *({"shadow": 5}, {"shadow": old.header["shadow"] | {"size": 10**9}}),
        *({"shadow": old.header["shadow"] | {"size": -1}}, {"promotions": [{"number": 1}]}),
        *({"shadow": {}}, {"shadow": old.header["shadow"] | {"payload": "none"}}),
    ):
        with pytest.raises(CheckpointError, match=r"shadow|promotions|stored as 'none'"):
            from_bytes(seal(old.header | forged, [old.payload], None))


# --- another configuration -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "now", "replaced", "agreed", "kept"),
    [
        (conf(1), conf(1), None, conf(1), True),
        (conf(1), conf(1, 2), None, conf(1, 2), False),
        (conf(1, 2), conf(1, 2), None, conf(1, 2), True),
        (conf(1, 2), conf(1, 3), None, conf(1, 3), False),
        (conf(1, 2), conf(1), None, conf(1), False),
        (conf(1, 2), conf(3, 2), None, None, None),
        (conf(1, 2), conf(2, 1), None, None, None),
        # 1 was replaced by 2, which the file does not know, or does; then has others.
        (conf(2, 1), conf(1, 2), 1, conf(2, 1), True),
        (conf(2, 1), conf(2, 1), 1, conf(2, 1), True),
        (conf(2, 1), conf(2, 2), 1, conf(2, 1), True),
        (conf(2), conf(2, 2), 1, conf(2, 2), False),
        (conf(2, 3), conf(1, 2), 1, conf(2, 1), False),
        (conf(2, 1), conf(2), 1, conf(2), False),
        (conf(2, 1), conf(1), 1, conf(2), False),
        (conf(2, 1), conf(1, 3), 1, conf(2, 3), False),
        (conf(2, 1), conf(2, 3), 1, conf(2, 3), False),
        (conf(2, 1), conf(3, 2), 1, None, None),
        (conf(2, 1), conf(3), 1, None, None),
        (conf(2), conf(1, 2), 1, conf(2, 1), False),
    ],
)
def test_what_continues_is_what_both_configurations_say(before, now, replaced, agreed, kept):
    was = None if replaced is None else {"model": "LBP", "model.budget": replaced}
    if agreed is None:
        with pytest.raises(ConfigurationError, match=r"model\.budget"):
            agree("file", before, now, was)
    else:
        assert agree("file", before, now, was) == (agreed, kept)
