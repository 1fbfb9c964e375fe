"""What works with River, tried: each row of docs/works_with_river.md is run.

`python tests/test_works_with_river.py` writes the page's table anew.
"""

import itertools
import pickle
import re
from collections import Counter
from importlib import import_module
from operator import eq
from pathlib import Path

import numpy as np
import pytest
from river import active, datasets

from drift import models
from drift.errors import LabelError, ParameterError

PAGE = Path(__file__).resolve().parents[1] / "docs" / "works_with_river.md"
#: The models that stand for the others: nothing to tune and any number of classes; two classes.
MODELS = {
    "Tracker": lambda: models.Tracker(budget=50),
    "LBP": lambda: models.LBP(budget=50),
}
#: By kind. What is written for `model` is the model. Streams: dense with two classes, with seven,
#: and text.
ROWS = {
    "alone": ["model"],
    "scaler": [
        "preprocessing.StandardScaler() | model",
        "preprocessing.MinMaxScaler() | model",
        "preprocessing.Normalizer() | model",
    ],
    "imputer": ["preprocessing.StatImputer() | model"],
    "encoder": [
        "preprocessing.OneHotEncoder() | model",
        "preprocessing.FeatureHasher(n_features=64, seed=0) | model",
    ],
    "more features": [
        "feature_extraction.PolynomialExtender() | model",
        "feature_extraction.RBFSampler(seed=0) | model",
    ],
    "fewer features": [
        "feature_selection.VarianceThreshold() | model",
        "compose.SelectType(float, int) | model",
        "(compose.Select('age_of_domain') + preprocessing.MinMaxScaler()) | model",
        "compose.Discard('age_of_domain') | model",
    ],
    "ensemble": [
        "ensemble.BaggingClassifier(model, n_models=3, seed=0)",
        "ensemble.ADWINBaggingClassifier(model, n_models=3, seed=0)",
        "ensemble.LeveragingBaggingClassifier(model, n_models=3, seed=0)",
        "ensemble.AdaBoostClassifier(model, n_models=3, seed=0)",
        "ensemble.SRPClassifier(model, n_models=3, seed=0)",
        "ensemble.VotingClassifier([model, model.clone(), model.clone()])",
        "ensemble.StackingClassifier([model, model.clone()], meta_classifier=model.clone())",
    ],
    "drift detector": [
        (
            "river_drift.DriftRetrainingClassifier(model, river_drift.ADWIN(), "
            "train_in_background=False)"
        ),
    ],
    "rare class": [
        "imblearn.RandomUnderSampler(model, {False: .5, True: .5}, seed=0)",
        "imblearn.HardSamplingClassifier(model, p=0.5, size=20, seed=0)",
    ],
    "active learning": ["active.EntropySampler(model, seed=0)"],
    "choice of a model": [
        "model_selection.SuccessiveHalvingClassifier([model, model], metrics.Accuracy(), 200)",
    ],
    "several classes": [
        "model",
        "multiclass.OneVsRestClassifier(model)",
        "multiclass.OneVsOneClassifier(model)",
        "multiclass.OutputCodeClassifier(model, code_size=10, seed=0)",
        "models.OneVsRest(model)",
        "preprocessing.StandardScaler() | multiclass.OneVsRestClassifier(model)",
        "preprocessing.StandardScaler() | multiclass.OneVsOneClassifier(model)",
        "preprocessing.StandardScaler() | models.OneVsRest(model)",
    ],
    "text": [
        "feature_extraction.BagOfWords() | model",
        "feature_extraction.TFIDF() | model",
        "feature_extraction.BagOfWords(ngram_range=(1, 2)) | preprocessing.Normalizer() | model",
    ],
}
#: What the rows name: River's modules, of which `drift` would be this package, and drift's models.
NAMES = {
    name: import_module(f"river.{name.removeprefix('river_')}")
    for name in re.findall(r"\b(\w+)\.[A-Z]", " ".join(itertools.chain(*ROWS.values())))
    if name != "models"
} | {"models": models}
CASES = [(kind, code) for kind, rows in ROWS.items() for code in rows]
#: What a model refuses, as the page says above its table, and by which error.
REFUSED = {("LBP", ("several classes", "model")): LabelError} | {
    ("Tracker", case): ParameterError for case in CASES if "models.OneVsRest" in case[1]
}
#: Kinds whose errors would say nothing: no value is missing, no class is rare, each label is
#: learnt, the choice is of two equal models, and the lines of text are a few and made up.
RUN_ONLY = {
    *("imputer", "drift detector", "rare class", "active learning"),
    *("choice of a model", "text"),
}


