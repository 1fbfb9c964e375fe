"""Experiments of the papers as data, over the runner that every experiment has."""

from drift.experiments.reproduction.experiment import permuted, reproduce
from drift.experiments.reproduction.papers import REPRODUCTIONS
from drift.experiments.reproduction.problem import Part, Problem
from drift.experiments.reproduction.runs import run_of
from drift.experiments.reproduction.spec import ModelSpec, Reproduction
from drift.experiments.reproduction.tables import PAPER, TRACKING
from drift.experiments.reproduction.tracking import TRACKING_MODELS, default_budgets, track

__all__ = [
    "PAPER",
    "REPRODUCTIONS",
    "TRACKING",
    "TRACKING_MODELS",
    "ModelSpec",
    "Part",
    "Problem",
    "Reproduction",
    "default_budgets",
    "permuted",
    "reproduce",
    "run_of",
    "track",
]
