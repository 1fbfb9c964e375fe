"""Speed, side by side: runs the scenarios, prints tables and the bars, writes figures to a file.

    python -m benchmarks.speed                       # all but the long ones, about 15 minutes
    python -m benchmarks.speed --quick               # small sizes, two minutes: does it run?
    python -m benchmarks.speed --scenario rcv1-dicts start-up

A scenario whose results are in the output file already, from the same code, versions and machine,
is not run again, unless it is named or `--again` is given: a run can be interrupted and continue.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.bars import judged
from benchmarks.data import Missing
from benchmarks.machine import load_average, machine, write_json
from benchmarks.report import show_scenario, show_table
from benchmarks.scenarios import SCENARIOS, Settings
from drift.experiments.jobs import code_fingerprint


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run?")
    parser.add_argument(
        "--scenario", nargs="+", choices=SCENARIOS, metavar="NAME", help=", ".join(SCENARIOS)
    )
    parser.add_argument("--again", action="store_true", help="run what has results, too")
    parser.add_argument("--output", type=Path, help="results/speed.json, or speed-quick.json")
    parser.add_argument("--figures", type=Path, help="folder of the figures: the output's")
    parser.add_argument("--list", action="store_true", help="list the scenarios and stop")
    chosen = parser.parse_args()
    chosen.output = chosen.output or Path("results", f"speed{'-quick' * chosen.quick}.json")
    return chosen


def run(name: str, settings: Settings) -> dict[str, Any]:
    """Run a scenario; its result says where and when it was measured, or why it was not."""
    started, spent, load = time.perf_counter(), processor_seconds(), load_average()
    try:
        result = SCENARIOS[name].run(settings)
    except Missing as missing:
        result = {"skipped": {"all of it": str(missing)}}
    except AssertionError as failure:
        result = {"failed": str(failure)}
    when = time.strftime("%Y-%m-%d %H:%M")
    took = {
        "when": when,
        "seconds": round(time.perf_counter() - started, 1),
        "processor seconds": round(processor_seconds() - spent, 1),
        "load": [load, load_average()],
    }
    return result | about(settings) | took


def about(settings: Settings) -> dict[str, Any]:
    """What a result depends on, beside its scenario."""
    code = code_fingerprint()
    return {"code": code, "quick": settings.quick, "machine": machine()}


def processor_seconds() -> float:
    """Processor time of this process and of those that it has seen end."""
    return sum(os.times()[:4])


def is_done(result: dict[str, Any] | None, settings: Settings) -> bool:
    """Whether a result need not be measured again."""
    known = result is not None and "table" in result
    return known and json.loads(json.dumps(about(settings))).items() <= (result or {}).items()


def main() -> int:
    """Run the benchmark."""
    chosen = options()
    if chosen.list:
        for name, scenario in SCENARIOS.items():
            kind = "long, where named only" if scenario.long else ""
            print(f"{name:24} {scenario.seconds:4} s  {scenario.about} {kind}")
        return 0
    settings = Settings(chosen.quick)
    results = json.loads(chosen.output.read_text()) if chosen.output.exists() else {}
    names = chosen.scenario or [name for name in SCENARIOS if not SCENARIOS[name].long]
    for i, name in enumerate(names, 1):
        again = chosen.again or bool(chosen.scenario)
        if again or not is_done(results.get(name), settings):
            print(f"[{i}/{len(names)}] {name}: about {SCENARIOS[name].seconds} s", flush=True)
            results[name] = run(name, settings)
            write_json(chosen.output, results)
        show_scenario(name, results[name])
    bars = [row for row in judged(results) if row["scenario"] in names]
    if bars:
        show_table("To reach", bars)
    draw(results, chosen.figures or chosen.output.parent)
    missed = [row for row in bars if row["verdict"] is False and not chosen.quick]
    return int(bool(missed) or any("failed" in results[name] for name in names))


def draw(results: dict[str, Any], folder: Path) -> None:
    """Draw the figures, where matplotlib is installed."""
    try:
        from benchmarks.plots import draw_all  # noqa: PLC0415 - optional
    except ImportError:
        print("no figures: matplotlib is not installed (extra: bench)")
        return
    for drawn in draw_all(results, folder):
        print(f"wrote {drawn}")


if __name__ == "__main__":
    sys.exit(main())
