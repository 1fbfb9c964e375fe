import inspect
import itertools
import json
import os
import re
import shutil
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from river import evaluate, metrics
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

import drift
from drift.errors import ParameterError
from drift.experiments import Problem, RunFolder, learn, run_all, runner
from drift.experiments.code import code_fingerprint
from drift.experiments.comparison.experiment import measuring_code
from drift.experiments.jobs import Run
from drift.experiments.reproduction import ModelSpec, Part, run_of, runs
from drift.experiments.reproduction.runs import reproducing_code
from drift.experiments.runner import one_thread
from drift.kernels import Linear
from drift.models import MODELS, RBP, Perceptron, column_type, compiled
from drift.streams import Documents, ShiftingStream

PARAMETERS = {"MIRA": {"budget": 12, "cache": "fixed"}, "Perceptron": {}, "SPA": {"decay": 0.5}}


def tracked(setting, stream, index, chunk=None, seed=None):
    return run_of(setting, Part(stream, index, chunk), seed=seed)


@pytest.fixture
def stream(documents):
    return ShiftingStream(documents, ["a", "b", "c", "d"])


@pytest.fixture
def cells(stream):
    return [
        tracked(ModelSpec("LBP", {"budget": budget}), stream, 0, chunk=chunk)
        for chunk in (None, 0, 1)
        for budget in (3, 8)
    ]


def no_seconds(records):
    return [{**record, "seconds": None} for record in records]


@pytest.fixture
def learnt(monkeypatch):
    """Lengths of what is learnt from now on in this process."""
    lengths = []

    def spy(model, X, y, *windows):
        lengths.append(len(y))
        return learn(model, X, y, *windows)

    monkeypatch.setattr(runs, "learn", spy)
    return lengths


def test_learn_counts_wrong_predictions_and_where_they_were(monkeypatch):
    monkeypatch.setattr("time.process_time", itertools.count(0.5).__next__)  # a second a window
    # Every example has the same features: a prediction is wrong where the label changes, and the
    # first one where it is True.
    labels = np.repeat([True, False, True, True], 8)
    result = learn(Perceptron(Linear()), np.ones((32, 1)), labels, windows=16)
    # sum of supports: +1 | at 8: 0, a zero score is a mistake: -1 | at 16: 0, at 17: +1
    assert result == {
        "n_samples": 32,
        "mistakes": 4,
        "supports": 5,
        "updates": 5,
        "seconds": 16.0,
        "window_errors": [0.5, 0, 0, 0, 0.5, 0, 0, 0, 1.0, 0, 0, 0, 0, 0, 0, 0],
        "window_supports": [1, 1, 1, 1, 3, 3, 3, 3, 5, 5, 5, 5, 5, 5, 5, 5],
    }


@pytest.mark.parametrize("n", [1, 5, 17, 50])
def test_windows_cover_the_stream(n):
    result = learn(Perceptron(), np.ones((n, 1)), np.arange(n) % 2 == 0)
    windows = result["window_errors"]
    assert len(windows) == min(n, 40)
    edges = np.linspace(0, n, len(windows) + 1).round()
    assert np.dot(windows, np.diff(edges)) == pytest.approx(result["mistakes"], abs=1e-4)


@pytest.mark.parametrize("model", sorted(MODELS))
def test_river_counts_the_same_mistakes(model, stream):
    known = inspect.signature(MODELS[model]).parameters
    parameters = PARAMETERS.get(model, {"budget": 12} if "budget" in known else {})
    cell = tracked(ModelSpec(model, parameters), stream, 0, seed=3 if "seed" in known else None)
    (record,) = run_all([cell], jobs=1)
    metric = metrics.Accuracy()
    river_model = cell.make()
    evaluate.progressive_val_score(stream, river_model, metric)
    # River does not count the first prediction of a model that knows no class yet: None.
    right = metric.cm.total_weight * metric.get()
    assert 200 - record["mistakes"] == pytest.approx(right)
    assert record["supports"] == river_model.n_supports
    assert record["updates"] == river_model.n_updates


