"""The outcome of each kind of message."""

import json
import math
import pickle
import re
import sys

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from drift.consumers import _json
from drift.consumers.codec import Codec, Example
from drift.consumers.dead_letters import caught
from drift.consumers.json_codec import JsonCodec, checked_codec
from drift.consumers.records import Message, Position
from drift.errors import DriftError, MessageError, MissingExtraError, ParameterError


def outcome(function, *arguments):
    """Return the result with the types of all that is in it, or the refusal."""
    try:
        result = function(*arguments)
    except MessageError as error:
        return str(error)
    return repr(result)


# --- what is kept ------------------------------------------------------------------------------

KEPT = {
    '{"features": {"a": 1.5, "b": 2}}': Example({"a": 1.5, "b": 2}),
    '{"features": {}, "label": 1}': Example({}, 1),
    '{"features": {"a": true}}': Example({"a": True}),
    '{"features": {"a": null, "b": 1}}': Example({"b": 1}),
    '{"features": {"": 1}}': Example({"": 1}),
    '{"features": {"é\\ud83d\\ude00\\u0000": 1}}': Example({"é😀\0": 1}),
    '{"features": {"a:b": 1}, "id": "7:30 \\u003a", "label": ":"}': Example(
        {"a:b": 1}, ":", "7:30 :"
    ),
    '{"features": {"a": 1e-400}}': Example({"a": 0.0}),
    '{"features": {"a": 18446744073709551615}}': Example({"a": 2**64 - 1}),
    '{"features": {"a": 18446744073709551616}}': Example({"a": 2.0**64}),
    '{"features": {"a": -9223372036854775808}}': Example({"a": -(2**63)}),
    '{"features": {"a": -9223372036854775809}}': Example({"a": -(2.0**63)}),
    '{"features": {"a": %s}}' % ("9" * 300): Example({"a": 1e300}),
    '{"features": {}, "label": false}': Example({}, False),
    '{"features": {}, "label": "spam"}': Example({}, "spam"),
    '{"features": {}, "label": 1.0}': Example({}, 1),
    '{"features": {}, "label": -1.0}': Example({}, -1),
    '{"features": {}, "label": null, "id": null, "timestamp": null}': Example({}),
    '{"features": {}, "id": "x", "timestamp": 1.5}': Example({}, None, "x", 1.5),
    '{"features": {}, "id": 7, "timestamp": "2024-02-30"}': Example({}, None, 7, "2024-02-30"),
    '{"features": {}, "source": {"deep": [1, {"er": null}]}}': Example({}),
    ' \n{"features":\t{} }\r\n': Example({}),
}


@pytest.mark.parametrize("text", KEPT, ids=lambda text: text[:60])
def test_what_is_kept(text):
    example = JsonCodec().decode(text.encode())
    assert repr(example) == repr(KEPT[text])
    assert JsonCodec().decode(text.encode(), [("any", b"header")]) == example


# --- what is refused ---------------------------------------------------------------------------

