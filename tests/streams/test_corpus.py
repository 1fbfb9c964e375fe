"""Each file and frame of the corpus has the table that is right, or the refusal that is right.

The same content gives the same stream by every road.
"""

import csv
import datetime as dt
import io
import json
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from drift.errors import DriftError
from drift.streams import arff as arff_reader
from drift.streams import decoding, json_rows, read_stream
from drift.streams import frames as frame_reader
from drift.streams.spelled import written
from drift.streams.texts import is_grouped, is_padded, plain_number
from tests.streams.corpus import arff, frames, json_lines, libsvm, separated_text
from tests.streams.corpus.case import parquet

MODULES = [separated_text, json_lines, arff, libsvm, frames]
CASES = [
    pytest.param(case, id=f"{module.__name__.rpartition('.')[2]}: {case.about}")
    for module in MODULES
    for case in module.CASES
]


def says(text, pattern):
    """Whether a text has the parts of a pattern, in their order."""
    return re.search(".*".join(map(re.escape, pattern.split(" ... "))), text, re.DOTALL)


def as_read(examples):
    """Numbers are floats, texts are texts; the types of labels count."""
    return [
        ({name: v if isinstance(v, str) else float(v) for name, v in x.items()}, y, type(y))
        for x, y in examples
    ]


@pytest.mark.parametrize("case", CASES)
def test_a_file_or_frame(case, tmp_path):
    source = case.source(tmp_path)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        if case.refused:
            with pytest.raises(DriftError) as error:
                read_stream(source, **case.options)
            assert says(str(error.value), case.refused), str(error.value)
            return
        stream = read_stream(source, **case.options)
    read = list(stream)
    assert [(x, y, type(y)) for x, y in read] == as_read(case.examples)
    assert {type(v) for x, _ in read for v in x.values()} <= {float, str}
    assert len(stream.notes) == len(case.notes), stream.notes
    for pattern in case.notes:
        assert any(says(note, pattern) for note in stream.notes), (pattern, stream.notes)
    # A socket that another test left open may be collected, and reported, here.
    notes = [str(w.message) for w in warned if not issubclass(w.category, ResourceWarning)]
    assert notes == [f"{stream.name}: {n}" for n in stream.notes]


# --- roads ---------------------------------------------------------------------------------------


