"""What the experiments of papers show: their tables, and which figures."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from drift.experiments.records import grouped
from drift.experiments.reproduction.claims import Claim, claims
from drift.experiments.reproduction.curves import (
    best,
    curves_of,
    label,
    mean_and_deviation,
    of_the_paper,
    percent,
    records_of,
)
from drift.experiments.reproduction.terminal import reproduced, tracked
from drift.experiments.results import ExperimentKind, TableSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from drift.experiments.jobs import Record
    from drift.experiments.results import Results

__all__ = ["PAPER", "TRACKING", "WITHOUT_BUDGET", "chunk_table"]

#: Columns that have a mean and a deviation: what of a record, and the digits.
_COLUMNS: dict[str, tuple[Callable[[Record], float], int]] = {
    "error": (percent, 3),
    "test_error": (itemgetter("test_error"), 3),
    "mistakes": (itemgetter("mistakes"), 1),
    "supports": (itemgetter("supports"), 1),
    "updates": (itemgetter("updates"), 1),
    "seconds": (itemgetter("seconds"), 3),
    "microseconds": (lambda record: 1e6 * record["seconds"] / record["n_samples"], 2),
}
#: Those of them that a data set in random orders has, and an epoch.
_ORDERS = ("error", "test_error", "supports", "updates", "seconds")
_EPOCH = ("test_error", "mistakes", "updates", "supports")
#: Models without budget, which have versions with one: the columns of Table I.
WITHOUT_BUDGET = ("Perceptron", "SOP")
_SECOND_ORDER = ("SOP", "RBSOP", "LBSOP")
_FIGURES = "drift.experiments.reproduction.figures"

#: Table I of the tracking paper: by model and chunk size, mean and deviation of the supports.
_PAPER_SUPPORTS = {
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
#: What `chunk_table` says of each model and size.
_CHUNK_COLUMNS = (
    *("model", "chunk_size", "shifts", "chunks"),
    *("supports", "supports_std", "paper", "paper_std"),
)


def _means(group: Sequence[Record], columns: Sequence[str]) -> Record:
    """Mean and deviation of each column; None where the records have no such number."""
    row: Record = {}
    for name in columns:
        value, digits = _COLUMNS[name]
        try:
            statistics = mean_and_deviation([value(record) for record in group])
            row[name], row[f"{name}_std"] = (round(number, digits) for number in statistics)
        except KeyError:
            row[name] = row[f"{name}_std"] = None
    return row


def _columns(results: Results, columns: Sequence[str]) -> list[str]:
    tested = results.settings["test_rows"] is not None
    return [name for name in columns if tested or name != "test_error"]


def _paper_table(results: Results) -> list[Record]:
    """One row a contender.

    ``contender``, ``parameters``; ``error``, of the predictions before each update in the first
    epoch, in percent; ``test_error`` at the end, in percent, where there is a test part;
    ``supports`` at the end; ``updates``; ``seconds`` of processor time for learning; each with its
    standard deviation over permutations, as ``..._std``, and None where a contender has no such
    number; ``rows_per_second`` of learning; ``paper_...`` for each column that is printed;
    ``runs``.
    """
    columns = _columns(results, _ORDERS)
    printed = _printed(results)
    known = [name for name in columns if any(name in columns_of for columns_of in printed.values())]
    rows = []
    for name, records in records_of(results).items():
        row = {"contender": name, "parameters": label(records[0]), **_means(records, columns)}
        learnt = sum(record["n_samples"] * record.get("epochs", 1) for record in records)
        seconds = sum(record["seconds"] for record in records)
        # The processor's clock may not have moved: Windows counts by 16 ms.
        row["rows_per_second"] = round(learnt / seconds) if seconds else None
        figures = printed.get(name, {})
        row |= {f"paper_{column}": figures.get(column, [None])[-1] for column in known}
        rows.append(row | {"runs": len(records)})
    return rows


def _printed(results: Results) -> Mapping[str, Mapping[str, Sequence[float]]]:
    printed: Mapping[str, Mapping[str, Sequence[float]]] = results.settings["printed"]
    return printed


def _epochs(results: Results) -> list[Record]:
    """One row a contender and epoch, where there are several.

    ``contender``, ``epoch``; ``test_error`` in percent, where there is a test part; ``mistakes``
    and ``updates`` so far, of `OneVsRest` the sum over its classes; ``supports``; each with its
    standard deviation over permutations, as ``..._std``; ``paper_...`` for each column that is
    printed; ``runs``.
    """
    if results.settings["epochs"] == 1:
        return []
    columns, printed = _columns(results, _EPOCH), _printed(results)
    known = {column for columns in printed.values() for column in columns}
    rows = []
    for name, records in records_of(results).items():
        states = zip(*(record.get("by_epoch", []) for record in records), strict=True)
        for epoch, group in enumerate(states, start=1):
            row: Record = {"contender": name, "epoch": epoch}
            for column in columns:
                row |= _means(group, [column])
                if column in known:
                    paper = printed.get(name, {}).get(column, ())
                    row[f"paper_{column}"] = paper[epoch - 1] if epoch <= len(paper) else None
            rows.append(row | {"runs": len(records)})
    return rows


def _paper_figures(results: Results) -> dict[str, str]:
    settings = results.settings
    if settings["epochs"] > 1:
        names = ["test_error_by_epoch"] if settings["test_rows"] is not None else []
    else:
        names = ["against_supports" if any(settings["series"].values()) else "over_time"]
    return {name: f"{_FIGURES}:{name}" for name in names}


#: What the experiment of a paper shows; see `permuted`.
PAPER = ExperimentKind(
    tables={"table": TableSpec(_paper_table), "epochs": TableSpec(_epochs)},
    figures=_paper_figures,
    shown=reproduced,
    texts={},
)


def _chunk_records(results: Results) -> list[Record]:
    alone = [record for record in results.records if len(record["targets"]) == 1]
    return [record for record in alone if record["model"] in WITHOUT_BUDGET]


def _row(records: Sequence[Record]) -> Record:
    """One setting: ``microseconds`` an example, errors in percent, over streams and seeds."""
    first = records[0]
    return {
        "shifts": first["shifts"],
        "model": first["model"],
        "parameters": label(first),
        **_means(records, ("error", "supports", "microseconds")),
        "runs": len(records),
    }


def _settings(results: Results) -> list[Record]:
    groups = results.cached(curves_of).values()
    return [_row(setting) for models in groups for c in models.values() for setting in c.values()]


def _summary(results: Results) -> list[Record]:
    """Those of each model's best setting in each group."""
    groups = results.cached(curves_of).values()
    return [_row(c[best(c)]) for models in groups for c in models.values()]


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
        printed = _PAPER_SUPPORTS.get(model, {}) if of_the_paper(group) else {}
        paper, paper_std = printed.get(size, (None, None))
        rounded = round(supports, 1), round(deviation, 2)
        row = model, size, shifts, len(group), *rounded, paper, paper_std
        rows.append(dict(zip(_CHUNK_COLUMNS, row, strict=True)))
    return rows


def _claims(results: Results) -> list[Record]:
    """What the paper says of its figures, decided on its own streams alone, which are RCV1's."""
    if not of_the_paper(results.records):
        return []
    decided = claims(results.cached(curves_of), _chunk_records(results))
    return [claim._asdict() for claim in decided]


def _tracking_figures(results: Results) -> dict[str, str]:
    models = {record["model"] for record in results.records}
    drawn = {"error_vs_budget": "error_vs_budget"}
    if not models.isdisjoint(_SECOND_ORDER):
        drawn["second_order_vs_budget"] = "second_order_vs_budget"
    drawn["error_over_time"] = "tracked_over_time"
    return {name: f"{_FIGURES}:{function}" for name, function in drawn.items()}


#: What the experiment of the tracking paper shows; see `track`.
TRACKING = ExperimentKind(
    tables={
        "table": TableSpec(_settings),
        "summary": TableSpec(_summary),
        "chunks": TableSpec(lambda results: chunk_table(_chunk_records(results)), _CHUNK_COLUMNS),
        "claims": TableSpec(_claims, Claim._fields),
    },
    figures=_tracking_figures,
    shown=tracked,
    texts={},
)
