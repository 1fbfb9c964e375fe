import numpy as np
import pytest

from drift.errors import ParameterError
from drift.streams import gaussians, load


def test_moments_and_noise_are_the_papers():
    documents = gaussians(40_000, seed=3)
    points, labels = documents.rows.toarray(), documents.has("+1")
    assert labels.mean() == pytest.approx(0.5, abs=0.01)
    # Nine in ten of a label's points are of its Gaussian: mean 0.9 - 0.1, and the distance between
    # the two means, 2, adds 4 * 0.9 * 0.1 to the variance.
    for label, sign in ((True, 1), (False, -1)):
        mine = points[labels == label]
        assert mine.mean(axis=0) == pytest.approx([0.8 * sign] * 2, abs=0.03)
        assert mine.var(axis=0) == pytest.approx([0.2 + 0.36, 2.0 + 0.36], rel=0.04)
    assert (documents.has("-1") != labels).all()


def test_the_first_coordinate_alone_is_right_nine_times_in_ten():
    documents = gaussians(20_000)
    guess = documents.rows.toarray()[:, 0] > 0
    # P(N(1, 0.2) > 0) = 0.987, so 0.987 * 0.9 + 0.013 * 0.1
    assert (guess == documents.has("+1")).mean() == pytest.approx(0.89, abs=0.01)


def test_the_same_seed_gives_the_same_points():
    assert gaussians(100, seed=1).sha256 == gaussians(100, seed=1).sha256
    assert gaussians(100, seed=1).sha256 != gaussians(100, seed=2).sha256


def test_it_is_in_the_catalog():
    documents, targets = load("gaussians", n=50, seed=4)
    assert documents.sha256 == gaussians(50, seed=4).sha256
    assert targets == ("+1", "-1")
    assert len(load("gaussians")[0]) == 10_000
    assert np.isfinite(documents.rows.data).all()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"n": 0}, "n must be an integer of at least 1"),
        ({"seed": -1}, "seed must be an integer of at least 0"),
    ],
)
def test_parameters_out_of_range(arguments, problem):
    with pytest.raises(ParameterError, match=problem):
        gaussians(**arguments)
