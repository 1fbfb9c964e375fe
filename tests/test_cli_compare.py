"""`drift compare`: from a file of one's own to tables, in one command."""

import inspect
import json
import re

import pandas as pd
import pytest
from click.testing import CliRunner

from drift._options import declared
from drift.cli import app
from drift.cli import compare as compare_command
from drift.cli._named import drift_models
from drift.experiments import Contender
from drift.experiments import compare as compare_in_python
from drift.experiments.arena.models import MODELS
from drift.experiments.comparison.evaluation import Settings
from drift.streams import Stream, read_stream

N = 240


@pytest.fixture
def drift(monkeypatch, tmp_path):
    """Run the command line in a folder with a stream whose target turns over in the middle."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    rows = range(N)
    signs = [(7 * i) % 11 < 5 for i in rows]
    frame = pd.DataFrame(
        {
            "day": [(N - i) // 2 + 3 * (i % 2) for i in rows],
            "shop": ["north" if i % 3 else "south" for i in rows],
            "price": [1.0 if sign else -1.0 for sign in signs],
            "late": [3] * N,
            "sold": ["yes" if sign == (i < N // 2) else "no" for i, sign in enumerate(signs)],
            "three": ["abc"[i % 3] for i in rows],
        }
    )
    frame.to_csv("sales.csv", index=False)
    (tmp_path / "own.py").write_text(
        "from river import dummy\ndef make(strategy=None):\n    return dummy.NoChangeClassifier()\n"
    )
    return lambda *words: CliRunner().invoke(app, ["compare", *words])


def runs(folder):
    lines = (folder / "runs.jsonl").read_text().splitlines()
    return {record["model"]: record for record in map(json.loads, lines)}


@pytest.mark.usefixtures("unrendered")
def test_a_file_becomes_tables(drift, tmp_path):
    shown = drift("sales.csv", "--target", "sold", "--models", "nb,lbp", "--jobs", "1")
    assert shown.exit_code == 0, shown.output
    table, _, _ = shown.stdout.partition("results/compare-sales-csv:")
    assert max(map(len, table.splitlines())) <= 80
    assert shown.stdout.endswith("open results/compare-sales-csv/report.html in a browser\n")
    assert "recovery " not in shown.stdout  # no drift is known
    folder = tmp_path / "results" / "compare-sales-csv"
    assert list(runs(folder)) == ["nb", "lbp", "no change", "majority"]
    assert {one["status"] for one in runs(folder).values()} == {"ok"}
    assert {one["rows"] for one in runs(folder).values()} == {N - 1}  # but the first
    names = [line.split()[0] for line in shown.stdout.splitlines() if line.strip()]
    assert {"nb", "lbp", "majority"} <= set(names)


@pytest.mark.usefixtures("unrendered")
@pytest.mark.filterwarnings("ignore:.*repeat an earlier row:RuntimeWarning")
def test_names_with_commas_are_dropped_in_quotes(drift, tmp_path):
    rows = "".join(f"{i % 7},1,{i % 5},2,{'ab'[i % 2]}\n" for i in range(50))
    (tmp_path / "a.csv").write_text(f'x,"p, q",z,"u, v",y\n{rows}')
    words = ["a.csv", "--target", "y", "--models", "nb", "--jobs", "1"]
    shown = drift(*words, "--drop", '"p, q", z ,"u, v"')
    assert shown.exit_code == 0, shown.output
    assert manifest_of(tmp_path)["data"]["a"]["features"] == ["x"]
    shown = drift(*words, "--drop", "p, q")
    assert """a has no column 'p': choose among x, "p, q", z, "u, v", y""" in shown.stderr
    shown = drift(*words, "--drop", 'x, size 5"')
    assert "a has no column 'size 5\"': choose among" in shown.stderr


@pytest.mark.usefixtures("unrendered")
@pytest.mark.filterwarnings("ignore:.*repeat an earlier row:RuntimeWarning")
@pytest.mark.parametrize("dropped", ['""', 'z,""', '"",,z,'])
def test_a_nameless_column_is_dropped_in_quotes(drift, tmp_path, dropped):
    rows = "".join(f"{i % 5 / 4},{i % 7},{i % 3},{'ab'[i % 2]}\n" for i in range(50))
    (tmp_path / "a.csv").write_text(f",x,z,y\n{rows}")
    words = ["a.csv", "--target", "y", "--models", "nb", "--jobs", "1"]
    shown = drift(*words, "--drop", dropped)
    assert shown.exit_code == 0, shown.output
    features = ["x"] if "z" in dropped else ["x", "z"]
    assert manifest_of(tmp_path)["data"]["a"]["features"] == features


@pytest.mark.usefixtures("unrendered")
def test_what_the_protocol_takes_is_given_by_options(drift, tmp_path):
    asked = ["--time", "day", "--rows", "100", "--delay", "late", "--windows", "4"]
    asked += ["--models", "LBP(budget=9, kernel=Linear()),own:make", "--shuffled", "10"]
    asked += ["--drifts", "50", "--jobs", "1", "--output", "out", "--folds", "2"]
    shown = drift("sales.csv", "--target", "three", *asked)
    assert shown.exit_code == 0, shown.output
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["parameters"]["delay"] == "late"
    windows = pd.read_csv(tmp_path / "out" / "windows.csv")
    assert set(windows["model"]) >= {"LBP(budget=9, kernel=Linear())", "own:make"}
    assert set(windows["fold"]) == {0, 1}
    assert windows["stop"].max() == 100
    assert windows["stream"].nunique() == 2
    assert set(pd.read_csv(tmp_path / "out" / "drifts.csv")["row"]) == {50}
    assert "recovery " in shown.stdout


@pytest.mark.usefixtures("undrawn")
@pytest.mark.filterwarnings("ignore:sales. sorted by the moment")
def test_each_delay_has_a_folder_of_its_own_and_says_what_it_is(drift, tmp_path):
    words = ["sales.csv", "--target", "sold", "--models", "nb", "--jobs", "1", "--windows", "3"]
    for more, folder, title in (
        ([], "compare-sales-csv", "sales: test, then train"),
        (
            ["--delay", "20"],
            "compare-sales-csv-delay-20",
            "sales: test, then train; labels 20 rows late",
        ),
        (
            ["--moment", "day", "--delay", "1 min"],
            "compare-sales-csv-by-day-delay-1-min",
            "sales: test, then train; labels 1 min late",
        ),
        (
            ["--delay", "late"],
            "compare-sales-csv-delay-late",
            "test, then train; labels late: late",
        ),
    ):
        shown = drift(*words, *more)
        assert shown.exit_code == 0, shown.output
        assert title in shown.stdout
        assert {one["rows"] for one in runs(tmp_path / "results" / folder).values()} == {N - 1}
    shown = drift(*words, "--delay", "20")
    assert "sales: 19 rows came before the first label" in shown.stdout
    assert re.search(r"error % +error %.*\nmodel +all rows +after label +kappa +AUC", shown.stdout)


@pytest.mark.usefixtures("undrawn")
def test_thresholds_are_compared_by_name(drift, tmp_path):
    words = ["sales.csv", "--target", "sold", "--jobs", "1", "--windows", "3"]
    asked = "Threshold(model=lbp, positive='YES', rate=0.2),Threshold(positive=yes, cost=(1, 5))"
    shown = drift(*words, "--delay", "5", "--models", asked)
    assert shown.exit_code == 0, shown.output
    described = manifest_of(tmp_path)["parameters"]["models"]
    first, second = described.values()
    assert first.startswith("Pipeline (")
    assert "Threshold ( model=OneVsRest ( model=LBP ( budget=300 " in first
    assert "positive='yes' cost=None recall=None precision=None rate=0.2 )" in first
    assert "positive='yes' cost=(1, 5)" in second
    shown = drift(*words, "--models", "Threshold(rate=0.2)")
    assert shown.exit_code == 2
    assert "sales has no rare class: name one" in shown.stderr
    shown = drift(*words, "--models", "Threshold(positive=maybe)")
    assert "sales has no label 'maybe'" in shown.stderr
    shown = drift(*words, "--models", "Threshold(positive='yes', rate=2)")
    assert "rate must be a number above 0 and up to 1" in shown.stderr


def manifest_of(folder):
    [path] = folder.glob("results/*/manifest.json")
    return json.loads(path.read_text())


@pytest.mark.usefixtures("unrendered")
def test_a_call_that_no_model_has_a_result_of_ends_with_1(drift, tmp_path):
    (tmp_path / "bad.py").write_text(
        "from river import dummy\nclass Bad(dummy.NoChangeClassifier):\n"
        "    def learn_one(self, x, y):\n        raise ValueError('it is broken')\n"
    )
    words = ["sales.csv", "--target", "sold", "--jobs", "1", "--rows", "50"]
    shown = drift(*words, "--models", "bad:Bad")
    assert shown.exit_code == 1, shown.output
    assert "error: no model has a result" in shown.stderr
    assert "it is broken" in shown.stdout
    assert drift(*words, "--models", "bad:Bad,nb").exit_code == 0  # the other one has
    shown = drift(*words, "--models", "nb,lbp", "--delay", "50")
    assert shown.exit_code == 1
    assert "nb, lbp, no change, majority on sales: no label in time" in shown.stdout
    shown = drift(*words, "--models", "nb", "--positive", "YES", "--output", "three")
    assert shown.exit_code == 0
    assert "recall, precision and F1 are of 'yes'" in shown.stdout


@pytest.mark.usefixtures("undrawn")
def test_a_file_of_settings_says_the_same_and_the_command_line_comes_before_it(drift, tmp_path):
    (tmp_path / "c.toml").write_text("""
        [compare]
        file = "sales.csv"
        target = "sold"
        windows = 3
        rows = 50
        delay = 5
        [models]
        trees = {class = "river.tree:HoeffdingTreeClassifier", max_depth = 2}
        kernel = {class = "LBP", budget = 5}
        mine = "own:make"
    """)
    shown = drift("--config", "c.toml", "--rows", "40", "--jobs", "1", "--output", "out")
    assert shown.exit_code == 0, shown.output
    actual = runs(tmp_path / "out")
    assert list(actual) == ["trees", "kernel", "mine", "no change", "majority"]
    assert {(one["rows"], len(one["windows"])) for one in actual.values()} == {(39, 3)}
    assert {(one["delay"], one["blind"]) for one in actual.values()} == {("5", 4)}
    # Other parameters leave the budget as it is for names alone.
    words = "LBP(kernel=Linear()),ht(max_depth=2),river.tree:HoeffdingTreeClassifier(max_depth=2)"
    words = ["sales.csv", "--target", "sold", "--models", words, "--rows", "9", "--jobs", "1"]
    assert drift(*words, "--output", "three").exit_code == 0
    stream = read_stream("sales.csv", "sold")
    assert compare_command._model("LBP(kernel=Linear())", stream)["OneVsRest"].model.budget == 300
    wrapped = compare_command._model("averaged(model=LBP(budget=9))", stream)
    assert wrapped["OneVsRest"].model.model.budget == 9
    for word in ("OneVsRest(model=LBP(budget=9))", "Averaged(model=MRBP(budget=9))"):
        scaler, model = compare_command._model(word, stream).steps.values()
        assert type(scaler).__name__ == "StandardScaler"
        assert type(model).__name__ == word.partition("(")[0]  # it knows several classes as it is
    tree = compare_command._model({"class": "HT", "max_depth": 2}, stream)
    assert tree.max_depth == 2
    shown = drift("--config", "c.toml", "--models", "mine,nb", "--jobs", "1", "--output", "two")
    assert list(runs(tmp_path / "two")) == ["mine", "nb", "no change", "majority"]


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        ("abc", "SoftmaxRegression"),
        ([0, 1, 2], "SoftmaxRegression"),
        ([False, True], "LogisticRegression"),
        ([0, 1], "LogisticRegression"),
        ("ab", "OneVsRestClassifier"),
    ],
)
def test_logistic_regression_is_the_arenas(labels, name):
    stream = Stream([({"a": float(i)}, labels[i % len(labels)]) for i in range(9)])
    scaler, model = compare_command._model("lr", stream).steps.values()
    assert type(scaler).__name__ == "StandardScaler"
    assert type(model).__name__ == name
    arenas = MODELS["logistic regression"].make(stream)
    assert repr(getattr(model, "classifier", model)) == repr(arenas)


@pytest.mark.parametrize(
    "name",
    [*drift_models(), *(k for k, v in compare_command._RIVALS.items() if MODELS[v].available)],
)
def test_every_name_has_a_model(drift, name):  # noqa: ARG001 - makes the file
    stream = read_stream("sales.csv", "three")
    for word in (name, name.upper()):
        model = Contender(compare_command._model(word, stream)).on(stream).make()
        for x, y in stream.examples[:9]:
            model.predict_one(x)
            model.learn_one(x, y)
        assert model.predict_one(x) in {"a", "b", "c"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sales.csv", "--target", "slod"], "sales has no column 'slod': did you mean 'sold'?"),
        (["sales.csv"], "sales: name the target, one of day, shop, price"),
        (
            ["sales.csv", "--target", "sold", "--models", "trackr"],
            "no model 'trackr': did you mean",
        ),
        (["sales.csv", "--target", "sold", "--models", "own:mak"], "'own:mak' cannot be imported"),
        (["sales.csv", "--target", "sold", "--models", "LBP(budgt=3)"], "did you mean 'budget'?"),
        (
            ["sales.csv", "--target", "sold", "--delay", "-3"],
            "delay must be at least 0 and finite, not -3",
        ),
        (
            ["sales.csv", "--target", "sold", "--delay", "gem(p=1)"],
            "SciPy has no distribution 'gem'",
        ),
        (
            ["sales.csv", "--target", "sold", "--delay", "geom(q=1)"],
            "--delay geom(q=1): geom has no parameter 'q': choose among p, loc",
        ),
        (["sales.csv", "--target", "sold", "--delay", "2 days"], "name the column of the times"),
        (["sales.csv", "--target", "sold", "--moment", "dya"], "'dya'"),
        (["sales.csv", "--target", "sold", "--positive", "yess"], "did you mean 'yes'?"),
        (["sales.csv", "--target", "sold", "--time", "dya"], "did you mean 'day'?"),
        (
            ["sales.csv", "--target", "sold", "--windows", "0"],
            "--windows must be at least 1, not 0",
        ),
        (["sales.csv", "--forks", "spilt"], "--forks cannot be 'spilt': did you mean 'split'?"),
        (["none.csv", "--target", "sold"], "none.csv"),
        (["empty.csv", "--target", "sold"], "empty.csv"),
        (["a.svm", "--drop", "b", "--time", "c"], "a.svm has no columns"),
        (["sales.csv", "--target", "late"], "sales: all rows have the label 3"),
        (["head.csv", "--target", "b"], "head"),
        (["own.py", "--target", "sold"], "own.py: the suffix .py does not tell the format"),
        ([], "give the file, or file in [compare] of the --config file"),
        (["sales.csv", "--target", "sold", "--models", "arf(trees=3)"], "arf: ARFClassifier"),
        (["--config", "a.toml", "--models", "a"], "[models] a: a model needs a class: class ="),
        (["--config", "a.toml", "--models", "b"], "[models] b: budget must be an integer"),
        (["--config", "a.toml", "--models", "c"], "[models] c: no model 'trackr': did you mean"),
        (["--config", "a.toml", "--models", "d"], "[models] d: 3 names no model: write"),
        (["--config", "true.toml"], "--delay (delay in [compare]) must be a string, not True"),
        (["--config", "bad.toml"], "[compare] has no 'targt': did you mean 'target'?"),
    ],
)
def test_what_cannot_be_compared_is_refused_by_name(drift, tmp_path, words, message):
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "a.svm").write_text("1 1:2\n2 1:3\n")
    (tmp_path / "head.csv").write_text("a,b\n")
    (tmp_path / "bad.toml").write_text("[compare]\ntargt = 'sold'\n")
    (tmp_path / "a.toml").write_text(
        "[compare]\nfile = 'sales.csv'\ntarget = 'sold'\n[models]\n"
        "a = {budget = 3}\nb = {class = 'LBP', budget = 'x'}\nc = 'trackr'\nd = 3\n"
    )
    (tmp_path / "true.toml").write_text("[compare]\ndelay = true\n")
    shown = drift(*words, "--jobs", "1")
    assert shown.exit_code == 2, shown.output
    assert message in shown.stderr
    assert "Traceback" not in shown.stderr


def test_python_takes_all_options_of_the_command_but_the_file():
    options = {one.field for one in declared(compare_command._Options)}
    known = inspect.signature(compare_in_python).parameters
    assert options - known.keys() == {"file"}
    for name, default in Settings._field_defaults.items():
        assert known[name].default == default, name
    assert MODELS["LBP"].make.keywords["budget"] == compare_command._BUDGET
