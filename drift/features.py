"""Features that tell of time: what River's transformers do not have, for models of any library.

>>> from drift.features import RecentDeviation
>>> deviation = RecentDeviation(horizons=[2])
>>> for load in (10.0, 14.0, 12.0):
...     print(deviation.transform_one({"load": load}))
...     deviation.learn_one({"load": load})
{'load': 10.0, 'load - mean of 2': 0.0}
{'load': 14.0, 'load - mean of 2': 4.0}
{'load': 12.0, 'load - mean of 2': -0.666...}
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from river import base

from drift._checks import check_numbers
from drift._values import is_missing, number
from drift.errors import FeatureError, ParameterError, naming_row
from drift.models import _batch
from drift.models._base.examples import LARGEST, as_dict
from drift.models._template.parameters import Cloned, fix_parameters
from drift.models._tracker.tables import HORIZONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from drift.types import Features

    #: A mean and its weight, for each horizon.
    Means = tuple[tuple[float, float], ...]

__all__ = ["RecentDeviation"]


class RecentDeviation(Cloned, base.MiniBatchTransformer):
    """How far each feature is from the running means of its values before, beside the feature.

    Prices, loads and sensors are high or low for this hour rather than as such. These are the
    deviations by which the `Tracker` sees up to 64 features, for any other model, and for the
    `Tracker`, too, where labels come late: its own means wait for them.

    Parameters
    ----------
    horizons
        Of the means, in examples that have the feature: numbers of at least 1, by default those of
        the `Tracker`, 8, 32 and 128. At 1 the mean is the value before.

    Raises
    ------
    ParameterError
        If `horizons` is no list of such numbers, or has one twice.

    Notes
    -----
    **What is added.** To a feature whose value is a number, ``x - m_h``, for each horizon `h`.
    ``m_h`` is the mean of the values before, in which one `h` examples ago counts about 1 / e of
    the last: ``m += (x - m) / h`` and ``w += (1 - w) / h`` from zeros, and ``m_h = m / w``. The
    first value deviates by 0. Texts, bools and whatever else is no number pass unchanged, and so do
    missing values (NaN, None): they have no deviation and leave the means as they are.

    **Names.** The deviation of a feature ``"load"`` is ``"load - mean of 8"``, that of a feature
    whose name is no text, such as 3, is ``(3, 8)``. River's forests sort names, so give them texts.

    **Order.** A deviation is from the means of the examples *before*: an example is transformed
    first and learnt then. River's pipelines have this order for supervised transformers, so this
    one declares itself supervised; it ignores the labels. In a pipeline, nested ones and unions
    included, an example has the same deviations when it is predicted and when it is learnt, and
    enters the means once, when it is learnt. `transform_one` changes nothing. Two of River's tools
    have another order: a `Grouper` learns first, and an ensemble lets each of its pipelines learn
    an example several times or never. So put the transformer in front of an ensemble, and not into
    a `Grouper`.

    **Labels that come late.** A pipeline learns nothing before the label is there, nor does
    `compose.learn_during_predict` change that here. An example is then predicted with deviations
    from means as old as the delay, and learnt with those from the means of all before it: the model
    learns from other features than it predicts from. Have the stream itself pass through, so that
    each example gets its deviations when it is first seen:

    >>> def seen(stream, deviation):
    ...     for x, y in stream:
    ...         z = deviation.transform_one(x)
    ...         deviation.learn_one(x)
    ...         yield z, y

    **Batches.** Each row of a data frame deviates from the means of all rows before it, in its own
    batch, too: `transform_many` gives what a loop of `transform_one` and `learn_one` would, and
    `learn_many` then what that loop has learnt. (River's own transformers compare all rows of a
    batch with the same statistics.) Memory is two numbers for each feature and horizon.

    References
    ----------
    .. [1] D. P. Kingma, J. Ba, "Adam: a method for stochastic optimization", ICLR (2015), section
       3: why a mean that starts at 0 is divided by its weight.

    Examples
    --------
    Whether a load is above its level, which wanders:

    >>> import math, random
    >>> from river import evaluate, linear_model, metrics, preprocessing
    >>> from drift.features import RecentDeviation
    >>> rng = random.Random(0)
    >>> def level(t):
    ...     return 20.0 * math.sin(t / 200.0)
    >>> noise = [rng.gauss(0.0, 1.0) for _ in range(2_000)]
    >>> stream = [({"load": level(t) + noise[t]}, noise[t] > 0.0) for t in range(2_000)]
    >>> plain = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    >>> evaluate.progressive_val_score(stream, plain, metrics.Accuracy())
    Accuracy: 5...%
    >>> model = RecentDeviation() | plain.clone()
    >>> evaluate.progressive_val_score(stream, model, metrics.Accuracy())
    Accuracy: 8...%
    """

    def __init__(self, horizons: Sequence[float] = HORIZONS) -> None:
        self.horizons = check_numbers("horizons", horizons, least=1.0)
        if len(set(self.horizons)) < len(self.horizons):
            raise ParameterError(f"horizons has a number twice: {horizons!r:.80}")
        self._means: dict[Hashable, Means] = {}

    @property
    def _supervised(self) -> bool:
        """It needs no label, but to be learnt after it was asked: River's word for that order."""
        return True

    def _unit_test_skips(self) -> set[str]:
        """Of River's checks the one by which rows of a batch know nothing of those before them."""
        return {"check_transform_many_matches_transform_one"}

    def learn_one(self, x: Features, y: Any = None) -> None:
        """Take an example's values into the means.

        Parameters
        ----------
        x
            Features by name.
        y
            Ignored; pipelines give it.

        Raises
        ------
        FeatureError
            If a number is infinite or beyond 1e300.
        FeatureTypeError
            If `x` is no dict.
        """
        fresh = self._fresh
        self._means.update(
            {
                name: self._with(self._means.get(name, fresh), value)
                for name, value in _numbers(as_dict(x))
            }
        )

    def transform_one(self, x: Features) -> dict[Any, Any]:
        """Give an example's features and, for each number and horizon, its deviation.

        Parameters
        ----------
        x
            Features by name.

        Returns
        -------
        dict
            The features as they are, then the deviations.

        Raises
        ------
        FeatureError, FeatureTypeError
            As `learn_one` does.
        ParameterError
            If a feature already has the name of a deviation.
        """
        features, fresh = as_dict(x), self._fresh
        back: dict[Hashable, float] = {}
        for name, value in _numbers(features):
            means = self._means.get(name, fresh)
            back.update(zip(self._names(name), _deviations(value, means), strict=True))
        _check_names(back, features)
        return features | back

    def learn_many(self, X: Any, y: Any = None) -> None:
        """Take the rows of a data frame into the means, as `learn_one` row by row would.

        Parameters
        ----------
        X
            DataFrame of pandas, polars or any other library that narwhals knows.
        y
            Ignored; pipelines give it.

        Raises
        ------
        FeatureError
            As `learn_one` does, naming the row; nothing of the batch is learnt then.
        FeatureTypeError
            If `X` is no data frame.
        ParameterError
            If two columns have the same name.
        """
        frame = _batch.frames.frame_of(X)
        columns = [(name, frame.get_column(name).to_list()) for name in frame.columns]
        means_of = {name: self._walked(name, values)[1] for name, values in columns}
        self._means.update({name: means for name, means in means_of.items() if means})

    def transform_many(self, X: Any) -> Any:
        """Give each row its deviations, from the rows before it in the batch, too.

        Parameters
        ----------
        X
            As for `learn_many`.

        Returns
        -------
        DataFrame
            Of the same library: the columns as they are, then, for each that has a number and each
            horizon, one of deviations, NaN where a row has no number.

        Raises
        ------
        FeatureError, FeatureTypeError, ParameterError
            As `learn_many` and `transform_one` do.
        """
        frame, back = _batch.frames.frame_of(X), dict[Hashable, Sequence[float]]()
        for name in frame.columns:
            rows, means = self._walked(name, frame.get_column(name).to_list())
            if means:
                back.update(zip(self._names(name), zip(*rows, strict=True), strict=True))
        _check_names(back, frame.columns)
        return _batch.frames.with_columns(frame, back)

    # --- means ----------------------------------------------------------------------------------

    @property
    def _fresh(self) -> Means:
        """What a feature starts with."""
        return ((0.0, 0.0),) * len(self.horizons)

    def _with(self, means: Means, value: float) -> Means:
        """Return means with one value more."""
        pairs = zip(means, self.horizons, strict=True)
        return tuple((m + (value - m) / h, w + (1.0 - w) / h) for (m, w), h in pairs)

    def _names(self, name: Hashable) -> list[Hashable]:
        """Return the names of a feature's deviations."""
        shown = [int(h) if h.is_integer() else h for h in self.horizons]
        if isinstance(name, str):
            return [f"{name} - mean of {h}" for h in shown]
        return [(name, h) for h in shown]

    def _walked(
        self, name: Hashable, values: Sequence[Any]
    ) -> tuple[list[tuple[float, ...]], Means | None]:
        """Return the deviations of a column's rows, and its means; None if it has no number."""
        means, some = self._means.get(name, self._fresh), False
        rows, none = list[tuple[float, ...]](), (math.nan,) * len(self.horizons)
        with naming_row(rows.__len__):
            for value in values:
                found = _number(name, value)
                if found is None:
                    rows.append(none)
                    continue
                rows.append(_deviations(found, means))
                means, some = self._with(means, found), True
        return rows, means if some else None


