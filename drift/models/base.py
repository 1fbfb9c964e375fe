"""The template that every algorithm fills in, and River's contract around it.

::

    learn_one(x, y):  sign = the label's sign            # what can be refused is refused here,
                      score = _score() at x              # before any state changes
                      margin = sign * score
                      n_mistakes += margin <= 0          # a zero score is a mistake
                      if _should_update(x, sign, score): _update(x, sign, score)

An algorithm is its parameters in ``__init__`` and the hooks it needs to differ in.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from river import base

from drift.errors import LabelError, ParameterError
from drift.kernels import DEFAULT_KERNEL, Kernel
from drift.models._support import SupportSet

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from numpy.typing import NDArray

    from drift.models._frames import Table
    from drift.types import Features, Label

__all__ = ["KernelClassifier", "check_budget", "check_number"]

#: Sign by label, for the kinds of label that may still come. False == 0 and True == 1, numpy's too.
_SIGNS: dict[str, dict[Label, float]] = {
    "any": {0: -1.0, 1: 1.0, -1: -1.0},
    "0/1": {0: -1.0, 1: 1.0},
    "-1/+1": {-1: -1.0, 1: 1.0},
}


def check_number(name: str, value: float, *, least: float = 0.0, above: bool = False) -> None:
    """Refuse a parameter that is not a finite number of at least `least`, or above it.

    Examples
    --------
    >>> check_number("decay", 0.0, above=True)
    Traceback (most recent call last):
    drift.errors.ParameterError: decay must be a number above 0, not 0.0
    """
    if not (math.isfinite(value) and (value > least if above else value >= least)):
        bound = f"above {least:g}" if above else f"of at least {least:g}"
        raise ParameterError(f"{name} must be a number {bound}, not {value!r}")


def check_budget(budget: int) -> None:
    """Refuse a budget that is not an integer of at least 1.

    Examples
    --------
    >>> check_budget(0)
    Traceback (most recent call last):
    drift.errors.ParameterError: budget must be an integer of at least 1, not 0
    """
    if not isinstance(budget, int) or isinstance(budget, bool) or budget < 1:
        raise ParameterError(f"budget must be an integer of at least 1, not {budget!r}")


def _probability(score: float) -> float:
    """Logistic function, to full precision on both sides."""
    if score >= 0:
        return 1.0 / (1.0 + math.exp(-score))
    odds = math.exp(score) if score > -700 else 0.0
    return odds / (1.0 + odds)


class KernelClassifier(base.MiniBatchClassifier):
    """Binary classifier whose hypothesis is a kernel expansion over supports.

    Labels may be bool, 0/1 or -1/+1 (numpy's too); predictions come back in the kind of label that
    was learnt, bool before that. An example's features are numbers by name; NaN means absent.

    Parameters
    ----------
    kernel
        Kernel between examples; None for ``Polynomial(degree=4, coef0=1, normalize=True)``.
    budget
        Largest number of supports, None for no limit. Subclasses without a budget leave it out.

    Attributes
    ----------
    n_mistakes : int
        Number of examples learnt whose margin ``sign * score`` was not positive, a zero score
        included, before the update.
    n_updates : int
        Number of examples that changed the hypothesis.

    Raises
    ------
    ParameterError
        If the kernel cannot be called.
    """

    #: The margin at or below which an example updates the hypothesis, where that is all there is to
    #: `_should_update` and `_score` is the plain expansion: batches of rows then skip the others in
    #: compiled code. None for the algorithms that decide in another way: every class that overrides
    #: one of these hooks and does not say otherwise, there or in `__init__`.
    _update_margin: float | None = 0.0

    #: Keep the supports in float64 columns whatever `column_type` says, for the algorithms in which
    #: rounding of kernel values would pile up.
    _wide: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        decides = {"_score", "_should_update", "_step"} & cls.__dict__.keys()
        if decides and "_update_margin" not in cls.__dict__:
            cls._update_margin = None

    def __init__(self, kernel: Kernel | None = None, budget: int | None = None) -> None:
        if kernel is not None and not isinstance(kernel, Kernel):
            raise ParameterError(
                f"kernel must be called as kernel(dot, sq_a, sq_b), as those of drift.kernels are, "
                f"not {kernel!r}"
            )
        self.kernel = kernel
        self.n_mistakes = 0
        self.n_updates = 0
        self._supports = SupportSet(
            DEFAULT_KERNEL if kernel is None else kernel, budget, wide=self._wide
        )
        self._kind = "any"
        self._labels: tuple[Label, Label] = (False, True)

    # --- hooks ---------------------------------------------------------------------------------

    def _score(self) -> float:
        """Score of the point that the supports have read."""
        return self._supports.score()

    def _should_update(self, x: Features, sign: float, score: float) -> bool:
        """Whether an example changes the hypothesis; by default where it was a mistake."""
        return sign * score <= 0.0

    def _update(self, x: Features, sign: float, score: float) -> None:
        """Change the hypothesis because of an example, and keep to the budget."""
        self._supports.add(x, sign)

    def _start_from_zero_instance(self) -> float:
        """Make f_1 = k(0, .), which speeds up the learning of the bias; return its squared norm."""
        self._supports.read({})
        self._supports.add({}, 1.0)
        return self._supports.self_kernel()

    # --- one example ---------------------------------------------------------------------------

    def _step(self, x: Features, sign: float) -> float:
        """Learn one example; return its score before that."""
        self._supports.read(x)
        score = self._score()
        if sign * score <= 0.0:
            self.n_mistakes += 1
        if self._should_update(x, sign, score):
            self.n_updates += 1
            self._update(x, sign, score)
        return score

    def learn_one(self, x: Features, y: Label) -> None:
        """Learn one example.

        Parameters
        ----------
        x
            Features by name.
        y
            Label: bool, 0/1 or -1/+1.

        Raises
        ------
        LabelError
            If the label is none of these, or of another kind than those learnt before.
        FeatureError
            If a value is infinite or too large for the kernel.
        FeatureTypeError
            If a value is not a number, or `x` not a mapping.
        """
        sign = self._sign(y)
        self._step(x, sign)
        if self._kind == "any" or type(y) is not bool:
            self._adopt(y)

    def decision_function_one(self, x: Features) -> float:
        """Score of an example in the kernel's own scale; the prediction is positive iff it is > 0.

        Parameters
        ----------
        x
            Features by name.

        Returns
        -------
        float
            ``f(x) = sum_i coefficient_i k(x_i, x)``.
        """
        self._supports.read(x)
        return self._score()

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
        bool or int
            A label of the kind learnt; False before that.
        """
        self._supports.read(x)
        return self._labels[self._score() > 0.0]

    def predict_proba_one(self, x: Features, **kwargs: Any) -> dict[Label, float]:
        """Give both labels their probability: the logistic function of the score, not calibrated.

        Parameters
        ----------
        x
            Features by name.
        **kwargs
            Ignored; River passes them on.

        Returns
        -------
        dict
            Probability by label; a half each before anything is learnt.
        """
        score = self.decision_function_one(x)
        return {self._labels[0]: _probability(-score), self._labels[1]: _probability(score)}

    # --- many examples -------------------------------------------------------------------------

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn a batch of examples, exactly as `learn_one` row by row would.

        A batch is learnt as a whole or, if anything in it is refused, not at all.

        Parameters
        ----------
        X
            DataFrame (any that narwhals knows), list of dicts, 2-d numpy array or scipy CSR matrix.
            The columns of an array are the features 0, 1, 2, ...; NaN means absent.
        y
            Labels: Series, array or list.

        Raises
        ------
        LabelError, FeatureError, FeatureTypeError
            As `learn_one` does, naming the row; ParameterError if the lengths differ.
        """
        self._run(X, y)

    def predict_learn_many(self, X: Any, y: Any) -> Any:
        """Test, then train: predict each row before its label is used, and learn it.

        Parameters
        ----------
        X, y
            As for `learn_many`.

        Returns
        -------
        Series or ndarray of shape (n_rows,)
            Each row's prediction made before it was learnt; a Series of the same library where `X`
            is a DataFrame.

        Examples
        --------
        >>> import numpy as np
        >>> from drift.models import Perceptron
        >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
        >>> Perceptron().predict_learn_many(X, [True, False, True])
        array([False,  True,  True])
        """
        table, name, predictions = self._run(X, y)
        return table.series(predictions, name)

    def _run(self, X: Any, y: Any) -> tuple[Table, str | None, list[Label]]:
        """Learn a batch; return it, the name of `y`, and what was predicted before each row."""
        from drift.models._frames import Table, labels_of  # noqa: PLC0415  (imports numpy)

        table, (labels, name) = Table(X), labels_of(y)
        if len(labels) != len(table):
            raise ParameterError(f"X has {len(table)} rows and y {len(labels)} labels")
        signs = self._check_labels(labels)
        table.check(self._supports.read)
        predictions = []
        for label, score in zip(labels, self._scan(table, signs), strict=True):
            predictions.append(self._labels[score > 0.0])
            if self._kind == "any" or type(label) is not bool:
                self._adopt(label)
        return table, name, predictions

    def _check_labels(self, labels: list[Label]) -> list[float]:
        """Return the sign of each label of a batch; LabelError where one cannot be learnt."""
        before = self._kind, self._labels
        try:
            for label in labels:
                if self._kind == "any" or type(label) is not bool:
                    self._sign(label)
                    self._adopt(label)
            return [self._sign(label) for label in labels]
        finally:
            self._kind, self._labels = before

    def _scan(self, table: Table, signs: list[float] | None) -> Iterator[float]:
        """Score of each row, which is learnt right after it if there are signs."""
        rows = table.array
        if rows is None or self._update_margin is None:
            for i, x in enumerate(table):
                yield self.decision_function_one(x) if signs is None else self._step(x, signs[i])
            return
        import numpy as np  # noqa: PLC0415

        scores = np.empty(len(rows))
        numbers = None if signs is None else np.array(signs, dtype=np.int8)
        start = 0
        while start < len(rows):
            stop = self._supports.scan(rows, start, numbers, scores, self._update_margin)
            if signs is not None and stop < len(rows):
                self._step(rows.row(stop), signs[stop])
                stop += 1
            yield from scores[start:stop].tolist()
            start = stop

    def decision_function_many(self, X: Any) -> NDArray[Any]:
        """Score of each row, as `decision_function_one` gives it.

        Parameters
        ----------
        X
            As for `learn_many`.

        Returns
        -------
        ndarray of shape (n_rows,)
            Scores.
        """
        import numpy as np  # noqa: PLC0415

        return np.array(self._scores(X)[1], dtype=np.float64)

    def _scores(self, X: Any) -> tuple[Table, list[float]]:
        from drift.models._frames import Table  # noqa: PLC0415

        table = Table(X)
        table.check(self._supports.read)
        return table, list(self._scan(table, None))

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
        table, scores = self._scores(X)
        return table.series([self._labels[score > 0.0] for score in scores])

    def predict_proba_many(self, X: Any) -> Any:
        """Give both labels their probability in each row.

        Parameters
        ----------
        X
            As for `learn_many`.

        Returns
        -------
        DataFrame or ndarray of shape (n_rows, 2)
            A column for each label, the negative one first.
        """
        table, scores = self._scores(X)
        columns = {
            self._labels[0]: [_probability(-score) for score in scores],
            self._labels[1]: [_probability(score) for score in scores],
        }
        return table.frame(columns)

    # --- labels and bookkeeping ----------------------------------------------------------------

    def _sign(self, y: Label) -> float:
        """Sign of a label; changes nothing."""
        try:
            return _SIGNS[self._kind][y]
        except (KeyError, TypeError):
            pass
        if not any(y is sign or y == sign for sign in (-1, 0, 1)):
            raise LabelError(
                f"label {y!r:.80} is none of bool, 0/1 and -1/+1: for more than two classes wrap "
                "this model in river.multiclass.OneVsRestClassifier"
            )
        raise LabelError(
            f"label {y!r:.80} does not go with the labels learnt so far, "
            f"{self._labels[0]!r} and {self._labels[1]!r}"
        )

    def _adopt(self, y: Label) -> None:
        """Predict from now on in the kind of label that `y` is."""
        truth = type(y).__name__ in {"bool", "bool_"}
        if y == -1:
            self._kind, self._labels = "-1/+1", (-1, 1)
        elif y == 0 or truth:
            self._kind, self._labels = "0/1", (False, True) if truth else (0, 1)
        elif self._kind != "-1/+1":  # 1 may turn out to go with 0 or with -1
            self._labels = (0, 1)

    @property
    def n_supports(self) -> int:
        """Number of supports held."""
        return len(self._supports)

    @property
    def supports(self) -> list[tuple[dict[Hashable, float], float]]:
        """The supports and their coefficients, the oldest first.

        Values are those held: of unit norm where the kernel normalises.
        """
        return list(self._supports)