def separated(separator):
    def write(columns):
        file = io.StringIO()
        writer = csv.writer(file, delimiter=separator, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
        return file.getvalue().encode()

    return write


def json_of(columns):
    rows = zip(*columns.values(), strict=True)
    lines = [json.dumps(dict(zip(columns, row, strict=True)), default=str) for row in rows]
    return "".join(line + "\n" for line in lines).encode()


def arff_of(columns):
    """Return the file that WEKA writes, but for bools, which are numbers."""

    def quoted(text):
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    def written(cell):
        if cell is None:
            return "?"
        return quoted(str(cell)) if isinstance(cell, str | dt.date) else f"{cell + 0!r}"

    lines = ["@relation r"]
    for name, cells in columns.items():
        present = [cell for cell in cells if cell is not None]
        kind = "numeric"
        if present and isinstance(present[0], str):
            kind = "{" + ",".join(map(quoted, dict.fromkeys(present))) + "}"
        elif present and isinstance(present[0], dt.date):
            kind = "date 'yyyy-MM-dd HH:mm:ss'"
        lines.append(f"@attribute {quoted(name)} {kind}")
    lines += [
        "@data",
        *(",".join(map(written, row)) for row in zip(*columns.values(), strict=True)),
    ]
    return "\n".join(lines).encode()


ROADS = {
    "a.csv": separated(","),
    "semicolons.csv": separated(";"),
    "a.tsv": separated("\t"),
    "bars.txt": separated("|"),
    "a.jsonl": json_of,
    "a.parquet": lambda columns: parquet(pa.table(columns)),
    "a.arff": arff_of,
    "utf-16.txt": lambda columns: separated("\t")(columns).decode().encode("utf-16"),
    "pandas": pd.DataFrame,
    "pandas of objects": lambda columns: pd.DataFrame(columns, dtype=object),
    "pandas of arrow": lambda columns: pa.table(columns).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}


def by_road(road, columns, folder, **options):
    """Return the stream of columns by a road, and drop the warnings, which the corpus tests."""
    made = ROADS[road](columns)
    if isinstance(made, bytes):
        path = folder / road
        path.write_bytes(made)
        made = path
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read_stream(made, "y", **options)


@pytest.mark.parametrize("few", [False, True])
def test_the_same_content_is_the_same_stream_by_every_road(few, tmp_path, monkeypatch):
    if few:  # at a time
        monkeypatch.setattr(decoding, "BYTES", 64)
        for module in (arff_reader, frame_reader, json_rows):
            monkeypatch.setattr(module, "ROWS", 3)
    when = [dt.datetime(2026, 1, day, hour) for day, hour in ((3, 0), (1, 12), (1, 0), (3, 0))]  # noqa: DTZ001
    columns = {
        "a": [1.5, None, 3.0, 4.0],
        "n": [1, 2, 3, 4],
        "ok": [True, False, None, True],
        "kind": ["red", "it's, well; blue", None, "red"],
        "when": when,
        "none": [None] * 4,
        "y": ["up", "down", "up", "up"],
    }
    expected = [
        ({"a": 3, "n": 3}, "up"),
        ({"n": 2, "ok": 0, "kind": "it's, well; blue"}, "down"),
        ({"a": 1.5, "n": 1, "ok": 1, "kind": "red"}, "up"),
        ({"a": 4, "n": 4, "ok": 1, "kind": "red"}, "up"),
    ]
    streams = {road: by_road(road, columns, tmp_path, time="when") for road in ROADS}
    for road, stream in streams.items():
        assert list(stream) == expected, road
    assert len({stream.sha256 for stream in streams.values()}) == 1


def test_the_same_texts_are_read_and_noted_alike_by_every_road(tmp_path):
    columns = {
        "price": ["$1,250.5", "2", "-", "3", "4", "n/a"],
        "part": ["1,5", "2,25", "0,5", "10,5", "3,75", "4,5"],
        "share": ["0,25", "0,5", "0,75", "1,5", "0,125", "1,0"],
        "whole": ["1.234", "5.678", None, "12.345", "2.000", "7.500"],
        "day": ["31.12.25", "01.01.26", "02.01.26", "03.01.26", "04.01.26", None],
        "kind": ["red", " red", "NA", "blue", None, "red"],
        "none": [None] * 6,
        "y": ["Yes", "yes ", "no", None, "?", "yes"],
    }
    expected = [
        ({"price": 1250.5, "part": 1.5, "share": 0.25, "whole": 1234, "kind": "red"}, "Yes"),
        ({"price": 2, "part": 2.25, "share": 0.5, "whole": 5678, "kind": "red"}, "yes"),
        ({"part": 0.5, "share": 0.75}, "no"),
        ({"part": 4.5, "share": 1, "whole": 7500, "kind": "red"}, "yes"),
    ]
    # Nominal attributes of ARFF are categories, whatever they look like.
    streams = {road: by_road(road, columns, tmp_path) for road in ROADS.keys() - {"a.arff"}}
    for road, stream in streams.items():
        assert list(stream) == expected, road
        assert stream.notes == streams["a.csv"].notes, road
    assert len(streams["a.csv"].notes) == 10, streams["a.csv"].notes


#: Texts that no reader may take for numbers, times or missing: they begin with z.
WORDS = st.text("abé,;|\t\n\"'\\ {}%#?.€0", max_size=6).map(lambda text: f"z{text}".strip())
NAMES = ["x", 'say "x"', "a, b", "größe", "p;q", "it's", "50%", "a\tb", "x.y", "{c}"]


@st.composite
def tables(draw):
    n = draw(st.integers(1, 5))
    cells = [
        st.floats(-1e150, 1e150).map(lambda value: value + 0.0),
        st.integers(-(2**53), 2**53),
        st.booleans(),
        WORDS,
    ]
    columns = {"n": list(range(n))}
    for name in draw(st.lists(st.sampled_from(NAMES), max_size=4, unique=True)):
        cell = st.none() | draw(st.sampled_from(cells))
        columns[name] = draw(st.lists(cell, min_size=n, max_size=n))
    return columns | {"y": draw(st.lists(WORDS, min_size=n, max_size=n))}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("roads")


@pytest.mark.parametrize(
    "road", ["a.csv", "a.tsv", "a.jsonl", "a.arff", "a.parquet", "pandas", "polars"]
)
@given(columns=tables())
def test_a_table_is_read_as_it_was_written(road, columns, folder):
    if road == "a.arff":  # it has lines, which no value may break
        columns = {
            name: [cell.replace("\n", " ") if isinstance(cell, str) else cell for cell in cells]
            for name, cells in columns.items()
        }
    *features, (_, labels) = columns.items()
    expected = [
        ({name: cells[i] for name, cells in features if cells[i] is not None}, y)
        for i, y in enumerate(labels)
    ]
    assert list(by_road(road, columns, folder)) == expected


@given(st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=6))
def test_numbers_of_every_country(folder, cents):
    english = [f"{n / 100:,.2f}" for n in cents]
    signs = str.maketrans(",.", ".,")
    columns = {
        "us": english,
        "de": [text.translate(signs) for text in english],
        "ch": [text.replace(",", "\u2019") for text in english],
        "fr": [text.translate(signs).replace(".", "\u202f") + " €" for text in english],
        "plain": [f"{n / 100:.2f}" for n in cents],
        "accountant": [f"({text[1:]})" if text[0] == "-" else f"${text}" for text in english],
        "y": ["a"] * len(cents),
    }
    for x, _ in by_road("a.csv", columns, folder):
        assert len(set(x.values())) == 1
    assert [x["us"] for x, _ in by_road("a.csv", columns, folder)] == [n / 100 for n in cents]


