"""Run a benchmark by its name: ``python -m benchmarks NAME``; without one, list them all."""

from __future__ import annotations

import argparse
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

#: Files of `benchmarks.programs`, with options of their own: `--help` shows them.
PROGRAMS = {
    "ablation": "what each rule of the Tracker is worth; an hour and more",
    "corruption": "the Tracker on dirty data beside simple models; an hour",
    "latency": "how long a prediction of a worker takes to arrive, on a real broker",
    "serve": "predictions over HTTP beside learning, on a real broker",
    "soak": "memory of a worker over two million examples, on a real broker",
    "worker": "examples a second of a worker, on a real broker",
}
#: Files of `benchmarks.scenarios`, with a function of that name.
SCENARIOS = {
    "alarms": "how many alarms are false, and how late the others are; minutes",
    "alternatives": "time of models by that of the Tracker",
    "arrays": "learning arrays against dicts",
    "batches": "batches of every kind against the loop over their rows",
    "checkpoint": "how long a checkpoint stops a worker of late labels, and its bytes",
    "cost": "time and memory of a Tracker by features, classes and budget",
    "dicts": "learning dicts: models, kernels and budgets by the least time",
    "error_time": "error and time of every model and peer",
    "float32": "what float32 changes on RCV1",
    "growth": "time and memory by budget and by names seen",
    "keyed": "time and memory of a model for each key; minutes",
    "keyed_worth": "error of one model, and of one for each key",
    "large_file": "drift compare on 328 MB; a quarter of an hour",
    "promotion": "how soon a shadow is promoted; minutes",
    "start_up": "time to a first prediction and to a checkpoint, size",
    "supports": "how time grows with the supports, for every model",
    "threshold": "thresholds learnt online beside the best in hindsight",
    "threshold_sweep": "the constants of thresholds",
}


def main(arguments: list[str]) -> int:
    """Run what is named."""
    if arguments and arguments[0] in PROGRAMS:
        module = import_module(f"benchmarks.programs.{arguments[0]}")
        return int(module.main(arguments[1:]) or 0)
    listed = "\n".join(f"  {name:16} {about}" for name, about in (PROGRAMS | SCENARIOS).items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=f"{__doc__}\n\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=PROGRAMS | SCENARIOS, metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run?")
    parser.add_argument("--output", type=Path, default=Path("results"), help="folder: results")
    if not arguments:
        parser.print_help()
        return 2
    given = parser.parse_args(arguments)
    return run(given.name, given.output, quick=given.quick)


def run(name: str, output: Path, *, quick: bool) -> int:
    """Run a scenario, print its tables and write what it measured; 1 if it misses a bar."""
    # Not in the process of a program that measures its own memory.
    from benchmarks.report import load_average, machine, show_scenario, write_json  # noqa: PLC0415

    module = import_module(f"benchmarks.scenarios.{name}")
    started, load = time.perf_counter(), load_average()
    result: dict[str, Any] = getattr(module, name)(quick=quick)
    draw = result.pop("draw", None)
    seconds = round(time.perf_counter() - started, 1)
    about = {"quick": quick, "seconds": seconds, "load": [load, load_average()]}
    show_scenario(name, result | about)
    write_json(output / f"{name}.json", result | about | {"machine": machine()})
    if draw is not None:
        draw(output / f"{name}.svg")
    return int(not quick and any(not bar["reached"] for bar in result.get("bars", ())))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