REFUSED = {
    b"": "value is empty",
    b"  ": "value is no JSON",
    b"\x00\x01\x02": "value is no JSON",
    b"\x80\x04\x95": "value is no JSON",  # a pickle
    b"\x00\x00\x00\x00\x07\x02": "value is no JSON, and begins as those that a schema registry "
    "describes, here by schema 7: give its address, registry in [codec]",
    b'{"features": {"\xff": 1}}': "value is no JSON",
    b'\xef\xbb\xbf{"features": {}}': "value is no JSON",
    '{"features": {}}'.encode("utf-16"): "value is no JSON",
    b'{"features": {}': "value is no JSON",
    b'{"features": {}} {}': "value is no JSON",
    b'{"features": {"a": 1,}}': "value is no JSON",
    b"{'features': {}}": "value is no JSON",
    b'{"features": {"a": NaN}}': "value is no JSON",
    b'{"features": {"a": Infinity}}': "value is no JSON",
    b'{"features": {"a": -Infinity}}': "value is no JSON",
    b'{"features": {"a": 1e400}}': "value is no JSON",
    b'{"features": {}, "other": NaN}': "value is no JSON",
    b'{"features": {"a": %s}}' % (b"9" * 400): "value is no JSON",
    b'{"features": {"a": %s}}' % (b"9" * 5000): "value is no JSON",
    b'{"features": {"\\ud800": 1}}': "value is no JSON",
    b'{"features": {}, "id": "\\udc00\\ud800"}': "value is no JSON",
    b"[" * 100_000: "value is nested deeper than 64",
    b'{"features": {}, "a": %s}' % (b"[" * 64 + b"]" * 64): "value is nested deeper than 64",
    b"null": "value is null, not an object",
    b"[]": "value is an array, not an object",
    b'"text"': "value is a string, not an object",
    b"{}": "features is absent",
    b'{"a": 1.5, "label": true}': "features is absent",
    b'{"features": null}': "features is null, not an object",
    b'{"features": [1, 2]}': "features is an array, not an object",
    b'{"features": {"a": "1.5"}}': "features['a'] is a string: send numbers without quotes",
    b'{"features": {"%s": "1.5"}}' % (b"x" * 61): f"features['{'x' * 57}...'] is a string: send",
    b'{"features": {"a": 1, "b": [{"c": 2}]}}': "features['b'] is an array: send a number, or drop",
    b'{"features": {"a": [1]}}': "features['a'] is an array: send a number",
    b'{"features": {"a": 1, "a": 2}}': "value has 'a' twice in an object: send it once",
    b'{"features": {"a": 1, "\\u0061": 1}}': "value has 'a' twice in an object",
    b'{"features": 3, "features": {"a": 2}}': "value has 'features' twice in an object",
    b'{"label": 1, "features": {}, "label": 1}': "value has 'label' twice in an object",
    b'{"features": {}, "id": "\\u003a", "x": {"y": 1, "y": 2}}': "value has 'y' twice in an object",
    b'{"features": {}, "label": 0.5}': "label is the number 0.5: send",
    b'{"features": {}, "label": 1e300}': "label is the number 1e+300: send",
    b'{"features": {}, "label": [true]}': "label is an array: send",
    b'{"features": {}, "label": {}}': "label is an object: send",
    b'{"features": {}, "id": 1.5}': "id is the number 1.5: send a string or an integer",
    b'{"features": {}, "id": true}': "id is a bool: send a string or an integer",
    b'{"features": {}, "id": "%s"}' % (b"x" * 1001): "id is longer than 1000: send a string",
    b'{"features": {}, "timestamp": "%s"}' % (b"9" * 1001): "timestamp is longer than 1000",
    b'{"features": {}, "label": "%s"}' % (b"x" * 1001): "label is longer than 1000: send a short",
    b'{"features": {}, "timestamp": false}': "timestamp is a bool: send a number or a string",
    b'{"features": {}, "timestamp": []}': "timestamp is an array: send a number or a string",
}


@pytest.mark.parametrize("value", REFUSED, ids=lambda value: repr(value[:50]))
def test_what_is_refused(value):
    with pytest.raises(MessageError) as refusal:
        JsonCodec().decode(value)
    assert str(refusal.value).startswith(REFUSED[value])


def test_a_tombstone_is_refused():
    with pytest.raises(MessageError, match=r"value is null \(a tombstone\)"):
        JsonCodec().decode(None)


def test_the_largest_value_is_read_and_a_larger_one_is_not():
    value = b'{"features": {}}'
    assert JsonCodec(max_bytes=len(value)).decode(value) == Example({})
    with pytest.raises(MessageError, match="value has 16 bytes, more than the 15 that are read"):
        JsonCodec(max_bytes=15).decode(value)
    with pytest.raises(MessageError, match="more than the 1048576"):
        JsonCodec().decode(b" " * (2**20 + 1))


def test_brackets_in_strings_and_side_by_side_are_not_deep():
    name = "[{" * 50 + '"['
    text = json.dumps({"features": {name: 1}, "other": [{}] * 100})
    assert JsonCodec().decode(text.encode()) == Example({name: 1})
    deepest = '{"features": {}, "a": %s}' % ("[" * 63 + "]" * 63)
    assert JsonCodec().decode(deepest.encode()) == Example({})


