"""A model stored by one version continues under later ones as under that one."""

import json
import pickle

import pytest

import drift.models
from drift.consumers.checkpoints.checkpoint import from_bytes
from drift.consumers.checkpoints.file_format import load
from tools.golden import ROOT, SIZES, go_on, write

#: Recorded by `tools.golden` under the versions that the folders are named for.
CASES = sorted(path.with_suffix("") for path in ROOT.glob("*/*-*.json"))
#: What `drift.models` exports beside classes that can be stored.
OTHERS = {
    *("MODELS", "KernelClassifier", "KernelModel", "MulticlassKernelClassifier"),
    *("column_type", "compiled", "from_bytes"),
}


def stored(case):
    """Models of a checkpoint, and of a pickle where there is one."""
    yield from_bytes(load(case.with_suffix(".drift")), allow_pickle=True).model
    if (pickled := case.with_suffix(".pickle")).exists():
        yield pickle.loads(pickled.read_bytes())


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}-{case.name}")
def test_a_stored_model_predicts_and_learns_as_it_would_have(case):
    then = json.loads(case.with_suffix(".json").read_text("utf-8"))
    name, _, size = case.name.rpartition("-")
    for model in stored(case):
        now = go_on(case.parent, name, size, model)
        assert (now["labels"], now["later"]) == (then["labels"], then["later"])
        for when in ("scores", "last"):
            for actual, expected in zip(now[when], then[when], strict=True):
                assert actual == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_each_class_is_stored_in_each_size_and_pickled():
    actual = {path.name for path in ROOT.glob("*/*")}
    for name in set(drift.models.__all__) - OTHERS:
        wanted = {f"{name}-{size}.drift" for size in SIZES} | {f"{name}-full.pickle"}
        assert wanted <= actual


def test_what_is_there_is_never_overwritten(tmp_path):
    write(tmp_path)
    before = {path.name for path in tmp_path.iterdir()}
    for path in tmp_path.iterdir():
        if path.name.startswith("LBP-"):
            path.unlink()
        elif path.name != "examples.json":
            path.write_bytes(b"kept")
    write(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == before
    for path in tmp_path.iterdir():
        changes = path.name.startswith(("LBP-", "examples"))
        assert (path.read_bytes() == b"kept") != changes