def test_a_chunk_is_learnt_afresh(documents, stream):
    (record,) = run_all([tracked(ModelSpec("Perceptron"), stream, 0, chunk=2)], jobs=1)
    y = documents.has("c")[100:150]
    model = Perceptron()
    wrong = model.predict_learn_many(documents.rows[100:150], y) != y
    assert (record["targets"], record["start"], record["stop"]) == (["c"], 100, 150)
    assert (record["mistakes"], record["supports"]) == (wrong.sum(), model.n_supports)


def test_records_come_in_the_order_of_the_runs_on_any_number_of_cores(cells, documents):
    tested, untested = Problem(documents, None, documents.head(60)), Problem(documents, "a")
    papers = [
        *(run_of(ModelSpec("MRBP", {"budget": b}), tested, i, i) for b in (9, 30) for i in (0, 1)),
        run_of(ModelSpec("LBP", {"budget": 9}), untested),
    ]
    alone, beside = (run_all([*cells, *papers], jobs=jobs) for jobs in (1, 2))
    assert [record["key"] for record in alone] == [run.key for run in [*cells, *papers]]
    assert no_seconds(beside[: len(cells)]) == no_seconds(alone[: len(cells)])
    for one, other in zip(alone, beside, strict=True):  # papers' runs have other times, too
        assert one.keys() == other.keys()
        for name in ("key", "mistakes", "supports", "test_error", "window_errors"):
            assert one.get(name) == other.get(name)


def test_a_second_call_computes_only_what_is_missing(tmp_path, cells, learnt):
    folder = RunFolder(tmp_path)
    first = run_all(cells[:2], folder=folder, jobs=1)
    assert learnt == [200, 200]
    assert run_all(cells, folder=folder, jobs=1)[:2] == first
    assert learnt[2:] == [50, 50, 50, 50]
    run_all(cells, folder=folder, jobs=1)
    assert len(learnt) == 6


def test_a_break_loses_only_what_is_in_flight(tmp_path, cells, learnt):
    folder = RunFolder(tmp_path)
    append = folder.append

    def interrupted(*given):
        append(*given)
        if len(learnt) == 3:
            raise KeyboardInterrupt

    folder.append = interrupted
    with pytest.raises(KeyboardInterrupt):
        run_all(cells, folder=folder, jobs=1)
    assert len(RunFolder(tmp_path).read()) == 3
    resumed = run_all(cells, folder=RunFolder(tmp_path), jobs=1)
    assert len(learnt) == 6
    assert no_seconds(resumed) == no_seconds(run_all(cells, jobs=1))


def test_each_seed_makes_the_draws_of_that_seed(stream):
    cells = [tracked(ModelSpec("RBP", {"budget": 5}), stream, 0, seed=seed) for seed in (0, 1, 2)]
    records = run_all(cells, jobs=1)
    for seed, record in enumerate(records):
        wrong = RBP(5, seed=seed).predict_learn_many(stream.X, stream.y) != stream.y
        assert (record["seed"], record["mistakes"]) == (seed, wrong.sum())
    assert len({tuple(record["window_errors"]) for record in records}) == 3


def test_the_longest_are_run_first_and_equal_ones_once(cells, learnt):
    run_all([*cells[::-1], *cells], jobs=1)
    assert learnt == [200, 200, 50, 50, 50, 50]


def test_without_shifts_the_only_chunk_is_the_stream(documents):
    stream = ShiftingStream(documents, "a")
    assert (
        tracked(ModelSpec("SPA"), stream, 0, chunk=0).key
        == tracked(ModelSpec("SPA"), stream, 0).key
    )


