"""The models that are measured: drift's by name, and River, scikit-learn and Vowpal Wabbit.

Where a choice had to be made it is in the peer's favour: scikit-learn gets rows of a sparse matrix
and no dicts, Vowpal Wabbit predicts and learns in one call.
"""

from __future__ import annotations

import importlib
import inspect
from typing import TYPE_CHECKING, Any

import numpy as np
from river import linear_model, optim

from benchmarks.timing import Timed
from drift.models import MODELS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from benchmarks.timing import Example


def has_budget(name: str) -> bool:
    """Whether a model of drift's has a parameter that bounds its supports."""
    return "budget" in inspect.signature(MODELS[name]).parameters


def made(name: str, size: int, **parameters: Any) -> Any:
    """Make a model of drift's, of that budget if it has one."""
    known = inspect.signature(MODELS[name]).parameters
    wanted = {"budget": size, "seed": 0, "cache": "fixed"} | parameters
    return MODELS[name](**{key: value for key, value in wanted.items() if key in known})


#: River's that learn dicts, linear.
LINEAR: dict[str, Callable[[], Any]] = {
    f"River {name}": getattr(linear_model, name)
    for name in ("LogisticRegression", "Perceptron", "PAClassifier", "ALMAClassifier")
}


def logistic_regression(rate: float) -> Any:
    """River's LogisticRegression with another learning rate than its 0.01."""
    return linear_model.LogisticRegression(optimizer=optim.SGD(rate))


def floor(model: Any, examples: Sequence[Example]) -> Timed:
    """Look up the names that a model's supports hold: no learner of dicts can do without."""
    importlib.import_module("pyximport").install(language_level=3, inplace=False)
    walk = importlib.import_module("benchmarks.floor").walk
    words = dict.fromkeys(word for x, _ in model.supports for word in x)
    vocabulary = {word: number for number, word in enumerate(words)}

    def run() -> None:
        for x, _ in examples:
            walk(x, vocabulary)  # predict_one is given a dict and must read it,
            walk(x, vocabulary)  # and so is learn_one

    return Timed(lambda: run, len(examples))


def vowpal_wabbit(examples: Iterable[Example]) -> int:
    """Return the mistakes of Vowpal Wabbit's logistic regression through its Python package."""
    workspace = importlib.import_module("vowpalwabbit").Workspace(
        "--loss_function logistic --quiet"
    )
    wrong = 0
    for x, y in examples:
        example = workspace.example({"f": [(str(name), value) for name, value in x.items()]})
        example.set_label_string("1" if y else "-1")
        workspace.learn(example)  # leaves the prediction made before
        wrong += (example.get_simplelabel_prediction() > 0.0) != y
        workspace.finish_example(example)
    return wrong


def scikit_learn(sampler: str, size: int, gamma: float, rows: Any, labels: Any) -> int:
    """Return the mistakes of SGDClassifier, in blocks of 100 rows, on features of a kernel.

    The features are fitted to the first 300 rows.
    """
    approximation = importlib.import_module("sklearn.kernel_approximation")
    linear = importlib.import_module("sklearn.linear_model")
    maker = getattr(approximation, sampler)(gamma=gamma, n_components=size, random_state=1)
    maker.fit(rows[:300])
    classifier, wrong = linear.SGDClassifier(random_state=1), 0
    for start in range(0, len(labels), 100):
        part = slice(start, start + 100)
        features = maker.transform(rows[part])
        if start:
            wrong += int((classifier.predict(features) != labels[part]).sum())
        classifier.partial_fit(features, labels[part], classes=np.array([False, True]))
    return wrong
