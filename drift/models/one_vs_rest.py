"""One binary model for each class, over supports that they share where they can."""

from __future__ import annotations

import math
from array import array
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from drift._checks import check_instance
from drift.errors import ParameterError
from drift.models._base.labels import check_class, check_classes
from drift.models._store.classes import ClassHypotheses
from drift.models._store.shared_supports import SharedStore, SharedSupports
from drift.models._template.probabilities import softmax
from drift.models._template.scored import Scored
from drift.models._template.state import Calibrated, Guarded
from drift.models._template.wrapper import ModelWrapper
from drift.models.perceptron import Perceptron

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from drift.models._base.rows import Rows
    from drift.models._store.hypothesis import Hypothesis
    from drift.models._store.supports import SupportSet
    from drift.models._template.binary import KernelClassifier
    from drift.models._template.binary_model import BinaryModel
    from drift.types import Features, Label

__all__ = ["OneVsRest"]


class OneVsRest(Calibrated, Guarded, ModelWrapper, Scored):
    """One binary model for each class, trained against all others.

    The prediction is the class whose model has the highest score. If several are equal, it is the
    class that was seen first. Before anything is learnt, it is None. Labels are hashable, and
    classes may appear at any time: the model of a new class starts with its first example.

    Most first-order models share one store. An example is then stored once, and its kernel with the
    supports is computed once for all classes. Other models have a store each.

    Parameters
    ----------
    model
        Any binary classifier of `drift.models`; each class gets a clone, with the same seed.

    Attributes
    ----------
    models : dict
        Model by label, in the order of their first examples.
    n_mistakes : int
        Number of examples learnt whose label did not score above all others before the update.

    Raises
    ------
    ParameterError
        If `model` is not a binary classifier of `drift.models`.

    Notes
    -----
    River's ``multiclass.OneVsRestClassifier`` compares normalised probabilities, learns a batch
    class by class, and shares no store.

    References
    ----------
    .. [1] Y. Li, P. M. Long, "The relaxed online maximum margin algorithm", Machine Learning 46
       (2002), section 5.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from drift.kernels import RBF
    >>> from drift.models import LBP, OneVsRest
    >>> model = preprocessing.StandardScaler() | OneVsRest(LBP(budget=50, kernel=RBF(0.2)))
    >>> segments = datasets.ImageSegments().take(500)
    >>> evaluate.progressive_val_score(segments, model, metrics.Accuracy())
    Accuracy: 78.16%
    """

    _multiclass = True

    def __init__(self, model: BinaryModel) -> None:
        check_instance("model", model)
        # Not `isinstance`, which a River pipeline passes for the class of its last step.
        if not issubclass(type(model), Scored) or not model._has_binary_hooks:
            raise ParameterError(
                f"model must be a binary classifier of drift.models, not {type(model).__name__}: "
                "put transformers in front of OneVsRest; multiclass models need no wrapper, "
                "and for other models there is river.multiclass.OneVsRestClassifier"
            )
        super().__init__()
        self.model: BinaryModel = model
        self.models: dict[Label, BinaryModel] = {}
        self.n_mistakes = 0
        self._shared: SharedStore | None = None

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"model": Perceptron()}

    # --- one example ---------------------------------------------------------------------------

    def _read(self, x: Features) -> None:
        if self._shared is not None:
            self._shared.read(x)
            return
        self.model._read(x)
        for model in self.models.values():
            model._read(x)

    @property
    def _safe_norm2(self) -> float:  # type: ignore[override]
        return self.model._safe_norm2

    @property
    def _scores_at_once(self) -> bool:
        """Whether the shared store scores the point for all classes at once."""
        return self.model._shares_supports and self.model._score_is_sum

    def _score(self) -> Any:
        if self._shared is not None and self.model._score_is_sum:
            return self._shared.example_scores()[0] * self._coefficient_factors()
        return np.array([model._decision(model._score()) for model in self.models.values()])

    def _coefficient_factors(self) -> array[float]:
        """Factor of each class's coefficients in the shared store."""
        models: Any = self.models.values()
        return array("d", [model._supports.coefficient_factor for model in models])

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for model in self.models.values():
            model._share_guard(self._guard)

    def _predict_learn(self, x: Features, y: Label) -> Label:
        check_class(y)
        self._read(x)
        scores = self._score()
        predicted = self._label_of(scores)
        if y in self.models:
            self._learn_known_class(x, y, scores)
        else:
            self._guard.update(self, self._learn_new_class, x, y)
        return predicted

    def _learn_new_class(self, x: Features, y: Label) -> None:
        """Learn the first example of a class, within an update."""
        self.models[y] = self._new_model()
        self._read(x)
        self._learn_known_class(x, y, self._score())

    def _learn_known_class(self, x: Features, y: Label, scores: Any) -> None:
        """Learn an example by the models that it may change, within an update if there are any."""
        signs = [1.0 if label == y else -1.0 for label in self.models]
        k = signs.index(1.0)
        rivals = [score for c, score in enumerate(scores.tolist()) if c != k]
        margin = self.model._update_margin if self._scores_at_once else math.inf
        mistake = bool(scores[k] <= max(rivals, default=0.0))
        examples = zip(self.models.values(), signs, scores.tolist(), strict=True)
        changing = [(model, sign) for model, sign, score in examples if not sign * score > margin]
        if mistake or changing:
            self._guard.update(self, self._update_models, x, changing, scores, k, int(mistake))
        else:
            self._calibration.learn_classes(scores, k, self._weight)

    def _update_models(
        self,
        x: Features,
        changing: list[tuple[BinaryModel, float]],
        scores: Any,
        k: int,
        n_mistakes: int,
    ) -> None:
        """Count a mistake, if any, and let each model learn the example with its sign."""
        self._calibration.learn_classes(scores, k, self._weight)
        self.n_mistakes += n_mistakes
        for model, sign in changing:
            model._with_weight(self._weight, model._learn_sign, x, sign)

    def _new_model(self) -> BinaryModel:
        """Make the model of a new class, over the shared store if its hooks allow that."""
        new_model = self.model.clone()
        new_model._share_guard(self._guard)
        if not new_model._shares_supports:
            return new_model
        model = cast("KernelClassifier", new_model)  # no other one sets that flag
        supports = model._supports
        if self._shared is None:
            self._shared = SharedStore(supports.kernel, wide=model._wide)
        shared: Hypothesis = SharedSupports(self._shared, supports.budget)
        model._supports = cast("SupportSet", shared)  # its hooks use no more than a Hypothesis
        model._share_guard(self._guard)
        for x, coefficient in supports:  # with `bias`, a model starts with a support
            model._supports.read(x)
            model._supports.add(x, coefficient)
        return model

    def _rows_compiled(
        self,
        rows: Rows | list[Features],
        predictions: list[Label],
        labels: list[Label] | None,
        checked: Any,
    ) -> bool:
        margin = self.model._new_example_margin
        if not self._scores_at_once or (labels and margin == math.inf):
            return False
        if self._shared is None:  # before the first class
            return True
        factors = self._coefficient_factors()
        indices = {label: c for c, label in enumerate(self.models)}
        matrix = self._shared.coefficients.matrix[: len(factors)]
        classes = ClassHypotheses(
            indices,
            matrix,
            factors,
            self._calibration,
            margin,
            repeats_may_update=self.model._update_margin > margin,
        )
        self._shared.store.learn_class_rows_until_update(rows, predictions, labels, classes)
        return True

    def _check_labels(self, labels: Sequence[Label]) -> None:
        check_classes(labels)

    # --- what scores mean ----------------------------------------------------------------------

    def _decision(self, score: Any) -> dict[Label, float]:
        return dict(zip(self.models, score.tolist(), strict=True))

    def _label_of(self, score: Any) -> Label:
        return list(self.models)[int(score.argmax())] if len(score) else None

    def _probabilities(self, score: Any) -> dict[Label, float]:
        return softmax(list(self.models), score * self._calibration.score_factor)

    @property
    def n_supports(self) -> int:
        """Number of supports; one that several classes hold in a shared store counts once."""
        if self._shared is not None:
            return int((self._shared.users > 0).sum())
        models = list(self.models.values())  # copied first: another thread may add a class
        return sum(model.n_supports for model in models)
