import csv
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.sparse import csr_array
from sklearn import datasets

from drift.cli import app
from drift.errors import DataError, ParameterError
from drift.experiments import Results, RunFolder
from drift.experiments.arena import ARENA as KIND
from drift.experiments.arena import arena, experiment
from drift.experiments.arena import streams as arena_streams
from drift.experiments.arena.models import MODELS, contenders_of
from drift.experiments.arena.standings import (
    Standings,
    error_after_delay,
    error_of_all,
    select,
)
from drift.experiments.arena.streams import ROWS, STREAMS
from drift.experiments.results import TableSpec
from drift.streams import Documents, Stream
from tests.experiments.arena_rows import rows

#: Tables without times and memory.
TIMELESS = ("errors.csv", "pairs_real.csv", "pairs_held-out.csv", "losses.csv")
ARENA = {"streams": ["phishing", "segments"], "models": ["Tracker", "PA"], "jobs": 1}


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(experiment, "QUICK_ROWS", 60)


def test_the_list_is_as_long_as_it_should_be():
    kinds = Counter(entry.kind for entry in STREAMS.values())
    assert kinds["real"] >= 15
    assert kinds["held-out"] >= 14
    assert len(MODELS) >= 15
    assert all(len(family.grid) <= 8 for family in MODELS.values())
    assert not any(family.grid for name, family in MODELS.items() if name.startswith("Tracker"))
    assert not any("," in name for name in [*STREAMS, *MODELS])  # which separates names of options


def test_tables_have_the_zeros_that_their_files_leave_out(monkeypatch):
    rows = csr_array(np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 4.0]]))
    documents = Documents(rows, np.array([[True], [False], [True]]), ("+1",))
    monkeypatch.setattr(arena_streams, "loaded", lambda name: (documents, ()))
    table = list(STREAMS["ijcnn1"].make())
    assert table == [({0: 1.0, 1: 0.0}, True), ({0: 0.0, 1: 2.0}, False), ({0: 3.0, 1: 4.0}, True)]


def test_a9a_has_its_columns_as_texts(monkeypatch):
    rows = csr_array((np.ones(4), ([0, 0, 1, 1], [0, 5, 4, 122])), shape=(2, 123))
    documents = Documents(rows, np.array([[True], [False]]), ("+1",))
    monkeypatch.setattr(arena_streams, "loaded", lambda name: (documents, ()))
    assert list(STREAMS["a9a"].make()) == [
        ({"age": "0", "workclass": "0"}, True),
        ({"age": "4", "native-country": "40"}, False),
    ]


@pytest.mark.parametrize(
    "name",
    [name for name, entry in STREAMS.items() if not entry.source and "noise" not in name],
)
def test_generated_streams_are_the_same_each_time(name, monkeypatch):
    monkeypatch.setattr("drift.experiments.arena.streams.ROWS", 80)
    stream = STREAMS[name].make()
    assert (len(stream), stream.name) == (80, name)
    assert stream.sha256 == STREAMS[name].make().sha256
    if "abrupt" in name:
        assert len(stream.drifts) in {1, 3}
    if "recurring" in name:
        assert [drift.row for drift in stream.drifts] == [20, 40, 60]
    assert ROWS == 20_000


def test_a_checkerboard_turns_by_half(monkeypatch):
    monkeypatch.setattr("drift.experiments.arena.streams.ROWS", 400)
    stream = STREAMS["checkerboard"].make()
    for i, (x, label) in enumerate(stream):
        angle = np.pi * i / 399
        point = complex(x["x"], x["y"]) * np.exp(1j * angle)
        odd = (np.floor(2 * point.real) + np.floor(2 * point.imag)) % 2 == 1
        assert odd == label
    noisy = STREAMS["checkerboard noise"].make()
    changed = sum(a != b for (_, a), (_, b) in zip(stream, noisy, strict=True))
    assert changed / 400 == pytest.approx(0.1, abs=0.05)  # half of those that are drawn again


