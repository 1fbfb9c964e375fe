"""The pages on Debezium and CloudEvents: their configuration reads the messages that they show."""

import json
import re
import tomllib
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from drift.consumers import Example, JsonCodec
from drift.consumers.dry_run import DryRun
from drift.consumers.learner import Learner
from drift.consumers.metrics import Metrics
from drift.consumers.options import WorkerOptions
from drift.consumers.records import Message, Position
from drift.models import LBP
from tests.consumers.codecs import given

DOCS = Path(__file__).parents[2] / "docs"
#: What the official SDK for Python, 2.2.0, makes of events: a line each.
EVENTS = Path(__file__).parent / "data" / "cloudevents.jsonl"

pytestmark = pytest.mark.sources


def blocks(page, language):
    text = (DOCS / page).read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def codecs(page):
    tables = map(tomllib.loads, blocks(page, "toml"))
    return [JsonCodec(**table["codec"]) for table in tables if "codec" in table]


def dry_run(codec, shown, sent):
    """What a dry run says of values and headers that were sent when the page shows."""
    topic, moment = re.match(r"(\S+):0:0  (.*)", shown).groups()
    at = int(datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp() * 1000)
    here = [
        Message(Position(topic, 0, n), None, value, headers, at)
        for n, (value, headers) in enumerate(sent)
    ]
    return "\n".join(DryRun(codec, here).lines()) + "\n"


def messages(values):
    values = [None if value == b"null" else value for value in values]
    return [Message(Position("t", 0, n), None, value) for n, value in enumerate(values)]


def outcome(codec, sent):
    """What becomes of messages: examples, their number that is learnt, skipped and refused."""
    options = WorkerOptions(topic="t", group="g", dead_letters="dead")
    learner = Learner(LBP(3), codec, Metrics("t"), options)
    for message in sent:
        learner.take(message)
    metrics = learner.metrics
    counts = metrics.examples, metrics.unlabelled, metrics.skipped, metrics.dead_letters
    return DryRun(codec, sent).examples, counts


def test_debezium():
    codec, _ = codecs("debezium.md")
    changes, _ = blocks("debezium.md", "json")
    sent = messages(changes.encode().splitlines())
    row = {"amount": 31.5, "card=visa": 1}
    expected = [
        Example(row, None, 7, 1764255600112),
        Example(row, label=True, id=7, timestamp=1764255660090),
    ]
    assert outcome(codec, sent) == (expected, (1, 1, 2, 0))
    [shown] = blocks("debezium.md", "text")
    assert dry_run(codec, shown, [(one.value, ()) for one in sent]) == shown
    [program, _] = blocks("debezium.md", "sh")
    assert all(f"b'{change}'," in program for change in changes.splitlines()[:3])
    # Without skip, the last two are dead letters.
    assert outcome(JsonCodec(**{**given(codec), "skip": ()}), sent) == (expected, (1, 1, 0, 2))


def test_debezium_with_schemas():
    codec, _ = codecs("debezium.md")
    changes, _ = blocks("debezium.md", "json")
    *whole, null = changes.splitlines()
    sent = messages([*(b'{"schema":{},"payload":%s}' % one.encode() for one in whole), b"null"])
    paths = {k: f"payload.{v}" for k, v in given(codec).items() if isinstance(v, str)}
    rules = [one.replace("op", "payload.op") for one in codec.skip]
    found, counts = outcome(JsonCodec(**{**given(codec), **paths, "skip": rules}), sent)
    assert (len(found), counts) == (2, (1, 1, 2, 0))
    assert null == "null"


