"""What most teams run: gradient boosted trees that are trained anew every so many rows."""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Any

import numpy as np
from river import base

from drift.errors import needing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from drift.types import Features, Label

__all__ = ["Retrained"]

_CATEGORIES = 255  # of a column at most, as scikit-learn's histograms take
_EARLY = {10, 25, 50, 100, 200, 500}  # rows after which it trains for the first times


class Retrained(base.Classifier):
    """scikit-learn's `HistGradientBoostingClassifier`, trained anew on the latest rows.

    It trains after 10, 25, 50, 100, 200 and 500 rows, too. Before it has trained on two labels it
    predicts the commonest one. Texts are categories; what a row lacks is missing, for which the
    trees have a branch.

    Parameters
    ----------
    every
        Rows between two trainings.
    window
        Latest rows to train on.

    Examples
    --------
    >>> from drift.experiments.rivals import Retrained
    >>> model = Retrained(every=100)
    >>> for i in range(100):
    ...     model.learn_one({"size": i % 7, "colour": "red"}, i % 7 > 3)
    >>> model.predict_one({"size": 2, "colour": "red"}), model.predict_one({"size": 6})
    (False, True)
    """

    def __init__(self, every: int = 1_000, window: int = 3_000) -> None:
        self.every = every
        self.window = window
        self._rows: deque[tuple[Features, Label]] = deque(maxlen=window)
        self._learnt = 0
        self._labels: Counter[Label] = Counter()  # of all rows, by which it predicts untrained
        self._columns: dict[Any, dict[str, int]] = {}  # codes of a column's texts
        self._trained: Any = None

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: Features, y: Label) -> None:
        """Keep a row, and train when it is time."""
        self._rows.append((x, y))
        self._learnt += 1
        self._labels[y] += 1
        if self._learnt % self.every == 0 or self._learnt in _EARLY:
            self._train()

    def predict_proba_one(self, x: Features, **_: Any) -> dict[Label, float]:
        """Return probabilities by label; until the first training, how often each label came."""
        if self._trained is None:
            return {y: count / self._learnt for y, count in self._labels.items()}
        [shares] = self._trained.predict_proba(self._matrix([x]))
        return dict(zip(self._trained.classes_.tolist(), shares.tolist(), strict=True))

    def _train(self) -> None:
        with needing("scikit-learn", "baselines"):
            from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415
        labels = [y for _, y in self._rows]
        if len(set(labels)) < 2:
            return  # nothing to tell apart: the trees before stay, with their columns
        columns: dict[Any, set[str]] = {}
        for x, _ in self._rows:
            for name, value in x.items():
                columns.setdefault(name, set()).update([value] if isinstance(value, str) else ())
        self._columns = {
            name: {text: code for code, text in enumerate(sorted(texts)[:_CATEGORIES])}
            for name, texts in columns.items()
        }
        self._trained = HistGradientBoostingClassifier(
            categorical_features=[bool(texts) for texts in self._columns.values()], random_state=0
        )
        self._trained.fit(self._matrix(x for x, _ in self._rows), labels)

    def _matrix(self, rows: Iterable[Features]) -> NDArray[np.float64]:
        return np.array(
            [
                [
                    codes.get(value, np.nan) if isinstance(value := x.get(name), str) else value
                    for name, codes in self._columns.items()
                ]
                for x in rows
            ],
            dtype=float,
        )
