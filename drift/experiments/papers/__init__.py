"""Experiments of the papers, repeated over the runner that every experiment has."""

from drift.experiments.papers.experiment import REPRODUCTIONS, Reproduction, reproduce
from drift.experiments.papers.permutations import Setting, permuted
from drift.experiments.papers.problem import Problem
from drift.experiments.papers.results import PaperResults
from drift.experiments.papers.runs import paper_run

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
