"""Every model by name, for the command line and the experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drift.models.budget import LBP, RBP
from drift.models.cache import CKS, VariableCachePerceptron
from drift.models.forgetron import Forgetron
from drift.models.passive_aggressive import PassiveAggressive
from drift.models.perceptron import SPA, Perceptron, VotedPerceptron
from drift.models.romma import ROMMA
from drift.models.second_order import LBSOP, RBSOP, SOP

if TYPE_CHECKING:
    from drift.models.base import KernelClassifier

__all__ = ["MODELS"]

#: Class by the name under which it is exported from `drift.models`.
MODELS: dict[str, type[KernelClassifier]] = {
    "CKS": CKS,
    "Forgetron": Forgetron,
    "LBP": LBP,
    "LBSOP": LBSOP,
    "PassiveAggressive": PassiveAggressive,
    "Perceptron": Perceptron,
    "RBP": RBP,
    "RBSOP": RBSOP,
    "ROMMA": ROMMA,
    "SOP": SOP,
    "SPA": SPA,
    "VariableCachePerceptron": VariableCachePerceptron,
    "VotedPerceptron": VotedPerceptron,
}
