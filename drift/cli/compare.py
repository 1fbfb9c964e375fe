"""Models side by side on a stream of one's own."""

from __future__ import annotations

import inspect
import re
from dataclasses import asdict, dataclass
from functools import cached_property, reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from drift import models, streams
from drift._checks import check_names, in_order
from drift._options import from_tables, option
from drift.cli._command import fail
from drift.cli._experiment import Experiment
from drift.cli._named import build, drift_models, parse
from drift.cli._settings import load
from drift.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drift.streams.stream import Stream

__all__ = ["Compare"]

#: Default budget of drift's models.
_BUDGET = 300
_NUMBER = re.compile(r"-?\d+(\.\d*)?")
#: Options of how a file is read.
_READING = ("time", "drop", "calendar", "encoding", "separator", "rows")
#: Columns beyond which a file is a text's.
_WORDS = 1000
#: Models of River and MOA by short names, as the arena calls them.
_RIVALS = {
    "arf": "ARF",
    "hat": "Hoeffding adaptive tree",
    "ht": "Hoeffding tree",
    "knn": "neighbours",
    "lr": "logistic regression",
    "nb": "naive Bayes",
    "srp": "SRP",
    "moa_arf": "MOA ARF",
    "moa_hat": "MOA HAT",
    "moa_plastic": "MOA PLASTIC",
    "moa_sgbt": "MOA SGBT",
    "moa_srp": "MOA SRP",
}


@dataclass(frozen=True, kw_only=True)
class _Options:
    file: str = option(
        "CSV, Parquet, ARFF, LIBSVM or JSON lines, by its suffix; also compressed or zipped; - for "
        "the standard input.",
        argument=True,
    )
    target: str | None = option("The column of the labels.", None)
    models: tuple[str, ...] = option(
        "What to compare: tracker or another of `drift models`, 'LBP(budget=500)'; River's "
        f"{', '.join(name for name in _RIVALS if not name.startswith('moa_'))}; MOA's "
        f"{', '.join(name for name in _RIVALS if name.startswith('moa_'))}; module:Class for your "
        "own.",
        ("tracker", "lbp", "lr"),
    )
    time: str | None = option(
        "A column that orders the rows, and is no feature; default: as they stand.", None
    )
    drop: tuple[str, ...] = option(
        "Columns that are no features, such as an id; one with a comma in its name in double "
        "quotes; default: none.",
        (),
    )
    calendar: tuple[str, ...] = option(
        "Columns of times whose hour and weekday are features; default: none.", ()
    )
    encoding: str | None = option("Of a text file, such as cp1252; default: UTF-8.", None)
    separator: str | None = option(
        "Of the cells in a text file; default: comma, semicolon, tab or bar, as it has them.", None
    )
    rows: int | None = option("Take the first examples only; default: all.", None, least=1)
    moment: str | None = option(
        "The column that says when an example comes, in times or seconds; default: one by one.",
        None,
    )
    delay: str | None = option(
        "How long after an example its label comes: a number, of examples or with --moment of "
        "seconds; '2 days', '90 min'; a column, which is then no feature; or a distribution of "
        "SciPy's, 'geom(p=0.01)'; default: at once.",
        None,
    )
    positive: str | None = option(
        "The label that matters: average precision, recall, precision and F1 are of it; default: "
        "the one that is rarer than 10 %.",
        None,
    )
    drifts: tuple[int, ...] | None = option(
        "Rows where a drift is known; default: none.", None, least=0
    )
    seeds: int | None = option(
        "Runs of each model that draws at random; default: 1.", None, least=1
    )
    folds: int = option("Models of each kind, for prequential cross-validation.", 1, least=1)
    forks: str = option(
        "How folds share the examples.", "cross", choices=("cross", "split", "bootstrap")
    )
    windows: int = option("Equal parts of the stream to measure in.", 50, least=1)
    shuffled: int | None = option(
        "Run also on the stream with blocks of so many rows shuffled; default: not.", None, least=2
    )
    time_limit: float | None = option(
        "Seconds after which a run ends, and is recorded so; default: never.",
        None,
        least=0,
        above=True,
        duration=True,
    )
    predictions: bool = option("Keep all predictions.", default=False)
    explain: bool = option(
        "Show which features mattered when, by a sample of the rows: at most twice the time.",
        default=False,
    )