def test_held_out_columns_and_words_by_hand(tmp_path, monkeypatch):
    monkeypatch.setenv("DRIFT_DATA", str(tmp_path))
    with pytest.raises(DataError, match="steel"):
        STREAMS["steel"].make()
    (tmp_path / "heldout").mkdir()
    table = {"X": np.array([[1.5, 2], [np.nan, 0]]), "y": np.array(["0", "1"])}
    table |= {"cat": np.array([False, True]), "names": np.array(["a", "b"])}
    words = {"indptr": [0, 2, 3], "indices": [1, 0, 1], "data": np.float32([0.5, 1, 2])}
    words |= {"y": np.array(["ham", "spam"]), "vocab": np.array(["you", "won"])}
    for name, arrays in [("turbofan", table), ("steel", table), ("sms", words)]:
        np.savez(tmp_path / "heldout" / f"{name}.npz", **arrays)
    assert list(STREAMS["steel"].make()) == [({"a": 1.5, "b": "2"}, "0"), ({"b": "0"}, "1")]
    assert STREAMS["turbofan"].make().labels == [False, True]
    assert list(STREAMS["sms"].make()) == [({"won": 0.5, "you": 1.0}, False), ({"won": 2.0}, True)]


def test_moons_turn_and_clusters_change(monkeypatch):
    monkeypatch.setattr("drift.experiments.arena.streams.ROWS", 400)
    points = np.array([list(x.values()) for x, _ in STREAMS["moons turning"].make()])
    still, labels = datasets.make_moons(400, noise=0.25, random_state=0)
    turned = (still - [0.5, 0.25]) @ [1, 1j] * np.exp(2j * np.pi * np.arange(400) / 399)
    np.testing.assert_allclose(points @ [1, 1j], turned)
    assert STREAMS["moons turning"].make().labels == (labels == 1).tolist()
    clusters = STREAMS["clusters abrupt"].make()
    assert [drift.row for drift in clusters.drifts] == [100, 200, 300]
    assert len(clusters.classes) == 4


@pytest.mark.parametrize("name", [name for name in MODELS if MODELS[name].available])
@pytest.mark.parametrize("multiclass", [False, True])
def test_models_learn(name, multiclass):
    pairs = [({"a": float(i % 3), "b": 1.0}, i % 3 if multiclass else i % 3 > 0) for i in range(30)]
    for contender in contenders_of(name, Stream(pairs), sparse=False).values():
        model = contender.make()
        for x, y in pairs:
            model.learn_one(x, y)
        assert model.predict_one(pairs[0][0]) in {0, 1, 2}


def test_a_rate_for_texts_is_run_on_texts_alone():
    stream = Stream([({"a": 1.0}, True), ({"a": -1.0}, False)], "one")
    name = "logistic regression at rate 10"
    model = contenders_of(name, stream, sparse=True)[name].make()
    model.learn_one(*stream.examples[0])
    assert model.weights["a"] == pytest.approx(5)  # the gradient is 1/2
    for sparse in (True, False):
        entry = STREAMS["spam"]._replace(make=lambda: stream, sparse=sparse)
        runs = experiment._runs(stream, entry, [name], [None], 60.0)
        assert (name in dict(runs)) == sparse


def test_a_setting_for_late_labels_runs_with_late_ones_alone_and_is_no_rival():
    stream = Stream([({"a": 1.0}, True), ({"a": -1.0}, False)], "one")
    late = ("Tracker", True), ("Tracker late=False", False)
    for name, is_late in late:
        entrant = contenders_of(name, stream, sparse=False)[name]
        assert entrant.on(stream, late=True).make().late is is_late
    names = [name for name, _ in late]
    runs = experiment._runs(stream, STREAMS["a9a"], names, [None, 1], 60.0)
    asked = [(run.identity["model"], run.identity["delay"]) for _, run in runs]
    assert [place for place in asked if place[0] in names] == [
        ("Tracker", None),
        ("Tracker", "1"),
        ("Tracker late=False", "1"),
    ]
    records = rows({name: {"steel": 0.1} for name in ("Tracker", "Tracker late=False", "PA")}, "1")
    assert list(Standings(records).others("steel", "1")) == ["PA"]


@pytest.mark.parametrize(
    ("delay", "heldout", "tuned"),
    [(None, False, True), (20, False, False), (None, True, False), (20, True, False)],
)
def test_grids_are_for_development_streams_alone_with_labels_at_once(delay, heldout, tuned):
    stream = Stream([({"a": 1.0}, True), ({"a": -1.0}, False)], "one")
    entry = STREAMS["phishing"]._replace(make=lambda: stream, heldout=heldout)
    runs = dict(experiment._runs(stream, entry, ["PA"], [delay], 60.0))
    grid = {f"PA @ {k}" for k in range(3)} if tuned else set()
    assert runs.keys() == {"PA", "no change", "majority"} | grid


