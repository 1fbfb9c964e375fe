"""What each rule of the Tracker is worth: errors and log loss without it, on all streams.

    export DRIFT_DATA=...
    python -m benchmarks ablation                                  # every rule, two seeds; hours
    python -m benchmarks ablation --changes "no trees" --streams electricity weather
    python -m benchmarks ablation --edit tables.py "DRAWS = 16" "DRAWS = 4"    # a rule of yours

A change is an edit of the sources: text that stands once in a file of `drift/models/_tracker`, and
what takes its place. Each is made in a copy, compiled, and run on every stream with every seed. A
run is a line of the output file, written as it ends. While the Tracker's sources and the stream's
examples stay as they are it is not made again: the command can be interrupted and called again.
Needs a C compiler.
"""

from __future__ import annotations

import argparse
import json
import math
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import output_option
from benchmarks.programs.ablation_changes import CHANGES, PARTS
from benchmarks.report import markdown
from benchmarks.streams import stream
from benchmarks.timing import probabilities
from drift.models import Tracker  # in a worker that of the copy, which is its folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from benchmarks.programs.ablation_changes import Edit

    Rows = list[tuple[dict[str, float], Any]]
    #: A stream and a seed.
    Key = tuple[str, int]

ROOT = Path(__file__).parents[2]
#: Where the files of the edits are.
SOURCES = Path("drift", "models", "_tracker")
BUDGET = 300
#: All are development streams: on these the rules were chosen.
STREAMS = (
    *("rcv1-0", "rcv1-1", "rcv1-2", "rcv1-3"),
    *("reuters earn whole", "reuters money-fx", "reuters shifts whole"),
    *("electricity", "a9a one-hot", "ijcnn1 whole", "insects whole", "weather", "outdoor"),
    *("spam named", "sea abrupt", "sea noisy", "hyperplane clean", "hyperplane noisy"),
    *("moving rbf", "moving rbf noisy", "led named", "led noisy"),
    *("agrawal abrupt", "agrawal noisy", "checkerboard", "checkerboard noisy"),
    *("rialto 10k", "letter 10k", "usps", "mnist 10k"),
)
#: A probability below this counts as this in the log loss.
LEAST = 1e-6


# --- one process: a build on some streams ---------------------------------------------------------


def measure(rows: Rows, seed: int) -> dict[str, float]:
    """Predict each example, then learn it."""
    wrong, loss, started = 0, 0.0, time.process_time()
    for y, predicted, chances in probabilities(Tracker(BUDGET, seed=seed), rows):
        wrong += predicted != y
        loss -= math.log(max(chances.get(y, 0.0), LEAST))
    seconds = time.process_time() - started
    n = len(rows)
    figures = {"error": 100 * wrong / n, "log_loss": loss / n, "us": 1e6 * seconds / n}
    return {name: round(value, 5) for name, value in figures.items()}


def work(names: list[str], seeds: list[int], folder: Path) -> None:
    """Print a line for each run."""
    for name in names:
        rows = pickle.loads((folder / name).read_bytes())
        for seed in seeds:
            print(json.dumps({"stream": name, "seed": seed} | measure(rows, seed)), flush=True)


# --- builds ---------------------------------------------------------------------------------------


def fingerprint(edits: Iterable[Edit]) -> str:
    """Return a checksum of the Tracker's sources and of the edits.

    The rooms that it shares with other models are not in it: the stored states of the tests hold
    its predictions while those change.
    """
    inside = (ROOT / SOURCES).iterdir()
    written = {".py", ".pyx", ".pxi", ".h"}
    files = sorted(path for path in inside if path.suffix in written and path.name != "tables.h")
    tracker = ROOT / SOURCES.with_name("tracker.py")
    text = "\0".join(path.read_text(encoding="utf-8") for path in (tracker, *files))
    return sha256((text + json.dumps(list(edits))).encode()).hexdigest()[:16]


