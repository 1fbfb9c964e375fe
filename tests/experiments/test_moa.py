"""MOA's models beside CapyMOA's own loop, where CapyMOA and Java are installed."""

import importlib.util
import sys

import numpy as np
import pytest

from drift.errors import MissingExtraError, ParameterError
from drift.experiments import compare
from drift.experiments.arena import arena, experiment
from drift.experiments.arena.models import MODELS
from drift.experiments.arena.streams import STREAMS
from drift.experiments.memory import memory
from drift.experiments.rivals.moa import MOA, available
from drift.streams import Stream

needs_moa = pytest.mark.skipif(not available(), reason="pip install drift-learn[moa] and Java 17")


def examples(n=400):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 3))
    y = (X[:, 0] + X[:, 1] > 0) + (X[:, 2] > 1)
    return X, y


def test_capymoa_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "capymoa", None)
    monkeypatch.setitem(sys.modules, "capymoa.classifier", None)
    with pytest.raises(MissingExtraError, match=r"capymoa is not installed: pip install .*\[moa\]"):
        MOA.of("PLASTIC", Stream([({"a": 1.0}, 0), ({"a": 2.0}, 1)]))


def test_the_arena_leaves_moas_models_out_where_they_cannot_run(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    few = {name: MODELS[name] for name in ("PA", "MOA HAT")}
    monkeypatch.setattr(experiment, "MODELS", few)
    small = STREAMS["bananas"].make().head(40)
    monkeypatch.setitem(STREAMS, "bananas", STREAMS["bananas"]._replace(make=lambda: small))
    results = arena(tmp_path, streams=["bananas"], delays=[0], jobs=1)
    models = {row["model"] for row in results.rows("table")}
    assert models == {"PA", "PA, tuned", "no change", "majority"}


@needs_moa
@pytest.mark.parametrize("learner", ["HoeffdingAdaptiveTree", "PLASTIC"])
def test_errors_are_those_of_capymoas_own_loop(learner):
    from capymoa import classifier  # noqa: PLC0415 - starts Java
    from capymoa.evaluation import prequential_evaluation  # noqa: PLC0415
    from capymoa.stream import NumpyStream  # noqa: PLC0415

    X, y = examples()
    stream = NumpyStream(X, y)
    seed = {} if learner == "PLASTIC" else {"random_seed": 1}
    capymoas = getattr(classifier, learner)(stream.get_schema(), **seed)
    theirs = prequential_evaluation(stream, capymoas, store_predictions=True)["predictions"]
    rows = [(dict(enumerate(x)), int(label)) for x, label in zip(X.tolist(), y, strict=True)]
    model = MOA(learner, dict.fromkeys(range(3)), [0, 1, 2])
    for (x, label), expected in zip(rows, theirs, strict=True):
        assert expected is None or model.predict_one(x) == int(expected)
        model.learn_one(x, label)
    assert sum(one is not None for one in theirs) > 350


@needs_moa
def test_texts_are_categories_and_what_is_absent_is_missing():
    rows = [
        ({"town": "ab"[i % 2], "noise": float(i % 7)}, ["no", "yes"][i % 2]) for i in range(300)
    ]
    model = MOA.of("HoeffdingAdaptiveTree", Stream(rows))
    assert model.features == {"town": ["a", "b"], "noise": None}
    for x, y in rows:
        model.learn_one(x, y)
    assert model.predict_one({"town": "a"}) == "no"
    assert model.predict_one({"town": "b", "other": 3.0}) == "yes"
    assert model.predict_one({"town": "c"}) in {"no", "yes"}
    assert memory(model) > memory(model.clone())


@needs_moa
def test_comparisons_have_them():
    X, y = examples(120)
    stream = Stream(
        [({"a": a, "b": b}, bool(label)) for (a, b, _), label in zip(X.tolist(), y, strict=True)]
    )
    models = {
        "hat": MOA.of("HoeffdingAdaptiveTree", stream),
        "arf": MOA.of("AdaptiveRandomForestClassifier", stream, ensemble_size=3),
    }
    runs = compare(models, stream, jobs=1)["runs"].set_index("model")
    assert set(runs["status"]) == {"ok"}
    assert runs["error"]["arf"] < runs["error"]["majority"]


@needs_moa
@pytest.mark.parametrize(
    ("learner", "parameters", "message"),
    [
        ("PLASTICS", {}, "no classifier 'PLASTICS'"),
        ("PLASTIC", {"depth": 3}, "no parameter 'depth'"),
    ],
)
def test_what_capymoa_has_not_is_refused(learner, parameters, message):
    with pytest.raises(ParameterError, match=message):
        MOA(learner, {"a": None}, [0, 1], parameters)
