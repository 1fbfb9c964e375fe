"""Any classifiers on any streams: what is run, and how."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, cast

from river.dummy import NoChangeClassifier, PriorClassifier

import drift
from drift._checks import check_duration, check_integer
from drift.errors import ParameterError
from drift.experiments.code import code_fingerprint
from drift.experiments.comparison.clock import column_of, described, timed
from drift.experiments.comparison.contender import Contender, contenders
from drift.experiments.comparison.evaluation import N_WINDOWS, Settings, Task, evaluate
from drift.experiments.comparison.focus import EVERYTHING, Focus, focus_of
from drift.experiments.comparison.importances import IMPORTANCES, importance_rows
from drift.experiments.comparison.protocol import forks_of, order_of
from drift.experiments.comparison.report import report
from drift.experiments.comparison.statistics import TESTS, pairs_of
from drift.experiments.comparison.tables import (
    BASELINES,
    RECOVERIES,
    RUNS,
    SUMMARY,
    WINDOWS,
    own_rows,
    recovery_rows,
    run_rows,
    summary,
    window_rows,
)
from drift.experiments.comparison.terminal import compared
from drift.experiments.jobs import Run
from drift.experiments.results import ExperimentKind, Results, TableSpec
from drift.experiments.runner import run_experiment
from drift.models._template.probabilities import check_probabilities
from drift.streams.tables import has_columns, read_stream

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from os import PathLike

    import numpy as np
    from numpy.typing import NDArray

    from drift.experiments.jobs import Record
    from drift.streams.stream import Stream

__all__ = ["COMPARISON", "baselines", "compare", "measuring_code", "runs_of"]

#: Features of a stream that are named.
_NAMED = 50


def measuring_code() -> str:
    """Return a fingerprint of the code that decides what is recorded of a run, whatever the model.

    `models_code` is apart: runs of others stay where drift's models change.
    """
    package = __name__.rpartition(".")[0]
    parts = (f"{package}.{name}" for name in ("contender", "evaluation"))
    return code_fingerprint(*parts, without="drift.models")


def models_code() -> str:
    """Return a fingerprint of the code of drift's models."""
    return code_fingerprint("drift.models")


def baselines() -> dict[str, Contender]:
    """Return what runs always: the last label that came, and the one that came most often."""
    made = (Contender(NoChangeClassifier), Contender(PriorClassifier))
    return dict(zip(BASELINES, made, strict=True))


