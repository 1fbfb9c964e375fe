"""Tables for a terminal and for pages, and files of results with what they depend on."""

from __future__ import annotations

import importlib.metadata
import json
import math
import os
import platform
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from rich.console import Console
from rich.table import Table

from drift.experiments.code import code_fingerprint
from drift.models import compiled

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Row = Mapping[str, Any]

_PACKAGES = ("drift-learn", "river", "numpy", "scipy", "Cython", "scikit-learn")


def shown(value: Any) -> str:
    """Text of a cell: a figure as its median and spread, a number to three digits."""
    if value is None:
        return ""
    if isinstance(value, dict):
        if value["min"] == value["max"]:
            return shown(value["median"])
        return f"{shown(value['median'])} ({shown(value['min'])} to {shown(value['max'])})"
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def show_table(title: str, rows: Sequence[Row]) -> None:
    """Print a table with a column for each key of the first row."""
    table = Table(title=title, title_justify="left")
    for i, heading in enumerate(rows[0]):
        table.add_column(heading, justify="right" if i else "left", no_wrap=bool(i))
    for row in rows:
        table.add_row(*map(shown, row.values()))
    Console(width=200).print(table)


def markdown(rows: Iterable[Row]) -> str:
    """Return a table as Markdown, with a column for each key of the first row.

    Examples
    --------
    >>> from benchmarks.report import markdown
    >>> print(markdown([{"stream": "a", "error": 1.25}, {"stream": "b", "error": None}]))
    | stream | error |
    |---|---|
    | a | 1.25 |
    | b |  |
    """
    rows = list(rows)
    lines = [list(rows[0]), *(list(map(shown, row.values())) for row in rows)]
    head, *body = (f"| {' | '.join(cells)} |" for cells in lines)
    return "\n".join([head, f"|{'---|' * len(rows[0])}", *body])


def show_scenario(name: str, result: dict[str, Any]) -> None:
    """Print what a scenario measured: one table or several, and its bars."""
    tables = {name: result["table"]} if "table" in result else result["tables"]
    for title, rows in tables.items():
        show_table(f"{title}, {result['seconds']} s", rows)
    for note in result.get("notes", ()):
        print(note)
    if result.get("bars"):
        show_table("to reach", result["bars"])


def bar(
    what: str, figure: dict[str, float], *, least: float = -math.inf, most: float = math.inf
) -> Row:
    """Return whether the median of a figure is at least, or at most, so much."""
    wanted = f"at most {most:g}" if most < math.inf else f"at least {least:g}"
    reached = least <= figure["median"] <= most
    return {"figure": what, "bar": wanted, "measured": figure, "reached": reached}


def machine() -> dict[str, Any]:
    """Return what figures depend on: processor, versions and the code that was measured."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "compiled": compiled,
        "code": code_fingerprint(),
        "versions": {package: version(package) for package in _PACKAGES},
    }


def processor() -> str:
    """Return the processor's name."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def version(package: str) -> str | None:
    """Return the version of a package, None where it is missing."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def write_result(output: Path, name: str, result: dict[str, Any]) -> None:
    """Write what was measured, with what it depends on, to the file of a name."""
    write_json(output / f"{name}.json", {"load": load_average()} | result | {"machine": machine()})


def load_average() -> list[float]:
    """Processes that wanted a core in the last 1, 5 and 15 minutes."""
    return [round(load, 2) for load in psutil.getloadavg()]


def write_json(path: Path, content: Any) -> None:
    """Replace a file by one that is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    part.replace(path)
