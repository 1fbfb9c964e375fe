"""``python -m tests.faults --seed 0 --seconds 60 --examples 50000``; 0 only if everything holds.

With ``--folder results/faults --total 1000`` runs follow each other, a seed after the other, until
those in the folder have so many faults. Killed and called again, it continues after the last run.
A run that fails leaves the logs of its workers, its checkpoints and ``report.txt``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import traceback
from contextlib import nullcontext
from pathlib import Path

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from drift.experiments import RunFolder
from tests.faults.run import Report, run
from tests.faults.totals import Runs
from tools.kafka.broker import Broker


def main() -> int:
    """Run it and print the report."""
    about = __doc__.splitlines()[0]
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=about)
    parser.add_argument("--seed", type=int, default=0, help="of messages and faults")
    parser.add_argument("--seconds", type=float, default=60, help="how long faults come")
    parser.add_argument("--examples", type=int, default=50_000, help="messages, with the poison")
    parser.add_argument("--late", action="store_true", help="labels on a topic of their own")
    parser.add_argument("--s3", action="store_true", help="checkpoints in an S3-compatible store")
    parser.add_argument("--keyed", action="store_true", help="a model for each key")
    parser.add_argument("--shadow", action="store_true", help="a second model beside the first")
    parser.add_argument("--keep", type=Path, help="leave checkpoints and logs in this folder")
    parser.add_argument("--folder", type=Path, help="add this run to those in the folder")
    parser.add_argument(
        "--total", type=int, default=0, help="go on, a seed after the other, up to so many faults"
    )
    options = parser.parse_args()
    if options.keyed and (options.late or options.s3 or options.shadow):
        parser.error("--keyed takes none of --late, --s3 and --shadow")
    if options.folder is None:
        return 0 if _report(parser, options).holds else 1
    form = [name for name in ("late", "keyed", "s3", "shadow") if getattr(options, name)]
    with RunFolder(options.folder).alone() as folder:
        runs = Runs(folder, " ".join(form) or "at once")
        is_due, holds = not options.total, runs.hold
        while is_due or (holds and runs.faults < options.total):
            options.seed = runs.next_seed(options.seed)
            report = _report(parser, options)
            runs.add(options.seed, report)
            is_due, holds = False, report.holds
    sys.stdout.write("\n".join([*runs.report(), ""]))
    return 0 if holds else 1


def _report(parser: argparse.ArgumentParser, options: argparse.Namespace) -> Report:
    """Run once and print what came of it; what a run that fails has left stays."""
    root = options.keep or Path(
        tempfile.mkdtemp(prefix=f"faults-seed-{options.seed}-", dir=options.folder)
    )
    root.mkdir(parents=True, exist_ok=True)
    if any(root.iterdir()):
        parser.error(f"{root} is not empty")
    try:
        report = _with_broker(root, options)
    except Exception:
        (root / "report.txt").write_text(traceback.format_exc(), encoding="utf-8")
        raise
    text = "\n".join([f"seed {options.seed}", *report.lines(), ""])
    (root / "report.txt").write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    if report.holds and not options.keep:
        shutil.rmtree(root)
    else:
        sys.stdout.write(f"logs and checkpoints are in {root}\n")
    sys.stdout.flush()
    return report


def _with_broker(root: Path, options: argparse.Namespace) -> Report:
    with tempfile.TemporaryDirectory() as scratch:
        address = os.environ.get("DRIFT_KAFKA")
        with Broker(Path(scratch, "kafka")) if not address else nullcontext(address) as broker:
            return _run(broker, root, options)


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
            late=options.late,
            s3=options.s3,
            keyed=options.keyed,
            shadow=options.shadow,
            tell=lambda seconds, done: progress.update(task, completed=seconds, done=done),
        )


if __name__ == "__main__":
    sys.exit(main())
