"""Experiments: grids of models and streams, run on all cores, resumed, and reported.

To read them, begin with what all share: `jobs` (what a run is), `runner` (how it is computed) and
`folder` (where its record goes). Then take `comparison`, in the order `contender`, `protocol`,
`evaluation`, `experiment`; its `rows` and `measures` are what every table is made of. `arena` is
the same over a list. `tracking` and `papers` each have a file `experiment` that says what is run,
`runs` for one run, and `results` for what came out.

>>> from drift.experiments import track
>>> results = track("newswire", rows=160, shifts=[1], models=["LBP"], budgets=[10, 20], jobs=1)
>>> [row["parameters"] for row in results.table()]
['budget 10', 'budget 20']
"""

from drift.experiments.comparison import ComparisonResults, Contender, compare
from drift.experiments.folder import Record, RunFolder
from drift.experiments.jobs import Run
from drift.experiments.papers import REPRODUCTIONS, PaperResults, Problem, reproduce
from drift.experiments.runner import learn, run_all
from drift.experiments.tracking import TRACKING_MODELS, TrackingResults, default_budgets, track

__all__ = [
    "REPRODUCTIONS",
    "TRACKING_MODELS",
    "ComparisonResults",
    "Contender",
    "PaperResults",
    "Problem",
    "Record",
    "Run",
    "RunFolder",
    "TrackingResults",
    "compare",
    "default_budgets",
    "learn",
    "reproduce",
    "run_all",
    "track",
]
