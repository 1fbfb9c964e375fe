"""Models, readers, codec and deviations agree on what a number is."""

import datetime as dt
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from drift.consumers import Example, JsonCodec
from drift.errors import DriftError
from drift.features import RecentDeviation
from drift.kernels import Linear
from drift.models import LBP, Tracker
from drift.models._store import plain
from drift.models._tracker.reference_core import TrackerCore
from drift.streams import read_stream


class Seven(float):
    """A float, to compiled code and so to all, whatever its `__float__` says."""

    def __float__(self):
        return 7.0


NUMBERS = {
    "int": (3, 3.0),
    "float": (2.5, 2.5),
    "a float's subclass": (Seven(2.5), 2.5),
    "Decimal": (Decimal("2.5"), 2.5),
    "Fraction": (Fraction(5, 2), 2.5),
    "numpy float32": (np.float32(2.5), 2.5),
    "numpy int8": (np.int8(3), 3.0),
}
OTHERS = {
    "text": "3",
    "bytes": b"3",
    "buffer of text": memoryview(b"3"),
    "numpy text": np.str_("3"),
    "array of text": np.array("3"),
    "complex": 1j,
    "numpy complex": np.complex128(3.0),
    "numpy day": np.datetime64("2026-01-01"),
    "numpy moment": np.datetime64("2026-01-01", "ns"),
    "numpy span": np.timedelta64(3, "s"),
    "numpy span in nanoseconds": np.timedelta64(3, "ns"),
    "numpy span of no unit": np.timedelta64(3),
    "array of a span": np.array(np.timedelta64(3, "ns")),
    "list": [3.0],
}


def model_takes(model, value):
    try:
        model.learn_one({"a": value}, True)
    except DriftError:
        return False
    return True


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_is_one_at_every_door(name):
    value, expected = NUMBERS[name]
    for model in (LBP(), Tracker(50)):
        assert model_takes(model, value)
        model.learn_one({"a": expected}, False)
        assert model.predict_proba_one({"a": value}) == model.predict_proba_one({"a": expected})
    frame = pd.DataFrame({"a": pd.Series([value, value], dtype=object), "y": [0, 1]})
    stream = read_stream(frame.assign(b=[1.5, 2.5]), "y")
    assert [x["a"] for x, _ in stream] == [expected] * 2
    codec = JsonCodec()
    assert codec.decode(codec.encode(Example({"a": value}))).features == {"a": expected}
    assert "a - mean of 8" in RecentDeviation().transform_one({"a": value})


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_number_is_none_at_every_door(name):
    value = OTHERS[name]
    for model in (LBP(), Tracker(50)):
        assert not model_takes(model, value)
    with pytest.raises(DriftError):
        JsonCodec().encode(Example({"a": value}))
    assert RecentDeviation().transform_one({"a": value}) == {"a": value}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_number_is_none_in_plain_python(name):
    plan = Tracker(50)._core.plan
    for core in (plain.ColumnStore(Linear(), wide=True), TrackerCore(plan, "auto", 9)):
        with pytest.raises(DriftError, match=r"^feature 'a' is "):
            core.read({"a": OTHERS[name]})


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_is_one_in_plain_python(name):
    value, expected = NUMBERS[name]
    store = plain.ColumnStore(Linear(), wide=True)
    store.add({"a": expected}, 1.0)
    store.read({"a": value})
    assert store.score() == expected * expected


def test_a_span_of_time_in_a_table_is_seconds():
    frame = pd.DataFrame({"a": [dt.timedelta(minutes=1), dt.timedelta(0)], "y": [0, 1]})
    assert [x["a"] for x, _ in read_stream(frame.astype({"a": object}), "y")] == [60.0, 0.0]
