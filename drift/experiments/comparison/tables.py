"""Rows of a comparison's tables, made from its records."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from drift._checks import counted
from drift.experiments.comparison.measures import COSTS, MEASURES, POSITIVE
from drift.experiments.records import grouped, mean

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from drift.experiments.jobs import Record
    from drift.experiments.results import Results

__all__ = [
    "BASELINES",
    "RECOVERIES",
    "RUN",
    "RUNS",
    "SUMMARY",
    "WINDOWS",
    "costs",
    "mean_row",
    "own_rows",
    "recovery_rows",
    "remarks",
    "run_rows",
    "shown",
    "summary",
    "window_rows",
]

#: What runs always, the last label that came and the one that came most often, and the measure that
#: sets a model's error against theirs.
BASELINES = {"no change": "kappa_temporal", "majority": "kappa_m"}
#: Rows that a fold should be tested on.
_FEW = 30
#: Which run of a model it is.
RUN = ("model", "stream", "seed", "fold")
RUNS = (
    *("model", "stream", "seed", "delay", "fold", "status", "message", "rows", "unpredicted"),
    *("blind", "mistakes", "error_after_label", *MEASURES, "headline", "positive", *POSITIVE),
    *("threshold", "recovery", "unrecovered", *COSTS),
)
WINDOWS = (*RUN, "start", "stop", "rows", "unpredicted", *MEASURES, *POSITIVE, *COSTS)
RECOVERIES = (*RUN, "row", "before", "rows", "recovered", "excess")
SUMMARY = (
    *("stream", "model", "headline", "positive", "runs", "status", "rows", "unpredicted"),
    *("blind", "error_after_label", *MEASURES, *POSITIVE, "threshold", "recovery", *COSTS),
)


def run_rows(records: Sequence[Record]) -> list[Record]:
    """Return one row a run, with the columns `RUNS`.

    Parameters
    ----------
    records
        Of all runs, the baselines' among them.
    """
    errors = _errors(records)
    rows = []
    for record in records:
        drifts = recovery_rows([record])
        never = sum(drift["recovered"] is False for drift in drifts)
        rows.append(
            {name: record.get(name) for name in RUNS}
            | _against(record, errors)
            | {"error_after_label": _error_after_label(record)}
            | {"recovery": mean(drift["rows"] for drift in drifts)}
            | {"unrecovered": None if record["model"] in BASELINES else never}
        )
    return rows


def own_rows(results: Results) -> list[Record]:
    """Rows of the runs on streams in their own order: a shuffled copy is no other stream.

    Parameters
    ----------
    results
        Of a comparison.
    """
    return [row for row in results.rows("runs") if not results.streams[row["stream"]]["shuffled"]]


def recovery_rows(records: Iterable[Record]) -> list[Record]:
    """Return one row a run and drift; none of the baselines, which learn nothing to recover.

    Parameters
    ----------
    records
        Of all runs.
    """
    return [
        {name: record[name] for name in RUN} | drift
        for record in records
        if record["model"] not in BASELINES
        for drift in record["drifts_met"]
    ]


def window_rows(records: Sequence[Record]) -> list[Record]:
    """Return one row a run and window, with the columns `WINDOWS`, of records as in `run_rows`."""
    errors = _errors(records)
    return [
        {name: record[name] for name in RUN}
        | {name: window.get(name) for name in WINDOWS[len(RUN) :]}
        | _against(record, errors, number)
        for record in records
        for number, window in enumerate(record["windows"])
    ]


def summary(rows: Iterable[Record]) -> list[Record]:
    """Means over runs by stream and model; the best first, and last what did not end."""
    groups = grouped(rows, "stream", "model")
    return _ranked([mean_row(group, SUMMARY) for group in groups.values()])


def shown(rows: Iterable[Record]) -> list[Record]:
    """Rows of a `summary` for people: a model that failed has no measures, as others had more rows.

    Parameters
    ----------
    rows
        As from `summary`.
    """
    about = ("stream", "model", "headline", "runs", "status")
    return _ranked(
        [
            dict.fromkeys(row) | {k: row[k] for k in about} if "failed" in row["status"] else row
            for row in rows
        ]
    )


def _ranked(rows: list[Record]) -> list[Record]:
    """Rows by stream, the best first; then runs that ended before their last row."""
    order = list(dict.fromkeys(row["stream"] for row in rows))

    def place(row: Record) -> tuple[Any, ...]:
        value, falling = row[row["headline"]], MEASURES[row["headline"]].falling
        known = value is not None
        rank = value if falling or not known else -value
        return order.index(row["stream"]), row["status"] != "ok", not known, rank

    return sorted(rows, key=place)


def remarks(rows: Sequence[Record]) -> Iterator[str]:
    """Say what a reader has to know who compares these runs.

    Parameters
    ----------
    rows
        As from `run_rows`.
    """
    for (stream,), group in grouped(rows, "stream").items():
        # A run that ended early has not met all of them.
        blind = [max(row["blind"] for row in fold) for fold in grouped(group, "fold").values()]
        few, many = min(blind), max(blind)
        who = counted(few, "row") if few == many else f"in each fold {few:,} to {many:,} rows"
        if many:
            yield f"{stream}: {who} came before the first label"
    forked = [row for row in rows if row["fold"] is not None and row["status"] == "ok"]
    for (stream,), group in grouped(forked, "stream").items():
        few = min(row["rows"] for row in group)
        if few < _FEW:
            yield (
                f"{stream}: a fold is tested on {counted(few, 'row')}: errors of so few are "
                "chance, ask for fewer folds"
            )
    if any(row["blind"] for row in rows):
        yield "'all rows' counts these as mistakes of every model: compare delays by it"
        yield "'after label' leaves them out, as kappa, AUC and log loss do: cite this error"
    silent = [row for row in rows if row["unpredicted"]]
    for (unpredicted, n), group in grouped(silent, "unpredicted", "rows").items():
        who = ", ".join(dict.fromkeys(row["model"] for row in group))
        rows_of = f"{unpredicted:,} of {counted(n, 'row')}"
        yield f"no prediction for {rows_of}, which no measure counts: {who}"
    told = [row for row in rows if row["message"]]
    for (stream, status, why), group in grouped(told, "stream", "status", "message").items():
        who = ", ".join(dict.fromkeys(row["model"] for row in group))
        yield f"{who} on {stream}: {why if status == 'ok' else f'{status} ({why})'}"


def _error_after_label(record: Record) -> float | None:
    """Error over the rows that came when a label was known."""
    rest = record["rows"] - record["unpredicted"] - record["blind"]
    return (record["mistakes"] - record["blind"]) / rest if rest else None


def costs(rows: Iterable[Record], streams: Collection[str]) -> list[Record]:
    """Error, time and memory of the models that ended well on all streams; smallest error first.

    Parameters
    ----------
    rows
        One a stream and model, as from `summary`.
    streams
        Their names.

    Returns
    -------
    list of dict
        ``model``, mean ``error``, geometric means of ``microseconds`` and ``memory``.
    """
    ended = (
        row
        for row in rows
        if row["stream"] in streams and row["status"] == "ok" and row["error"] is not None
    )
    costs = []
    for (model,), group in grouped(ended, "model").items():
        if len(group) == len(streams):
            row: Record = {"model": model, "error": mean(row["error"] for row in group)}
            for name in COSTS:
                sizes = np.maximum([row[name] for row in group], 1e-3)
                row[name] = float(np.exp(np.log(sizes).mean()))
            costs.append(row)
    return sorted(costs, key=itemgetter("error"))


def mean_row(group: Sequence[Record], columns: Sequence[str]) -> Record:
    """Return one row of several.

    Before its columns ``runs`` and ``status`` are those that the rows share, behind them means.
    """
    at = columns.index("runs")
    row = {name: group[0][name] for name in columns[:at]} | {"runs": len(group)}
    row["status"] = ", ".join(sorted({row["status"] for row in group}))
    return row | {name: mean(row[name] for row in group) for name in columns[at + 2 :]}


def _errors(records: Iterable[Record]) -> dict[tuple[Any, ...], float | None]:
    """Errors of the baselines by stream, fold, name and window; window None: the whole run."""
    errors: dict[tuple[Any, ...], float | None] = {}
    for record in records:
        if record["model"] in BASELINES:
            for number, part in [(None, record), *enumerate(record["windows"])]:
                place = record["stream"], record["fold"], record["model"], number
                errors.setdefault(place, part["error"])
    return errors


def _against(
    record: Record, errors: Mapping[tuple[Any, ...], float | None], number: int | None = None
) -> Record:
    """Kappa-temporal and kappa-M: the share of the baseline's error that is gone."""
    error = (record if number is None else record["windows"][number])["error"]
    shares: Record = {}
    for baseline, name in BASELINES.items():
        their = errors.get((record["stream"], record["fold"], baseline, number))
        shares[name] = 1.0 - error / their if their and error is not None else None
    return shares