def edited(edits: Iterable[Edit], root: Path) -> dict[Path, str]:
    """Return the text of each file that changes; ends the program if an edit does not fit."""
    texts: dict[Path, str] = {}
    for file, old, new in edits:
        path = (root / SOURCES / file).resolve()
        text = texts.get(path) or path.read_text(encoding="utf-8")
        if text.count(old) != 1:
            raise SystemExit(f"{path.name} has this {text.count(old)} times, not once: {old!r}")
        texts[path] = text.replace(old, new)
    return texts


def build(edits: Iterable[Edit], folder: Path) -> None:
    """Copy the project, edit the copy and compile it."""
    for name in ("drift", "benchmarks"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.py", "pyproject.toml", "README.md"):
        shutil.copy2(ROOT / name, folder / name)
    for path, text in edited(edits, folder).items():
        path.write_text(text, encoding="utf-8")
    modules = [path for path in (folder / SOURCES).iterdir() if path.suffix in {".so", ".pyd"}]
    for path in modules:
        path.unlink()  # setup.py continues where one does not compile
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    done = subprocess.run(  # noqa: S603
        command, cwd=folder, check=False, capture_output=True, text=True
    )
    if done.returncode or not all(path.exists() for path in modules):
        raise SystemExit(done.stderr)


def write_examples(name: str, folder: Path) -> str:
    """Write the examples of a stream for all builds; return their checksum."""
    made = stream(name)
    (folder / name).write_bytes(pickle.dumps(list(made)))
    return made.sha256[:16]


def run_build(edits: Iterable[Edit], wanted: Iterable[Key], rows: Path) -> Iterator[dict[str, Any]]:
    """Build an edited copy, and yield its runs of these streams and seeds, in another process."""
    streams: dict[int, list[str]] = {}
    for name, seed in wanted:
        streams.setdefault(seed, []).append(name)
    with tempfile.TemporaryDirectory() as folder:
        build(edits, Path(folder))
        for seed, names in streams.items():
            command = [sys.executable, "-m", "benchmarks", "ablation", "--work", str(rows)]
            command += ["--streams", *names, "--seeds", str(seed)]
            with subprocess.Popen(  # noqa: S603
                command, cwd=folder, stdout=subprocess.PIPE, text=True
            ) as process:
                yield from map(json.loads, process.stdout or ())
            if process.returncode:
                raise SystemExit(f"the run ended with {process.returncode}")


def runs_of(
    name: str, edits: Iterable[Edit], wanted: dict[Key, str], output: Path, rows: Path
) -> Iterator[dict[str, Any]]:
    """Yield the runs of a change: those that are there, then those that are missing.

    What is wanted are streams and seeds, with the checksum of the stream's examples.
    """
    mark = fingerprint(edits)
    result = {}
    for run in runs_in(output):
        key = run["stream"], run["seed"]
        if (run["sources"], run["examples"]) == (mark, wanted.get(key)):
            result[key] = run
    yield from (result[key] for key in wanted if key in result)
    if missing := [key for key in wanted if key not in result]:
        for one in run_build(edits, missing, rows):
            examples = wanted[one["stream"], one["seed"]]
            run = {"change": name, "sources": mark, "examples": examples} | one
            with output.open("a", encoding="utf-8") as file:
                file.write(json.dumps(run) + "\n")
            yield run


def drop_old(output: Path, marks: set[str]) -> None:
    """Leave in a file the runs of these sources alone."""
    runs = runs_in(output)
    if kept := [json.dumps(run) + "\n" for run in runs if run["sources"] in marks]:
        output.write_text("".join(kept), encoding="utf-8")
    else:
        output.unlink(missing_ok=True)


def runs_in(output: Path) -> list[dict[str, Any]]:
    """Return the runs of a file; a line that was not written to its end is none."""
    if not output.exists():
        return []
    *lines, _ = output.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines]


# --- the table ------------------------------------------------------------------------------------


def _by_stream(runs: Iterable[dict[str, Any]], key: str) -> dict[str, Any]:
    result: dict[str, list[float]] = {}
    for run in runs:
        result.setdefault(run["stream"], []).append(run[key])
    return {name: np.array(values) for name, values in result.items()}