def test_a_label_may_be_required():
    for value in (b'{"features": {}}', b'{"features": {}, "label": null, "lable": 1}'):
        with pytest.raises(MessageError, match="label is absent: send"):
            JsonCodec(require_label=True).decode(value)


def test_labels_may_be_listed():
    strict = JsonCodec(classes=["ham", "spam"])
    assert strict.decode(b'{"features": {}, "label": "ham"}').label == "ham"
    assert strict.decode(b'{"features": {}}').label is None
    with pytest.raises(MessageError, match="label is 'eggs', not one of 'ham', 'spam': correct"):
        strict.decode(b'{"features": {}, "label": "eggs"}')
    with pytest.raises(MessageError, match=r"not one of 0, 1, 2, 3, 4, \.\.\.: correct"):
        JsonCodec(classes=[*range(9)]).decode(b'{"features": {}, "label": 9}')
    assert JsonCodec(classes=(0, 1)).decode(b'{"features": {}, "label": true}').label is True


def test_raw_hands_on_text_and_null_and_nothing_else():
    raw = JsonCodec(raw=True)
    assert raw.decode(b'{"features": {"a": "red", "b": null, "c": 1}}').features == {
        "a": "red",
        "b": None,
        "c": 1,
    }
    with pytest.raises(MessageError, match=r"features\['b'\] is an array"):
        raw.decode(b'{"features": {"a": "red", "b": ["x"]}}')


# --- a key twice -------------------------------------------------------------------------------

keys = st.sampled_from(["a", "b", ":", '"', "a:b", "é"])
pairs = st.recursive(
    st.integers() | st.sampled_from(["", ":", "7:30", '":"', "{:", "\\"]),
    lambda inner: st.lists(inner, max_size=3) | st.lists(st.tuples(keys, inner), max_size=3),
    max_leaves=9,
)


@st.composite
def texts(draw):
    """A text of JSON whose objects may repeat keys, with spaces and escapes, and one of these."""
    repeated = set()

    def string(text):
        space = draw(st.sampled_from(["", " ", "\n\t"]))
        escapes = draw(st.booleans())
        return json.dumps(text).replace(":", r"\u003A" if escapes else ":") + space

    def write(tree):
        if not isinstance(tree, list):
            return string(tree) if isinstance(tree, str) else str(tree)
        if not tree or not isinstance(tree[0], tuple):
            return f"[{','.join(write(item) for item in tree)}]"
        names = [name for name, _ in tree]
        repeated.update(name for name in names if names.count(name) > 1)
        return f"{{{','.join(f'{string(name)}:{write(item)}' for name, item in tree)}}}"

    text = write(draw(pairs))
    return text, repeated


@given(texts())
def test_a_key_that_comes_twice_is_named_wherever_it_is(drawn):
    text, repeated = drawn
    value, tree = text.encode(), json.loads(text)
    if not repeated:
        _json.refuse_repeated(value, tree)
        return
    with pytest.raises(MessageError) as refusal:
        _json.refuse_repeated(value, tree)
    assert str(refusal.value) in {
        f"value has {name!r} twice in an object: send it once" for name in repeated
    }


# --- anything ----------------------------------------------------------------------------------

