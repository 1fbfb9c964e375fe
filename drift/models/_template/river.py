"""River's contract around every model: one example, batches, predictions, probabilities.

A model defines how it learns one example and what a score means. Everything else is here: the
public methods and their docstrings.
"""

from __future__ import annotations

import copy
import inspect
import math
from abc import abstractmethod
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from river import base

from drift._checks import counted, weight_of
from drift._format import FORMAT, check_format
from drift.errors import CheckpointError, DriftError, ParameterError
from drift.models import _template
from drift.models._base.guard import Part, alone
from drift.models._base.labels import UNSEEN
from drift.models._state import codec
from drift.models._store import built

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from numpy.typing import NDArray

    from drift.models._base.rows import Rows
    from drift.models._store.built import Calibration, Guard
    from drift.models._template.batches import Table
    from drift.types import Features, Label

__all__ = [
    "ONE",
    "Calibrated",
    "Guarded",
    "ModelWrapper",
    "OnlineClassifier",
    "Scored",
    "Stored",
    "check_probabilities",
]

#: Weight of examples without one: the same object, which is compared by `is`.
ONE = 1.0


class ModelWrapper:
    """A model around another one, which its repr shows, as River's wrappers do."""

    model: Any

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.model})"

    def __repr__(self) -> str:
        inner = repr(self.model).replace("\n", "\n  ")
        return f"{type(self).__name__} (\n  model={inner}\n)"


def check_probabilities(model: Any) -> None:
    """Refuse a model, or a pipeline that ends in one, that gives no probabilities."""
    while isinstance(steps := getattr(model, "steps", None), dict):
        *_, model = steps.values()
    given = getattr(type(model), "predict_proba_one", None)
    if given is None or given is base.Classifier.predict_proba_one:
        raise ParameterError(
            f"{type(model).__name__} gives no probabilities: take a classifier with "
            "predict_proba_one, as all of drift.models have it"
        )


