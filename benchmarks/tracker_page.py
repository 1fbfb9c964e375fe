"""The page of results of `benchmarks.tracker`: what came out, as tables."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

import pandas as pd

from benchmarks.contenders import FAMILIES
from benchmarks.streams import GENERATED, STREAMS
from drift.experiments.plots import COLOURS, finish, log_axis, log_errors, panels_of, save

if TYPE_CHECKING:
    from pathlib import Path
_TRIVIAL = ("no change", "majority")


def page(records: list[dict[str, Any]], speed: dict[str, Any] | None) -> str:
    """Return the page as Markdown; `speed` is what `benchmarks.tracker_speed` found."""
    table = pd.DataFrame(records)
    table["budget"] = [one.get("budget", 0) for one in table["parameters"]]
    order = {name: k for k, name in enumerate((*STREAMS, *FAMILIES))}
    table = table.sort_values(["stream", "model", "budget"], key=lambda one: one.replace(order))
    table["stream"] = table["stream"].str.replace(r"-\d$", "", regex=True)  # the mean of the four
    parts = [_INTRODUCTION]
    tracker = table[table["model"] == "Tracker"]
    if len(tracker):
        parts.append(f"## Error of the Tracker, %\n\n{_errors(tracker, table)}")
        parts.append(
            f"## Its members and its probabilities\n\n{_inside(tracker[~tracker['shuffled']])}"
        )
    ordered = table[~table["shuffled"]]
    drawn = ordered["stream"].isin(list(GENERATED))
    others = not ordered["model"].isin(["Tracker", *_TRIVIAL]).all()
    if others:
        parts.append(f"## Error of all on real streams, %\n\n{_ALL}{_all(ordered[~drawn])}")
    if others and drawn.any():
        parts.append(f"## Error of all on generated streams, %\n\n{_all(ordered[drawn])}")
    if speed:
        parts.append(f"## Time and memory\n\n{_speed(speed)}")
    cut = table[~table["whole"]]
    if len(cut):
        parts.append("## Not whole\n\n" + _markdown(_cut(cut)))
    return "\n\n".join(parts) + "\n"


_INTRODUCTION = """# The Tracker, measured

Made by `python -m benchmarks.tracker --page docs/tracker_results.md`. Each row is predicted, then
learnt, with the same constants on all streams. RCV1 is the mean of four random orders of its
targets. *Shuffled*: blocks of 50 rows in random order, which keeps what the last labels tell and
removes drift."""


def _errors(tracker: pd.DataFrame, table: pd.DataFrame) -> str:
    ordered = _pivot(tracker[~tracker["shuffled"]], "error", "B = {}")
    largest = tracker["budget"] == tracker["budget"].max()
    shuffled = _pivot(tracker[tracker["shuffled"] & largest], "error", "shuffled, B = {}")
    trivial = table[table["model"].isin(_TRIVIAL)]
    dull = trivial.pivot_table(index="stream", columns="model", values="error", sort=False)
    return _markdown(ordered.join([shuffled, dull]))


def _inside(tracker: pd.DataFrame) -> str:
    """Return what only the Tracker has, a row for each stream, at the largest budget."""
    rows, budget = [], tracker["budget"].max()
    for name, part in tracker[tracker["budget"] == budget].groupby("stream", sort=False):
        excess = pd.Series([value for one in part["calibration"] for value in one], dtype=float)
        difference = (part["error"] - part["best_member_error"]).max()
        rows.append(
            {
                "stream": name,
                "best member": part.iloc[0]["best_member"],
                "difference, worst": difference,
                "log loss": f"{part['log_loss'].mean():.4f}",
                "excess ECE, median": excess.median(),
                "worst": excess.max(),
            }
        )
    return _INSIDE.format(budget) + _markdown(pd.DataFrame(rows).set_index("stream"))


_INSIDE = """At B = {}. Errors and calibration in percent, log loss in nats a row. *Best member*:
the one with the fewest errors. *Difference*: the Tracker's error minus that; below 0 the Tracker
beats each of its members. *Log loss*: probabilities below 0.000001, and those of new classes, count
as that. *Excess ECE*: the expected calibration error, in ten bins of equal width, minus that of
labels drawn from the same probabilities, over windows of 5,000 rows without a known shift.

"""


def _all(rows: pd.DataFrame) -> str:
    """Return defaults and, after a stroke, the best setting in hindsight for each stream."""
    results = []
    for (name, model, budget), part in rows.groupby(["stream", "model", "budget"], sort=False):
        means = part.groupby("setting")["error"].mean()
        best = f" / {means.min():.2f}" if len(means) > 1 else ""
        cut = "" if part["whole"].all() else " *"
        label = f"{model}, {budget}" if budget else model
        results.append((name, label, f"{means.get(0, float('nan')):.2f}{best}{cut}"))
    frame = pd.DataFrame(results, columns=["stream", "model", "error"])
    wide = frame.pivot_table(
        index="model", columns="stream", values="error", aggfunc="first", sort=False
    )
    return _markdown(wide.fillna(""))


_ALL = """Default / best of at most 8 settings in hindsight, where they were run. Trees and forests:
the first 20,000 rows, the columns of a9a as texts. An empty cell was not run; a star: stopped by
the time limit, see below.

