"""Run the store's tests under the sanitizers, and a million updates for leaks.

    python tools/sanitize.py [TESTS ...]

The extension is built anew, in a copy of the package, with bounds, lifetimes and what C leaves
undefined checked. The hypothesis state machine of `tests/models/test_store.py` and what else
exercises the store, or the tests named, then run against it. Needs gcc with libasan and libubsan.
The leak test uses the extension in place.
"""

from __future__ import annotations

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
TESTED = ("store", "refusals", "threads", "blocks", "classes", "window")
TESTS = [f"tests/models/test_{name}.py" for name in TESTED]
UPDATES = 1_000_000


def under_sanitizers(folder: Path, tests: list[str]) -> int:
    """Build and test a copy of the package in a folder; return pytest's exit code."""
    copied = shutil.ignore_patterns("*.so", "*.c", "__pycache__")
    for name in ("drift", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=copied)
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    flags = "-fsanitize=address,undefined -fno-sanitize-recover -fno-omit-frame-pointer -g -O1"
    build = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    subprocess.run(build, cwd=folder, check=True, env=os.environ | {"CFLAGS": flags})
    library = [["gcc", f"-print-file-name={name}"] for name in ("libasan.so", "libubsan.so")]
    preload = " ".join(subprocess.check_output(command, text=True).strip() for command in library)
    environment = os.environ | {
        "LD_PRELOAD": preload,
        "ASAN_OPTIONS": "detect_leaks=0",  # Python keeps what it likes until the end
        "PYTHONMALLOC": "malloc",  # or objects are parts of blocks that live on
        "PYTHONPATH": str(folder),
    }
    # Where the build has failed there would be nothing to check.
    check = [sys.executable, "-c", "import drift.models; assert drift.models.compiled"]
    subprocess.run(check, cwd=folder, env=environment, check=True)
    # Without capture, or what a sanitizer says as it ends the process is lost.
    pytest = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--capture=no"]
    return subprocess.run([*pytest, *tests], cwd=folder, env=environment, check=False).returncode


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
    """Run both."""
    with tempfile.TemporaryDirectory() as folder:
        code = under_sanitizers(Path(folder), sys.argv[1:] or TESTS)
    if code:
        raise SystemExit(code)
    grown = growth(UPDATES)
    print(f"{UPDATES:,} updates: {grown / 1e6:+.2f} MB after the first tenth")
    if grown > 1 << 20:
        raise SystemExit("memory leaks")


if __name__ == "__main__":
    main()
