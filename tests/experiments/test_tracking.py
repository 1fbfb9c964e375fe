import csv
import json
import math
import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from drift.errors import DataError, MissingExtraError, ParameterError
from drift.experiments import (
    TRACKING,
    TRACKING_MODELS,
    Results,
    RunFolder,
    default_budgets,
    runner,
    track,
)
from drift.experiments.reproduction.claims import Claim
from drift.kernels import Linear
from drift.models import MODELS, Tracker
from drift.streams import RCV1_TARGETS, ShiftingStream

#: Files of the tables.
TABLES = {
    f"{name}.{suffix}"
    for name in ("table", "summary", "chunks", "claims")
    for suffix in ("csv", "parquet")
}
GRID = {"budgets": [6, 3], "decays": [0.5], "seeds": 2, "jobs": 1}


@pytest.fixture(scope="module")
def of_the_paper(documents):
    """Stories under the names of the paper's."""
    return replace(documents, name="rcv1", topic_names=RCV1_TARGETS)


@pytest.fixture(scope="module")
def results(of_the_paper):
    return track(of_the_paper, **GRID)


def test_the_models_are_registered():
    assert set(TRACKING_MODELS) <= set(MODELS)


def test_every_model_runs_on_every_stream_of_every_group(results):
    # 16 streams, two of them alike (see below), each: Perceptron, SPA, RBP with 2 budgets and 2
    # seeds, 2 budgets for the others
    whole = 15 * (1 + 1 + 4 + 2 + 2)
    # chunks: 4 streams of 2 and 8, and 3 of 4; those of 1 are the stream
    assert len(results.records) == whole + 4 * (2 + 8) + 3 * 4
    assert len({record["key"] for record in results.records}) == len(results.records)
    assert [row["chunks"] for row in results.rows("chunks")] == [4, 4 * 2, 3 * 4, 4 * 8]
    assert {record["shifts"] for record in results.records} == {0, 1, 3, 7}
    assert {record["seed"] for record in results.records if record["model"] == "RBP"} == {0, 1}
    assert {record["seed"] for record in results.records if record["model"] != "RBP"} == {None}


def test_copies_of_a_stream_count_once(results):
    # the second and the third draw of three shifts is the same, as tracking_groups shows
    assert {record["index"] for record in results.records if record["shifts"] == 3} == {0, 1, 3}


@pytest.mark.usefixtures("unrendered")
def test_a_file_of_two_classes_is_one_stream_and_not_the_papers(tmp_path):
    lines = [f"{'+1' if i % 3 else '-1'} 1:{i % 5} 2:{1 + i % 3} 3:1\n" for i in range(60)]
    (tmp_path / "rcv1.svm").write_text("".join(lines))
    results = track(str(tmp_path / "rcv1.svm"), output=tmp_path / "out", **GRID)
    assert {record["index"] for record in results.records} == {0}
    assert results.rows("claims") == []
    console = Console(width=120)
    with console.capture() as shown:
        console.print(results)
    assert "the paper" not in shown.get()
    assert (tmp_path / "out" / "claims.csv").read_text().splitlines() == [",".join(Claim._fields)]


@pytest.mark.usefixtures("unrendered")
def test_the_papers_other_models_run_where_they_are_requested(tmp_path, documents):
    few = {"shifts": [7], "models": ["lbsop", "RBSOP", "sop", "RBP"], "rows": 80, "jobs": 1}
    results = track(documents, budgets=[3, 6], output=tmp_path, **few)
    runs = [one["model"] for one in results.records if len(one["targets"]) == 8]
    assert {model: runs.count(model) for model in runs} == {
        "RBP": 4 * 2 * 5,
        "SOP": 4,
        "RBSOP": 4 * 2,  # one seed unless more are requested
        "LBSOP": 4 * 2,
    }
    assert list(dict.fromkeys(runs)) == ["RBP", "SOP", "RBSOP", "LBSOP"]
    assert [(row["model"], row["chunks"]) for row in results.rows("chunks")] == [("SOP", 32)]
    assert (tmp_path / "second_order_vs_budget.svg").exists()
    more = track(documents, budgets=[3], seeds=2, **few)
    assert {record["seed"] for record in more.records if record["model"] == "RBSOP"} == {0, 1}


def test_the_tracker_runs_beside_the_papers_models_and_in_no_claim(of_the_paper):
    names = {"models": ["tracker", "LBSOP", "LBP"], "kernel": Linear()}
    results = track(of_the_paper, shifts=[7], budgets=[5], jobs=1, **names)
    known, *_ = (record for record in results.records if record["model"] == "Tracker")
    assert (known["kernel"], known["updates"]) == (None, None)
    claims = results.rows("claims")
    decided = {claim["model"] for claim in claims}
    assert "LBSOP" in decided
    assert not any(
        "Tracker" in "".join(map(str, claim.values())) for claim in results.rows("claims")
    )
    assert sorted(results.figures)[:2] == ["error_over_time", "error_vs_budget"]
    stream = ShiftingStream(of_the_paper, known["targets"])
    model, mistakes = Tracker(budget=5), 0
    for x, y in zip(of_the_paper.features(), stream.y.tolist(), strict=True):
        mistakes += model.predict_one(x) != y
        model.learn_one(x, y)
    assert known["mistakes"] == mistakes


