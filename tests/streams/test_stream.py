"""A stream checks the pairs that it is given, once."""

from dataclasses import replace

import pytest

from drift.errors import ParameterError
from drift.streams import Stream, stream


def test_pairs_are_checked_once(monkeypatch):
    checked = []
    monkeypatch.setattr(stream, "problem_of", lambda label: checked.append(label) or "")
    pairs = [({"a": k}, k) for k in range(6)]
    whole = Stream(pairs, moments=[3, 1, 2, 0, 4, 5])
    assert checked == [0, 1, 2, 3, 4, 5]
    ordered = whole.by_moment()
    parts = [
        (replace(whole, name="other"), range(6)),
        (whole.head(2), [0, 1]),
        (whole.head(4).head(3), [0, 1, 2]),
        (ordered, [3, 1, 2, 0, 4, 5]),
    ]
    for part, numbers in parts:
        assert part.examples == [pairs[k] for k in numbers]
    assert sorted(whole.block_shuffled(4).labels) == [0, 1, 2, 3, 4, 5]
    assert len(checked) == 6
    assert stream.unpacked(whole.packed) == pairs
    assert type(stream.unpacked(whole.packed)) is list


def test_other_pairs_are_checked_and_copied():
    pairs = [({"a": 1.0}, True), ({"a": 2.0}, False)]
    whole = Stream(pairs)
    with pytest.raises(ParameterError, match="example 1 has no label"):
        replace(whole, examples=[pairs[0], ({}, None)])
    with pytest.raises(ParameterError, match="example 2 is not a pair"):
        replace(whole, examples=[*whole.examples, "c"])
    pairs.append("c")
    assert len(whole) == 2
