"""Run a benchmark by its name: ``python -m benchmarks NAME``; without one, list them all."""

from __future__ import annotations

import argparse
import sys
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

from benchmarks import output_option
from drift.errors import DriftError

if TYPE_CHECKING:
    from pathlib import Path

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
    "float32": "what float32 changes on RCV1",
    "keyed": "time and memory of a model for each key; minutes",
    "keyed_worth": "error of one model, and of one for each key",
    "large_file": "drift compare on 322 MB; five minutes",
    "promotion": "how soon a shadow is promoted; minutes",
    "start_up": "time to a first prediction and to that of a checkpoint, memory",
    "supports": "how time grows with the supports, for every model",
    "threshold": "thresholds learnt online beside the best in hindsight",
    "threshold_sweep": "the constants of thresholds",
}
#: Collections of datasets/README.md that a name cannot do without.
DATA = {
    "ablation": "all that the arena develops on",
    "alternatives": "rcv1 and elec",
    **dict.fromkeys(("arrays", "float32", "start_up", "supports"), "rcv1"),
    "threshold": "ijcnn1, letter, rialto, usps and reuters21578",
    "threshold_sweep": "that of threshold, outdoor, mnist, a9a and spam",
}


def main(arguments: list[str]) -> int:
    """Run what is named."""
    if arguments and arguments[0] in PROGRAMS:
        return program(arguments[0], arguments[1:])
    listed = "\n".join(f"  {name:16} {about}" for name, about in (PROGRAMS | SCENARIOS).items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=f"{__doc__}\n\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=PROGRAMS | SCENARIOS, metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run?")
    output_option(parser)
    if not arguments:
        parser.print_help()
        return 2
    given = parser.parse_args(arguments)
    return run(given.name, given.output, quick=given.quick)


def program(name: str, arguments: list[str]) -> int:
    """Run a program with its options; 2 if it lacks something."""
    module = import_module(f"benchmarks.programs.{name}")
    try:
        return int(module.main(arguments) or 0)
    except DriftError as error:
        return lacks(name, error)


def lacks(name: str, error: DriftError) -> int:
    """Say what is missing, and how to get it."""
    print(f"{name}: {error}", file=sys.stderr)
    if name in DATA:
        get = "datasets/README.md says how to get it, and DRIFT_DATA names its folder"
        print(f"{name} needs downloaded data, {DATA[name]}: {get}", file=sys.stderr)
    return 2


def run(name: str, output: Path, *, quick: bool) -> int:
    """Run a scenario, print its tables and write what it measured.

    Returns 1 if it misses a bar, and 2 if it lacks data.
    """
    # Not in the process of a program that measures its own memory.
    from benchmarks.report import load_average, show_scenario, write_result  # noqa: PLC0415

    module = import_module(f"benchmarks.scenarios.{name}")
    started, load = time.perf_counter(), load_average()
    try:
        result: dict[str, Any] = getattr(module, name)(quick=quick)
    except DriftError as error:
        return lacks(name, error)
    seconds = round(time.perf_counter() - started, 1)
    about = {"quick": quick, "seconds": seconds, "load": [load, load_average()]}
    show_scenario(name, result | about)
    write_result(output, name, result | about)
    return int(not quick and any(not bar["reached"] for bar in result.get("bars", ())))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
