"""From records to figures that decide: curves, means, and the noise of their differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from scipy.special import stdtrit

from drift.experiments.records import grouped
from drift.streams import RCV1_TARGETS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from drift.experiments.jobs import Record
    from drift.experiments.results import Results

__all__ = [
    "Curves",
    "Difference",
    "best",
    "curves",
    "curves_of",
    "difference",
    "error",
    "label",
    "mean_and_deviation",
    "of_the_paper",
    "percent",
    "records_of",
]

#: Records by number of shifts, by model, and by the value of the model's one parameter, ascending;
#: None where it has none.
Curves: TypeAlias = "dict[int, dict[str, dict[float | None, list[Record]]]]"


def curves(records: Iterable[Record]) -> Curves:
    """Group records by shifts, model and parameter.

    Parameters
    ----------
    records
        Of models with one parameter at most, as `run_all` returns them.

    Returns
    -------
    dict
        Shifts to model to the parameter's value, ascending, to records.

    Examples
    --------
    >>> from drift.experiments.reproduction.curves import curves
    >>> curves([{"shifts": 0, "model": "LBP", "parameters": {"budget": 50}, "mistakes": 9}])
    {0: {'LBP': {50: [{'shifts': 0, 'model': 'LBP', 'parameters': {'budget': 50}, 'mistakes': 9}]}}}
    """
    groups: Curves = {}
    for record in sorted(records, key=lambda record: tuple(record["parameters"].values())):
        value = next(iter(record["parameters"].values()), None)
        models = groups.setdefault(record["shifts"], {})
        models.setdefault(record["model"], {}).setdefault(value, []).append(record)
    return dict(sorted(groups.items()))


def curves_of(results: Results) -> Curves:
    """Curves of the runs on whole streams.

    Parameters
    ----------
    results
        Of `track`.
    """
    return curves(record for record in results.records if len(record["targets"]) > record["shifts"])


def records_of(results: Results) -> dict[str, list[Record]]:
    """Records by contender, in the order of these.

    Parameters
    ----------
    results
        Of the experiment of a paper.
    """
    groups = grouped(results.records, "contender")
    return {name: groups[name,] for name in results.settings["contenders"]}


def error(records: Iterable[Record]) -> tuple[float, float]:
    """Error in percent and its standard deviation, over streams and seeds.

    Examples
    --------
    >>> from drift.experiments.reproduction.curves import error
    >>> error([{"mistakes": 1, "n_samples": 50}, {"mistakes": 3, "n_samples": 50}])
    (4.0, 2.83)
    """
    return mean_and_deviation([percent(record) for record in records])


def best(curve: Mapping[float | None, Sequence[Record]]) -> float | None:
    """Value of the parameter with the lowest mean error; of equal ones the smallest.

    Examples
    --------
    >>> from drift.experiments.reproduction.curves import best
    >>> best({50: [{"mistakes": 3, "n_samples": 9}], 99: [{"mistakes": 2, "n_samples": 9}]})
    99
    """
    return min(curve, key=lambda value: error(curve[value])[0])


class Difference(NamedTuple):
    """Difference of two mean errors in percentage points, with the noise it has to exceed.

    Attributes
    ----------
    mean
        Mean over streams of the first error less the second.
    noise
        Half of the mean's 95 % confidence interval, by Student's t for the number of streams;
        infinite for a single one.
    """

    mean: float
    noise: float

    @property
    def below(self) -> bool:
        """Whether the first error is lower by more than noise."""
        return self.mean < -self.noise

    @property
    def above(self) -> bool:
        """Whether the first error is higher by more than noise."""
        return self.mean > self.noise

    def __str__(self) -> str:
        return f"{self.mean:+.2f} ± {self.noise:.2f}"


def difference(first: Iterable[Record], second: Iterable[Record]) -> Difference:
    """Compare two settings stream by stream, seeds averaged: streams differ more than settings do.

    Parameters
    ----------
    first, second
        Records of one setting each, on the same streams.

    Examples
    --------
    >>> from drift.experiments.reproduction.curves import difference
    >>> a = [{"index": i, "mistakes": m, "n_samples": 100} for i, m in enumerate([5, 9])]
    >>> b = [{"index": i, "mistakes": m, "n_samples": 100} for i, m in enumerate([2, 8])]
    >>> print(difference(a, b))
    +2.00 ± 12.71
    """
    a, b = _by_stream(first), _by_stream(second)
    mean, deviation = mean_and_deviation([a[index] - b[index] for index in a])
    if len(a) == 1:
        return Difference(mean, float("inf"))
    return Difference(mean, float(stdtrit(len(a) - 1, 0.975)) * deviation / len(a) ** 0.5)


def of_the_paper(records: Iterable[Record]) -> bool:
    """Whether all runs are on streams of the tracking paper: its topics of RCV1.

    Examples
    --------
    >>> from drift.experiments.reproduction.curves import of_the_paper
    >>> of_the_paper([{"stream": "rcv1", "targets": ["GCAT", "C15"]}])
    True
    >>> of_the_paper([{"stream": "newswire", "targets": ["markets"]}])
    False
    """
    return all(
        record["stream"] == "rcv1" and set(record["targets"]) <= set(RCV1_TARGETS)
        for record in records
    )


def label(record: Record) -> str:
    """Parameters of a run in words: ``"budget 50"``, or nothing.

    Examples
    --------
    >>> from drift.experiments.reproduction.curves import label
    >>> label({"parameters": {"decay": 0.5}})
    'decay 0.5'
    """
    return ", ".join(f"{name} {value}" for name, value in record["parameters"].items())


def percent(record: Record) -> float:
    """Error of a run in percent."""
    return 100.0 * float(record["mistakes"]) / float(record["n_samples"])


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
    """Mean, and the standard deviation of a sample; 0 for a single value.

    Examples
    --------
    >>> from drift.experiments.reproduction.curves import mean_and_deviation
    >>> mean_and_deviation([1.0, 3.0])
    (2.0, 1.4142)
    """
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def _by_stream(records: Iterable[Record]) -> dict[int, float]:
    streams = grouped(records, "index")
    return {index: float(np.mean(list(map(percent, group)))) for (index,), group in streams.items()}