@given(
    st.lists(
        st.none()
        | st.from_regex(r"-?(0|[1-9][0-9]{0,4})?[.]?[0-9]{0,4}(e-?[0-9])?", fullmatch=True)
    )
)
@example(["-1.234", "12.345", "123.456", "1234.567", "0.125", ".125", "1.2e5", "12.e5", "12.e55"])
def test_how_columns_are_written_is_what_is_told_of_each_text(cells):
    cells = [cell if cell and plain_number(cell) is not None else None for cell in cells]
    present = [cell for cell in cells if cell]
    values = np.array([float(cell or "nan") for cell in cells])
    points = ["." in (cell or "") for cell in cells]
    looked_at = any(map(is_padded, present)) or ("e" in "".join(present) and not any(points))
    for before in (0, 2):
        found = written(pa.array([*["1", None][:before], *cells], pa.string())[before:], values)
        assert (found is None) == looked_at
        if found:
            grouped = [cell is not None and is_grouped(cell) for cell in cells]
            assert found.grouped.tolist() == grouped
            assert (found.points | found.grouped).tolist() == points
            assert not (found.points & found.grouped).any()


#: Numbers, as they are spelled in one column seldom, and what else may stand among them.
SPELLINGS = [
    *("1.00", "1.50", "2.0", "-1.5", "0.05", "9.95", "12.50", "1.234", "12.345", "-1.234"),
    *("3", "007", "-01", "+5", "+1.234", "1e5", "12e5", "45e2", "1e-3", "9007199254740993"),
    *("1,5", "1,234", "1.234,5", "$5", "TRUE", "", "NA", "-", "x", "1.10.2", "1_0", "2026-01-05"),
]


@given(
    runs=st.lists(
        st.tuples(
            st.sampled_from(SPELLINGS)
            | st.from_regex(r"[+-]?[01]{0,3}\.?[01]{0,3}(e5)?", fullmatch=True),
            st.integers(1, 12),
        ),
        min_size=1,
        max_size=5,
    ),
    separator=st.sampled_from(",;"),
)
@example(runs=[("2.0", 30), ("1.234", 20), ("3", 60), ("1,5", 1)], separator=";")
@example(runs=[("007", 9), ("1.5", 9), ("x", 1)], separator=",")
def test_where_a_block_ends_says_nothing(runs, separator, folder):
    cells = [cell for cell, times in runs for _ in range(times)]
    columns = {
        "x": cells,
        "i": [i * 7 % 11 for i in range(len(cells))],
        "y": ["ab"[i % 2] for i in range(len(cells))],
    }
    found = []
    for size in (64, 1 << 20):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(decoding, "BYTES", size)
            road = {",": "a.csv", ";": "semicolons.csv"}[separator]
            stream = by_road(road, columns, folder)
            found.append((list(stream), stream.notes))
    assert found[0] == found[1]
