"""What a dry run says of messages, and that what it proposes does what it says."""

import json
import tomllib
from dataclasses import replace

import pytest

from drift.consumers import Example, JsonCodec
from drift.consumers.codec import Codec
from drift.consumers.dry_run import DryRun, mixed_labels, toml
from drift.consumers.records import CutValue, Message, Position
from drift.errors import UnavailableError
from tests.consumers.codecs import given


def messages(*values, topic="orders", headers=()):
    return [
        Message(Position(topic, 0, n), None, raw(value), headers, 1_764_257_400_000)
        for n, value in enumerate(values)
    ]


def raw(value):
    return value if value is None or isinstance(value, bytes) else json.dumps(value).encode()


def proposed(run):
    """The codec of the table that is printed last, as a file would have it."""
    text = "\n".join(run.lines())
    _, _, table = text.rpartition("\n\n")
    return JsonCodec(**tomllib.loads(table)["codec"]), text


NOTES = ["call first", "leave at the door", "ring twice", "a gift", "none"]
ORDERS = [
    {
        "order": {"id": f"o{n}", "sum": 1.5 * n, "card": {"kind": "ab"[n % 2]}, "note": note},
        "items": [n],
        "fraud": n > 2,
    }
    for n, note in enumerate(NOTES)
]
ROWS = [{"id": n, "sum": 2.5 * n, "fraud": n % 2 == 0} for n in range(3)]


def change(op, before, after):
    return {"before": before, "after": after, "source": {"db": "x"}, "op": op, "ts_ms": 7}


CHANGES = [
    *(change("c", None, row) for row in ROWS),
    change("u", ROWS[0], ROWS[0]),
    change("d", ROWS[0], None),
    None,
]
EVENTS = [
    {"specversion": "1.0", "type": "order", "source": "/x", "id": f"e{n}", "time": "now", "data": x}
    for n, x in enumerate([{"sum": 1, "fraud": True}, {"sum": 2, "fraud": False}])
]


@pytest.mark.parametrize(
    ("values", "options", "expected", "examples"),
    [
        pytest.param(
            ORDERS,
            {},
            {
                "label": "fraud",
                "id": "order.id",
                "one_hot": True,
                "drop": ["order.note", "items"],
            },
            [
                Example({"order.sum": 1.5 * n, f"order.card.kind={'ab'[n % 2]}": 1}, n > 2, f"o{n}")
                for n in range(5)
            ],
            id="nested",
        ),
        pytest.param(
            CHANGES,
            {},
            {
                "features": "after",
                "label": "after.fraud",
                "id": "after.id",
                "timestamp": "ts_ms",
                "skip": ['op = "d"', "tombstone"],
            },
            [Example({"sum": 2.5 * n}, n % 2 == 0, n, 7) for n in (0, 1, 2, 0)],
            id="changes of a database",
        ),
        pytest.param(
            [one and {"schema": {}, "payload": one} for one in CHANGES],
            {},
            {
                "features": "payload.after",
                "label": "payload.after.fraud",
                "id": "payload.after.id",
                "timestamp": "payload.ts_ms",
                "skip": ['payload.op = "d"', "tombstone"],
            },
            [Example({"sum": 2.5 * n}, n % 2 == 0, n, 7) for n in (0, 1, 2, 0)],
            id="changes with their schema",
        ),
        pytest.param(
            EVENTS,
            {},
            {"features": "data", "label": "data.fraud", "id": "id", "timestamp": "time"},
            [Example({"sum": n + 1}, n == 0, f"e{n}", "now") for n in range(2)],
            id="structured events",
        ),
        pytest.param(
            [{"features": {"a": 1, "label": "spam"}, "id": 7}],
            {},
            {"features": "features", "label": "features.label", "id": "id"},
            [Example({"a": 1}, "spam", 7)],
            id="label among the features",
        ),
        pytest.param(
            [{"features": {"a": 1}, "fraud": 1}],
            {},
            {"features": "features", "label": "fraud"},
            [Example({"a": 1}, 1)],
            id="label of another name",
        ),
        pytest.param(
            [{"a": 1.5, "b": "x"}],
            {},
            {"label": "label", "one_hot": True},
            [Example({"a": 1.5, "b=x": 1})],
            id="no label at all",
        ),
        pytest.param(
            [{"a": 1, "y": 3}, {"a": 1, "y": "no"}],
            {"label": "y", "classes": [1, 2]},
            {"label": "y", "classes": [1, 2, 3, "no"]},
            [Example({"a": 1}, 3), Example({"a": 1}, "no")],
            id="classes",
        ),
        pytest.param(
            [{"a": 1}],
            {"label": "y", "require_label": True},
            {"label": "y", "require_label": False},
            [Example({"a": 1})],
            id="a label that is missed",
        ),
        pytest.param(
            [{"a": 1, "y": 0, "more": "x" * 99}],
            {"label": "y", "max_bytes": 64, "drop": ["more"]},
            {"label": "y", "max_bytes": 128, "drop": ["more"]},
            [Example({"a": 1}, 0)],
            id="size",
        ),
        pytest.param(
            [
                {"y": n, "a": n, "date": "2026-11-27", "price": "3.5", "long": "x" * 41}
                for n in range(2)
            ],
            {"label": "y"},
            {"label": "y", "drop": ["date", "price", "long"]},
            [Example({"a": 0}, 0), Example({"a": 1}, 1)],
            id="texts that are no categories",
        ),
    ],
)
def test_what_is_proposed_makes_examples(values, options, expected, examples):
    codec, text = proposed(DryRun(JsonCodec(**options), messages(*values)))
    assert {name: list(v) if isinstance(v, tuple) else v for name, v in given(codec).items()} == (
        {k: v for k, v in expected.items() if v is not False}
    )
    after = DryRun(codec, messages(*values))
    assert after.examples == examples
    assert after.changes() == {}
    labels = sum(one.label is not None for one in examples)
    line = f"With this {len(examples)} of {len(values)} become examples, {labels} with a label:"
    assert line in text.splitlines()