class _Fixed:
    """A parameter that is set once: the objects built from it would not change with it.

    Without a `__get__`, reading it is reading the model's own attribute.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __set__(self, model: Any, value: object) -> None:
        known = vars(model)
        if self._name in known and known[self._name] is not value:
            kind = type(model).__name__
            raise ParameterError(
                f"{self._name} of a {kind} is fixed once the model is built: make another one, "
                f"{kind}({self._name}={value!r:.80}) or model.clone({{{self._name!r}: ...}})"
            )
        known[self._name] = value


class _FixedOrDefault(_Fixed):
    """A `_Fixed` with a default, for states of earlier versions, which lack the parameter."""

    def __init__(self, name: str, default: object) -> None:
        super().__init__(name)
        self._default = default

    def __get__(self, model: Any, kind: type) -> object:
        return self._default if model is None else vars(model).get(self._name, self._default)


class Stored(Part):
    """A model whose stored state has a format version."""

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in self.__dict__.items() if name != "_features"}
        return state | {"_format": FORMAT}

    def __setstate__(self, state: dict[str, Any]) -> None:
        check_format(f"this {type(self).__name__}", state.get("_format", FORMAT - 1))
        for name, value in state.items():
            if name != "_format":
                setattr(self, name, value)  # interns the name, as unpickling does by itself


class Guarded(Stored):
    """A model with a guard, which is not part of its state: a copy gets a new one."""

    def __init__(self) -> None:
        super().__init__()
        self._guard: Guard = built.Guard()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_guard"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._guard = built.Guard()


class Calibrated(Stored):
    """A model with its own calibration, because no single store produces its scores."""

    def __init__(self) -> None:
        super().__init__()
        self._calibration = built.Calibration()

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_calibration": self._calibration.numbers()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._calibration = built.Calibration(*state["_calibration"])


class OnlineClassifier(base.MiniBatchClassifier, Stored):
    """River's contract, for models with any scores and labels.

    While a thread uses a model, others get RuntimeError. Its parameters are fixed: River's `clone`
    makes a model with others.
    """

    #: Weight of the example that is being learnt, for the hooks; `_run_weighted` sets it.
    _weight: float = 1.0
    #: The features of the last batch that was learnt. Copies have none: a batch leaves the same
    #: state as its rows one by one.
    _features: range | frozenset[Hashable] = frozenset()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__.startswith(__package__):
            return  # a model may lack a parameter of its template
        for name in list(inspect.signature(cls).parameters):
            known = inspect.getattr_static(cls, name, _Fixed)
            if known is _Fixed:
                setattr(cls, name, _Fixed(name))
            elif not hasattr(known, "__set__"):
                setattr(cls, name, _FixedOrDefault(name, known))

    # --- hooks ---------------------------------------------------------------------------------

    #: Whether a prediction changes the model, so that a batch is checked before the first one.
    _counts_predictions: bool = False
    #: An example of plain numbers is never refused if its sum of squares is at most this, so that
    #: batches need not check it.
    _harmless: float = 0.0
    #: Excludes other threads, and undoes an update that fails.
    _guard: Guard

    @abstractmethod
    def _read(self, x: Features) -> None:
        """Read an example into the point, or refuse it; the hypothesis does not change."""

    @abstractmethod
    def _score(self) -> Any:
        """Score of the point, as predictions and updates use it."""

    @abstractmethod
    def _learn(self, x: Features, y: Label) -> Label:
        """Learn an example, or refuse it; return the prediction before that."""

    def _learn_only(self, x: Features, y: Label) -> Label:
        """Learn as `_learn` does, where nobody asks for the prediction."""
        return self._learn(x, y)

    @abstractmethod
    def _check_labels(self, labels: Sequence[Label]) -> Any:
        """Refuse a batch in which a label cannot be learnt after the earlier ones.

        The result is passed to `_run_rows`; the model does not change.
        """

    @abstractmethod
    def _label_of(self, score: Any) -> Label:
        """Label predicted by a score."""

    @abstractmethod
    def _probabilities(self, score: Any) -> dict[Label, float]:
        """Probability by label."""

    def _decision(self, score: Any) -> Any:
        """Value of `decision_function_one` for a score; None without any."""
        return None

    def _run_batch(
        self,
        rows: Rows | list[Features],
        predictions: list[Label],
        run: Callable[[], bool] | None,
        step: Callable[[int, Features], Label],
    ) -> None:
        """Append a prediction for each row, by `run` as far as it goes, then by `step`."""
        while len(predictions) < len(rows):
            if run is not None and not run():
                run = None
            if (i := len(predictions)) < len(rows):
                predictions.append(step(i, rows[i]))

    def _run_rows(
        self,
        rows: Rows | list[Features],
        predictions: list[Label],
        labels: list[Label] | None,
        checked: Any,
    ) -> bool:
        """Run examples without weights in compiled code; stop before one that needs Python.

        It starts at the first row without a prediction, and appends predictions. `checked` is the
        result of `_check_labels`; without labels nothing is learnt. Returns whether to call this
        again once Python has run that row.
        """
        return False

    def _score_rows(self, rows: Rows | list[Features], scores: list[Any]) -> None:
        """Append the value of `_score` for each row."""
        for i in range(len(rows)):
            self._read(rows[i])
            scores.append(self._score())

    @alone
    def clone(
        self,
        new_params: dict[str, Any] | None = None,
        include_attributes: bool = False,  # noqa: FBT001, FBT002 - River's signature
    ) -> Self:
        """Return an untrained model with the same or other parameters.

        Parameters
        ----------
        new_params
            Parameters to change.
        include_attributes
            Whether to copy the trained state, too.

        Returns
        -------
        OnlineClassifier
            The clone.

        Raises
        ------
        ParameterError
            If both are given: a trained state belongs to its parameters.
        """
        if not include_attributes:
            return super().clone(new_params)
        if new_params:
            raise ParameterError(
                "a clone that keeps what was learnt keeps its parameters: give either new ones, "
                f"here {new_params!r:.80}, or include_attributes"
            )
        return copy.deepcopy(self)  # River's clone would copy apart what attributes share

    def to_bytes(self) -> bytes:
        """Return the model's state in the format of checkpoints, without pickle.

        Returns
        -------
        bytes
            Equal for models that continue alike. They start with the format version and end with a
            checksum.

        Raises
        ------
        CheckpointError
            If it has a part of a class that is neither drift's nor registered with
            `drift.consumers.register`; the message names it.

        Examples
        --------
        >>> from drift.models import LBP
        >>> model = LBP(budget=10)
        >>> model.learn_one({"rain": 1.0}, True)
        >>> LBP.from_bytes(model.to_bytes()).predict_one({"rain": 2.0})
        True
        """
        return codec.to_bytes(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Build a model of this class from the bytes of its `to_bytes`.

        Parameters and errors are those of `drift.models.from_bytes`, which accepts any class; the
        bytes of another one raise CheckpointError.
        """
        model = codec.from_bytes(data)
        if not isinstance(model, cls):
            kind = type(model).__name__
            raise CheckpointError(
                f"these are the bytes of {kind}, not of {cls.__name__}: use {kind}.from_bytes"
            )
        return model

    # --- one example ---------------------------------------------------------------------------

    def learn_one(self, x: Features, y: Label, w: float = ONE) -> None:
        """Learn one example.

        Parameters
        ----------
        x
            Features by name.
        y
            Label; the class says which.
        w
            Weight: it multiplies the example's coefficient unless the class documents another use.
            0 changes nothing, and `y` is not checked.

        Raises
        ------
        ParameterError
            If `w` is neither 0 nor a number from 1e-100 to 1e100.
        LabelError
            If the model cannot learn the label, or it is of another kind than earlier ones.
        FeatureError
            If a value is infinite or too large for the kernel.
        FeatureTypeError
            If a value is not a number, or `x` not a mapping.
        """
        if w is ONE:
            self._guard.run(self._learn, x, y)
        else:
            self._guard.run(self._learn_weighted, x, y, weight_of(w))

    def _learn_weighted(self, x: Features, y: Label, w: float) -> Label:
        """Learn an example with a weight; return the prediction before that."""
        label: Label = self._weighted(w, self._learn, x, y) if w else self._predict(x)
        return label

    def _weighted(self, w: float, learn: Callable[..., Any], *example: Any) -> Any:
        """Call `learn` with a weight for the hooks."""
        if w == 1.0:
            return learn(*example)
        return self._guard.update(self, self._run_weighted, w, learn, *example)

    def _run_weighted(self, w: float, learn: Callable[..., Any], *example: Any) -> Any:
        self._weight = w  # an exception undoes this, too
        result = learn(*example)
        del self._weight
        return result

    def predict_one(self, x: Features, **kwargs: Any) -> Label:
        """Predict the label of one example.

        Parameters
        ----------
        x
            Features by name.
        **kwargs
            Ignored; River passes them on.

        Returns
        -------
        label
            A label of the kind learnt; before that False, or None if any kind is possible.
        """
        label: Label = self._guard.run(self._predict, x)
        return label

    def _predict(self, x: Features) -> Label:
        self._read(x)
        return self._label_of(self._score())

    @alone
    def predict_proba_one(self, x: Features, **kwargs: Any) -> dict[Label, float]:
        """Return the probability of each label.

        It is the logistic function, or of several classes the softmax, of a slope times the score
        over the scores' running root mean square. Each example updates the slope by a gradient step
        on the log loss. The slope is positive and there is no intercept, so that the predicted
        label is the most probable one. `Tracker` mixes its members' probabilities instead.

        Parameters
        ----------
        x
            Features by name.
        **kwargs
            Ignored; River passes them on.

        Returns
        -------
        dict
            Probability by label; before anything is learnt a half each, or an empty dict if any
            kind of label is possible.
        """
        self._read(x)
        return self._probabilities(self._score())

    def answer_one(
        self,
        x: Features,
        ticket: bool = True,  # noqa: FBT001, FBT002 - as in the Tracker's core
    ) -> tuple[Label, Any, dict[Label, float]]:
        """Return label, score and probabilities of an example at the cost of one of them.

        Parameters
        ----------
        x
            Features by name.
        ticket
            Whether a Tracker with ``late=True`` keeps a ticket of the prediction. Without, the
            prediction changes nothing.

        Returns
        -------
        tuple
            Results of `predict_one`, `decision_function_one` (None without scores) and
            `predict_proba_one`.

        Examples
        --------
        >>> from drift.models import Perceptron
        >>> model = Perceptron()
        >>> model.learn_one({"rain": 1.0}, True)
        >>> model.answer_one({"rain": 1.0})
        (True, 16.0, {False: 1.12...e-07, True: 0.99...})
        """
        answer: tuple[Label, Any, dict[Label, float]] = self._guard.run(self._answer, x, ticket)
        return answer

    def _answer(
        self,
        x: Features,
        ticket: bool,  # noqa: FBT001
    ) -> tuple[Label, Any, dict[Label, float]]:
        score = self._score_of(x, ticket)
        return self._label_of(score), self._decision(score), self._probabilities(score)

    def _score_of(self, x: Features, ticket: bool) -> Any:  # noqa: FBT001
        """Score an example; `answer_one` explains `ticket`."""
        self._read(x)
        return self._score()

    # --- many examples -------------------------------------------------------------------------

    @alone
    def learn_many(self, X: Any, y: Any, w: Any = None) -> None:
        """Learn a batch of examples, exactly as `learn_one` row by row.

        A batch with a bad label or value is refused as a whole. If the call ends later, as by a
        kernel value that is not finite, the rows before stay learnt; `rows_learnt` of drift's
        errors is their number.

        Parameters
        ----------
        X
            DataFrame (any that narwhals knows), list of dicts, 2-d numpy array or scipy CSR matrix.
            The columns of an array are the features 0, 1, 2, ...; NaN means absent.
        y
            Labels: Series, array or list.
        w
            Weights: Series, array or list, a number for all rows, or None for 1.

        Raises
        ------
        LabelError, FeatureError, FeatureTypeError, ParameterError
            As by `learn_one`, with the row's number; ParameterError also if the lengths differ.
        """
        self._run(X, y, w, self._learn_only)

    @alone
    def predict_learn_many(self, X: Any, y: Any, w: Any = None) -> Any:
        """Test, then train: predict each row before its label is used, and learn it.

        Parameters
        ----------
        X, y, w
            As for `learn_many`.

        Returns
        -------
        Series or ndarray of shape (n_rows,)
            Prediction of each row before it is learnt: a Series of the library of `X` if that is a
            DataFrame, but an array if Arrow has no type for the labels.

        Examples
        --------
        >>> import numpy as np
        >>> from drift.models import Perceptron
        >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
        >>> Perceptron().predict_learn_many(X, [True, False, True])
        array([False,  True,  True])
        """
        table, name, predictions = self._run(X, y, w, self._learn)
        return table.series(predictions, name)

    def _run(
        self, X: Any, y: Any, w: Any, learn: Callable[[Features, Label], Label]
    ) -> tuple[Table, str | None, list[Label]]:
        """Learn a batch; return it, the name of `y`, and the predictions before each row."""
        batches = _template.batches
        table, (labels, name) = batches.Table(X), batches.labels_of(y)
        if len(labels) != len(table):
            raise ParameterError(
                f"X has {counted(len(table), 'row')} and y {counted(len(labels), 'label')}"
            )
        weights = batches.weights_of(w, len(table))
        if weights is not None:
            labels = [y if w else UNSEEN for y, w in zip(labels, weights, strict=True)]
        self._refuse_others(table)
        predictions: list[Label] = []
        try:
            checked = self._check_labels(labels)
            table.check(self._read, self._harmless)
            if weights is None:
                run = partial(self._run_rows, table.rows, predictions, labels, checked)
                self._run_batch(table.rows, predictions, run, lambda i, x: learn(x, labels[i]))
            else:
                self._run_batch(
                    table.rows,
                    predictions,
                    None,
                    lambda i, x: self._learn_weighted(x, labels[i], weights[i]),
                )
        except DriftError as error:
            error.rows_learnt = len(predictions)
            raise
        self._features = table.features or self._features
        return table, name, predictions

    def _table(self, X: Any) -> Table:
        table = _template.batches.Table(X)
        self._refuse_others(table)
        if self._counts_predictions:
            table.check(self._read, self._harmless)
        return table

    def _refuse_others(self, table: Table) -> None:
        """Refuse an array after a data frame with names, and the other way round.

        Its rows would have no feature that was learnt, so that each would be predicted as an empty
        example.
        Two data frames may have other columns, as examples one by one may.
        """
        now, before = table.features, self._features
        if not (now and before) or isinstance(now, range) is isinstance(before, range):
            return
        if not _template.batches.in_common(now, before):
            raise ParameterError(
                f"X has the features {_some(now)}, and the last batch learnt had {_some(before)}: "
                "those of an array are the numbers of its columns; pass a data frame or an array, "
                "but the same"
            )

    @alone
    def predict_many(self, X: Any) -> Any:
        """Predict the label of each row.

        Parameters
        ----------
        X
            As for `learn_many`.

        Returns
        -------
        Series or ndarray of shape (n_rows,)
            Labels of the kind learnt.
        """
        table, predictions = self._table(X), list[Any]()
        with _named_row(predictions):
            run = partial(self._run_rows, table.rows, predictions, None, None)
            self._run_batch(table.rows, predictions, run, lambda _, x: self._predict(x))
        return table.series(predictions)

    @alone
    def predict_proba_many(self, X: Any) -> Any:
        """Return the probability of each label in each row.

        Parameters
        ----------
        X
            As for `learn_many`.

        Returns
        -------
        DataFrame or ndarray of shape (n_rows, n_classes)
            A column for each label: the negative one first, or in the order of first examples.
        """
        table, scores = self._table(X), list[Any]()
        with _named_row(scores):
            self._score_rows(table.rows, scores)
        rows = [self._probabilities(score) for score in scores]
        labels = rows[0] if rows else self.predict_proba_one({})
        return table.frame({label: [row[label] for row in rows] for label in labels})


