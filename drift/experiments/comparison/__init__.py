"""Any classifiers on any stream, side by side: test, then train."""

from drift.experiments.comparison.contender import Contender
from drift.experiments.comparison.experiment import COMPARISON, compare

__all__ = ["COMPARISON", "Contender", "compare"]
