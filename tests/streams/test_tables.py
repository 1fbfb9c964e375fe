import datetime as dt
import gzip
import json
from importlib import import_module

import numpy as np
import pandas as pd
import polars as pl
import pytest
from river import datasets

from drift.errors import DataError, ParameterError
from drift.streams import Documents, Stream, read_stream

#: Rows as they are written, and the examples that they are, computed by hand.
COLUMNS = {
    "a": [1.5, None, 3.0, 4.0],
    "n": [1, 2, 3, 4],
    "ok": [True, False, True, True],
    "kind": ["red", "blue", None, "red"],
    "when": ["2026-01-02", "2026-01-01 12:00", "2025-12-31", "2026-01-02"],
    "y": ["up", "down", "up", "up"],
}
EXAMPLES = [
    ({"a": 1.5, "n": 1, "ok": True, "kind": "red"}, "up"),
    ({"n": 2, "ok": False, "kind": "blue"}, "down"),
    ({"a": 3.0, "n": 3, "ok": True}, "up"),
    ({"a": 4.0, "n": 4, "ok": True, "kind": "red"}, "up"),
]
ORDERED = [EXAMPLES[i] for i in (2, 1, 0, 3)]


def write(folder, suffix):
    frame, path = pd.DataFrame(COLUMNS), folder / f"sales.{suffix}"
    if suffix == "csv":
        frame.to_csv(path, index=False)
    elif suffix == "semicolons.csv":
        frame.to_csv(path, index=False, sep=";", encoding="utf-8-sig")
    elif suffix == "csv.gz":
        path.write_bytes(gzip.compress(frame.to_csv(index=False).encode()))
    elif suffix == "tsv":
        frame.to_csv(path, index=False, sep="\t")
    elif suffix == "parquet":
        pl.DataFrame(COLUMNS).write_parquet(path)
    elif suffix == "jsonl":
        rows = pl.DataFrame(COLUMNS).to_dicts()
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("suffix", ["csv", "semicolons.csv", "csv.gz", "tsv", "parquet", "jsonl"])
def test_every_kind_of_file_has_the_same_examples(suffix, tmp_path):
    stream = read_stream(write(tmp_path, suffix), "y", time="when")
    assert list(stream) == ORDERED
    assert [type(value) for value in stream.examples[1][0].values()] == [float, float, str]
    assert stream.name == "sales"


@pytest.mark.parametrize("library", [pd, pl])
def test_data_frames(library):
    frame = library.DataFrame(COLUMNS)
    stream = read_stream(frame, "y", time="when", rows=3, name="mine")
    assert (list(stream), stream.name) == (ORDERED[:3], "mine")
    with pytest.warns(RuntimeWarning, match="'when' has times"):
        dropped = read_stream(frame, "y", time="n", drop=["a", "ok"])
    assert [list(x) for x, _ in dropped][1:3] == [["kind"], []]


def test_times_order_and_ties_stay():
    when = [dt.date(2026, 1, 2), dt.date(2026, 1, 1), dt.date(2026, 1, 2), dt.date(2026, 1, 1)]
    frame = pl.DataFrame({"when": when, "x": [1, 2, 3, 4], "y": [0, 1, 0, 1]})
    assert [x["x"] for x, _ in read_stream(frame, "y", time="when")] == [2, 4, 1, 3]


def test_arff(tmp_path):
    path = tmp_path / "weather.arff"
    path.write_text(
        "@relation w\n@attribute outlook {sunny, rainy}\n@attribute t real\n"
        "@attribute play {yes, no}\n@data\nsunny,21.5,no\nrainy,?,yes\n?,3,no\n"
    )
    assert list(read_stream(path, "play")) == [
        ({"t": 21.5, "outlook": "sunny"}, "no"),
        ({"outlook": "rainy"}, "yes"),
        ({"t": 3.0}, "no"),
    ]


def test_libsvm(tmp_path):
    path = tmp_path / "two.svm"
    path.write_text("1 1:0.5 3:2\n-1 2:1\n")
    assert list(read_stream(path)) == [({0: 0.5, 2: 2.0}, 1), ({1: 1.0}, -1)]
    assert [y for _, y in read_stream(path, "1")] == [True, False]