def test_each_line_of_a_message_can_be_pasted():
    run = DryRun(JsonCodec(), messages(*CHANGES, *ORDERS))
    tables = [one for one in run.lines() if one.startswith("    [codec]\n")]
    options = [tomllib.loads(table)["codec"] for table in tables]
    assert options == [
        {"features": "after", "label": "after.fraud", "id": "after.id", "timestamp": "ts_ms"},
        {"skip": ['op = "d"']},
        {"skip": ["tombstone"]},
    ]


def test_a_message_is_shown_as_the_example_that_it_becomes():
    codec = JsonCodec(label="y", id="no", weight="w", key="who", skip=["tombstone"])
    lines = list(
        DryRun(codec, messages({"a": 1.5, "y": False, "no": 7, "w": 2, "who": "eve"}, None)).lines()
    )
    assert lines == [
        "orders:0:0  2025-11-27 15:30:00",
        '    features   {"a": 1.5}',
        "    label      false",
        "    id         7",
        "    weight     2",
        '    key        "eve"',
        "orders:0:1  2025-11-27 15:30:00",
        "    skipped: value is null (a tombstone), which [codec] skips",
        "2 messages: 1 with a label (false: 1), 0 without, 0 not learnt, 1 skipped",
    ]


def test_a_heartbeat_of_labels_is_none_that_fails():
    beat = Message(Position("labels", 0, 0), None, b"")
    [_, line, *_] = DryRun(JsonCodec(), [beat], "labels").lines()
    assert line == "    skipped: value is empty, as are key and headers: a heartbeat"


def hints(codec, *values, labels=None):
    lines = [*DryRun(codec, messages(*values), labels).lines()]
    [end] = [n for n, line in enumerate(lines) if line.startswith(f"{len(values)} message")]
    return lines[end + 1 :]


def test_a_path_that_no_message_has_is_named():
    codec = JsonCodec(label="y", id="no", weight="w", timestamp="at", drop=["x.note", "b"])
    one = {"a": 1, "x": {"node": 1}, "y": 1, "w": None}
    assert hints(codec, one, one | {"a": 2, "at": 5}) == [
        f"No message has {path}, which [codec] names" for path in ("x.note", "b", "no", "w")
    ]
    assert hints(JsonCodec(), {"features": {"a": 1}, "label": 1}) == []


def test_features_that_never_differ_are_pointed_out():
    same = {"features": {"a": 1}}
    [hint] = hints(JsonCodec(), same, same | {"label": 1})
    assert hint.startswith("All examples have the same features")
    assert hints(JsonCodec(), same, {"features": {"a": 2}}) == []
    assert hints(JsonCodec(), same) == []


def test_texts_of_which_none_comes_twice_are_pointed_out_once_they_are_features():
    codec = JsonCodec(label="y", id="no", drop=["x"], one_hot=True)
    sent = [
        {"note": note, "no": note, "x": {"note": note}, "card": "ab"[n % 2], "sum": n, "y": n % 2}
        for n, note in enumerate(NOTES)
    ]
    [hint] = hints(codec, *sent)
    assert hint.startswith("No text of note comes twice here")
    assert hints(codec, *sent, sent[0]) == hints(codec, *sent[:3]) == []
    assert hints(replace(codec, drop=["x", "note"]), *sent) == []


def test_many_features_are_cut():
    [_, line, *_] = DryRun(
        JsonCodec(), messages({"features": dict.fromkeys(map(str, range(99)), 1)})
    ).lines()
    assert line.endswith(" ... 99 in all")
    assert len(line) < 400


