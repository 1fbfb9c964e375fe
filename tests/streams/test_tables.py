import io
import math
import os
import re
import threading
import warnings
from importlib import import_module

import numpy as np
import pandas as pd
import polars as pl
import pytest
from river import datasets

from drift.errors import DataError, DriftError, ParameterError
from drift.streams import Documents, Stream, decoding, read_stream
from drift.streams.texts import times_of

FRAME = pl.DataFrame(
    {"x": [1.5, 2, 3], "z": [7, 8, 9], "when": [2, 1, 3], "y": ["up", "down", "up"]}
)


def test_rows_name_and_drop():
    stream = read_stream(FRAME, "y", time="when", rows=2, name="mine", drop=["z"])
    assert (list(stream), stream.name) == ([({"x": 2}, "down"), ({"x": 1.5}, "up")], "mine")


def test_one_column_may_stand_alone():
    frame = pl.DataFrame({"a": [1, 2], "b": [3, 4], "ab": [5, 6], "y": [0, 1]})
    assert list(read_stream(frame, "y", drop="ab")) == [
        ({"a": 1, "b": 3}, 0),
        ({"a": 2, "b": 4}, 1),
    ]
    times = frame.with_columns(ab=pl.lit("2026-01-05 07:00"))  # a Monday
    stream = read_stream(times, "y", calendar="ab", rows=1)
    assert set(next(iter(stream))[0].values()) == {1, 3, 7, 0}


@pytest.mark.parametrize(
    ("written", "hour"),
    [
        *(("1970-01-01 9:30", 9.5), ("1970/01/01 9:30", 9.5), ("1970-01-01 9:30 +02:00", 7.5)),
        *(("1970-01-01 12:00 GMT", 12), ("1970-01-01T9:30Z", 9.5), ("1970-01-01 9:30 PM", 21.5)),
        *(("1970-01-01 25:00", None), ("1970-13-01", None), ("1970-02-30 9:30", None)),
    ],
)
def test_dates_that_begin_as_those_of_iso_may_go_on_more_loosely(written, hour):
    assert times_of([])(written) == (None if hour is None else 3600 * hour)


@pytest.mark.parametrize("rows", [0, -3, 2.5, True, "2"])
def test_numbers_of_rows_are_whole_and_above_zero(rows):
    stream = Stream([({"a": 1}, 0), ({"a": 2}, 1), ({"a": 3}, 1), ({"a": 4}, 0)])
    for read in (
        lambda: read_stream(FRAME, "y", rows=rows),
        lambda: read_stream(list(stream), rows=rows),
        lambda: Stream.of(list(stream), rows=rows),
        lambda: stream.head(rows),
    ):
        with pytest.raises(
            ParameterError, match=f"rows must be an integer of at least 1, not {rows!r}"
        ):
            read()
    with pytest.raises(ParameterError, match="length must be an integer of at least 1"):
        stream.block_shuffled(rows)


def test_a_topic_of_a_libsvm_file(tmp_path):
    path = tmp_path / "two.svm"
    path.write_text("1 1:0.5 3:2\n-1 2:1\n")
    assert list(read_stream(path, "1")) == [({0: 0.5, 2: 2.0}, True), ({1: 1.0}, False)]


def test_the_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"x;y\n1;a\n2;b\n")))
    stream = read_stream("-", "y")
    assert (list(stream), stream.name) == ([({"x": 1}, "a"), ({"x": 2}, "b")], "stdin")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no named pipes")
def test_a_pipe_which_can_be_read_once(tmp_path):
    """As a shell's <(zcat a.csv.gz) is one."""
    path = tmp_path / "63"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(b"x;c;y\n1;p;a\n2;q;b\n"))
    writer.start()
    stream = read_stream(path, "y")
    writer.join()
    expected = [({"x": 1, "c": "p"}, "a"), ({"x": 2, "c": "q"}, "b")]
    assert (list(stream), stream.name) == (expected, "stdin")


def test_a_wide_table_of_more_combinations_than_floats_have():
    frame = pl.DataFrame({f"x{i}": [1, 2, 3] for i in range(700)} | {"y": ["a", "b", "a"]})
    assert read_stream(frame, "y").notes == ()


def test_pairs_and_documents():
    phishing = read_stream(datasets.Phishing(), rows=5)
    assert (len(phishing), phishing.name) == (5, "Phishing")
    assert list(phishing) == list(datasets.Phishing().take(5))
    assert read_stream(phishing) is phishing
    pairs = [({"word": "a"}, 1), ({"word": "b"}, 0)]
    assert list(read_stream(pairs)) == pairs
    documents = Documents.from_arrays([[1.0], [2.0]], ["x", "z"])
    assert list(read_stream(documents)) == [({0: 1.0}, "x"), ({0: 2.0}, "z")]
    assert [y for _, y in read_stream(documents, "z")] == [False, True]


