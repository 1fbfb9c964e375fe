"""The arena's pages say what its runs come to; expected values are by hand."""

import importlib
from dataclasses import replace
from pathlib import Path

import pytest

from drift.experiments.arena import arena
from drift.experiments.arena.streams import STREAMS
from drift.experiments.comparison import statistics
from tests.experiments.arena_rows import rows

for needed in ("jinja2", "matplotlib", "pyarrow"):
    pytest.importorskip(needed)
make = importlib.import_module("tools.arena_pages.make")


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(statistics, "_SAMPLES", 1)  # of the Bayesian test, which no page has


def page(runs, name="arena.md"):
    return make.page(name, make.Arena(runs))


def development_page(runs):
    return page(runs, "arena-development.md")


def errors_page(runs):
    return page(runs, "arena-errors.md")


def test_the_pages_are_what_their_program_writes():
    standings = make.Arena(make.kept())
    for name in make.PAGES:
        assert (make.DOCS / name).read_text("utf-8") == make.page(name, standings)
    named = []
    for name in make.OTHERS:
        text = (make.ROOT / name).read_text("utf-8")
        named += [match[2] for match in make.BLOCK.finditer(text)]
        assert make.renewed(text, standings) == text
    templates = Path(make.__file__).parent.glob("*-*.md")
    assert sorted([*named, "arena-development", "arena-errors"]) == sorted(
        t.stem for t in templates
    )


def test_rows_that_count_with_late_labels_by_hand():
    assert make.rows_after_delay(20_000) == 18_800  # the third window of 400 ends at row 1,200
    assert make.rows_after_delay(1_250) == 250
    assert make.rows_after_delay(1_066) == 64  # 47 of 50 windows of 21.32 rows end at row 1,002
    assert make.rows_after_delay(900) == 0


def test_losses_on_held_out_streams_come_first():
    errors = {"Tracker": {"steel": 0.2, "a9a": 0.3}, "PA": {"steel": 0.19, "a9a": 0.1}}
    late = rows({"Tracker": {"steel": 0.2}, "PA": {"steel": 0.1}}, "100")
    late[1]["error_after_delay"] = 0.05
    rest = development_page(rows(errors) + late)
    standing, lost = page(rows(errors) + late).split("## Where drift loses\n")
    standing, late = standing.split("## Labels that come late\n")
    assert "| 100 rows late | True | 1 | 1 | 0 | 0 | 0 | 1 | -20.00 |" in late
    assert "| steel | 10 | 20.00 | **19.00** | PA | -1.00 | 20.81 | - | 1 | 0 |" in standing
    flowing = " ".join(lost.split())
    assert "greatest of all is on `a9a`, by 20 points behind *PA*, with labels at once." in flowing
    assert "**Labels at once**, half a point or more: `steel` (1.00 points behind PA)." in flowing
    assert "| steel | 100 rows late | - | 25.00 | - | 5.00 | PA | **-20.00** | - |" in lost
    assert "| steel | at once" not in lost  # which the table above has
    assert "one mistake" not in late
    heading = (
        "| stream | at once | 100 late, `late=True` | 100 late, `False` | the best other where it"
    )
    assert heading in rest
    assert "| a9a | **-20.00** | - | - | PA | not known |" in rest


