"""What models are made of, and texts: each model gets them in the form that it can use best."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np
from river.base import Base, Classifier
from river.compose import Pipeline, SelectType
from river.linear_model import LogisticRegression, SoftmaxRegression
from river.naive_bayes import GaussianNB, MultinomialNB
from river.neighbors import KNNClassifier, LazySearch
from river.preprocessing import OneHotEncoder
from scipy.special import logsumexp

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from drift.types import Features, Label

__all__ = ["MOST_ZEROS", "MixedNB", "names_of", "parameters_of", "parts", "taking_texts"]

#: Zeros cost time in each example: beyond so many different texts they are left out.
MOST_ZEROS = 1_000


def names_of(part: Base) -> set[str]:
    """Names of a model's parameters."""
    return set(inspect.signature(type(part).__init__).parameters)


def parameters_of(part: Base) -> dict[str, Any]:
    """Parameters by name; of a pipeline, its steps."""
    if isinstance(part, Pipeline):
        return dict(part.steps)
    return {name: getattr(part, name, None) for name in sorted(names_of(part) - {"self"})}


def parts(model: Any) -> Iterator[Base]:
    """A model, and models among its parameters, in lists and dicts, too."""
    if isinstance(model, Base):
        yield model
        model = parameters_of(model)
    if isinstance(model, Mapping):
        model = list(model.values())
    if isinstance(model, Sequence) and not isinstance(model, str | bytes):
        for part in model:
            yield from parts(part)


def taking_texts(
    model: Any, examples: Sequence[tuple[Features, Label]], categories: int = 0
) -> Any:
    """Return a model that takes examples with texts among their features.

    ===================================  ==========================================================
    model, or the last step of one       what it gets
    ===================================  ==========================================================
    that learns texts, as River's trees  texts as they are; steps before it get the numbers
    and their ensembles do
    River's logistic and softmax         a 1 for each text and zeros for the others of its column,
    regression                           through the steps before it: a scaler, say
    River's `GaussianNB`                 texts as they are, as `MixedNB`
    any other                            a 1 for each text, past the steps before it: a scaler that
                                         sees nothing but ones makes zeros of them
    ===================================  ==========================================================

    Gradient steps at a fixed rate need features of one variance; kernels, margins and distances
    suffer where those of rare texts are large. River's `KNNClassifier` searches exactly here: the
    graph that it else searches loses neighbours where many are equally far.

    Parameters
    ----------
    model
        Of River's interface, which has learnt nothing; it is left so.
    examples
        A few, to try the model on. One that cannot learn them without their texts either is
        returned as it is.
    categories
        How many different texts there are. Beyond `MOST_ZEROS` nothing gets zeros.

    Examples
    --------
    >>> from drift.experiments.comparison.categories import taking_texts
    >>> from river.linear_model import LogisticRegression
    >>> from river.preprocessing import StandardScaler
    >>> from river.tree import HoeffdingTreeClassifier
    >>> examples = [({"town": "Rome", "price": 2.0}, True), ({"town": "Oslo", "price": 3.0}, False)]
    >>> tree = HoeffdingTreeClassifier()
    >>> taking_texts(tree, examples) is tree
    True
    >>> model = taking_texts(StandardScaler() | LogisticRegression(), examples)
    >>> list(model.steps)
    ['TransformerUnion', 'StandardScaler', 'LogisticRegression']
    """
    if not isinstance(model, Base):  # it has no clone to try, nor a place in a pipeline
        return model
    if _takes(model, examples) or not _takes(model, [(_parted(x)[0], y) for x, y in examples]):
        return model
    front, last = list[Any](), model
    while isinstance(last, Pipeline):  # the last step of one may be one
        *steps, last = last.steps.values()
        front += steps
    if isinstance(last, GaussianNB):
        last = MixedNB(last)
    if isinstance(last, KNNClassifier):
        last = last.clone({"engine": LazySearch(window_size=1000)})
    numbers: Any = SelectType(Number)
    texts: Any = SelectType(str)
    if _takes(last, examples):
        return (_before(numbers, front) + texts) | last
    if categories <= MOST_ZEROS and any(map(_is_regression, parts(last))):
        return _before(numbers + (texts | OneHotEncoder()), front) | last
    return (_before(numbers, front) + (texts | OneHotEncoder(drop_zeros=True))) | last


def _before(first: Any, steps: Iterable[Any]) -> Any:
    for step in steps:
        first |= step
    return first


def _is_regression(part: Any) -> bool:
    return type(part) in {LogisticRegression, SoftmaxRegression}


def _takes(model: Any, examples: Sequence[tuple[Features, Label]]) -> bool:
    """Whether a model learns and predicts these examples; it is tried on a clone."""
    trial = model.clone()
    try:
        for x, y in examples:
            trial.learn_one(x, y)
            trial.predict_one(x)
    except Exception:  # noqa: BLE001 - each library refuses texts by an error of its own
        return False
    return True


class MixedNB(Classifier):
    """Naive Bayes over numbers and texts: River's `GaussianNB` beside its `MultinomialNB`.

    River's naive Bayes classifiers take numbers alone, and an indicator of a category that a class
    always has, or never, has no variance for `GaussianNB`.

    Parameters
    ----------
    numbers
        What learns the numbers; the texts are counted by class, smoothed by one.

    Examples
    --------
    >>> from drift.experiments.comparison.categories import MixedNB
    >>> model = MixedNB()
    >>> for town, price, y in [("Rome", 1.0, True), ("Oslo", 1.0, False), ("Rome", 2.0, True)]:
    ...     model.learn_one({"town": town}, y)
    >>> model.predict_one({"town": "Oslo"})
    False
    """

    def __init__(self, numbers: GaussianNB | None = None) -> None:
        self.numbers: Any = numbers
        if numbers is None:
            self.numbers = GaussianNB()
        self._texts: Any = MultinomialNB()

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: Features, y: Label) -> None:
        """Learn an example."""
        numbers, texts = _parted(x)
        self.numbers.learn_one(numbers, y)
        self._texts.learn_one(texts, y)

    def predict_proba_one(self, x: Features, **kwargs: Any) -> dict[Label, float]:
        """Probability of each class; empty before the first example."""
        numbers, texts = _parted(x)
        # A text that no example had tells nothing.
        known = {name: 1 for name in texts if name in self._texts.feature_counts}
        by_texts = self._texts.joint_log_likelihood(known)
        # Both have the class's prior in them, which counts once.
        logs = {
            label: log + by_texts[label] - np.log(self._texts.p_class(label))
            for label, log in self.numbers.joint_log_likelihood(numbers).items()
        }
        total = logsumexp(list(logs.values())) if logs else 0.0
        return {label: float(np.exp(log - total)) for label, log in logs.items()}


def _parted(x: Features) -> tuple[dict[Hashable, Any], dict[Hashable, int]]:
    """Numbers, and an indicator of each text."""
    texts: dict[Hashable, int] = {
        (name, value): 1 for name, value in x.items() if isinstance(value, str)
    }
    return {name: value for name, value in x.items() if not isinstance(value, str)}, texts
