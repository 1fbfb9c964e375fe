"""Golden models: each class as stored by a version, from which later versions must continue.

    python -m tools.golden

writes into the version's folder what it lacks, and never overwrites: a checkpoint of each model,
small and full, a pickle of each class, and what becomes of the model, as JSON. The test is
tests/consumers/test_golden.py.
"""

from __future__ import annotations

import json
import pickle
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drift import __version__
from drift.consumers.checkpoints.checkpoint import Checkpoint, to_bytes
from drift.kernels import RBF, Linear, Polynomial
from drift.models import (
    ALMA2,
    CKS,
    LBP,
    MIRA,
    MODELS,
    ROMMA,
    Averaged,
    OneVsRest,
    PassiveAggressive,
    ProjectronPlusPlus,
    StructuredProjectron,
    Threshold,
    Tracker,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ROOT", "SIZES", "go_on", "write"]

#: A folder for each version.
ROOT = Path(__file__).resolve().parents[1] / "tests" / "consumers" / "data"
#: Examples learnt before a model is stored: a few, and so many that its budget is full.
SIZES = {"small": 4, "full": 30}
_LABELS = ("a", "b", "c")
_BUDGET = 5
_PARAMETERS = {"budget": _BUDGET, "seed": 3, "tolerance": 3.0}


def joint_kernel(pair: Any, other: Any) -> float:
    """Kernel of the structured model: a linear one for each label."""
    (x, y), (z, w) = pair, other
    return float(y == w) * sum(v * z.get(n, 0.0) for n, v in x.items())


def argmax(_x: Any, score: Any, exclude: str | None = None) -> str:
    """Best label other than the excluded one."""
    return max((y for y in _LABELS if y != exclude), key=score)


def _plain(name: str) -> Any:
    kind = MODELS[name]
    known = vars(kind()).keys()
    return kind(**{key: value for key, value in _PARAMETERS.items() if key in known})


#: Model by name: its class's, and for a variant, which is stored full alone, what is special.
_MODELS: dict[str, Callable[[], Any]] = {
    **{name: lambda name=name: _plain(name) for name in MODELS if name not in {"ALMA2", "MIRA"}},
    "ALMA2": ALMA2,
    "ALMA2-projected": lambda: ALMA2(tolerance=0.3),
    "Averaged": lambda: Averaged(LBP(_BUDGET)),
    "Averaged-classes": lambda: Averaged(PassiveAggressive(budget=_BUDGET)),
    "LBP-linear": lambda: LBP(_BUDGET, Linear()),
    "LBP-linear-unit": lambda: LBP(_BUDGET, Linear(normalize=True)),
    "MIRA": MIRA,
    "MIRA-fixed": lambda: MIRA(budget=_BUDGET, cache="fixed"),
    "OneVsRest": lambda: OneVsRest(LBP(_BUDGET)),
    "OneVsRest-apart": lambda: OneVsRest(CKS(_BUDGET)),
    "PassiveAggressive-classes": lambda: PassiveAggressive(budget=_BUDGET),
    "ProjectronPlusPlus-classes": lambda: ProjectronPlusPlus(tolerance=3.0),
    "LBP-quadratic": lambda: LBP(_BUDGET, Polynomial(2)),
    "LBP-rbf": lambda: LBP(_BUDGET, RBF(0.5)),
    "ROMMA-noise": lambda: ROMMA(noise=1.0),
    "Tracker": lambda: Tracker(_BUDGET),
    "Tracker-late-classes": lambda: Tracker(_BUDGET, late=True),
    "Threshold": lambda: Threshold(LBP(_BUDGET), rate=0.2),
    "StructuredProjectron": lambda: StructuredProjectron(joint_kernel, argmax, tolerance=1.0),
}
#: Those of them that learn the three labels; the others whether it is the first one.
_CLASSES = {name for name in _MODELS if name.endswith("-classes")} | {
    *("MIRA", "MIRA-fixed", "MRBP", "OneVsRest", "OneVsRest-apart", "StructuredProjectron")
}


def _drawn() -> list[tuple[dict[str, float], str]]:
    """Draw examples of linear classes that change halfway; values fit into float32."""
    rng = random.Random(5)
    names = [f"f{j}" for j in range(6)]
    rules = [{n: rng.uniform(-1.0, 1.0) for n in names} for _ in _LABELS]
    results = []
    for t in range(60):
        x = {n: rng.randrange(-32, 64) / 32 for n in names if rng.random() < 0.6}
        scores = [sum(rule[n] * v for n, v in x.items()) for rule in rules]
        results.append((x, _LABELS[(scores.index(max(scores)) + t // 30) % 3]))
    return results


def _examples(folder: Path, name: str) -> list[tuple[dict[str, float], Any]]:
    result = json.loads((folder / "examples.json").read_text("utf-8"))
    return [(x, y if name in _CLASSES else y == _LABELS[0]) for x, y in result]


def _score(model: Any, x: dict[str, float]) -> list[float]:
    if isinstance(model, StructuredProjectron):
        return []  # its scores are for the argmax alone
    chances = model.predict_proba_one(x)
    score = getattr(model, "decision_function_one", model.predict_proba_one)(x)
    scores = [score[y] for y in sorted(score)] if isinstance(score, dict) else [score]
    return [float(f"{v:.7g}") for v in scores + [chances[y] for y in sorted(chances)]]


def go_on(folder: Path, name: str, size: str, model: Any) -> dict[str, list[Any]]:
    """Return what a model predicts of the first examples, and as it learns the next ones.

    Parameters
    ----------
    folder
        That of the version, which has the examples.
    name, size
        Which golden it is.
    model
        The model as it was stored.

    Returns
    -------
    dict
        Labels and scores of the first examples, labels predicted of the next ones before each is
        learnt, and scores of the first ones after that.
    """
    examples = _examples(folder, name)
    first, n = [x for x, _ in examples[:5]], SIZES[size]
    result: dict[str, list[Any]] = {
        "labels": [model.predict_one(x) for x in first],
        "scores": [_score(model, x) for x in first],
        "later": [],
    }
    for x, y in examples[n : n + 30]:
        result["later"].append(model.predict_one(x))
        model.learn_one(x, y)
    return result | {"last": [_score(model, x) for x in first]}


def write(folder: Path = ROOT / __version__) -> None:
    """Write what a folder lacks."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (examples := folder / "examples.json").exists():
        examples.write_text(json.dumps(_drawn(), separators=(",", ":")) + "\n", "utf-8")
    for name, make in _MODELS.items():
        for size, n in SIZES.items():
            results, variant = folder / f"{name}-{size}.json", "-" in name
            if results.exists() or (variant and size == "small"):
                continue
            model = make()
            examples_of = _examples(folder, name)
            for x, y in examples_of[:n]:
                model.learn_one(x, y)
            for x, _ in examples_of[n : n + 3]:  # whose labels come later
                model.predict_one(x)
            checkpoint = Checkpoint(model, {("golden", 0): n}, time=0.0)
            results.with_suffix(".drift").write_bytes(to_bytes(checkpoint, allow_pickle=True))
            if size == "full" and not variant:
                results.with_suffix(".pickle").write_bytes(pickle.dumps(model, protocol=5))
            result = go_on(folder, name, size, model)
            results.write_text(json.dumps(result, separators=(",", ":")) + "\n", "utf-8")
            print(results)


if __name__ == "__main__":
    # By its name: what this program itself defines would be pickled as parts of `__main__`, where
    # no later version finds them.
    from tools import golden

    golden.write()
