import csv
import re

import numpy as np
import pytest
from click.testing import CliRunner

from drift.cli import app
from drift.errors import ParameterError
from drift.experiments.arena import ArenaResults, arena, experiment
from drift.experiments.arena.models import MODELS, contenders_of
from drift.experiments.arena.streams import ROWS, STREAMS

ARENA = {"streams": ["phishing", "segments"], "models": ["Tracker", "PA"], "jobs": 1}


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(experiment, "_QUICK_ROWS", 60)


def test_the_list_is_as_long_as_it_should_be():
    assert sum(bool(entry.source) for entry in STREAMS.values()) >= 15
    assert len(STREAMS) >= 20
    assert len(MODELS) >= 15
    assert all(len(family.grid) <= 8 for family in MODELS.values())
    assert not any(family.grid for name, family in MODELS.items() if name.startswith("Tracker"))


@pytest.mark.parametrize(
    "name", [name for name, entry in STREAMS.items() if not entry.source and "noise" not in name]
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


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("multiclass", [False, True])
def test_models_learn(name, multiclass):
    pairs = [({"a": float(i % 3), "b": 1.0}, i % 3 if multiclass else i % 3 > 0) for i in range(9)]
    for contender in contenders_of(name, multiclass=multiclass, sparse=False).values():
        model = contender.make()
        for x, y in pairs:
            model.learn_one(x, y)
        assert model.predict_one(pairs[0][0]) in {0, 1, 2}


def test_a_folder_is_gone_on_with_and_gives_the_same_tables(tmp_path):
    whole = arena(tmp_path / "whole", quick=True, **ARENA)
    part = tmp_path / "part"
    arena(part, quick=True, **ARENA | {"streams": ["segments"]})
    lines = (part / "runs.jsonl").read_text().splitlines(keepends=True)
    (part / "runs.jsonl").write_text("".join(lines[: len(lines) // 2]))
    resumed = arena(part, quick=True, **ARENA)
    assert isinstance(resumed, ArenaResults)
    assert len(resumed.records) == len(whole.records)
    for name in ("errors.csv", "pairs_real.csv", "pairs_generated.csv", "losses.csv"):
        assert (part / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


def test_tables_and_page(tmp_path):
    results = arena(tmp_path, quick=True, **ARENA)
    assert {row["delay"] for row in results.rows} == {None, "100", "1000"}
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
        assert results.error(stream, "PA, tuned") == min(settings)
    pairs = {row["other"]: row for row in results.pairs(real=True)}
    assert pairs["no change"]["n"] == 2
    assert pairs["no change"]["wins"] == 2
    page = (tmp_path / "arena.md").read_text()
    headings = re.findall("^## (.*)", page, re.MULTILINE)
    assert headings[0] == "Where drift loses"
    assert f"{100 * results.error('segments', 'Tracker'):.2f}" in page


def rows(errors, delay=None):
    """Records as the arena's, from errors by model and stream."""
    return [
        {"stream": stream, "model": model, "delay": delay, "status": "ok", "rows": 9}
        | {"unpredicted": 0, "error": error, "kappa": None, "log_loss": None}
        | {"microseconds": 2.0, "memory": 10}
        for model, own in errors.items()
        for stream, error in own.items()
    ]


def test_losses_by_hand():
    errors = {
        "Tracker": {"a9a": 0.2, "spam": 0.1, "weather": 0.3},
        "PA": {"a9a": 0.196, "spam": 0.05, "weather": 0.29},
        "ARF": {"a9a": 0.5, "spam": 0.09, "weather": 0.1},
        "PA @ 0": {"a9a": 0.01, "spam": 0.01, "weather": 0.01},
    }
    found = ArenaResults(rows(errors), 1.0).losses()
    assert [(row["stream"], row["rival"]) for row in found] == [("weather", "ARF"), ("spam", "PA")]
    assert [row["gap"] for row in found] == pytest.approx([0.2, 0.05])


def test_copies_of_a_source_count_once():
    errors = {
        "Tracker": {"rcv1 GCAT": 0.2, "rcv1 shifts": 0.2, "spam": 0.1, "checkerboard": 0.0},
        "PA": {"rcv1 GCAT": 0.1, "rcv1 shifts": 0.4, "spam": 0.2, "checkerboard": 0.5},
    }
    (pair,) = ArenaResults(rows(errors), 1.0).pairs(real=True)
    assert (pair["model"], pair["other"], pair["n"]) == ("Tracker", "PA", 2)
    assert pair["median_difference"] == pytest.approx((-0.05 - 0.1) / 2)


def test_what_there_is_not_is_refused(tmp_path, monkeypatch):
    with pytest.raises(ParameterError, match="no stream 'spa': did you mean 'spam'"):
        arena(tmp_path, streams=["spa"])
    with pytest.raises(ParameterError, match="no model 'Trackr'"):
        arena(tmp_path, models=["Trackr"])
    monkeypatch.delenv("DRIFT_DATA", raising=False)
    with pytest.warns(RuntimeWarning, match="weather is left out: set DRIFT_DATA"):
        assert arena(tmp_path, streams=["weather"]).rows == []


def test_the_command(tmp_path):
    command = ["arena", "--quick", "--streams", "phishing", "--models", "Tracker", "--jobs", "1"]
    result = CliRunner().invoke(app, [*command, "--output", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "Where drift loses" in result.output
    assert "arena.md" in result.output
