"""The report of a comparison: one file for a browser that asks nothing of a network.

Plotly draws the curves: of the maintained libraries that zoom it needs the least beside it
(narwhals, which drift has), and its script is one file that can be put into the page.
"""

from __future__ import annotations

import json
import math
from html import escape
from importlib import resources
from string import Template
from typing import TYPE_CHECKING, Any, NamedTuple

import drift
from drift._checks import counted
from drift.errors import needing
from drift.experiments.comparison.clock import lateness
from drift.experiments.comparison.importances import curves
from drift.experiments.comparison.importances import remarks as explained_remarks
from drift.experiments.comparison.measures import (
    COSTS,
    MEASURES,
    POSITIVE,
    RECOVERY,
    THRESHOLD,
    with_both_errors,
)
from drift.experiments.comparison.predictions import sampled
from drift.experiments.comparison.statistics import TESTS
from drift.experiments.comparison.tables import BASELINES, remarks, shown
from drift.experiments.records import grouped, mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from drift.experiments.comparison.measures import Measure
    from drift.experiments.jobs import Record
    from drift.experiments.results import Results

__all__ = ["report"]

#: On white and on black; neighbours differ in lightness, too, for readers who see few colours.
_COLOURS = (
    *(("#0072b2", "#56b4e9"), ("#c24a00", "#ff9a5c"), ("#007a5a", "#3ed6a5")),
    *(("#a9437e", "#e9a3cb"), ("#7a5c00", "#f0c94a"), ("#3b3b98", "#b4b4ff")),
)
_DASHES = ("solid", "solid", "solid", "dash", "dashdot", "longdash")
#: What each says, and how its line is drawn.
_BASELINES = {
    "no change": (", which repeats the last label,", "dot"),
    "majority": (", which predicts the most frequent label,", "dash"),
}
_HOW = """\
Times are of the processor, of predicting and learning one example; memory is the model's largest.
All rows count but the first, whatever the delay. Those that are predicted before any label came are
mistakes of every model in the error of all rows and in the kappas against a baseline; all other
measures and the curves leave them out. AUC and average
precision are of all rows at once, as scikit-learn computes them. Log loss is in nats, of
probabilities clipped to [1e-15, 1 - 1e-15]; a label without a probability counts as 1e-15, where
River's CrossEntropy counts no loss. No change repeats the last label that came, majority predicts
the one that came most often."""
_ALL = {**MEASURES, **COSTS, **POSITIVE}


class _Column(NamedTuple):
    key: str
    heading: str
    about: str = ""
    shape: Callable[[Any], str] | None = None  # None: a text
    falling: bool = True


def report(results: Results) -> str:
    """Return the page.

    Parameters
    ----------
    results
        What it shows.

    Raises
    ------
    MissingExtraError
        plotly is not installed.
    """
    with needing("plotly", "compare"):
        from plotly.offline import get_plotlyjs  # noqa: PLC0415 - optional
    names = list(results.streams)
    streams = [_stream(results, name) for name in names]
    explained = [_explained(results, stream) for stream in streams]
    late = lateness(results.settings)
    title = f"{', '.join(names)}: {counted(len(streams[0]['models']), 'model')} compared"
    data = {
        "measures": {
            name: {"title": measure.title, "factor": measure.factor, "zero": measure.falling}
            for name, measure in _ALL.items()
        }
        | {
            name: {"title": "mean |contribution|", "factor": 1, "zero": True}
            for part in explained
            for name in part["asked"]
        },
        "streams": [*streams, *explained],
    }
    folder = resources.files(__name__)
    page = Template((folder / "page.html").read_text(encoding="utf-8"))
    return page.substitute(
        title=escape(title if late == "at once" else f"{title}, labels {late}"),
        lead=escape(" ".join(_lead(stream) for stream in streams)),
        remarks="\n".join(f'<p class="remark">{escape(text)}</p>' for text in _remarks(results)),
        sections="\n".join(
            [
                *(
                    _section(results, i, stream, _importances(len(streams) + i, explained[i]))
                    for i, stream in enumerate(streams)
                ),
                _tests(results),
            ]
        ),
        about=_about(results),
        style=(folder / "style.css").read_text(encoding="utf-8"),
        script=(folder / "script.js").read_text(encoding="utf-8"),
        data=json.dumps(data).replace("<", "\\u003c"),
        plotly=get_plotlyjs(),
    )