def compare(  # noqa: PLR0913 - an experiment's settings, by keyword
    models: Any,
    stream: Any,
    *,
    target: str | None = None,
    time: str | None = None,
    drop: Collection[str] | str = (),
    calendar: Collection[str] | str = (),
    encoding: str | None = None,
    separator: str | None = None,
    rows: int | None = None,
    drifts: Sequence[int | tuple[int, int]] | None = None,
    delay: Any = None,
    moment: Any = None,
    seeds: int | None = None,
    folds: int = 1,
    forks: str = "cross",
    positive: Any = None,
    windows: int = N_WINDOWS,
    shuffled: int | None = None,
    time_limit: float | str | None = None,
    predictions: bool = False,
    explain: bool = False,
    jobs: int = -1,
    backend: str = "loky",
    address: str | None = None,
    output: str | PathLike[str] | None = None,
    progress: bool = False,
) -> Results:
    """Compare classifiers on streams: every model predicts each example, then learns it.

    Parameters
    ----------
    models
        Classifiers or pipelines of River's interface, factories of them, or `Contender`: a dict by
        name, a list, or one. Each run has a fresh clone. No change (the last label that came) and
        majority (the one that came most often) run beside them.
    stream
        What `drift.streams.read_stream` takes: a data set of River's, pairs of features and label,
        a data frame, or a CSV, Parquet, ARFF, LIBSVM or JSON lines file; a dict of such, by name.
    target, time, drop
        Of data frames and files: the column of the labels, the one that orders the rows, and those
        that are no features. Other data cannot use them: beside these in a dict, give streams that
        `drift.streams.read_stream` has read.
    calendar, encoding, separator
        As for `drift.streams.read_stream`.
    rows
        Take the first examples only.
    drifts
        Rows where what is to be learnt is known to change, or (row, width); None: those that the
        stream knows of itself.
    moment
        When an example comes, as in `river.evaluate.progressive_val_score`: the name of a feature
        or column of numbers or times, or a function of the features. Examples are sorted by it.
        None: the stream's `moments`, or the example's number.
    delay
        How long after an example its label comes, as there: a number, of seconds beside a moment
        and else of examples; a span, ``"2 days"`` or a `datetime.timedelta`; the name of a feature,
        which is then none, as nobody knows it before the label; a function of features and label;
        or a frozen distribution of SciPy's, drawn once for all models. None: the stream's `delays`,
        or at once. With a delay, and without folds, a `Tracker` has ``late=True`` unless it was
        given `late`, at the end of a pipeline, too. What a function reads stays a feature.
    seeds
        Runs of each model that draws at random, with the seeds 0, 1, ...; None: one, with its own
        seed, or 0 where that is None.
    folds, forks
        Prequential cross-validation: so many models of each kind, each of which is tested on
        some examples and learns others: ``cross``, tested on one in `folds`; ``split``, learns one
        in `folds`; ``bootstrap``, learns an example as often as a Poisson number says and is tested
        where it is 0. 1: one model, tested on all.
    positive
        The label of the class that matters: models are ranked by its average precision, and the
        tables have its recall, precision and F1. None: the class that is rarer than 10 %, and than
        half of an equal share, if there is one.
    windows
        Equal parts of the stream that measures are taken in.
    shuffled
        Run everything also on the stream with blocks of so many examples in random order: what near
        examples have in common stays, and the order in which the target moved is gone.
    time_limit
        Processor time after which a run ends, and is recorded as such: seconds, or a text such as
        ``"10m"``. None: never.
    predictions
        Keep all predictions, in the folder ``predictions`` of the output.
    explain
        Explain predictions: which features mattered when. Of each run up to 2,000 rows are, evenly
        spread, as long as that takes no more time than the model itself; the report says how many.
    jobs, backend, address
        Where runs are computed, as for `run_all`.
    output
        Folder that keeps the runs: a call computes only those that it lacks. None: nothing is kept.
        A folder that has results of other data under a stream's name is refused.
    progress
        Show a bar with the time left, on stderr.

    Returns
    -------
    Results
        With the tables that the notes describe.

    Raises
    ------
    ParameterError
        A model that is no classifier, a stream that is none, a value that cannot be used.
    DataError
        Files or runs that cannot be read.

    Notes
    -----
    The tables are

    runs
        One row a run: ``model``, ``stream``, ``seed``, ``delay``, ``fold`` (the last three None
        where there is none); ``status``: ``ok``, ``time limit`` or ``failed``, and then the
        measures of what there was; ``message``, why, or which predictions are no label of a row;
        ``rows``, all but the first, whatever the delay; ``unpredicted``, those of them without a
        prediction, which no measure counts; ``blind``, those predicted before any label had come,
        each a mistake of every model and left out of all measures but ``error`` and the two kappas
        that are made of it; ``mistakes``;
        ``error_after_label``, the error of the other rows; the measures, all of
        them shares except ``log_loss``: ``error``, ``kappa``, ``kappa_temporal``, ``kappa_m``,
        ``balanced_accuracy``, ``f1`` (macro), ``auc``, ``average_precision``, ``log_loss``,
        ``calibration_error``; ``recovery``,
        the mean number of rows until the model is as good as before a drift, where it never is
        those up to the next one or the end, and ``unrecovered``, the number of such drifts, both
        missing for no change and majority; ``positive``, the class that ``recall``, ``precision``
        and ``positive_f1`` are of, at the ``threshold`` of its probability that had the best F1 so
        far: the table has the last one; ``average_precision`` is then that of this class alone;
        ``headline``, what models are ranked by;
        ``microseconds`` of processor time for predicting and learning an example; ``memory``, the
        largest size of the model in bytes.
    windows
        One row a run and window: ``model``, ``stream``, ``seed``, ``fold``; ``start`` and ``stop``,
        its first row and that after its last; ``rows``, ``unpredicted``, the measures,
        ``microseconds`` and ``memory`` (at its end; missing where looking would have taken long).
    drifts
        One row a drift that is known: ``stream``, ``row``, ``width``.
    recoveries
        One row a run and drift: ``model``, ``stream``, ``seed``, ``fold``, ``row``, ``before``,
        ``rows``, ``recovered``, ``excess``; see `drift.experiments.comparison.measures.recoveries`.
    importances
        With `explain`, one row a run, window and feature of the 50 that mattered most: ``model``,
        ``stream``, ``seed``, ``fold``, ``start``, ``stop``; ``explained``, the rows up to there;
        ``importance``, the mean absolute contribution to the log-odds over the last 20 or so.
    tests
        One row a pair of models, over the streams that are not `shuffled`; see
        `drift.experiments.comparison.statistics.pairs_of`.
    table
        One row a stream and model: means over its runs, the best first.

    ``kappa_temporal`` and ``kappa_m`` are 1 - e / e0, where e0 is the error of no change and of
    majority on the same rows, with the same delay. The measures of a run are those of all its
    predictions at once, and do not depend on `windows`.

    Examples
    --------
    >>> from river.datasets import Phishing
    >>> from river.naive_bayes import GaussianNB
    >>> from drift.experiments import compare
    >>> from drift.models import LBP
    >>> results = compare([LBP(budget=50), GaussianNB()], Phishing(), jobs=1)
    >>> print(results["runs"][["model", "rows", "error"]].round(3).to_string(index=False))
         model  rows  error
           LBP  1249  0.191
    GaussianNB  1249  0.115
     no change  1249  0.484
      majority  1249  0.445
    """
    if predictions and output is None:
        raise ParameterError("predictions are kept in a folder: give one as output")
    entrants = contenders(models)
    known = _streams(
        stream,
        drifts,
        moment,
        delay,
        shuffled,
        target=target,
        time=time,
        drop=drop,
        calendar=calendar,
        encoding=encoding,
        separator=separator,
        rows=rows,
    )
    late = delay
    if delay is None and any(stream.delays is not None for stream in known):
        late = "as the stream has it"
    settings = Settings(
        delay=None if late is None else described(late),
        moment=None if moment is None else described(moment),
        seeds=None if seeds is None else check_integer("seeds", seeds),
        folds=check_integer("folds", folds),
        forks=forks,
        windows=check_integer("windows", windows),
        time_limit=None if time_limit is None else check_duration("time_limit", time_limit),
        predictions=predictions,
        explain=explain,
    )
    if explain:
        for entrant in entrants.values():
            check_probabilities(entrant.make())
    focuses = {stream.name: focus_of(stream, positive) for stream in known}
    descriptions = {
        name: _described(entrant, known, settings) for name, entrant in entrants.items()
    }
    _add_baselines(entrants)
    runs = [
        pair
        for stream in known
        for pair in runs_of(
            stream, entrants, order_of(stream, delay), settings, focuses[stream.name]
        )
    ]
    return run_experiment(
        COMPARISON,
        lambda _: [runs],
        {stream.name: _known(stream, focuses[stream.name]) for stream in known},
        {**settings._asdict(), "models": descriptions},
        output,
        jobs=jobs,
        backend=backend,
        address=address,
        progress=progress,
    )


