"""The table of the algorithms: where each is, what it costs and which paper it is from."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from drift.models._template.kernel_model import KernelModel

__all__ = ["ENTRIES", "MODELS", "Entry"]


class Entry(NamedTuple):
    """A model, and how its memory and time grow with its number of supports.

    Parameters
    ----------
    name
        Name of the class, under which `drift.models` exports it.
    home
        Module of `drift.models` that has the class, imported on first use.
    memory
        Power of the number of supports in the memory.
    prediction
        Power in the time of a prediction: 1 for a kernel row.
    update
        Power in the time of an update, without the prediction of the example; 0 for a constant.
    paper
        The paper that the algorithm is from.
    """

    name: str
    home: str
    memory: int
    prediction: int
    update: int
    paper: str

    @property
    def model(self) -> type[KernelModel]:
        """The class."""
        module = import_module(f"drift.models.{self.home}")
        return getattr(module, self.name)  # type: ignore[no-any-return]


_TRACKING = "Cavallanti, Cesa-Bianchi, Gentile 2007"
_CACHES = "Crammer, Kandola, Singer 2003"
_PROJECTRON = "Orabona, Keshet, Caputo 2009"

#: In the order of their names.
ENTRIES = [
    Entry("ALMA2", "alma", 1, 1, 0, f"Gentile 2001; {_PROJECTRON}, section 6"),
    Entry("CKS", "cks", 1, 1, 1, f"{_CACHES}, figure 3"),
    Entry("Forgetron", "forgetron", 1, 1, 0, "Dekel, Shalev-Shwartz, Singer 2008"),
    Entry("LBP", "budget", 1, 1, 0, f"{_TRACKING}, section 4"),
    Entry("LBSOP", "second_order", 2, 1, 2, f"{_TRACKING}, section 4"),
    Entry("MIRA", "mira", 1, 1, 1, f"{_CACHES}, figures 1 to 3"),
    Entry("MRBP", "budget", 1, 1, 0, f"{_PROJECTRON}, section 7"),
    Entry("PassiveAggressive", "passive_aggressive", 1, 1, 1, "Crammer et al. 2006"),  # on a budget
    Entry("Perceptron", "perceptron", 1, 1, 0, f"{_TRACKING}, section 4"),
    Entry("Projectron", "projectron", 2, 1, 2, f"{_PROJECTRON}, section 3"),
    Entry("ProjectronPlusPlus", "projectron", 2, 1, 2, f"{_PROJECTRON}, sections 4 and 5"),
    Entry("RBP", "budget", 1, 1, 0, f"{_TRACKING}, section 3"),
    Entry("RBSOP", "second_order", 2, 1, 2, f"{_TRACKING}, section 4"),
    Entry("ROMMA", "romma", 1, 1, 0, "Li, Long 2002"),
    Entry("SOP", "second_order", 2, 1, 2, f"{_TRACKING}, section 4"),
    Entry("SPA", "perceptron", 1, 1, 0, f"{_TRACKING}, section 2"),
    Entry("VariableCachePerceptron", "cks", 1, 1, 1, f"{_CACHES}, figures 1 and 2"),
    Entry("VotedPerceptron", "perceptron", 1, 1, 1, "Freund, Schapire 1999"),
]

#: Class by name; importing it imports all of them.
MODELS: dict[str, type[KernelModel]]


def __getattr__(name: str) -> Any:
    if name != "MODELS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    models = globals()[name] = {entry.name: entry.model for entry in ENTRIES}
    return models