"""


def _cut(cut: pd.DataFrame) -> pd.DataFrame:
    columns = ["stream", "model", "n_samples", "seconds"]
    return cut[columns].sort_values(["model", "stream"]).set_index("stream")


def _speed(speed: dict[str, Any]) -> str:
    """Return ratios, medians of those within each round, and what grows with the budget."""
    rows: dict[str, dict[str, str]] = {}
    for name, times in speed["times"].items():
        for one in times:
            for other in ("LogisticRegression", "old LBP, 100", "old LBP, 500"):
                if other in times:
                    ratio = _ratio(times[one], times[other])
                    rows.setdefault(one, {})[f"{name} / {other}"] = f"{ratio:.2f}"
    lines = [_SPEED, _markdown(pd.DataFrame(rows).T.rename_axis("model"))]
    for name, fit in speed["growth"].items():
        relative = {budget: us / fit["us"]["100"] for budget, us in fit["us"].items()}
        text = ", ".join(f"{budget}: {ratio:.2f}" for budget, ratio in relative.items())
        lines.append(
            f"- {name}: time by budget, that of 100 being 1: {text}. A line through them has "
            f"R^2 = {fit['R2']:.4f} and is off by {100 * fit['largest_deviation']:.0f} % at most."
        )
    lines.append(f"- Reuters, B = 500, at the end: {speed['reuters_megabytes']:.2f} MB.")
    return "\n\n".join(lines[:2]) + "\n\n" + "\n".join(lines[2:])


_SPEED = """`predict_one` and `learn_one` on dicts, models in turns, 25 rounds of 500 rows after
the first 10,000 (trees and forests: 20 after 200); processor time, medians of the ratios within a
round. *Old LBP* is that of commit 65f8e9f, in its own environment.

![Error against time](img/tracker-error-time.svg)

"""


def _ratio(above: dict[str, Any], below: dict[str, Any]) -> float:
    pairs = zip(above["rounds"], below["rounds"], strict=True)
    return statistics.median(a / b for a, b in pairs)


def draw(records: list[dict[str, Any]], speed: dict[str, Any], path: Path) -> None:
    """Draw error against time; grey are the names of models that another beats in both."""
    figure, panels = panels_of(6.2, 8.8, rows=2)  # to be read on a telephone, too
    named = []
    for panel, (name, times) in zip(panels, speed["times"].items(), strict=True):
        points = _points([one for one in records if one["stream"] == name], times)
        names = []
        for label, (x, low, high) in points.items():
            colour = COLOURS[2] if label.startswith("Tracker") else COLOURS[1]
            panel.plot([x, x], [low, high], color=colour, lw=0.8)
            panel.plot(x, high, "o", color=colour)
            panel.plot(x, low, "o", mfc="white", color=colour)
            beaten = any(a <= x and b < low for a, b, _ in points.values())
            names.append((x, low, label, "#888888" if beaten else colour))
        named.append((names, [(x, y) for x, *errors in points.values() for y in errors]))
        panel.set(title=name, ylabel="error (%)", xlabel="time, River's logistic regression = 1")
        panel.set_xlim(0.15, 3 * max(x for x, _, _ in points.values()))
        log_axis(panel.xaxis)
        log_errors(panel)
    note = "dots: defaults; hollow: the best setting in hindsight; grey: another is better in both"
    finish(figure, "Error against time", panels, note=note, points=named)
    path.parent.mkdir(parents=True, exist_ok=True)
    save(figure, path)


def _points(
    records: list[dict[str, Any]], times: dict[str, Any]
) -> dict[str, tuple[float, float, float]]:
    """Time, lowest error and that of the defaults, for every model that has both."""
    points = {}
    for label, time in times.items():
        model, _, budget = label.partition(", ") if "ADWIN" not in label else (label, "", "")
        errors = {
            one["setting"]: one["error"]
            for one in records
            if one["model"] == model
            and one["parameters"].get("budget", 0) == int(budget or 0)
            and not one["shuffled"]
        }
        if 0 in errors:
            ratio = _ratio(time, times["LogisticRegression"])
            points[label] = (ratio, min(errors.values()), errors[0])
    return points


def _pivot(rows: pd.DataFrame, values: str, label: str) -> pd.DataFrame:
    wide = rows.pivot_table(index="stream", columns="budget", values=values, sort=False)
    return wide.rename(columns=label.format)


def _markdown(frame: pd.DataFrame) -> str:
    """Return a table in Markdown; pandas needs one more package for that."""
    frame = frame.reset_index()
    lines = [list(map(str, frame.columns)), ["---"] * len(frame.columns)]
    lines += [
        ["" if one != one else f"{one:.2f}" if isinstance(one, float) else str(one) for one in row]
        for row in frame.itertuples(index=False)
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
