import json
import time
from dataclasses import FrozenInstanceError
from functools import partial

import numpy as np
import pytest
from sklearn.svm import SVC

from drift.errors import ParameterError
from drift.experiments import Problem, RunFolder, run_all
from drift.experiments.reproduction import ModelSpec, run_of
from drift.kernels import Linear, Polynomial
from drift.models import MRBP, OneVsRest, Perceptron, VotedPerceptron
from drift.streams import Documents


@pytest.fixture
def test_part():
    rng = np.random.default_rng(6)
    topics = rng.integers(0, 4, 50)
    X = rng.random((50, 12)) * (rng.random((50, 12)) < 0.4)
    X[np.arange(50), topics] += 1.0
    return Documents.from_arrays(X, ["abcd"[topic] for topic in topics], name="others")


def one(*trial, **more):
    (record,) = run_all([run_of(*trial, **more)], jobs=1)
    return record


@pytest.mark.parametrize("permutation", [0, None])
@pytest.mark.parametrize("one_vs_rest", [True, False])
def test_models_learn_in_float64_whenever_they_are_made(close, one_vs_rest, permutation):
    # OneVsRest makes the model of a class when it sees one.
    problem = Problem(close, None if one_vs_rest else "a")
    record = one(
        ModelSpec("Perceptron", one_vs_rest=one_vs_rest, kernel=Linear()), problem, permutation
    )
    assert (record["updates"], record["columns"]) == (1, "float64")


def test_the_seed_reaches_every_model(documents):
    trial = partial(run_of, problem=Problem(documents, "a"), permutation=None, seed=7)
    assert trial(ModelSpec("RBP")).make().seed == 7
    assert trial(ModelSpec("RBP", one_vs_rest=True)).make().model.seed == 7


def test_a_trial_stays_what_its_key_says(documents):
    trial = run_of(ModelSpec("RBP"), Problem(documents, "a"), 0, seed=7)
    with pytest.raises(FrozenInstanceError):
        trial.seed = 8


def test_a_permutation_is_learnt_in_its_own_order(documents):
    record = one(ModelSpec("Perceptron"), Problem(documents, "a"), 2)
    order = np.random.default_rng(2).permutation(len(documents))
    y = documents.has("a")[order]
    model = Perceptron()
    wrong = model.predict_learn_many(documents.rows[order], y) != y
    assert record["mistakes"] == wrong.sum()
    assert (record["permutation"], record["updates"]) == (2, model.n_updates)
    assert record["window_errors"][0] == pytest.approx(wrong[:4].mean(), abs=1e-6)
    assert record["window_supports"][-1] == record["supports"] == model.n_supports


def test_every_epoch_continues_in_the_same_order_and_is_tested(documents, test_part):
    record = one(
        ModelSpec("Perceptron", {"bias": True}), Problem(documents, "b", test_part), 1, epochs=3
    )
    order = np.random.default_rng(1).permutation(len(documents))
    model, X, y = Perceptron(bias=True), documents.rows[order], documents.has("b")[order]
    for state in record["by_epoch"]:
        model.learn_many(X, y)
        wrong = model.predict_many(test_part.rows) != test_part.has("b")
        assert state["test_error"] == pytest.approx(100 * wrong.mean())
        counts = (state["mistakes"], state["updates"], state["supports"])
        assert counts == (model.n_mistakes, model.n_updates, model.n_supports)
    assert len(record["by_epoch"]) == record["epochs"] == 3
    assert record["test_error"] == record["by_epoch"][-1]["test_error"]
    assert record["supports"] == model.n_supports


@pytest.mark.parametrize("model", [Perceptron(), VotedPerceptron()])
def test_one_against_the_rest_counts_over_all_classes(documents, test_part, model):
    name = type(model).__name__
    record = one(ModelSpec(name, one_vs_rest=True), Problem(documents, None, test_part), 0)
    order = np.random.default_rng(0).permutation(len(documents))
    y = np.array([min(topics) for _, topics in documents])[order]
    twin = OneVsRest(model)
    twin.learn_many(documents.rows[order], y)
    (state,) = record["by_epoch"]
    models = twin.models.values()
    assert state["mistakes"] == sum(one.n_mistakes for one in models)
    assert state["updates"] == record["updates"] == sum(one.n_updates for one in models)
    wrong = [twin.predict_one(x) not in topics for x, topics in test_part]
    assert record["test_error"] == pytest.approx(100 * np.mean(wrong))


def test_classes_named_0_and_1_are_classes_all_the_same(documents):
    numbered = Documents(documents.rows, documents.topics, ("1", "0", "-1", "3"))
    lettered = one(ModelSpec("ProjectronPlusPlus", {"tolerance": 0.4}), Problem(documents), 0)
    record = one(ModelSpec("ProjectronPlusPlus", {"tolerance": 0.4}), Problem(numbered), 0)
    for name in ("mistakes", "supports", "updates"):
        assert record[name] == lettered[name]


