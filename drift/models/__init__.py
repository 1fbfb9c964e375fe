"""Online kernel classifiers on a budget, as River classifiers.

>>> from drift.models import RBP
>>> model = RBP(budget=2, seed=0)
>>> model.learn_one({"rain": 1.0, "wind": 2.0}, True)
>>> model.predict_one({"rain": 2.0, "wind": 4.0})
True
"""

from drift.models._support import column_type, compiled
from drift.models.base import KernelClassifier
from drift.models.budget import LBP, RBP
from drift.models.cache import CKS, VariableCachePerceptron
from drift.models.forgetron import Forgetron
from drift.models.passive_aggressive import PassiveAggressive
from drift.models.perceptron import SPA, Perceptron, VotedPerceptron
from drift.models.registry import MODELS
from drift.models.romma import ROMMA
from drift.models.second_order import LBSOP, RBSOP, SOP

__all__ = [
    "CKS",
    "LBP",
    "LBSOP",
    "MODELS",
    "RBP",
    "RBSOP",
    "ROMMA",
    "SOP",
    "SPA",
    "Forgetron",
    "KernelClassifier",
    "PassiveAggressive",
    "Perceptron",
    "VariableCachePerceptron",
    "VotedPerceptron",
    "column_type",
    "compiled",
]
