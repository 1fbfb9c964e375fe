"""River's contract: the public methods of every model, for one example and for a batch.

A model fills in the hooks of `OnlineClassifier`: how it reads, scores and learns one example, and
what a score means. Hooks that take no example are about *the point*, the example read last.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Any

from river import base

from drift._checks import counted, weight_of
from drift.errors import ParameterError, naming_row
from drift.models import _batch
from drift.models._base.guard import alone
from drift.models._base.labels import NO_LABEL
from drift.models._batch.column_kinds import refuse_other_columns
from drift.models._template.parameters import Cloned, fix_parameters
from drift.models._template.state import Portable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from drift.models._base.rows import Rows
    from drift.models._batch.batches import Batch
    from drift.models._batch.column_kinds import Columns
    from drift.models._store.built import Guard
    from drift.types import Features, Label

__all__ = ["OnlineClassifier"]


class OnlineClassifier(Cloned, base.MiniBatchClassifier, Portable):
    """Classifier with River's methods, whatever its scores and labels are.

    While a thread uses a model, other threads get RuntimeError. Parameters cannot be changed:
    `clone` makes a model with other parameters.
    """

    #: Weight of the example that is being learnt, which hooks read and `_with_weight` sets.
    _weight: float = 1.0
    #: The columns of the last batch that was learnt. They are not stored, because a batch must
    #: leave the same state as learning its rows one by one.
    _last_columns: Columns = frozenset()
    #: The guard excludes other threads, and undoes an update that fails.
    _guard: Guard

    # Flags that wrappers and models without a store set. `Scored` has those of algorithms.
    #: Whether a prediction changes the model, as in a `Tracker` that keeps tickets of late labels.
    #: Then all rows of a batch are checked before the first prediction.
    _counts_predictions: bool = False
    #: An example of plain numbers whose squared norm is at most this is never refused, so that
    #: batches need not check it.
    _safe_norm2: float = 0.0
    #: Whether `_rows_compiled` predicts the rows that it learns. If not, `predict_learn_many` does
    #: without it, and it appends any value for a row that is learnt. False in `Averaged`.
    _compiled_code_predicts: bool = True

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # An algorithm need not have the parameters of its template.
        if not cls.__module__.startswith(__package__):
            fix_parameters(cls)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop("_last_columns", None)
        return state

    # --- hooks that each model has -------------------------------------------------------------

    @abstractmethod
    def _read(self, x: Features) -> None:
        """Make an example the point, or refuse it. This changes no prediction."""

    @abstractmethod
    def _score(self) -> Any:
        """Score the point, for predictions and updates."""

    @abstractmethod
    def _label_of(self, score: Any) -> Label:
        """Label that a score predicts."""

    @abstractmethod
    def _probabilities(self, score: Any) -> dict[Label, float]:
        """Probability of each label, from a score."""

    @abstractmethod
    def _predict_learn(self, x: Features, y: Label) -> Label:
        """Predict an example, then learn it within one update of `_guard`; or refuse it.

        The weight is `_weight`. The caller has not read the example.
        """

    @abstractmethod
    def _check_labels(self, labels: Sequence[Label]) -> Any:
        """Refuse a batch with a label that cannot be learnt after the labels before it.

        `labels` has `NO_LABEL` for rows of weight 0, which pass. The model does not change.
        `_rows_compiled` gets the result as `checked`: anything, or None.
        """

    # --- hooks that a model may have -----------------------------------------------------------

    def _learn(self, x: Features, y: Label) -> None:
        """Do what `_predict_learn` does. Override this where learning needs no prediction."""
        self._predict_learn(x, y)

    def _decision(self, score: Any) -> Any:
        """Value of `decision_function_one`, from a score; None if the model has no such value."""
        return None

    def _rows_compiled(
        self,
        rows: Rows | list[Features],
        predictions: list[Label],
        labels: list[Label] | None,
        checked: Any,
    ) -> bool:
        """Predict and learn rows of weight 1 in compiled code, as many as need no Python.

        Parameters
        ----------
        rows
            All rows of the batch.
        predictions
            Predictions of the rows that are done. This appends more.
        labels
            Label of each row; None to learn nothing.
        checked
            Result of `_check_labels`.

        Returns
        -------
        bool
            Whether to call this again after Python has run the next row. False if compiled code can
            do no more rows of this batch.
        """
        return False

    def _score_rows(self, rows: Rows | list[Features], scores: list[Any]) -> None:
        """Append the score of each row."""
        for i in range(len(rows)):
            self._read(rows[i])
            scores.append(self._score())

    # --- copies ----------------------------------------------------------------------------------

    clone = alone(Cloned.clone)

    # --- one example ---------------------------------------------------------------------------

    def learn_one(self, x: Features, y: Label, w: float = 1.0) -> None:
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
        if w.__class__ is float and w == 1.0:  # `type(w)` would take longer
            self._guard.run(self._learn, x, y)
        else:
            self._guard.run(self._predict_learn_weighted, x, y, weight_of(w))

    def _predict_learn_weighted(self, x: Features, y: Label, w: float) -> Label:
        """Learn an example with a weight. Return the prediction before the update."""
        label: Label = self._with_weight(w, self._predict_learn, x, y) if w else self._predict(x)
        return label

    def _with_weight(self, w: float, learn: Callable[..., Any], *example: Any) -> Any:
        """Call `learn` with `_weight` set."""
        if w == 1.0:
            return learn(*example)

        def weighted() -> Any:
            self._weight = w  # an exception undoes this, too
            result = learn(*example)
            del self._weight
            return result

        return self._guard.update(self, weighted)

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
            A label of the kind learnt. Before anything is learnt False, or None if any kind of
            label is possible.
        """
        label: Label = self._guard.run(self._predict, x)
        return label

    def _predict(self, x: Features) -> Label:
        """Return the value of `predict_one`."""
        self._read(x)
        return self._label_of(self._score())

    @alone
    def predict_proba_one(self, x: Features, **kwargs: Any) -> dict[Label, float]:
        """Return the probability of each label.

        The score is divided by the running root mean square of the scores and multiplied by a
        slope. The logistic function (the softmax for several classes) makes it a probability. Each
        example updates the slope by a gradient step on the log loss. The slope is positive and
        there is no intercept, so that the predicted label is the most probable one. `Tracker` mixes
        its members' probabilities instead.

        Parameters
        ----------
        x
            Features by name.
        **kwargs
            Ignored; River passes them on.

        Returns
        -------
        dict
            Probability by label. Before anything is learnt both are a half, or the dict is empty if
            any kind of label is possible.
        """
        self._read(x)
        return self._probabilities(self._score())

    def answer_one(self, x: Features, **kwargs: Any) -> tuple[Label, Any, dict[Label, float]]:
        """Return label, score and probabilities of an example at the cost of one of them.

        Parameters
        ----------
        x
            Features by name.
        **kwargs
            Ignored, as by `predict_one`.

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
        answer: tuple[Label, Any, dict[Label, float]] = self._guard.run(self._answer, x)
        return answer

    def _answer(self, x: Features) -> tuple[Label, Any, dict[Label, float]]:
        """Return the value of `answer_one`."""
        self._read(x)
        return self._answer_of(self._score())

    def _answer_of(self, score: Any) -> tuple[Label, Any, dict[Label, float]]:
        """Return what a score says."""
        return self._label_of(score), self._decision(score), self._probabilities(score)

    # --- many examples -------------------------------------------------------------------------

    @alone
    def learn_many(self, X: Any, y: Any, w: Any = None) -> None:
        """Learn a batch of examples, exactly as `learn_one` row by row.

        A batch with a bad label or value is refused as a whole. If the call fails later, as when a
        kernel value is not finite, the rows before stay learnt. The error's `rows_learnt` counts
        them, and its message names the row, or a note if the error is not one of drift's.

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
            As by `learn_one`; the message names the row. ParameterError also if lengths differ, or
            if a Series of pandas has the index of `X` in another order.
        """
        self._learn_batch(X, y, w, self._learn)

    @alone
    def predict_learn_many(self, X: Any, y: Any, w: Any = None) -> Any:
        """Test, then train: predict each row before its label is used, then learn it.

        Parameters
        ----------
        X, y, w
            As for `learn_many`.

        Returns
        -------
        Series or ndarray of shape (n_rows,)
            Prediction of each row before it is learnt. It is a Series of the library of `X` if that
            is a DataFrame, but an array if Arrow has no type for the labels.

        Examples
        --------
        >>> import numpy as np
        >>> from drift.models import Perceptron
        >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
        >>> Perceptron().predict_learn_many(X, [True, False, True])
        array([False,  True,  True])
        """
        batch, name, predictions = self._learn_batch(X, y, w, self._predict_learn)
        return batch.make_series(predictions, name)

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
        batch, predictions = self._batch_to_predict(X), list[Any]()
        with naming_row(predictions.__len__):
            compiled = partial(self._rows_compiled, batch.rows, predictions, None, None)
            self._each_row(batch.rows, predictions, compiled, lambda _, x: self._predict(x))
        return batch.make_series(predictions)

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
        batch, scores = self._batch_to_predict(X), list[Any]()
        with naming_row(scores.__len__):
            self._score_rows(batch.rows, scores)
        rows = [self._probabilities(score) for score in scores]
        labels = rows[0] if rows else self.predict_proba_one({})
        return batch.make_frame({label: [row[label] for row in rows] for label in labels})

    # --- a batch, row by row -------------------------------------------------------------------
    #
    # A batch equals the loop over its rows, bit for bit, because
    # 1. all rows and labels are checked before the first is learnt,
    # 2. a row and the dict of its values are the same point, as `look_up_batch` (columns_slots.pxi)
    #    gives each column of the batch the store's column, and points are summed in the order of
    #    the store's columns (`sort_point` in columns_point.pxi),
    # 3. new columns are created in the order of their names (`put_unknown` in columns_changes.pxi),
    # 4. compiled code takes the step of a single example, and leaves to Python what it cannot do.

    def _learn_batch(
        self, X: Any, y: Any, w: Any, learn: Callable[[Features, Label], Any]
    ) -> tuple[Batch, str | None, list[Label]]:
        """Learn a batch. Return the batch, the name of `y`, and what `learn` returned by row."""
        batches = _batch.batches
        batch, (labels, name) = batches.Batch(X), batches.labels_of(y)
        batches.refuse_another_order(X, y, "y")
        batches.refuse_another_order(X, w, "w")
        if len(labels) != len(batch):
            raise ParameterError(
                f"X has {counted(len(batch), 'row')} and y {counted(len(labels), 'label')}"
            )
        weights = batches.weights_of(w, len(batch))
        if weights is not None:
            labels = [y if w else NO_LABEL for y, w in zip(labels, weights, strict=True)]
        refuse_other_columns(batch.columns, self._last_columns)
        predictions: list[Label] = []
        try:
            checked = self._check_labels(labels)
            batch.check(self._read, self._safe_norm2)
            compiled = None
            if weights is None and (self._compiled_code_predicts or learn == self._learn):
                compiled = partial(self._rows_compiled, batch.rows, predictions, labels, checked)

            def in_python(i: int, x: Features) -> Label:
                if weights is None:
                    return learn(x, labels[i])
                return self._predict_learn_weighted(x, labels[i], weights[i])

            with naming_row(predictions.__len__):
                self._each_row(batch.rows, predictions, compiled, in_python)
        except Exception as error:
            error.rows_learnt = len(predictions)  # type: ignore[attr-defined]
            raise
        self._last_columns = batch.columns or self._last_columns
        return batch, name, predictions

    def _each_row(
        self,
        rows: Rows | list[Features],
        predictions: list[Label],
        compiled: Callable[[], bool] | None,
        in_python: Callable[[int, Features], Label],
    ) -> None:
        """Append a prediction for each row.

        `compiled` does as many rows as need no Python, `in_python` the next row, and so on.
        `compiled` is None if there is no compiled code for this batch.
        """
        n = len(rows)
        while compiled is not None and len(predictions) < n:
            if not compiled():
                compiled = None
            if (i := len(predictions)) < n:
                predictions.append(in_python(i, rows[i]))
        for i in range(len(predictions), n):
            predictions.append(in_python(i, rows[i]))  # noqa: PERF401 - rows before an error stay

    def _batch_to_predict(self, X: Any) -> Batch:
        """Return the examples of a batch to predict, or refuse them."""
        batch = _batch.batches.Batch(X)
        refuse_other_columns(batch.columns, self._last_columns)
        if self._counts_predictions:
            batch.check(self._read, self._safe_norm2)
        return batch
