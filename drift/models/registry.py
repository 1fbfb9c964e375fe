"""Every model by name, with what it costs, for the command line, experiments and benchmarks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from drift.models.alma import ALMA2
from drift.models.budget import LBP, MRBP, RBP
from drift.models.cks import CKS, VariableCachePerceptron
from drift.models.forgetron import Forgetron
from drift.models.mira import MIRA
from drift.models.passive_aggressive import PassiveAggressive
from drift.models.perceptron import SPA, Perceptron, VotedPerceptron
from drift.models.projectron import Projectron, ProjectronPlusPlus
from drift.models.romma import ROMMA
from drift.models.second_order import LBSOP, RBSOP, SOP

if TYPE_CHECKING:
    from drift.models._template.binary import KernelClassifier

__all__ = ["ENTRIES", "MODELS", "Entry"]


class Entry(NamedTuple):
    """A model and the powers of its number of supports in what it costs.

    Parameters
    ----------
    model
        The class.
    memory
        Power in the memory.
    prediction
        Power in the time of a prediction: 1 for a kernel row.
    update
        Power in the time of an update after the prediction of the same example; 0 for a constant.
    paper
        Where it comes from.
    """

    model: type[KernelClassifier]
    memory: int
    prediction: int
    update: int
    paper: str


_TRACKING = "Cavallanti, Cesa-Bianchi, Gentile 2007"
_PROJECTRON = "Orabona, Keshet, Caputo 2009"

#: In the order of their names.
ENTRIES = [
    Entry(ALMA2, 1, 1, 0, f"Gentile 2001; {_PROJECTRON}, section 6"),
    Entry(CKS, 1, 1, 1, "Crammer, Kandola, Singer 2003, figure 3"),
    Entry(Forgetron, 1, 1, 0, "Dekel, Shalev-Shwartz, Singer 2008"),
    Entry(LBP, 1, 1, 0, f"{_TRACKING}, section 4"),
    Entry(LBSOP, 2, 1, 2, f"{_TRACKING}, section 4"),
    Entry(MIRA, 1, 1, 1, "Crammer, Kandola, Singer 2003, figures 1 to 3"),
    Entry(MRBP, 1, 1, 0, f"{_PROJECTRON}, section 7"),
    Entry(PassiveAggressive, 1, 1, 0, "Crammer et al. 2006"),
    Entry(Perceptron, 1, 1, 0, f"{_TRACKING}, section 4"),
    Entry(Projectron, 2, 1, 2, f"{_PROJECTRON}, section 3"),
    Entry(ProjectronPlusPlus, 2, 1, 2, f"{_PROJECTRON}, sections 4 and 5"),
    Entry(RBP, 1, 1, 0, f"{_TRACKING}, section 3"),
    Entry(RBSOP, 2, 1, 2, f"{_TRACKING}, section 4"),
    Entry(ROMMA, 1, 1, 0, "Li, Long 2002"),
    Entry(SOP, 2, 1, 2, f"{_TRACKING}, section 4"),
    Entry(SPA, 1, 1, 0, f"{_TRACKING}, section 2"),
    Entry(VariableCachePerceptron, 1, 1, 1, "Crammer, Kandola, Singer 2003, figures 1 and 2"),
    Entry(VotedPerceptron, 1, 1, 1, "Freund, Schapire 1999"),
]

#: Class by the name under which it is exported from `drift.models`.
MODELS: dict[str, type[KernelClassifier]] = {entry.model.__name__: entry.model for entry in ENTRIES}