@contextmanager
def _named_row(done: Sequence[Any]) -> Iterator[None]:
    """Put the number of the row, which is the count of rows done, before the text of its error."""
    try:
        yield
    except DriftError as error:
        error.args = (f"row {len(done)}: {error}",)
        raise


def _some(features: range | frozenset[Hashable]) -> str:
    """Return a few of the features, for an error message."""
    if isinstance(features, range):
        return f"0 to {len(features) - 1}" if len(features) > 1 else "0"
    few = sorted(map(repr, features))[:3]
    return ", ".join([*few, "..."] if len(features) > len(few) else few)


class Scored(OnlineClassifier):
    """A model that predicts by the sign of a score, or by the largest of several.

    A class may set these flags, as attributes or properties:

    ========================  =====================================================================
    ``_update_margin``        With two classes, an example whose ``sign * score`` is above this
                              updates nothing. 0 by default: only mistakes update. Infinite in a
                              class that overrides `_should_update` without setting this.
    ``_class_margin``         With more classes, an example updates nothing if the score of its
                              class exceeds the best other score by more than this. 0 by default.
                              Infinite in a class that overrides `_should_update_class` or `_score`
                              without setting this.
    ``_wide``                 Columns are always float64, because rounding would accumulate.
    ``_shares_supports``      The hooks use only the part of ``self._supports`` that
                              `SharedSupports` has, so that `OneVsRest` can use one store for all
                              classes.
    ``_supports_may_update``  An example that equals a support may update even above the margin.
    ========================  =====================================================================

    The others follow from the hooks:

    ========================  =====================================================================
    ``_multiclass``           The model learns more than two classes.
    ``_learns_signs``         The model has hooks for two classes, and so `_learn_sign`.
    ``_sums_up``              `_score` is the supports' sum, which compiled code computes.
    ``_skip_margin``          `OneVsRest` over a shared store need not let a class learn an example
                              above this margin. Compiled code skips a row that no class needs to
                              learn.
    ========================  =====================================================================
    """

    _update_margin: float = 0.0
    _class_margin: float = 0.0
    _wide: ClassVar[bool] = False
    _shares_supports: ClassVar[bool] = False
    _supports_may_update: bool = False
    _learns_signs: bool = False
    _sums_up: bool = False
    _skip_margin: float = math.inf

    #: Maps scores to probabilities; it learns from the score before each update.
    _calibration: Calibration

    @alone
    def decision_function_one(self, x: Features) -> Any:
        """Score of an example, in the kernel's scale.

        Parameters
        ----------
        x
            Features by name.

        Returns
        -------
        float or dict
            ``f(x) = sum_i coefficient_i k(x_i, x)``; the prediction is positive iff it is above 0.
            With several classes, the score by label.
        """
        self._read(x)
        return self._decision(self._score())

    def _decide_rows(self, rows: Rows | list[Features], decisions: list[Any]) -> None:
        """Append the value of `decision_function_one` for each row, classes in order."""
        self._score_rows(rows, decisions)

    @alone
    def decision_function_many(self, X: Any) -> NDArray[Any]:
        """Score of each row.

        Parameters
        ----------
        X
            As for `learn_many`.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            Values of `decision_function_one`; classes in the order of their first examples.
        """
        rows, decisions = self._table(X).rows, list[Any]()
        with _named_row(decisions):
            self._decide_rows(rows, decisions)
        return np.array(decisions, dtype=np.float64)
