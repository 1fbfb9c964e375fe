import csv
import json

import numpy as np
import pytest
from rich.console import Console

from drift.errors import ParameterError
from drift.experiments import RunFolder
from drift.experiments.reproduction import ModelSpec, permuted
from drift.experiments.reproduction.curves import records_of

CONTENDERS = {
    "RBP": ModelSpec("RBP", budget_of="LBP"),  # before the one that it waits for
    "Perceptron": ModelSpec("Perceptron"),
    "LBP": ModelSpec("LBP", {"budget": 7}),
}


@pytest.fixture(scope="module")
def results(documents):
    return permuted(documents, "a", CONTENDERS, permutations=3, jobs=1)


def test_every_contender_meets_the_same_permutations(results):
    assert list(records_of(results)) == list(CONTENDERS)
    for records in records_of(results).values():
        assert [record["permutation"] for record in records] == [0, 1, 2]
    assert [record["seed"] for record in records_of(results)["RBP"]] == [0, 1, 2]
    assert {record["seed"] for record in records_of(results)["LBP"]} == {None}


def test_a_budget_is_the_mean_of_what_another_contender_holds(documents):
    contenders = {"free": ModelSpec("Perceptron"), "RBP": ModelSpec("RBP", budget_of="free")}
    results = permuted(documents, "b", contenders, permutations=3, jobs=1)
    supports = [record["supports"] for record in records_of(results)["free"]]
    assert len(set(supports)) > 1
    budgets = [record["parameters"]["budget"] for record in records_of(results)["RBP"]]
    assert budgets == [round(sum(supports) / 3)] * 3


def test_the_table_has_means_and_deviations(results):
    rows = {row["contender"]: row for row in results.rows("table")}
    assert rows["RBP"]["parameters"] == "budget 7"
    assert (rows["LBP"]["supports"], rows["LBP"]["supports_std"]) == (7.0, 0.0)
    records = records_of(results)["Perceptron"]
    errors = [record["mistakes"] / 2 for record in records]  # percent of 200
    assert rows["Perceptron"]["error"] == pytest.approx(sum(errors) / 3, abs=1e-3)
    assert rows["Perceptron"]["error_std"] == pytest.approx(np.std(errors, ddof=1), abs=1e-3)
    supports = [record["supports"] for record in records]  # one an update
    assert rows["Perceptron"]["updates"] == pytest.approx(sum(supports) / 3, abs=0.1)
    assert rows["Perceptron"]["runs"] == 3


@pytest.mark.usefixtures("unrendered")
def test_it_leaves_a_folder_and_continues_from_it(tmp_path, documents):
    few = {"jobs": 1, "output": tmp_path}
    first = permuted(documents, "a", CONTENDERS, permutations=1, **few)
    second = permuted(documents, "a", CONTENDERS, permutations=2, **few)
    assert {path.name for path in tmp_path.iterdir()} == {
        *("runs.jsonl", "records.csv", "table.csv", "table.parquet", "manifest.json"),
        *("over_time.png", "over_time.svg"),
    }
    assert (
        records_of(second)["LBP"][:1] == records_of(first)["LBP"]
    )  # the seconds, too: not run again
    assert len(RunFolder(tmp_path).read()) == 6
    with (tmp_path / "table.csv").open() as file:
        assert [row["contender"] for row in csv.DictReader(file)] == list(CONTENDERS)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["data"] == {"stories": {"sha256": documents.sha256, "rows": 200}}
    assert manifest["parameters"]["permutations"] == 2


@pytest.mark.usefixtures("undrawn")
def test_saved_by_hand_it_is_the_same_folder(tmp_path, results):
    results.save(tmp_path)
    assert len(RunFolder(tmp_path).read()) == 9


def test_it_prints_a_table(results):
    console = Console(width=120)
    with console.capture() as shown:
        console.print(results)
    for part in ("stories: 3 permutations", "budget 7", "7 ± 0"):
        assert part in shown.get()


@pytest.mark.parametrize(
    ("contenders", "settings", "message"),
    [
        ({"X": ModelSpec("Percepton")}, {}, "no model 'Percepton': did you mean 'Perceptron'"),
        ({"X": ModelSpec("LBP", {"budget": 0})}, {}, "budget must be an integer of at least 1"),
        (CONTENDERS, {"permutations": 0}, "permutations must be an integer of at least 1, not 0"),
        ({"X": ModelSpec("LBP", budget_of="Y")}, {}, "X takes its budget from 'Y': compare it"),
        (
            {"X": ModelSpec("LBP", budget_of="Y"), "Y": ModelSpec("RBP", budget_of="X")},
            {},
            "which must not take its own from another",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(documents, contenders, settings, message):
    with pytest.raises(ParameterError, match=message):
        permuted(documents, "a", contenders, jobs=1, **settings)
