from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift.errors import ParameterError
from drift.streams import NEWSWIRE_TARGETS, newswire, tracking_groups

# Share of the first 20,000 stories of RCV1 with GCAT, MCAT, C15 and ECAT.
RCV1_RATES = (0.289, 0.290, 0.172, 0.147)


@pytest.fixture(scope="module")
def stories():
    return newswire(4_000)


def test_the_same_seed_gives_the_same_bytes():
    first, second = newswire(200, seed=5), newswire(200, seed=5)
    for field in ("data", "indices", "indptr"):
        assert getattr(first.rows, field).tobytes() == getattr(second.rows, field).tobytes()
    assert first.topics.tobytes() == second.topics.tobytes()
    assert first.sha256 == second.sha256
    assert newswire(200, seed=6).sha256 != first.sha256


@given(st.integers(1, 30), st.integers(0, 2**40), st.floats(0, 1))
def test_every_story_has_words_of_norm_one_and_its_topics_desks(n, seed, drift):
    documents = newswire(n, seed, drift)
    assert len(documents) == n
    assert np.allclose(documents.rows.multiply(documents.rows).sum(axis=1), 1)
    for _, topics in documents:
        assert not topics & {"equities", "bonds"} or "markets" in topics
        assert not topics & {"sport", "war"} or "general" in topics


def test_rates_and_lengths_are_those_of_rcv1(stories):
    rates = [stories.has(topic).mean() for topic in NEWSWIRE_TARGETS]
    assert rates == pytest.approx(RCV1_RATES, abs=0.03)
    assert stories.most_frequent(1) == ["corporate"]
    assert set(stories.most_frequent(5)[1:]) == set(NEWSWIRE_TARGETS)
    assert np.diff(stories.rows.indptr).mean() == pytest.approx(76, abs=3)


def test_words_follow_a_long_tail(stories):
    df = np.sort(np.bincount(stories.rows.indices, minlength=stories.n_features))[::-1]
    assert df[0] > 0.3 * len(stories)
    assert 0 < df[10_000] < 0.005 * len(stories)


def test_drift_replaces_words_late_and_leaves_labels_alone():
    still, moving = newswire(3_000, seed=1), newswire(3_000, seed=1, drift=1.0)
    assert (still.topics == moving.topics).all()

    def kept(part):
        """Share of the word types of the still stories that the moving ones use as well."""
        same = still.rows[part].sign().multiply(moving.rows[part].sign()).sum()
        return same / still.rows[part].nnz

    assert kept(slice(0, 100)) > 0.95
    assert kept(slice(1_450, 1_550)) == pytest.approx((1 + kept(slice(2_900, 3_000))) / 2, abs=0.05)
    assert kept(slice(2_900, 3_000)) < 0.7


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [({"n": 0}, "n must"), ({"seed": -1}, "seed must"), ({"drift": 1.5}, "drift must")],
)
def test_parameters_out_of_range(arguments, problem):
    with pytest.raises(ParameterError, match=problem):
        newswire(**arguments)


def mistakes(gram, y, budget=None, decay=None):
    """Perceptron in its dual form; with a budget LBP, with a decay SPA."""
    weights, supports, count = np.zeros(len(y)), deque(), 0
    for t, sign in enumerate(np.where(y, 1, -1)):
        if sign * (gram[t, :t] @ weights[:t]) <= 0:
            if decay:
                weights *= 1 - decay / (decay + count)
            if budget and len(supports) == budget:
                weights[supports.popleft()] = 0
            weights[t] = sign
            supports.append(t)
            count += 1
    return count


def test_the_tracking_papers_effects_appear(stories):
    gram = (1 + (stories.rows @ stories.rows.T).toarray()) ** 4
    streams = tracking_groups(stories, NEWSWIRE_TARGETS, (0, 7))

    def total(shifts, **kwargs):
        return sum(mistakes(gram, stream.y, **kwargs) for stream in streams[shifts])

    still, moving = total(0), total(7)
    # As many mistakes as on 4,000 stories of RCV1, where it is 399 a stream.
    assert still / 4 == pytest.approx(399, rel=0.1)
    # With shifts, forgetting pays; without, it costs.
    assert total(7, budget=100) < 0.95 * moving
    assert total(7, decay=1.0) < 0.97 * moving
    assert total(0, budget=100) > 1.2 * still
    assert total(0, decay=1.0) > still
