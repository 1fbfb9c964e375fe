"""Which features mattered in one run: contributions to a sample of its predictions."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

from drift.errors import ParameterError, one_line
from drift.explain import Baseline, Explainer, Importances

if TYPE_CHECKING:
    from drift.experiments.jobs import Record
    from drift.types import Features

__all__ = ["Sample"]

#: Rows of a run that are explained, at most.
_MOST = 2_000
#: Explanations that importances are of, and those whose examples the baseline is of.
_RECENT, _BASELINE = 20, 200
#: Features of a run that are recorded.
_KEPT = 50


class Sample:
    """Explains rows as long as that has taken no more time than the model itself.

    Parameters
    ----------
    model
        The model.
    rows
        Of the stream: at most 2,000 of them, evenly spread, are explained.
    """

    def __init__(self, model: Any, rows: int) -> None:
        self._explainer = Explainer(model, Baseline(_BASELINE), pairs=2)
        self._importances = Importances(_RECENT)
        self._every = max(1, rows // _MOST)
        self._left = self._took = 0.0
        self._rows, self._problem, self._refused = 0, "", ""
        self._windows: list[tuple[int, dict[str, float]]] = []

    def earn(self, seconds: float) -> None:
        """Let so much more time be taken."""
        self._left += seconds

    def look(self, row: int, x: Features) -> None:
        """Explain a prediction, if it is the turn of this row and there is time."""
        if row % self._every or self._left < self._took or self._problem:
            return
        began = perf_counter()
        self._explainer.baseline.learn_one(x)
        try:
            self._importances.learn_one(self._explainer.explain_one(x))
            self._rows += 1
        except ParameterError as error:  # it has learnt nothing yet, or never gives what is needed
            self._refused = str(error)
        except Exception as error:  # noqa: BLE001 - a model of anyone's may raise anything
            self._problem = one_line(f"{type(error).__name__}: {error}")
        self._took = perf_counter() - began
        self._left -= self._took

    def end_window(self) -> None:
        """Keep the importances as they are."""
        named = {str(name): value for name, value in self._importances.get().items()}
        self._windows.append((self._rows, named))

    def record(self) -> Record:
        """Return rows explained and importances at the end of each window, by feature."""
        totals: dict[str, float] = {}
        for _, named in self._windows:
            for name, value in named.items():
                totals[name] = totals.get(name, 0.0) + value
        kept = sorted(totals, key=totals.__getitem__, reverse=True)[:_KEPT]
        return {
            "explained": [rows for rows, _ in self._windows],
            "features": {
                name: [named.get(name, 0.0) for _, named in self._windows] for name in kept
            },
            "problem": self._problem or ("" if self._rows else self._refused),
        }