def test_both_settings_for_late_labels_by_hand():
    """Of three held-out streams one is level; of the losses of one setting the other mends one."""
    names = ("Tracker", "Tracker late=False", "PA")
    errors = {"flares": (0.3, 0.1, 0.2), "spheres": (0.2, 0.203, 0.1), "a9a": (0.1, 0.098, 0.3)}
    errors |= {"spam": (0.3, 0.29, 0.292), "sms": (0.25, 0.2504, 0.3), "rialto": (0.5, 0.9, 0.1)}
    once = rows({name: dict.fromkeys(errors, 0.2) for name in ("Tracker", "PA")})
    late = rows({name: dict.fromkeys(errors, 0.2) for name in names}, "1000")
    for run in late:
        run["error_after_delay"] = errors[run["stream"]][names.index(run["model"])]
    for run in once + late:
        run["rows"] = 1_065 if run["stream"] == "flares" else 19_999
    text = page(once + late)
    assert "| 1,000 rows late | True | 3 | 1 | 1 | 1 | 0 | 2 (1) | -10.00 |" in text
    assert "| 1,000 rows late | False | 3 | 1 | 2 | 2 | 0 | 1 | 4.96 |" in text
    flowing = " ".join(text.split())
    assert "`flares` (64). They may be chance: one mistake in 64 is 1.6 points." in flowing
    lost = text.split("## Where drift loses\n")[1]
    row = "| flares | 1,000 rows late | 64 | 30.00 | 10.00 | 20.00 | PA | **-10.00** | +10.00 |"
    assert row in lost
    assert "18,800 | 20.00 | 20.30 | 10.00 | PA | **-10.00** | **-10.30** |" in lost
    flowing = " ".join(lost.split())
    assert "by 40 points behind *PA*, with labels 1,000 rows late and `late=True`; with" in flowing
    assert "with `late=False` by 80." in flowing
    assert "| sms |" not in lost
    rest = development_page(once + late)
    assert "| spam | +0.00 | **-0.80** | +0.20 | PA |" in rest
    assert "| 1,000 rows late | False | real | 3 | 1 | 1 | 1 | 1 | 1 | 0.20 |" in rest
    changes = page(once + late, "which-late.md")
    assert "| 1 held-out tables | 1,000 rows late | 0 | 1 |  | 20.0, `flares` |" in changes
    assert "| 1 generated | 1,000 rows late | 1 | 0 | 0.3, `spheres` |  |" in changes
    assert "| 1 development tables | 1,000 rows late | 0 | 1 |  | 0.2, `a9a`\\* |" in changes
    assert "| 2 texts | 1,000 rows late | 0 | 1 |  | 1.0, `spam`\\* |" in changes
    assert "it gains 40.0 points" in " ".join(changes.split())


def test_rivals_that_ran_late_too_by_hand():
    """ARF has beaten the Tracker at once, and not run late; PA has on one of two streams."""
    at_once = {
        "Tracker": {"steel": 0.2, "sms": 0.2},
        "PA": {"steel": 0.3, "sms": 0.19},
        "majority": {"steel": 0.5, "sms": 0.5},
        "ARF": {"steel": 0.1},
    }
    late = {"Tracker": at_once["Tracker"], "PA": {"steel": 0.3}, "majority": at_once["majority"]}
    text = page(rows(at_once) + rows(late, "100"))
    first, second = text.split("## Labels that come late\n")
    assert "| all | 2 | 0 | 0 | 0 | 2 |" in first
    assert "| at once | - | 2 | 1-2 | 2 | 2 | 0 | 0 | 20.00 |" in second
    assert "| 100 rows late | True | 2 | 1-2 | 0 | 0 | 2 | 0 | 0.00 |" in second
    assert "On held-out streams with late labels these did not run: ARF. So" in second


def test_strong_rivals_by_hand():
    """Six streams on which ARF is worse by ever more, and one on which it has not run."""
    names = [name for name in STREAMS if STREAMS[name].heldout][:7]
    errors = {
        "Tracker": {name: 0.1 + 0.01 * i for i, name in enumerate(names)},
        "PA": dict.fromkeys(names, 0.5),
        "ARF": {name: 0.12 + 0.02 * i for i, name in enumerate(names[:6])},
    }
    records = rows(errors)
    for record in records:
        record["microseconds"] = 60.0 if record["model"] == "ARF" else 2.0
    text = page(records)
    assert "ahead of the best other on 7 of 7, on 7 of these by a point" in " ".join(text.split())
    assert "| all | 7 | 7 | 7 | 0 | 0 |" in text
    assert "has the strongest rivals" not in text
    section = text.split("## Against forests, bagging and boosting\n")[1].split("\n## ")[0]
    flowing = " ".join(section.split())
    # Seven differences are two of 2^7 signs; six are 2 of 2^6; the larger is not below the smaller.
    assert "| ARF | 6 | -4.50 | 6 | 0 | 0.031 | 0.031 | 30 (30-30) | - |" in section
    assert "The Tracker is significantly better than ARF. The same test of the 1 other" in flowing
    assert "better than 1 of them, worse than none, and the test leaves 0 open." in flowing
    # Four p-values: 2 of 2^7, 2 of 2^6, 2 of 2^3, 2 of 2^2; the second, tripled, is above 0.05.
    few = {"SRP": dict.fromkeys(names[:3], 0.2), "Tracker 100": dict.fromkeys(names[:2], 0.2)}
    flowing = " ".join(page(records + rows(few)).split())
    assert "corrected for the 4 models" in flowing
    assert "The same test of the 1 other" in flowing  # Tracker 100 is no rival
    assert "The test leaves open, with the number of streams: ARF (6) and SRP (3)." in flowing
    assert f"SRP ran on {names[0]}, {names[1]} and {names[2]} alone." in flowing
    assert "| SRP | 3 | -9.00 | 3 | 0 | 0.25 | - | 1 (1-1) | - |" in flowing


