"""The error that a model makes against the time that it takes: stories with seven shifts.

Every contender goes through the whole stream from nothing, predicting each story before it learns
it. Those that are fast do so several times, in turns.
"""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from benchmarks.models import (
    LINEAR,
    has_budget,
    logistic_regression,
    made,
    scikit_learn,
    vowpal_wabbit,
)
from benchmarks.streams import matrix_of, stream
from benchmarks.timing import Times, figure, mistakes, progress, seconds, turns
from drift.experiments.plots import COLOURS, GREY, finish, log_axis, panels_of, save
from drift.kernels import RBF, Linear
from drift.models.registry import ENTRIES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from matplotlib.axes import Axes

    from drift.experiments.plots import Point

BUDGETS = (100, 300, 1000, 2000)
GAMMA = 2.0
#: Contenders above this, in microseconds an example, get one round.
SLOW = 60.0
_, BLUE, RED, GREEN, PINK, ORANGE, SKY, _ = COLOURS
#: Families of contenders, in the order of the legend.
FAMILIES = {
    "RBP": (BLUE, "o-"),
    "LBP": (RED, "s-"),
    "Forgetron": (GREEN, "^-"),
    "LBP linear": (ORANGE, "s--"),
    "LBP rbf": (PINK, "s:"),
    "MRBP": (SKY, "v-"),
    "RBSOP": (BLUE, "D-"),
    "LBSOP": (RED, "D-"),
    "CKS": (GREY, "P-"),
}


def contenders_of(rows: Any) -> dict[str, Callable[[], int]]:
    """Return what gives each contender's mistakes."""
    makers: dict[str, Callable[[], Any]] = dict(LINEAR)
    for rate in (1.0, 10.0):
        name = f"River LogisticRegression, rate {rate:g}"
        makers[name] = partial(logistic_regression, rate)
    for name, *_, update, _ in ENTRIES:
        most = 300 if update else BUDGETS[-1]  # an update takes longer, the larger the budget is
        for budget in [b for b in BUDGETS if b <= most] if has_budget(name) else [0]:
            makers[f"{name} B={budget}" if budget else name] = partial(made, name, budget)
    for budget in BUDGETS:
        for label, kernel in {"linear": Linear("rows"), "rbf": RBF(GAMMA, "rows")}.items():
            makers[f"LBP {label} B={budget}"] = partial(made, "LBP", budget, kernel=kernel)
    examples = list(rows)
    contenders: dict[str, Callable[[], int]] = {
        name: lambda make=make: mistakes(make(), examples)  # type: ignore[misc]
        for name, make in makers.items()
    }
    if find_spec("vowpalwabbit"):
        contenders["VW linear"] = partial(vowpal_wabbit, examples)
    if find_spec("sklearn"):
        matrix, labels = matrix_of(rows)
        for sampler, size in (("RBFSampler", 300), ("RBFSampler", 1000), ("Nystroem", 300)):
            name = f"scikit-learn {sampler}({size})"
            contenders[name] = partial(scikit_learn, sampler, size, GAMMA, matrix, labels)
    return contenders


def error_time(*, quick: bool) -> dict[str, Any]:
    """Error and time of each contender."""
    rows = stream("rcv1 shifts").head(1_000 if quick else 20_000)
    contenders, times = contenders_of(rows), Times()
    errors: dict[str, float] = {}
    for k, name in progress(turns(contenders, 1 if quick else 3), "error_time: runs"):
        if k and times[name][0] > SLOW:
            continue
        wrong: list[int] = []
        spent = seconds(lambda: wrong.append(contenders[name]()))  # noqa: B023 - called here
        times.setdefault(name, []).append(1e6 * spent / len(rows))
        errors[name] = 100 * wrong[0] / len(rows)
    table = [
        {"contender": name, "error, %": errors[name], "us": figure(times[name])}
        for name in contenders
    ]
    return {"table": table, "draw": partial(_draw, table)}


def _draw(table: list[dict[str, Any]], path: Path) -> None:
    """Draw one point for each contender, lines through the budgets of a model."""
    figure, panels = panels_of(13, 7, columns=2)
    whole, corner = panels
    points = [(row["us"]["median"], row["error, %"]) for row in table]
    named = [_panel(panel, table, names=panel is corner) for panel in panels]
    fast, best = (sorted(column) for column in zip(*points, strict=True))
    for panel in panels:
        panel.set_xlabel("predict + learn, µs an example")
        log_axis(panel.xaxis)
    whole.margins(x=0.2)
    whole.set(ylabel="error (%)", title="all; red: not drift's")
    corner.set_xlim(fast[0] * 0.93, 1.3 * fast[len(fast) * 2 // 3])
    corner.set_ylim(best[0] - 0.5, best[len(best) * 3 // 4])
    log_axis(corner.xaxis)
    corner.set_title("the lower left corner; numbers are budgets")
    finish(figure, "RCV1: error against time", panels, points=[(one, points) for one in named])
    save(figure, path)


def _panel(panel: Axes, table: list[dict[str, Any]], *, names: bool) -> list[Point]:
    """Draw the lines; with `names`, return a name for each point, else for the last of a line."""
    written = []
    at = {row["contender"]: (row["us"]["median"], row["error, %"]) for row in table}
    for family, (colour, style) in FAMILIES.items():
        line = {b: at.pop(f"{family} B={b}") for b in BUDGETS if f"{family} B={b}" in at}
        us, errors = zip(*line.values(), strict=True)
        panel.plot(us, errors, style, color=colour, label=family, lw=1, ms=5)
        texts = list(map(str, line))
        if names:  # the second point has the family's name, as the first one is often out of sight
            texts[1] = f"{family} {texts[1]}"
            written += [
                (*point, text, colour) for point, text in zip(line.values(), texts, strict=True)
            ]
        else:
            written.append((us[-1], errors[-1], family, colour))
    for name, point in at.items():
        peer = name.startswith(("River", "VW", "scikit"))
        colour = "#aa0000" if peer else "#000000"
        panel.plot(*point, "x" if peer else ".", color=colour)
        written.append((*point, name, colour))
    return written
