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
from pathlib import Path
from typing import Any

import numpy as np
import psutil

ROWS, NUMBERS, TOWNS = 2_000_000, 20, 50
_BLOCK = 20_000
MODELS = ("--models", "tracker,lr")


def write_file(path: Path, rows: int = ROWS) -> None:
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
    """Time and memory of `drift compare`, for all rows and for the first ones."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "large.csv")
        write_file(path, 2 * _BLOCK if quick else ROWS)
        command = (sys.executable, "-m", "drift", "compare", str(path), "--target", "label")
        table = []
        for what, more in {"1,000 rows of it": ("--rows", "1000"), "all": ()}.items():
            output = ("--output", f"{folder}/{what}")
            seconds, most = measured(*command, *MODELS, *more, *output)
            table.append({"what": what, "seconds": seconds, "MB": most})
        return {"table": table, "notes": [f"a file of {path.stat().st_size / 1e6:.0f} MB"]}