def test_messages_of_a_topic(tmp_path):
    path = tmp_path / "topic.jsonl"
    path.write_text(
        '{"features": {"a": 1.5, "city": "Bern"}, "label": true, "id": "x", "timestamp": 2}\n'
        '{"features": {"a": 3}}\n'
        '{"features": {"a": 2, "b": null}, "label": false, "timestamp": 1}\n'
    )
    expected = [({"a": 1.5, "city": "Bern"}, True), ({"a": 2}, False)]
    missing = "topic: left out: 1 of 3 rows, without a label in 'label'"
    with pytest.warns(RuntimeWarning, match=missing):
        assert list(read_stream(path)) == expected
    with pytest.warns(RuntimeWarning, match=missing):
        assert list(read_stream(path, time="timestamp")) == expected[::-1]


def test_lines_may_be_empty_and_the_last_one_without_its_end(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"x": 1, "label": 0}\n\n{"x": 2, "label": 1}')
    assert read_stream(path).examples == [({"x": 1}, 0), ({"x": 2}, 1)]


def test_what_is_inside_of_a_field_is_no_category(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"features": {"x": 1, "deep": {"z": 2}, "list": [3]}, "label": 0}\n')
    with (
        pytest.warns(RuntimeWarning, match="a: left out: 'list' has values of several parts"),
    ):
        assert read_stream(path).examples == [({"x": 1, "deep.z": 2}, 0)]


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


def test_whole_numbers_are_classes_whatever_a_library_makes_of_them():
    frame = pd.DataFrame({"x": [1.0, 2.0], "y": [1.0, 0.0]})
    labels = [y for _, y in read_stream(frame, "y")]
    assert labels == [1, 0]
    assert {type(label) for label in labels} == {int}


def test_a_frame_whose_columns_are_numbers():
    frame = pd.DataFrame([[0.5, 7, 1], [1.5, 8, 0]])
    expected = [({"0": 0.5, "1": 7}, 1), ({"0": 1.5, "1": 8}, 0)]
    assert read_stream(frame, "2").examples == read_stream(frame, 2).examples == expected


def test_what_pandas_calls_missing_is_absent():
    frame = pd.DataFrame(
        {
            "whole": pd.array([1, None], dtype="Int64"),
            "ok": pd.array([None, True], dtype="boolean"),
            "kind": pd.Categorical(["red", None]),
            "y": [1, 0],
        }
    )
    expected = [({"whole": 1, "kind": "red"}, 1), ({"ok": True}, 0)]
    assert read_stream(frame, "y").examples == expected


def test_what_is_no_feature_is_left_out_and_named():
    frame = pd.DataFrame({"id": [f"row {i}" for i in range(200)], "x": 1.0, "y": 0})
    with pytest.warns(RuntimeWarning, match="DataFrame: left out: 'id' has 200 different texts"):
        assert read_stream(frame, "y").examples[0] == ({"x": 1.0}, 0)
    days = [str(dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=i)) for i in range(200)]
    frame = pd.DataFrame({"day": days, "x": [float(i % 199) for i in range(200)], "y": 0})
    frame.loc[199, "y"] = 1
    with pytest.warns(RuntimeWarning, match="'day' has times, .*--time"):
        assert read_stream(frame, "y").examples[1] == ({"x": 1.0}, 0)
    frame = pl.DataFrame({"day": [dt.date(2026, 1, 1)], "x": [1.0], "y": [0]})
    with pytest.warns(RuntimeWarning, match="'day' has times"):
        assert read_stream(frame, "y").examples == [({"x": 1.0}, 0)]
    frame = pd.DataFrame({"pair": [np.array([1, 2])], "x": [1.0], "y": [0]})
    with pytest.warns(RuntimeWarning, match="'pair' has values of several parts"):
        assert read_stream(frame, "y").examples == [({"x": 1.0}, 0)]


def test_a_frame_without_a_feature_is_refused():
    frame = pd.DataFrame({"id": [f"row {i}" for i in range(200)], "y": 0})
    with pytest.raises(
        ParameterError, match=r"no column is a feature.*'id' has 200 different texts"
    ):
        read_stream(frame, "y")