OF_COLUMNS = {"time": "a", "moment": "a", "delay": "a", "drop": ["a"], "calendar": ["a"]}
OF_TEXT = {"encoding": "latin-1", "separator": ";"}


TEXTS = {
    "a.svm": "0 1:2\n",
    "a.arff": "@relation r\n@attribute a numeric\n@attribute y {0,1}\n@data\n1,0\n",
    "a.jsonl": '{"a": 1, "y": 0}\n',
}


@pytest.mark.parametrize(
    ("source", "target", "unused", "reason"),
    [
        ([({"a": 1}, 0)], None, {"target": "y", **OF_COLUMNS, **OF_TEXT}, "has no columns"),
        (datasets.Phishing(), None, {"target": "y", **OF_COLUMNS, **OF_TEXT}, "has no columns"),
        (Stream([({"a": 1}, 0)]), None, {"target": "y", **OF_COLUMNS, **OF_TEXT}, "was read"),
        (Documents.from_arrays([[1.0]], ["0"]), "0", OF_COLUMNS | OF_TEXT, "has no columns"),
        ("a.svm", "0", OF_COLUMNS | OF_TEXT, "has no columns"),
        (pl.DataFrame({"a": [1, 2], "y": [0, 1]}), "y", OF_TEXT, "is no text"),
        ("a.parquet", "y", OF_TEXT, "is no text"),
        ("a.arff", "y", {"separator": ","}, "is no separated text"),
        ("a.jsonl", "y", {"separator": ","}, "is no separated text"),
    ],
)
def test_what_a_source_cannot_use_is_refused_by_name(source, target, unused, reason, tmp_path):
    if isinstance(source, str):
        pl.DataFrame({"a": [1, 2], "y": [0, 1]}).write_parquet(tmp_path / "a.parquet")
        source = tmp_path / source
        if source.name in TEXTS:
            source.write_text(TEXTS[source.name])
    assert len(read_stream(source, target))
    for given in (*({name: value} for name, value in unused.items()), unused):
        message = f"{reason}.*, so it cannot use {', '.join(given)}: leave that out"
        with pytest.raises(ParameterError, match=message):
            read_stream(source, **{"target": target} | given)


