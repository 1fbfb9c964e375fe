"""Two overlapping Gaussians with noisy labels, the papers' synthetic set."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from drift._checks import check_integer
from drift.streams.documents import Documents

__all__ = ["gaussians"]

_MEAN = 1.0  # of both coordinates; its negative for the other class
_VARIANCES = (0.2, 2.0)
_FLIPPED = 0.1


def gaussians(n: int = 10_000, seed: int = 0) -> Documents:
    """Points of two bi-dimensional Gaussians, one label in ten flipped.

    Positive points have the mean (1, 1), negative ones (-1, -1), both the covariance matrix
    diag(0.2, 2). Each point is of either class with probability 1/2; the papers do not say.

    Parameters
    ----------
    n
        Number of points, at least 1.
    seed
        At least 0. The same seed gives the same points with the same release of numpy.

    Returns
    -------
    Documents
        With the topics ``"-1"`` and ``"+1"``, one a point, and two columns.

    Raises
    ------
    ParameterError
        A parameter out of its range.

    References
    ----------
    .. [1] O. Dekel, S. Shalev-Shwartz, Y. Singer, "The Forgetron: a kernel-based Perceptron on a
       budget", SIAM Journal on Computing 37 (2007).
    .. [2] F. Orabona, J. Keshet, B. Caputo, "Bounded kernel-based online learning", Journal of
       Machine Learning Research 10 (2009), section 7.

    Examples
    --------
    >>> from drift.streams import gaussians
    >>> gaussians(500)
    <Documents gaussians: 500 x 2, 2 topics>
    """
    check_integer("n", n)
    check_integer("seed", seed, least=0)
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.5
    points = rng.normal(scale=np.sqrt(_VARIANCES), size=(n, 2))
    points += np.where(positive, _MEAN, -_MEAN)[:, None]
    labels = positive ^ (rng.random(n) < _FLIPPED)
    topics = np.column_stack([~labels, labels])
    return Documents(csr_array(points), topics, ("-1", "+1"), name="gaussians")