@pytest.mark.parametrize(
    ("model", "stream", "delay", "heldout", "runs"),
    [
        ("Tracker", "steel", None, True, 5),
        ("Tracker", "steel", 20, True, 1),
        ("Tracker", "electricity", None, False, 1),
        ("ARF", "electricity", None, False, 5),
        ("ARF", "electricity", 20, False, 1),
        ("ARF", "weather", None, False, 1),
        ("ARF", "steel", None, True, 1),
        ("EFDT", "electricity", None, False, 1),
    ],
)
def test_several_seeds_are_where_the_page_says(model, stream, delay, heldout, runs):
    rows = Stream([({"a": 1.0}, True), ({"a": -1.0}, False)], stream)
    entry = STREAMS[stream]._replace(make=lambda: rows, heldout=heldout)
    names = [name for name, _ in experiment._runs(rows, entry, [model], [delay], 60.0)]
    assert names.count(model) == runs


def test_forests_can_sort_the_names_of_deviations():
    stream = Stream([({0: 1.0, 1: 2.0}, True), ({0: 3.0, 1: 2.0}, False)])
    deviating = list(experiment._deviations(stream))
    assert [min(x) for x, _ in deviating] == ["0", "0"]
    assert deviating[1][0]["0 - mean of 8"] == 2.0


