"""JSON lines, JSON arrays and messages of a topic."""

import codecs
import gzip
import json

from tests.streams.corpus.case import Case

LINES = '{"x": 1.5, "city": "Bern", "y": "yes"}\n{"x": 2, "city": "Basel", "y": "no"}\n'
READ = [({"x": 1.5, "city": "Bern"}, "yes"), ({"x": 2, "city": "Basel"}, "no")]
MESSAGES = (
    '{"features": {"x": 1.5, "city": "Bern"}, "label": true, "id": "m1", "timestamp": 2}\n'
    '{"features": {"x": 3}}\n'
    '{"features": {"x": 2, "z": null}, "label": false, "timestamp": 1}\n'
)
NOTES = ["left out: 1 of 3 rows, without a label in 'label'", "left out: no row has a value of 'z'"]


def lines(*values):
    """Return a file with these values of x, in rows of another number each."""
    rows = ({"i": i, "x": value, "y": "ab"[i % 2]} for i, value in enumerate(values))
    return "".join(json.dumps(row) + "\n" for row in rows)


def rows(*values):
    """Return the examples of `lines`; None is missing."""
    return [
        ({"i": i} if value is None else {"i": i, "x": value}, "ab"[i % 2])
        for i, value in enumerate(values)
    ]


CASES = [
    Case("lines", "a.jsonl", LINES, READ),
    Case("lines, by another suffix", "a.ndjson", LINES, READ),
    Case("lines of Windows with a byte order mark", "a.json",
         codecs.BOM_UTF8 + LINES.replace("\n", "\r\n").encode(), READ),
    Case("lines without a suffix", "part-00000", LINES, READ),
    Case("lines, compressed", "a.jsonl.gz", gzip.compress(LINES.encode()), READ),
    Case("empty lines and no last line end", "a.jsonl", LINES.replace("\n", "\n\n").rstrip(), READ),
    Case("an array", "a.json", f"[{LINES.strip().replace(chr(10), ',')}]", READ),
    Case("an array, indented", "a.json",
         json.dumps([json.loads(line) for line in LINES.splitlines()], indent=2), READ),
    Case("messages of a topic", "a.jsonl", MESSAGES,
         [({"x": 1.5, "city": "Bern"}, True), ({"x": 2}, False)], NOTES, options={}),
    Case("messages by their time", "a.jsonl", MESSAGES,
         [({"x": 2}, False), ({"x": 1.5, "city": "Bern"}, True)], NOTES,
         options={"time": "timestamp"}),
    Case("messages with fields beside the features", "a.jsonl",
         '{"features": {"x": 1}, "label": 0, "shop": "a"}\n'
         '{"features": {"x": 2}, "label": 1, "weight": 3}\n',
         [({"x": 1}, 0), ({"x": 2}, 1)],
         ["left out: 'shop', 'weight', beside the features of messages"], options={}),
    Case("messages whose label is misspelt", "a.jsonl", '{"features": {"x": 1}, "lable": 0}\n',
         refused="no row has a label in label: name another target (left out: 'lable', beside",
         options={}),
    Case("messages whose label is renamed", "a.jsonl", MESSAGES,
         [({"x": 1.5, "city": "Bern"}, True), ({"x": 2}, False)],
         ["left out: 1 of 3 rows, without a label in 'sold'", "no row has a value of 'z'"],
         options={"target": "sold"}),
    Case("messages with a label among the features", "a.jsonl",
         '{"features": {"x": 1, "label": 3}, "label": 0}\n',
         refused="a.jsonl ... line 1 ... two values for 'label': rename one", options={}),
    Case("an object called features beside the target", "a.jsonl",
         '{"features": {"x": 1}, "z": 3, "y": 0}\n{"features": {"x": 2}, "z": 4, "y": 1}\n',
         [({"features.x": 1, "z": 3}, 0), ({"features.x": 2, "z": 4}, 1)]),
    Case("a label that is null", "a.jsonl",
         '{"x": 1, "y": null}\n{"x": 2, "y": 0}\n{"x": 3, "y": 1}\n',
         [({"x": 2}, 0), ({"x": 3}, 1)], ["left out: 1 of 3 rows, without a label in 'y'"]),
    Case("labels of two types of whole numbers", "a.jsonl",
         '{"x": 1, "y": 1}\n{"x": 2, "y": "1"}\n{"x": 3, "y": 0}\n',
         [({"x": 1}, 1), ({"x": 2}, 1), ({"x": 3}, 0)]),
    Case("labels of bools", "a.jsonl", '{"x": 1, "y": true}\n{"x": 2, "y": false}\n',
         [({"x": 1}, True), ({"x": 2}, False)]),
    Case("keys that only some rows have", "a.jsonl",
         '{"x": 1, "y": "a"}\n{"z": "p", "y": "b"}\n{"y": "a"}\n',
         [({"x": 1}, "a"), ({"z": "p"}, "b"), ({}, "a")]),
    Case("accents, escaped and not", "a.jsonl",
         '{"ort": "K\\u00f6ln", "y": 0}\n{"ort": "Genève", "y": 1}\n',
         [({"ort": "Köln"}, 0), ({"ort": "Genève"}, 1)]),
    Case("objects in objects", "a.jsonl",
         '{"x": 1, "user": {"age": 30, "home": {"city": "Bern"}}, "y": 0}\n'
         '{"x": 2, "user": {"age": 40}, "y": 1}\n',
         [({"x": 1, "user.age": 30, "user.home.city": "Bern"}, 0), ({"x": 2, "user.age": 40}, 1)]),
    Case("objects of nothing", "a.jsonl",
         '{"x": 1, "user": {}, "y": 0}\n{"x": 2, "user": {"age": 40, "home": {}}, "y": 1}\n',
         [({"x": 1}, 0), ({"x": 2, "user.age": 40}, 1)]),
    Case("arrays in objects", "a.jsonl", '{"x": 1, "tags": ["a"], "y": 0}\n{"x": 2, "y": 1}\n',
         [({"x": 1}, 0), ({"x": 2}, 1)], ["left out: 'tags' has values of several parts"]),
    Case("objects and texts in one field", "a.jsonl",
         '{"x": 1, "u": {"a": 2}, "y": 0}\n{"x": 2, "u": "none yet", "y": 1}\n',
         [({"x": 1, "u.a": 2}, 0), ({"x": 2, "u": "none yet"}, 1)]),
    Case("two ways to one name", "a.jsonl", '{"x": 1, "y": 0}\n{"a.b": 1, "a": {"b": 2}, "y": 1}\n',
         refused="a.jsonl ... line 2 ... two values for 'a.b': rename one"),
    Case("one key twice", "a.jsonl", '{"x": 1, "x": 2, "y": 0}\n',
         refused="a.jsonl ... line 1 ... two values for 'x': rename one"),
    Case("numbers as texts", "a.jsonl", lines("1.5", "2", "-3"), rows(1.5, 2, -3)),
    Case("numbers and texts that are some", "a.jsonl", lines(1.5, "2", None, 3),
         rows(1.5, 2, None, 3)),
    Case("a text among numbers", "a.jsonl", lines(1, "many", 2, 3), rows(1, None, 2, 3),
         ["3 of 4 values of 'x' are numbers; 'many' (1) counts as missing"]),
    Case("numbers among texts", "a.jsonl", lines("low", 3, "high", "low"),
         rows("low", "3", "high", "low"),
         ["1 of 4 values of 'x' are numbers, and count as categories"]),
    Case("bools", "a.jsonl", lines(True, False, None), rows(1, 0, None)),
    Case("bools among numbers", "a.jsonl", lines(True, 0, 5, False, 2), rows(1, 0, 5, 0, 2)),
    Case("bools among texts are categories", "a.jsonl", lines(True, False, True, "yes"),
         rows("True", "False", "True", "yes")),
    Case("decimal points of numbers, more than decimal commas of texts", "a.jsonl",
         '{"x": 1.5, "q": "2,5", "r": "0,5", "p": "1,234", "y": "a"}\n'
         '{"x": 2.5, "q": 3, "r": 4, "p": "2,345", "y": "b"}\n'
         '{"x": 3.5, "q": 5, "r": 6, "p": "3,456", "y": "a"}\n',
         [({"x": 1.5, "q": 2.5, "r": .5, "p": 1234}, "a"),
          ({"x": 2.5, "q": 3, "r": 4, "p": 2345}, "b"),
          ({"x": 3.5, "q": 5, "r": 6, "p": 3456}, "a")],
         ["'q' ... '2,5' as 2.5", "'r' ... '0,5' as 0.5", "'p' ... '1,234' as 1234"]),
    Case("texts of numbers with a last 0", "a.jsonl", lines("1.9", "1.10", "2"), rows(1.9, 1.1, 2)),
    Case("an exponent in texts, among fractions", "a.jsonl", lines("12e5", "1.5", "3", "4"),
         rows(1_200_000, 1.5, 3, 4)),
    Case("not finite, as Python writes it", "a.jsonl", lines(1, float("nan"), float("inf"), 2, 3),
         rows(1, None, None, 2, 3), ["'x' ... 'inf' (1)"]),
    Case("beyond floats", "a.jsonl", lines(1, 10**400, 2).replace("2,", "2,") , rows(1, None, 2),
         ["'x' ... (1) counts as missing"]),
    Case("times with zones", "a.jsonl", lines("2026-01-01T12:00:00Z", "2026-01-01T12:00:00+01:00"),
         [({"i": 1}, "b"), ({"i": 0}, "a")], options={"target": "y", "time": "x"}),
    Case("a line that is cut", "a.jsonl", LINES + '{"x": 3, "ci',
         refused="a.jsonl ... line 3 ... JSON"),
    Case("a line that is no object", "a.jsonl", LINES + "[3]\n",
         refused="a.jsonl ... line 3 ... object"),
    Case("an element that is no object", "a.json", '[{"x": 1, "y": 0}, 3]',
         refused="a.json ... element 2 is no object"),
    Case("an array that is cut", "a.json", '[{"x": 1, "y": 0},', refused="a.json ... JSON"),
    Case("an array of nothing", "a.json", "[]", refused="a.json: is empty"),
    Case("an object of columns, as pandas writes it", "a.json",
         '{"x": {"0": 1.5, "1": 2}, "y": {"0": "a", "1": "b"}}',
         refused="a has no column 'y' ... one object ... line"),
    Case("one object over several lines", "a.json", '{\n "x": 1,\n "y": 0\n}\n',
         refused="a.json ... line 1 ... JSON"),
    Case("another encoding", "a.jsonl", '{"ort": "Köln", "y": 0}\n'.encode("latin-1"),
         refused="a.jsonl ... line 1 ... UTF-8 ... encoding"),
    Case("another encoding, which is named", "a.jsonl",
         '{"ort": "Köln", "y": 0}\n{"ort": "Genève", "y": 1}\n'.encode("latin-1"),
         [({"ort": "Köln"}, 0), ({"ort": "Genève"}, 1)],
         options={"target": "y", "encoding": "latin-1"}),
]  # fmt: skip
