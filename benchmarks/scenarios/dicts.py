"""Time to predict and learn an example as a dict, beside the least time and linear models.

Every contender learns the first part of a stream, until the budgets are full; then copies of it
predict and learn the last part, in turns, several times.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.models import LINEAR, floor, made
from benchmarks.report import bar
from benchmarks.streams import stream
from benchmarks.timing import mistakes, on_examples, progress, take_turns
from drift.experiments.plots import COLOURS, finish, log_axis, panels_of, save
from drift.kernels import RBF, Linear, Polynomial

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from matplotlib.axes import Axes

    from benchmarks.timing import Times
    from drift.experiments.plots import End

STREAMS = {"rcv1 shifts": "RCV1, 77 words", "electricity": "Electricity, 6 features"}
BUDGETS = (100, 300, 1000, 2000)
#: On rows of unit norm.
KERNELS = {"poly4": Polynomial(normalize="rows"), "linear": Linear("rows"), "rbf": RBF(2.0, "rows")}
BOUNDED = ("RBP", "LBP", "Forgetron")
LR = "River LogisticRegression"


def contenders_of(name: str, *, quick: bool) -> tuple[Times, dict[str, Any]]:
    """Time every contender on a stream; return the models, too."""
    made_by: dict[str, Callable[[], Any]] = dict(LINEAR)
    for label, kernel in KERNELS.items():
        for model in ("Perceptron", "SPA"):
            made_by[f"{model} {label}"] = partial(made, model, 0, kernel=kernel)
        for model in BOUNDED:
            for budget in BUDGETS:
                what = f"{model} {label} B={budget}"
                made_by[what] = partial(made, model, budget, kernel=kernel)
    examples = list(stream(name).head(5_000 if quick else 20_000))
    split = len(examples) - (1_000 if quick else 4_000)
    learnt, timed = examples[:split], examples[split:]
    ready = {}
    for what, make in progress(made_by.items(), "learning"):
        ready[what] = make()
        mistakes(ready[what], learnt)
    contenders = {what: on_examples(model, timed) for what, model in ready.items()}
    for budget in BUDGETS:
        contenders[f"floor B={budget}"] = floor(ready[f"RBP poly4 B={budget}"], timed)
    return take_turns(contenders, 3 if quick else 7, f"{name}: rounds"), ready


def dicts(*, quick: bool) -> dict[str, Any]:
    """Every contender on each stream."""
    tables: dict[str, list[dict[str, Any]]] = {}
    bars: list[Any] = []
    for name, title in STREAMS.items():
        times, ready = contenders_of(name, quick=quick)
        tables[title] = [_row(what, times, ready.get(what)) for what in times]
        for budget in BUDGETS:
            rival = f"RBP poly4 B={budget}"
            for model in BOUNDED[1:]:
                pair = f"{model} poly4 B={budget}", rival
                bars.append(bar(f"{title}: {' / '.join(pair)}", times.ratio(*pair), most=1.15))
            bars.append(bar(f"{title}: {LR} / {rival}", times.ratio(LR, rival), least=1.8))
    return {"tables": tables, "bars": bars, "draw": partial(_draw, tables)}


def _row(name: str, times: Times, model: Any) -> dict[str, Any]:
    beside = f"floor B={name.rpartition('B=')[2] if 'B=' in name else 1000}"
    size = getattr(model, "_raw_memory_usage", None)
    return {
        "contender": name,
        "us": times.microseconds(name),
        "x floor": times.ratio(name, beside)["median"],
        "LR / it": times.ratio(LR, name)["median"],
        "supports": getattr(model, "n_supports", None),
        "MB": None if size is None else size / 1e6,
    }


def _draw(tables: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """Draw the time against the budget, a panel for each stream."""
    figure, panels = panels_of(5.0 * len(tables) + 0.6, 4.8, columns=len(tables), sharey=True)
    ends = [_panel(panel, table) for panel, table in zip(panels, tables.values(), strict=True)]
    for panel, title in zip(panels, tables, strict=True):
        panel.set(title=title, xlabel="budget")
        log_axis(panel.xaxis)
    log_axis(panels[0].yaxis)
    panels[0].set_ylabel("predict + learn, µs an example")
    note = "bands: RBP, LBP and Forgetron of a kernel, from the fastest to the slowest"
    finish(figure, "Time an example against the budget", panels, note=note, ends=ends)
    save(figure, path)


def _panel(panel: Axes, table: list[dict[str, Any]]) -> list[End]:
    """Draw a band for each kernel, the floor and linear models; return names and heights."""
    us = {row["contender"]: row["us"]["median"] for row in table}
    black, blue, red, green, *_ = COLOURS
    ends = []
    for kernel, colour in zip(KERNELS, (blue, green, red), strict=True):
        times = [[us[f"{model} {kernel} B={b}"] for model in BOUNDED] for b in BUDGETS]
        low, high = (list(map(pick, times)) for pick in (min, max))
        panel.fill_between(BUDGETS, low, high, color=colour, alpha=0.35, linewidth=1.2)
        ends.append((high[-1], kernel, colour))
    least = [us[f"floor B={budget}"] for budget in BUDGETS]
    panel.plot(BUDGETS, least, color=black, lw=1.2)
    ends.append((least[-1], "floor", black))
    for name, style in ((LR, "--"), ("River PAClassifier", ":")):
        panel.axhline(us[name], color="0.35", ls=style, lw=1)
        ends.append((us[name], name, "#595959"))
    return ends
