"""The other side: River, scikit-learn and Vowpal Wabbit, each by its own rules.

Where a choice had to be made it is in the peer's favour: scikit-learn gets rows of a sparse matrix
and no dicts, Vowpal Wabbit predicts and learns in one call.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import pyximport
from river import feature_extraction, linear_model, optim

from benchmarks.data import Missing
from benchmarks.timing import Contender

pyximport.install(language_level=3, inplace=False)
from benchmarks.floor import walk  # type: ignore[import-not-found]  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from benchmarks.data import Stream

REFERENCE = "River LogisticRegression"

#: Models that learn dicts, linear.
LINEAR: dict[str, Callable[[], Any]] = {
    REFERENCE: linear_model.LogisticRegression,
    "River Perceptron": linear_model.Perceptron,
    "River PAClassifier": linear_model.PAClassifier,
    "River ALMAClassifier": linear_model.ALMAClassifier,
}


def logistic_regression(rate: float) -> Any:
    """River's LogisticRegression with another learning rate than its 0.01."""
    return linear_model.LogisticRegression(optimizer=optim.SGD(rate))


def river_sampler(gamma: float, components: int = 100, rate: float = 0.1) -> Any:
    """River's random Fourier features in front of its logistic regression."""
    sampler = feature_extraction.RBFSampler(gamma=gamma, n_components=components, seed=1)
    return sampler | logistic_regression(rate)


def floor(model: Any, examples: Sequence[tuple[dict[Any, float], bool]]) -> Contender:
    """Look up the names that a model's supports hold: no learner of dicts can do without."""
    words = dict.fromkeys(word for x, _ in model.supports for word in x)
    vocabulary = {word: number for number, word in enumerate(words)}

    def run() -> None:
        for x, _ in examples:
            walk(x, vocabulary)  # predict_one is given a dict and must read it,
            walk(x, vocabulary)  # and so is learn_one

    return Contender(lambda: run, len(examples))


class VowpalWabbit:
    """Vowpal Wabbit through its Python package."""

    def __init__(self, options: str) -> None:
        try:
            package = importlib.import_module("vowpalwabbit")
        except ImportError:
            raise Missing("vowpalwabbit is not installed (extra: bench)") from None
        self.workspace = package.Workspace(f"{options} --quiet")

    def step(self, x: dict[Any, float], y: bool) -> bool:  # noqa: FBT001 - a label
        """Predict, then learn, in one call: `learn` leaves the prediction made before."""
        example = self.workspace.example({"f": [(str(k), v) for k, v in x.items()]})
        example.set_label_string("1" if y else "-1")
        self.workspace.learn(example)
        score: float = example.get_simplelabel_prediction()
        self.workspace.finish_example(example)
        return score > 0.0

    def run(self, examples: Iterable[tuple[dict[Any, float], bool]]) -> int:
        """Mistakes over a stream."""
        return sum(self.step(x, y) != y for x, y in examples)


VW = {
    "VW linear": "--loss_function logistic",
    "VW --ksvm": "--ksvm --kernel poly --degree 4 --l2 0.001 --reprocess 1",
}


class ScikitLearn:
    """SGDClassifier on features that approximate a kernel, learnt in blocks of rows."""

    def __init__(self, sampler: str, gamma: float, sample: Stream, components: int = 300) -> None:
        try:
            approximation = importlib.import_module("sklearn.kernel_approximation")
            linear = importlib.import_module("sklearn.linear_model")
        except ImportError:
            raise Missing("scikit-learn is not installed (extra: bench)") from None
        maker = getattr(approximation, sampler)
        self.sampler = maker(gamma=gamma, n_components=components, random_state=1).fit(sample.X)
        self.classifier = linear.SGDClassifier(random_state=1)

    def run(self, blocks: Iterable[tuple[Any, Any]]) -> int:
        """Mistakes over blocks of rows, each predicted, then learnt."""
        wrong = 0
        for rows, labels in blocks:
            features = self.sampler.transform(rows)
            if hasattr(self.classifier, "coef_"):
                wrong += int((self.classifier.predict(features) != labels).sum())
            self.classifier.partial_fit(features, labels, classes=[False, True])
        return wrong


def blocks(stream: Stream, size: int) -> list[tuple[Any, Any]]:
    """Cut a stream into blocks of rows."""
    starts = range(0, len(stream), size)
    return [(stream.X[s : s + size], stream.y[s : s + size]) for s in starts]
