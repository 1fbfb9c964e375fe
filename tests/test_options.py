"""Options that are declared once, and what a file or a caller may give for them."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from drift._options import Checked, declared, from_table, from_tables, option
from drift.errors import ParameterError


@dataclass(frozen=True, kw_only=True)
class Job(Checked):
    topic: str = option("What to read.", argument=True)
    group: str = option("With whom.")
    start: str | None = option("Where.", None, choices=("earliest", "latest"), name="from")
    every: int = option("How often.", 5, least=1)
    rate: float = option("How fast.", 1.0, least=0, above=True)
    port: int | None = option("Which.", None, least=0, most=65535)
    sizes: tuple[int, ...] = option("How large.", (), least=1)
    folder: Path | None = option("Where to.", None)
    wait: float = option("How long.", 1.0, duration=True)
    loud: bool = option("Say so.", default=False)
    made: int = 3  # no option


GIVEN = {"topic": "t", "group": "g"}


def test_python_may_give_a_duration_as_a_text_as_a_file_may():
    assert Job(**GIVEN, wait="90 min").wait == 5400.0
    with pytest.raises(ParameterError, match="wait must be a number of seconds, or as '30d'"):
        Job(**GIVEN, wait="90")


def test_a_table_makes_the_dataclass_by_the_names_of_the_file():
    table = GIVEN | {"from": "latest", "sizes": [1, 2], "rate": 2, "folder": "x", "loud": True}
    job = from_table(Job, table, "[job]")
    assert (job.start, job.sizes, job.rate, job.loud) == ("latest", [1, 2], 2, True)
    assert job.folder == Path("x")
    assert (job.every, job.port) == (5, None)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"frm": "latest"}, "[job] has no 'frm': did you mean 'from'?"),
        ({"made": 4}, "[job] has no 'made': choose among topic, group, from"),
        ({"every": 1.0}, "[job] every must be a whole number, not 1.0"),
        ({"every": True}, "[job] every must be a whole number, not True"),
        ({"every": 0}, "[job] every must be at least 1, not 0"),
        ({"rate": 0}, "[job] rate must be above 0, not 0"),
        ({"rate": float("nan")}, "[job] rate must be above 0, not nan"),
        ({"rate": float("inf")}, "[job] rate must be a finite number, not inf"),
        ({"rate": "1"}, "[job] rate must be a number, not '1'"),
        ({"port": 65536}, "[job] port must be from 0 to 65535, not 65536"),
        ({"sizes": 3}, "[job] sizes must be a list, each a whole number, not 3"),
        ({"sizes": [3, "4"]}, "[job] sizes must be a list, each a whole number, not [3, '4']"),
        ({"sizes": [3, 0]}, "[job] sizes must be at least 1, not 0"),
        ({"loud": 1}, "[job] loud must be true or false, not 1"),
        ({"folder": 1}, "[job] folder must be a path in quotes, not 1"),
        ({"from": "latst"}, "[job] from cannot be 'latst': did you mean 'latest'?"),
        ({"group": ""}, "[job] group must not be empty"),
        ({"folder": ""}, "[job] folder must not be empty"),
    ],
)
def test_what_a_file_cannot_say_is_refused_by_its_name(table, message):
    with pytest.raises(ParameterError, match=re.escape(message)):
        from_table(Job, GIVEN | table, "[job]")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (GIVEN | {"every": 0}, "--every (every in [job]) must be at least 1, not 0"),
        ({"topic": "t"}, "give --group, or group in [job] of the --config file"),
        ({"group": "g"}, "give the topic, or topic in [job] of the --config file"),
        ({}, "give the topic and --group, or topic and group in [job] of the --config file"),
    ],
)
def test_what_the_command_line_may_give_too_is_named_both_ways(table, message):
    with pytest.raises(ParameterError, match=re.escape(message)):
        from_tables(Job, "job", {"job": table}, {})
    with pytest.raises(ParameterError, match=re.escape(message)):
        from_tables(Job, "job", {}, table)


@dataclass(frozen=True, kw_only=True)
class Joining(Job):
    labels: str | None = option("Whose labels.", None, table="labels", key="topic")
    grace: float = option("How long.", 1.0, table="labels", duration=True)
    silence: object | None = option("What silence says.", None, table="labels")


def test_an_option_may_stand_in_a_table_of_its_own_under_a_name_of_its_own():
    tables = {"job": GIVEN, "labels": {"topic": "l", "grace": "2m", "silence": False}}
    job = from_tables(Joining, "job", tables, {})
    assert (job.topic, job.labels, job.grace, job.silence) == ("t", "l", 120.0, False)
    job = from_tables(Joining, "job", tables, {"labels": "other", "grace": 3.0, "topic": "u"})
    assert (job.topic, job.labels, job.grace) == ("u", "other", 3.0)
    [labels] = [one for one in declared(Joining) if one.field == "labels"]
    assert (labels.flag, labels.table, labels.key) == ("--labels", "labels", "topic")


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"job": {"grace": 1.0}}, "[job] has no 'grace': write grace in [labels]"),
        ({"job": {"labels": "l"}}, "[job] has no 'labels': write topic in [labels]"),
        ({"labels": {"labels": "l"}}, "[labels] has no 'labels': write topic in [labels]"),
        ({"labels": {"group": "g"}}, "[labels] has no 'group': write group in [job]"),
        ({"labels": {"grac": 1.0}}, "[labels] has no 'grac': did you mean 'grace'?"),
        ({"labels": {"grace": "2 years"}}, "--grace (grace in [labels]) must be a number of sec"),
        ({"labels": {"silence": 0.5}}, "--silence (silence in [labels]) must be a label: a stri"),
    ],
)
def test_a_key_in_the_wrong_table_is_refused_with_the_right_one(tables, message):
    with pytest.raises(ParameterError, match=re.escape(message)):
        from_tables(Joining, "job", {"job": GIVEN, **tables}, {})


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(86_400.0, "1d"), (5400.0, "90m"), (0.5, "0.5s"), (0.0, "0s"), (7200.0, "2h"), (None, "")],
)
def test_the_help_shows_a_duration_in_its_largest_unit(seconds, shown):
    @dataclass
    class Waiting:
        long: float | None = option("How long.", seconds, duration=True)

    [one] = declared(Waiting)
    assert one.shown() == shown
    if seconds:
        assert one.read(shown) == seconds


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("true", True),
        ("false", False),
        ("7", 7),
        ("-1", -1),
        ("x", "x"),
        ("1.5", "1.5"),
        ("-", "-"),
    ],
)
def test_a_label_of_the_command_line_is_read_as_what_it_looks_like(text, label):
    [silence] = [one for one in declared(Joining) if one.field == "silence"]
    actual = silence.read(text)
    assert (actual, type(actual)) == (label, type(label))


def test_an_error_names_the_field():
    with pytest.raises(ParameterError, match="start cannot be 'now': choose among earliest"):
        Job(**GIVEN, start="now")
    assert Job(**GIVEN, every=np.int64(2), rate=np.float64(0.5), port=None).every == 2


@dataclass
class Bounded(Checked):
    """Options with each pair of bounds."""

    share: float = option("A share.", 0.5, least=0, above=True, most=1)
    level: float = option("A level.", 0.0, most=5)
    free: float = option("Any.", 0.0)


def test_bounds_are_said_as_they_are():
    assert [one.bounds() for one in declared(Bounded)] == ["above 0 and up to 1", "at most 5", ""]
    for given, message in (
        ({"share": 0}, "share must be above 0 and up to 1, not 0"),
        ({"share": 1.5}, "share must be above 0 and up to 1, not 1.5"),
        ({"level": 6}, "level must be at most 5, not 6"),
    ):
        with pytest.raises(ParameterError, match=re.escape(message)):
            Bounded(**given)
    Bounded(share=1, level=-1e9)


def test_what_is_declared_can_be_listed():
    actual = {one.field: one for one in declared(Job)}
    names = "topic group start every rate port sizes folder wait loud"
    assert list(actual) == names.split()
    assert (actual["start"].name, actual["start"].flag) == ("from", "--from")
    assert [actual[n].bounds() for n in ("every", "rate", "port")] == [
        *("at least 1", "above 0", "from 0 to 65535")
    ]
    assert (actual["sizes"].kind, actual["sizes"].many) == (int, True)
