"""What works with River, tried: each row of docs/works_with_river.md is run.

`python tests/test_works_with_river.py` writes the page's table anew.
"""

import itertools
import pickle
import re
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest
from river import datasets, metrics

from drift import models

PAGE = Path(__file__).resolve().parents[1] / "docs" / "works_with_river.md"
#: The models that stand for the others: nothing to tune and any number of classes; two classes.
MODELS = {
    "Tracker": lambda: models.Tracker(budget=50),
    "LBP": lambda: models.LBP(budget=50),
}
#: By kind. What is written for `model` is the model. Streams: dense with two classes, with seven,
#: and text.
ROWS = {
    "scaler": [
        "preprocessing.StandardScaler() | model",
        "preprocessing.MinMaxScaler() | model",
        "preprocessing.Normalizer() | model",
    ],
    "imputer, encoder": [
        "preprocessing.StatImputer() | model",
        "preprocessing.OneHotEncoder() | model",
        "preprocessing.FeatureHasher(n_features=64) | model",
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
REFUSED = {
    ("LBP", "model"): "LabelError",
    ("Tracker", "preprocessing.StandardScaler() | models.OneVsRest(model)"): "ParameterError",
}


def examples(kind):
    if kind == "text":
        words = {True: ["cheap", "pills", "buy", "now"], False: ["minutes", "of", "our", "notes"]}
        for i, (a, b) in enumerate(itertools.product("abcdefghij", repeat=2)):
            y = (7 * i) % 3 == 0
            yield f"{words[y][i % 4]} {a}{b} {words[y][(i + 1) % 4]} {words[not y][i % 4]}", y
    elif kind == "several classes":
        yield from itertools.islice(datasets.ImageSegments(), 100)
    else:
        yield from itertools.islice(datasets.Phishing(), 120)


def outcome(name, kind, code):
    """Run a composition; "learns" if it does and a copy continues alike, or its error's name."""
    try:
        made = eval(code, {**NAMES, "model": MODELS[name]()})  # noqa: S307 - the rows above
        accuracy, labels = metrics.Accuracy(), Counter()
        rows = list(examples(kind))
        for x, y in rows[:-10]:
            predicted = made.predict_one(x)
            if isinstance(predicted, tuple):  # of the sampler, which has {} for no label yet
                predicted = predicted[0] if predicted[0] != {} else None
            accuracy.update(y, predicted)
            labels[y] += 1
            made.learn_one(x, y)
        again = pickle.loads(pickle.dumps(made))
        same = all(str(again.predict_one(x)) == str(made.predict_one(x)) for x, _ in rows[-10:])
    except (TypeError, ValueError, AttributeError) as error:
        return type(error).__name__
    [(_, most)] = labels.most_common(1)
    return "learns" if same and accuracy.get() > most / labels.total() else "learns nothing"


def row(kind, code):
    escaped = code.replace("|", "\\|")
    return f"| {kind} | `{escaped}` |"


@pytest.mark.compiled
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("kind", "code"), CASES, ids=[code for _, code in CASES])
@pytest.mark.filterwarnings("ignore")  # of River's
def test_it_learns_or_is_refused(model, kind, code):
    assert outcome(model, kind, code) == REFUSED.get((model, code), "learns")


def test_the_page_has_these_rows_and_no_others():
    shown = re.findall(r"^\| [^|]* \| `.*", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert shown == [row(*case) for case in CASES]


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    rows = "\n".join(row(*case) for case in CASES)
    PAGE.write_text(re.sub(r"(?<=---\|\n).*?(?=\n\n|\n*\Z)", lambda _: rows, text, flags=re.DOTALL))