def test_everything_that_matters_is_in_the_key(documents, stream):
    other = Documents.from_arrays(
        documents.rows.toarray() * 2, documents.topics, documents.topic_names
    )
    cells = [
        tracked(ModelSpec("LBP", {"budget": 5}), stream, 0),
        tracked(ModelSpec("Forgetron", {"budget": 5}), stream, 0),
        tracked(ModelSpec("LBP", {"budget": 6}), stream, 0),
        tracked(ModelSpec("LBP", {"budget": 5}), stream, 1),
        tracked(ModelSpec("LBP", {"budget": 5}, kernel=Linear()), stream, 0),
        tracked(ModelSpec("LBP", {"budget": 5}), stream, 0, seed=1),
        tracked(ModelSpec("LBP", {"budget": 5}), stream, 0, chunk=1),
        tracked(
            ModelSpec("LBP", {"budget": 5}), ShiftingStream(documents, ["b", "a", "c", "d"]), 0
        ),
        tracked(
            ModelSpec("LBP", {"budget": 5}), ShiftingStream(documents.head(100), list("abcd")), 0
        ),
        tracked(ModelSpec("LBP", {"budget": 5}), ShiftingStream(other, list("abcd")), 0),
    ]
    assert len({cell.key for cell in cells}) == len(cells)
    assert tracked(ModelSpec("LBP", {"budget": 5}), stream, 0).key == cells[0].key


def test_the_models_code_is_in_the_key(stream, monkeypatch):
    before = tracked(ModelSpec("LBP", {"budget": 5}), stream, 0).key
    monkeypatch.setattr("drift.experiments.reproduction.runs.code_fingerprint", lambda *_: "mended")
    assert tracked(ModelSpec("LBP", {"budget": 5}), stream, 0).key != before


@pytest.mark.parametrize(
    ("code", "names", "others"),
    [
        (
            partial(code_fingerprint, "drift.models"),
            "models/alma models/_store/columns.pyx models/_store/columns.h _values kernels",
            "streams/table engines experiments/jobs",
        ),
        (
            measuring_code,
            (
                "_decision _late explain streams/stream streams/table experiments/memory "
                "experiments/comparison/categories experiments/comparison/contender"
            ),
            (
                "engines _options __main__ models/alma models/threshold "
                "experiments/rivals/retrained experiments/comparison/tables"
            ),
        ),
        (
            reproducing_code,
            (
                "models/alma experiments/learning experiments/reproduction/runs "
                "experiments/rivals/batch_svm"
            ),
            "explain experiments/runner experiments/rivals/retrained",
        ),
    ],
)
def test_the_key_is_of_all_the_code_that_matters(tmp_path, monkeypatch, code, names, others):
    shutil.copytree(Path(drift.__file__).parent, tmp_path / "drift")
    monkeypatch.setattr(drift, "__file__", str(tmp_path / "drift" / "__init__.py"))

    def key_with(*names):
        for name in names:
            path = tmp_path / "drift" / name
            with path.with_suffix(path.suffix or ".py").open("a") as file:
                file.write("mended = 1\n")
        code_fingerprint.cache_clear()
        return code()

    try:
        keys = [key_with(), *map(key_with, names.split())]
        assert len(set(keys)) == len(keys)
        assert key_with(*others.split()) == keys[-1]
    finally:
        code_fingerprint.cache_clear()


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ('raise ValueError(f"{x} is bad")', 'raise ValueError("not so")', True),
        ('raise ValueError(f"{x} is bad")', "raise ValueError(x)", False),
        ("# a reason", "# another", True),
        ('"""Say it."""', '"""Say it\n\n    better."""', True),
        ('"""Say it."""\n', "\n", True),
        ("raise ValueError(", "raise KeyError(", False),
        ("x > 1", "x > 2", False),
        ("import numpy", "import drift.types", True),  # of types only
        ("from drift import _values", "from drift import _csr", False),
    ],
)
def test_wording_is_not_in_the_key(tmp_path, monkeypatch, old, new, same):
    text = '''
from drift import _values
if TYPE_CHECKING:
    import numpy
def say(x):
    """Say it."""
    if x > 1:  # a reason
        raise ValueError(f"{x} is bad")
'''
    for name in ("__init__", "_values", "_csr", "types"):
        (tmp_path / f"{name}.py").write_text(f"name = {name!r}")
    monkeypatch.setattr(drift, "__file__", str(tmp_path / "__init__.py"))
    keys = set()
    for one in (text, text.replace(old, new)):
        assert one == text or text.count(old) == 1
        (tmp_path / "said.py").write_text(one)
        keys.add(code_fingerprint.__wrapped__("drift.said"))
    assert len(keys) == (1 if same else 2)


