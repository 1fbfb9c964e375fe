"""Columns of texts: whatever a model is, one that tells the label is found."""

import html
import random
from functools import cache

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from river import (
    compose,
    dummy,
    forest,
    linear_model,
    naive_bayes,
    neighbors,
    preprocessing,
    tree,
)

from drift.cli import compare as command
from drift.cli._named import drift_models
from drift.errors import DataError, ParameterError
from drift.experiments import Contender, compare
from drift.experiments.arena.models import MODELS, contenders_of
from drift.experiments.comparison.categories import MOST_ZEROS, MixedNB, taking_texts
from drift.models import Tracker
from drift.streams import Stream, read_stream

# Here a column is meant to.
pytestmark = pytest.mark.filterwarnings("ignore:.*alone tells each label:RuntimeWarning")
N = 1_500
TOWNS = random.Random(0).choices("abcdefgh", k=N)
COLUMNS = {
    "town": [f"town {letter}" for letter in TOWNS],
    "hour": [7 * (i // 30) % 24 for i in range(N)],
    "sold": ["yes" if letter in "aceg" else "no" for letter in TOWNS],
}
FRAME = pd.DataFrame(COLUMNS)
OF_DRIFT = tuple(name for name, family in MODELS.items() if family.library == "drift")
EXAMPLES = [
    ({"town": town, "hour": hour}, sold) for town, hour, sold in zip(*COLUMNS.values(), strict=True)
]


def slow_without_a_compiler(names, of_drift):
    mark = pytest.mark.compiled
    return [pytest.param(name, marks=mark if name in of_drift else ()) for name in names]


def error(contender, stream, first=250, last=350):
    """Error of a model by a plain loop, after the 200 rows before which no tree splits."""
    model, wrong = contender.on(stream).make(), 0
    for i, (x, y) in enumerate(stream.head(last)):
        wrong += i >= first and model.predict_one(x) != y
        model.learn_one(x, y)
    return wrong / (last - first)


def bound(name):
    """Allowed errors of drift's models, except the Tracker: they keep few supports."""
    return 0.05 if name in {"Tracker", "Tracker 100", *command._RIVALS} else 0.1


# The two ensembles are the arena's own models, which are tried below.
ALONE = sorted(n for n, arenas in command._RIVALS.items() if MODELS[arenas].available)
COMPARED = [*drift_models(), *(name for name in ALONE if name not in {"arf", "srp"})]


@cache
def sales(*, bools):
    """The first rows, which are all that `error` takes, read once."""
    frame = FRAME[:400]
    return read_stream(frame.assign(sold=frame["sold"] == "yes") if bools else frame, "sold")


@pytest.mark.parametrize("name", slow_without_a_compiler(COMPARED, drift_models()))
def test_every_name_of_compare_finds_a_text_that_tells_the_label(name):
    stream = sales(bools=False)
    assert error(Contender(command._model(name, stream)), stream) < bound(name)


@pytest.mark.parametrize(
    "name", slow_without_a_compiler([n for n in MODELS if MODELS[n].available], OF_DRIFT)
)
def test_every_name_of_the_arena_finds_a_text_that_tells_the_label(name):
    stream = sales(bools=True)
    contender = contenders_of(name, stream, sparse=False)[name]
    assert error(contender, stream) < (0.1 if name in OF_DRIFT and "Tracker" not in name else 0.05)


def arff(path):
    towns = ",".join(f"'{town}'" for town in sorted(set(COLUMNS["town"])))
    rows = "".join(f"'{x['town']}',{x['hour']},{y}\n" for x, y in EXAMPLES)
    path.write_text(
        f"@relation sales\n@attribute town {{{towns}}}\n@attribute hour numeric\n"
        f"@attribute sold {{yes,no}}\n@data\n{rows}"
    )
    return path


SOURCES = {
    "csv": lambda folder: FRAME.to_csv(folder / "s.csv", index=False) or folder / "s.csv",
    "parquet": lambda folder: FRAME.to_parquet(folder / "s.parquet") or folder / "s.parquet",
    "arff": lambda folder: arff(folder / "s.arff"),
    "pandas": lambda folder: FRAME,
    "pandas categories": lambda folder: FRAME.astype({"town": "category"}),
    "polars": lambda folder: pl.DataFrame(COLUMNS),
    "pyarrow": lambda folder: pa.table(COLUMNS),
}


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_has_the_same_texts(source, tmp_path):
    """So that each model, which the tests above try on one of them, errs the same on all."""
    stream = read_stream(SOURCES[source](tmp_path), "sold")
    assert list(stream) == EXAMPLES
    assert stream.categories == {"town": 8}


@pytest.mark.compiled
def test_a_comparison_finds_a_text_that_tells_the_label():
    models = {
        "Tracker": Tracker(budget=50),
        "scaled": preprocessing.StandardScaler() | linear_model.LogisticRegression(),
        "tree": tree.HoeffdingTreeClassifier(),
    }
    stream = Stream([(x, y == "yes") for x, y in EXAMPLES], "sales")
    runs = compare(models, stream, jobs=1)["runs"].set_index("model")
    assert set(runs["status"]) == {"ok"}
    assert (runs["error"][list(models)] < 0.07).all(), runs["error"]


def test_what_takes_texts_gets_them_as_they_are():
    few = [(x, y == "yes") for x, y in EXAMPLES[:20]]
    for made in (tree.HoeffdingAdaptiveTreeClassifier, forest.ARFClassifier):
        model = made()
        assert taking_texts(model, few) is model
    own = (compose.SelectType(str) | preprocessing.OneHotEncoder()) | linear_model.Perceptron()
    assert taking_texts(own, few) is own
    scaled = taking_texts(preprocessing.StandardScaler() | tree.HoeffdingTreeClassifier(), few)
    scaled.learn_one({"town": "x", "hour": 3}, False)
    assert scaled.transform_one({"town": "x", "hour": 3}) == {"town": "x", "hour": 0.0}


def test_what_only_looks_like_a_model_of_rivers_is_left_as_it_is():
    class Own:
        def learn_one(self, x, y):
            self.last = x["town"], y

        def predict_one(self, x):
            return getattr(self, "last", (None, None))[1]

    runs = compare({"own": Own}, FRAME[:50], target="sold", jobs=1)["runs"]
    assert runs["status"][0] == "ok"


def test_a_model_that_fails_without_texts_fails_as_it_is():
    model = linear_model.LogisticRegression()  # which knows no labels but bools
    assert taking_texts(model, EXAMPLES[:20]) is model


def test_regressions_get_zeros_through_their_scaler_unless_there_are_too_many():
    few = [(x, y == "yes") for x, y in EXAMPLES[:20]]
    regression = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    model = taking_texts(regression, few)
    for town in ("x", "y"):
        model.learn_one({"town": town, "hour": 3}, True)
    # One of two is x, and one of one is y: the mean of the latter is that of the rows that had it.
    assert model.transform_one({"town": "x", "hour": 3}) == {"town_x": 1, "town_y": 0, "hour": 0}
    model = taking_texts(regression, few, MOST_ZEROS + 1)
    model.learn_one({"town": "x", "hour": 3}, True)
    assert model.transform_one({"town": "x", "hour": 3}) == {"town_x": 1, "hour": 0.0}


def test_others_get_ones_that_no_scaler_touches():
    few = EXAMPLES[:20]
    model = taking_texts(preprocessing.StandardScaler() | neighbors.KNNClassifier(), few)
    assert isinstance(model["KNNClassifier"].engine, neighbors.LazySearch)
    for hour in (1, 3):
        model.learn_one({"town": "x", "hour": hour}, "no")
    assert model.transform_one({"town": "x", "hour": 3}) == {"town_x": 1, "hour": 1.0}


@pytest.mark.parametrize(
    "last",
    [naive_bayes.GaussianNB, neighbors.KNNClassifier, linear_model.LogisticRegression],
    ids=lambda kind: kind.__name__,
)
def test_pipelines_in_one_another_get_texts_as_one_of_all_their_steps(last):
    few = [(x, y == "yes") for x, y in EXAMPLES[:20]]
    scaler, other = preprocessing.StandardScaler, preprocessing.MinMaxScaler
    flat = taking_texts(scaler() | other() | last(), few)
    nested = taking_texts(compose.Pipeline(scaler(), compose.Pipeline(other(), last())), few)
    assert repr(nested) == repr(flat)
    for x, y in few:
        nested.learn_one(x, y)
    assert nested.predict_one(few[0][0]) in {True, False}


def test_naive_bayes_by_hand():
    """Two of three are true; of these both came from x, of the one that is false none."""
    model = MixedNB()
    assert model.predict_proba_one({"town": "x"}) == {}
    for town, label in [("x", True), ("x", True), ("y", False)]:
        model.learn_one({"town": town}, label)
    # Smoothed by one over the two towns: 2/3 * 3/4 for true, 1/3 * 1/3 for false.
    true, false = 2 / 3 * 3 / 4, 1 / 3 * 1 / 3
    actual = model.predict_proba_one({"town": "x"})
    assert actual == pytest.approx({True: true / (true + false), False: false / (true + false)})
    # A town that nobody has seen tells nothing.
    assert model.predict_proba_one({"town": "z"}) == pytest.approx({True: 2 / 3, False: 1 / 3})


def test_prose_and_names_of_rows_are_no_categories():
    notes = Stream([({"text": f"note {i}"}, i % 2) for i in range(300)])
    assert notes.categories == {}
    runs = compare(Tracker(budget=5), notes, jobs=1)["runs"]
    assert runs["status"][0] == "failed"
    assert "OneHotEncoder" in runs["message"][0]


@pytest.mark.usefixtures("undrawn")
def test_the_report_says_what_each_model_is_given_and_what_was_left_out(tmp_path):
    frame = FRAME.assign(sold=FRAME["sold"] == "yes")
    frame = frame.assign(id=range(N), leak=frame["sold"], prose=[f"no. {i}" for i in range(N)])
    frame["sold"] = frame["sold"].astype("boolean").where(frame["id"] != 3)
    with pytest.warns(RuntimeWarning) as output:
        stream = read_stream(frame, "sold", rows=150)
    assert [str(one.message) for one in output] == [f"DataFrame: {note}" for note in stream.notes]
    assert stream.notes == (
        "left out: 1 of 151 rows, without a label in 'sold'",
        "'town' alone tells each label: drop it if a model would not have it in time",
        "'id' counts up or down, as an id does: drop it if a model would not have it in time",
        "'leak' equals the label, value by value: drop it if a model would not have it in time",
        (
            "left out: 'prose' has 150 different texts in 150 rows, no categories: 'no. 0' (1), "
            "'no. 1' (1), 'no. 2' (1), 147 other texts (147)"
        ),
    )
    results = compare(linear_model.LogisticRegression(), stream, output=tmp_path, jobs=1)
    page = (tmp_path / "report.html").read_text()
    assert all(html.escape(note) in page for note in stream.notes)
    assert "<dt>texts among them, DataFrame</dt><dd>town</dd>" in page
    assert "OneHotEncoder" in results.settings["models"]["LogisticRegression"]


def test_an_id_is_named(tmp_path):
    path = tmp_path / "sales.csv"
    FRAME[:200].assign(id=range(7, 207)).to_csv(path, index=False)
    with pytest.warns(RuntimeWarning, match="sales: 'id' counts up or down, as an id"):
        assert "id" in read_stream(path, "sold").examples[0][0]
    assert "id" not in read_stream(path, "sold", drop=["id"]).examples[0][0]
    with pytest.raises(ParameterError, match="no column 'soldd': did you mean 'sold'"):
        read_stream(path, "sold", drop=["soldd"])


@pytest.mark.usefixtures("undrawn")
def test_a_folder_of_other_data_is_refused(tmp_path):
    folder, model = tmp_path / "out", dummy.PriorClassifier()
    few = FRAME[:50]
    compare(model, few, target="sold", output=folder, jobs=1)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    message = "holds results of another DataFrame, with another target"
    for frame, target in ((FRAME[:60], "sold"), (few, "hour"), (few[["town", "sold"]], "sold")):
        with pytest.raises(ParameterError, match=message):
            compare(model, frame, target=target, output=folder, jobs=1)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    more = compare(tree.HoeffdingTreeClassifier(), few, target="sold", output=folder, jobs=1)
    assert len(more.records) == 3
    (folder / "manifest.json").write_text("[]")
    with pytest.raises(DataError, match="is no manifest: delete it, or the folder"):
        compare(model, few, target="sold", output=folder, jobs=1)
