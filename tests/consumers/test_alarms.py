"""Alarms: a naive twin of the detector and of the movements, and what a restart keeps."""

import json
import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drift.consumers import JsonCodec
from drift.consumers import alarms as module
from drift.consumers.alarms import Alarms, Detector, Movement
from drift.consumers.answers import Answer
from drift.consumers.learner import Learner
from drift.consumers.metrics import Metrics
from drift.consumers.options import WorkerOptions
from drift.consumers.records import Message, Position
from drift.consumers.relearning import relearn
from drift.errors import ParameterError
from drift.models import LBP

# --- the detector --------------------------------------------------------------------------------


def weight(j):
    return 1 / math.log2(j + 1) - 1 / math.log2(j + 2)


def bernstein(numbers, guesses, variance, failure):
    """The bound of Waudby-Smith and Ramdas, of the numbers turned around, by sums over them."""
    n = len(numbers)
    rate = min(0.5, math.sqrt(2 * math.log(1 / failure) / (n * variance)))
    psi = -math.log(1 - rate) - rate
    spent = sum(psi * ((1 - x) - (1 - g)) ** 2 for x, g in zip(numbers, guesses, strict=True))
    low = sum(1 - x for x in numbers) / n - (math.log(1 / failure) + spent) / (rate * n)
    return 1 - low


def moments(numbers):
    mean = sum(numbers) / len(numbers)
    variance = sum((x - mean) ** 2 for x in numbers) / len(numbers)
    return mean, max(variance, 1 / len(numbers))


def bounds(numbers, level):
    """The least bound by the number of examples from which on it holds."""
    result, start, k, guesses = {}, 256, 1, [None] * 256
    guess = first = moments(numbers[:256])
    while (end := start + 256 * 2**k) <= len(numbers):
        block = numbers[start:end]
        guesses += [guess[0]] * len(block)
        failure = level / 4 * weight(k)
        result[end] = min(
            bernstein(block, guesses[start:], guess[1], failure),
            bernstein(numbers[256:end], guesses[256:], first[1], failure),
            *result.values(),
        )
        guess, start, k = moments(block), end, k + 1
    return result


