"""Every model of the arena on every stream of it, resumed across calls."""

from __future__ import annotations

import warnings
from time import perf_counter
from typing import TYPE_CHECKING

from drift._checks import in_order
from drift.errors import DriftError
from drift.experiments.arena.models import MODELS, contenders_of
from drift.experiments.arena.results import ArenaResults
from drift.experiments.arena.streams import STREAMS
from drift.experiments.comparison.experiment import Settings, baselines, runs_of
from drift.experiments.comparison.protocol import order_of
from drift.experiments.folder import held
from drift.experiments.runner import run_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from os import PathLike

    from drift.experiments.arena.streams import Entry
    from drift.experiments.folder import Record
    from drift.experiments.jobs import Run
    from drift.streams.stream import Stream

__all__ = ["arena"]

_DELAYS = (None, 100, 1_000)
#: Where models that draw at random, and cost much, have five seeds; elsewhere they have one.
_SEEDED = ("electricity", "insects", "agrawal abrupt")
_SEEDS = 5
#: The quick form: so many rows of so few, in a minute.
_QUICK_ROWS = 1_000
_QUICK_STREAMS = ("phishing", "segments", "sea recurring", "mixed gradual", "checkerboard")
_QUICK_MODELS = ("Tracker", "LBP", "logistic regression", "PA", "naive Bayes", "Hoeffding tree")


def arena(  # noqa: PLR0913 - an experiment's settings, by keyword
    output: str | PathLike[str],
    *,
    streams: Iterable[str] | None = None,
    models: Iterable[str] | None = None,
    quick: bool = False,
    tables: bool = False,
    time_limit: float = 600.0,
    jobs: int = -1,
    backend: str = "loky",
    address: str | None = None,
    progress: bool = False,
) -> ArenaResults:
    """Run every model on every stream: at its defaults with three delays, and over its grid.

    Parameters
    ----------
    output
        Folder that keeps the runs: a call computes only those that it lacks.
    streams, models
        Names in `drift.experiments.arena.streams.STREAMS` and
        `drift.experiments.arena.models.MODELS`; None: all but the streams that are fetched.
        Streams whose data are not there are left out with a warning.
    quick
        A few of them, and 1,000 rows each: about a minute.
    tables
        Run nothing: make tables, figure and page of what the folder has.
    time_limit
        Seconds of processor time after which a run ends, and is recorded as such.
    jobs, backend, address, progress
        As for `run_all`.

    Returns
    -------
    ArenaResults
        Tables, figures and the page, which are in the folder, too.

    Raises
    ------
    ParameterError
        No such stream or model.

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
    >>> [(row["model"], row["rows"]) for row in results.rows if row["delay"] is None]
    [('PA', 999), ('PA, tuned', 999), ('no change', 999), ('majority', 999)]
    """
    started = perf_counter()
    listed = [name for name, entry in STREAMS.items() if not entry.fetched]
    if streams is None:
        streams = _QUICK_STREAMS if quick else listed
    if models is None:
        models = _QUICK_MODELS if quick else MODELS
    wanted, families = in_order("stream", streams, STREAMS), in_order("model", models, MODELS)
    records: list[Record] = []
    with held(output) as folder:
        for name in () if tables else wanted:
            try:
                stream = STREAMS[name].make().head(_QUICK_ROWS if quick else None)
            except DriftError as error:
                warnings.warn(f"{name} is left out: {error}", RuntimeWarning, stacklevel=2)
                continue
            records += run_all(
                list(_runs(stream, STREAMS[name], families, time_limit)),
                folder=folder,
                jobs=jobs,
                backend=backend,
                address=address,
                progress=progress,
            )
        if tables:
            results = ArenaResults.of(folder, wanted, families)
        else:
            results = ArenaResults(records, perf_counter() - started)
        results.save(folder)
    return results


def _runs(
    stream: Stream, entry: Entry, families: Iterable[str], time_limit: float
) -> Iterator[Run]:
    multiclass = len({label for _, label in stream}) > 2
    for delay in _DELAYS:
        order = order_of(stream, delay)
        settings = Settings(
            delay=None if delay is None else str(delay), time_limit=float(time_limit)
        )
        for name in families:
            own = contenders_of(name, multiclass=multiclass, sparse=entry.sparse)
            if delay is not None:
                own = {name: own[name]}
            several = MODELS[name].ensemble and delay is None and stream.name in _SEEDED
            chosen = settings._replace(seeds=_SEEDS) if several else settings
            yield from runs_of(stream, own, order, chosen)
        yield from runs_of(stream, baselines(), order, settings)