def test_events_whose_id_is_in_a_header():
    headers = [("ce_id", b"e7"), ("ce_time", b"now"), ("ce_specversion", b"1.0")]
    sent = messages({"sum": 1, "fraud": True}, headers=headers)
    codec, _ = proposed(DryRun(JsonCodec(), sent))
    assert codec.paths["id"] == "header:ce_id"
    assert DryRun(codec, sent).examples == [Example({"sum": 1}, True, "e7", "now")]


def test_the_magic_byte_of_a_registry_is_named():
    run = DryRun(JsonCodec(), messages(b"\x00\x00\x00\x00\x07\x02x"))
    text = "\n".join(run.lines())
    assert "begins as those that a schema registry describes, here by schema 7" in text
    assert text.endswith('[codec]\nregistry = "http://localhost:8081"')


def test_what_no_line_helps_gets_none():
    for codec, value in (
        (JsonCodec(), b"<xml/>"),
        (JsonCodec(), b"[1]"),
        (JsonCodec(label="y"), {"y": 0.5}),
        (JsonCodec(key="who"), {"features": {}}),
    ):
        run = DryRun(codec, messages(value))
        assert run.changes() == {}
        assert [*run.lines()][-1].startswith("1 message: 0 with a label, 0 without, 1 not learnt")
    # What has been cut cannot be tried.
    cut = Message(Position("t", 0, 0), None, CutValue(b"{", size=3_000_000))
    assert DryRun(JsonCodec(), [cut]).changes() == {"max_bytes": 1 << 22}


def test_a_codec_of_the_users_is_tried_too():
    class Raising(Codec):
        def decode(self, value, headers=()):
            if not value:
                raise ZeroDivisionError("by zero")
            return Example({("a", 1): object}, label=b"x")

    run = DryRun(Raising(), messages(b"", b"x"))
    text = "\n".join(run.lines())
    assert "not learnt: by zero" in text
    assert "2 messages: 1 with a label" in text


# --- labels of a topic of their own ------------------------------------------------------------


def test_messages_of_labels_have_paths_of_their_own():
    sent = messages({"id": 7, "features": {"a": 1}}) + messages(
        {"payment": {"id": 7}, "outcome": True}, topic="frauds"
    )
    codec, text = proposed(DryRun(JsonCodec(), sent, "frauds"))
    assert codec.labels == {"id": "payment.id", "label": "outcome"}
    assert "not learnt: id is absent" in text
    assert DryRun(codec, sent, "frauds").examples == [Example({"a": 1}, id=7), Example({}, True, 7)]


def test_labels_in_messages_of_features_are_named():
    sent = messages({"id": 7, "features": {"a": 1}, "label": True})
    hint = "Labels come from frauds: those in other messages are ignored."
    assert any(line.startswith(hint) for line in DryRun(JsonCodec(), sent, "frauds").lines())
    assert not any(line.startswith(hint) for line in DryRun(JsonCodec(), sent).lines())
    nameless = [*DryRun(JsonCodec(), messages({"features": {}}), "frauds").lines()]
    assert nameless[-1].startswith("Some messages have no id, so that no label finds them")
    assert not any(line.startswith("Some") for line in DryRun(JsonCodec(), sent, "frauds").lines())


# --- small parts -------------------------------------------------------------------------------


def test_labels_of_two_kinds_are_named():
    assert mixed_labels([True, False, "spam", 3]) is None
    assert "Label true is a bool and a string" in mixed_labels([True, "true"])
    assert "Label 1 is a number and a string" in mixed_labels(["1", 1])
    sent = messages(*({"features": {}, "label": one} for one in (True, "true")))
    assert sum(line.startswith("Label true is") for line in DryRun(JsonCodec(), sent).lines()) == 1


def test_no_message_commands_the_terminal():
    value = '{"features": {"\x9b31m": 1, "\U000e0001é": "\u202e"}, "label": "\x9b"}'.encode()
    text = "\n".join(DryRun(JsonCodec(one_hot=True), messages(value)).lines())
    assert text.replace("\n", "").isprintable()
    assert r'"\u009b31m": 1, "\U000e0001é=\u202e": 1' in text


def test_what_is_no_fault_of_a_message_ends_it():
    class Away(Codec):
        def decode(self, value, headers=()):
            raise UnavailableError("the registry is away")

    with pytest.raises(UnavailableError, match="the registry is away"):
        DryRun(Away(), messages(b"{}"))


@pytest.mark.parametrize(
    "text", ['"', "\\", "\x7f", "\x9b", "\x00", "é😀", "\U000e0001", "a.b", "\n", "'"]
)
def test_any_text_survives_the_file(text):
    options = {"label": text, "drop": [text], "labels": {"id": text}, "one_hot": True}
    assert tomllib.loads(toml(options)) == {"codec": options}
