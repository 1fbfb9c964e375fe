"""Any classifiers on any stream, side by side: test, then train."""

from drift.experiments.comparison.contender import Contender
from drift.experiments.comparison.experiment import compare
from drift.experiments.comparison.results import ComparisonResults

__all__ = ["ComparisonResults", "Contender", "compare"]