numbers = st.integers() | st.floats() | st.booleans()
trees = st.recursive(
    st.none() | numbers | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
fields = st.sampled_from(["features", "label", "id", "timestamp", "other"])
messages = st.dictionaries(fields, st.dictionaries(st.text(), trees, max_size=3) | trees)
TOKENS = (
    r'{ } [ ] , : " \ \u \ud8 \ud800 \udc00 \n 0 1 - + . e E e400 99999999999999999999 NaN '
    r'Infinity true null é "features": {"features":{ "label": "a":'
)
fragments = st.lists(st.sampled_from([*TOKENS.split(), " ", "\x00", "\x7f", "\u2028"])).map("".join)


def has_outcome(value):
    found = outcome(JsonCodec().decode, value)
    assert len(found) <= 300 or found.startswith("Example")


@given(messages)
def test_any_json_has_an_outcome(message):
    has_outcome(json.dumps(message).encode())


@given(fragments.map(str.encode) | st.binary())
@example(b'{"features":{"a":1}, "b": "\\\\ud800"}')
@example(b'{"features":{"a":1}, "b": "\\ud800\\u0041"}')
@example(b'{"features":{"a":-0}}')
@example(b'{"a": "\\ud800", "a": 1, "features": {}}')
def test_any_bytes_have_an_outcome(value):
    has_outcome(value)


@given(
    fragments.map(lambda text: b'{"features":{"a":' + text.encode() + b"}}")
    | fragments.map(lambda text: b'{"features":{"' + text.encode() + b'":1}}')
)
def test_any_fragments_have_an_outcome(value):
    has_outcome(value)


# --- encoding ----------------------------------------------------------------------------------

names = st.text(st.characters(exclude_categories=["Cs"]))
sendable = st.integers(-(2**63), 2**64 - 1) | st.booleans()
finite = st.floats(allow_nan=False, allow_infinity=False)
examples = st.builds(
    Example,
    st.dictionaries(names, finite | sendable),
    st.none() | sendable | names,
    st.none() | names | st.integers(-(2**63), 2**64 - 1),
    st.none() | finite | names,
)


@given(examples)
def test_decoding_what_was_encoded_gives_the_example_back(example):
    assert repr(JsonCodec().decode(JsonCodec().encode(example))) == repr(example)


@given(st.dictionaries(names, st.none() | finite | names))
def test_raw_examples_come_back(features):
    raw = JsonCodec(raw=True)
    assert raw.decode(raw.encode(Example(features))) == Example(features)


def test_numbers_of_numpy_become_numbers():
    features = {"a": np.float32(0.5), "b": np.int64(3), "c": np.bool_(True), "d": np.float64(0.1)}
    sent = Example(features, np.int64(1), np.int64(7), np.float64(2.5))
    assert repr(JsonCodec().decode(JsonCodec().encode(sent))) == repr(
        Example({"a": 0.5, "b": 3, "c": True, "d": 0.1}, 1, 7, 2.5)
    )


def test_what_is_no_number_is_written_as_null():
    tree = {"a": [math.nan, 1.5, {"b": math.inf}], "c": -math.inf, "d": "NaN"}
    assert _json.as_json(tree) == b'{"a":[null,1.5,{"b":null}],"c":null,"d":"NaN"}'


def test_what_is_absent_is_left_out():
    sent = Example({"a": math.nan, "b": None, "c": np.float32("nan"), "d": 1})
    assert JsonCodec().encode(sent) == b'{"features":{"d":1}}'


def test_names_become_text_and_huge_integers_floats():
    assert JsonCodec().decode(JsonCodec().encode(Example({3: 1.0}))).features == {"3": 1.0}
    sent = Example({3: 1.0, ("a", 1): 2**70})
    assert JsonCodec().decode(JsonCodec().encode(sent)).features == {"3": 1.0, "('a', 1)": 2.0**70}


@pytest.mark.parametrize(
    ("sent", "refusal"),
    [
        (Example({"a": math.inf}), r"features\['a'\] is inf: send a finite number"),
        (Example({"a": 10**400}), r"features\['a'\] is inf: send a finite number"),
        (Example({"a": "1"}), r"features\['a'\] is a string: send numbers"),
        (Example({"a": [1]}), r"features\['a'\] is an array: send"),
        (Example({"a": np.zeros(2)}), r"features\['a'\] is a ndarray: send"),
        (Example({"a": 1j}), r"features\['a'\] is a complex: send"),
        (Example({1: 1, "1": 2}), r"features\['1'\] has the name of 1: rename one"),
        (Example({"a\ud800": 1.0}), "value holds half of a surrogate pair"),
        (Example({}, "\udc00"), "value holds half of a surrogate pair"),
        (Example({}, math.nan), "label is the number nan: send"),
        (Example({}, 0.5), "label is the number 0.5: send"),
        (Example({}, id=1.5), "id is the number 1.5: send"),
        (Example({}, timestamp=math.inf), "timestamp is the number inf: send"),
        (Example({"a" * 2**20: 1}), "value has 10485.. bytes, more than the 1048576"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_cannot_be_sent(sent, refusal):
    with pytest.raises(MessageError, match=f"^{refusal}"):
        JsonCodec().encode(sent)


# --- errors, parameters, small things ----------------------------------------------------------


def test_errors_are_short_and_keep_to_one_line():
    secret = "s3cret" * 1000
    for value in (
        json.dumps({"features": {secret: "x"}}),
        json.dumps({"features": {"a\n\u2028b": secret}}),
        json.dumps({"features": {}, "label": [secret]}),
        secret,
    ):
        with pytest.raises(MessageError) as refusal:
            JsonCodec(classes=["a"]).decode(value.encode())
        text = str(refusal.value)
        assert len(text) <= 300
        assert text.isprintable()
        assert "s3cret" * 11 not in text


def test_errors_survive_pickling():
    error = MessageError("label", "is absent: send one")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.field, again.problem) == (str(error), error.field, error.problem)
    assert isinstance(error, DriftError)
    assert isinstance(error, ValueError)


@pytest.mark.parametrize(
    "options",
    [
        {"classes": "ab"},
        {"classes": []},
        {"classes": [0.5]},
        {"labels": {"lable": "y"}},
        {"labels": "y"},
        {"labels": {"id": 7}},
        {"max_bytes": 0},
    ],
)
def test_parameters_are_checked(options):
    with pytest.raises(ParameterError, match=next(iter(options))):
        JsonCodec(**options)


class Own(Codec):
    """A user's, which says where things are, and lacks a package of its own."""

    def __init__(self):
        self.paths = {"id": "order"}

    def decode(self, value, headers=()):
        raise MissingExtraError("absent", "schema")


def test_what_a_users_codec_needs_is_no_fault_of_a_message(monkeypatch):
    assert checked_codec(Own()).paths == {"id": "order"}
    with pytest.raises(MissingExtraError, match=r"absent is not installed: .*\.\[schema\]"):
        caught(Own().decode, b"")
    _json.library.cache_clear()
    monkeypatch.setitem(sys.modules, "orjson", None)
    with pytest.raises(MissingExtraError, match=r"orjson is not installed: .*\.\[kafka\]"):
        checked_codec(Own())
    _json.library.cache_clear()


def test_codecs_are_values_and_survive_pickling():
    codec: Codec = JsonCodec(classes=[0, 1], raw=True)
    again = pickle.loads(pickle.dumps(codec))
    assert repr(again) == repr(codec)
    assert repr(codec) == (
        "JsonCodec(features=None, label=None, id=None, timestamp=None, weight=None, key=None, "
        "drop=(), skip=(), one_hot=False, classes=[0, 1], labels=None, require_label=False, "
        "allow_empty=False, raw=True, max_bytes=1048576)"
    )


def test_positions_read_as_keys():
    assert str(Message(Position("a.b", 0, 12), None, None).position) == "a.b:0:12"


# --- messages of another shape -----------------------------------------------------------------

ORDER = {
    "order": {"id": "a7", "sum": 3.5, "card": {"kind": "visa", "new": True}, "note": "call"},
    "at": 1_700_000_000,
    "costs": 2,
    "fraud": True,
}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            {"id": "order.id", "timestamp": "at", "weight": "costs", "drop": ["order.note"]},
            Example(
                {"order.sum": 3.5, "order.card.kind=visa": 1, "order.card.new=true": 1},
                *(True, "a7", 1_700_000_000, 2),
            ),
        ),
        (
            {"features": "order", "drop": ["order.card", "order.note"], "id": "order.id"},
            Example({"sum": 3.5}, label=True, id="a7"),
        ),
        ({"features": "order.card"}, Example({"kind=visa": 1, "new=true": 1}, label=True)),
        ({"drop": ["order"]}, Example({"at": 1_700_000_000, "costs": 2}, label=True)),
    ],
)
def test_messages_of_another_shape_are_read_by_where_their_fields_are(options, expected):
    made = JsonCodec(label="fraud", one_hot=True, **options)
    assert made.decode(json.dumps(ORDER).encode()) == expected


