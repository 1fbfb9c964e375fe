"""Experiments: grids of models and streams, run on all cores, resumed, and reported.

>>> from drift.experiments import track
>>> results = track("newswire", rows=160, shifts=[1], models=["LBP"], budgets=[10, 20], jobs=1)
>>> [row["parameters"] for row in results.table()]
['budget 10', 'budget 20']
"""

from drift.experiments.compare import ComparisonResults, Contender, compare
from drift.experiments.records import Record, RunFolder
from drift.experiments.reproduce import REPRODUCTIONS, reproduce
from drift.experiments.results import TrackingResults
from drift.experiments.run import Cell, learn, run_cells
from drift.experiments.tracking import TRACKING_MODELS, default_budgets, track

__all__ = [
    "REPRODUCTIONS",
    "TRACKING_MODELS",
    "Cell",
    "ComparisonResults",
    "Contender",
    "Record",
    "RunFolder",
    "TrackingResults",
    "compare",
    "default_budgets",
    "learn",
    "reproduce",
    "run_cells",
    "track",
]
