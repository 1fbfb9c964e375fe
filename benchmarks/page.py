"""Tables of the results for benchmarks/results.md, between its marks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from benchmarks.bars import judged
from benchmarks.report import shown

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Results = dict[str, Any]

_STREAMS = {"rcv1-dicts": "RCV1", "a9a-dicts": "a9a", "mnist-dicts": "MNIST"}
_VERDICTS = {True: "yes", False: "**no**", "not measured": "not measured"}


def update(path: Path, results: Results) -> None:
    """Replace what stands between ``<!-- name -->`` and ``<!-- end -->`` in a page."""
    text = path.read_text(encoding="utf-8")
    for name, write in _BLOCKS.items():
        lines = write(results)
        if lines:
            block = "\n".join(["", *lines, "", ""])
            pattern = rf"(<!-- {name} -->\n).*?(<!-- end -->)"
            text = re.sub(
                pattern, lambda match, b=block: match[1] + b + match[2], text, flags=re.DOTALL
            )
    path.write_text(text, encoding="utf-8")


def table(headings: list[str], rows: list[list[Any]]) -> list[str]:
    """Lines of a table."""
    cells = [headings, ["---"] * len(headings)] + [[shown(cell) for cell in row] for row in rows]
    return ["| " + " | ".join(row) + " |" for row in cells]


def about(results: Results) -> list[str]:
    """Where and when it was measured."""
    measured = [result for result in results.values() if result.get("table")]
    if not measured:
        return []
    where = measured[-1]["machine"]
    loads = [load[0] for result in measured for load in result["load"] if load]
    versions = ", ".join(f"{name} {v}" for name, v in where["versions"].items() if v)
    place = f"{where['cores']} cores of {where['processor']}, Python {where['python']}"
    lines = [f"Measured on {measured[-1]['when'][:10]}: {place}, {versions}."]
    if loads:
        lines.append(
            f"Processes that wanted a core meanwhile: {shown(min(loads))} to {shown(max(loads))}."
        )
    return lines


def bars(results: Results) -> list[str]:
    """The bars, and what was reached."""
    rows = [
        [row["scenario"], row["figure"], row["bar"], row["reached"], _VERDICTS[row["verdict"]]]
        for row in judged(results)
    ]
    return table(["scenario", "figure", "bar", "median (spread)", "reached"], rows)


def dicts(results: Results) -> list[str]:
    """Microseconds of every contender with the default kernel, a column for each stream."""
    names: dict[str, dict[str, Any]] = {}
    for scenario, stream in _STREAMS.items():
        for row in results.get(scenario, {}).get("table", []):
            names.setdefault(row["contender"], {})[stream] = row
    rows = []
    for name, names_of in names.items():
        if " linear" in name.replace("VW linear", "") or " rbf" in name or "as SPA" in name:
            continue
        cells = [names_of.get(stream) for stream in _STREAMS.values()]
        rows.append([name.replace(" poly4", ""), *(_beside_floor(cell) for cell in cells)])
    return table(["contender", *_STREAMS.values()], rows) if rows else []


def _beside_floor(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    return f"{shown(row['us']['median'])} ({shown(row['x floor'])})"


def kernels(results: Results) -> list[str]:
    """Microseconds and error of LBP with each kernel."""
    rows = []
    for scenario, stream in _STREAMS.items():
        result = {row["contender"]: row for row in results.get(scenario, {}).get("table", [])}
        for b in (100, 300, 1000, 2000, 5000):
            cells = [result.get(f"LBP {kernel} B={b}") for kernel in ("linear", "poly4", "rbf")]
            if all(cells):
                rows.append([stream, b, *(_beside_error(cell) for cell in cells if cell)])
    return table(["stream", "B", "linear", "degree 4", "RBF"], rows) if rows else []


def _beside_error(row: dict[str, Any]) -> str:
    return f"{shown(row['us']['median'])}, {100 * row['error']:.1f} %"


def front(results: Results) -> list[str]:
    """The contenders than which none is both faster and more often right."""
    rows = [
        row
        for name in ("rcv1-error-time", "rcv1-error-time-slow")
        for row in results.get(name, {}).get("table", [])
    ]
    rows.sort(key=lambda row: row["us"]["median"])
    best, chosen = float("inf"), []
    for row in rows:
        if row["error"] < best:
            best = row["error"]
            chosen.append([row["contender"], row["us"]["median"], f"{100 * row['error']:.1f} %"])
    return table(["contender", "us", "error"], chosen) if chosen else []


def tables(*names: str) -> Callable[[Results], list[str]]:
    """Write the tables of scenarios as they are."""

    def write(results: Results) -> list[str]:
        lines: list[str] = []
        for name in names:
            rows = results.get(name, {}).get("table")
            if rows:
                lines += [
                    f"`{name}`",
                    "",
                    *table(list(rows[0]), [list(r.values()) for r in rows]),
                    "",
                ]
        return lines[:-1]

    return write


def exponents(results: Results) -> list[str]:
    """The fitted exponents."""
    rows = [
        [name.removeprefix("exponent of "), figure["median"]]
        for scenario, result in results.items()
        if scenario.startswith("growth")
        for name, figure in result.get("figures", {}).items()
        if name.startswith("exponent")
    ]
    return table(["exponent of", ""], [[name, f"{value:.2f}"] for name, value in rows])


_BLOCKS: dict[str, Callable[[Results], list[str]]] = {
    "about": about,
    "bars": bars,
    "dicts": dicts,
    "kernels": kernels,
    "parts": tables("parts"),
    "front": front,
    "arrays": tables("rcv1-arrays", "mnist-arrays", "dense-arrays"),
    "second-order": tables("second-order"),
    "exponents": exponents,
    "growth": tables("growth-budget", "growth-names", "growth-length"),
    "start-up": tables("start-up"),
}