def test_a_label_among_the_features_is_none_of_them():
    made = JsonCodec(features="row", label="row.y")
    assert made.decode(b'{"row": {"a": 1, "y": 3}, "z": 2}') == Example({"a": 1}, label=3)
    assert made.decode(b'{"row": {"a": {"b": 1}, "y": null}}') == Example({"a.b": 1})
    assert made.decode(b'{"row.y": true, "row": {"a": 1}}') == Example({"a": 1}, label=True)


def test_headers_of_the_messages_of_labels_are_no_features():
    """Or the one with the label would give it away, in a message of features that has it."""
    made = JsonCodec(
        label="y", id="n", labels={"id": "header:n", "label": "header:y"}, one_hot=True
    )
    headers = [("n", b"7"), ("y", b"true")]
    assert made.decode(b'{"a": 1.5, "n": 7}', headers) == Example({"a": 1.5}, id=7)
    assert made.decode_label(b"{}", headers) == Example({}, True, "7")


@pytest.mark.parametrize("entries", [b'"a.b": 1, "a": {"b": 2}', b'"a": {"b": 2}, "a.b": 1'])
def test_a_feature_of_two_values_is_refused_in_any_order(entries):
    with pytest.raises(MessageError, match=r"features\['a.b'\] comes twice"):
        JsonCodec().decode(b'{"features": {%s}}' % entries)