def threads():
    return {library["num_threads"] for library in threadpool_info()}


@pytest.mark.parametrize("given", [None, "2"])
def test_a_run_has_one_thread_also_in_libraries_that_it_loads(monkeypatch, given):
    def look(_model):
        return {"loaded": threads(), "to come": os.environ["OMP_NUM_THREADS"]}

    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if given is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", given)
    with threadpool_limits(2):
        before = threads()
        run = Run({"model": "any", "parameters": {}}, Perceptron, look, (), 1)
        [record] = run_all([run], jobs=1)
        assert threads() == before
    assert (before, record["loaded"]) == ({2}, {1})
    assert record["to come"] == "1"
    assert os.environ.get("OMP_NUM_THREADS") == given


def test_libraries_are_looked_for_again_once_a_run_has_imported_something(monkeypatch):
    looks = []

    class Controller(ThreadpoolController):
        def __init__(self):
            looks.append(len(sys.modules))
            super().__init__()

    monkeypatch.setattr(runner, "ThreadpoolController", Controller)
    monkeypatch.setitem(sys.modules, "drift_test_loaded_first", drift)
    for _ in range(3):
        with one_thread():
            pass
    monkeypatch.setitem(sys.modules, "drift_test_loaded_later", drift)
    with one_thread():
        pass
    assert np.diff(looks).tolist() == [1]


def test_models_learn_in_float64(close):
    # Kept in float64, the first story tells that the second is positive, too.
    (record,) = run_all(
        [tracked(ModelSpec("Perceptron", kernel=Linear()), ShiftingStream(close, "a"), 0)],
        jobs=1,
    )
    assert (record["mistakes"], record["columns"]) == (1, "float64")
    if compiled and column_type() == "float32":  # the plain store knows nothing but float64
        assert learn(Perceptron(Linear()), close.rows, close.has("a"))["mistakes"] == 2


def test_records_survive_json(cells):
    records = run_all(cells[:1], jobs=1)
    assert json.loads(json.dumps(records)) == records


def test_what_cannot_run_is_refused_before_anything_runs(stream, learnt):
    good, bad = (tracked(ModelSpec("LBP", {"budget": budget}), stream, 0) for budget in (5, 0))
    with pytest.raises(ParameterError, match="budget must be an integer of at least 1, not 0"):
        run_all([good, bad], jobs=1)
    with pytest.raises(ParameterError, match="-1 for all cores, not 0"):
        run_all([good], jobs=0)
    assert learnt == []


def test_progress_is_shown_on_stderr_where_it_is_requested(cells, capsys):
    run_all(cells, jobs=1)
    assert capsys.readouterr().err == ""
    run_all(cells, jobs=1, progress=True)
    shown = capsys.readouterr()
    assert re.search(r"stories +6 of 6 runs", shown.err)
    assert shown.out == ""


def test_progress_says_which_stream_or_how_many(cells, documents, capsys):
    other = ShiftingStream(replace(documents, name="tales"), ["a"])
    run_all([*cells, tracked(ModelSpec("Perceptron"), other, 0)], jobs=1, progress=True)
    assert re.search(r"2 streams +7 of 7 runs", capsys.readouterr().err)
