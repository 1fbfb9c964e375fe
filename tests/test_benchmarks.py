"""Names, bars, streams, corruptions and the ablation's edits are what they say."""

import json
import os
import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import __main__ as benchmarks
from benchmarks import report
from benchmarks.__main__ import DATA, PROGRAMS, SCENARIOS
from benchmarks.programs import ablation, corruption
from benchmarks.programs.ablation_changes import CHANGES
from benchmarks.scenarios import supports, threshold, threshold_sweep
from benchmarks.streams import _OTHERS, STREAMS, matrix_of
from drift.errors import ParameterError
from drift.experiments.arena.streams import STREAMS as ARENA
from drift.models._tracker import tables
from drift.models.registry import Entry
from drift.streams import Stream

ROOT = Path(__file__).resolve().parents[1]


def test_every_name_is_that_of_a_file_and_of_its_function():
    folder = ROOT / "benchmarks"
    texts = {path: path.read_text(encoding="utf-8") for path in folder.glob("[ps]*/[a-z]*.py")}
    have_main = {path.stem for path, text in texts.items() if "\ndef main(arguments: " in text}
    assert set(PROGRAMS) == have_main
    for path in folder.glob("scenarios/[a-z]*.py"):
        assert f"\ndef {path.stem}(*, quick: bool)" in texts[path]
    assert set(SCENARIOS) == {path.stem for path in folder.glob("scenarios/[a-z]*.py")}