def _described(entrant: Contender, streams: Sequence[Stream], settings: Settings) -> str:
    """Say what a model is on each stream: on those with texts something is put before it."""
    by_model: dict[str, list[str]] = {}
    for stream in streams:
        description = entrant.on(stream, late=settings.late).traits().description
        by_model.setdefault(description, []).append(stream.name)
    if len(by_model) == 1:
        return next(iter(by_model))
    return "; ".join(f"on {', '.join(names)}: {what}" for what, names in by_model.items())


def _streams(
    given: Any,
    drifts: Sequence[Any] | None,
    moment: Any,
    delay: Any,
    shuffled: int | None,
    **how: Any,
) -> list[Stream]:
    """Read what is compared on, in the order of its moments; behind it come shuffled copies."""
    # In a table these are columns, which are no features; elsewhere `timed` looks for features.
    columns: dict[str, Any] = {"delay": column_of(delay)}
    columns["moment"] = moment if isinstance(moment, str) else None
    by_name = given if isinstance(given, Mapping) else {None: given}
    streams = []
    for name, source in by_name.items():
        named = columns if has_columns(source) else {}
        stream = read_stream(source, name=None if name is None else str(name), **named, **how)
        streams.append(stream if drifts is None else replace(stream, drifts=cast("Any", drifts)))
    streams = [timed(stream, moment, delay) for stream in streams]
    if shuffled is not None:
        check_integer("shuffled", shuffled)
        streams += [stream.block_shuffled(shuffled) for stream in streams]
    if not streams:
        raise ParameterError("there is no stream: give at least one")
    for name, times in Counter(stream.name for stream in streams).items():
        if times > 1:
            raise ParameterError(
                f"{times} streams are called {name!r}, as text: give each a name of its own"
            )
    return streams


