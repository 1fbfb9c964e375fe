"""A user's script, which `mypy` checks as strictly as drift, and pytest runs."""

from typing import Any

import numpy as np

from drift.kernels import RBF
from drift.models import (
    MIRA,
    MODELS,
    RBP,
    Averaged,
    KernelClassifier,
    KernelModel,
    OneVsRest,
    column_type,
)
from drift.types import Features


class Mine(KernelClassifier):
    """An algorithm of one's own."""

    def _update(self, x: Features, sign: float, score: float) -> None:
        self._supports.add(x, 2.0 * sign)


def test_a_typed_script_learns_and_predicts() -> None:
    x = {"a": 1.0}
    wind: dict[str, float] = {"wind": 2.0}
    model = RBP(budget=5, kernel=RBF(0.5), seed=1)
    model.learn_one(x, True)
    model.learn_one(wind, False)
    model.learn_many([x, wind], [True, False])
    supports: list[tuple[dict[Any, float], float]] = model.supports
    score: float = model.decision_function_one(x)
    assert (len(supports), score > 0.0, model.predict_one(x)) == (2, True, True)
    assert model.predict_proba_one(wind)[True] < 0.5


def test_a_typed_script_wraps_and_looks_up() -> None:
    numbers: dict[int, int] = {1: 1, 7: 2}
    classes = OneVsRest(RBP(10))
    classes.learn_one(numbers, "news")
    several: list[Any] = [MIRA(), Averaged(RBP(3)), Mine()]
    kind: type[KernelModel] = MODELS["RBP"]
    for model in several:
        model.learn_many(np.eye(3), np.array([True, False, True]))
    assert (classes.predict_one(numbers), kind, column_type()) == ("news", RBP, column_type())
    assert several[2].supports[0][1] == 2.0
