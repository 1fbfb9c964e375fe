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
from drift.models.forgetron import Forgetron
from drift.models.perceptron import SPA, Perceptron
from drift.models.registry import MODELS

__all__ = [
    "LBP",
    "MODELS",
    "RBP",
    "SPA",
    "Forgetron",
    "KernelClassifier",
    "Perceptron",
    "column_type",
    "compiled",
]
