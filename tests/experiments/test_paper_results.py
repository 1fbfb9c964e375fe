import csv
import sys
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from drift.errors import MissingExtraError, ParameterError
from drift.experiments import Results
from drift.experiments.reproduction import ModelSpec, permuted
from drift.experiments.reproduction.curves import records_of
from drift.experiments.reproduction.spec import sweep
from drift.kernels import Linear

CONTENDERS = {
    "free": ModelSpec("MRBP", {"budget": 200}),
    **sweep("fixed", "MRBP", "budget", [20, 5]),
    "SVM": ModelSpec("SVM", {"C": 1.0}, kernel=Linear()),
}


@pytest.fixture(scope="module")
def test_part(documents):
    return documents.head(60)


@pytest.fixture(scope="module")
def swept(documents, test_part):
    return permuted(documents, None, CONTENDERS, test=test_part, permutations=3, jobs=1)


@pytest.fixture(scope="module")
def trained(documents, test_part):
    contenders = {
        "Perceptron": ModelSpec("Perceptron", {"bias": True}, one_vs_rest=True),
        "halved": ModelSpec("Perceptron", one_vs_rest=True, factor=0.5, kernel=Linear()),
    }
    printed = {"Perceptron": {"test_error": (9.0, 8.0), "mistakes": (90, 100)}}
    return permuted(
        *(documents, None, contenders),
        test=test_part,
        epochs=2,
        permutations=2,
        printed=printed,
        jobs=1,
    )


def test_an_svm_is_trained_once_and_has_no_online_error(swept):
    *_, row = swept.rows("table")
    assert (row["contender"], row["runs"]) == ("SVM", 1)
    assert (row["error"], row["error_std"], row["updates"]) == (None, None, None)
    assert row["test_error"] == pytest.approx(records_of(swept)["SVM"][0]["test_error"], abs=1e-3)


def test_a_table_has_the_rate_of_all_runs(swept):
    row, records = swept.rows("table")[0], records_of(swept)["free"]
    assert row["rows_per_second"] == round(600 / sum(record["seconds"] for record in records))


@pytest.mark.usefixtures("unrendered")
def test_a_run_shorter_than_a_tick_of_the_clock_has_no_rate(documents, tmp_path, monkeypatch):
    monkeypatch.setattr("time.process_time", lambda: 1.0)
    results = permuted(
        documents, "a", {"it": ModelSpec("LBP")}, permutations=1, jobs=1, output=tmp_path
    )
    assert results.rows("table")[0]["rows_per_second"] is None
    console = Console()
    with console.capture():
        console.print(results)


def test_each_epoch_has_a_row_with_the_papers_numbers(trained):
    rows = trained.rows("epochs")
    assert [(row["contender"], row["epoch"]) for row in rows] == [
        *(("Perceptron", 1), ("Perceptron", 2), ("halved", 1), ("halved", 2))
    ]
    assert [row["paper_test_error"] for row in rows] == [9.0, 8.0, None, None]
    assert [row["paper_mistakes"] for row in rows] == [90, 100, None, None]
    states = [record["by_epoch"][1] for record in records_of(trained)["Perceptron"]]
    mistakes = [state["mistakes"] for state in states]
    assert rows[1]["mistakes"] == pytest.approx(np.mean(mistakes))
    assert rows[1]["mistakes_std"] == pytest.approx(np.std(mistakes, ddof=1), abs=0.05)
    assert trained.rows("table")[0]["paper_test_error"] == 8.0


def test_of_one_permutation_no_deviation_is_shown(documents):
    results = permuted(documents, "a", {"P": ModelSpec("Perceptron")}, permutations=1, jobs=1)
    console = Console(width=120)
    with console.capture() as shown:
        console.print(results)
    assert "±" not in shown.get()


def test_both_tables_are_printed(trained):
    console = Console(width=160)
    with console.capture() as shown:
        console.print(trained)
    for part in ("2 permutations", "After each epoch", "in the paper", "100"):
        assert part in shown.get()


