"""Run the store's tests under AddressSanitizer, and a million updates for leaks.

    python tools/sanitize.py

The extension is built anew, in a copy of the package, with bounds and lifetimes checked; the
hypothesis state machine of `tests/models/test_store.py` and what else exercises the store then run
against it. Needs gcc and its libasan. The leak test uses the extension in place.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from drift.models import RBP

ROOT = Path(__file__).parent.parent
TESTS = ("test_store.py", "test_refusals.py", "test_threads.py", "test_blocks.py")
UPDATES = 1_000_000


def under_address_sanitizer(folder: Path) -> int:
    """Build and test a copy of the package in a folder; return pytest's exit code."""
    copied = shutil.ignore_patterns("*.so", "*.c", "__pycache__")
    for name in ("drift", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=copied)
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    flags = "-fsanitize=address -fno-omit-frame-pointer -g -O1"
    build = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    subprocess.run(build, cwd=folder, check=True, env=os.environ | {"CFLAGS": flags})
    library = ["gcc", "-print-file-name=libasan.so"]
    preload = subprocess.run(library, check=True, capture_output=True, text=True).stdout.strip()
    environment = os.environ | {
        "LD_PRELOAD": preload,
        "ASAN_OPTIONS": "detect_leaks=0",  # Python keeps what it likes until the end
        "PYTHONMALLOC": "malloc",  # or objects are parts of blocks that live on
        "PYTHONPATH": str(folder),
    }
    tests = [f"tests/models/{name}" for name in TESTS]
    run = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    return subprocess.run(run, cwd=folder, env=environment, check=False).returncode


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
        if step == updates // 10:
            before = resident()
    assert model.n_updates == updates  # noqa: S101
    return resident() - before


def main() -> None:
    """Run both."""
    with tempfile.TemporaryDirectory() as folder:
        code = under_address_sanitizer(Path(folder))
    if code:
        raise SystemExit(code)
    grown = growth(UPDATES)
    print(f"{UPDATES:,} updates: {grown / 1e6:+.2f} MB after the first tenth")
    if grown > 1 << 20:
        raise SystemExit("memory leaks")


if __name__ == "__main__":
    main()
