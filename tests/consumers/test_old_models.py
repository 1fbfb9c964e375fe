"""What an older version wrote goes on under this one as it would have under that."""

import json
import pickle
from pathlib import Path

import pytest

from drift.consumers import CheckpointFolder
from tools.old_models import go_on

#: Written by `tools.old_models` under the versions that the folders are named for.
FOLDERS = [path.parent for path in Path(__file__).parent.glob("data/*/results.json")]
CASES = [
    (folder, name)
    for folder in FOLDERS
    for name in json.loads((folder / "results.json").read_text())
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