def _measures(headline: str, *, positive: bool) -> dict[str, Measure]:
    """Measures in the order of the table: on a telephone the first are seen."""
    first = {headline: MEASURES[headline], **(POSITIVE if positive else {})}
    return {**first, "error": MEASURES["error"], **COSTS, **MEASURES}


def _stream(results: Results, name: str) -> dict[str, Any]:
    """What the page's script knows of a stream."""
    rows = _rows(results, name)
    windows = [row for row in results.rows("windows") if row["stream"] == name]
    places = sorted({(row["start"], row["stop"]) for row in windows})
    ended = {row["model"] for row in rows if row["error"] is not None}
    curves = grouped((row for row in windows if row["model"] in ended), "model", "start")
    known = results.streams[name]
    headline, positive = known["headline"], known["positive"]
    measures = _measures(headline, positive=positive is not None)
    models, coloured = [], iter(zip(_COLOURS, _DASHES, strict=True))
    for row in rows:
        baseline = row["model"] in BASELINES
        look = None if baseline else next(coloured, None)
        models.append(
            {
                "name": row["model"],
                "baseline": baseline,
                "main": look is not None,
                "colours": look and look[0],
                "dash": look[1] if look else _BASELINES[row["model"]][1] if baseline else "solid",
                "whole": row["status"] == "ok",
                "value": row["error_after_label" if headline == "error" else headline],
                "cost": row["microseconds"],
                "windows": {
                    measure: [
                        mean(point[measure] for point in curves.get((row["model"], start), ()))
                        for start, _ in places
                    ]
                    for measure in measures
                },
            }
        )
    return {
        "name": name,
        "rows": known["rows"],
        "headline": headline,
        "positive": positive,
        "late": any(row["blind"] for row in rows),
        "middles": [(start + stop) / 2 for start, stop in places],
        "drifts": known["drifts"],
        "models": models,
    }


def _rows(results: Results, stream: str) -> list[Record]:
    """Rows of the table."""
    return [row for row in shown(results.rows("table")) if row["stream"] == stream]


def _lead(stream: Mapping[str, Any]) -> str:
    known = [model for model in stream["models"] if model["whole"] and model["value"] is not None]
    if not known:
        return f"No model has a result on {stream['name']}."
    measure = MEASURES[stream["headline"]]
    leaders = [model for model in known if not model["baseline"]][:2]
    baseline = [model for model in known if model["baseline"]][:1]
    values = {model["name"]: model["value"] for model in [known[0], *leaders, *baseline]}
    best = f"the {'lowest' if measure.falling else 'highest'} {_noun(stream)}{_after(stream)}, "
    unit = " %" if measure.factor == 100 else ""
    parts: list[str] = []
    for name, value in values.items():
        about = _BASELINES[name][0] if name in _BASELINES else ""
        parts.append(f"{name}{about} has {'' if parts else best}{measure.text(value)}{unit}")
    return f"On {stream['name']} ({counted(stream['rows'], 'row')}) {'; '.join(parts)}."


def _after(stream: Mapping[str, Any]) -> str:
    return " after the first label" if stream["late"] else ""


def _noun(stream: Mapping[str, Any]) -> str:
    """The measure that models are ranked by, without its unit."""
    noun = stream["headline"].replace("_", " ")
    return noun if stream["positive"] is None else f"{noun} of {stream['positive']!r}"


def _remarks(results: Results) -> Iterator[str]:
    for name, stream in results.streams.items():
        if not stream["shuffled"]:
            notes = [*stream["notes"], *filter(None, [stream["focus"]])]
            yield from (f"{name}: {note}." for note in notes)
    yield from (f"{text}." for text in remarks(results.rows("runs")))
    yield from (f"{text}." for text in explained_remarks(results.records))
    for name, stream in results.streams.items():
        if (every := sampled(stream["rows"], stream["classes"])) > 1:
            yield f"{name}: AUC and average precision over the classes are of 1 row in {every}."


