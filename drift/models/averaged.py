"""Online to batch: predict with the average of all hypotheses instead of the last one."""

from __future__ import annotations

from collections.abc import Sized
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from drift._checks import check_instance
from drift.errors import ParameterError
from drift.models._template.binary import KernelClassifier
from drift.models._template.kernel_model import KernelModel
from drift.models._template.multiclass import MulticlassKernelClassifier
from drift.models._template.probabilities import logistic, softmax
from drift.models._template.scored import Scored
from drift.models._template.state import Calibrated
from drift.models._template.two_or_more import TwoOrMore
from drift.models._template.wrapper import ModelWrapper
from drift.models.perceptron import Perceptron

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from drift.models._base.rows import Rows
    from drift.models._store.built import Guard
    from drift.models._template.prototypes import Prototypes
    from drift.types import Features, Label

__all__ = ["Averaged"]


class Averaged(Calibrated, ModelWrapper, Scored):
    """The average of a model: it learns as the model does, and scores with the mean hypothesis.

    After ``T`` examples the score is that of ``(f_1 + ... + f_T) / T``, where ``f_t`` is the
    hypothesis that predicted example ``t``. If examples have weights, it is the weighted mean. An
    update takes one more pass over the supports. A score takes as long as the model's.

    Parameters
    ----------
    model
        Any classifier of `drift.models` except wrappers and the `Tracker`; it learns as it would
        alone. To average a binary model for each class, wrap the `Averaged` in `OneVsRest`.

    Attributes
    ----------
    n_mistakes : int
        Mistakes of the model itself, not of the average.
    n_updates : int
        Number of examples that changed the model's hypothesis.

    Raises
    ------
    ParameterError
        If `model` is a wrapper, the `Tracker`, or not a classifier of `drift.models`.

    Notes
    -----
    An evicted support leaves the average, too, so that memory stays within the model's budget.
    Without evictions the average is exact. The score of a second-order model has a positive factor
    that depends on the example. The average leaves it out.

    References
    ----------
    .. [1] N. Cesa-Bianchi, A. Conconi, C. Gentile, "On the generalization ability of on-line
       learning algorithms", IEEE Transactions on Information Theory 50 (2004).

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from drift.models import Averaged, Perceptron
    >>> evaluate.progressive_val_score(
    ...     datasets.Phishing(), Averaged(Perceptron()), metrics.Accuracy()
    ... )
    Accuracy: 89.36%
    """

    _not_copied = frozenset(
        {"_coefficients", "_serials_by_age", "_coefficient_sums", "_mean_coefficients"}
    )
    _compiled_code_predicts = False

    _stored_names: ClassVar = {
        "_total_weight": "_n_examples",
        "_weight_since_update": "_since",
        "_coefficients": "_held",
        "_serials_by_age": "_serials",
        "_coefficient_sums": "_sums",
        "_mean_coefficients": "_weights",
    }

    def __init__(self, model: KernelModel) -> None:
        check_instance("model", model)
        # Not `isinstance`, which a River pipeline passes for the class of its last step.
        if not issubclass(type(model), KernelModel):
            raise ParameterError(
                "model must be a classifier of drift.models, but no wrapper and no Tracker, not "
                f"{type(model).__name__}: put transformers in front of Averaged, and Averaged into "
                "OneVsRest or Threshold"
            )
        super().__init__()
        self.model: KernelModel = model
        self._n_learnt = 0
        self._total_weight = 0.0  # of all examples
        self._weight_since_update = 0.0  # of the examples that the current hypothesis predicted
        # By class index (0 in a binary model) and support, the oldest first: coefficients of the
        # current hypothesis, and the weighted sum of the coefficients of all earlier ones.
        self._coefficients = model._expansion()
        self._coefficient_sums = 0.0 * self._coefficients
        self._serials_by_age = list(model._supports.serials_by_age)
        self._mean_coefficients: Any = None  # coefficients of the average, by class index and slot
        self._binary = self._prototypes is None  # whether the sums are of one hypothesis

    @property
    def _binary_model(self) -> KernelClassifier:
        """The model, as one with hooks for two classes."""
        assert isinstance(self.model, KernelClassifier)  # noqa: S101
        return self.model

    @property
    def _has_binary_hooks(self) -> bool:  # type: ignore[override]  # as the model does
        return self.model._has_binary_hooks

    @property
    def _multiclass(self) -> bool:
        return bool(self.model._multiclass)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"model": Perceptron()}

    # --- one example ---------------------------------------------------------------------------

    @property
    def _guard(self) -> Guard:  # type: ignore[override]
        return self.model._guard

    def _share_guard(self, guard: Guard) -> None:
        self.model._share_guard(guard)

    def learn_one(self, x: Features, y: Label, w: float = 1.0) -> None:
        """Learn one example, as the model does.

        Parameters
        ----------
        x, y, w
            Features, label and weight, as for the model.
        """
        if w.__class__ is float and w == 1.0:
            self._learn(x, y)  # an update, which needs no other guard
        else:
            super().learn_one(x, y, w)

    def _predict_learn(self, x: Features, y: Label) -> Label:
        predicted = self.predict_one(x)
        self._learn(x, y)
        return predicted

    def _learn(self, x: Features, y: Label) -> None:
        self._guard.update(self, self._learn_and_calibrate, x, y)

    def _learn_and_calibrate(self, x: Features, y: Label) -> None:
        """Let the model learn an example, and the calibration every sixteenth example."""
        scores = None
        if self._n_learnt % 16 == 0:  # the average's score takes as long as a prediction
            self._read(x)
            scores = self._score()
        self._learn_and_average(self.model.learn_one, x, y, self._weight)
        classes = self._prototypes
        if isinstance(scores, float) and classes is None:
            self._calibration.learn(scores, self._binary_model._sign(y), self._weight)
        elif isinstance(scores, Sized) and classes and classes.index_of(y) < len(scores):
            self._calibration.learn_classes(scores, classes.index_of(y), self._weight)

    def _rows_compiled(
        self,
        rows: Rows | list[Features],
        predictions: list[Label],
        labels: list[Label] | None,
        checked: Any,
    ) -> bool:
        if labels is None or checked is None or not self._binary_model._score_is_sum:
            return False  # without signs the model has more than two classes
        done = len(predictions)
        try:
            self._guard.update(
                self, self._learn_without_updates, rows, predictions, labels, checked
            )
        except Exception:  # noqa: BLE001 - Python learns up to the row that fails, and raises it again
            del predictions[done:]
            return False
        return True

    def _learn_without_updates(
        self,
        rows: Rows | list[Features],
        predictions: list[Label],
        labels: list[Label],
        signs: NDArray[np.int8],
    ) -> None:
        """Learn rows up to the first that updates the model or the calibration."""
        done, model = len(predictions), self._binary_model
        stop = done + -self._n_learnt % 16
        model._supports.learn_rows_with(
            rows, predictions, labels, signs, model, stop=stop, until_update=True
        )
        for _ in range(done, len(predictions)):
            self._count_example()

    def _learn_sign(self, x: Features, sign: float) -> float:
        """Learn one example as a part of `OneVsRest`."""
        learn, weight = self._binary_model._learn_sign, self._weight
        score: float = self._guard.update(
            self, self._learn_and_average, self.model._with_weight, weight, learn, x, sign
        )
        return score

    def _learn_and_average(self, learn: Callable[..., Any], *example: Any) -> Any:
        """Let the model learn an example, and count the hypothesis that predicted it."""
        updates = self.model.n_updates
        result = learn(*example)
        self._count_example()
        classes = self._prototypes
        # An example of a new class need not be an update.
        before = self._coefficients
        if self.model.n_updates != updates or (classes and len(classes) != len(before)):
            self._coefficient_sums = self._coefficient_sums + self._weight_since_update * before
            self._weight_since_update = 0
            self._carry_sums_over()
        return result

    def _count_example(self) -> None:
        """Count the hypothesis that predicted an example."""
        self._n_learnt += 1
        self._total_weight += self._weight
        self._weight_since_update += self._weight
        self._mean_coefficients = None

    def _carry_sums_over(self) -> None:
        """Give each support of the model's new hypothesis its sum so far, 0 for new ones."""
        before, now = self._serials_by_age, list(self.model._supports.serials_by_age)
        self._coefficients = self.model._expansion()
        sums = self._coefficient_sums
        if self._binary and isinstance(self.model, TwoOrMore):
            self._binary = self.model._prototypes is None
            if not self._binary:  # two classes no longer share a hypothesis
                sums = np.zeros((len(self._coefficients), len(before)))
                for k, share in self.model._halves.items():
                    sums[k] = share * self._coefficient_sums[0]
        self._coefficient_sums, self._serials_by_age = np.zeros(self._coefficients.shape), now
        _, old, new = np.intersect1d(before, now, assume_unique=True, return_indices=True)
        self._coefficient_sums[: len(sums), new] = sums[:, old]

    @property
    def _safe_norm2(self) -> float:  # type: ignore[override]
        return self.model._safe_norm2

    def _read(self, x: Features) -> None:
        self.model._read(x)

    def _score(self) -> Any:
        supports = self.model._supports
        if self._mean_coefficients is None:
            mean = np.zeros((len(self._coefficients), supports.capacity))
            total = self._coefficient_sums + self._weight_since_update * self._coefficients
            mean[:, supports.slots_by_age] = total / (self._total_weight or 1.0)
            self._mean_coefficients = mean
        scores, error_bounds = np.zeros((2, len(self._mean_coefficients)))
        if len(supports):
            supports.class_scores(self._mean_coefficients, scores, error_bounds)
        return scores if self._prototypes is not None else float(scores[0])

    @property
    def _prototypes(self) -> Prototypes | None:
        model = self.model
        return model._prototypes if isinstance(model, MulticlassKernelClassifier) else None

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_weights": None}  # the mean coefficients

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        # A model stored before examples were counted has only the sum of their weights.
        self.__dict__.setdefault("_n_learnt", int(self._total_weight))

    # --- what labels and scores mean -----------------------------------------------------------

    def _decision(self, score: Any) -> Any:
        return score if self._prototypes is None else self.model._decision(score)

    def _check_labels(self, labels: Sequence[Label]) -> Any:
        return self.model._check_labels(labels)

    def _label_of(self, score: Any) -> Label:
        return self.model._label_of(score)

    def _probabilities(self, score: Any) -> dict[Label, float]:
        scaled = score * self._calibration.score_factor
        if self._prototypes is not None:
            return softmax(self._prototypes.labels, scaled)
        return logistic(self._binary_model._labels, scaled)

    @property
    def n_mistakes(self) -> int:
        """Mistakes of the model itself while learning."""
        return self.model.n_mistakes

    @property
    def n_updates(self) -> int:
        """Number of examples that changed the model's hypothesis."""
        return self.model.n_updates

    @property
    def n_supports(self) -> int:
        """Number of supports."""
        return self.model.n_supports
