"""Which messages `skip` leaves out, and what is read of headers."""

import itertools
import json

import pytest

from drift.consumers import Example, JsonCodec
from drift.consumers.late import LateLearner
from drift.consumers.learner import Learner
from drift.consumers.metrics import Metrics
from drift.consumers.options import WorkerOptions
from drift.consumers.records import Message, Position
from drift.errors import MessageError, ParameterError, SkippedError
from drift.models import LBP

VALUES = ["d", "D", "", 1, 0, True, False, 1.5, None, [1], {"a": 1}]


def equal(first, second):
    """Whether JSON has the two for the same: 1 and 1.0, but not 1 and true."""
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    return first == second


def skips(codec, tree, headers=()):
    try:
        codec.decode(json.dumps(tree).encode(), headers)
    except SkippedError:
        return True
    except MessageError:  # what is not skipped need not be an example
        return False
    return False


@pytest.mark.parametrize("wanted", ["d", "", 1, True, False, 1.5, None])
def test_a_rule_skips_a_value_at_a_path_and_no_other(wanted):
    text = json.dumps(wanted)
    for found, path in itertools.product(VALUES, ("op", "a.op")):
        tree = {"features": {}, **({"op": found} if path == "op" else {"a": {"op": found}})}
        assert skips(JsonCodec(skip=[f"{path} = {text}"]), tree) is equal(found, wanted)
        assert skips(JsonCodec(skip=[f"{path}!={text}"]), tree) is not equal(found, wanted)
    absent = JsonCodec(skip=[f"op = {text}"])
    assert skips(absent, {"features": {}}) is (wanted is None)


def test_a_tombstone_is_skipped_only_if_it_is_said():
    with pytest.raises(MessageError, match=r'write skip = \["tombstone"\] in \[codec\]') as error:
        JsonCodec().decode(None)
    assert not isinstance(error.value, SkippedError)
    codec = JsonCodec(skip=["tombstone"])
    for decode in (codec.decode, codec.decode_label):
        with pytest.raises(SkippedError, match="value is null"):
            decode(None)
    with pytest.raises(MessageError, match="value is empty"):
        codec.decode(b"")


def test_any_rule_is_enough_and_the_refusal_names_it():
    codec = JsonCodec(skip=["tombstone", 'op = "d"', "after = null"])
    with pytest.raises(SkippedError, match=r'^op is "d", which \[codec\] skips$'):
        codec.decode(b'{"op": "d", "after": null}')
    with pytest.raises(SkippedError, match=r"^after is null, which"):
        codec.decode(b'{"op": "t"}')
    with pytest.raises(SkippedError, match=r'^op is not "c", which'):
        JsonCodec(skip=['op != "c"']).decode(b'{"op": "u"}')


@pytest.mark.parametrize("text", ["op", "op = d", "= 1", "op == 1", "op = [1]", "op = {}", "", "!"])
def test_what_is_no_rule_is_refused(text):
    with pytest.raises(ParameterError, match=r"skip has .*: write \"tombstone\", or a path and"):
        JsonCodec(skip=[text])


def test_headers_are_looked_at_before_the_value():
    """Messages of other kinds may be in other formats."""
    codec = JsonCodec(skip=['header:ce_type != "sale"'], max_bytes=40)
    for value in (b"\x00\x00\x00\x00\x01avro", b"x" * 99, None, b"<xml/>"):
        with pytest.raises(SkippedError, match="header:ce_type"):
            codec.decode(value, [("ce_type", b"return")])
    assert codec.decode(b'{"features": {}}', [("ce_type", b"sale")]) == Example({})
    assert skips(JsonCodec(skip=["header:retry = 3"]), {"features": {}}, [("retry", b"3")])
    assert not skips(JsonCodec(skip=["header:retry = 3"]), {"features": {}}, [("retry", b"x")])
    assert skips(JsonCodec(skip=["header:kind = null"]), {"features": {}}, [("kind", None)])


