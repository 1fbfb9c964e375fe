"""What `drift compare` takes of a CSV file of 322 MB: time, and memory of all of its processes.

It has 2,000,000 rows of 20 numbers, 2 categories and a label whose rule drifts. Memory is the sum
over the processes of their proportional set size, in which a page that two share counts half.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil

if TYPE_CHECKING:
    from collections.abc import Sequence

ROWS, NUMBERS, TOWNS = 2_000_000, 20, 50
_BLOCK = 20_000
MODELS = ("--models", "tracker,lr")
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
            most = max(most, _memory(process.pid))
            time.sleep(0.1)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return time.perf_counter() - began, most


def _memory(pid: int) -> float:
    most = 0.0
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        for one in (process, *process.children(recursive=True)):
            with suppress(psutil.Error):
                most += one.memory_full_info().pss / 1e6
    return most


def large_file(*, quick: bool) -> dict[str, Any]:
    """Time and memory of `drift compare`, and of libraries that read the file."""
    compare = (sys.executable, "-m", "drift", "compare", "--target", "label", *MODELS)
    with tempfile.TemporaryDirectory() as folder:
        large, few = Path(folder, "large.csv"), Path(folder, "few.csv")
        make(large, 2 * _BLOCK if quick else ROWS)
        with large.open() as file:
            few.write_text("".join(islice(file, 1_001)))
        commands: dict[str, Sequence[str]] = {
            "compare, 1,000 rows in a file of their own": (*compare, str(few)),
            "compare, 1,000 rows of it": (*compare, str(large), "--rows", "1000"),
            "compare, all": (*compare, str(large)),
        }
        for name, code in _READ.items():
            program = f"path = {str(large)!r}\n{code}"
            commands[name] = (sys.executable, "-W", "ignore", "-c", program)
        table = []
        for number, (name, command) in enumerate(commands.items()):
            where = ("--output", f"{folder}/{number}") if "compare" in command else ()
            seconds, most = measured(*command, *where)
            table.append({"what": name, "seconds": seconds, "MB": most})
        return {"table": table, "notes": [f"a file of {large.stat().st_size / 1e6:.0f} MB"]}