def test_curves_against_supports_have_three_panels_where_there_is_a_test_part(swept):
    figure = swept.plot("against_supports")
    labels = [panel.get_ylabel() for panel in figure.axes]
    assert labels == ["test error (%)", "online error (%)", "updates (insertions)"]
    rows = {row["contender"]: row for row in swept.rows("table")}
    names = [bars.get_label() for bars in figure.axes[0].containers]
    assert names == ["free", "fixed", "SVM"]
    line = figure.axes[0].containers[1].lines[0]
    expected = [[5, rows["fixed 5"]["test_error"]], [20, rows["fixed 20"]["test_error"]]]
    assert line.get_xydata().tolist() == expected
    assert [bars.get_label() for bars in figure.axes[1].containers] == ["free", "fixed"]


def test_over_time_draws_the_error_so_far_and_the_supports(documents):
    results = permuted(documents, "a", {"P": ModelSpec("Perceptron")}, permutations=2, jobs=1)
    left, right = results.plot("over_time").axes
    error, supports = (panel.get_lines()[0].get_xydata() for panel in (left, right))
    (row,) = results.rows("table")
    assert error[-1].tolist() == pytest.approx([200, row["error"]], abs=1e-3)
    assert supports[-1].tolist() == pytest.approx([200, row["supports"]])
    assert len(error) == len(supports) == 50


def test_by_epoch_draws_the_papers_beside_ours(trained):
    lines = trained.plot("test_error_by_epoch").axes[0].get_lines()
    assert [line.get_linestyle() for line in lines] == ["-", ":", "-"]
    assert lines[1].get_ydata().tolist() == [9.0, 8.0]
    assert lines[0].get_color() == lines[1].get_color()


def test_the_names_of_five_learners_that_end_alike_hide_no_other(trained):
    contenders = [f"aggressive ROMMA ({number})" for number in range(5)]
    (records, *_) = records_of(trained).values()
    results = replace(
        trained,
        records=[{**one, "contender": name} for name in contenders for one in records],
        settings={**trained.settings, "contenders": contenders, "printed": {}},
    )
    figure = results.plot("test_error_by_epoch")
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert len(boxes) == 5
    for i, box in enumerate(boxes):
        assert not box.count_overlaps(boxes[:i])
        assert figure.bbox.x0 <= box.x0
        assert box.x1 <= figure.bbox.x1


def test_what_is_saved_is_against_supports_where_there_are_several_budgets(swept):
    assert list(swept.figures) == ["against_supports"]
    free = replace(swept, settings={**swept.settings, "series": {}})
    assert list(free.figures) == ["over_time"]


def test_a_figure_that_there_is_not(swept):
    with pytest.raises(ParameterError, match="no figure 'error': choose among against_supports"):
        swept.plot("error")


def test_epochs_have_a_file_of_their_own(tmp_path, trained, monkeypatch):
    trained.save(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        *("runs.jsonl", "records.csv", "manifest.json"),
        *("table.csv", "table.parquet", "epochs.csv", "epochs.parquet"),
        *("test_error_by_epoch.png", "test_error_by_epoch.svg"),
    }
    with (tmp_path / "epochs.csv").open() as file:
        assert [row["epoch"] for row in csv.DictReader(file)] == ["1", "2", "1", "2"]

    def without(*_):
        raise MissingExtraError("matplotlib", "plots")

    monkeypatch.setattr(Results, "plot", without)
    with pytest.warns(RuntimeWarning, match="no figures: .*matplotlib"):
        trained.save(tmp_path / "without")
    assert (tmp_path / "without" / "table.csv").exists()


def test_an_svm_needs_scikit_learn(documents, test_part, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.svm", None)
    with pytest.raises(MissingExtraError, match="scikit-learn"):
        permuted(documents, None, {"SVM": CONTENDERS["SVM"]}, test=test_part, jobs=1)
