"""From records to figures that decide: grouping, means, noise, and the tables people read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from scipy.special import stdtrit

from drift.experiments.comparison.rows import grouped
from drift.streams import RCV1_TARGETS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from drift.experiments.folder import Record

__all__ = [
    "CHUNK_COLUMNS",
    "PAPER_SUPPORTS",
    "Curves",
    "Difference",
    "best",
    "chunk_table",
    "curves",
    "difference",
    "error",
    "label",
    "mean_and_deviation",
    "of_the_paper",
    "summary_rows",
    "table_rows",
]

#: Records by number of shifts, by model, and by the value of the model's one parameter, ascending;
#: None where it has none.
Curves: TypeAlias = "dict[int, dict[str, dict[float | None, list[Record]]]]"

#: What `chunk_table` says of each model and size.
CHUNK_COLUMNS = (
    *("model", "chunk_size", "shifts", "chunks"),
    *("supports", "supports_std", "paper", "paper_std"),
)

#: Table I of the tracking paper: by model and chunk size, mean and deviation of the supports.
PAPER_SUPPORTS = {
    "Perceptron": {
        20_000: (1368.0, 152.29),
        10_000: (772.0, 84.60),
        5_000: (445.0, 50.70),
        2_500: (260.0, 32.98),
    },
    "SOP": {
        20_000: (1358.0, 134.68),
        10_000: (751.0, 75.58),
        5_000: (419.0, 43.17),
        2_500: (241.0, 26.76),
    },
}


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
    >>> from drift.experiments.tracking.report import curves
    >>> curves([{"shifts": 0, "model": "LBP", "parameters": {"budget": 50}, "mistakes": 9}])
    {0: {'LBP': {50: [{'shifts': 0, 'model': 'LBP', 'parameters': {'budget': 50}, 'mistakes': 9}]}}}
    """
    groups: Curves = {}
    for record in sorted(records, key=lambda record: tuple(record["parameters"].values())):
        value = next(iter(record["parameters"].values()), None)
        models = groups.setdefault(record["shifts"], {})
        models.setdefault(record["model"], {}).setdefault(value, []).append(record)
    return dict(sorted(groups.items()))


def error(records: Iterable[Record]) -> tuple[float, float]:
    """Error in percent and its standard deviation, over streams and seeds.

    Examples
    --------
    >>> from drift.experiments.tracking.report import error
    >>> error([{"mistakes": 1, "n_samples": 50}, {"mistakes": 3, "n_samples": 50}])
    (4.0, 2.83)
    """
    return mean_and_deviation([_percent(record) for record in records])


def best(curve: Mapping[float | None, Sequence[Record]]) -> float | None:
    """Value of the parameter with the lowest mean error; of equal ones the smallest.

    Examples
    --------
    >>> from drift.experiments.tracking.report import best
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
    >>> from drift.experiments.tracking.report import difference
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
    >>> from drift.experiments.tracking.report import of_the_paper
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
    >>> from drift.experiments.tracking.report import label
    >>> label({"parameters": {"decay": 0.5}})
    'decay 0.5'
    """
    return ", ".join(f"{name} {value}" for name, value in record["parameters"].items())


def table_rows(groups: Curves) -> list[dict[str, Any]]:
    """One row a setting: what ``table.csv`` holds.

    Parameters
    ----------
    groups
        As from `curves`.

    Returns
    -------
    list of dict
        ``shifts``, ``model``, ``parameters``; ``error`` in percent and ``error_std`` over streams
        and seeds; ``supports`` at the end and ``supports_std``; ``microseconds`` an example;
        ``runs``.
    """
    return [
        _row(records)
        for models in groups.values()
        for c in models.values()
        for records in c.values()
    ]


def summary_rows(groups: Curves) -> list[dict[str, Any]]:
    """Rows of `table_rows` for each model's best setting in each group.

    Parameters
    ----------
    groups
        As from `curves`.
    """
    return [_row(c[best(c)]) for models in groups.values() for c in models.values()]


def chunk_table(chunks: Sequence[Record]) -> list[dict[str, Any]]:
    """Supports that a model needs for a chunk, by the chunk's size: the paper's Table I.

    Parameters
    ----------
    chunks
        Records of models without budget, started afresh on each chunk.

    Returns
    -------
    list of dict
        ``model``, ``chunk_size``, ``shifts``, ``chunks``, mean ``supports`` and their deviation
        ``supports_std``; ``paper`` and ``paper_std`` where the chunks are the paper's and as long,
        else None.
    """
    rows = []
    for (model, shifts), group in sorted(grouped(chunks, "model", "shifts").items()):
        supports, deviation = mean_and_deviation([record["supports"] for record in group])
        size = group[0]["n_samples"]
        printed = PAPER_SUPPORTS.get(model, {}) if of_the_paper(group) else {}
        paper, paper_std = printed.get(size, (None, None))
        found = round(supports, 1), round(deviation, 2)
        row = model, size, shifts, len(group), *found, paper, paper_std
        rows.append(dict(zip(CHUNK_COLUMNS, row, strict=True)))
    return rows


def _row(records: Sequence[Record]) -> dict[str, Any]:
    mean, deviation = error(records)
    supports, supports_std = mean_and_deviation([record["supports"] for record in records])
    seconds = [record["seconds"] / record["n_samples"] for record in records]
    return {
        "shifts": records[0]["shifts"],
        "model": records[0]["model"],
        "parameters": label(records[0]),
        "error": round(mean, 3),
        "error_std": round(deviation, 3),
        "supports": round(supports, 1),
        "supports_std": round(supports_std, 1),
        "microseconds": round(1e6 * float(np.mean(seconds)), 2),
        "runs": len(records),
    }


def _percent(record: Record) -> float:
    return 100.0 * float(record["mistakes"]) / float(record["n_samples"])


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
    """Mean, and the standard deviation of a sample; 0 for a single value.

    Examples
    --------
    >>> from drift.experiments.tracking.report import mean_and_deviation
    >>> mean_and_deviation([1.0, 3.0])
    (2.0, 1.4142)
    """
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def _by_stream(records: Iterable[Record]) -> dict[int, float]:
    streams = grouped(records, "index")
    return {index: float(np.mean(list(map(_percent, own)))) for (index,), own in streams.items()}