def twin(numbers, level):
    """The first alarm: each bettor of each start has its own wealth."""
    known, wealths, bound, groups = bounds(numbers, level), [], None, 0
    for end in range(8, len(numbers) + 1, 8):
        mean = sum(numbers[end - 8 : end]) / 8
        if bound is not None:
            if groups % 8 == 0:
                share = weight(groups // 8 + 1) / 5
                wealths += [[share, f] for f in (7 / 8, 1 / 2, 1 / 4, 1 / 8, 1 / 16)]
            groups += 1
            for one in wealths:
                one[0] *= 1 + one[1] * (mean / bound - 1)
            if sum(wealth for wealth, _ in wealths) >= 2 / level:
                return end - 1
        bound = known.get(end, bound)
    return None


def stream(n, seed, before, after, at, *, bits):
    draw = random.Random(seed)
    for i in range(n):
        mean = after if i >= at else before
        yield float(draw.random() < mean) if bits else draw.random() * 2 * mean


def first_alarm(detector, numbers):
    for i in range(0, len(numbers), 8):
        group = numbers[i : i + 8]
        if detector.add(8, sum(group), sum(x * x for x in group)):
            return i + 7
    return None


CASES = [
    (0.1, 0.3, 2000, True),
    (0.02, 0.1, 1500, True),
    (0.3, 0.2, 1000, True),
    (0.1, 0.2, 1000, False),
    (0.4, 0.4, 0, False),
    (0.0, 0.5, 900, True),
]


@pytest.mark.parametrize("case", CASES)
def test_a_detector_is_that_of_sums_over_all_numbers(case):
    numbers = list(stream(4000, 3, *case[:3], bits=case[3]))
    detector = Detector(0.05)
    actual = first_alarm(detector, numbers)
    assert actual == twin(numbers, 0.05)
    assert (actual is None) == (case[1] <= case[0])
    if actual is None:
        assert detector.bound == pytest.approx([*bounds(numbers, 0.05).values()][-1])


def test_an_alarm_says_what_was_before_and_what_is_now():
    alarms, numbers = Alarms(0.01), stream(6000, 4, 0.05, 0.4, 5000, bits=True)
    raised = [(i, one) for i, x in enumerate(numbers) for one in alarms.learnt(x, math.nan, {})]
    at, alarm = raised[0]
    assert 5000 < at < 5200
    assert (alarm.measure, alarm.features) == ("error", ())
    assert alarm.before == pytest.approx(0.05, abs=0.01)
    assert alarm.now == pytest.approx(0.4, abs=0.15)
    assert (at - 5000) / 2 < alarm.examples <= at - 5000 + 8
    assert len(raised) == 1  # the reference has started anew, where it is now


def test_the_log_loss_is_watched_in_its_units():
    alarms, draw, raised = Alarms(0.01), random.Random(5), []
    for i in range(8000):
        loss = draw.expovariate(5.0 if i < 5000 else 2.5)
        raised += alarms.learnt(False, loss, {})
    (alarm,) = raised
    assert alarm.measure == "log_loss"
    assert (alarm.before, alarm.now) == pytest.approx((0.2, 0.4), abs=0.05)


@pytest.mark.parametrize("level", [0.05, 0.2])
def test_stationary_streams_have_false_alarms_as_the_level_says_or_fewer(level):
    actual = sum(
        first_alarm(Detector(level), list(stream(3000, seed, 0.1, 0.1, 0, bits=True))) is not None
        for seed in range(100)
    )
    # With the level's probability each: more than so many come once in 10,000 tests.
    assert actual <= 100 * level + 4 * math.sqrt(100 * level)


@pytest.mark.parametrize("level", [0, 1, -0.5, math.nan])
def test_a_level_that_is_none_is_refused(level):
    with pytest.raises(ParameterError, match="level must be above 0 and below 1"):
        Alarms(level)


# --- the features --------------------------------------------------------------------------------


def distance(before, since, name):
    """How far the mean or the deviation of a feature moved, which is 0 where it is absent."""
    before, since = (np.array([x.get(name, 0.0) for x in rows]) for rows in (before, since))
    step, own = abs(since.mean() - before.mean()), math.sqrt((before.var() + since.var()) / 2)
    spread, both = abs(since.std() - before.std()), since.std() + before.std()
    return max(step / (step + own) if step else 0, spread / both if both else 0)


rows = st.lists(
    st.dictionaries(st.sampled_from("abcde"), st.integers(0, 9) | st.sampled_from([-1.5, 0.25])),
    min_size=1,
)


@given(rows, st.integers(1, 40), rows, st.booleans())
def test_movement_is_that_of_naive_means_and_deviations(before, times, since, merges):
    before *= times
    movement = Movement()
    for x in before:
        movement.add(x, is_rising=False)
    if merges:  # what rose at first was no rise
        for x in since:
            movement.add(x, is_rising=True)
        movement.merge()
        before = before + since
    for x in since:
        movement.add(x, is_rising=True)
    names = {name for x in (*before, *since) for name in x}
    assert len(movement.moved()) == min(3, len(names))
    least = min((one for _, one in movement.moved()), default=0)
    for name in names:
        expected = distance(before, since, name)
        found = dict(movement.moved()).get(name)
        if found is None:
            assert expected <= least + 1e-5
        else:
            assert found == pytest.approx(expected, abs=1e-5)


def test_contributions_move_by_the_change_of_their_mean_absolute_value():
    """Means of ten and of two examples, of which some lack b: a 1, 3; b 0.4, 0.1; c 0, 0.02."""
    movement = Movement(contributions=True)
    for i in range(10):
        x = {"a": (-1.0) ** i, "c": 0.0} | ({"b": -0.5} if i % 5 else {})
        movement.add(x, is_rising=False)
    movement.add({"a": -2.0, "c": 0.04}, is_rising=True)
    movement.add({"a": 4.0, "b": 0.2}, is_rising=True)
    expected = {"a": 2.0, "b": 0.3, "c": 0.02}
    assert [name for name, _ in movement.moved()] == list(expected)
    assert dict(movement.moved()) == pytest.approx(expected)


def test_what_is_followed_of_the_features_is_bounded(monkeypatch):
    monkeypatch.setattr(module, "_NAMES", 4)
    movement = Movement()
    odd = {"text": "x", "none": None, "nan": math.nan, "far": math.inf, "huge": -1e200}
    for i in range(200):
        movement.add(odd | {f"w{i}": 1.0, f"w{i + 1}": 2}, is_rising=i > 150)
    assert {name for name, *_ in movement.state()["moments"]} == {"w0", "w1", "w2", "w3"}


@pytest.mark.parametrize(("count", "quiet", "rising"), [(1, 17, 1), (320, 641, 11)])
def test_of_examples_of_many_features_fewer_are_looked_at(count, quiet, rising):
    alarms, features = Alarms(0.01), {f"w{i}": 1.0 for i in range(count)}

    def looked_at(examples, **given_example):
        before = sum(alarms.state()["features"]["examples"])
        for _ in range(examples):
            assert not alarms.learnt(*given_example.values(), features)
        return sum(alarms.state()["features"]["examples"]) - before

    assert looked_at(3_200, wrong=False, loss=math.nan) == pytest.approx(3_200 / quiet, abs=1)
    while not alarms.state()["error"]["is_rising"]:
        looked_at(1, wrong=True, loss=math.nan)
    assert looked_at(8, wrong=False, loss=math.nan) == pytest.approx(8 / rising, abs=1)


def test_the_features_that_moved_are_named_the_most_first():
    alarms, draw, raised = Alarms(0.01), random.Random(6), []
    for i in range(6000):
        late = i >= 3000
        x = {name: draw.gauss(0, 1) for name in ("a", "b", "c", "d")}
        x |= {"much": draw.gauss(3 * late, 1), "some": draw.gauss(0, 1 + late)}
        x |= {"new": 1.0} if late and i % 2 else {}
        raised += alarms.learnt(draw.random() < (0.2 if late else 0.1), math.nan, x)
    names = [name for name, _ in raised[0].features]
    assert set(names) == {"much", "some", "new"}


# --- checkpoints ---------------------------------------------------------------------------------


def examples(n, seed, at):
    draw = random.Random(seed)
    for i in range(n):
        wrong = draw.random() < (0.5 if i >= at else 0.05)
        yield wrong, draw.random() * (1 + wrong), {"a": draw.gauss(i >= at, 1), 7: i % 3, "b": 1}


@given(st.sets(st.integers(0, 2400), max_size=4))
@settings(max_examples=10)
def test_a_restart_neither_forgets_nor_repeats_an_alarm(restarts):
    one, other, raised = Alarms(0.01), Alarms(0.01), [[], []]
    for i, example in enumerate(examples(2400, 7, 2000)):
        raised[0] += one.learnt(*example)
        raised[1] += other.learnt(*example)
        if i in restarts:
            other = Alarms.restore(json.loads(json.dumps(other.state())), 0.01)
    assert raised[0] == raised[1] != []
    assert json.dumps(one.state()) == json.dumps(other.state())


def test_what_is_no_state_is_refused():
    one = Alarms(0.01)
    for example in examples(2000, 8, 3000):
        one.learnt(*example)
    state = json.loads(json.dumps(one.state()))

    def but(part, **changed):
        return state | {part: state[part] | changed}

    for wrong in (
        *(None, {}, [], state | {"error": 1}, state | {"features": {}}),
        *(but("error", _bets=[0.0]), but("error", _guess=[-1.0, 0.2]), but("error", bound=True)),
        *(but("error", bound=0), but("error", bound=10**400), but("error", is_rising=[])),
        *(but("error", _number=10**400), but("error", _number=1.5), but("error", _groups=0.5)),
        *(but("group", wait=math.inf), but("features", examples=[math.inf, 1])),
        *(
            but("group", wait=None),
            but("group", losses=["a"]),
            but("log_loss", _block=[1, 2, "3"]),
            but("log_loss", _number=math.nan),
        ),
        *(but("features", examples=[1]), but("features", moments=[["a", [5, 1.0, 0.0]]])),
        but("features", moments=[["a", [10**9, 1.0, 0.0], [0, 0.0, 0.0]]]),
        but("features", moments=[["a", [1, 1.0, -1.0], [0, 0.0, 0.0]]]),
        but("features", moments=[["a", [1, math.nan, 0.0], [0, 0.0, 0.0]]]),
    ):
        with pytest.raises(ParameterError, match="no state of alarms"):
            Alarms.restore(wrong, 0.01)


# --- what is sent --------------------------------------------------------------------------------


class Foolish(LBP):
    """Is wrong from an example on."""

    def predict_one(self, x):
        return x["said"]

    def answer_one(self, x, **_):
        return x["said"], None, {True: 0.5, False: 0.5}


def log(n=1800, at=1500):
    for i in range(n):
        wrong = i % 3 == 0 if i >= at else i % 20 == 0
        features = {"said": int(not wrong), "moves": int(i >= at)}
        value = JsonCodec()._dumps({"features": features, "label": 1})
        yield Message(Position("t", 1, i), None, value, (), 1000 * i)


def learner(**given):
    options = WorkerOptions(topic="t", group="g", **given)
    one = Learner(Foolish(9), JsonCodec(), Metrics.of(options), options)
    one.start({("t", 1): 0})
    return one


def test_an_alarm_is_logged_counted_and_sent_under_its_position(caplog):
    one = learner(events="events")
    sent = [out for message in log() for out in one.take(message)]
    (out,) = sent
    body = json.loads(out.value)
    place = Position("t", 1, body["offset"])
    assert 1500 < body["offset"] < 1700
    assert (out.topic, out.key) == ("events", f"alarm:error:{place}".encode())
    assert body == {
        "event": "alarm",
        "measure": "error",
        "before": pytest.approx(0.05, abs=0.01),
        "now": pytest.approx(1 / 3, abs=0.1),
        "examples": pytest.approx(0.75 * (body["offset"] - 1500), rel=0.4),
        "features": [
            {"name": "moves", "distance": pytest.approx(1, abs=0.1)},
            {"name": "said", "distance": pytest.approx(0.283 / (0.283 + 0.367), abs=0.1)},
        ],
        "level": 0.01,
        "model": "Foolish",
        "group": "g",
        "topic": "t",
        "partition": 1,
        "offset": place.offset,
        "timestamp": 1000 * place.offset,
    }
    assert one.metrics.alarmed == one.metrics.alarms_counted() == {"error": 1, "log_loss": 0}
    assert caplog.messages[0].startswith(f"{place}: error rose from 0.0")
    assert "; moved most: moves (" in caplog.messages[0]
    again, sent_again = relearn(Foolish(9), {("t", 1): log()}, [{("t", 1): 1800}], one.options)
    assert sent_again == sent  # at least once, and then the same
    assert again.metrics.state() == one.metrics.state()


@pytest.mark.parametrize("given_options", [{}, {"events": "events", "alarm_level": 0}])
def test_without_a_topic_or_a_level_nothing_is_sent(given_options, caplog):
    one = learner(**given_options)
    assert [out for message in log() for out in one.take(message)] == []
    assert len(caplog.messages) == one.metrics.alarmed["error"] == (not given_options)
    assert one.metrics.raised == []


def test_numbers_of_numpy_and_probabilities_that_are_rounded_up_go_into_a_checkpoint():
    metrics = Metrics("t", alarm_level=0.01)
    for i in range(2000):
        answer = Answer(np.int64(i % 2), {np.int64(i % 2): np.float64(1.0000000000000002)})
        metrics.learnt(i % 2, answer, {"a": np.float64(i)})
    other = Metrics("t", alarm_level=0.01)
    other.restore(json.loads(json.dumps(metrics.state())))
    assert other.state() == json.loads(json.dumps(metrics.state()))
    assert (other.mistakes, other.measures.windowed()["log_loss"]) == (0, pytest.approx(0))


def test_a_checkpoint_without_references_starts_them():
    one, other = learner(alarm_level=0), learner()
    for message in log(100):
        one.take(message)
    other.metrics.restore(json.loads(json.dumps(one.metrics.state())))
    assert other.metrics.examples == 100
    assert other.metrics.state()["alarms"]["error"]["_all"] == [0, 0.0]
