"""Every model by name, for the command line and the experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drift.models.alma import ALMA2
from drift.models.budget import LBP, RBP
from drift.models.cache import CKS, VariableCachePerceptron
from drift.models.forgetron import Forgetron
from drift.models.mira import MIRA
from drift.models.multiclass import MRBP
from drift.models.passive_aggressive import PassiveAggressive
from drift.models.perceptron import SPA, Perceptron, VotedPerceptron
from drift.models.projection import Projectron, ProjectronPlusPlus
from drift.models.romma import ROMMA
from drift.models.second_order import LBSOP, RBSOP, SOP

if TYPE_CHECKING:
    from drift.models.base import KernelClassifier

__all__ = ["MODELS"]

#: Class by the name under which it is exported from `drift.models`.
MODELS: dict[str, type[KernelClassifier]] = {
    "ALMA2": ALMA2,
    "CKS": CKS,
    "Forgetron": Forgetron,
    "LBP": LBP,
    "LBSOP": LBSOP,
    "MIRA": MIRA,
    "MRBP": MRBP,
    "PassiveAggressive": PassiveAggressive,
    "Perceptron": Perceptron,
    "Projectron": Projectron,
    "ProjectronPlusPlus": ProjectronPlusPlus,
    "RBP": RBP,
    "RBSOP": RBSOP,
    "ROMMA": ROMMA,
    "SOP": SOP,
    "SPA": SPA,
    "VariableCachePerceptron": VariableCachePerceptron,
    "VotedPerceptron": VotedPerceptron,
}
