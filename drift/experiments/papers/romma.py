"""The experiment of Li and Long: MNIST, ten one-against-rest learners, one to four epochs."""

from __future__ import annotations

from drift.experiments.papers.reproduction import Reproduction
from drift.experiments.setting import Setting
from drift.kernels import Polynomial

__all__ = ["ROMMA"]

#: What pixels are multiplied by for ROMMA alone; the Perceptrons learn them from 0 to 255.
_FACTOR = 1 / 1100

_BIAS = {"bias": True}


def _romma(**parameters: object) -> Setting:
    return Setting("ROMMA", _BIAS | parameters, one_vs_rest=True, factor=_FACTOR)


#: Table 1. "MisNo" counts mistakes of the hypotheses that learn, of the ten learners together: the
#: updates of the Perceptron whose hypotheses vote.
ROMMA = {
    "romma-mnist": Reproduction(
        paper="Y. Li, P. M. Long, The relaxed online maximum margin algorithm, "
        "Advances in Neural Information Processing Systems 12 (2000), table 1",
        stream="mnist",
        target=None,
        kernel=Polynomial(degree=4),
        contenders={
            "Perceptron": Setting("Perceptron", _BIAS, one_vs_rest=True),
            "VotedPerceptron": Setting("VotedPerceptron", _BIAS, one_vs_rest=True),
            "ROMMA": _romma(),
            "aggressive ROMMA": _romma(aggressive=True),
            "aggressive ROMMA (NC)": _romma(aggressive=True, noise=30.0),
        },
        length=60_000,
        tested=True,
        epochs=4,
        permutations=10,
        printed={
            "Perceptron": {
                "test_error": (2.84, 2.27, 1.99, 1.85),
                "mistakes": (7970, 10539, 11945, 12800),
            },
            "VotedPerceptron": {
                "test_error": (2.26, 1.88, 1.76, 1.69),
                "updates": (7970, 10539, 11945, 12800),
            },
            "ROMMA": {
                "test_error": (2.48, 1.96, 1.79, 1.77),
                "mistakes": (7963, 9995, 10971, 11547),
            },
            "aggressive ROMMA": {
                "test_error": (2.14, 1.82, 1.71, 1.67),
                "mistakes": (6077, 7391, 7901, 8139),
            },
            "aggressive ROMMA (NC)": {
                "test_error": (2.05, 1.76, 1.67, 1.63),
                "mistakes": (5909, 6979, 7339, 7484),
            },
        },
    )
}