def test_a_factor_scales_what_is_learnt_and_what_is_tested(documents, test_part):
    romma = ModelSpec("ROMMA", kernel=Polynomial(degree=2))
    scaled = [
        Documents(part.rows / 8, part.topics, part.topic_names) for part in (documents, test_part)
    ]
    first = one(romma, Problem(documents, "a", test_part, factor=1 / 8), 0)
    second = one(romma, Problem(scaled[0], "a", scaled[1]), 0)
    for name in ("mistakes", "supports", "test_error"):
        assert first[name] == second[name]
    assert first["key"] != second["key"]


@pytest.mark.parametrize(
    "kernel",
    [Linear(), Polynomial(3, 0.5, normalize="rows"), Polynomial(3, 0.5, normalize=True)],
)
def test_an_svm_is_scikit_learns(documents, test_part, kernel):
    started = time.process_time()
    record = one(
        ModelSpec("SVM", {"C": 2.0}, kernel=kernel), Problem(documents, None, test_part), 0
    )
    assert 0 <= record["seconds"] <= time.process_time() - started
    X, Z = documents.rows.toarray(), test_part.rows.toarray()
    if kernel.normalize == "rows":
        X, Z = (part / np.linalg.norm(part, axis=1)[:, None] for part in (X, Z))
    power, constant = (1, 0.0) if kernel == Linear() else (3, 0.5)
    grams = [(part @ X.T + constant) ** power for part in (X, Z)]
    if kernel.normalize is True:
        own = [np.sqrt(((part**2).sum(axis=1) + constant) ** power) for part in (X, Z)]
        grams = [
            1.5**3 * gram / np.outer(mine, own[0]) for gram, mine in zip(grams, own, strict=True)
        ]
    svc = SVC(C=2.0, kernel="precomputed").fit(grams[0], [min(topics) for _, topics in documents])
    wrong = svc.predict(grams[1]) != [min(topics) for _, topics in test_part]
    assert record["test_error"] == pytest.approx(100 * wrong.mean())
    assert record["supports"] == len(svc.support_)
    assert "mistakes" not in record


def test_everything_that_matters_is_in_the_key(documents, test_part):
    problem = Problem(documents, "a", test_part)
    trials = [
        run_of(ModelSpec("Perceptron"), problem, 0),
        run_of(ModelSpec("Perceptron", {"bias": True}), problem, 0),
        run_of(ModelSpec("Perceptron"), problem, 1),
        run_of(ModelSpec("Perceptron", kernel=Linear()), problem, 0),
        run_of(ModelSpec("Perceptron"), problem, 0, epochs=2),
        run_of(ModelSpec("Perceptron", one_vs_rest=True), problem, 0),
        run_of(ModelSpec("RBP"), problem, 0, seed=0),
        run_of(ModelSpec("RBP"), problem, 0, seed=1),
        run_of(ModelSpec("Perceptron"), Problem(documents, "b", test_part), 0),
        run_of(ModelSpec("Perceptron"), Problem(documents, "a", test_part.head(9)), 0),
        run_of(ModelSpec("Perceptron"), Problem(documents, "a"), 0),
        run_of(ModelSpec("Perceptron"), Problem(documents.head(99), "a", test_part), 0),
        run_of(ModelSpec("Perceptron"), Problem(documents, "a", test_part, factor=2.0), 0),
    ]
    assert len({trial.key for trial in trials}) == len(trials)


def test_trials_resume(tmp_path, documents, test_part):
    problem = Problem(documents, None, test_part)
    trials = [
        run_of(ModelSpec("MRBP", {"budget": b}), problem, i, i) for b in (9, 30) for i in (0, 1)
    ]
    first = run_all(trials, folder=RunFolder(tmp_path), jobs=1)
    assert json.loads(json.dumps(first)) == first
    assert run_all(trials, folder=RunFolder(tmp_path), jobs=1) == first
    model, order = MRBP(9, seed=1), np.random.default_rng(1).permutation(len(documents))
    predicted = model.predict_learn_many(documents.rows[order], problem.y[order])
    assert first[1]["mistakes"] == (predicted != problem.y[order]).sum()


def test_what_is_no_problem_is_refused(documents, test_part):
    several = Documents.from_pairs([({"x": 1}, ["a", "b"])])
    with pytest.raises(ParameterError, match="pairs has documents with no topic or several"):
        Problem(several)
    narrow = Documents(test_part.rows[:, :3], test_part.topics, test_part.topic_names)
    with pytest.raises(ParameterError, match="has 3 columns and stories 12"):
        Problem(documents, "a", narrow)