@dataclass(kw_only=True)
class Compare(Experiment):
    """Compare models on a file: each predicts every row, then learns it. Leaves a report.

    The output folder gets tables and report.html. What it already holds is not computed again.
    Every option of the comparison may also be in [compare] of the --config file. Its table [models]
    has models by name, such as forest = {class = "river.forest:ARFClassifier", n_models = 5}.
    """

    config: Path | None = option("TOML file with [compare] and [models].", None)

    shared = _Options

    @cached_property
    def _options(self) -> tuple[_Options, dict[str, Any]]:
        """What file and command line say, and the models to compare by name."""
        tables = load(self.config, ("compare", "models"))
        given = tables["compare"] | self.given
        if type(given.get("delay")) in {int, float}:  # in a file; on the command line all is text
            given["delay"] = str(given["delay"])
        options = from_tables(_Options, "compare", {"compare": given}, {})
        table = tables["models"]
        names = options.models if "models" in given or not table else table
        return options, {name: table.get(name, name) for name in names}

    @property
    def folder(self) -> Path:
        """Where the results go."""
        options = self._options[0]
        file = "stdin" if options.file == "-" else Path(options.file).name.replace(".", "-")
        parts = ["compare", file]
        parts += ["by", options.moment] if options.moment else []
        parts += ["delay", options.delay] if options.delay else []
        name = "-".join(re.sub(r"[^\w.]+", "-", part).strip("-") for part in parts)
        return self.output or Path("results", name)

    def _run(self) -> None:
        options, compared = self._options
        from drift.cli._progress import reading
        from drift.experiments import compare
        from drift.experiments.comparison.clock import column_of

        where = self.settings()
        where.pop("config")
        settings = asdict(options) | {"delay": _delay(options.delay)}
        source, target = settings.pop("file"), settings.pop("target")
        how = {name: settings.pop(name) for name in _READING}
        delay = column_of(settings["delay"])
        with reading() as progress:
            stream = streams.read_stream(
                source, target, moment=options.moment, delay=delay, progress=progress, **how
            )
        if len(labels := set(stream.labels)) == 1:
            raise ParameterError(
                f"{stream.name}: all rows have the label {labels.pop()!r}: nothing to tell apart"
            )
        settings["models"] = {name: _made(name, one, stream) for name, one in compared.items()}
        results = compare(stream=stream, **settings, **where)
        self.show(results)
        report = self.folder / "report.html"
        if report.exists():
            click.echo(f"open {report} in a browser")
        statuses = {row["status"] for row in results.rows("runs") if row["model"] in compared}
        if not statuses & {"ok", "time limit"}:
            fail("no model has a result: what is above says why", 1)


def _delay(text: str | None) -> Any:
    """Return a number of examples, the name of a column, or a distribution of SciPy's."""
    if text is None or text.isdecimal():
        return text and int(text)
    if "(" not in text:
        return float(text) if _NUMBER.fullmatch(text) else text

    table = parse(text)
    name = table.pop("class")
    from scipy import stats

    kind: Any = getattr(stats, name, None)
    if not hasattr(kind, "rvs"):
        raise ParameterError(f"--delay {text}: SciPy has no distribution {name!r}: 'geom(p=0.01)'")
    shapes = kind.shapes.split(", ") if kind.shapes else []
    check_names(f"--delay {text}: {name} has no parameter", table, [*shapes, "loc", "scale"])
    try:
        return kind(**table)
    except TypeError as error:
        raise ParameterError(f"--delay {text}: {error}") from None


def _made(name: str, asked: Any, stream: Stream) -> Any:
    """Return a model; what a file's table cannot be is refused by the name that it has there."""
    try:
        return _model(asked, stream)
    except ParameterError as error:
        raise (ParameterError(f"[models] {name}: {error}") if name != asked else error) from None


def _model(asked: Any, stream: Stream) -> Any:
    """Return a model by its name, its class with parameters, or the table of a file."""
    if not isinstance(asked, str | dict):
        raise ParameterError(f"{asked!r} names no model: write 'LBP(budget=500)'")
    table = asked if isinstance(asked, dict) else parse(asked)
    name = table.get("class")
    if not isinstance(name, str) or ":" in name or "." in name:
        return build(table)  # which refuses other names
    known = drift_models()
    [name] = in_order("model", [name], [*_RIVALS, *known, "OneVsRest", "Averaged", "Threshold"])
    if name in _RIVALS:
        return _rival(stream, **table | {"class": name})
    if name == "Threshold":
        return _decided(stream, **table)
    if name in set(known) - {"MIRA"} and "budget" in inspect.signature(known[name]).parameters:
        table = {"budget": _BUDGET, **table}  # that of MIRA is of one of its caches alone
    return _scaled(table | {"class": name}, stream)


def _scaled(table: Mapping[str, Any], stream: Stream) -> Any:
    """Return one of drift's models as these classes and columns need it.

    All but the Tracker have a scaler before them, where columns are not words of a text, and
    those that know no labels but true and false are made one for each class.
    """
    model = build(table)
    if isinstance(model, models.Tracker):
        return model
    labels = set(stream.labels)
    if not (labels <= {False, True} or labels <= {-1, 1}) and not model._multiclass:  # noqa: SLF001
        model = models.OneVsRest(model)
    return _standardised(model, stream)


def _decided(stream: Stream, model: Any = "tracker", positive: Any = None, **table: Any) -> Any:
    """Return a model with a threshold of its own, for a label that the stream has."""
    from drift.experiments.comparison.focus import focus_of

    if isinstance(positive, dict):  # a word without quotes
        positive = positive["class"]
    label = focus_of(stream, positive).positive
    if label is None:
        raise ParameterError(
            f"Threshold: {stream.name} has no rare class: name one, such as "
            f"Threshold(positive={stream.labels[0]!r})"
        )
    # What scales numbers stays in front: it is passed by texts.
    *front, last = getattr(inner := _model(model, stream), "steps", {"": inner}).values()
    front.append(build(table | {"class": "Threshold", "model": last, "positive": label}))
    return reduce(or_, front)


def _rival(stream: Stream, **table: Any) -> Any:
    """Return a model of River's or MOA's as the arena has it, for any number of classes."""
    from river.multiclass import OneVsRestClassifier

    from drift.experiments.arena.models import MODELS

    short, labels = table.pop("class"), set(stream.labels)
    family = MODELS[_RIVALS[short]]
    try:
        model = family.make(stream, **table)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"{short}: {error}") from None
    if short == "lr" and len(labels) == 2 and not labels <= {False, True}:
        model = OneVsRestClassifier(model)  # it knows no others: two of it are the same model
    return model if family.raw else _standardised(model, stream)


def _standardised(model: Any, stream: Stream) -> Any:
    """Put a scaler before a model where columns are not words of a text."""
    from river.preprocessing import StandardScaler

    return model if len(stream.features) > _WORDS else StandardScaler() | model
