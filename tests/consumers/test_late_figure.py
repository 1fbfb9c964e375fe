"""The error of what was sent, where labels have a separate topic."""

import io
import json
import math

import pytest
from rich.console import Console

from drift.cli._late_figure import LateFigure
from drift.consumers.codec import JsonCodec
from drift.consumers.join import JoinOptions
from drift.consumers.records import Message, Position


def figure(codec=None, **options):
    return LateFigure(codec or JsonCodec(), JoinOptions(**options))


def prediction(offset, name, predicted, time=0, at=0):
    body = {"topic": "t", "partition": 0, "offset": offset, "label": None}
    body |= {"predicted": predicted, "id": name, "checkpoint": "1-1"}
    return Message(Position("out", 0, at), None, json.dumps(body).encode(), (), time)


def label(name, value, time=0, offset=0):
    body = json.dumps({"id": name, "label": value}).encode()
    return Message(Position("l", 0, offset), None, body, (), time)


def counted(one):
    partition = one.partitions["t", 0]
    return partition.predicted, partition.examples, partition.mistakes, partition.again


def drawn(one):
    console = Console(file=io.StringIO(), width=120)
    console.print(one)
    return console.file.getvalue()


def test_a_prediction_counts_as_it_was_first_sent_once_its_label_has_come():
    one = figure()
    one.add([prediction(0, "a", 1), prediction(1, "b", 1), prediction(2, None, 1)])
    assert "no label yet, 3 predictions\n" in drawn(one)
    assert "%" not in drawn(one)
    # What a crash undid is sent again, by a model that has learnt more.
    one.add([prediction(0, "a", 0, at=3)])
    one.add_labels([label("a", 0), label("a", 1), label("nobody", 1)])
    assert counted(one) == (3, 1, 1, 1)
    one.add_labels([label("b", 1), Message(Position("l", 0, 9), None, b"{")])
    assert counted(one) == (3, 2, 1, 1)
    assert "50.0%" in drawn(one)


def test_a_label_that_is_read_first_waits_for_its_prediction():
    one = figure()
    one.add_labels([label("a", True)])
    [actual] = one.add([prediction(0, "a", False), prediction(1, "b", False)])
    assert (actual["id"], counted(one), one.waiting) == ("a", (2, 1, 1, 0), 1)


def test_the_codec_says_where_a_label_is():
    one = figure(JsonCodec(labels={"id": "ref", "label": "y"}))
    one.add([prediction(0, 7, True)])
    one.add_labels([Message(Position("l", 0, 0), None, b'{"ref": 7, "y": true}')])
    assert counted(one) == (1, 1, 0, 0)


def test_silence_counts_as_the_label_that_it_is_and_a_correction_in_its_place():
    one = figure(silence=False, after=10, correct_for=100)
    one.add([prediction(n, n, n == 0, time=1000) for n in range(3)])
    one.add_labels([label(2, True, time=12_000)])
    # 0 was predicted true and was silent; 1 was rightly predicted; so was 2, which is corrected.
    assert counted(one) == (3, 3, 2, 0)
    one.add_labels([label(0, True, time=13_000), label(1, False, time=13_000)])
    assert counted(one) == (3, 3, 1, 0)


def test_no_more_wait_than_there_is_room_for():
    one = figure(pending=10)
    one.add([prediction(n, n, True) for n in range(1000)])
    one.add_labels([label(f"l{n}", True) for n in range(1000)])
    assert (one.waiting, len(one._join._early), one._early) == (10, 10, 10)
    one.add([prediction(1000, "l999", True), prediction(1001, "l0", True)])
    assert (counted(one)[:2], one._early) == ((1002, 1), 9)


class Topic:
    """A topic that gives so many messages at a poll."""

    def __init__(self, messages, size):
        self.rest, self.size = messages, size

    def poll(self, _seconds):
        result, self.rest = self.rest[: self.size], self.rest[self.size :]
        return iter(result)


@pytest.mark.parametrize("sizes", [(500, 20), (20, 500), (500, 500)])
@pytest.mark.parametrize("swapped", [0, 1])
def test_a_topic_that_is_read_faster_waits_for_the_other(sizes, swapped):
    one = figure(pending=2000)
    predictions = Topic([prediction(n, n, True) for n in range(3000)], sizes[0])
    labels = Topic([label(n ^ swapped, n % 4 > 0) for n in range(3000)], sizes[1])
    while predictions.rest or labels.rest:
        one.read(predictions, labels, 0)
        assert max(one.waiting, one._early) <= 1500
    assert counted(one) == (3000, 3000, 750, 0)


def test_topics_that_have_nothing_in_common_are_read_to_their_ends():
    one = figure(pending=20)
    predictions = Topic([prediction(n, n, True) for n in range(500)], 30)
    labels = Topic([label(f"l{n}", True) for n in range(500)], 30)
    for _ in range(100):
        one.read(predictions, labels, 0)
    assert (predictions.rest, labels.rest) == ([], [])


def test_measures_are_of_the_probabilities_that_were_sent():
    one = figure()
    sent = {"predicted": True, "probabilities": {"true": 0.75, "false": 0.25}}
    for number, truth in enumerate([True, False]):
        message = prediction(number, number, predicted=True, time=1000, at=number)
        body = json.loads(message.value) | sent
        one.add([message._replace(value=json.dumps(body).encode())])
        one.add_labels([label(number, truth, time=4000, offset=number)])
    assert one.measures.windowed() == pytest.approx({
        "error": 0.5,
        "recall": 1,
        "precision": 0.5,
        "f1": 2 / 3,
        "base_rate": 0.5,
        "log_loss": -math.log(0.75 * 0.25) / 2,
        "roc_auc": 0.5,
        "calibration_error": 0.25,
        "label_latency_seconds": 3,
    })  # fmt: skip
    assert "last 1,000: recall 100.0%, precision 50.0%, F1 66.7%, log loss 0.837" in drawn(one)
