"""Models as a version of drift leaves them, for the test that later versions go on with them.

In a clone of that version, with this file in its ``tools`` and that version installed::

    python -c "from tools.old_models import write; write('old-models')"

The folder is a `CheckpointFolder`, a topic for each model, with pickles and what came of the models
beside it. The test is tests/consumers/test_old_models.py.
"""

from __future__ import annotations

import json
import pickle
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drift.consumers import CheckpointFolder
from drift.kernels import RBF, Linear, Polynomial
from drift.models import (
    LBP,
    LBSOP,
    MODELS,
    RBP,
    Averaged,
    OneVsRest,
    StructuredProjectron,
    Tracker,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["BEFORE", "examples", "go_on", "write"]

#: Examples learnt before the models are written; the others come after.
BEFORE = 60
#: Models of several classes; the others learn whether it is the first one.
_CLASSES = {*("MIRA", "MRBP", "OneVsRest", "OneVsRest-apart", "StructuredProjectron", "Tracker")}
_LABELS = ("a", "b", "c")


def examples(name: str) -> Iterator[tuple[dict[str, float], Any]]:
    """Yield a hundred examples of linear classes that change halfway, as a model learns them."""
    rng = random.Random(5)
    names = [f"f{j}" for j in range(10)]
    rules = [{n: rng.uniform(-1.0, 1.0) for n in names} for _ in _LABELS]
    for t in range(100):
        x = {n: rng.uniform(-1.0, 2.0) for n in names if rng.random() < 0.6}
        scores = [sum(rule[n] * v for n, v in x.items()) for rule in rules]
        if name in _CLASSES:
            yield x, _LABELS[(scores.index(max(scores)) + t // 50) % 3]
        else:
            yield x, (scores[0] > 0.0) == (t < 50)


def joint_kernel(pair: Any, other: Any) -> float:
    """Kernel of the structured model: a linear one for each label."""
    (x, y), (z, w) = pair, other
    return float(y == w) * sum(v * z.get(n, 0.0) for n, v in x.items())


def argmax(_x: Any, score: Any, exclude: str | None = None) -> str:
    """Best label other than the excluded one."""
    return max((y for y in _LABELS if y != exclude), key=score)


def _models() -> Iterator[tuple[str, Any]]:
    for name, kind in MODELS.items():
        wanted = {"budget": 8, "seed": 3, "tolerance": 3.0} if name not in ("ALMA2", "MIRA") else {}
        known = vars(kind()).keys()
        yield name, kind(**{key: value for key, value in wanted.items() if key in known})
    yield "LBP-linear", LBP(8, Linear())
    yield "LBP-linear-unit", LBP(8, Linear(normalize=True))
    yield "RBP-quadratic", RBP(8, Polynomial(2), seed=3)
    yield "RBP-rbf", RBP(8, RBF(0.5), seed=3)
    yield "OneVsRest", OneVsRest(LBP(8))
    yield "OneVsRest-apart", OneVsRest(LBSOP(8))
    yield "Averaged", Averaged(LBP(8))
    yield "Tracker", Tracker(8, kernels=(2,), rates=(1,), forgetting=(4,))
    yield "StructuredProjectron", StructuredProjectron(joint_kernel, argmax)


def go_on(name: str, model: Any) -> dict[str, list[Any]]:
    """Learn what comes after; return the predictions before each, and the last scores."""
    seen = list(examples(name))
    predictions = []
    for x, y in seen[BEFORE:]:
        predictions.append(model.predict_one(x))
        model.learn_one(x, y)
    if name == "StructuredProjectron":
        return {"predictions": predictions, "scores": [model.n_mistakes]}
    scores = getattr(model, "decision_function_one", model.predict_proba_one)(seen[0][0])
    scores = [scores[y] for y in sorted(scores)] if isinstance(scores, dict) else [scores]
    return {"predictions": predictions, "scores": scores}


def write(path: str) -> None:
    """Write the models as they are after `BEFORE` examples, and what becomes of them."""
    pickles = Path(path) / "pickles"
    pickles.mkdir(parents=True)
    folder, results = CheckpointFolder(Path(path) / "checkpoints"), {}
    for name, model in _models():
        for x, y in list(examples(name))[:BEFORE]:
            model.learn_one(x, y)
        (pickles / f"{name}.pickle").write_bytes(pickle.dumps(model, protocol=5))
        if name != "StructuredProjectron":
            epoch, _ = folder.claim((name, 0))
            folder.save((name, 0), epoch, model, {(name, 0): BEFORE})
        results[name] = go_on(name, model)
    (Path(path) / "results.json").write_text(json.dumps(results) + "\n")