def row_of(name: str, runs: list[dict[str, Any]], base: list[dict[str, Any]]) -> dict[str, str]:
    """Return a row of the table: changes against the Tracker as it is, in percent."""
    change: dict[str, dict[str, float]] = {}
    for key in ("error", "log_loss"):
        ours, theirs = _by_stream(runs, key), _by_stream(base, key)
        change[key] = {s: 100 * (ours[s].mean() / theirs[s].mean() - 1) for s in ours}
    errors = change["error"]
    worst, best = max(errors, key=errors.__getitem__), min(errors, key=errors.__getitem__)
    *others, _ = sorted(errors.values(), key=abs)
    time_of = _by_stream(runs, "us"), _by_stream(base, "us")
    ratios = [time_of[0][s].mean() / time_of[1][s].mean() for s in time_of[0]]
    return {
        "change": name,
        "error, %": f"{np.mean([*errors.values()]):+.1f}",
        "one stream left out, %": f"{np.mean(others):+.1f}" if others else "",
        "worst": f"{worst} {errors[worst]:+.1f}",
        "best": f"{best} {errors[best]:+.1f}",
        "log loss, %": f"{np.mean([*change['log_loss'].values()]):+.1f}",
        "time": f"{np.median(ratios):.2f}",
    }


def streams_of(base: list[dict[str, Any]]) -> str:
    """Return a table of the Tracker's errors, with how far seeds are apart."""
    errors = _by_stream(base, "error")
    apart = {s: 100 * e.std(ddof=1) / e.mean() for s, e in errors.items() if len(e) > 1}
    rows = [
        {
            "stream": name,
            "error, %": f"{values.mean():.2f}",
            "deviation between seeds, % of it": f"{apart[name]:.1f}" if name in apart else "",
        }
        for name, values in errors.items()
    ]
    if not apart:
        return f"{markdown(rows)}\n\nWith one seed nothing tells the noise."
    mean = math.sqrt(sum(v * v for v in apart.values())) / len(apart)
    return f"{markdown(rows)}\n\nDeviation of the mean between seeds: {mean:.1f} %."


#: Name of a change that the command line gives.
YOURS = "your edit"


def table(results: dict[str, list[dict[str, Any]]]) -> str:
    """Return a table for each part of the Tracker as Markdown."""
    base, paragraphs = results[""], []
    for part, names in (PARTS | {"Your edit": [YOURS]}).items():
        if rows := [row_of(name, results[name], base) for name in names if name in results]:
            paragraphs += [f"### {part}", markdown(rows)]
    return "\n\n".join([*paragraphs, "### Streams", streams_of(base)])


def main(arguments: list[str]) -> None:
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks ablation")
    parser.add_argument("--changes", nargs="*", choices=CHANGES, default=list(CHANGES))
    parser.add_argument("--edit", nargs=3, action="append", metavar=("FILE", "OLD", "NEW"))
    parser.add_argument("--streams", nargs="+", choices=STREAMS, default=STREAMS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    output_option(parser)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.work:
        work(chosen.streams, chosen.seeds, chosen.work)
        return
    chosen.output.mkdir(parents=True, exist_ok=True)
    made = chosen.output / "ablation.jsonl"
    changes: dict[str, list[Edit]] = {name: CHANGES[name] for name in chosen.changes}
    if chosen.edit:
        changes = {YOURS: chosen.edit}
    everything: dict[str, list[Edit]] = {"": [], **changes}
    drop_old(made, {fingerprint(edits) for edits in [*everything.values(), *CHANGES.values()]})
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        examples = {name: write_examples(name, Path(folder)) for name in chosen.streams}
        wanted = {(name, seed): examples[name] for name in examples for seed in chosen.seeds}
        for k, (name, edits) in enumerate(everything.items()):
            print(f"{k} of {len(changes)}: {name or 'as it is'}", file=sys.stderr)
            results[name] = list(runs_of(name, edits, wanted, made, Path(folder)))
    text = table(results)
    made.with_suffix(".md").write_text(text + "\n", encoding="utf-8")
    print(text)