def test_the_table_has_a_row_a_setting(results):
    rows = results.rows("table")
    assert len(rows) == 4 * (1 + 1 + 2 + 2 + 2)
    rbp = next(row for row in rows if row["model"] == "RBP")
    assert (rbp["parameters"], rbp["runs"], rbp["supports"]) == ("budget 3", 8, 3.0)
    assert len(results.rows("summary")) == 4 * 5


def test_it_leaves_a_folder(tmp_path, results, of_the_paper):
    folder = tmp_path / "new"
    results.save(folder)
    assert {path.name for path in folder.iterdir()} == {
        *("runs.jsonl", "records.csv", "manifest.json", *TABLES),
        *("error_vs_budget.png", "error_vs_budget.svg"),
        *("error_over_time.png", "error_over_time.svg"),
    }
    for name in results.figures:
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    with (folder / "table.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(results.rows("table"))
    with (folder / "claims.csv").open() as file:
        assert [row["claim"] for row in csv.DictReader(file)] == list("aaabbbbccccddeff")
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["data"] == {"rcv1": {"sha256": of_the_paper.sha256, "rows": 200}}
    assert manifest["parameters"] == {
        "budget": [3, 6],
        "decay": [0.5],
        "shifts": [0, 1, 3, 7],
        "models": list(TRACKING_MODELS),
        "rows": 200,
        "seeds": {"RBP": 2},
        "stream_seed": 0,
        "kernel": "Polynomial(degree=4, coef0=1.0, normalize=True)",
    }
    assert set(manifest["versions"]) == {"python", "drift", "river", "numpy", "scipy"}
    keys = {record["key"] for record in results.records}
    assert set(RunFolder(folder).read()) == keys
    assert len((folder / "runs.jsonl").read_text().splitlines()) == len(keys)


@pytest.mark.usefixtures("undrawn")
def test_other_runs_in_the_folder_are_kept_but_not_reported(tmp_path, documents):
    few = {"shifts": [1], "models": ["LBP"], "jobs": 1, "output": tmp_path}
    track(documents, budgets=[3], **few)
    track(documents.head(100), budgets=[3], **few)
    results = track(documents, budgets=[3, 5], **few)
    assert [row["parameters"] for row in results.rows("table")] == ["budget 3", "budget 5"]
    assert len(RunFolder(tmp_path).read()) == 12


def test_the_seconds_are_those_from_start_to_end(documents, monkeypatch):
    clock = SimpleNamespace(
        perf_counter=iter([100.0, 102.5]).__next__, process_time=time.process_time
    )
    monkeypatch.setattr(runner, "time", clock)
    assert track(documents, shifts=[1], models=["LBP"], budgets=[3], jobs=1).seconds == 2.5


@pytest.mark.usefixtures("undrawn")
def test_a_folder_is_read_back(tmp_path, results):
    results.save(tmp_path)
    read = Results.read(tmp_path, TRACKING)
    for name in TRACKING.tables:
        assert read.rows(name) == results.rows(name)
    assert (read.settings, read.streams) == (results.settings, results.streams)


def test_a_folder_without_results_cannot_be_read(tmp_path):
    with pytest.raises(DataError, match=r"records\.csv: is not there: give a folder that results"):
        Results.read(tmp_path / "nowhere", TRACKING)
    assert not (tmp_path / "nowhere").exists()
    RunFolder(tmp_path).write_table("records", [{"contender": "LBP", "key": "1f"}])
    (tmp_path / "manifest.json").write_text('{"data": {}, "parameters": {}}')  # and no seconds
    with pytest.raises(DataError, match=r"manifest\.json: is no manifest: delete it"):
        Results.read(tmp_path, TRACKING)
    RunFolder(tmp_path).write_manifest({}, {}, 1.0)
    with pytest.raises(DataError, match=r"names runs that runs\.jsonl has not: {'1f'}"):
        Results.read(tmp_path, TRACKING)


@pytest.mark.usefixtures("undrawn")
def test_save_without_output_writes_the_runs_too(tmp_path, documents):
    results = track(documents, shifts=[1], models=["LBP"], budgets=[3], jobs=1)
    results.save(tmp_path)
    assert len(RunFolder(tmp_path).read()) == 4


@pytest.mark.usefixtures("undrawn")
def test_tables_without_rows_have_their_headings(tmp_path, results, of_the_paper):
    few = {"shifts": [1], "models": ["LBP"], "budgets": [3], "jobs": 1}
    track(of_the_paper, output=tmp_path / "few", **few)
    results.save(tmp_path / "all")
    for name in ("chunks.csv", "claims.csv"):
        empty, full = (pd.read_csv(tmp_path / path / name) for path in ("few", "all"))
        assert len(empty) == 0 < len(full)
        assert list(empty) == list(full)


def test_without_matplotlib_everything_else_is_saved(tmp_path, documents, monkeypatch):
    def missing(*_):
        raise MissingExtraError("matplotlib", "plots")

    monkeypatch.setattr(Results, "plot", missing)
    with pytest.warns(RuntimeWarning, match="no figures: matplotlib is not installed"):
        track(documents, shifts=[1], models=["LBP"], budgets=[3], jobs=1, output=tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"runs.jsonl", "records.csv", "manifest.json", *TABLES}


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("missing", ["pandas", "pyarrow"])
def test_without_pandas_or_pyarrow_there_is_no_parquet(tmp_path, results, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    results.save(tmp_path)
    assert {path.name for path in tmp_path.glob("*.csv")} > {"table.csv", "claims.csv"}
    assert not list(tmp_path.glob("*.parquet"))


def test_it_prints_the_tables(results):
    console = Console(width=120, record=True, file=None, quiet=False)
    with console.capture() as shown:
        console.print(results)
    text = " ".join(shown.get().split())  # a narrow table breaks its title
    for part in ("rcv1: each model at its best", "decay 0.5", "afresh on each chunk", "(d)"):
        assert part in text
    assert "in the paper" not in text


def test_figures_come_by_name(results):
    assert sorted(results.figures) == ["error_over_time", "error_vs_budget"]
    with pytest.raises(ParameterError, match="no figure 'errors': choose among error_vs_budget"):
        results.plot("errors")


def test_numbers_may_be_numpys_and_decays_whole(documents):
    few = {"shifts": [1], "models": ["LBP", "SPA"], "jobs": 1}
    numpys = track(documents, budgets=np.array([3, 5]), decays=np.array([1, 2]), **few)
    pythons = track(documents, budgets=[5, 3, 3], decays=[2.0, 1.0], **few)
    assert [r["key"] for r in numpys.records] == [r["key"] for r in pythons.records]
    lone = track(documents, shifts=1, models="lbp", budgets=3, jobs=1)
    assert [r["key"] for r in lone.records] == [
        r["key"] for r in numpys.records if r["parameters"] == {"budget": 3}
    ]


def test_a_notebook_shows_the_tables_and_no_records(results):
    assert repr(results) == f"<Results of rcv1: {len(results.records)} runs>"
    assert "each model at its best" in results._repr_mimebundle_([], [])["text/html"]


def test_the_seed_draws_other_streams(documents):
    few = {"shifts": [3], "models": ["LBP"], "budgets": [3], "jobs": 1}
    drawn = [
        {tuple(record["targets"]) for record in track(documents, seed=seed, **few).records}
        for seed in (0, 0, 1)
    ]
    assert drawn[0] == drawn[1] != drawn[2]


def test_targets_and_rows_can_be_chosen(documents):
    few = {"shifts": [0], "models": ["LBP"], "budgets": [3], "jobs": 1}
    records = track(documents, targets=["b", "a"], rows=50, **few).records
    assert [(record["targets"], record["n_samples"]) for record in records] == [
        (["b"], 50),
        (["a"], 50),
    ]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"models": ["Forgetrom"]}, "no model 'Forgetrom': did you mean 'Forgetron'"),
        ({"models": []}, "models is empty: choose among Perceptron, SPA"),
        ({"models": [MODELS["LBP"]]}, "no model <class .*: choose among Perceptron, SPA"),
        ({"rows": "200"}, "rows must be an integer of at least 1, not '200'"),
        ({"budgets": []}, "budgets is empty"),
        *(
            ({"budgets": [wrong, 3]}, "each of budgets must be an integer of at least 1, not ")
            for wrong in (0, 2.5, "a", None)
        ),
        *(
            ({"decays": [wrong]}, "each of decays must be a number above 0, not ")
            for wrong in (-1.0, "0.5", None, math.nan)
        ),
        *(({"seeds": wrong}, "seeds must be an integer of at least 1") for wrong in (0, 1.5, "2")),
        *(
            ({"shifts": wrong}, "each of shifts must be an integer of at least 0, not ")
            for wrong in ([-1], [1.5], [math.nan], [None, 1], "3", [True])
        ),
        ({"shifts": [10**30]}, "of one document or more: there are"),
        ({"shifts": []}, "shifts is empty"),
        ({"targets": ["a", "e"]}, "has no topic 'e'"),
        ({"jobs": 0}, "jobs must be"),
    ],
)
def test_what_cannot_be_run_is_refused(documents, settings, message):
    with pytest.raises(ParameterError, match=message):
        track(documents, **{**GRID, **settings})


def test_default_budgets_follow_the_streams_length():
    assert default_budgets("rcv1", 20_000)[:3] == (50, 100, 200)
    assert default_budgets("rcv1", 10_000)[:3] == (25, 50, 100)
    assert default_budgets("newswire", 8_000)[:3] == (50, 100, 150)
    assert default_budgets("tiny", 10) == (1,)