def test_streams_with_and_without_moas_ensembles_by_hand():
    """SRP is better than the Tracker on one stream; ARF has not ended there, SGBT nowhere."""
    names = [name for name in STREAMS if STREAMS[name].heldout][:4]
    errors = {
        "Tracker": dict.fromkeys(names, 0.2),
        "PA": dict.fromkeys(names, 0.23),
        "MOA ARF": {names[0]: 0.203, names[1]: 0.1},
        "MOA SRP": {names[0]: 0.21, names[1]: 0.18},
    }
    records = rows(errors)
    records[-3]["status"] = "time limit"  # ARF on the second
    text = page(records)
    flowing = " ".join(text.split())
    assert "alone the `Tracker` is ahead on 0, level on 1 and behind on 1." in flowing
    assert "| all | 4 | 2 | 2 | 1 | 1 |" in text  # of 3, 3, 0.3 and -2
    assert "| data sets | 4 | 2 | 2 | 1 | 1 |" in text
    assert "\n| generated |" not in text
    assert f"| {names[0]} | 10 | 20.00 | 20.30 | MOA ARF | +0.30 | 21.16 | - | 3 | 2 |" in text
    assert f"| {names[1]} | 10 | 20.00 | **18.00** | MOA SRP | -2.00 | 20.54 | - | 2 | 1 |" in text
    assert f"| {names[2]} | 10 | **20.00** | 23.00 | PA | +3.00 | 21.84 | - | 1 | 0 |" in text


def test_what_is_counted_is_what_is_printed():
    """15.004 and 14.496 % are half a point apart as printed, 16.004 and 15.006 % not quite one."""
    errors = {
        "Tracker": {"steel": 0.15004, "sms": 0.15006},
        "PA": {"steel": 0.14496, "sms": 0.16004},
    }
    text = page(rows(errors))
    assert "| steel | 10 | 15.00 | 14.50 | PA | -0.50 | 18.10 | - | 1 | 0 |" in text
    assert "| sms | 10 | 15.01 | 16.00 | PA | +0.99 | 18.56 | - | 1 | 0 |" in text
    assert "| all | 2 | 1 | 0 | 0 | 1 |" in text


def test_seeds_and_standard_errors_by_hand():
    """Two seeds of the Tracker; of 10,000 rows a lead of 2 points has at most 0.62 of error."""
    records = rows({"Tracker": {"steel": 0.17}, "PA": {"steel": 0.2}})
    records += [{**records[0], "seed": 1, "error": 0.19}]
    for record in records:
        record["rows"] = 10_000
    records[0]["seed"] = 0
    text = page(records)  # (0.18 + 0.20 - 0.02 ** 2) / 10,000 is 0.006161 ** 2
    row = "| steel | 10,001 | **18.00** | 20.00 | PA | +2.00 | 0.62 | 17.00-19.00 | 1 | 0 |"
    assert row in text
    flowing = " ".join(text.split())
    assert "1 of the 1 leads and 0 of the 0 losses exceed" in flowing
    assert "with one seed alone it is ahead on 1, and behind on 0." in flowing
    records[-1]["error"] = 0.196  # level with 20.00
    assert "with one seed alone it is ahead on 0 to 1, and" in " ".join(page(records).split())
    for record in records:
        record["rows"] = 900  # 0.0205, and half of the lead
    assert "0 of the 1 leads" in " ".join(page(records).split())


def test_the_run_without_a_seed_goes_once_there_are_several():
    (old,) = rows({"Tracker": {"steel": 0.1}})
    seeded = [{**old, "seed": seed, "error": 0.2} for seed in (0, 1)]
    assert [run["error"] for run in make.merged([old], seeded)] == [0.2, 0.2]
    late = {**old, "delay": "100"}
    assert len(make.merged([old, late], seeded)) == 3


def test_the_page_says_on_how_many_streams_models_ran():
    errors = {"Tracker": {"steel": 0.1, "sms": 0.1}, "PA": {"steel": 0.1, "sms": 0.1}}
    records = rows(errors | {"ARF": {"steel": 0.1, "sms": 0.1}}) + rows(errors, "100")
    records[4]["status"] = "failed"  # ARF on steel
    text = errors_page(records).split("## Which models ran where\n")[1]
    assert "Of 2 streams:\n\n| models | at once | 100 late |\n| --- | ---: | ---: |" in text
    assert "| Tracker, PA | 2 | 2 |\n| ARF | 1 | 0 |\n" in text


