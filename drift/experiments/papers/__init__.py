"""Experiments of the papers, repeated over the runner that every experiment has."""

from drift.experiments.papers.experiment import REPRODUCTIONS, Reproduction, reproduce
from drift.experiments.papers.permutations import permuted
from drift.experiments.papers.problem import Problem
from drift.experiments.papers.results import PaperResults
from drift.experiments.papers.runs import paper_run
from drift.experiments.setting import Setting

__all__ = [
    "REPRODUCTIONS",
    "PaperResults",
    "Problem",
    "Reproduction",
    "Setting",
    "paper_run",
    "permuted",
    "reproduce",
]
