"""MOA's classifiers, through CapyMOA, as classifiers of River's interface."""

from __future__ import annotations

import importlib.util
import inspect
import math
import shutil
from collections import Counter
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from river.base import Classifier

from drift._checks import check_names
from drift.errors import ParameterError, UnavailableError, needing

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from drift.streams.stream import Stream
    from drift.types import Features, Label

__all__ = ["MOA", "available"]


def available() -> bool:
    """Whether CapyMOA and Java are there."""
    return importlib.util.find_spec("capymoa") is not None and shutil.which("java") is not None


class MOA(Classifier):
    """A classifier of MOA's.

    MOA wants to know features, texts and classes beforehand. It runs in a virtual machine of Java,
    one for all models of a process. A feature that an example lacks is missing. A model that has
    learnt cannot be copied or pickled.

    Parameters
    ----------
    learner
        Class in `capymoa.classifier`.
    features
        Names of the features; beside each its texts, or None where it is a number.
    classes
        The labels.
    parameters
        Of the class. Default: CapyMOA's.
    seed
        Of its random numbers.

    Raises
    ------
    MissingExtraError
        CapyMOA is not installed.
    UnavailableError
        There is no Java.
    ParameterError
        CapyMOA has no such classifier, or it no such parameter.

    References
    ----------
    .. [1] H. M. Gomes, A. Lee, N. Gunasekara, Y. Sun, G. W. Cassales, J. J. Liu, M. Heyden,
       V. Cerqueira, M. Bahri, Y. S. Koh, B. Pfahringer, A. Bifet, "CapyMOA: Efficient machine
       learning for data streams in Python", arXiv:2502.07432 (2025).
    """

    def __init__(
        self,
        learner: str,
        features: Mapping[Hashable, Sequence[str] | None],
        classes: Sequence[Label],
        parameters: Mapping[str, Any] | None = None,
        seed: int = 1,
    ) -> None:
        known = inspect.signature(_class_of(learner)).parameters
        check_names(f"{learner} has no parameter", parameters or {}, known)
        self.learner = learner
        self.features = features
        self.classes = classes
        self.parameters = parameters
        self.seed = seed

    @classmethod
    def of(cls, learner: str, stream: Stream, **parameters: Any) -> MOA:
        """Make one for the features and classes of a stream.

        Parameters
        ----------
        learner
            Class in `capymoa.classifier`.
        stream
            What it is going to learn.
        **parameters
            Of the class, or `seed`.
        """
        texts: dict[Hashable, set[str]] = {}
        for x, _ in stream if stream.categories else ():
            for name, value in x.items():
                if isinstance(value, str):
                    texts.setdefault(name, set()).add(value)
        features = {
            name: sorted(texts[name]) if name in texts else None for name in stream.features
        }
        seed = {"seed": parameters.pop("seed")} if "seed" in parameters else {}
        return cls(learner, features, list(stream.classes), parameters, **seed)

    @property
    def _multiclass(self) -> bool:
        return True

    @cached_property
    def _java(self) -> _Java:
        return _Java(self)

    def learn_one(self, x: Features, y: Label) -> None:
        """Learn an example.

        Parameters
        ----------
        x
            Features.
        y
            One of the classes.
        """
        self._java.learn(x, y)

    def predict_proba_one(self, x: Features, **_: Any) -> dict[Label, float]:
        """Probability of each class; empty before the first example.

        Some of MOA's trees say nothing of some examples: then it is the most frequent class.

        Parameters
        ----------
        x
            Features.
        """
        return self._java.predict(x)

    def __sizeof__(self) -> int:
        java = self.__dict__.get("_java")
        return object.__sizeof__(self) + (java.bytes() if java is not None else 0)


def _class_of(learner: str) -> Any:
    with needing("capymoa", "moa"):
        try:  # CapyMOA starts Java where it is imported
            classifiers = import_module("capymoa.classifier")
        except RuntimeError as error:
            raise UnavailableError(f"MOA does not start ({error}): install Java 17") from error
    try:
        return getattr(classifiers, learner)
    except AttributeError:
        raise ParameterError(f"CapyMOA has no classifier {learner!r}") from None


class _Java:
    """What of a model lives in Java's machine."""

    def __init__(self, model: MOA) -> None:
        names = [str(k) for k in range(len(model.features))]
        texts = {
            name: list(map(str, range(len(some))))
            for name, some in zip(names, model.features.values(), strict=True)
            if some is not None
        }
        self._schema = import_module("capymoa.stream").Schema.from_custom(
            [*names, "class"],
            "class",
            texts | {"class": list(map(str, range(len(model.classes))))},
        )
        self._columns: dict[Any, tuple[int, dict[str, int] | None]] = {
            name: (k, None if some is None else {text: j for j, text in enumerate(some)})
            for k, (name, some) in enumerate(model.features.items())
        }
        self._counts: Counter[Label] = Counter()
        self._classes, self._numbers = model.classes, {y: k for k, y in enumerate(model.classes)}
        core = import_module("capymoa.core")
        self._instance, self._labelled = core.Instance, core.LabeledInstance
        self._runtime = import_module("java.lang").Runtime.getRuntime()
        self._before = 0
        self._before = self.bytes()
        kind, parameters = _class_of(model.learner), dict(model.parameters or {})
        if "random_seed" in inspect.signature(kind).parameters:
            parameters["random_seed"] = model.seed
        self._model = kind(schema=self._schema, **parameters)

    def bytes(self) -> int:
        """Return how much larger Java's heap is than before there was a model."""
        self._runtime.gc()
        used = int(self._runtime.totalMemory()) - int(self._runtime.freeMemory())
        return max(0, used - self._before)

    def _row(self, x: Features) -> Any:
        row = np.full(len(self._columns), math.nan)
        for name, value in x.items():
            column = self._columns.get(name)
            if column is not None and value is not None:
                k, texts = column
                row[k] = value if texts is None else texts.get(value, math.nan)
        return row

    def learn(self, x: Features, y: Label) -> None:
        instance = self._labelled.from_array(self._schema, self._row(x), self._numbers[y])
        self._model.train(instance)
        self._counts[y] += 1

    def predict(self, x: Features) -> dict[Label, float]:
        shares = self._model.predict_proba(self._instance.from_array(self._schema, self._row(x)))
        if shares is None:
            return {y: 1.0 for y, _ in self._counts.most_common(1)}
        return dict(zip(self._classes, shares.tolist(), strict=True))
