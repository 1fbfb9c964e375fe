"""Adding an algorithm, or a member of the Tracker, by CONTRIBUTING's steps, to the letter.

Each is done on a copy of the project, on which the shared tests are run.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks.programs.ablation import SOURCES, edited
from drift.models import compiled

pytestmark = pytest.mark.sources

ROOT = Path(__file__).resolve().parents[1]
ALGORITHM, MEMBER = "Add an algorithm", "Add a member to the Tracker"
STEP = re.compile(r"^\*\*\d\. .*?(?=^\*\*\d\. |\Z)", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"`((?:drift|tests)/[\w/]+\.(?:py|h))`")
BLOCK = re.compile(r"^```(python|c|diff)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def section(title):
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def steps(title):
    """Each step's file with its block's language and code, for the steps that have code."""
    for step in STEP.findall(section(title)):
        yield from zip(FILE.findall(step), BLOCK.findall(step), strict=False)


def apply(path, language, code):
    """Put a block where it belongs: at the end of its file, or by its lines of context."""
    if language != "diff":
        before = path.read_text(encoding="utf-8") + "\n\n" if path.exists() else ""
        path.write_text(before + code, encoding="utf-8")
        return
    text = path.read_text(encoding="utf-8")
    for hunk in code.split("@@\n"):
        lines = hunk.splitlines(keepends=True)
        old, new = ("".join(line[1:] for line in lines if line[0] in kept) for kept in (" -", " +"))
        assert text.count(f"\n{old}") == 1, f"{path.name} has this once:\n{old}"
        text = text.replace(f"\n{old}", f"\n{new}")
    path.write_text(text, encoding="utf-8")


def added(language, code):
    lines = [line for line in code.splitlines() if line.strip(" +")]
    return len([line for line in lines if line[0] == "+"] if language == "diff" else lines)


def copy(folder, *names):
    for name in names:
        one = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        one(ROOT / name, folder / name)


def passed(folder, *arguments):
    """Number of tests that pass on a copy; all have to."""
    without_data = {name: value for name, value in os.environ.items() if name != "DRIFT_DATA"}
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n0", *arguments],
        cwd=folder,
        env=without_data | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return int(re.search(r"(\d+) passed", result.stdout)[1])


# --- an algorithm --------------------------------------------------------------------------------


def test_an_algorithm_takes_less_than_thirty_lines():
    written = {path: added(*block) for path, block in steps(ALGORITHM)}
    assert list(written) == [
        "drift/models/fading.py",
        "drift/models/registry.py",
        "tests/models/twin_fading.py",
    ]
    assert 0 < sum(written.values()) < 30, written


@pytest.mark.slow
def test_the_shared_tests_find_and_pass_an_algorithm_that_follows_the_steps(tmp_path):
    copy(tmp_path, "drift", "tests", "pyproject.toml")
    for path, block in steps(ALGORITHM):
        apply(tmp_path / path, *block)
    wanted = "Fading or every_model_has_a_twin or registry"
    n = passed(tmp_path, "-k", wanted, "tests/models", "tests/test_architecture.py")
    assert n > 20  # fewer without an extension


# --- a member of the Tracker ---------------------------------------------------------------------

#: Every member must pass these tests. Tests of other members are left out. The two cores are
#: compared with a budget of 3 alone, on streams that bring classes and names late, and on a row
#: that turns both to sparse rows.
STREAMS = "(late or growing or tiny or wide)"
AGREE = f"(-3] and {STREAMS} or not cores_agree[)"
TESTS = [
    f"tests/models/test_tracker{name}"
    for name in (
        "_twin.py",
        "_state.py",
        "_contract.py::test_a_weight_of_0_changes_nothing",
        "_contract.py::test_no_weight_is_too_large",
        "_contract.py::test_the_largest_parameters_and_weights_leave_all_finite",
        "_contract.py::test_members_are_a_table_of_what_each_would_have_done",
        "_contract.py::test_probabilities_are_those_of_the_classes_learnt",
        ".py::test_order_and_the_form_of_what_is_missing_make_no_difference",
        ".py::test_a_prediction_with_new_names_leaves_no_trace",
        ".py::test_copies_continue_bit_for_bit",
    )
]


def shared(*others):
    """These tests, without those of others."""
    left_out = " or ".join(("few_names", "that_lag", "knots", *others))
    return "-k", f"not ({left_out}) and {AGREE}", *TESTS


def what_to_compile_lacks():
    """What a copy cannot be compiled without, where that is missing."""
    compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    if not compiled:
        return "drift is not compiled here"
    if not shutil.which(shlex.split(compiler)[0]):
        return "no C compiler"
    if not all(map(find_spec, ("Cython", "setuptools"))):
        return "no Cython or setuptools, which .[dev] has"
    return "" if int(version("setuptools").partition(".")[0]) >= 77 else "setuptools before 77"


@pytest.fixture
def with_a_member(tmp_path):
    """A copy of the project to which the steps were applied, and which is not compiled."""
    copy(tmp_path, "drift", "tests", "pyproject.toml")
    for path in (tmp_path / SOURCES).iterdir():
        if path.suffix in {".so", ".pyd"}:
            path.unlink()
    for path, block in steps(MEMBER):
        apply(tmp_path / path, *block)
    return tmp_path


def test_a_member_takes_four_files():
    written = {path: added(*block) for path, block in steps(MEMBER)}
    names = "tables.py", "recency.h", "tracker.h", "reference.py"
    assert list(written) == [f"{SOURCES.as_posix()}/{name}" for name in names]
    assert 0 < sum(written.values()) < 40, written


@pytest.mark.slow
def test_both_cores_pass_with_a_member_that_follows_the_steps(with_a_member):
    """The Tracker is compiled for any processor and at -O0, which takes half the time of -O1.

    The column store's extension, newer than its sources, stays: --inplace would compile it again.
    What one core has to pass, the compiled one does, as the two agree.
    """
    if lacking := what_to_compile_lacks():
        pytest.skip(f"the reference alone is tested: {lacking}")
    copy(with_a_member, "setup.py", "README.md", "LICENSE")
    setup = with_a_member / "setup.py"
    setup.write_text(setup.read_text("utf-8").replace('"-O3"', '"-O0"'), encoding="utf-8")
    build = [sys.executable, "setup.py", "-q", "build_ext", "--build-lib=."]
    flags = os.environ | {"CFLAGS": "-DDRIFT_CLONES= -g0"}
    done = subprocess.run(
        build, cwd=with_a_member, env=flags, capture_output=True, text=True, check=False
    )
    built = [
        path.name for path in (with_a_member / SOURCES).iterdir() if path.suffix in {".so", ".pyd"}
    ]
    assert len(built) == 1, done.stderr
    assert passed(with_a_member, *shared("reference")) > 100


def test_the_ablation_can_leave_the_member_out(with_a_member):
    [command] = re.findall(r"^python -m benchmarks ablation (.*)$", section(MEMBER), re.MULTILINE)
    option, *edit = shlex.split(command)
    assert option == "--edit"
    [text] = edited([edit], with_a_member).values()
    assert "RECENCY = 0.0" in text