def _add_baselines(entrants: dict[str, Contender]) -> None:
    for name, baseline in baselines().items():
        if entrants.setdefault(name, baseline).traits() != baseline.traits():
            raise ParameterError(
                f"{name!r} is the baseline that runs beside yours: give your model another name"
            )


def runs_of(
    stream: Stream,
    entrants: Mapping[str, Contender],
    order: NDArray[np.int64],
    settings: Settings,
    focus: Focus = EVERYTHING,
) -> Iterator[tuple[str, Run]]:
    """Yield name and run of every contender, with each of its seeds, in each fold.

    A run's key has three fingerprints: ``parameters`` of the model, ``measures`` of the code that
    runs and measures it, and ``code`` of drift's models, if it may use one.

    Parameters
    ----------
    stream
        What they learn.
    entrants
        By name.
    order
        As from `order_of`.
    settings
        What they share.
    focus
        The class that they are measured by; default: all.
    """
    shared: Record = {
        "stream": stream.name,
        "sha256": stream.sha256,
        "examples": len(stream),
        "drifts": [list(drift) for drift in stream.drifts],
        "order": hashlib.sha256(order.tobytes()).hexdigest()[:16],
        **{name: value for name, value in settings._asdict().items() if name != "seeds"},
        "forks": None if settings.folds == 1 else settings.forks,
        "measures": measuring_code(),
        "positive": focus.label,
        "headline": focus.headline,
        "drift": drift.__version__,
        "river": version("river"),
    }
    forks = forks_of(len(stream), settings.folds, settings.forks)
    for name, entrant in entrants.items():
        contender = entrant.on(stream, late=settings.late)
        traits = contender.traits()
        chosen = {
            "model": name,
            "parameters": traits.identity,
            "code": models_code() if traits.may_use_drift else None,
        }
        told = settings._replace(explain=settings.explain and name not in BASELINES)
        seeds = range(settings.seeds) if settings.seeds is not None and traits.draws else [None]
        for seed in seeds:
            for fold, fork in enumerate(forks):
                which = {"seed": seed, "fold": None if fork is None else fold}
                yield (
                    name,
                    Run(
                        {**shared, **chosen, **which},
                        partial(contender.make, seed),
                        evaluate,
                        (stream.packed, order, Task(told, stream.drifts, fork, focus.positive)),
                        len(stream),
                    ),
                )


def _known(stream: Stream, focus: Focus) -> Record:
    """Return what results know of a stream."""
    names = list(map(str, stream.features))
    return {
        "rows": len(stream),
        "sha256": stream.sha256,
        "shuffled": stream.shuffled,
        "drifts": [drift._asdict() for drift in stream.drifts],
        "notes": list(stream.notes),
        "classes": len(stream.classes),
        "focus": focus.note,
        "headline": focus.headline,
        "positive": focus.label,
        "categories": list(map(str, stream.categories)),
        "features": names[:_NAMED],
        "more_features": max(0, len(names) - _NAMED),
    }


def _drifts(results: Results) -> list[Record]:
    streams = results.streams.items()
    return [{"stream": name, **drift} for name, stream in streams for drift in stream["drifts"]]


def _figures(results: Results) -> dict[str, str]:
    drawn = ["cost"] + ["windows"] * (len(results.streams) == 1)
    drawn += ["importances"] if results.rows("importances") else []
    drawn += ["ranks"] if results.rows("tests") else []
    return {name: f"drift.experiments.comparison.figures:{name}" for name in drawn}


#: What a comparison shows; see `compare`.
COMPARISON = ExperimentKind(
    tables={
        "runs": TableSpec(lambda results: run_rows(results.records), RUNS),
        "windows": TableSpec(lambda results: window_rows(results.records), WINDOWS),
        "drifts": TableSpec(_drifts, ("stream", "row", "width")),
        "recoveries": TableSpec(lambda results: recovery_rows(results.records), RECOVERIES),
        "importances": TableSpec(lambda results: importance_rows(results.records), IMPORTANCES),
        "tests": TableSpec(lambda results: pairs_of(own_rows(results)), TESTS),
        "table": TableSpec(lambda results: summary(results.rows("runs")), SUMMARY),
    },
    figures=_figures,
    shown=compared,
    texts={"report.html": report},
)
