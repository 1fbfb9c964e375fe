"""Experiments: grids of models and streams, run on all cores, resumed, and reported.

To read them, start with what all share: `jobs` (what a run is), `code` (which code of drift is part
of its key), `runner` (how runs are computed), `folder` (where their records go), `records` (groups
and means of these) and `results` (what they come to, with tables and figures). Then take
`comparison`, in the order `contender`, `protocol`, `evaluation`, `experiment`; every table is made
by its `tables` and `measures`. `arena` is the same over a list. `reproduction` has the experiments
of papers as data. `rivals` has what drift's models are compared with.

>>> from drift.experiments import track
>>> results = track("newswire", rows=160, shifts=[1], models=["LBP"], budgets=[10, 20], jobs=1)
>>> [row["parameters"] for row in results.rows("table")]
['budget 10', 'budget 20']
"""

from drift.experiments.comparison import COMPARISON, Contender, compare
from drift.experiments.folder import RunFolder
from drift.experiments.jobs import Record, Run
from drift.experiments.learning import learn
from drift.experiments.reproduction import (
    PAPER,
    REPRODUCTIONS,
    TRACKING,
    TRACKING_MODELS,
    Problem,
    default_budgets,
    reproduce,
    track,
)
from drift.experiments.results import Results
from drift.experiments.runner import run_all

__all__ = [
    "COMPARISON",
    "PAPER",
    "REPRODUCTIONS",
    "TRACKING",
    "TRACKING_MODELS",
    "Contender",
    "Problem",
    "Record",
    "Results",
    "Run",
    "RunFolder",
    "compare",
    "default_budgets",
    "learn",
    "reproduce",
    "run_all",
    "track",
]
