"""Data frames of pandas, polars and pyarrow, and Parquet files."""

import datetime as dt
import gzip
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from tests.streams.corpus.case import Case, parquet

UTC = dt.UTC
PAIR = {"y": ["a", "b"]}


def frame(about, make, examples=(), **given):
    return Case(about, "", lambda _: make(), list(examples), **given)


def pandas(about, make, examples=(), **given):
    return frame(f"pandas: {about}", lambda: pd.DataFrame(make()), examples, **given)


def polars(about, make, examples=(), **given):
    return frame(f"polars: {about}", lambda: pl.DataFrame(make()), examples, **given)


def arrow(about, make, examples=(), **given):
    return frame(f"pyarrow: {about}", lambda: pa.table(make()), examples, **given)


def file(about, content, examples=(), *, name="a.parquet", **given):
    return Case(f"Parquet: {about}", name, content, list(examples), **given)


def of_pandas(columns, index=None):
    """Return the Parquet file that pandas writes."""
    return parquet(pa.Table.from_pandas(pd.DataFrame(columns, index=index)))


def ab(*values):
    """Return the examples with these values of x; None is missing."""
    return [({} if value is None else {"x": value}, "ab"[i % 2]) for i, value in enumerate(values)]


def with_y(**columns):
    n = len(next(iter(columns.values())))
    return {**columns, "y": ["ab"[i % 2] for i in range(n)]}


TIME = {"target": "y", "time": "t"}
BY_T = [({"x": 2}, "b"), ({"x": 1}, "a")]
DATES = [dt.date(2026, 1, 2), dt.date(2026, 1, 1)]
NOON = dt.datetime(2026, 1, 1, 12)  # noqa: DTZ001
ZONE = dt.timezone(dt.timedelta(hours=2))
MONTHS = pd.PeriodIndex(["2026-02", None, "2026-01"], freq="M")
#: What pyarrow has of a column of months where it does not know pandas' periods.
UNKNOWN = pa.schema(
    [
        pa.field(
            "x",
            pa.int64(),
            metadata={
                "ARROW:extension:name": "pandas.period",
                "ARROW:extension:metadata": '{"freq": "M"}',
            },
        ),
        ("y", pa.string()),
    ]
)
TWO = {"x": [1, 2], "y": ["a", "b"]}

