import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river import datasets, dummy, evaluate, metrics

from drift.errors import ParameterError
from drift.streams import Documents, ShiftingStream, tracking_groups

TOPICS = ("a", "b", "c", "d")


def documents(n=40):
    return Documents.from_arrays(np.eye(n), [TOPICS[i % 4] for i in range(n)])


@settings(deadline=None)
@given(st.lists(st.sampled_from(TOPICS), min_size=1, max_size=9), st.integers(9, 40))
def test_labels_are_those_of_the_chunks_targets(targets, n):
    stream = ShiftingStream(documents(n), targets)
    size = n // len(targets)
    expected = [TOPICS[i % 4] == targets[i // size] for i in range(size * len(targets))]
    assert [label for _, label in stream] == expected
    assert stream.y.tolist() == expected
    assert stream.X.shape == (len(expected), n)
    assert [features for features, _ in stream] == [{i: 1.0} for i in range(len(expected))]


def test_a_chunk_that_continues_with_the_same_topic_is_no_shift():
    stream = ShiftingStream(documents(40), ["a", "b", "b", "a"])
    assert stream.shifts == (10, 30)


def test_it_is_a_river_dataset():
    stream = ShiftingStream(documents(10), ["a", "b", "c"])
    assert isinstance(stream, datasets.base.Dataset)
    assert (stream.n_samples, stream.n_features, stream.chunk_size) == (9, 10, 3)
    assert stream.task == "Binary classification"
    assert list(stream.take(2)) == [({0: 1.0}, True), ({1: 1.0}, False)]
    assert list(stream) == list(stream)
    assert "Samples  9" in repr(stream)
    assert type(next(iter(stream))[1]) is bool


def test_river_evaluates_on_it():
    metric = evaluate.progressive_val_score(
        ShiftingStream(documents(8), ["a"]), dummy.NoChangeClassifier(), metrics.Accuracy()
    )
    # True, then F F F T F F F: the last label is wrong at the changes 2, 5 and 6.
    assert metric.get() == pytest.approx(4 / 7)


def test_the_matrix_is_not_copied():
    source = documents(40)
    assert np.shares_memory(ShiftingStream(source, ["a", "b"]).X.data, source.rows.data)


def test_it_pickles():
    stream = ShiftingStream(documents(10), ["a", "b"])
    copy = pickle.loads(pickle.dumps(stream))
    assert list(copy) == list(stream)
    assert copy.shifts == stream.shifts


@pytest.mark.parametrize("targets", [[], ["a"] * 41])
def test_every_chunk_needs_a_target_and_a_document(targets):
    with pytest.raises(ParameterError, match="for 40 documents"):
        ShiftingStream(documents(40), targets)


def test_an_unknown_target_is_named():
    with pytest.raises(ParameterError, match="no topic 'z'"):
        ShiftingStream(documents(), ["a", "z"])
    with pytest.raises(ParameterError, match="no topic 1"):
        ShiftingStream(documents(), ["a", 1])


def test_only_documents_can_be_asked_about():
    with pytest.raises(ParameterError, match=r"must be drift.streams.Documents, not list: see"):
        ShiftingStream([({"a": 1.0}, True)], ["a"])


def test_the_papers_four_groups():
    groups = tracking_groups(documents(), TOPICS)
    assert [stream.targets for stream in groups[0]] == [("a",), ("b",), ("c",), ("d",)]
    assert [len(groups[shifts]) for shifts in (1, 3, 7)] == [4, 4, 4]
    for stream in groups[1]:
        assert len(set(stream.targets)) == len(stream.targets) == 2
    for stream in groups[3]:
        assert sorted(stream.targets) == list(TOPICS)
    for stream in groups[7]:
        assert sorted(stream.targets[:4]) == list(TOPICS)
        assert stream.targets[4:] == stream.targets[:4]
        assert stream.shifts == tuple(range(5, 40, 5))


def test_a_group_does_not_depend_on_the_others():
    every = tracking_groups(documents(), TOPICS, seed=3)
    for shifts in (1, 3, 7):
        (alone,) = tracking_groups(documents(), TOPICS, [shifts], seed=3).values()
        assert [s.targets for s in alone] == [s.targets for s in every[shifts]]


def test_the_seed_decides():
    draws = {
        tuple(s.targets for s in tracking_groups(documents(), TOPICS, [3], seed=seed)[3])
        for seed in range(5)
    }
    assert len(draws) == 5


@settings(deadline=None)
@given(st.integers(1, 12), st.integers(2, 4), st.integers(1, 3))
def test_any_number_of_shifts_shifts(shifts, n_targets, n_streams):
    targets = TOPICS[:n_targets]
    streams = tracking_groups(documents(), targets, [shifts], n_streams)[shifts]
    assert len(streams) == n_streams
    for stream in streams:
        assert len(stream.shifts) == shifts
        round_ = stream.targets[:n_targets]
        assert len(set(round_)) == len(round_)
        assert all(t == stream.targets[i % n_targets] for i, t in enumerate(stream.targets))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"targets": []}, "at least one"),
        ({"targets": ["a", "a"]}, "different"),
        ({"targets": ["a"], "shifts": [1]}, "two targets"),
        ({"shifts": [-1]}, "the number of shifts must be an integer of at least 0, not -1"),
        ({"shifts": [1.5]}, "the number of shifts must be an integer of at least 0, not 1.5"),
        ({"n_streams": 0}, "n_streams"),
        ({"shifts": [40]}, "40 shifts take 41 chunks, of one document or more: there are 40"),
        ({"shifts": [10**30]}, "there are 40"),
    ],
)
def test_groups_that_cannot_be(arguments, problem):
    with pytest.raises(ParameterError, match=problem):
        tracking_groups(documents(), **{"targets": TOPICS, **arguments})