@pytest.mark.parametrize(
    "entries",
    [b'"a=x": 2, "a": "x"', b'"a": true, "a=true": 2', b'"a=b": "c", "a": "b=c"'],
)
def test_a_feature_that_one_hot_would_replace_is_refused(entries):
    made = JsonCodec(one_hot=True)
    with pytest.raises(
        MessageError, match=r"features\['a=.*'\] comes twice, once as one_hot makes"
    ):
        made.decode(b'{"features": {%s}}' % entries)
    assert made.decode(b'{"features": {"a=y": 2, "a": "x"}}').features == {"a=y": 2, "a=x": 1}


def test_texts_and_bools_without_one_hot():
    assert JsonCodec(label="y").decode(b'{"a": {"b": true}, "y": 1}').features == {"a.b": True}
    with pytest.raises(MessageError, match=r"features\['a.b'\] is a string: .* one_hot in"):
        JsonCodec(label="y").decode(b'{"a": {"b": "x"}, "y": 1}')
    actual = JsonCodec(one_hot=True).decode(
        b'{"features": {"a": false, "b": 2, "c": null, "d": ""}}'
    )
    assert actual.features == {"b": 2, "a=false": 1, "d=": 1}


@pytest.mark.parametrize(
    ("options", "features"),
    [({}, {"a": 2}), ({"one_hot": True}, {"a": 2}), ({"raw": True}, {"a": 2, "note": None})],
)
def test_a_value_that_debezium_has_not_is_as_null(options, features):
    value = b'{"features": {"a": 2, "note": "__debezium_unavailable_value"}}'
    assert JsonCodec(**options).decode(value).features == features


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b'{"w": -1}', "w is -1: send a number of at least 0"),
        (b'{"w": "1"}', "w is a string: send a number, or leave it out"),
        (b'{"w": true}', "w is a bool: send a number, or leave it out"),
    ],
)
def test_weights_that_cannot_be(value, message):
    with pytest.raises(MessageError, match=re.escape(message)):
        JsonCodec(label="y", weight="w").decode(value)


@pytest.mark.parametrize("value", [b"", b"{", b"[1]", b"[" * 200])
def test_the_remedy_is_of_the_shape_that_is_read(value):
    with pytest.raises(
        MessageError, match="send an object with the label at 'fraud', as \\[codec\\]"
    ):
        JsonCodec(label="fraud").decode(value)
    with pytest.raises(MessageError, match=r'send \{"features": \{"age": 31\.5\}, "label"'):
        JsonCodec().decode(value)


def test_features_that_are_not_where_they_should_be():
    made = JsonCodec(features="a.b", label="y")
    with pytest.raises(MessageError, match=r"a.b is absent, not an object: .* \[codec\] says"):
        made.decode(b'{"a": 1, "y": 1}')
    with pytest.raises(MessageError, match=r"a\.b is the number 1, not"):
        made.decode(b'{"a": {"b": 1}, "y": 1}')


