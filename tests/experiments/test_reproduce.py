import re
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from drift.cli import app
from drift.errors import ParameterError
from drift.experiments import REPRODUCTIONS, reproduce
from drift.experiments.reproduction import ModelSpec
from drift.experiments.reproduction.curves import records_of
from drift.experiments.reproduction.spec import sweep
from drift.kernels import RBF, Polynomial
from drift.models import MODELS
from drift.streams import Documents

PAGES = Path(__file__).parents[2] / "docs" / "reproduction"
TWO_CLASSES = {"a9a", "gaussians", "ijcnn1", "news20", "vehicle"}
PROJECTRONS = ("Projectron", "ProjectronPlusPlus")


@pytest.mark.parametrize("name", REPRODUCTIONS)
def test_every_model_of_an_experiment_can_be_made(name):
    one = REPRODUCTIONS[name]
    for contender in one.contenders.values():
        assert contender.model in MODELS or contender.model == "SVM"
        budget = {} if contender.budget_of is None else {"budget": 9}
        if contender.model != "SVM":
            MODELS[contender.model](kernel=one.kernel, **contender.parameters, **budget)
        if contender.budget_of is not None:
            assert one.contenders[contender.budget_of].model in PROJECTRONS
    assert set(one.printed) <= set(one.contenders)
    assert not any("," in name for name in one.contenders)  # which --models takes them apart at


def test_the_projectron_experiments_are_the_papers():
    a9a, synthetic = (REPRODUCTIONS[f"projectron-{name}"] for name in ("a9a", "synthetic"))
    assert (a9a.kernel, synthetic.kernel) == (RBF(0.04), RBF(1.0))
    for one, tolerance in ((a9a, 0.1), (synthetic, 0.04)):
        for name in PROJECTRONS:
            assert one.contenders[name].parameters == {"tolerance": tolerance, "squared": True}
        assert {n for n, c in one.contenders.items() if c.budget_of == "Projectron"} == {
            "Forgetron",
            "RBP",
        }
    kernels = {"ijcnn1": RBF(8.0), "a9a": RBF(0.04), "vehicle": RBF(0.125), "timit": RBF(80.0)}
    for name, kernel in kernels.items():
        assert REPRODUCTIONS[f"projectron-{name}-range"].kernel == kernel


def test_rommas_table_is_the_papers():
    one = REPRODUCTIONS["romma-mnist"]
    assert (one.epochs, one.permutations, one.kernel) == (4, 10, Polynomial(degree=4))
    assert set(one.printed) == set(one.contenders)
    for name, contender in one.contenders.items():
        assert contender.one_vs_rest
        assert contender.parameters["bias"] is True
        assert contender.factor == (1.0 if "Perceptron" in name else 1 / 1100)
        counted = "updates" if name == "VotedPerceptron" else "mistakes"
        assert set(one.printed[name]) == {"test_error", counted}
    assert one.contenders["aggressive ROMMA (NC)"].parameters["noise"] == 30.0
    page = (PAGES / "romma.md").read_text(encoding="utf-8")
    errors, mistakes = zip(
        *re.findall(r"± \S+ \| ([\d.]+) \| \d+ ± \d+ \| (\d+) \|", page), strict=True
    )
    printed = [list(numbers.values()) for numbers in one.printed.values()]
    assert sum((first for first, _ in printed), ()) == tuple(map(float, errors))
    assert sum((second for _, second in printed), ()) == tuple(map(int, mistakes))


@pytest.mark.parametrize(
    ("stream", "permutations", "budgets"),
    [
        ("usps", 11, [300, 500, *range(750, 2000, 250), 2000, 2500, 3000]),
        ("letter", 11, [*range(1000, 3000, 500), *range(3000, 9000, 1000)]),
        ("mnist", 5, [*range(2000, 22000, 2000)]),
    ],
)
def test_crammers_figure_is_the_papers(stream, permutations, budgets):
    one = REPRODUCTIONS[f"crammer-{stream}"]
    assert (one.permutations, one.tested) == (permutations, True)
    fixed = [c for c in one.contenders.values() if c.series == "fixed"]
    assert [c.parameters["budget"] for c in fixed] == budgets
    for contender in one.contenders.values():
        assert contender.model == "SVM" or contender.parameters["margin"] == 0.01
    assert one.contenders["variable at half"].parameters["distill_margin"] == 0.005


def test_fewer_examples_have_budgets_in_proportion():
    few = REPRODUCTIONS["crammer-mnist"].contenders_of(600)
    assert few["fixed 2000"].parameters == {"margin": 0.01, "cache": "fixed", "budget": 20}
    assert few["MIRA"] == REPRODUCTIONS["crammer-mnist"].contenders["MIRA"]
    assert (
        REPRODUCTIONS["crammer-mnist"].contenders_of(90_000)["fixed 2000"].parameters["budget"]
        == 2000
    )


def test_the_budgets_follow_the_projectron():
    few = {"rows": 400, "permutations": 2, "jobs": 1}
    results = reproduce("projectron-synthetic", models=["RBP"], **few)
    assert list(records_of(results)) == ["Projectron", "RBP"]
    supports = [record["supports"] for record in records_of(results)["Projectron"]]
    assert records_of(results)["RBP"][0]["parameters"] == {"budget": round(np.mean(supports))}