fix_parameters(RecentDeviation)


def _deviations(value: float, means: Means) -> tuple[float, ...]:
    """Return how far a value is from means; 0 before the first."""
    return tuple(value - m / w if w > 0.0 else 0.0 for m, w in means)


def _number(name: Hashable, given: Any) -> float | None:
    """Return a value that is a number as a float, None for any other."""
    value = given
    if type(value) is not float:
        if isinstance(value, bool | np.bool_) or is_missing(value):
            return None
        try:
            value = number(value)
        except (TypeError, ValueError):
            return None
        except OverflowError:
            value = math.inf
    if value != value:
        return None
    if not abs(value) <= LARGEST:
        raise FeatureError(
            f"feature {name!r} is {given!r:.80}: only finite values up to {LARGEST:g} have means; "
            "drop it, clip it or scale it"
        )
    return float(value)


def _numbers(features: dict[Hashable, Any]) -> Iterator[tuple[Hashable, float]]:
    """Yield the features that are numbers."""
    for name, value in features.items():
        if (found := _number(name, value)) is not None:
            yield name, found


def _check_names(back: dict[Hashable, Any], names: Any) -> None:
    """Refuse features that have the name of a deviation."""
    for name in back:
        if name in names:
            raise ParameterError(
                f"a feature is called {name!r:.80}, as the deviation of another would be: rename it"
            )