def test_the_index_that_a_frame_was_written_with_is_left_out(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(",x,y\n5,0.5,a\n6,1.5,b\n")
    with pytest.warns(RuntimeWarning, match="a: left out: .* has no name and counts the rows"):
        assert read_stream(path, "y").examples == [({"x": 0.5}, "a"), ({"x": 1.5}, "b")]
    path.write_text(",x,y\n5,0.5,a\n5,1.5,b\n")
    assert all(len(x) == 2 for x, _ in read_stream(path, "y"))


def test_the_error_on_a_file_without_a_header_says_so(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("0.5,-7,a\n1.5,8,b\n")
    for target in (None, "y"):
        with pytest.raises(ParameterError, match="if these are values, put a line with the names"):
            read_stream(path, target)


def test_the_error_on_another_encoding_names_utf_8(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("größe,y\n1,a\n".encode("latin-1"))
    with pytest.raises(
        DataError, match=r"line 1: is not in UTF-8 \(byte 0xf6\): name its encoding"
    ):
        read_stream(path, "y")


FRAME = pd.DataFrame(
    {"x": [1.0, 2.0], "y": ["a", None], "z": [0.5, 1.0], "t": ["now", "then"], "none": None}
)


@pytest.mark.parametrize(
    ("target", "time", "message"),
    [
        (None, None, "name the target, one of x, y, z, t, none"),
        ("Y", None, "no column 'Y': did you mean 'y'"),
        ("w", None, "no column 'w'"),
        ("none", None, "no row has a label in none"),
        ("z", None, r"label 0\.5: classes are texts or whole numbers"),
        ("x", "w", "no column 'w'"),
        ("x", "y", "such as 2026-01-31"),
        ("x", "t", "such as 2026-01-31"),
    ],
)
def test_a_frame_that_is_no_stream(target, time, message):
    with pytest.raises(ParameterError, match=message):
        read_stream(FRAME, target, time=time)


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(ParameterError, match="'x' 2 times: rename all but one"):
        read_stream(FRAME.drop(columns="none").set_axis(["x", "y", "x", "t"], axis=1), "y")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "", "is empty"),
        ("a.parquet", "PAR", "is not a valid parquet file"),
        ("a.arff", "nothing\n", "line 1: is no line of an ARFF file's head: 'nothing'"),
        ("a.arff", "@data\n1,2", "no attributes"),
        ("a.arff", "@attribute y real\n@data\n1,2\n", "line 3: has 2 values for 1 attribute"),
        (
            "a.arff",
            "@attribute y {1, 2}\n@data\n3\n",
            "line 3: 'y' is '3', none of its values 1, 2",
        ),
        ("a.jsonl", '{"y": 1}\n[1]\n', "line 2"),
        ("a.jsonl", '{"y": 1}\n{"y"', "line 2"),
        ("a.csv", "x,y\n1,2\n1,2,3\n", "row 2 has 3 cells, the line of names 2: '1,2,3'"),
        ("nowhere.csv", None, r"cannot be read \(No such file"),
    ],
)
def test_a_file_that_cannot_be_read(name, content, message, tmp_path):
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    with pytest.raises(DataError, match=message):
        read_stream(path, "y")


@pytest.mark.parametrize("suffix", ["gz", "xz", "bz2"])
def test_a_compressed_file_that_was_cut_short_or_damaged(suffix, tmp_path):
    path = tmp_path / f"a.csv.{suffix}"
    whole = import_module({"gz": "gzip", "xz": "lzma", "bz2": "bz2"}[suffix]).compress
    rows = whole(b"x,y\n" + b"".join(b"%d,%d\n" % (i * 7919 % 997, i % 2) for i in range(9_000)))
    for content in (rows[: len(rows) // 2], rows[:60] + b"zzzzzz" + rows[66:], b"plain"):
        path.write_bytes(content)
        with pytest.raises(DataError, match="the compressed file is cut short or damaged"):
            read_stream(path, "y")


def test_a_file_without_a_known_suffix(tmp_path):
    with pytest.raises(ParameterError, match=r"the suffix .* \.csv, "):
        read_stream(tmp_path / "a.doc", "y")
    with pytest.raises(ParameterError, match="has no examples"):
        read_stream(3)
    with pytest.raises(ParameterError, match="example 0 is not a pair"):
        read_stream([({"a": 1}, 0, {"w": 2.0})])


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
