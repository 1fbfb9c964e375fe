"""Labels of a second topic: a function of the two logs, against a twin of lists alone."""

import json
import math
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from drift.consumers import read_logs, relearn
from drift.consumers.checkpoints.state import encode
from drift.consumers.codec import JsonCodec
from drift.consumers.join import FeatureMessage, Join, JoinOptions, LabelMessage
from drift.consumers.records import CutValue, Message, Position, RawName
from drift.errors import ParameterError, UnavailableError
from drift.models import LBP

IDS = st.one_of(st.none(), st.integers(0, 7), st.sampled_from(["a", "1", "2"]))
#: Times that mostly grow, and sometimes go back, as those of producers do.
TIMES = st.integers(0, 40_000)


@st.composite
def logs(draw):
    """Two logs whose offsets have gaps, as those with transactions have."""
    made = []
    for _ in range(2):
        ids = draw(st.lists(st.tuples(IDS, TIMES, st.integers(0, 9)), max_size=25))
        orderly = draw(st.booleans())
        times = sorted(time for _, time, _ in ids) if orderly else [time for _, time, _ in ids]
        gaps = [0, *(gap // 5 for *_, gap in ids)]
        made.append(
            [
                (n + sum(gaps[: n + 1]), times[n], name, size)
                for n, (name, _, size) in enumerate(ids)
            ]
        )
    features = [FeatureMessage(o, t, i, {f"w{o % 5}": 1.0 + o}, s) for o, t, i, s in made[0]]
    labels = [LabelMessage(o, t, i, s % 2 == 0, None if s < 7 else s / 4) for o, t, i, s in made[1]]
    options = JoinOptions(
        max_age=draw(st.sampled_from([0, 3.5, 20, 100])),
        grace=draw(st.sampled_from([0, 1, 10, 100])),
        pending=draw(st.sampled_from([1, 2, 5, 100])),
        pending_bytes=draw(st.sampled_from([1, 12, 1000])),
    )
    return features, labels, options


def twin(features, labels, options, given_up=()):  # noqa: C901, PLR0912 - one loop, to be read
    """The same by lists, from the words of the module alone."""
    kept = []  # [offset, time, id, features or None, size], as they came
    read, counts, learnt = 0, Counter(), []
    for number, label in enumerate(labels):
        now = max(one.time for one in labels[: number + 1])
        for one in list(kept):
            if one[1] < now - 1000 * options.max_age:
                kept.remove(one)
                counts["expired"] += one[3] is not None
        while label.id is not None and label.id not in [one[2] for one in kept]:
            at = max((one.time for one in features[:read]), default=-1)
            if at > label.time + 1000 * options.grace:
                break
            if (label.offset, features[read - 1].offset + 1 if read else 0) in given_up:
                break
            if read == len(features):
                return kept, counts, learnt, label.offset
            message = features[read]
            read += 1
            if message.id is None:
                continue
            if message.id in [one[2] for one in kept]:
                counts["repeated"] += 1
                continue
            at = max(one.time for one in features[:read])
            kept.append([message.offset, at, message.id, message.features, message.size])
            while len(kept) > options.pending or (
                sum(one[4] for one in kept if one[3] is not None) > options.pending_bytes
            ):
                counts["evicted"] += kept.pop(0)[3] is not None
        [found] = [one for one in kept if one[2] == label.id] or [None]
        if label.id is None:
            counts["refused"] += 1
        elif found is None:
            counts["orphan"] += 1
        elif found[3] is None:
            counts["duplicate"] += 1
        else:
            counts["learnt"] += 1
            learnt.append((found[3], label.label, label.weight))
            found[3] = None
    return kept, counts, learnt, labels[-1].offset + 1 if labels else 0


def _prediction(model, x):
    return model.predict_one(x), model.decision_function_one(x), model.predict_proba_one(x)


def learn(model, learnt):
    for x, y, w in learnt:
        model.learn_one(x, y) if w is None else model.learn_one(x, y, w=w)


@given(logs())
@example(([], [LabelMessage(3, 0, "a", label=True)], JoinOptions()))
def test_what_is_learnt_is_what_lists_learn(given_logs):
    features, labels, options = given_logs
    model, plain = LBP(5), LBP(5)
    join, _ = relearn(model, features, labels, options=options)
    kept, counts, learnt, offset = twin(features, labels, options)
    learn(plain, learnt)
    assert encode(model) == encode(plain)
    assert +join.counts == +counts
    assert join.labels == offset
    assert [(one.offset, name) for name, one in join._kept.items()] == [
        (o, i) for o, _, i, *_ in kept
    ]
    assert join.pending == sum(one[3] is not None for one in kept)
    assert len(join._kept) <= options.pending
    assert join._bytes == sum(one[4] for one in kept if one[3] is not None) <= options.pending_bytes


@given(logs(), st.lists(st.integers(0, 60), max_size=5), st.lists(st.integers(0, 25), max_size=4))
def test_neither_restarts_nor_fetches_change_anything(  # noqa: C901 - a driver of its own
    given_logs, restarts, fetches
):
    features, labels, options = given_logs
    whole, _ = relearn(LBP(5), features, labels, options=options)
    join, learnt, steps = Join(options), [], 0

    def restarted(join):
        nonlocal steps
        steps += 1
        if steps not in restarts:
            return join, False
        return Join.restore(json.loads(json.dumps(join.state())), options), True

    blocked = None
    for end in [*sorted(fetches), len(features)]:  # as far as the log has come
        again = True
        while again:
            again = False
            for label in [one for one in labels if one.offset >= join.labels]:
                if blocked != label:
                    join.begin(label)
                blocked = None
                join, again = restarted(join)
                while not again and join.waits:
                    there = [one for one in features[:end] if one.offset >= join.features]
                    if not there:
                        blocked = label
                        break
                    join.read(there[0])
                    join, again = restarted(join)
                if again or blocked:
                    break
                outcome = join.finish()
                learnt.append((outcome.kind, label.offset))
                join, again = restarted(join)
                if again:
                    break
    assert join.state() == whole.state()
    assert len(learnt) == sum(
        whole.counts[kind] for kind in ("learnt", "duplicate", "orphan", "refused")
    )
    assert [offset for _, offset in learnt] == sorted({offset for _, offset in learnt})


@given(logs(), st.data())
def test_relearning_makes_the_decisions_and_predictions_of_the_worker(given_logs, data):
    features, labels, options = given_logs
    worker, join = LBP(5), Join(options)
    rest, predicted = list(features), {}
    for label in labels:
        for message in (
            data.draw(st.lists(st.sampled_from(features), max_size=2)) if features else ()
        ):
            one = message.offset, join.labels
            predicted[one] = _prediction(worker, message.features)
        join.begin(label)
        while join.waits:
            if not rest or data.draw(st.booleans()):
                join.give_up()
            else:
                join.read(rest.pop(0))
        outcome = join.finish()
        if outcome.kind == "learnt":
            learn(worker, [(outcome.features, label.label, label.weight)])
    model = LBP(5)
    again, same = relearn(
        model, features, labels, predicted, options=options, given_up=join.given_up
    )
    assert again.state() == join.state()
    assert encode(model) == encode(worker)
    assert same == predicted
    *_, learnt, _ = twin(features, labels, options, join.given_up)
    plain = LBP(5)
    learn(plain, learnt)
    assert encode(plain) == encode(worker)


def test_a_label_before_its_features_waits_for_the_grace():
    features = [FeatureMessage(n, 1000 * n, f"id{n}", {"x": n}) for n in range(10)]
    late = LabelMessage(0, 2000, "id7", label=True)
    for grace, kind, read in ((5, "learnt", 8), (4, "learnt", 8), (3, "orphan", 7)):
        join, _ = relearn(LBP(5), features, [late], options=JoinOptions(grace=grace))
        assert (+join.counts, join.features) == (Counter({kind: 1}), read)


def test_of_a_repeated_id_the_first_counts_and_its_label_once():
    features = [FeatureMessage(n, n, "a", {"x": 1.0 + n}) for n in range(3)]
    labels = [LabelMessage(n, 9, name, label=True) for n, name in enumerate("aab")]
    model = LBP(5)
    join, _ = relearn(model, features, [*labels, LabelMessage(3, 9, "z", label=True)])
    assert [x for x, _ in model.supports] == [{"x": 1.0}]
    assert join.counts == Counter({"learnt": 1, "duplicate": 1, "repeated": 2})
    assert join.labels == 2  # where the features of "b" may still come


def test_what_a_worker_could_not_learn_is_done_and_not_learnt():
    given = [{"x": 1.0}, {"x": 1e300}, {"x": 2.0}, {"x": 3.0}]
    features = [FeatureMessage(n, n, n, x) for n, x in enumerate(given)]
    labels = [LabelMessage(n, 9, n % 4, y) for n, y in enumerate([True, True, "?", False, True])]
    model, plain = LBP(5), LBP(5)
    join, _ = relearn(model, features, labels)
    learn(plain, [({"x": 1.0}, True, None), ({"x": 3.0}, False, None)])
    assert encode(model) == encode(plain)
    assert +join.counts == Counter({"learnt": 4, "duplicate": 1})


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ParameterError, match="pending must be at least 1, not 0"):
        JoinOptions(pending=0)
    for name in ("max_age", "grace"):
        with pytest.raises(ParameterError, match=f"{name} must be a finite number, not inf"):
            JoinOptions(**{name: math.inf})
    with pytest.raises(ParameterError, match="no label was begun"):
        Join(JoinOptions()).finish()
    Join(JoinOptions()).give_up()


class Strict(JsonCodec):
    """Raises what a codec of a user's may."""

    def decode(self, value, headers=()):
        if value == b"odd":
            raise ValueError(value)
        return super().decode(value, headers)


def test_what_a_worker_gives_up_is_nothing_in_its_logs():
    good = b'{"id": 7, "features": {"a": 1.0}, "label": true, "weight": 2.0}'
    named = [(RawName(b"\xff"), b"1")]
    given = [
        (good, ()),
        (b"odd", ()),
        (good, named),
        (CutValue(good, size=9), ()),
        (b"{", ()),
        (None, ()),
    ]
    messages = [
        Message(Position("t", 0, offset), None, value, headers, timestamp=9)
        for offset, (value, headers) in enumerate(given)
    ]
    features, labels = read_logs(messages, messages, Strict(weight="weight"))
    assert features[0] == FeatureMessage(0, 9, 7, {"a": 1.0}, len(good))
    assert labels[0] == LabelMessage(0, 9, 7, True, 2.0)
    assert [(one.offset, one.id, one.features) for one in features[1:]] == [
        (offset, None, None) for offset in range(1, 6)
    ]
    assert [one[:4] for one in labels[1:]] == [(offset, 9, None, None) for offset in range(1, 6)]


def test_a_registry_that_is_away_ends_relearning_as_it_ends_a_worker():
    class Away(JsonCodec):
        def decode(self, value, headers=()):
            raise UnavailableError("the registry does not answer")

    message = Message(Position("t", 0, 0), None, b"{}")
    with pytest.raises(UnavailableError):
        read_logs([message], [], Away())
