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
from drift.models import LBP, Tracker
from drift.streams import read_stream

NUMBERS = {
    "int": (3, 3.0),
    "float": (2.5, 2.5),
    "Decimal": (Decimal("2.5"), 2.5),
    "Fraction": (Fraction(5, 2), 2.5),
    "numpy float32": (np.float32(2.5), 2.5),
    "numpy int8": (np.int8(3), 3.0),
}
OTHERS = {
    "text": "3",
    "bytes": b"3",
    "complex": 1j,
    "numpy moment": np.datetime64("2026-01-01"),
    "numpy span": np.timedelta64(3, "s"),
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


def test_a_span_of_time_in_a_table_is_seconds():
    frame = pd.DataFrame({"a": [dt.timedelta(minutes=1), dt.timedelta(0)], "y": [0, 1]})
    assert [x["a"] for x, _ in read_stream(frame.astype({"a": object}), "y")] == [60.0, 0.0]