def test_parts_come_from_headers():
    codec = JsonCodec(
        label="header:fraud",
        id="header:ce_id",
        timestamp="header:ce_time",
        weight="header:cost",
        key="header:shop.id",
    )
    headers = [
        ("ce_id", b"first"),
        ("ce_id", b"7"),
        ("ce_time", b"2026-11-27T15:00:00Z"),
        ("fraud", b"true"),
        ("cost", b"2.5"),
        ("shop.id", "Zürich".encode()),
    ]
    # The last one of a name counts; what the value has of such names is none of them.
    assert codec.decode(b'{"sum": 3, "header:ce_id": 5}', headers) == Example(
        {"sum": 3}, True, "7", "2026-11-27T15:00:00Z", 2.5, "Zürich"
    )
    assert codec.decode(b'{"sum": 3, "header:ce_id": 5}') == Example({"sum": 3})
    for text, label in ((b"1", 1), (b"1.0", 1), (b"no", "no"), (b'"no"', '"no"'), (b"NaN", "NaN")):
        assert codec.decode(b'{"sum": 3}', [("fraud", text)]).label == label
    assert codec.decode_label(b"{}", [("ce_id", b"a"), ("fraud", b"false")]) == Example(
        {}, label=False, id="a"
    )
    with pytest.raises(MessageError, match="header:ce_id is no UTF-8"):
        codec.decode(b"{}", [("ce_id", b"\xff")])
    with pytest.raises(MessageError, match="header:cost is a string: send a number"):
        codec.decode(b"{}", [("cost", b"much")])
    with pytest.raises(MessageError, match="id is read from header:ce_id, and encode writes no"):
        codec.encode(Example({}, id="a7"))


def test_features_are_in_the_value():
    with pytest.raises(ParameterError, match="features cannot be in a header"):
        JsonCodec(features="header:x")


def test_what_is_skipped_may_change():
    assert JsonCodec(skip=["tombstone"]).settings() == {}


def test_a_learner_counts_what_is_skipped_and_sends_nothing():
    codec = JsonCodec(skip=["tombstone", 'op = "d"'])
    options = WorkerOptions(topic="t", group="g", predictions="out", dead_letters="dead")
    learner = Learner(LBP(3), codec, Metrics("t"), options)
    values = [None, b'{"op": "d"}', b'{"features": {}, "label": true}', b"{"]
    sent = [
        [one.topic for one in learner.take(Message(Position("t", 0, n), None, value))]
        for n, value in enumerate(values)
    ]
    assert sent == [[], [], ["out"], ["dead"]]
    assert learner.offsets == {("t", 0): 4}
    metrics = learner.metrics
    assert (metrics.skipped, metrics.dead_letters, metrics.examples) == (2, 1, 1)
    again = Metrics("t")
    again.restore(metrics.state())
    assert again.skipped == 2


def test_a_learner_says_what_it_leaves_out_for_want_of_a_value(caplog):
    """So a topic whose messages have another form is no empty topic."""
    codec = JsonCodec(skip=["tombstone", 'header:ce_type != "sale"', "a = null", 'a != "x"'])
    learner = Learner(LBP(3), codec, Metrics("t"), WorkerOptions(topic="t", group="g"))
    sale = [("ce_type", b"sale")]
    for n, (value, headers) in enumerate(
        [(b"{}", []), (None, []), (b"{}", [("ce_type", b"return")]), (b"{}", sale), (b"{}", [])]
    ):
        assert learner.take(Message(Position("t", 0, n), None, value, headers)) == []
    assert learner.metrics.skipped == 5
    learner.close()
    rest = (
        'is left out: header:ce_type is absent, so it is not "sale", which [codec] skips; '
        "if that is meant, write 'header:ce_type = null' before this rule"
    )
    assert caplog.messages == [f"t:0:0 {rest}", f"t:0:4 {rest}"]


def test_labels_and_features_are_skipped_where_labels_have_their_topic():
    options = WorkerOptions(topic="t", group="g", labels="l", dead_letters="dead", orphans="o")
    learner = LateLearner(LBP(3), JsonCodec(skip=["tombstone"]), Metrics("t"), options)
    values = [("t", None), ("t", b'{"id": 1, "features": {}}'), ("l", None)]
    values.append(("l", b'{"id": 1, "label": true}'))
    sent = [
        learner.take(Message(Position(topic, 0, n), None, value, timestamp=n, appended=True))
        for n, (topic, value) in enumerate(values)
    ]
    assert sent == [[], [], [], []]
    assert (learner.metrics.skipped, learner.metrics.examples) == (2, 1)
