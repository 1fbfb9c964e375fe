"""Run the models' tests under the sanitizers, or a million updates for leaks.

    python tools/sanitize.py [--leaks | PYTEST'S ARGUMENTS ...]

The package is built anew, away from the sources, with bounds, lifetimes and undefined behaviour
checked. A sample of the models' tests then runs against it, or what is named. With `--leaks` it is
the updates instead, with the extension in place. Needs gcc with libasan and libubsan, and the
packages of the extra `test`.
"""

from __future__ import annotations

import argparse
import copy
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from drift.errors import FeatureError
from drift.models import RBP

ROOT = Path(__file__).parent.parent
#: The state machine over both stores, odd names, interrupts, batches that grow or are dense, and
#: each twin; of the Tracker both cores, each part, forged states, batches and pickles.
SAMPLE = (
    "test_store or test_borrowed or (test_interrupts and compiled) or test_growing"
    " or (test_batches and (csr or dense_rows)) or (test_twins and float32 and not real)"
    " or (test_tracker_twin or test_tracker_parts or test_tracker_state) and not reference"
    " or (test_tracker and (batch or copies and auto or auto_continues))"
)
#: Where these are: under the sanitizers it takes long to collect all.
FILES = [
    *("batches", "borrowed", "growing", "interrupts", "store", "tracker", "tracker_late"),
    *("tracker_parts", "tracker_state", "tracker_twin", "tracker_zeros", "twins"),
]
UPDATES = 1_000_000


def under_sanitizers(folder: Path, arguments: list[str]) -> int:
    """Build and test a copy of the package in a folder; return pytest's exit code."""
    source, site, check = folder / "source", folder / "site", folder / "check"
    built = shutil.ignore_patterns("*.so", "*.c", "__pycache__")
    shutil.copytree(ROOT / "drift", source / "drift", ignore=built)
    for name in ("tests", "docs", "datasets"):  # tests read pages and a sample
        shutil.copytree(ROOT / name, check / name, ignore=built)
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copy(ROOT / "pyproject.toml", check)
    # Lines are enough to find a report's place; all that a debugger asks takes a quarter longer.
    flags = "-fsanitize=address,undefined -fno-sanitize-recover -fno-omit-frame-pointer -g1 -O1"
    flags += " -DDRIFT_WINDOW_BYTES=1"  # windows of every batch
    # pip fetches what it takes to build, so that the environment at hand need not have it.
    build = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", site, source]
    # As released wheels are built: the suite runs on the other form.
    form = {"CFLAGS": flags, "DRIFT_ABI3": "1"}
    subprocess.run(build, check=True, env=os.environ | form)
    library = [["gcc", f"-print-file-name={name}"] for name in ("libasan.so", "libubsan.so")]
    preload = " ".join(subprocess.check_output(command, text=True).strip() for command in library)
    environment = os.environ | {
        "LD_PRELOAD": preload,
        "ASAN_OPTIONS": "detect_leaks=0",  # Python keeps what it likes until the end
        "PYTHONMALLOC": "malloc",  # or objects are parts of blocks that live on
        "PYTHONPATH": str(site),
    }
    # Where the build has failed there would be nothing to check.
    compiled = "import drift.models; assert drift.models.compiled"
    subprocess.run([sys.executable, "-c", compiled], cwd=check, env=environment, check=True)
    # Without capture, or what a sanitizer says as it ends the process is lost.
    pytest = [sys.executable, "-m", "pytest", "-qx", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command = [*pytest, "--capture=no", *arguments]
    code = subprocess.run(command, cwd=check, env=environment, check=False).returncode
    if code == 0:  # what a sanitizer reports ends the process
        print(f"AddressSanitizer and UBSan: no report in {' '.join(arguments)}")
    return code


def resident() -> int:
    """Bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def growth(updates: int) -> int:
    """Bytes by which memory grows between a tenth of so many updates and their end."""
    model, rng, before = RBP(100, seed=1), random.Random(1), 0
    for step in range(updates):
        names = rng.sample(range(5_000), 8)
        x = {f"name{j}-{step % 1000}": rng.random() for j in names}
        model.learn_one(x, not model.predict_one(x))  # a mistake, whatever it says
        if step % 1000 == 0:
            model = copy.deepcopy(model)
            with suppress(FeatureError):
                model.learn_one(x | {"name": math.inf}, y=True)
        if step == updates // 10:
            before = resident()
    assert model.n_updates == updates  # noqa: S101
    return resident() - before


def main() -> None:
    """Run either."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--leaks", action="store_true", help="a million updates instead of tests")
    arguments, tests = parser.parse_known_args()
    if arguments.leaks:
        grown = growth(UPDATES)
        print(f"{UPDATES:,} updates: {grown / 1e6:+.2f} MB after the first tenth")
        raise SystemExit("memory leaks" if grown > 1 << 20 else 0)
    with tempfile.TemporaryDirectory() as folder:
        sample = [*(f"tests/models/test_{name}.py" for name in FILES), "-k", SAMPLE]
        raise SystemExit(under_sanitizers(Path(folder), tests or sample))


if __name__ == "__main__":
    main()