def _explained(results: Results, stream: Mapping[str, Any]) -> dict[str, Any]:
    """What the script draws of importances: features are its curves, and models its measures."""
    found = curves(results.rows("importances"), stream["name"])
    shown = [model["name"] for model in stream["models"] if model["name"] in found]
    names = list(dict.fromkeys(name for model in shown for name in found[model][1]))
    middles = sorted({middle for model in shown for middle in found[model][0]})
    known = {f"importances {k}": found[model] for k, model in enumerate(shown)}
    features = [
        {
            "name": name,
            "baseline": False,
            "main": True,
            "colours": _COLOURS[i % len(_COLOURS)],
            "dash": _DASHES[i // len(_COLOURS) % len(_DASHES)],
            "windows": {
                key: [dict(zip(at, values.get(name, ()), strict=False)).get(m) for m in middles]
                for key, (at, values) in known.items()
            },
        }
        for i, name in enumerate(names)
    ]
    shared = {name: stream[name] for name in ("rows", "drifts")}
    return {
        "models": features,
        "middles": middles,
        "asked": dict(zip(known, shown, strict=True)),
    } | shared


def _importances(number: int, explained: Mapping[str, Any]) -> str:
    if not explained["models"]:
        return ""
    chosen = "".join(
        f'<option value="{key}">{escape(model)}</option>'
        for key, model in explained["asked"].items()
    )
    columns = [_Column("feature", "feature")]
    rows: list[Record] = [{"feature": model["name"]} for model in explained["models"]]
    for key, model in explained["asked"].items():
        for part, at in (("first", 0), ("last", -1)):
            columns.append(_Column(f"{key} {part}", f"{model}, {part}", shape="{:.3f}".format))
            for row, importances in zip(rows, explained["models"], strict=True):
                row[f"{key} {part}"] = importances["windows"][key][at]
    table = _table("Importances in the first and the last window that have any.", columns, rows)
    return f"""\
<h3>Which features mattered when</h3>
<p class="note">Mean absolute contributions to the log-odds of the predicted class, over the last
20 or so rows of a sample.</p>
<figure data-stream="{number}">
<div class="tools">
<label>Of <select aria-label="Model whose features are shown">{chosen}</select></label>
{_buttons([("in", "Zoom in"), ("out", "Zoom out"), ("left", "Left"), ("right", "Right")])}
</div>
<div class="plot over-time" role="img" aria-label="Importance of each feature over the rows. A table
below has numbers."></div>
</figure>
{table}"""


def _section(results: Results, number: int, stream: Mapping[str, Any], importances: str) -> str:
    name = escape(stream["name"])
    drifts = stream["drifts"]
    where = ", ".join(f"{drift['row']:,}" for drift in drifts)
    known = f"Known drifts, at row {where}, are marked." if drifts else "No drift is known."
    headline = MEASURES[stream["headline"]]
    measures = _measures(stream["headline"], positive=stream["positive"] is not None)
    chosen = "".join(
        f'<option value="{key}">{escape(measure.title)}</option>'
        for key, measure in measures.items()
    )
    best = escape(
        ", ".join(
            f"{model['name']} {headline.text(model['value'])}"
            for model in stream["models"]
            if model["value"] is not None
        )
    )
    noun = _noun(stream)
    noun, side = escape(f"{noun[0].upper()}{noun[1:]}"), "Down" if headline.falling else "Up"
    of = " Over the rows after the first label." if stream["late"] else ""
    return f"""\
<section>
<h2>{name}</h2>
{_summary(results, stream)}
<h3>Over time</h3>
<p class="note">Means over runs in each of {len(stream["middles"])} windows. {known} Drag across the
figure to zoom, or use the buttons.</p>
<figure data-stream="{number}">
<div class="tools">
<label>Show <select aria-label="Measure shown over time">{chosen}</select></label>
{_buttons([("in", "Zoom in"), ("out", "Zoom out"), ("left", "Left"), ("right", "Right")])}
</div>
<div class="plot over-time" role="img" aria-label="Curves of each model over the rows of {name}.
{escape(known)} {escape(headline.title)} over all rows{_after(stream)}: {best}. A table below has
the numbers."></div>
</figure>
{_windows(stream)}
{importances}
<h3>{noun} against time</h3>
<p class="note">{side} and to the left is better.{of}</p>
<figure data-stream="{number}">
<div class="tools">{_buttons([("in", "Zoom in"), ("out", "Zoom out")])}</div>
<div class="plot against" role="img" aria-label="{noun} of each model on {name} against the
microseconds that an example takes; the table at the top has the numbers."></div>
</figure>
{_recoveries(results, stream)}
</section>"""


def _buttons(acts: Sequence[tuple[str, str]]) -> str:
    return " ".join(
        f'<button type="button" data-act="{act}">{text}</button>'
        for act, text in [*acts, ("reset", "Reset")]
    )


def _summary(results: Results, stream: Mapping[str, Any]) -> str:
    rows = _rows(results, stream["name"])
    columns = [_Column("model", "model")]
    positive = stream["positive"] is not None
    measures = _measures(stream["headline"], positive=positive)
    if any(row["blind"] for row in rows):
        measures = with_both_errors(measures)
    columns += [_measured(key, measure) for key, measure in measures.items()]
    if stream["drifts"]:
        columns.insert(1 + list(measures).index("microseconds"), _measured("recovery", RECOVERY))
    late = lateness(results.settings)
    caption = "Each model predicts a row, then learns it. A heading sorts."
    if late != "at once":
        caption = f"Each model predicts a row, and learns it when its label comes, {late}. "
        caption += "A heading sorts."
    if positive:
        columns.append(_measured("threshold", THRESHOLD))
        caption += (
            f" A row is said to be {stream['positive']!r} from the probability on that had the best"
            " F1 so far: the threshold is the last one. Error and macro F1 are of the models' own"
            " predictions."
        )
    missing = {row["unpredicted"] for row in rows if row["unpredicted"] is not None}
    if len(missing) > 1:
        about = "rows without a prediction, which no measure counts"
        columns.append(_Column("unpredicted", "unpredicted", about, "{:,.0f}".format))
    elif missing - {0}:
        # A mean over folds; a row may have been predicted in one fold only.
        caption += f" {counted(math.ceil(missing.pop()), 'row')} that no model predicts: left out."
    return _table(caption, columns, rows, by=stream["headline"])


def _measured(key: str, measure: Measure) -> _Column:
    return _Column(key, measure.heading, measure.title, measure.text, measure.falling)


def _windows(stream: Mapping[str, Any]) -> str:
    columns = [_Column("row", "middle row", shape="{:,.0f}".format)]
    rows: list[Record] = [{"row": middle} for middle in stream["middles"]]
    measure = MEASURES[stream["headline"]]
    for number, model in enumerate(stream["models"]):
        columns.append(_Column(str(number), model["name"], shape=measure.text))
        for row, value in zip(rows, model["windows"][stream["headline"]], strict=True):
            row[str(number)] = value
    table = _table(f"In each window: {measure.title}.", columns, rows)
    return f"<details><summary>The windows as a table</summary>{table}</details>"


def _recoveries(results: Results, stream: Mapping[str, Any]) -> str:
    runs = [row for row in results.rows("recoveries") if row["stream"] == stream["name"]]
    if not runs:
        return ""
    rows = [
        {"model": model, "row": row}
        | {name: mean(row[name] for row in group) for name in ("before", "rows", "excess")}
        | {"never": sum(row["recovered"] is False for row in group)}
        for (model, row), group in grouped(runs, "model", "row").items()
    ]
    columns = [
        _Column("model", "model"),
        _Column("row", "drift at row", shape="{:,.0f}".format),
        _Column("before", "error before %", shape=MEASURES["error"].text),
        _Column("rows", "recovery", RECOVERY.title, "{:,.0f}".format),
        _Column("never", "not recovered", "runs that are not as good again", "{:,}".format),
        _Column("excess", "excess", "mistakes beyond those at the error before", "{:,.1f}".format),
    ]
    about = (
        "Means over runs. What does not recover counts the rows up to the next drift or the end."
    )
    table = _table(about, columns, rows)
    return f"<h3>After each drift</h3>{table}"


def _tests(results: Results) -> str:
    rows = results.rows("tests")
    if not rows:
        return ""
    numbers = {key for key in TESTS if not isinstance(rows[0][key], str)}
    columns = [
        _Column(key, key.replace("_", " "), shape="{:.4g}".format if key in numbers else None)
        for key in TESTS
    ]
    about = (
        f"{counted(len(rows), 'pair')} of models: Wilcoxon's signed ranks, corrected by Holm for "
        "all pairs, and Bayesian signed ranks. p better, p equivalent and p worse add up to 1."
    )
    return f"<section><h2>Tests</h2>{_table(about, columns, rows)}</section>"


def _table(
    caption: str, columns: Sequence[_Column], rows: Iterable[Mapping[str, Any]], by: str = ""
) -> str:
    """A table whose headings are buttons; what is missing is an empty cell."""
    heads = []
    for column in columns:
        kind = ' class="number"' if column.shape else ""
        first = "" if column.falling else ' data-first="descending"'
        way = "ascending" if column.falling else "descending"
        sort = f' aria-sort="{way}"' if column.key == by else ""
        about = f' title="{escape(column.about)}"' if column.about else ""
        heads.append(
            f'<th scope="col"{kind}{first}{sort}><button type="button"{about}>'
            f"{escape(column.heading)}</button></th>"
        )
    lines = []
    for row in rows:
        cells = [_cell(column, row[column.key], first=i == 0) for i, column in enumerate(columns)]
        kind = ' class="baseline"' if row.get("model") in BASELINES else ""
        lines.append(f"<tr{kind}>{''.join(cells)}</tr>")
    # What is wider than the screen is scrolled to, by keys as well.
    name = escape(caption)
    return (
        f'<p class="note">{name}</p><div class="wide" tabindex="0" role="region" '
        f'aria-label="{name}"><table aria-label="{name}">'
        f"<thead><tr>{''.join(heads)}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _cell(column: _Column, value: Any, *, first: bool) -> str:
    missing = value is None or value != value
    text = "" if missing else column.shape(value) if column.shape else str(value)
    kind = ' class="number"' if column.shape else ""
    tag, scope = ("th", ' scope="row"') if first else ("td", "")
    sort = "" if missing else escape(str(value))
    return f'<{tag}{scope}{kind} data-value="{sort}">{escape(text)}</{tag}>'


def _features(stream: Record) -> str:
    more = f" and {stream['more_features']:,} more" if stream["more_features"] else ""
    return ", ".join(stream["features"]) + more


def _about(results: Results) -> str:
    hidden = {"models"} if results.settings["folds"] > 1 else {"models", "folds", "forks"}
    facts = {
        "made by": f"drift {drift.__version__}, in {results.seconds:,.0f} s",
        **{
            f"rows of {name}": f"{stream['rows']:,}, SHA-256 {stream['sha256']}"
            for name, stream in results.streams.items()
        },
        **{f"features of {name}": _features(stream) for name, stream in results.streams.items()},
        **{
            f"texts among them, {name}": ", ".join(stream["categories"])
            for name, stream in results.streams.items()
            if stream["categories"]
        },
        **{
            name.replace("_", " "): str(value)
            for name, value in results.settings.items()
            if name not in hidden and value not in {None, False}
        },
    }
    return (
        f"<h2>How it was measured</h2><p>{_HOW}</p>{_definitions(facts)}"
        f"<h3>Models</h3>{_definitions(results.settings['models'])}"
    )


def _definitions(facts: Mapping[str, str]) -> str:
    items = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in facts.items())
    return f"<dl>{items}</dl>"
