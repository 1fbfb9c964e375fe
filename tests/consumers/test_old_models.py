"""What an older version wrote goes on under this one as it would have under that."""

import json
import pickle
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from drift.consumers import CheckpointFolder
from drift.errors import CheckpointError
from drift.models._old_names import HOMES
from tools.old_models import go_on

#: Written by `tools.old_models` under the versions that the folders are named for.
FOLDERS = [path.parent for path in Path(__file__).parent.glob("data/*/results.json")]
CASES = [
    (folder, name)
    for folder in FOLDERS
    for name in json.loads((folder / "results.json").read_text())
    if name != "Tracker-delay"
]


def test_there_are_models_of_the_first_version():
    assert sum(folder.name == "0.1.0" for folder, _ in CASES) == 26


@pytest.mark.parametrize(("folder", "name"), CASES, ids=[f"{f.name}-{n}" for f, n in CASES])
def test_an_old_model_goes_on_as_it_would_have(folder, name):
    models = [pickle.loads((folder / "pickles" / f"{name}.pickle").read_bytes())]
    if name != "StructuredProjectron":
        checkpoint = CheckpointFolder(folder / "checkpoints").newest((name, 0))
        models.append(checkpoint.model)
    then = json.loads((folder / "results.json").read_text())[name]
    for model in models:
        now = go_on(name, model)
        assert now["predictions"] == then["predictions"]
        assert now["scores"] == pytest.approx(then["scores"], rel=1e-4, abs=1e-4)


def test_an_old_tracker_is_refused_with_the_remedy():
    folder = Path(__file__).parent / "data" / "before-0.2.0"
    with pytest.raises(ValueError, match="train it anew"):
        pickle.loads((folder / "pickles" / "Tracker-delay.pickle").read_bytes())
    with pytest.raises(CheckpointError, match="train it anew"):
        CheckpointFolder(folder / "checkpoints").newest(("Tracker-delay", 0))


def test_modules_are_found_by_the_names_of_the_first_version():
    code = (
        "import sys, drift.models\n"
        "before = set(sys.modules)\n"
        "from drift.models.base import KernelClassifier\n"
        "from drift.models.multiclass import MRBP, MulticlassKernelClassifier\n"
        "assert KernelClassifier is drift.models.KernelClassifier\n"
        "assert (MRBP, MulticlassKernelClassifier) == (\n"
        "    drift.models.MRBP, drift.models.MulticlassKernelClassifier)\n"
        "assert not any(name in before for name in ('drift.models.base', 'drift.models.budget'))\n"
        "try:\n"
        "    import drift.models.nowhere\n"
        "except ModuleNotFoundError:\n"
        "    print('refused')\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout == "refused\n"


@pytest.mark.parametrize("name", HOMES)
def test_an_old_name_has_what_its_home_has(name):
    old, home = (import_module(f"drift.models.{module}") for module in (name, HOMES[name]))
    assert all(getattr(old, public) is getattr(home, public) for public in home.__all__)
    assert not hasattr(old, "missing")
