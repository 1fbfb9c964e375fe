"""Online kernel classifiers on a budget, as River classifiers.

>>> from drift.models import RBP
>>> model = RBP(budget=2, seed=0)
>>> model.learn_one({"rain": 1.0, "wind": 2.0}, True)
>>> model.predict_one({"rain": 2.0, "wind": 4.0})
True
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from drift.models._old_names import OldNames
from drift.models._store.supports import column_type, compiled

if TYPE_CHECKING:
    from drift.models._template.binary import KernelClassifier
    from drift.models._template.multiclass import MulticlassKernelClassifier
    from drift.models.alma import ALMA2
    from drift.models.averaged import Averaged
    from drift.models.budget import LBP, MRBP, RBP
    from drift.models.cks import CKS, VariableCachePerceptron
    from drift.models.forgetron import Forgetron
    from drift.models.mira import MIRA
    from drift.models.one_vs_rest import OneVsRest
    from drift.models.passive_aggressive import PassiveAggressive
    from drift.models.perceptron import SPA, Perceptron, VotedPerceptron
    from drift.models.projectron import Projectron, ProjectronPlusPlus
    from drift.models.registry import MODELS
    from drift.models.romma import ROMMA
    from drift.models.second_order import LBSOP, RBSOP, SOP
    from drift.models.structured import StructuredProjectron
    from drift.models.tracker import Tracker

__all__ = [
    "ALMA2",
    "CKS",
    "LBP",
    "LBSOP",
    "MIRA",
    "MODELS",
    "MRBP",
    "RBP",
    "RBSOP",
    "ROMMA",
    "SOP",
    "SPA",
    "Averaged",
    "Forgetron",
    "KernelClassifier",
    "MulticlassKernelClassifier",
    "OneVsRest",
    "PassiveAggressive",
    "Perceptron",
    "Projectron",
    "ProjectronPlusPlus",
    "StructuredProjectron",
    "Tracker",
    "VariableCachePerceptron",
    "VotedPerceptron",
    "column_type",
    "compiled",
]

#: What each module gives: imported when it is asked for, as few programs need more than one.
_HOMES = {
    "alma": ("ALMA2",),
    "averaged": ("Averaged",),
    "_template.binary": ("KernelClassifier",),
    "budget": ("LBP", "MRBP", "RBP"),
    "cks": ("CKS", "VariableCachePerceptron"),
    "forgetron": ("Forgetron",),
    "mira": ("MIRA",),
    "_template.multiclass": ("MulticlassKernelClassifier",),
    "one_vs_rest": ("OneVsRest",),
    "passive_aggressive": ("PassiveAggressive",),
    "perceptron": ("SPA", "Perceptron", "VotedPerceptron"),
    "projectron": ("Projectron", "ProjectronPlusPlus"),
    "registry": ("MODELS",),
    "romma": ("ROMMA",),
    "second_order": ("LBSOP", "RBSOP", "SOP"),
    "structured": ("StructuredProjectron",),
    "tracker": ("Tracker",),
}

sys.meta_path.append(OldNames())


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            value = globals()[name] = getattr(import_module(f"drift.models.{home}"), name)
            return value
    raise AttributeError(f"module 'drift.models' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