@pytest.mark.parametrize("suffix", ["gz", "xz", "bz2"])
def test_a_compressed_file_that_was_cut_short_or_damaged(suffix, tmp_path):
    path = tmp_path / f"a.csv.{suffix}"
    whole = import_module({"gz": "gzip", "xz": "lzma", "bz2": "bz2"}[suffix]).compress
    rows = whole(b"x,y\n" + b"".join(b"%d,%d\n" % (i * 7919 % 997, i % 2) for i in range(9_000)))
    for content in (rows[: len(rows) // 2], rows[:60] + b"zzzzzz" + rows[66:], b"plain"):
        path.write_bytes(content)
        with pytest.raises(DataError, match="the compressed file is cut short or damaged"):
            read_stream(path, "y")


def test_what_is_no_file_and_has_no_examples(tmp_path):
    with pytest.raises(DataError, match=r"nowhere\.csv.* cannot be read \(No such file"):
        read_stream(tmp_path / "nowhere.csv", "y")
    with pytest.raises(DataError, match="is a folder"):
        read_stream(tmp_path, "y")
    with pytest.raises(ParameterError, match="has no examples"):
        read_stream(3)
    for rows in ([({"a": 1}, 0, {"w": 2.0})], [{"a": 1, "y": 0}], (pd.DataFrame({"a": [1]}), [0])):
        with pytest.raises(ParameterError, match=r"example 0 is not a pair.* and its target"):
            read_stream(rows)


@pytest.mark.parametrize(
    ("label", "message"),
    [
        (None, "example 1 has no label: leave it out, or give it one"),
        (float("nan"), "example 1 has no label"),
        (np.float64("nan"), "example 1 has no label"),
        (pd.NA, "example 1 has no label"),
        (43.75, "example 1 has the label 43.75: classes are texts or whole numbers, no fractions"),
        ([3], r"example 1 has the label \[3\], a list, which is unhashable: use a string or a t"),
        (np.zeros(2), r"example 1 has the label array\(.*, a ndarray, which is unhashable"),
    ],
)
def test_a_label_that_cannot_be_learnt(label, message):
    with pytest.raises(ParameterError, match=message):
        read_stream([({"a": 1}, 0), ({"a": 2}, label)])


def test_blocks_in_random_order():
    stream = Stream([({"i": i}, i) for i in range(10)], "ten", drifts=[6])
    mixed = stream.block_shuffled(4)
    order = [y for _, y in mixed]
    blocks = sorted([[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]], key=lambda block: order.index(block[0]))
    assert order == [i for block in blocks for i in block]
    assert order == [y for _, y in stream.block_shuffled(4)]
    assert len({tuple(y for _, y in stream.block_shuffled(2, seed)) for seed in range(9)}) > 1
    assert (mixed.drifts, mixed.name) == ((), "ten, shuffled")


def test_a_stream_knows_its_examples():
    stream = Stream([({"i": 1}, np.int64(1)), ({"i": 2}, 2)])
    assert stream.sha256 != Stream([({"i": 1}, np.int64(1)), ({"i": 3}, 2)]).sha256
    assert stream.head(1).examples == stream.examples[:1]
    with pytest.raises(ParameterError, match="has no examples"):
        Stream([])


@pytest.mark.parametrize(("unit", "scale"), [("milli", 1000), ("micro", 10**6), ("nano", 10**9)])
def test_moments_of_other_units_since_1970_are_seconds(unit, scale):
    when = [1_764_000_000 * scale, 1_764_000_060 * scale]
    frame = pd.DataFrame({"when": when, "x": [1, 2], "y": [0, 1]})
    said = f"'when' are {unit}seconds since 1970: 1764.* is 2025-11-24 16:00:00"
    with pytest.warns(RuntimeWarning, match=said):
        stream = read_stream(frame, "y", moment="when")
    assert stream.moments.tolist() == [1_764_000_000, 1_764_000_060]


def test_moments_that_look_like_days_are_named():
    frame = pd.DataFrame({"when": [20260131, 20260201], "x": [1, 2], "y": [0, 1]})
    with pytest.warns(RuntimeWarning, match="20260131 looks like the day 2026-01-31"):
        assert read_stream(frame, "y", moment="when").moments[0] == 20260131


@pytest.mark.parametrize("paid", [[1767225700, 1767225800], ["2026-01-01", "2026-01-02"]])
def test_delays_that_look_like_times_are_named(paid):
    frame = pd.DataFrame({"when": [1, 2], "paid": paid, "x": [1, 2], "y": [0, 1]})
    with pytest.warns(RuntimeWarning, match="delays of 'paid' are seconds: 1767.* like a time"):
        read_stream(frame, "y", moment="when", delay="paid")


@pytest.mark.parametrize("scale", [1, 1000])
@pytest.mark.parametrize("as_times", [False, True])
def test_delays_that_are_times_since_1970_beside_moments_that_are(scale, as_times):
    """Two labels, which come 100 and 40 seconds late."""
    frame = pd.DataFrame({"when": [1767225600, 1767225660], "x": [1, 2], "y": [0, 1]})
    frame["when"] = pd.to_datetime(frame["when"], unit="s") if as_times else frame["when"] * scale
    frame["paid"] = 1767225700 * scale
    said = f"'paid' are .*seconds since 1970: {1767225700 * scale} is 2026-01-01 00:01:40"
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        stream = read_stream(frame, "y", moment="when", delay="paid")
    assert stream.delays.tolist() == [100, 40]
    assert re.search(said, str(warned[-1].message))


@pytest.mark.parametrize("rest", ["4,p,a\n", ""])
def test_a_file_that_is_written_to_while_it_is_read(rest, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,city,y\n1,p,a\n2,q,b\n")

    def write(_):
        path.write_text("x,city,y\n1,p,a\n" + rest)

    with pytest.raises(DataError, match="was written to while it was read: give a copy"):
        read_stream(path, "y", progress=write)


@pytest.mark.parametrize(
    ("source", "message"),
    [("https://example.org/a.csv", "no file: fetch it first"), (".", "is a folder: name one file")],
)
def test_what_is_no_file_of_this_machine(source, message):
    with pytest.raises(DriftError, match=message):
        read_stream(source, "y")


def test_pairs_stay_as_they_are_and_what_models_cannot_learn_of_them_is_said():
    pairs = [
        ({"a": math.nan, "b": None, "c": 1.0}, 1),
        ({"a": 1.0, "b": math.inf}, "1"),
        ({"a": 2.0, "b": "red"}, " No"),
        ({"a": np.float32(0.5)}, "no"),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stream = read_stream(pairs)
    assert stream.examples == pairs
    labels, values = stream.notes
    assert labels.startswith("1 and '1' are different classes, as are 2 others: write them alike")
    assert values.startswith("2 of 4 rows have missing or infinite values, of 'a', 'b': leave thes")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1"])
@pytest.mark.parametrize("size", range(100, 108))
def test_letters_of_several_bytes_at_the_ends_of_blocks(encoding, size, tmp_path, monkeypatch):
    """A block that ends within a letter is a byte shorter, and the next one longer."""
    monkeypatch.setattr(decoding, "BYTES", size)
    texts = ["ä" * (7 + i % 31) for i in range(200)]
    path = tmp_path / "a.csv"
    lines = "".join(f"{text},{'ab'[i % 2]}\n" for i, text in enumerate(texts))
    path.write_bytes(f"x,y\n{lines}".encode(encoding))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stream = read_stream(path, "y", encoding=None if encoding == "utf-16" else encoding)
    assert [x["x"] for x, _ in stream] == texts


def test_codes_in_later_blocks_than_what_tells_them(tmp_path, monkeypatch):
    """A block without any of them comes as numbers, and its texts are not seen."""
    monkeypatch.setattr(decoding, "BYTES", 64)
    path = tmp_path / "a.csv"
    rows = [("1.5", "17"), ("2.05", "18")] * 40 + [("12e5", "12e5")] * 20
    path.write_text("f,c,y\n" + "".join(f"{','.join(row)},a\n" for row in rows))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stream = read_stream(path, "y")
    assert [tuple(x.values()) for x, _ in stream] == [tuple(map(float, row)) for row in rows]
    found = [note for note in stream.notes if "numbers of" in note]
    assert found == ["20 of 100 numbers of 'c' have an exponent, as codes may: '12e5' is 1200000"]


@pytest.mark.parametrize("size", range(60, 80))
def test_a_quote_behind_a_backslash_is_named_wherever_a_block_ends(size, tmp_path, monkeypatch):
    monkeypatch.setattr(decoding, "BYTES", size)
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + "no,a\n" * 12 + '"say \\"hi\\" to her",b\n' + "no,a\n" * 12)
    with pytest.warns(RuntimeWarning) as warned:
        read_stream(path, "y")
    shown = '"say \\"h'
    start = f"a: a quote behind a backslash ends its text, in {shown!r}: double"
    assert sum(str(one.message).startswith(start) for one in warned) == 1


@pytest.mark.parametrize("size", [64, 1 << 20])
def test_points_of_whole_numbers_tell_what_a_point_is_in_later_blocks(size, tmp_path, monkeypatch):
    """30 numbers such as 2.0 are more than one such as 1,5: so 1.234 is no 1234."""
    monkeypatch.setattr(decoding, "BYTES", size)
    path = tmp_path / "a.csv"
    texts = ["2.0"] * 30 + ["3"] * 60 + ["1.234"] * 20 + ["1,5"]
    path.write_text("x;y\n" + "".join(f"{text};{'ab'[i % 2]}\n" for i, text in enumerate(texts)))
    with pytest.warns(RuntimeWarning, match="1 of 111 numbers of 'x' .* '1,5' as 1.5"):
        stream = read_stream(path, "y")
    assert [x["x"] for x, _ in stream] == [2] * 30 + [3] * 60 + [1.234] * 20 + [1.5]


def test_how_rows_without_a_label_are_written_tells_nothing(tmp_path):
    path = tmp_path / "a.csv"
    rows = [("2.0", "")] * 30 + [("1.234", "a"), ("2.345", "b"), ("3.456", "a")]
    path.write_text("x;p;y\n" + "".join(f"{text};1,5;{label}\n" for text, label in rows))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stream = read_stream(path, "y")
    assert [x["x"] for x, _ in stream] == [1234, 2345, 3456]
    assert "3 of 3 numbers of 'x' may have a point between thousands" in stream.notes[1]


def test_labels_of_pairs_that_say_that_there_is_none_are_named():
    pairs = [({"a": 1.0}, ""), ({"a": 2.0}, "x"), ({"a": 3.0}, "NA"), ({"a": 4.0}, "")]
    with pytest.warns(RuntimeWarning, match=r"'' \(2\), 'NA' \(1\) are classes: leave such rows"):
        assert list(read_stream(pairs)) == pairs
    with pytest.warns(RuntimeWarning, match=r"'nan' \(1\) is a class: leave such rows out if"):
        read_stream([({"a": 1.0}, "nan"), ({"a": 2.0}, "x")])
    with pytest.warns(RuntimeWarning, match="True and 'true' are different classes"):
        read_stream([({"a": 1.0}, True), ({"a": 2.0}, "true")])


@pytest.mark.parametrize(
    ("values", "named"),
    [
        (("1", "20095", "red"), "'a', 'b'"),  # all are texts, as the csv module reads them
        ((1.0, "0.5", "red"), "'b'"),
        ((1.0, "20095", "red"), None),  # likelier a code
        ((1.0, "NA", "red"), None),
    ],
)
def test_texts_of_numbers_are_named(values, named):
    pairs = [(dict(zip("abc", values, strict=True)), 0), ({"b": "", "c": "7"}, 1)]
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        stream = read_stream(pairs)
    assert list(stream) == pairs
    assert [str(one.message).partition(" are numbers")[0] for one in warned] == (
        [f"stream: texts of {named}"] if named else []
    )
