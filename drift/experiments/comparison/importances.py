"""Which features mattered when: contributions to a sample of a run's predictions."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

from drift.errors import ParameterError, one_line
from drift.experiments.comparison.tables import RUN, grouped, mean
from drift.explain import Baseline, Explainer, Importances

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from drift.experiments.jobs import Record
    from drift.types import Features

__all__ = ["IMPORTANCES", "Sample", "curves", "importance_rows", "remarks"]

IMPORTANCES = (*RUN, "start", "stop", "explained", "feature", "importance")
#: Rows of a run that are explained, at most.
_MOST = 2_000
#: Explanations that importances are of, and those whose examples the baseline is of.
_RECENT, _BASELINE = 20, 200
#: Features of a run that are recorded, and of a model that are drawn.
_KEPT, _DRAWN = 50, 6


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
        self._rows, self._problem = 0, ""
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
        except ParameterError:  # it has learnt nothing yet
            pass
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
            "problem": self._problem,
        }


def importance_rows(records: Sequence[Record]) -> list[Record]:
    """Return one row a run, feature and window in which it was explained: see `IMPORTANCES`."""
    return [
        {name: record[name] for name in RUN}
        | {"start": window["start"], "stop": window["stop"], "explained": explained}
        | {"feature": feature, "importance": value}
        for record in records
        if (found := record.get("importances"))
        for feature, values in found["features"].items()
        for window, explained, value in zip(
            record["windows"], found["explained"], values, strict=False
        )
        if explained
    ]


def curves(
    rows: Sequence[Record], stream: str
) -> dict[str, tuple[list[float], dict[str, list[float]]]]:
    """Return by model the middles of the windows, and values of the features that ever led.

    Parameters
    ----------
    rows
        As from `importance_rows`; means over runs are taken.
    stream
        Its name.
    """
    found = {}
    for (model,), group in grouped((r for r in rows if r["stream"] == stream), "model").items():
        places = sorted({(row["start"], row["stop"]) for row in group})
        means: dict[str, dict[int, float]] = {}
        for (feature, start), same in grouped(group, "feature", "start").items():
            means.setdefault(feature, {})[start] = mean(row["importance"] for row in same) or 0.0
        first = sorted(means, key=lambda name: max(means[name].values()), reverse=True)[:_DRAWN]
        middles = [(start + stop) / 2 for start, stop in places]
        values = {name: [means[name].get(start, 0.0) for start, _ in places] for name in first}
        found[model] = middles, values
    return found


def remarks(records: Sequence[Record]) -> Iterator[str]:
    """Say how many rows each model's importances are of, or why there are none."""
    known = [record for record in records if record.get("importances")]
    for (stream, model), group in grouped(known, "stream", "model").items():
        found = [record["importances"] for record in group]
        n = min(run["explained"][-1] if run["explained"] else 0 for run in found)
        yield f"{stream}: importances of {model} are of {n:,} of {group[0]['examples']:,} rows"
        problem = next(filter(None, (run["problem"] for run in found)), "")
        if problem:
            yield f"{stream}: no further row of {model} is explained: {problem}"