def examples(kind, rows=None):
    """The stream of a kind, or so many rows of it; of text there are 100."""
    if kind == "text":
        words = {True: ["cheap", "pills", "buy", "now"], False: ["minutes", "of", "our", "notes"]}
        for i, (a, b) in enumerate(itertools.product("abcdefghij", repeat=2)):
            y = (7 * i) % 3 == 0
            yield f"{words[y][i % 4]} {a}{b} {words[y][(i + 1) % 4]} {words[not y][i % 4]}", y
    else:
        stream = datasets.ImageSegments() if kind == "several classes" else datasets.Phishing()
        yield from itertools.islice(stream, rows)


def predictions(name, kind, code, rows=None):
    """The composition, and what it predicted, example by example, before it learnt it."""
    made = eval(code, {**NAMES, "model": MODELS[name]()})  # noqa: S307 - the rows above
    predicted = []
    for x, y in examples(kind, rows):
        answer = made.predict_one(x)
        if isinstance(answer, tuple):  # of the sampler, which has {} for no label yet
            answer = answer[0] if answer[0] != {} else None
        predicted.append(answer)
        made.learn_one(x, y)
    return made, predicted


def mistakes(name, kind, code):
    """Which rows of the whole stream are predicted wrongly; None if the model is refused."""
    if (name, (kind, code)) in REFUSED:
        return None
    labels = [y for _, y in examples(kind)]
    return np.array([a != b for a, b in zip(labels, predictions(name, kind, code)[1], strict=True)])


def errors(kind, code):
    """A cell for each model: the error in %, bold if it is another one than the bare model's.

    That is by more than three standard errors of the difference, which is of the same rows.
    """
    if kind in RUN_ONLY:
        yield from ["runs"] * len(MODELS)
        return
    for name in MODELS:
        own = mistakes(name, kind, code)
        bare = mistakes(name, kind, "model")
        text = "refused" if own is None else f"{100 * own.mean():.1f}"
        if own is not None and bare is not None:
            more, fewer = (own & ~bare).sum(), (bare & ~own).sum()
            if abs(more - fewer) > 3 * (more + fewer) ** 0.5:
                text = f"**{text}**"
        yield text


def row(kind, code):
    """The row of the page but for its errors."""
    escaped = code.replace("|", "\\|")
    return f"| {kind} | `{escaped}` |"


@pytest.mark.compiled
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("kind", "code"), CASES, ids=[code for _, code in CASES])
@pytest.mark.filterwarnings("ignore")  # of River's
def test_it_learns_or_is_refused(model, kind, code):
    if (model, (kind, code)) in REFUSED:
        with pytest.raises(REFUSED[model, (kind, code)]):
            predictions(model, kind, code, 100)
        return
    made, predicted = predictions(model, kind, code, 110)
    labels = [y for _, y in examples(kind, 110)]
    [(_, most)] = Counter(labels).most_common(1)
    assert sum(map(eq, labels, predicted)) > most
    again = pickle.loads(pickle.dumps(made))
    rest = [x for x, _ in examples(kind, 120)][-10:]
    assert [str(again.predict_one(x)) for x in rest] == [str(made.predict_one(x)) for x in rest]


@pytest.mark.parametrize("known", [0, 1, 2])
def test_a_sampler_asks_a_tracker_that_knows_two_classes(known):
    sampler, asked = active.EntropySampler(models.Tracker(budget=20), seed=0), 0
    for y in (True, False)[:known]:
        sampler.learn_one(next(x for x, other in datasets.Phishing() if other is y), y)
    for x, y in datasets.Phishing().take(200):
        _, asks = sampler.predict_one(x)
        asked += asks
        if asks:
            sampler.learn_one(x, y)
    assert (asked > 0) is (known == 2)


def test_the_page_has_these_rows_and_no_others():
    shown = re.findall(r"^\| [^|]* \| `.*?` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert shown == [row(*case) for case in CASES]


@pytest.mark.compiled
@pytest.mark.slow
@pytest.mark.parametrize(("kind", "code"), CASES, ids=[code for _, code in CASES])
@pytest.mark.filterwarnings("ignore")
def test_the_page_has_the_errors_of_these_rows(kind, code):
    [cells] = re.findall(
        rf"^{re.escape(row(kind, code))}(.*)$", PAGE.read_text("utf-8"), re.MULTILINE
    )
    for name, shown in zip(MODELS, cells.strip("| ").split(" | "), strict=True):
        own = None if kind in RUN_ONLY else mistakes(name, kind, code)
        if own is None:
            assert shown == ("runs" if kind in RUN_ONLY else "refused")
        else:  # on another processor some rows may fall to the other side
            assert float(shown.strip("*")) == pytest.approx(100 * own.mean(), abs=0.5)


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    rows = "\n".join(
        " | ".join([row(*case).removesuffix(" |"), *errors(*case)]) + " |" for case in CASES
    )
    PAGE.write_text(re.sub(r"(?<=---\|\n).*?(?=\n\n|\n*\Z)", lambda _: rows, text, flags=re.DOTALL))