@pytest.mark.parametrize(
    ("medians", "said"),
    [
        ((-0.1, -0.2, -0.1), "The Tracker is significantly better than a, b and c."),
        ((-0.1, -0.2, None), "The Tracker is significantly better than a and b."),
        ((0.1, -0.1, None), "better than b. The Tracker is significantly worse than a."),
        ((None, None, None), "No difference is significant."),
    ],
)
def test_a_verdict_names_what_is_significant(medians, said):
    pairs = [
        {"other": name, "n": 7, "ties": 1, "holm": 0.5 if m is None else 0.04}
        | {"median_difference": m or 0.1}
        for name, m in zip("abc", medians, strict=True)
    ]
    tied = {**pairs[0], "other": "d", "ties": 2, "holm": 0.04}  # 2 / 2^5 at least
    pairs.append(tied)
    assert make.verdict(pairs).endswith(said)


def test_the_page_says_what_became_of_each_run():
    errors = {
        "Tracker": {"weather": 0.1, "phishing": 0.08},
        "SRP": {"weather": 0.3, "phishing": 0.3},
        "EFDT": {"weather": 0.3, "phishing": 0.07},
    }
    records = rows(errors)
    records[2]["status"], records[3]["status"] = "time limit", "failed"
    records[2]["message"] = "more than 600 s"
    del records[4]  # EFDT has not run on weather
    records += rows({"ARF": {"weather": 0.2}})
    records += rows({"Tracker": {"weather": 0.2, "phishing": 0.2}}, "100")
    held_out = rows({"Tracker": {"steel": 0.1}, "PA": {"steel": 0.1}})
    text = page(records + held_out)
    published = development_page(records + held_out)
    assert "| phishing | 1,250 | 8.65 | random patches | 8.00 |" in published
    text = errors_page(records)
    at_once, late = text.split("### Real development streams, labels 100 rows late")
    assert "| stream | rows | Tracker | best other | its name | of | ARF |\n" in at_once
    assert "| weather | 9 | **10.00** | 20.00 | ARF | 1 | 20.00 |" in at_once
    assert "| phishing | 9 | 8.00 | **7.00** | EFDT | 1 | - |" in at_once
    assert "| weather | - | 25.00 | - | - | 0 |\n" in late
    assert "| weather | SRP | at once | time limit | more than 600 s |" in late
    records += rows({"MOA ARF": {"weather": 0.4, "phishing": 0.5}})
    records[-2]["status"], records[-1]["status"] = "time limit", "failed"
    text = errors_page(records)
    assert "| weather | 9 | **10.00** | 20.00 | ARF | 1 | 20.00 | limit |" in text
    assert "| phishing | 9 | 8.00 | **7.00** | EFDT | 1 | - | failed |" in text


def test_runs_of_a_folder_take_the_place_of_equal_ones(tmp_path, monkeypatch):
    small = replace(STREAMS["phishing"].make(), examples=list(STREAMS["phishing"].make())[:60])
    monkeypatch.setitem(STREAMS, "phishing", STREAMS["phishing"]._replace(make=lambda: small))
    for model in ("Tracker", "PA"):
        arena(tmp_path / model, streams=["phishing"], models=[model], delays=[0], jobs=1)
    tracker, pa = (make.runs_in(tmp_path / model) for model in ("Tracker", "PA"))
    baselines = ["no change", "majority"]
    assert [run["model"] for run in tracker] == ["Tracker", *baselines]
    assert {run["rows"] for run in tracker} == {59}
    first = make.merged([], tracker)
    both = make.merged(first, pa)
    assert [run["model"] for run in both] == ["Tracker", *[run["model"] for run in pa]]
    assert all(run in both for run in first)  # the baselines' times and all
    again = [{**run, "microseconds": 7.0} for run in tracker]
    assert make.merged(both, again) == [both[0] | {"microseconds": 7.0}, *both[1:]]
    with pytest.raises(SystemExit, match="58 rows of phishing count, not 59"):
        make.merged(both, [{**run, "rows": 58} for run in tracker])
    with pytest.raises(SystemExit, match="has no runs of the arena"):
        make.runs_in(tmp_path)
