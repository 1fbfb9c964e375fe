"""Experiments: grids of models and streams, run on all cores, resumed, and reported.

>>> from drift.experiments import track
>>> results = track("newswire", rows=160, shifts=[1], models=["LBP"], budgets=[10, 20], jobs=1)
>>> [row["parameters"] for row in results.table()]
['budget 10', 'budget 20']
"""

from drift.experiments.compare import Contender, compare
from drift.experiments.comparison import ComparisonResults
from drift.experiments.problem import Problem
from drift.experiments.records import Record, RunFolder
from drift.experiments.reproduce import REPRODUCTIONS, reproduce
from drift.experiments.results import TrackingResults
from drift.experiments.run import Cell, learn, run_cells
from drift.experiments.tracking import TRACKING_MODELS, default_budgets, track
from drift.experiments.trial import Trial

__all__ = [
    "REPRODUCTIONS",
    "TRACKING_MODELS",
    "Cell",
    "ComparisonResults",
    "Contender",
    "Problem",
    "Record",
    "RunFolder",
    "TrackingResults",
    "Trial",
    "compare",
    "default_budgets",
    "learn",
    "reproduce",
    "run_cells",
    "track",
]