def test_the_readme_says_what_every_name_is_for():
    text = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| [")]
    commands = re.findall(r"`([^`]*)`", "\n".join(rows))
    named = {command.removeprefix("python -m benchmarks ") for command in commands}
    assert PROGRAMS.keys() | SCENARIOS.keys() <= named


@pytest.mark.parametrize(("least", "missed"), [(0.9, False), (1.0, False), (1.1, True)])
def test_a_bar_that_the_median_misses_ends_with_1(tmp_path, monkeypatch, least, missed):
    one = report.bar("ratio", {"median": 1.0, "min": 0.0, "max": 9.0}, least=least)
    module = SimpleNamespace(cost=lambda *, quick: {"table": [{"a": quick}], "bars": [one]})
    monkeypatch.setattr(benchmarks, "import_module", lambda _: module)
    monkeypatch.setattr(report, "code_fingerprint", lambda: "0f")
    assert benchmarks.run("cost", tmp_path, quick=False) == missed
    assert benchmarks.run("cost", tmp_path, quick=True) == 0
    assert json.loads((tmp_path / "cost.json").read_text())["bars"][0]["reached"] == (not missed)
    assert report.bar("ratio", one["measured"], most=least)["reached"] == (least >= 1)


@pytest.mark.parametrize("name", ["start_up", "ablation"])
def test_without_its_data_a_benchmark_ends_with_what_it_needs(name, tmp_path, monkeypatch, capsys):
    def missing(*_, **__):
        raise ParameterError("rcv1: no data folder is given")

    module = SimpleNamespace(**{name: missing, "main": missing})
    monkeypatch.setattr(benchmarks, "import_module", lambda _: module)
    assert benchmarks.main([name, "--output", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"{name}: rcv1: no data folder is given\n")
    assert DATA[name] in said
    assert "datasets/README.md" in said
    assert not list(tmp_path.iterdir())


def test_every_name_that_needs_data_exists():
    assert PROGRAMS.keys() | SCENARIOS.keys() >= DATA.keys()


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_has_the_option_of_where_it_writes(name, capsys):
    with pytest.raises(SystemExit, match="0"):
        benchmarks.main([name, "--help"])
    assert "--output FOLDER" in capsys.readouterr().out


def test_too_few_examples_for_the_soak_are_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        benchmarks.main(["soak", "--examples", "99999"])
    assert "--examples: at least 100,000" in capsys.readouterr().err


def test_a_result_is_written_with_its_machine_and_load(tmp_path):
    report.write_result(tmp_path / "new", "cost", {"table": [{"a": 1}], "load": 3})
    written = json.loads((tmp_path / "new" / "cost.json").read_text())
    assert (written["table"], written["load"]) == ([{"a": 1}], 3)
    assert written["machine"]["cores"] == os.cpu_count()


def test_a_matrix_has_a_column_for_each_name_and_zeros_where_there_is_none():
    rows = Stream([({"b": 2.0, "a": 1.0}, True), ({}, False), ({"c": 3.0, "b": 4.0}, True)])
    matrix, labels = matrix_of(rows)
    assert matrix.toarray().tolist() == [[2, 1, 0], [0, 0, 0], [4, 0, 3]]
    assert labels.tolist() == [True, False, True]


def test_no_other_stream_has_a_name_of_the_arena():
    assert not set(_OTHERS) & set(ARENA)
    assert set(ablation.STREAMS) | set(threshold_sweep.STREAMS) <= set(STREAMS)


def test_constants_of_thresholds_are_chosen_on_no_stream_that_is_held_out():
    heldout = {name.split()[0] for name, entry in ARENA.items() if entry.heldout}
    assert not heldout & {name.split()[0] for name in threshold_sweep.STREAMS}


def test_thresholds_and_losses_by_hand(monkeypatch):
    """From 0.6 on 2 of 3 are right and 2 of 2 are found: F1 is 0.8, and one false alarm costs 1."""
    truth, shares = np.array([1, 1, 0, 0], dtype=bool), np.array([0.9, 0.6, 0.8, 0.1])
    assert threshold.hindsight(truth, shares) == (0.8, 1.0)
    many = np.tile(truth, 500), np.tile(shares, 500)
    monkeypatch.setattr(threshold_sweep, "predicted", lambda *_: many)
    f1, cost, recall, precision, rate, *hits = threshold_sweep.losses("any", 1)
    assert max(f1, cost, recall, precision, rate, *hits) < 0.1


def test_exponents_of_supports_by_hand():
    """A prediction takes as many us as there are supports, an update their square."""
    samples = [[(n - 1, n**2), (n, n**2 + 9), (n + 5, n**2 - 9)] for n in supports.SIZES]
    row = supports.row_of(Entry("Any", "any", 1, 1, 1, "a paper"), samples)
    assert (row["prediction: exponent"], row["update: exponent"]) == pytest.approx((1, 2))
    assert row["prediction, us at 250 / 500 / 1000"] == "250 / 500 / 1,000"
    assert not row["no slower"]
    assert supports.row_of(Entry("Any", "any", 1, 1, 2, "a paper"), samples)["no slower"]


def small():
    values = [{f"f{k}": (k + 1.0) * i for k in range(4)} for i in range(2_000)]
    rows = [(x | {"c0=a": 1.0}, i % 2) for i, x in enumerate(values)]
    return corruption.Stream(rows, "small")


@pytest.mark.parametrize("name", corruption.CORRUPTIONS)
def test_a_corruption_leaves_labels_and_the_stream_as_they_are(name):
    stream, before = small(), list(small())
    actual = corruption.corrupted(stream, name)
    assert [y for _, y in actual] == [y for _, y in stream]
    assert list(stream) == before
    assert (repr(list(actual)) == repr(before)) == (name == "clean")
    assert actual.sha256 == corruption.corrupted(stream, name).sha256


def test_corruptions_by_hand():
    def column(name, feature):
        return [x.get(feature) for x, _ in corruption.corrupted(small(), name)]

    assert column("all times 100", "f1")[::999] == [0.0, 1998.0, 399_600.0]
    assert column("other units", "f0")[-1] == 1.8 * 1999 + 32
    deviation = float(np.std(np.arange(2_000)))
    assert column("one jumps by 10", "f0") == column("clean", "f0")
    assert column("one jumps by 10", "f1")[1000] == 2000.0 + 10 * 2 * deviation
    assert column("half come late", "f0")[998:1001] == [None, None, 1000.0]
    assert column("absent 20 %", "f0").count(None) / 2_000 == pytest.approx(0.2, abs=0.03)
    assert sum(v != v for v in column("nan 5 %", "f0")) / 2_000 == pytest.approx(0.05, abs=0.02)


def test_a_cell_is_lost_beyond_a_twentieth():
    assert corruption.cell({"Tracker": 10.5, "LR": 10.0, "HAT": 12.0, "bad": None}) == {
        "Tracker": 10.5,
        "best": "LR",
        "its error": 10.0,
        "lost": False,
    }
    assert corruption.cell({"Tracker": 10.6, "LR": 10.0})["lost"]
    assert corruption.cell({"Tracker": None, "LR": 10.0})["lost"]


@pytest.mark.sources
def test_the_changes_of_the_ablation_fit_the_sources():
    for name, edits in CHANGES.items():
        texts = ablation.edited(edits, ROOT)  # ends where a text is not there once
        assert texts, name
        assert all(path.read_text(encoding="utf-8") != text for path, text in texts.items()), name


@pytest.mark.parametrize("more", [0, 1])
def test_the_ablation_silences_members_by_their_names(more, monkeypatch):
    """16 kernel members, 7 others, those of a new family, trees and trees with context."""
    families = dict(tables.FAMILIES)
    trees = {name: families.pop(name) for name in tables.OPTIONAL}
    families |= {"recency": ("recency",)} if more else {}
    monkeypatch.setattr(tables, "FAMILIES", families | trees)
    changes = runpy.run_path(ROOT / "benchmarks" / "programs" / "ablation_changes.py")["CHANGES"]
    for name, member in (("no trees without context", 23), ("no trees with context", 24)):
        [(_, _, text)] = changes[name]
        assert f"({1 << member + more}u >> " in text
    [(_, _, text)] = changes["no slow gradient descent"]
    assert f"({1 << 16}u >> " in text


def test_edits_of_one_file_add_up_and_one_that_does_not_fit_is_named(tmp_path):
    path = tmp_path / ablation.SOURCES / "tables.py"
    path.parent.mkdir(parents=True)
    path.write_text("A = 1\nB = 1\n", encoding="utf-8")
    both = [("tables.py", "A = 1", "A = 2"), ("tables.py", "B = 1", "B = 3")]
    assert list(ablation.edited(both, tmp_path).values()) == ["A = 2\nB = 3\n"]
    with pytest.raises(SystemExit, match=r"tables.py has this 2 times, not once: ' = 1'"):
        ablation.edited([("tables.py", " = 1", "")], tmp_path)


def ran(stream, seed, error, log_loss=0.5, us=10.0):
    return {"stream": stream, "seed": seed, "error": error, "log_loss": log_loss, "us": us}


def test_the_table_of_the_ablation():
    base = [ran("a", 0, 9.0), ran("a", 1, 11.0), ran("b", 0, 2.0), ran("b", 1, 2.0)]
    # Beside means of 10 and 2 those of 11 and 1.9: up by 10 %, down by 5 %.
    other = [ran("a", 0, 10.0, 0.6), ran("a", 1, 12.0, 0.6), ran("b", 0, 1.9, us=30.0)]
    head = [
        "| change | error, % | one stream left out, % | worst | best | log loss, % | time |",
        "|---|---|---|---|---|---|---|",
    ]
    assert ablation.table({"": base, "no trees": other, "your edit": other[:2]}).splitlines() == [
        "### Members",
        "",
        *head,
        "| no trees | +2.5 | -5.0 | a +10.0 | b -5.0 | +10.0 | 2.00 |",
        "",
        "### Your edit",
        "",
        *head,
        "| your edit | +10.0 |  | a +10.0 | a +10.0 | +20.0 | 1.00 |",
        "",
        "### Streams",
        "",
        "| stream | error, % | deviation between seeds, % of it |",
        "|---|---|---|",
        "| a | 10.00 | 14.1 |",
        "| b | 2.00 | 0.0 |",
        "",
        "Deviation of the mean between seeds: 7.1 %.",
    ]
    assert "With one seed" in ablation.table({"": base[::2]})


@pytest.mark.sources
def test_the_page_of_the_ablation_has_its_last_tables():
    tables = (ROOT / ".ci" / "results" / "ablation.md").read_text(encoding="utf-8").strip()
    assert tables in (ROOT / "docs" / "tracker_ablation.md").read_text(encoding="utf-8")


@pytest.mark.sources
def test_the_ablation_continues_where_it_was(tmp_path, monkeypatch):
    asked = []

    def run_build(_edits, wanted, _rows):
        asked.append(list(wanted))
        yield from (ran(*key, 1.0) for key in wanted)

    monkeypatch.setattr(ablation, "run_build", run_build)
    edits, path = [("tables.py", "A", "B")], tmp_path / "runs.jsonl"

    def run(*keys, edits=edits, examples="x"):
        wanted = dict.fromkeys(keys, examples)
        return [
            (r["stream"], r["seed"]) for r in ablation.runs_of("", edits, wanted, path, tmp_path)
        ]

    assert run(("a", 0)) == [("a", 0)]
    assert run(("a", 0), ("a", 1), ("b", 0)) == [("a", 0), ("a", 1), ("b", 0)]
    assert run(("b", 0), ("a", 1)) == [("b", 0), ("a", 1)]
    assert run(("a", 0), edits=[]) == [("a", 0)]  # of other sources
    assert run(("a", 0), edits=[], examples="y") == [("a", 0)]  # of other examples
    assert asked == [[("a", 0)], [("a", 1), ("b", 0)], [("a", 0)], [("a", 0)]]
    marks = [ablation.fingerprint(edits)] * 3 + [ablation.fingerprint([])] * 2
    assert [one["sources"] for one in ablation.runs_in(path)] == marks
    with path.open("a", encoding="utf-8") as file:
        file.write('{"stream": "a"')  # a run that was killed amid its line
    ablation.drop_old(path, {marks[0], "another"})
    assert [json.loads(line)["sources"] for line in path.read_text().splitlines()] == marks[:3]
    ablation.drop_old(path, {"another"})
    assert not path.exists()
