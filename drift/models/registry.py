"""Every model by name, for the command line and the experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drift.models.budget import LBP, RBP
from drift.models.forgetron import Forgetron
from drift.models.perceptron import SPA, Perceptron

if TYPE_CHECKING:
    from drift.models.base import KernelClassifier

__all__ = ["MODELS"]

#: Class by the name under which it is exported from `drift.models`.
MODELS: dict[str, type[KernelClassifier]] = {
    "Forgetron": Forgetron,
    "LBP": LBP,
    "Perceptron": Perceptron,
    "RBP": RBP,
    "SPA": SPA,
}