@pytest.fixture
def small(monkeypatch):
    """Every set is a small one in 5 columns."""

    def load(stream, _, n, *_more):
        rng = np.random.default_rng(3)
        X = rng.random((200, 5))
        names = ("-1", "+1", "3") if stream in TWO_CLASSES else "abcdef"
        labels = [names[k] for k in (X[:, 0] * len(names)).astype(int)]
        documents = Documents.from_arrays(X, labels, name=stream)
        return documents.head(n), Documents.from_arrays(X[:80], labels[:80], name="test")

    module = sys.modules["drift.experiments.reproduction.experiment"]
    monkeypatch.setattr(module, "load", load)
    monkeypatch.setattr(module, "load_split", load)


#: Experiments, of which the fast suite has a few; `.ci/run` repeats each by its command.
EACH = [
    pytest.param(name, marks=pytest.mark.slow if i % 7 else pytest.mark.compiled)
    for i, name in enumerate(REPRODUCTIONS)
]


@pytest.mark.usefixtures("small", "unrendered")
@pytest.mark.parametrize("name", EACH)
def test_the_quick_form_of_each_runs(name, tmp_path):
    results = reproduce(name, quick=True, jobs=1, output=tmp_path)
    one = REPRODUCTIONS[name]
    assert list(records_of(results)) == list(one.contenders)
    assert {len(records) for records in records_of(results).values()} == {1}
    assert results.settings["rows"] == 200
    assert (results.settings["test_rows"] is not None) == one.tested
    assert len(list(tmp_path.glob("*.svg"))) == 1


HERE = [
    name for name, one in REPRODUCTIONS.items() if not one.missing and one.stream != "gaussians"
]


@pytest.mark.slow  # and `.ci/run` repeats each by its command
@pytest.mark.parametrize("name", HERE)
def test_the_quick_form_of_each_runs_on_real_data(name, drift_data, tmp_path):
    folder = drift_data(REPRODUCTIONS[name].stream)
    results = reproduce(name, data=folder, rows=60, quick=True, jobs=1, output=tmp_path)
    assert results.settings["rows"] == 60


@pytest.mark.usefixtures("small")
def test_models_are_chosen_by_their_own_name_or_their_curves():
    few = {"rows": 60, "permutations": 1, "jobs": 1}
    results = reproduce("crammer-usps", models=["fixed", "MIRA"], **few)
    assert len(records_of(results)) == 11
    results = reproduce("projectron-usps-range", models=["MRBP 6000"], **few)
    assert list(records_of(results)) == ["ProjectronPlusPlus 6000", "MRBP 6000"]


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("projectron", {}, "no experiment 'projectron': did you mean 'projectron-a9a'"),
        ("projectron-a9a", {"models": ["perceptron"]}, "no model 'perceptron': did you mean"),
        ("projectron-a9a", {"models": []}, "models is empty: choose among Perceptron"),
        ("projectron-a9a", {"data": "nowhere"}, "the folder nowhere does not exist"),
        ("projectron-timit-range", {"data": "nowhere"}, "Buy the corpus"),
    ],
)
def test_what_cannot_be_reproduced_is_refused(name, settings, message):
    with pytest.raises(ParameterError, match=message):
        reproduce(name, **settings)


def test_a_sweep_is_one_curve():
    points = sweep("few", "LBP", "budget", [2, 3])
    assert points["few 3"] == ModelSpec("LBP", {"budget": 3}, series="few")


@pytest.mark.usefixtures("unrendered")
def test_the_command(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    arguments = ["reproduce", "projectron-synthetic", "--rows", "200", "--permutations", "2"]
    arguments += ["--models", "Perceptron, PassiveAggressive", "--jobs", "1"]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0, shown.stderr
    assert "gaussians: 2 permutations" in shown.stdout
    assert "PassiveAggressive" in shown.stdout  # not folded where no terminal is narrow
    assert "in results/projectron-synthetic: over_time.png, over_time.svg, and 5" in shown.stdout
    shown = CliRunner().invoke(app, [*arguments[:4], "--quick", *arguments[6:]])
    assert "gaussians: 1 permutations" in shown.stdout
    assert "in results/projectron-synthetic-quick: " in shown.stdout
    shown = CliRunner().invoke(app, ["reproduce", "projectron-nothing"])
    assert shown.exit_code == 2
    assert shown.stderr.startswith("error: no experiment")


def test_the_command_without_a_name_lists_the_experiments():
    shown = CliRunner().invoke(app, ["reproduce"])
    assert shown.exit_code == 0
    assert set(REPRODUCTIONS) <= set(re.findall(r"[\w-]+", shown.stdout))


def test_the_page_names_each_experiment():
    text = (PAGES / "README.md").read_text(encoding="utf-8")
    papers = "|".join({name.partition("-")[0] for name in REPRODUCTIONS})
    assert set(re.findall(rf"`((?:{papers})-[\w-]+)`", text)) == set(REPRODUCTIONS)
