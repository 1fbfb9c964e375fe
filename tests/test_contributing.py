"""Adding an algorithm by CONTRIBUTING's steps, to the letter, on a copy of the project."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STEP = re.compile(r"^\*\*\d\. .*?(?=^\*\*\d\. |\Z)", re.DOTALL | re.MULTILINE)
BLOCK = re.compile(r"^```(python|diff)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def steps():
    """Each step's file with its block's language and code, for the steps that have code."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for step in STEP.findall(page.partition("## Add an algorithm")[2]):
        blocks = BLOCK.findall(step)
        yield from zip(re.findall(r"`((?:drift|tests)/[\w/]+\.py)`", step), blocks, strict=False)


def apply(path, language, code):
    """Put a block where it belongs: at the end of its file, or by its lines of context."""
    if language == "python":
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        path.write_text(f"{before}\n\n{code}", encoding="utf-8")
        return
    text = path.read_text(encoding="utf-8")
    for hunk in code.split("@@\n"):
        lines = hunk.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] == " ")
        assert text.count(f"\n{old}") == 1, f"{path.name} has this once:\n{old}"
        text = text.replace(f"\n{old}", "\n" + "".join(line[1:] for line in lines))
    path.write_text(text, encoding="utf-8")


def added(language, code):
    lines = [line for line in code.splitlines() if line.strip()]
    return len(lines if language == "python" else [line for line in lines if line[0] == "+"])


def test_an_algorithm_takes_less_than_thirty_lines():
    written = {path: added(*block) for path, block in steps()}
    assert list(written) == [
        "drift/models/fading.py",
        "drift/models/registry.py",
        "tests/models/twin_fading.py",
    ]
    assert 0 < sum(written.values()) < 30, written


def test_the_shared_tests_find_and_pass_an_algorithm_that_follows_the_steps(tmp_path):
    for name in ("drift", "tests", "pyproject.toml"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    for path, block in steps():
        apply(tmp_path / path, *block)
    wanted = "Fading or every_model_has_a_twin or registry"
    folders = ["tests/models", "tests/test_architecture.py"]
    without_data = {name: value for name, value in os.environ.items() if name != "DRIFT_DATA"}
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n0", "-k", wanted, *folders],
        cwd=tmp_path,
        env=without_data | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout
    assert int(re.search(r"(\d+) passed", result.stdout)[1]) > 20  # fewer without an extension