@pytest.mark.usefixtures("undrawn")
def test_second_call_computes_only_missing_runs_and_gives_the_same_tables(tmp_path):
    whole = arena(tmp_path / "whole", quick=True, **ARENA)
    part = tmp_path / "part"
    arena(part, quick=True, **ARENA | {"streams": ["segments"]})
    lines = (part / "runs.jsonl").read_text().splitlines(keepends=True)
    (part / "runs.jsonl").write_text("".join(lines[: len(lines) // 2]))
    resumed = arena(part, quick=True, **ARENA)
    actual = RunFolder(part).read().values()
    assert Results(KIND, select(actual), {}, {"quick": True}, 0.0).rows("table") == resumed.rows(
        "table"
    )
    assert Results.read(part, KIND).rows("table") == resumed.rows("table")
    assert len(resumed.records) == len(whole.records)
    few = Results(KIND, select(actual, ["segments"], ["PA"]), {}, {"quick": True}, 0.0).cached(
        Standings.of
    )
    assert (few.streams, few.models) == (["segments"], ["PA", "PA, tuned", "no change", "majority"])
    for name in TIMELESS:
        assert (part / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


@pytest.mark.slow
def test_ten_kills_leave_no_trace_in_the_tables(tmp_path):
    rng = random.Random(0)
    command = [sys.executable, "-c", "from drift.cli import main; main()", "arena", "--quick"]
    command += ["--streams", "phishing,segments,checkerboard", "--models", "Tracker,PA,naive Bayes"]
    killed, whole, log = tmp_path / "killed", tmp_path / "whole", tmp_path / "log"

    def start_run(folder):
        with log.open("ab") as file:
            own = [*command, "--jobs", "2", "--output", str(folder)]
            return subprocess.Popen(own, stdout=file, stderr=file, start_new_session=True)

    def count():
        runs = killed / "runs.jsonl"
        return runs.read_bytes().count(b"\n") if runs.exists() else 0

    for _ in range(10):
        goal, end, process = count() + rng.randint(0, 4), time.monotonic() + 300, start_run(killed)
        while count() < goal and process.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(rng.random() / 20)  # in the middle of runs, or of writing one
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait(60) == -signal.SIGKILL, log.read_text()
    assert 0 < count() < 54
    for folder in (killed, whole):
        assert start_run(folder).wait(600) == 0, log.read_text()
    assert count() == 54
    for name in TIMELESS:
        assert (killed / name).read_bytes() == (whole / name).read_bytes(), name


@pytest.mark.usefixtures("undrawn")
def test_tables(tmp_path):
    results = arena(tmp_path, quick=True, **ARENA)
    standings = results.cached(Standings.of)
    assert {row["delay"] for row in results.rows("table")} == {None, "20", "100"}
    for record in results.records:
        if record["model"] == "Tracker":
            stream = STREAMS[record["stream"]].make()
            entrant = contenders_of("Tracker", stream, sparse=False)["Tracker"]
            late = replace(entrant, late=record["delay"] is not None)
            assert record["parameters"] == late.traits().identity
    with (tmp_path / "errors.csv").open() as file:
        rows = list(csv.DictReader(file))
    named = {row["model"] for row in rows}
    assert named == {"Tracker", "PA", "PA, tuned", "no change", "majority"}
    for stream in ("phishing", "segments"):
        settings = [
            record["error"]
            for record in results.records
            if record["stream"] == stream and record["model"].startswith("PA")
            if record["delay"] is None
        ]
        assert len(settings) == 4
        assert standings.error(stream, "PA, tuned") == min(settings)
    pairs = {row["other"]: row for row in results.rows("pairs_real")}
    assert pairs["no change"]["n"] == 2
    assert pairs["no change"]["wins"] == 2
    [at_once, *_] = results.rows("standings")
    assert [at_once[name] for name in ("kind", "delay", "number")] == ["real", None, 2]
    assert not results.figures  # two streams are too few for costs


def test_models_are_in_the_arenas_order_wherever_they_ran():
    errors = {"PA": {"weather": 0.3}, "no change": {"weather": 0.5}, "ARF": {"weather": 0.2}}
    errors |= {"Tracker": {"weather": 0.1}, "PA @ 0": {"weather": 0.2}}
    actual = Standings(rows(errors))
    assert actual.models == ["Tracker", "PA", "PA, tuned", "ARF", "no change"]


def test_losses_by_hand():
    errors = {
        "Tracker": {"a9a": 0.2, "spam": 0.1, "weather": 0.3},
        "PA": {"a9a": 0.196, "spam": 0.05, "weather": 0.29},
        "ARF": {"a9a": 0.5, "spam": 0.09, "weather": 0.1},
        "PA @ 0": {"a9a": 0.01, "spam": 0.01, "weather": 0.01},
    }
    actual = Standings(rows(errors)).losses()
    beaten = [("weather", "ARF"), ("spam", "PA"), ("a9a", "PA")]
    assert [(row["stream"], row["rival"]) for row in actual] == beaten
    assert [row["gap"] for row in actual] == pytest.approx([0.2, 0.05, 0.004])
    results = Results(KIND, [], {}, {"quick": False}, 0.0)
    results._made[KIND.tables["runs"].rows] = rows(errors)
    for name, is_tuned in (("losses", False), ("losses_tuned", True)):
        assert results.rows(name) == Standings(rows(errors)).losses(tuned=is_tuned)
    tuned = Standings(rows(errors)).losses(tuned=True)
    assert {row["rival"] for row in tuned} == {"PA, tuned"}
    assert [row["gap"] for row in tuned] == pytest.approx([0.29, 0.19, 0.09])


def test_losses_on_held_out_streams_come_first():
    errors = {"Tracker": {"steel": 0.2, "a9a": 0.3}, "PA": {"steel": 0.19, "a9a": 0.1}}
    late = rows({"Tracker": {"steel": 0.2}, "PA": {"steel": 0.1}}, "100")
    late[1]["error_after_delay"] = 0.05
    lost = Standings(rows(errors) + late).losses()
    assert [(row["stream"], row["delay"]) for row in lost] == [
        ("steel", None),
        ("steel", "100"),
        ("a9a", None),
    ]


def test_where_the_tracker_stands_by_hand():
    """Of three real streams it is level on one and behind on two; of a held-out one, ahead."""
    errors = {
        "Tracker": {"a9a": 0.2, "spam": 0.1, "weather": 0.3, "steel": 0.2},
        "PA": {"a9a": 0.196, "spam": 0.05, "weather": 0.29, "steel": 0.21},
        "ARF": {"a9a": 0.5, "spam": 0.09, "weather": 0.1},
        "LBP": {"ijcnn1": 0.1},
    }
    names = ("kind", "delay", "number", "fewest", "most", "ahead", "by_a_point", "level", "behind")
    late = rows({"Tracker": {"steel": 0.0}, "PA": {"steel": 0.0}}, "100")
    held_out, held_out_late, real = Standings(rows(errors) + late).tallies()
    assert [held_out[name] for name in names] == ["held-out", None, 1, 1, 1, 1, 1, 0, 0]
    assert [held_out_late[name] for name in names] == ["held-out", "100", 1, 1, 1, 0, 0, 1, 0]
    assert [real[name] for name in names] == ["real", None, 3, 2, 2, 0, 0, 1, 2]
    assert real["lead"] == pytest.approx(-0.05)
    assert Standings([]).tallies() == []


def test_a_rival_that_ended_on_one_copy_is_compared_on_that_alone():
    errors = {
        "Tracker": {"rcv1 GCAT": 0.2, "rcv1 shifts": 0.4, "spam": 0.1},
        "no change": {"rcv1 GCAT": 0.5, "rcv1 shifts": 0.7, "spam": 0.3},
        "ARF": {"rcv1 GCAT": 0.3, "spam": 0.3},
    }
    pairs = {row["other"]: row for row in Standings(rows(errors)).pairs("real")}
    assert pairs["ARF"]["n"] == 2
    assert pairs["ARF"]["median_difference"] == pytest.approx((-0.1 - 0.2) / 2)
    beside = [pairs["ARF"][name] for name in ("error", "theirs")]
    assert beside == pytest.approx([(0.2 + 0.1) / 2, 0.3])
    assert pairs["no change"]["error"] == pytest.approx((0.3 + 0.1) / 2)


def test_of_models_that_tie_the_baseline_is_named():
    errors = {"Tracker": {"steel": 0.2}, "PA": {"steel": 0.1}, "majority": {"steel": 0.1}}
    (lost,) = Standings(rows(errors)).losses()
    assert lost["rival"] == "majority"


def test_delays_are_compared_after_the_first_labels():
    windows = [
        {"start": 0, "rows": 900, "unpredicted": 900, "error": None},
        {"start": 900, "rows": 100, "unpredicted": 50, "error": 1.0},
        {"start": 1000, "rows": 100, "unpredicted": 0, "error": 0.5},
        {"start": 1100, "rows": 50, "unpredicted": 25, "error": 0.2},
    ]
    record = {"delay": "100", "windows": windows}
    assert error_after_delay(record) == pytest.approx((50 + 5 + 25) / 150)  # none given is wrong
    silent = [{"start": 1000, "rows": 9, "unpredicted": 9, "error": None}]
    assert error_after_delay({**record, "windows": silent}) == 1.0
    assert error_after_delay({**record, "delay": None}) is None
    assert error_after_delay({**record, "windows": windows[:2]}) is None
    runs = rows({"Tracker": {"spam": 0.1}, "PA": {"spam": 0.2}, "ARF": {"spam": 0.1}}, "100")
    for run, error in zip(runs, (0.44, 0.2, 0.1), strict=True):
        run["error_after_delay"] = error
    runs[2]["status"] = "time limit"
    standings = Standings(runs)
    assert standings.error("spam", "ARF", "100") is None
    (lost,) = standings.losses()
    assert (lost["rival"], lost["theirs"]) == ("PA", 0.2)
    assert lost["gap"] == pytest.approx(0.24)
    run = {"rows": 8, "unpredicted": 3, "mistakes": 1, "error": 0.2}
    assert error_of_all(run) == 0.5  # 1 of 5 was wrong, and 3 were not given
    assert error_of_all({**run, "unpredicted": 8, "mistakes": 0, "error": None}) == 1.0
    assert error_of_all({"rows": 0, "error": None}) is None


def test_runs_whose_time_was_taken_elsewhere_have_no_cost():
    names, streams = ("Tracker", "LBP", "PA"), ("spam", "a9a", "letter", "weather")
    records = rows({name: dict.fromkeys(streams, 0.1) for name in names})
    for record in records:
        if record["model"] != "Tracker" and record["stream"] == "weather":
            record["microseconds"] = None
    streams, costs = Standings(records).costs("real")
    assert streams == ["a9a", "letter", "spam"]
    assert [row["model"] for row in costs] == ["Tracker", "LBP", "PA"]
    for record in records:
        record["microseconds"] = None
    assert Standings(records).costs("real") == ([], [])
    own = KIND._replace(tables={"runs": TableSpec(lambda results: results.records)})
    assert not Results(own, records, {}, {}, 1.0).figures


def test_costs_are_of_three_streams_and_more_that_all_have_ended_on():
    three, boards = ("spam", "a9a", "letter"), ("checkerboard", "checkerboard noise")
    errors = {
        "Tracker": {"spam": 0.1, "a9a": 0.2, "letter": 0.3, "weather": 0.3},
        "LBP": {"spam": 0.2, "a9a": 0.3, "letter": 0.1, "weather": 0.1},
        "PA": dict.fromkeys(three, 0.1),
        "ARF": dict.fromkeys(three, 0.15),
    }
    for model, one in errors.items():
        errors[model] = one | dict.fromkeys(boards, 0.1)
    records = rows(errors)
    records[0]["microseconds"] = 16.0
    standings = Standings(records)
    streams, actual = standings.costs("real")
    assert streams == ["a9a", "letter", "spam"]
    assert {row["model"]: row["error"] for row in actual} == pytest.approx(
        {"PA": 0.1, "ARF": 0.15, "Tracker": 0.2, "LBP": 0.2}
    )
    times = {row["model"]: row["microseconds"] for row in actual}
    assert times["Tracker"] == pytest.approx(4.0)  # the geometric mean of 16, 2 and 2
    assert standings.costs("generated") == ([], [])  # of two streams
    two = Standings([row for row in records if row["model"] in {"Tracker", "LBP"}])
    assert two.costs("real") == ([], [])  # with one other model alone
    own = KIND._replace(tables={"runs": TableSpec(lambda results: results.records)})
    figure = Results(own, records, {}, {}, 1.0).plot("arena-cost")
    (panel,) = figure.axes
    assert {text.get_text() for text in panel.texts} == {"Tracker", "LBP", "PA", "ARF"}
    hollow = {line.get_label() for line in panel.lines if line.get_markerfacecolor() == "white"}
    assert hollow == {"PA", "ARF"}
    assert panel.get_xscale() == "log"


def test_the_figure_of_leads_by_hand():
    pytest.importorskip("matplotlib")
    records = rows(
        {"Tracker": {"steel": 0.1, "spheres": 0.3}, "PA": {"steel": 0.15, "spheres": 0.1}}
    )
    own = KIND._replace(tables={"runs": TableSpec(lambda results: results.records)})
    (panel,) = Results(own, records, {}, {}, 1.0).plot("arena-leads").axes
    names = [label.get_text() for label in panel.get_yticklabels()]
    assert names == ["steel (PA)", "spheres (PA)"]
    widths = [bar.get_width() for bar in panel.patches]
    assert widths == pytest.approx([5.0, -20.0])


def test_copies_of_a_source_count_once():
    errors = {
        "Tracker": {"rcv1 GCAT": 0.2, "rcv1 shifts": 0.2, "spam": 0.1, "checkerboard": 0.0},
        "LBP": {"rcv1 GCAT": 0.1, "rcv1 shifts": 0.4, "spam": 0.2, "checkerboard": 0.5},
        "PA": {"rcv1 GCAT": 0.1, "rcv1 shifts": 0.4, "spam": 0.2, "checkerboard": 0.5},
    }
    pairs = Standings(rows(errors)).pairs("real")
    assert [(pair["model"], pair["other"], pair["n"]) for pair in pairs] == [
        ("Tracker", "LBP", 2),
        ("Tracker", "PA", 2),
    ]
    for pair in pairs:
        assert pair["median_difference"] == pytest.approx((-0.05 - 0.1) / 2)


@pytest.mark.usefixtures("unrendered")
def test_what_there_is_not_is_refused(tmp_path, monkeypatch):
    with pytest.raises(ParameterError, match="no stream 'spa': did you mean 'spam'"):
        arena(tmp_path, streams=["spa"])
    with pytest.raises(ParameterError, match="no model 'Trackr'"):
        arena(tmp_path, models=["Trackr"])
    with pytest.raises(ParameterError, match="models is empty: choose among Tracker, "):
        arena(tmp_path, models=[])
    monkeypatch.delenv("DRIFT_DATA", raising=False)
    with pytest.warns(RuntimeWarning, match="weather is left out: set DRIFT_DATA"):
        assert arena(tmp_path, streams=["weather"]).rows("table") == []


@pytest.mark.usefixtures("undrawn")
def test_the_command(tmp_path):
    command = ["arena", "--quick", "--streams", "phishing", "--models", "Tracker", "--jobs", "1"]
    result = CliRunner().invoke(app, [*command, "--output", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert re.search(r"real +at once +1 +1 ", result.output)
    runs = (tmp_path / "runs.jsonl").read_bytes()
    (tmp_path / "standings.csv").unlink()
    again = CliRunner().invoke(app, [*command, "--tables", "--output", str(tmp_path)])
    assert again.exit_code == 0, again.output
    assert "\nreal,,1," in (tmp_path / "standings.csv").read_text()
    assert (tmp_path / "runs.jsonl").read_bytes() == runs
    late = CliRunner().invoke(app, [*command, "--tables", "--delays", "0"])
    assert (late.exit_code, "leave --delays out" in late.output) == (2, True)
    none = CliRunner().invoke(app, ["arena", "--tables", "--output", str(tmp_path / "new")])
    assert (none.exit_code, "has no run of these streams and models" in none.output) == (2, True)