@pytest.mark.parametrize(
    ("options", "value", "said"),
    [
        ({"label": "y"}, '{"y": 1}', "value has no feature, only 'y': send one, or learn without"),
        ({"label": "y"}, "{}", "value has no feature, only nothing"),
        ({"label": "y", "drop": ["x"]}, '{"x": {"a": 1}, "y": 1}', "only 'x', 'y': send"),
        ({}, '{"features": {"a": null}}', "features has no feature, only 'a': send"),
        ({"one_hot": True}, '{"features": {"a": null}}', "features has no feature, only 'a'"),
        ({"features": "f"}, '{"f": {"a": {"b": {}}}}', "f has no feature, only 'a'"),
        (
            {"features": "f", "drop": ["f.a", "f.b", "f.c", "f.d"]},
            '{"f": {"a": 1, "b": 1, "c": 1, "d": 1}}',
            "only 'a', 'b', 'c', ...: send",
        ),
    ],
)
def test_a_message_of_which_nothing_is_a_feature_is_refused_unless_allowed(options, value, said):
    with pytest.raises(MessageError, match=re.escape(said)):
        JsonCodec(**options).decode(value.encode())
    with pytest.raises(MessageError, match=re.escape(said)):
        JsonCodec(**options).decode_questions(value.encode())
    allowing = JsonCodec(**options, allow_empty=True)
    assert allowing.decode(value.encode()).features == {}
    assert "allow_empty" not in allowing.settings()


@pytest.mark.parametrize(
    ("before", "now"), [(31.5, "31.5"), (2, False), ("visa", 7), (True, 1.0), ("7", 7)]
)
def test_a_number_that_becomes_a_text_or_bool_is_named_once(caplog, before, now):
    codec = JsonCodec(one_hot=True)

    def decode(*values):
        for value in values:
            codec.decode(json.dumps({"features": {"sum": value, "n": 1}}).encode())

    decode(None, before, None, before)
    assert not caplog.messages
    decode(now, before, now)
    [warning] = caplog.messages
    assert warning.startswith("feature 'sum' is a number in some messages and a text or bool in ot")
    assert f"here {now!r}, " in warning


def test_features_that_are_empty_on_purpose_are_learnt():
    """As of a text whose words are all unknown."""
    assert JsonCodec(features="f", label="y").decode(b'{"f": {}, "y": 1}') == Example({}, 1)
    assert JsonCodec(raw=True).decode(b'{"features": {"a": null}}') == Example({"a": None})


@pytest.mark.parametrize(
    "options",
    [
        {"weight": "w"},
        {"label": "y", "id": "who.id", "timestamp": "at", "weight": "who.w", "allow_empty": True},
        {"features": "row.x", "label": "row.y", "id": "row.id", "weight": "w", "timestamp": "t"},
        {"features": "row", "label": "row.y", "id": "row.id", "weight": "w", "timestamp": "t"},
    ],
)
def test_what_is_encoded_is_decoded_whatever_the_shape(options):
    made = JsonCodec(**options)
    example = Example({"a": 1.5, "b": 2.0}, "yes", "a7", 12, 0.5)
    assert made.decode(made.encode(example)) == example
    assert made.decode(made.encode(Example({}))) == Example({})


def test_what_has_no_place_is_not_encoded():
    with pytest.raises(MessageError, match="weight has no place in a message"):
        JsonCodec().encode(Example({}, weight=2.0))
    with pytest.raises(MessageError, match="id has no place in a message"):
        JsonCodec(label="y").encode(Example({}, id="a7"))


