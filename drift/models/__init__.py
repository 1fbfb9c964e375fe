"""Classifiers for streams that drift, with River's methods: `Tracker` and the papers' algorithms.

>>> from drift.models import Tracker
>>> model = Tracker(budget=300)
>>> model.learn_one({"rain": 1.0, "wind": 2.0}, True)
>>> model.predict_one({"rain": 2.0, "wind": 4.0})
True
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from drift.models._state import kinds
from drift.models.registry import ENTRIES

# For type checkers, which do not run what is below: an import a family.
if TYPE_CHECKING:
    # ruff: isort: off
    from drift.models._state.codec import from_bytes as from_bytes
    from drift.models._store.precision import column_type as column_type
    from drift.models._template.binary import KernelClassifier as KernelClassifier
    from drift.models._template.kernel_model import KernelModel as KernelModel
    from drift.models._template.multiclass import (
        MulticlassKernelClassifier as MulticlassKernelClassifier,
    )
    from drift.models._tracker.built import compiled as compiled
    from drift.models.alma import ALMA2 as ALMA2
    from drift.models.averaged import Averaged as Averaged
    from drift.models.budget import LBP as LBP, MRBP as MRBP, RBP as RBP
    from drift.models.cks import CKS as CKS, VariableCachePerceptron as VariableCachePerceptron
    from drift.models.forgetron import Forgetron as Forgetron
    from drift.models.mira import MIRA as MIRA
    from drift.models.one_vs_rest import OneVsRest as OneVsRest
    from drift.models.passive_aggressive import PassiveAggressive as PassiveAggressive
    from drift.models.perceptron import (
        SPA as SPA,
        Perceptron as Perceptron,
        VotedPerceptron as VotedPerceptron,
    )
    from drift.models.projectron import (
        Projectron as Projectron,
        ProjectronPlusPlus as ProjectronPlusPlus,
    )
    from drift.models.registry import MODELS as MODELS
    from drift.models.romma import ROMMA as ROMMA
    from drift.models.second_order import LBSOP as LBSOP, RBSOP as RBSOP, SOP as SOP
    from drift.models.structured import StructuredProjectron as StructuredProjectron
    from drift.models.threshold import Threshold as Threshold
    from drift.models.tracker import Tracker as Tracker

#: Module of each name, imported on first use, as few programs need more than one.
_HOMES = {entry.name: entry.home for entry in ENTRIES} | {
    "Averaged": "averaged",
    "OneVsRest": "one_vs_rest",
    "Threshold": "threshold",
    "Tracker": "tracker",
}
_PARTS = {"Prototypes": "_template.prototypes"}
kinds.HOMES.update({name: f"{__name__}.{home}" for name, home in (_HOMES | _PARTS).items()})
_HOMES |= {
    "KernelClassifier": "_template.binary",
    "KernelModel": "_template.kernel_model",
    "MODELS": "registry",
    "MulticlassKernelClassifier": "_template.multiclass",
    "StructuredProjectron": "structured",
    "column_type": "_store.precision",
    "compiled": "_tracker.built",
    "from_bytes": "_state.codec",
}

__all__ = [  # noqa: PLE0604 - all are strings
    *sorted(
        _HOMES.keys() - {"column_type", "compiled", "from_bytes"},
        key=lambda name: (not name.isupper(), name),
    ),
    "column_type",
    "compiled",
    "from_bytes",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        problem = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(problem, name=name, obj=sys.modules[__name__])  # to suggest one
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return __all__
