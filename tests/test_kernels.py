"""Kernels against their definitions on vectors."""

import pickle

import numpy as np
import pytest

from drift.errors import ParameterError
from drift.kernels import RBF, Kernel, Linear, Polynomial

A, B = np.array([1.0, 2.0, 0.0]), np.array([0.5, -1.0, 3.0])


def products(a, b):
    return a @ b, a @ a, b @ b


@pytest.mark.parametrize("scale", [1.0, 1e-8, 1e8])
def test_definitions(scale):
    a, b = scale * A, scale * B
    dot, aa, bb = products(a, b)
    unit_a, unit_b = a / np.linalg.norm(a), b / np.linalg.norm(b)
    assert Linear()(dot, aa, bb) == pytest.approx(a @ b)
    assert Linear(normalize=True)(dot, aa, bb) == pytest.approx(unit_a @ unit_b)
    assert Polynomial(3, 0.5)(dot, aa, bb) == pytest.approx((a @ b + 0.5) ** 3)
    assert Polynomial(3, 0.5, normalize="rows")(dot, aa, bb) == pytest.approx(
        (unit_a @ unit_b + 0.5) ** 3
    )
    own = [(x @ x + 0.5) ** 3 for x in (a, b)]
    assert Polynomial(3, 0.5, normalize=True)(dot, aa, bb) == pytest.approx(
        1.5**3 * (a @ b + 0.5) ** 3 / np.sqrt(own[0] * own[1])
    )
    gamma = 0.3 / scale**2
    assert RBF(gamma)(dot, aa, bb) == pytest.approx(np.exp(-gamma * ((a - b) ** 2).sum()))
    assert RBF(0.3, normalize="rows")(dot, aa, bb) == pytest.approx(
        np.exp(-0.3 * ((unit_a - unit_b) ** 2).sum())
    )


@pytest.mark.parametrize(
    "kernel",
    [
        Linear(),
        Linear(True),
        Polynomial(),
        Polynomial(normalize=True),
        Polynomial(coef0=0.0, normalize=True),
        Polynomial(normalize="rows"),
        RBF(),
        RBF(1, "rows"),
    ],
)
def test_elementwise_on_arrays_and_zero_stays_zero(kernel):
    dots, norms = np.array([0.0, 2.0]), np.array([0.0, 4.0])
    row = kernel(dots, norms, 1.0)
    assert row.tolist() == [kernel(0.0, 0.0, 1.0), kernel(2.0, 4.0, 1.0)]
    assert np.isfinite(row).all()
    assert isinstance(kernel, Kernel)
    assert pickle.loads(pickle.dumps(kernel)) == kernel


def test_a_normalised_kernel_of_itself_is_that_of_an_instance_of_unit_norm():
    kernel = Polynomial(degree=2, coef0=3.0, normalize=True)
    for squared in (0.0, 1e-300, 0.3, 1.0, 1e300):
        assert kernel(squared, squared, squared) == pytest.approx(16.0)
    assert kernel(-0.5, 1.0, 1.0) == Polynomial(degree=2, coef0=3.0)(-0.5, 1.0, 1.0)


def test_without_a_constant_term_the_direction_is_all_that_counts():
    dot, aa, bb = products(A, B)
    cosine = dot / np.sqrt(aa * bb)
    assert Polynomial(3, 0.0, normalize=True)(dot, aa, bb) == pytest.approx(cosine**3)
    assert Polynomial(3, 0.0, normalize=True)(0.0, 0.0, 0.0) == 0.0
    assert Linear(normalize="rows")(dot, aa, bb) == pytest.approx(cosine)


def test_a_distance_below_zero_by_rounding_is_zero():
    assert RBF()(1.0000000001, 1.0, 1.0) == 1.0


@pytest.mark.parametrize(
    ("kernel", "bound"),
    [
        (Linear(), None),
        (Linear(normalize=True), 1.0),
        (Polynomial(), None),
        (Polynomial(degree=2, coef0=2.0, normalize=True), 9.0),
        (Polynomial(degree=2, coef0=2.0, normalize="rows"), 9.0),
        (RBF(7.0), 1.0),
    ],
)
def test_bounds(kernel, bound):
    assert kernel.bound == bound


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: Polynomial(degree=0), "degree"),
        (lambda: Polynomial(degree=2.0), "degree"),
        (lambda: Polynomial(degree=True), "degree"),
        (lambda: Polynomial(coef0=-1), "coef0"),
        (lambda: Polynomial(coef0=float("inf")), "coef0"),
        (lambda: Polynomial(normalize="row"), "normalize"),
        (lambda: Linear(normalize=[]), "normalize"),
        (lambda: RBF(normalize=2.0), "normalize"),
        (lambda: RBF(gamma=0), "gamma"),
        (lambda: RBF(gamma=float("nan")), "gamma"),
    ],
)
def test_bad_parameters(make, name):
    with pytest.raises(ParameterError, match=f"{name} must be"):
        make()


def test_the_rbf_refuses_to_be_normalised_and_names_what_is_left():
    with pytest.raises(ParameterError, match="normalize='rows'"):
        RBF(normalize=True)