@pytest.mark.parametrize(
    ("options", "name", "message"),
    [
        ({"label": "y"}, "y", r"features\['y'\] is where a message has its label"),
        ({"label": "y", "id": "who.id"}, "who.id", r"features\['who.id'\] .* its id"),
        ({"label": "y", "weight": "w"}, "w", r"features\['w'\] .* its weight"),
        ({"label": "y", "timestamp": "t"}, "t", r"features\['t'\] .* its timestamp"),
        ({"label": "y", "key": "header:k"}, "header:k", r"features\['header:k'\] .* its key"),
        ({"features": "x", "label": "x.y"}, "y", r"features\['y'\] .* its label"),
        ({"label": "y.is"}, "y", r"features\['y'\] is where y.is is: rename or drop it"),
        ({"features": "x", "label": "x.y.z"}, "y", r"features\['y'\] is where x.y.z is"),
    ],
)
def test_a_feature_that_would_be_read_as_something_else_is_refused(options, name, message):
    made = JsonCodec(**options)
    for value in (1.0, 1, True):
        with pytest.raises(MessageError, match=message):
            made.encode(Example({name: value, "a": 2.0}, False))
    other = Example({f"{name}s": 1.0, "a": 2.0}, False)
    assert made.decode(made.encode(other)) == other


def test_a_path_goes_through_names_that_have_dots():
    made = JsonCodec(label="a.b.c", id="d.e.f.g", drop=["a.b.x"])
    value = b'{"a.b": {"c": true, "x": 5}, "a": {"z": 1}, "d": {"e.f": {"g": 7, "h": 2}}}'
    assert made.decode(value) == Example({"a.z": 1, "d.e.f.h": 2}, True, 7)


def test_labels_of_a_topic_of_their_own_are_where_those_of_examples_are():
    codec = JsonCodec(label="payload.fraud", id="payload.id", weight="w", classes=[True, False])
    value = b'{"payload": {"id": 7, "fraud": true, "sum": "much"}, "w": 2}'
    assert codec.decode_label(value) == Example({}, True, 7, None, 2)
    assert (codec.paths["id"], codec.label_paths["id"]) == ("payload.id", "payload.id")


def test_labels_of_a_topic_of_their_own_have_paths_of_their_own():
    paths = {"id": "ref", "label": "outcome.fraud", "weight": "w"}
    codec = JsonCodec(label="fraud", id="order.id", labels=paths, classes=[True, False])
    value = b'{"ref": "a7", "outcome": {"fraud": true}, "w": 0.5, "fraud": "no"}'
    assert codec.decode_label(value) == Example({}, True, "a7", None, 0.5)
    # Those of all other messages are as before.
    value = b'{"order": {"id": "a7", "sum": 3}, "ref": 5, "fraud": false, "outcome": {"fraud": 1}}'
    features = {"order.sum": 3, "ref": 5, "outcome.fraud": 1}
    assert codec.decode(value) == Example(features, False, "a7")
    with pytest.raises(MessageError, match=r"outcome.fraud is absent: send the label there, or"):
        codec.decode_label(b'{"ref": "a7", "fraud": true}')
    with pytest.raises(MessageError, match=r"outcome.fraud is 'x', not one of True, False"):
        codec.decode_label(b'{"ref": "a7", "outcome": {"fraud": "x"}}')


def test_what_is_not_named_for_labels_is_where_it_is_for_all():
    codec = JsonCodec(weight="w", labels={"id": "ref"})
    actual = codec.decode_label(b'{"id": 5, "ref": 7, "label": 1, "w": 3}')
    assert (actual, codec.label_paths["id"]) == (Example({}, 1, 7, None, 3), "ref")
    again = pickle.loads(pickle.dumps(codec))
    assert again.decode_label(b'{"ref": 7, "label": 1}') == Example({}, 1, 7)
    assert codec.decode(codec.encode(Example({"a": 1.5}, 1, 7))) == Example({"a": 1.5}, 1, 7)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b'{"label": true}', "id is absent: send"),
        (b'{"id": 7}', "label is absent: send"),
        (b'{"id": null, "label": null}', "id is absent: send"),
        (b'{"id": true, "label": true}', "id is a bool: send a string or an integer"),
        (b'{"id": 7, "label": 0.5}', "label is the number 0.5"),
        (b"[7, true]", "value is an array, not an object"),
        (None, "value is null"),
    ],
)
def test_labels_without_what_they_take_are_refused(value, message):
    with pytest.raises(MessageError, match=message):
        JsonCodec().decode_label(value)
