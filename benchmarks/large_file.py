"""What `drift compare` takes of a CSV file of 328 MB: time, and memory of all of its processes.

    python -m benchmarks.large_file FOLDER            # makes the file where it is not there
    python -m benchmarks.large_file FOLDER --readers  # pyarrow, polars and pandas, reading it

It has 2,000,000 rows of 20 numbers, 2 categories and a label whose rule drifts. Memory is the sum
over the processes of their proportional set size, in which a page that two share counts half.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import numpy as np

ROWS, NUMBERS, TOWNS = 2_000_000, 20, 50
_BLOCK = 20_000
_READ = {
    "pyarrow, in blocks": """
import pyarrow as pa, pyarrow.csv as csv
names = {name: pa.string() for name in open(path).readline().strip().split(",")}
options = csv.ConvertOptions(column_types=names)
rows = sum(len(block) for block in csv.open_csv(path, convert_options=options))
""",
    "polars, in blocks": """
import polars as pl
rows = sum(len(block) for block in pl.scan_csv(path, infer_schema=False).collect_batches())
""",
    "polars, at once": """
import polars as pl
rows = len(pl.read_csv(path, infer_schema=False))
""",
    "pandas, in blocks": """
import pandas as pd
rows = sum(len(block) for block in pd.read_csv(path, dtype=str, chunksize=16384))
""",
    "drift": """
from drift.streams import read_stream
rows = len(read_stream(path, "label"))
""",
}


def make(path: Path, rows: int = ROWS) -> None:
    """Write the file."""
    rng = np.random.default_rng(0)
    names = [*(f"x{i}" for i in range(NUMBERS)), "town", "kind", "label"]
    with path.open("w") as file:
        file.write(",".join(names) + "\n")
        for start in range(0, rows, _BLOCK):
            X = rng.normal(size=(_BLOCK, NUMBERS))
            town, kind = rng.integers(TOWNS, size=_BLOCK), rng.integers(3, size=_BLOCK)
            label = X[:, 0] + X[:, 1] * (town % 2) + start / rows * X[:, 2] > 0
            file.writelines(
                ",".join([*(f"{v:.4f}" for v in x), f"town{t}", "rgb"[k], f"{y:d}"]) + "\n"
                for x, t, k, y in zip(X.tolist(), town, kind, label, strict=True)
            )


def measured(*command: str) -> tuple[float, float]:
    """Run a command; return its seconds, and the largest memory of all its processes in MB."""
    began, most = time.perf_counter(), 0.0
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, **quiet) as process:  # noqa: S603
        while process.poll() is None:
            most = max(most, sum(map(_memory, _family(process.pid))))
            time.sleep(0.1)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return time.perf_counter() - began, most


def _family(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(one for child in children for one in _family(int(child)))]


def _memory(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")) / 1e3


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--readers", action="store_true")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    large, few = given.folder / "large.csv", given.folder / "few.csv"
    if not large.exists():
        make(large)
    with large.open() as file:
        few.write_text("".join(islice(file, 1_001)))
    print(f"{large.stat().st_size / 1e6:.0f} MB\n\n| what | seconds | MB |\n|---|---|---|")
    if given.readers:
        for name, code in _READ.items():
            code = f"path = {str(large)!r}\n{code}"  # noqa: PLW2901
            seconds, most = measured(sys.executable, "-W", "ignore", "-c", code)
            print(f"| {name} | {seconds:.1f} | {most:,.0f} |", flush=True)
        return
    compare = [sys.executable, "-m", "drift", "compare", "--target", "label", "--models"]
    for name, words in (
        ("1,000 rows, a file of their own", [str(few)]),
        ("1,000 rows of the large file", [str(large), "--rows", "1000"]),
        ("all", [str(large)]),
    ):
        results = given.folder / f"results-{time.time_ns()}"
        seconds, most = measured(*compare, "tracker,lr", *words, "--output", str(results))
        print(f"| {name} | {seconds:.1f} | {most:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