def test_debezium_flattened():
    _, codec = codecs("debezium.md")
    _, rows = blocks("debezium.md", "json")
    sent = messages([*rows.encode().splitlines(), b"null"])
    expected = [Example({"amount": 31.5, "card=visa": 1}, label=True, id=7)]
    assert outcome(codec, sent) == (expected, (1, 0, 2, 0))


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_cloudevents(mode):
    codec = dict(zip(("binary", "structured"), codecs("cloudevents.md"), strict=True))[mode]
    lines = [json.loads(line) for line in EVENTS.read_text("utf-8").splitlines()]
    sent = [
        Message(
            Position("t", 0, n),
            None,
            line["value"].encode(),
            [(name, value.encode()) for name, value in line["headers"].items()],
        )
        for n, line in enumerate(one for one in lines if one["mode"] == mode)
    ]
    assert len(sent) == 3
    expected = [
        Example({"amount": 31.5, "card=visa": 1}, False, "p0", "2026-11-27T15:00:00Z"),
        Example({"amount": 2900, "card=amex": 1}, True, "p1", "2026-11-27T15:00:01Z"),
    ]
    assert outcome(codec, sent) == (expected, (2, 0, 1, 0))


def test_the_event_on_the_page_is_the_one_of_the_sdk():
    first, second, missed = blocks("cloudevents.md", "text")
    [structured] = blocks("cloudevents.md", "json")
    lines = [json.loads(line) for line in EVENTS.read_text("utf-8").splitlines()]
    [binary] = [one for one in lines if one["headers"].get("ce_id") == "p1"]
    [event] = [json.loads(one["value"]) for one in lines if '"id": "p1"' in one["value"]]
    assert json.loads(structured) == {k: v for k, v in event.items() if k != "datacontenttype"}
    headers = [(name, text.encode()) for name, text in binary["headers"].items()]
    sent = binary["value"].encode(), headers
    by_headers, by_value = codecs("cloudevents.md")
    assert dry_run(by_headers, first, [sent]) == first
    assert dry_run(by_value, second, [(structured.encode(), ())]) == second
    assert dry_run(by_value, missed, [sent]) == missed
    program, _, whole = blocks("cloudevents.md", "sh")
    assert all(f'"{name}": "{value}"' in program for name, value in binary["headers"].items())
    assert binary["value"] in program
    assert "".join(structured.split()) in "".join(whole.split())


def test_events_of_the_other_mode_are_refused_as_the_page_says():
    (_, by_value), binary = codecs("cloudevents.md"), b'{"amount": 2900, "fraud": true}'
    [structured] = blocks("cloudevents.md", "json")
    by_headers, _ = codecs("cloudevents.md")
    for_value, for_headers = (
        tomllib.loads(one) for one in blocks("cloudevents.md", "toml") if "[codec]" not in one
    )
    codec = JsonCodec(**{**given(by_value), **for_value})
    assert outcome(codec, messages([binary])) == ([], (0, 0, 0, 1))
    codec = JsonCodec(**{**given(by_headers), **for_headers})
    assert outcome(codec, messages([structured.encode()])) == ([], (0, 0, 0, 1))


def test_the_page_on_messages_shows_what_a_dry_run_says():
    before, after, _ = blocks("kafka_messages.md", "text")
    before = before.removeprefix("...\n")
    commands, second, *_ = blocks("kafka_messages.md", "sh")
    sent = [(line.encode(), ()) for line in commands.splitlines() if line.startswith("{")]
    error = "error: none of 4 messages can be learnt: correct [codec]\n"
    assert (dry_run(JsonCodec(), after, sent) + error).endswith(f"\n{before}")
    proposed = before.removesuffix(error).rpartition("\n\n")[2]
    written = re.search(r"<<'END'\n(.*?)^END$", second, re.DOTALL | re.MULTILINE)[1]
    assert tomllib.loads(proposed) == tomllib.loads(written)
    codec = JsonCodec(**tomllib.loads(written)["codec"])
    assert dry_run(codec, after, sent[:2]) == after
    hint = "No text of order.note comes twice here"
    assert hint in dry_run(replace(codec, drop=()), after, sent)
    rare, skipping, _ = map(tomllib.loads, blocks("kafka_messages.md", "toml"))
    assert len(JsonCodec(**rare["codec"], **skipping["codec"]).skip) == 3