CASES = [
    # --- pandas ----------------------------------------------------------------------------------
    pandas("texts of pairs beside texts of points",
           lambda: {"v": ["5.493", "7.463"], "z": ["1,75", "2,5"], **PAIR},
           [({"v": 5.493, "z": 1.75}, "a"), ({"v": 7.463, "z": 2.5}, "b")],
           notes=["'1,75' as 1.75"]),
    pandas("plain", lambda: with_y(x=[1.5, 2]), ab(1.5, 2)),
    pandas("nullable numbers", lambda: with_y(x=pd.array([1, None], dtype="Int64")), ab(1, None)),
    pandas("nullable bools", lambda: with_y(x=pd.array([None, True], dtype="boolean")),
           ab(None, 1)),
    pandas("bools of objects, with None", lambda: with_y(x=[True, None, False]), ab(1, None, 0)),
    pandas("arrow strings", lambda: with_y(x=pd.array(["p", None, "q"], dtype="string")),
           ab("p", None, "q")),
    pandas("categories", lambda: with_y(x=pd.Categorical(["p", None, "q"])), ab("p", None, "q")),
    pandas("categories of numbers stay categories", lambda: with_y(x=pd.Categorical([3, 1, 3])),
           ab("3", "1", "3")),
    pandas("sparse", lambda: with_y(x=pd.arrays.SparseArray([0.0, 1.5, 0.0])), ab(0, 1.5, 0)),
    pandas("sparse, of whole numbers", lambda: with_y(x=pd.arrays.SparseArray([0, 2, 0])),
           ab(0, 2, 0)),
    pandas("prices of Decimal", lambda: with_y(x=[Decimal("9.95"), None, Decimal("1e3")]),
           ab(9.95, None, 1000)),
    pandas("numpy scalars",
           lambda: with_y(x=pd.Series([np.float32(1.5), np.int64(2), np.bool_(True)],
           dtype=object)),
           ab(1.5, 2, 1)),
    pandas("texts of bytes, as SciPy reads ARFF", lambda: {"x": [b"1", b"?", b"2.5"],
           "z": [b"p", b"q", b"?"], "y": [b"1", b"0", b"?"]}, [({"x": 1, "z": "p"}, 1),
           ({"z": "q"}, 0)], notes=["1 of 2 values of 'x' are numbers; '?' (1) counts as missing",
           "left out: 1 of 3 rows, without a label in 'y': '?' (1)"]),
    pandas("numbers and texts", lambda: with_y(x=[1, "2", "-", 3.5]), ab(1, 2, None, 3.5),
           notes=["3 of 4 values of 'x' are numbers; '-' (1) counts as missing"]),
    pandas("pd.NA, None, NaN and NaT in objects",
           lambda: with_y(x=pd.Series([1, pd.NA, None, np.nan, pd.NaT], dtype=object)),
           ab(1, None, None, None, None)),
    pandas("infinite", lambda: with_y(x=[1, np.inf, -np.inf, 2]), ab(1, None, None, 2),
           notes=["'inf' (1), '-inf' (1)"]),
    pandas("spans of time are seconds", lambda: with_y(x=pd.to_timedelta(["1min", None, "2s"])),
           ab(60, None, 2)),
    pandas("spans of time as delays, without moments",
           lambda: with_y(x=[1, 2], wait=pd.to_timedelta(["1min", "2s"])),
           refused="DataFrame: wait has spans of time: name the column ... (moment=, --moment)",
           options={"target": "y", "delay": "wait"}),
    pandas("float16 and small integers",
           lambda: with_y(x=np.array([1.5, 2], "f2"), z=np.array([1, 255], "u1")),
           [({"x": 1.5, "z": 1}, "a"), ({"x": 2, "z": 255}, "b")]),
    pandas("nothing in a column", lambda: with_y(x=[None, None], z=[1, 2]),
           [({"z": 1}, "a"), ({"z": 2}, "b")],
           notes=["left out: no row has a value of 'x'"]),
    pandas("an index with a name",
           lambda: pd.DataFrame(with_y(x=[1, 2]), index=pd.Index([7.5, 8], name="k")),
           [({"k": 7.5, "x": 1}, "a"), ({"k": 8, "x": 2}, "b")]),
    pandas("dates in the index",
           lambda: pd.DataFrame(TWO,
           index=pd.DatetimeIndex(["2026-01-02", "2026-01-01"], name="t")),
           BY_T, options=TIME),
    pandas("dates in an index without a name",
           lambda: pd.DataFrame(TWO, index=pd.DatetimeIndex(["2026-01-02", "2026-01-01"])),
           refused="no column 't' ... its index has no name ... rename_axis", options=TIME),
    pandas("texts in an index without a name", lambda: pd.DataFrame(TWO, index=["p", "q"]),
           [({"x": 1}, "a"), ({"x": 2}, "b")],
           notes=["left out: the index, which has no name: with one it is a column"]),
    pandas("two indexes without names",
           lambda: pd.DataFrame(TWO, index=pd.MultiIndex.from_tuples([(1, 2), (1, 3)])),
           [({"x": 1}, "a"), ({"x": 2}, "b")],
           notes=["left out: the index, which has no name: with one it is a column"]),
    pandas("an index that is called as a column is",
           lambda: pd.DataFrame(TWO, index=pd.Index([7.5, 8], name="x")),
           refused="DataFrame: its index and a column are called 'x': rename one"),
    pandas("rows that were chosen",
           lambda: pd.DataFrame({"x": [1, 2, 3], "y": list("abc")})[lambda f: f.x > 1],
           [({"x": 2}, "b"), ({"x": 3}, "c")]),
    pandas("columns of two levels",
           lambda: pd.DataFrame([[1, "a"], [2, "b"]],
           columns=pd.MultiIndex.from_tuples([("p", "x"), ("q", "y")])),
           refused="no column 'y' ... ('q', 'y')"),
    pandas("names that are numbers", lambda: pd.DataFrame([[0.5, 1], [1.5, 0]]),
           [({"0": .5}, 1), ({"0": 1.5}, 0)],
           options={"target": 1}),
    pandas("0 and '0'", lambda: {0: [1], "0": [2], "y": ["a"]},
           refused="2 columns are called '0': rename"),
    pandas("one name twice", lambda: pd.DataFrame([[1, 2, "a"]], columns=["x", "x", "y"]),
           refused="'x' ... rename"),
    pandas("dates", lambda: {"t": pd.to_datetime(DATES), **TWO}, BY_T, options=TIME),
    pandas("the first rows by their dates", lambda: {"t": pd.to_datetime(DATES), **TWO}, BY_T[:1],
           options=TIME | {"rows": 1}),
    pandas("dates of objects", lambda: {"t": DATES, **TWO}, BY_T, options=TIME),
    pandas("times of two zones",
           lambda: {"t": [NOON.replace(tzinfo=UTC), NOON.replace(tzinfo=ZONE)], **TWO}, BY_T,
           options=TIME),
    pandas("times with a zone and without",
           lambda: {"t": pd.Series([NOON.replace(tzinfo=UTC), NOON - dt.timedelta(hours=1)],
           dtype=object), **TWO},
           BY_T, options=TIME, notes=["1 of 2 times of 't' have no zone"]),
    pandas("times as texts", lambda: {"t": ["2026-01-02", "2026-01-01 05:00"], **TWO}, BY_T,
           options=TIME),
    pandas("periods of days", lambda: {"t": pd.PeriodIndex(DATES, freq="D"), **TWO}, BY_T,
           options=TIME),
    pandas("periods", lambda: {"t": pd.PeriodIndex(["2026-02", "2026-01"], freq="M"), **TWO},
           refused="t orders by ... '2026-02'", options=TIME),
    pandas("periods of years are numbers", lambda: {"t": pd.PeriodIndex(["2026", "2025"], freq="Y"),
           "y": ["a", "b"]}, [({"t": 2026}, "a"), ({"t": 2025}, "b")]),
    pandas("a missing time", lambda: {"t": pd.to_datetime(["2026-01-02", None]), **TWO},
           refused="t is missing in row 2", options=TIME),
    pandas("labels of whole floats", lambda: {"x": [1.0, 2.0], "y": [1.0, 0.0]},
           [({"x": 1}, 1), ({"x": 2}, 0)]),
    pandas("labels with a gap", lambda: {"x": [1.0, 2.0, 3.0], "y": [1.0, None, 0.0]},
           [({"x": 1}, 1), ({"x": 3}, 0)],
           notes=["left out: 1 of 3 rows, without a label in 'y'"]),
    pandas("labels of bools", lambda: {"x": [1, 2], "y": [True, False]},
           [({"x": 1}, True), ({"x": 2}, False)]),
    pandas("labels of categories", lambda: {"x": [1, 2], "y": pd.Categorical(["p", "q"])},
           [({"x": 1}, "p"), ({"x": 2}, "q")]),
    pandas("labels of Decimal", lambda: {"x": [1, 2], "y": [Decimal("1.0"), Decimal(0)]},
           [({"x": 1}, 1), ({"x": 2}, 0)]),
    pandas("labels of fractions of Decimal",
           lambda: {"x": [1, 2], "y": [Decimal("1.5"), Decimal(0)]},
           refused="row 1 has the label 1.5: classes"),
    pandas("labels of lists", lambda: {"x": [1], "y": [[3]]},
           refused="row 1 has the label [3], a list"),
    pandas("labels of dates", lambda: {"x": [1, 2], "y": DATES},
           [({"x": 1}, "2026-01-02"), ({"x": 2}, "2026-01-01")]),
    pandas("labels of times", lambda: {"x": [1, 2], "y": pd.to_datetime([NOON, None])},
           [({"x": 1}, "2026-01-01 12:00:00")], notes=["left out: 1 of 2 rows, without a label"]),
    pandas("labels of spans of time",
           lambda: {"x": [1, 2], "y": pd.to_timedelta(["1min", "2s"])},
           [({"x": 1}, 60), ({"x": 2}, 2)]),
    pandas("arrays in cells", lambda: {"x": [1, 2], "pair": [np.array([1, 2])] * 2, **PAIR},
           ab(1, 2), notes=["left out: 'pair' has values of several parts"]),
    pandas("the target is not named", lambda: TWO,
           refused="DataFrame: name the target, one of x, y", options={}),
    pandas("the target by other letters", lambda: TWO,
           refused="DataFrame has no column 'Y': did you mean 'y'", options={"target": "Y"}),
    pandas("a time that is no column", lambda: TWO, refused="DataFrame has no column 'w'",
           options={"target": "y", "time": "w"}),
    pandas("a time that is the target", lambda: TWO, refused="'y' is the target, and no time",
           options={"target": "y", "time": "y"}),
    pandas("a time of words", lambda: {"t": ["now", "then"], **TWO},
           refused="t orders by ... such as 2026-01-31 ... 'now'", options=TIME),
    pandas("no label", lambda: {"x": [1, 2], "y": [None, None]}, refused="no row has a label in y"),
    pandas("names alone", lambda: {"id": [f"row {i}" for i in range(200)], "y": 0},
           refused="no column is a feature for y ... 'id' has 200 different texts"),
    pandas("no rows", lambda: {"x": [], "y": []},
           refused="DataFrame has names of columns and no rows"),
    frame("an array is no frame", lambda: np.array([[1.0, 2.0], [3.0, 4.0]]),
          refused="ndarray ... make a data frame of it"),
    frame("a column is no frame", lambda: pd.Series([1, 2]),
          refused="Series ... make a data frame of it"),
    frame("a dict of columns is no frame", lambda: {"x": [1], "y": [0]},
          refused="dict ... make a data frame of it"),
    # --- polars ----------------------------------------------------------------------------------
    polars("plain", lambda: with_y(x=[1.5, None]), ab(1.5, None)),
    polars("NaN is missing", lambda: with_y(x=[1.5, float("nan")]), ab(1.5, None)),
    polars("categories and enums",
           lambda: {"x": pl.Series(["p", None], dtype=pl.Categorical),
           "z": pl.Series(["q", "r"], dtype=pl.Enum(["r", "q"])), **PAIR},
           [({"x": "p", "z": "q"}, "a"), ({"z": "r"}, "b")]),
    polars("Decimal", lambda: with_y(x=[Decimal("9.95"), None]), ab(9.95, None)),
    polars("bools", lambda: with_y(x=[True, None]), ab(1, None)),
    polars("unsigned and large", lambda: with_y(x=pl.Series([2**63, 1], dtype=pl.UInt64)),
           ab(2.0**63, 1)),
    polars("more digits than a float has", lambda: with_y(x=[2**53 + 1, None]), ab(2.0**53, None),
           notes=["1 of 1 numbers of 'x' have too many digits: '9007199254740993' is"]),
    polars("of 128 bits", lambda: with_y(x=pl.Series([3, None], dtype=pl.Int128)), ab(3, None)),
    polars("spans of time are seconds", lambda: with_y(x=[dt.timedelta(minutes=1), None]),
           ab(60, None)),
    polars("lists and structs", lambda: with_y(x=[1, 2], l=[[1], []], s=[{"a": 1}, {"a": 2}]),
           ab(1, 2),
           notes=["left out: 'l' has values of several parts",
           "left out: 's' has values of several parts"]),
    polars("nulls alone", lambda: with_y(z=[1, 2], x=[None, None]),
           [({"z": 1}, "a"), ({"z": 2}, "b")],
           notes=["left out: no row has a value of 'x'"]),
    polars("dates", lambda: {"t": DATES, **TWO}, BY_T, options=TIME),
    polars("times of a zone",
           lambda: {"t": [NOON.replace(tzinfo=UTC),
           NOON.replace(tzinfo=UTC) - dt.timedelta(seconds=1)], **TWO}, BY_T, options=TIME),
    polars("labels of dates", lambda: {"x": [1, 2], "y": DATES},
           [({"x": 1}, "2026-01-02"), ({"x": 2}, "2026-01-01")]),
    polars("dates that nobody asked for", lambda: {"t": DATES, **TWO},
           [({"x": 1}, "a"), ({"x": 2}, "b")], notes=["left out: 't' has times"]),
    frame("polars: lazy", lambda: pl.LazyFrame(TWO), refused="LazyFrame ... collect"),
    # --- pyarrow ---------------------------------------------------------------------------------
    arrow("plain", lambda: with_y(x=[1.5, None]), ab(1.5, None)),
    arrow("dictionaries", lambda: with_y(x=pa.array(["p", None]).dictionary_encode()),
          ab("p", None)),
    arrow("periods", lambda: pa.Table.from_pandas(pd.DataFrame(with_y(x=MONTHS))),
          ab("2026-02", None, "2026-01")),
    arrow("periods, pandas not being there when they were read",
          lambda: pa.table([[673, None], ["a", "b"]], schema=UNKNOWN), ab("2026-02", None)),
    arrow("Decimal", lambda: with_y(x=pa.array([Decimal("9.95"), None])), ab(9.95, None)),
    arrow("bools", lambda: with_y(x=pa.array([True, None])), ab(1, None)),
    arrow("hours of a zone are those of UTC",
          lambda: {"t": pa.array([NOON], pa.timestamp("s", "Etc/GMT+5")), "x": [1], "y": ["a"]},
          [({"x": 1, "t hour": 12, "t weekday": 3}, "a")],
          options={"target": "y", "calendar": ["t"]},
          notes=["hours and weekdays of 't' are those of UTC, not of 'Etc/GMT+5'"]),
    pandas("hours of two zones are those of UTC",
           lambda: {"t": [NOON.replace(tzinfo=UTC), NOON.replace(tzinfo=ZONE)], **TWO},
           [({"x": 1, "t hour": 12, "t weekday": 3}, "a"),
            ({"x": 2, "t hour": 10, "t weekday": 3}, "b")],
           options={"target": "y", "calendar": ["t"]},
           notes=["those of UTC, not of '2026-01-01 12:00:00+02:00'"]),
    arrow("nanoseconds of a zone",
          lambda: {"t": pa.array([2000, 1000], pa.timestamp("ns", "UTC")), **TWO}, BY_T,
          options=TIME),
    frame("pyarrow: one name twice",
          lambda: pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array(["a"])],
          names=["x", "x", "y"]),
          refused="'x' ... rename"),
    # --- Parquet ---------------------------------------------------------------------------------
    file("plain", parquet(pa.table(with_y(x=[1.5, None]))), ab(1.5, None)),
    file("by its content", parquet(pa.table(with_y(x=[1.5, None]))), ab(1.5, None),
         name="part-00000"),
    file("an index with a name", of_pandas(with_y(x=[1, 2]), pd.Index([7.5, 8], name="k")),
         [({"x": 1, "k": 7.5}, "a"), ({"x": 2, "k": 8}, "b")]),
    file("an index with a name that counts",
         of_pandas(with_y(x=[1, 2]), pd.RangeIndex(5, 8, 2, name="k")),
         [({"k": 5, "x": 1}, "a"), ({"k": 7, "x": 2}, "b")]),
    file("an index that is the target", of_pandas({"x": [1, 2]}, pd.RangeIndex(2, name="y")),
         [({"x": 1}, 0), ({"x": 2}, 1)]),
    file("a nameless index that counts", of_pandas(with_y(x=[1, 2]), [5, 9]), ab(1, 2),
         notes=["left out: '__index_level_0__' has no name and counts"]),
    file("the usual index of pandas is no column", of_pandas(with_y(x=[1, 2])), ab(1, 2)),
    file("a nameless index of two frames, one below the other",
         of_pandas(with_y(x=[1, 2, 3]), [0, 1, 0]), ab(1, 2, 3),
         notes=["left out: '__index_level_0__' has no name"]),
    file("periods are their texts", of_pandas(with_y(x=MONTHS)), ab("2026-02", None, "2026-01")),
    file("periods as labels", of_pandas({"x": [1, 2, 3], "y": MONTHS}),
         [({"x": 1}, "2026-02"), ({"x": 3}, "2026-01")],
         notes=["left out: 1 of 3 rows, without a label"]),
    file("periods of days to order by", of_pandas({"t": pd.PeriodIndex(DATES, freq="D"), **TWO}),
         BY_T, options=TIME),
    file("hours of periods", of_pandas(with_y(t=pd.PeriodIndex(["2026-01-01 05:00"], freq="h"))),
         [({"t hour": 5, "t weekday": 3}, "a")], options={"target": "y", "calendar": "t"}),
    file("categories", of_pandas(with_y(x=pd.Categorical(["p", None, "q"]))), ab("p", None, "q")),
    file("categories of numbers", of_pandas(with_y(x=pd.Categorical([3, 1, 3]))),
         ab("3", "1", "3")),
    file("categories of numbers, not of pandas",
         parquet(pa.table(with_y(x=pa.array([0, 1, None]).dictionary_encode()))),
         ab("0", "1", None)),
    file("Decimal", parquet(pa.table(with_y(x=[Decimal("9.95"), None]))), ab(9.95, None)),
    file("bools with nulls", parquet(pa.table(with_y(x=[True, None, False]))), ab(1, None, 0)),
    file("labels of dates", parquet(pa.table({"x": [1, 2], "y": DATES})),
         [({"x": 1}, "2026-01-02"), ({"x": 2}, "2026-01-01")]),
    file("the first rows by their dates", parquet(pa.table({"t": DATES, **TWO})), BY_T[:1],
         options=TIME | {"rows": 1}),
    file("dates", parquet(pa.table({"t": DATES, **TWO})), BY_T, options=TIME),
    file("times with a zone",
         parquet(pa.table({"t": pa.array([NOON, NOON - dt.timedelta(1)], pa.timestamp("ms",
         "Europe/Berlin")), **TWO})), BY_T, options=TIME),
    file("texts of bytes", parquet(pa.table(with_y(x=[b"p", b"q", b"p"]))), ab("p", "q", "p")),
    file("bytes that are no text", parquet(pa.table(with_y(x=[b"\xffa", b"\xfea", b"\xffa"]))),
         ab("\\xffa", "\\xfea", "\\xffa")),
    file("one name twice",
         parquet(pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array(["a"])],
         names=["x", "x", "y"])), refused="a: 2 columns are called 'x': rename"),
    file("half floats", parquet(pa.table(with_y(x=np.array([1.5, 2], "f2")))), ab(1.5, 2)),
    file("structs", parquet(pa.table(with_y(x=[1, 2], s=[{"a": 1}, {"a": 2}]))), ab(1, 2),
         notes=["left out: 's' has values of several parts"]),
    file("texts of numbers", parquet(pa.table(with_y(x=["1.5", "n/a", "2", "3"]))),
         ab(1.5, None, 2, 3), notes=["'x' ... 'n/a' (1)"]),
    file("spans of time", parquet(pa.table(with_y(x=pa.array([60_000, 1], pa.duration("ms"))))),
         ab(60, .001)),
    file("compressed once more", gzip.compress(parquet(pa.table(TWO))), name="a.parquet.gz",
         refused="a.parquet.gz: is a compressed Parquet file: decompress it"),
    file("no rows", parquet(pa.table(with_y(x=[1.5])).slice(0, 0)),
         refused="a has names of columns and no rows"),
    file("cut", parquet(pa.table(with_y(x=[1.5])))[:-9],
         refused="a.parquet ... not a valid parquet file"),
]  # fmt: skip
