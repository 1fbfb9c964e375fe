"""``python -m tests.faults --seed 0 --seconds 60 --examples 50000``; 0 only if everything holds."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from tests.faults.run import Report, run
from tools.kafka.broker import Broker


def main() -> int:
    """Run it and print the report."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of messages and faults")
    parser.add_argument("--seconds", type=float, default=60, help="how long faults come")
    parser.add_argument("--examples", type=int, default=50_000, help="messages, with the poison")
    parser.add_argument("--single", action="store_true", help="one model over all partitions")
    parser.add_argument("--late", action="store_true", help="labels on a topic of their own")
    parser.add_argument("--s3", action="store_true", help="checkpoints in an S3-compatible store")
    parser.add_argument("--keep", type=Path, help="leave checkpoints and logs in this folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = options.keep or Path(scratch, "run")
        if root.exists() and any(root.iterdir()):
            parser.error(f"{root} is not empty")
        address = os.environ.get("DRIFT_KAFKA")
        with Broker(Path(scratch, "kafka")) if not address else nullcontext(address) as broker:
            report = _run(broker, root, options)
    sys.stdout.write("\n".join([f"seed {options.seed}", *report.lines(), ""]))
    return 0 if report.holds else 1


def _run(broker: Broker | str, root: Path, options: argparse.Namespace) -> Report:
    columns = (
        TextColumn("faults"),
        BarColumn(),
        TextColumn("{task.completed:.0f} of {task.total:.0f} s, {task.fields[done]:,} learnt"),
        TimeElapsedColumn(),
    )
    with Progress(*columns) as progress:
        task = progress.add_task("faults", total=options.seconds, done=0)
        return run(
            broker,
            root,
            seed=options.seed,
            seconds=options.seconds,
            examples=options.examples,
            single=options.single,
            late=options.late,
            s3=options.s3,
            tell=lambda seconds, done: progress.update(task, completed=seconds, done=done),
        )


if __name__ == "__main__":
    sys.exit(main())
