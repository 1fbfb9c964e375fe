"""Every model of the arena on every stream of it, resumed across calls."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Unpack

from drift._checks import check_duration, check_integer, in_order
from drift.errors import DriftError, ParameterError
from drift.experiments.arena.models import MODELS, contenders_of
from drift.experiments.arena.standings import (
    COLUMNS,
    FIRST,
    LOSSES,
    OWN,
    PAIRS,
    QUICK_FIRST,
    QUICK_ROWS,
    TALLIES,
    Standings,
    error_after_delay,
    error_of_all,
    select,
)
from drift.experiments.arena.streams import GROUPS, KINDS, STREAMS
from drift.experiments.arena.terminal import contested
from drift.experiments.comparison.evaluation import Settings
from drift.experiments.comparison.experiment import baselines, runs_of
from drift.experiments.comparison.measures import COSTS
from drift.experiments.comparison.protocol import order_of
from drift.experiments.comparison.tables import BASELINES, run_rows
from drift.experiments.folder import locked_folder
from drift.experiments.records import grouped
from drift.experiments.results import ExperimentKind, Results, TableSpec
from drift.experiments.runner import How, run_experiment
from drift.features import RecentDeviation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from os import PathLike

    from drift.experiments.arena.models import Family
    from drift.experiments.arena.streams import Entry
    from drift.experiments.jobs import Record, Run
    from drift.streams.stream import Stream
    from drift.types import Features, Label

__all__ = ["ARENA", "arena", "tables_of"]

_DELAYS = (None, 100, FIRST)
#: Where models that draw at random, and cost much, have five seeds; elsewhere they have one. With
#: labels at once the Tracker has five on held-out streams.
_SEEDED = ("electricity", "insects", "agrawal abrupt")
_SEEDS = 5
#: The quick form: the first rows of so few, in a minute.
_QUICK_DELAYS = (None, 20, QUICK_FIRST)
_QUICK_STREAMS = ("phishing", "segments", "sea recurring", "mixed gradual", "checkerboard")
_QUICK_MODELS = ("Tracker", "LBP", "logistic regression", "PA", "naive Bayes", "Hoeffding tree")


def arena(  # noqa: PLR0913 - an experiment's settings, by keyword
    output: str | PathLike[str],
    *,
    streams: Iterable[str] | None = None,
    models: Iterable[str] | None = None,
    delays: Iterable[int] | None = None,
    quick: bool = False,
    time_limit: float | str = 600.0,
    **how: Unpack[How],
) -> Results:
    """Run every model on every stream: at its defaults with three delays, and over its grid.

    Grids are for development streams alone, with labels at once.

    Parameters
    ----------
    output
        Folder that keeps the runs: a call computes only those that it lacks.
    streams, models
        Names in `drift.experiments.arena.streams.STREAMS`, or of its two lists, development and
        held-out, and in `drift.experiments.arena.models.MODELS`; None: all, MOA's models if
        CapyMOA and Java are installed. Streams whose data are not there are left out with a
        warning.
    delays
        Rows by which labels are late; 0: at once. None: 0, 100 and 1,000.
    quick
        A few of them, and 1,000 rows each: about a minute.
    time_limit
        Processor time after which a run ends, and is recorded as such: seconds, or ``"10m"``.
    **how
        As for `run_all`.

    Returns
    -------
    Results
        With the tables and the figure of `ARENA`, which are in the folder, too.

    Raises
    ------
    ParameterError
        No such stream or model, or the folder has runs of another stream of that name.

    Warns
    -----
    RuntimeWarning
        Data of a stream are missing.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from drift.experiments.arena import arena
    >>> with TemporaryDirectory() as folder:
    ...     results = arena(folder, streams=["phishing"], models=["PA"], quick=True, jobs=1)
    >>> table = results.rows("table")
    >>> [(row["model"], row["rows"]) for row in table if row["delay"] is None]
    [('PA', 999), ('PA, tuned', 999), ('no change', 999), ('majority', 999)]
    """
    here = [name for name, family in MODELS.items() if family.available]
    wanted, families = _chosen(streams, models, here, quick=quick)
    limit = check_duration("time_limit", time_limit)
    late = _delays(delays, quick=quick)
    known: dict[str, Record] = {}
    with locked_folder(output) as folder:
        kept = {
            record["stream"]: record["sha256"]
            for record in folder.read().values()
            if record["model"] in BASELINES  # whose features are the stream's own
        }

    def stages(_: list[Record]) -> Iterator[Iterator[tuple[str, Run]]]:
        for name in wanted:
            try:
                stream = STREAMS[name].make().head(QUICK_ROWS if quick else None)
            except DriftError as error:
                warnings.warn(f"{name} is left out: {error}", RuntimeWarning, stacklevel=4)
                continue
            if kept.setdefault(name, stream.sha256) != stream.sha256:
                raise ParameterError(
                    f"output {output}: has runs of another {name}, of sha256 {kept[name]}, not "
                    f"{stream.sha256}: fetch it again, or give another folder"
                )
            known[name] = {"sha256": stream.sha256, "rows": len(stream)}
            yield _runs(stream, STREAMS[name], families, late, limit)

    settings = {"models": families, "quick": quick, "time_limit": limit}
    return run_experiment(ARENA, stages, known, settings, output, **how)


def tables_of(
    output: str | PathLike[str],
    *,
    streams: Iterable[str] | None = None,
    models: Iterable[str] | None = None,
    quick: bool = False,
) -> Results:
    """Make tables and figures of the runs that a folder of `arena` has, and run nothing.

    Parameters
    ----------
    output
        The folder, which gets them.
    streams, models
        As of `arena`; None: all.
    quick
        The runs are of the quick form.

    Raises
    ------
    ParameterError
        No such stream or model, or the folder has no run of these.
    """
    wanted, families = _chosen(streams, models, MODELS, quick=quick)
    with locked_folder(output) as folder:
        records = select(folder.read().values(), wanted, families)
        if not records:
            raise ParameterError(
                f"output {output}: has no run of these streams and models: give the folder of a run"
            )
        known = {record["stream"]: {"sha256": record["sha256"]} for record in records}
        settings = {"models": families, "quick": quick}
        results = Results(ARENA, records, known, settings, 0.0, folder.path)
        results.save(folder)
    return results


def _chosen(
    streams: Iterable[str] | None,
    models: Iterable[str] | None,
    usual: Iterable[str],
    *,
    quick: bool,
) -> tuple[list[str], list[str]]:
    """Return names of streams, also of those on a list that is named, and of models."""
    if streams is None:
        streams = _QUICK_STREAMS if quick else STREAMS
    if models is None:
        models = _QUICK_MODELS if quick else usual
    asked = in_order("stream", streams, [*STREAMS, *GROUPS])
    wanted = [name for name, entry in STREAMS.items() if name in asked or entry.group in asked]
    return wanted, in_order("model", models, MODELS)


def _delays(delays: Iterable[int] | None, *, quick: bool) -> tuple[int | None, ...]:
    if delays is None:
        return _QUICK_DELAYS if quick else _DELAYS
    return tuple(check_integer("delays", delay, least=0) or None for delay in delays)


def _runs(
    stream: Stream,
    entry: Entry,
    names: Iterable[str],
    delays: Iterable[int | None],
    time_limit: float,
) -> Iterator[tuple[str, Run]]:
    families = {name: MODELS[name] for name in names if _suits(MODELS[name], entry)}
    deviating = stream
    if any(family.deviations for family in families.values()):
        deviating = replace(stream, examples=list(_deviations(stream)))
    for delay in delays:
        order = order_of(stream, delay)
        settings = Settings(delay=None if delay is None else str(delay), time_limit=time_limit)
        for name, family in families.items():
            if family.late and delay is None:
                continue
            features = deviating if family.deviations else stream
            contenders = contenders_of(name, features, sparse=entry.sparse)
            if delay is not None or entry.heldout:
                contenders = {name: contenders[name]}
            several = entry.heldout if name == OWN else family.ensemble and stream.name in _SEEDED
            chosen = settings._replace(seeds=_SEEDS) if several and delay is None else settings
            yield from runs_of(features, contenders, order, chosen)
        yield from runs_of(stream, baselines(), order, settings)


def _suits(family: Family, entry: Entry) -> bool:
    """Whether a model is for tables, or for texts, as the stream is."""
    return not (family.deviations or family.tables if entry.sparse else family.texts)


def _deviations(stream: Stream) -> Iterator[tuple[Features, Label]]:
    """Yield the examples with their deviations from the running means of those before."""
    recent = RecentDeviation()
    for x, y in stream:
        named = {str(name): value for name, value in x.items()}  # forests sort names: all are texts
        yield recent.transform_one(named), y
        recent.learn_one(named)


def _timeless(results: Results) -> list[Record]:
    return [{name: row[name] for name in _TIMELESS} for row in results.rows("table")]


def _pairs(kind: str, results: Results) -> list[Record]:
    return results.cached(Standings.of).pairs(kind)


def _all_runs(results: Results) -> list[Record]:
    groups = grouped(results.records, "delay")
    rows = QUICK_FIRST if results.settings["quick"] else FIRST
    return [
        {name: row.get(name) for name in _RUN_COLUMNS}
        | {"error": error_of_all(row), "error_after_delay": error_after_delay(record, rows)}
        for group in groups.values()
        for row, record in zip(run_rows(group), group, strict=True)
    ]


def _figures(standings: Standings) -> dict[str, str]:
    there = {"cost": standings.has_costs, "leads": standings.leads()}
    return {
        f"arena-{name}": f"drift.experiments.arena.figures:arena_{name}"
        for name, is_there in there.items()
        if is_there
    }


#: Of the table that the documentation keeps; ranks of probabilities and recoveries are not.
_RUN_COLUMNS = (
    *("model", "stream", "seed", "delay", "fold", "status", "message", "rows", "unpredicted"),
    *("blind", "mistakes", "error", "kappa", "kappa_temporal", "kappa_m", "balanced_accuracy"),
    *("f1", "log_loss", "calibration_error", *COSTS, "error_after_delay"),
)
_TIMELESS = tuple(name for name in COLUMNS if name not in {"microseconds", "memory"})
#: What the arena shows.
ARENA = ExperimentKind(
    tables={
        "errors": TableSpec(_timeless, _TIMELESS),
        "table": TableSpec(lambda results: results.cached(Standings.of).rows, COLUMNS),
        **{f"pairs_{kind}": TableSpec(partial(_pairs, kind), PAIRS) for kind in KINDS},
        "standings": TableSpec(lambda results: results.cached(Standings.of).tallies(), TALLIES),
        "losses": TableSpec(lambda results: results.cached(Standings.of).losses(), LOSSES),
        "losses_tuned": TableSpec(
            lambda results: results.cached(Standings.of).losses(tuned=True), LOSSES
        ),
        "runs": TableSpec(_all_runs, _RUN_COLUMNS),
    },
    figures=lambda results: _figures(results.cached(Standings.of)),
    shown=contested,
    texts={},
)
