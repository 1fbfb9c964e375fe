"""Streams that are fetched, from the first lines of what their sources serve."""

import gzip
import hashlib
import json
import re
import zipfile
from collections import Counter
from urllib.error import URLError

import pytest
from river import datasets

from drift.errors import ParameterError, UnavailableError
from drift.experiments.arena import arena
from drift.experiments.arena import streams as arena_streams
from drift.experiments.arena.streams import STREAMS

KEYSTROKE = """\
subject,sessionIndex,rep,H.period,DD.period.t,UD.period.t,H.t,DD.t.i,UD.t.i,H.i,DD.i.e,UD.i.e,H.e,\
DD.e.five,UD.e.five,H.five,DD.five.Shift.r,UD.five.Shift.r,H.Shift.r,DD.Shift.r.o,UD.Shift.r.o,H.o,\
DD.o.a,UD.o.a,H.a,DD.a.n,UD.a.n,H.n,DD.n.l,UD.n.l,H.l,DD.l.Return,UD.l.Return,H.Return
s002,1,1,0.1491,0.3979,0.2488,0.1069,0.1674,0.0605,0.1169,0.2212,0.1043,0.1417,1.1885,1.0468,\
0.1146,1.6055,1.4909,0.1067,0.7590,0.6523,0.1016,0.2136,0.1120,0.1349,0.1484,0.0135,0.0932,0.3515,\
0.2583,0.1338,0.3509,0.2171,0.0742
s003,1,2,0.1111,0.3451,0.2340,0.0694,0.1283,0.0589,0.0908,0.1357,0.0449,0.0829,1.1970,1.1141,\
0.0689,0.7822,0.7133,0.1570,0.7877,0.6307,0.1066,0.2041,0.0975,0.1412,0.1349,-0.0063,0.0932,0.1979,\
0.1047,0.1056,0.2633,0.1577,0.0763
"""
SMS = "ham\tOk lar... Joking wif u oni, ok\nspam\tFree entry in 2 a wkly comp\n"
INSECTS = "".join(
    ",".join(f"{(i + k) / 100}" for i in range(33)) + f",ae-aegypti-{sex}\n"
    for k, sex in enumerate(["female", "male", "female"])
)
COVERTYPE = "".join(
    ",".join(map(str, [*first, *(int(i == soil) for i in range(40)), label])) + "\n"
    for first, soil, label in [
        ((2596, 51, 3, 258, 0, 510, 221, 232, 148, 6279, 1, 0, 0, 0), 28, 5),
        ((2804, 139, 9, 268, 65, 3180, 234, 238, 135, 6121, 1, 0, 0, 0), 11, 2),
    ]
)
#: The first rows of ARFF files as openml.org serves them.
ELECTRICITY = """\
@relation electricity
@attribute date real
@attribute day {1,2,3,4,5,6,7}
@attribute nswprice real
@attribute class {UP,DOWN}
@data
0,2,0.056443,UP
0.00443,7,?,DOWN
"""
AIRLINES = """\
@relation airlines
@attribute Airline {CO,US,AA}
@attribute Flight numeric
@attribute Delay {0,1}
@data
CO,269,1
US,1558,0
"""


@pytest.fixture
def openml(tmp_path, monkeypatch):
    """Have scikit-learn find small files of openml.org's in its folder."""
    pytest.importorskip("sklearn")
    folder = tmp_path / "sklearn"
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(folder))

    def keep(number, arff, target):
        kinds = re.findall(r"^@attribute (\w+) (\S+)", arff, re.MULTILINE)
        features = [
            {
                "index": str(i),
                "name": name,
                "data_type": "nominal" if kind.startswith("{") else "numeric",
                "is_target": str(name == target).lower(),
                "is_ignore": "false",
                "is_row_identifier": "false",
                "number_of_missing_values": "0",
            }
            for i, (name, kind) in enumerate(kinds)
        ]
        path = f"data/v1/download/{number}/it.arff"
        about = {
            "data_set_description": {
                "id": str(number),
                "format": "ARFF",
                "status": "active",
                "description": "",
                "url": f"https://www.openml.org/{path}",
                "md5_checksum": hashlib.md5(arff.encode()).hexdigest(),  # noqa: S324
            }
        }
        api = "api/v1/json/data/"
        rows = {"data_qualities": {"quality": [{"name": "NumberOfInstances", "value": "2"}]}}
        for place, content in {
            f"{api}{number}": json.dumps(about),
            f"{api}features/{number}": json.dumps({"data_features": {"feature": features}}),
            f"{api}qualities/{number}": json.dumps(rows),
            path: arff,
        }.items():
            file = folder / "openml" / "openml.org" / f"{place}.gz"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(gzip.compress(content.encode()))

    return keep


@pytest.fixture
def river(tmp_path, monkeypatch):
    """Have River's data sets come from recorded files, and go to a folder of this test's."""
    monkeypatch.setenv("RIVER_DATA", str(tmp_path / "river"))

    def record(name, text, *, served=True, archive=False):
        kind = getattr(datasets, name)
        plain = kind.__init__
        recorded = tmp_path / (f"{name}.zip" if archive else name)
        if archive and served:
            with zipfile.ZipFile(recorded, "w") as file:
                file.writestr(kind().filename, text)
        elif served:
            recorded.write_text(text)

        def known(self, **parameters):
            plain(self, **parameters)
            self.url, self.size = recorded.as_uri(), len(text)

        monkeypatch.setattr(kind, "__init__", known)
        return recorded

    return record


def test_keystrokes(river):
    recorded = river("Keystroke", KEYSTROKE)
    stream = STREAMS["keystroke"].make()
    assert (stream.name, len(stream)) == ("keystroke", 2)
    (x, first), (_, second) = stream
    assert (first, second) == ("s002", "s003")
    assert (len(x), x["H.period"], x["H.Return"]) == (31, 0.1491, 0.0742)
    recorded.unlink()
    assert STREAMS["keystroke"].make().sha256 == stream.sha256  # it is fetched once


def test_insects(river, monkeypatch):
    river("Insects", INSECTS)
    monkeypatch.setattr("drift.experiments.arena.streams.ROWS", 2)
    stream = STREAMS["insects abrupt"].make()
    assert [y for _, y in stream] == ["ae-aegypti-female", "ae-aegypti-male"]
    assert [len(x) for x, _ in stream] == [33, 33]


def test_messages_are_counts_of_words(river):
    river("SMSSpam", SMS, archive=True)
    (x, ham), (_, spam) = STREAMS["sms"].make()
    assert (ham, spam) == (False, True)
    assert x == Counter(["ok", "lar", "joking", "wif", "oni", "ok"])


def test_covertype(tmp_path, monkeypatch):
    forests = pytest.importorskip("sklearn.datasets._covtype")
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "sklearn"))
    recorded = tmp_path / "covtype.data.gz"
    recorded.write_bytes(gzip.compress(COVERTYPE.encode()))
    check = hashlib.sha256(recorded.read_bytes()).hexdigest()
    served = forests.ARCHIVE._replace(url=recorded.as_uri(), checksum=check)
    monkeypatch.setattr(forests, "ARCHIVE", served)
    stream = STREAMS["covertype"].make()
    assert [y for _, y in stream] == [5, 2]
    x, _ = next(iter(stream))
    assert (len(x), x["Elevation"], x["Soil_Type_28"], x["Soil_Type_27"]) == (54, 2596, 1, 0)
    recorded.unlink()
    assert STREAMS["covertype"].make().sha256 == stream.sha256


def test_electricity_with_eight_features(openml):
    openml(151, ELECTRICITY, "class")
    stream = STREAMS["elecNormNew"].make()
    assert (stream.name, list(stream)) == (
        "elecNormNew",
        [
            ({"date": 0.0, "day": "2", "nswprice": 0.056443}, "UP"),
            ({"date": 0.00443, "day": "7"}, "DOWN"),  # a missing value is absent
        ],
    )


def test_airlines_have_texts(openml):
    openml(1169, AIRLINES, "Delay")
    expected = [({"Airline": "CO", "Flight": 269}, 1), ({"Airline": "US", "Flight": 1558}, 0)]
    assert list(STREAMS["airlines"].make()) == expected


def test_another_file_than_the_one_that_was_measured_is_refused(openml):
    openml(151, ELECTRICITY, "class")
    known = STREAMS["elecNormNew"].make().sha256
    entry = arena_streams._FETCHED["elecNormNew"]._replace(sha256=known)
    assert len(arena_streams._named("elecNormNew", entry)) == 2
    openml(151, ELECTRICITY.replace("0.056443", "0.056444"), "class")
    with pytest.raises(UnavailableError, match=f"elecNormNew is not what was .* not {known}"):
        arena_streams._named("elecNormNew", entry)


@pytest.mark.usefixtures("unrendered")
def test_a_folder_keeps_to_the_stream_that_it_has_runs_of(openml, tmp_path):
    electricity = {"streams": ["elecNormNew"], "models": ["PA"], "jobs": 1}
    openml(151, ELECTRICITY, "class")
    arena(tmp_path / "out", **electricity)
    openml(151, ELECTRICITY.replace("UP\n", "DOWN\n"), "class")
    with pytest.raises(ParameterError, match=r"has runs of another elecNormNew.*fetch it again"):
        arena(tmp_path / "out", **electricity)


@pytest.mark.usefixtures("unrendered")
def test_what_cannot_be_fetched_says_what_to_do(river, tmp_path, monkeypatch):
    river("Keystroke", KEYSTROKE, served=False)
    wanted = (
        r"Keystroke cannot be fetched \(<urlopen error .*\): put what is at file://.*Keystroke "
        r"into .*river/Keystroke, unpacked, as DSL-StrongPasswordData.csv of 737 bytes, "
        "or have RIVER_DATA name the folder"
    )
    with pytest.raises(UnavailableError, match=wanted):
        STREAMS["keystroke"].make()
    with pytest.warns(RuntimeWarning, match="keystroke is left out: Keystroke cannot be fetched"):
        assert arena(tmp_path / "out", streams=["keystroke"], quick=True).rows("table") == []
    forests = pytest.importorskip("sklearn.datasets")

    def unreachable(**_):
        raise URLError("no network")

    monkeypatch.setattr(forests, "fetch_covtype", unreachable)
    monkeypatch.setattr(forests, "fetch_openml", unreachable)
    for name, folder in (("covertype", "covertype"), ("nomao", "openml")):
        wanted = f"{name} cannot be fetched .*no network.*copy the folder {folder} of .*"
        with pytest.raises(UnavailableError, match=f"{wanted}have SCIKIT_LEARN_DATA name the fol"):
            STREAMS[name].make()


@pytest.mark.parametrize("archive", [False, True])
def test_what_came_instead_is_not_read(river, archive):
    """A page that says no, in place of the file."""
    name = "SMSSpam" if archive else "Keystroke"
    river(name, "", archive=archive).write_text("<html>Too many have downloaded this file")
    with pytest.raises(UnavailableError, match=f"{name} cannot be fetched"):
        STREAMS["sms" if archive else "keystroke"].make()


@pytest.mark.usefixtures("unrendered")
def test_they_run_only_by_name(tmp_path, monkeypatch):
    made = []
    for name, entry in STREAMS.items():
        unmade = entry._replace(make=lambda name=name: made.append(name) or refuse())
        monkeypatch.setitem(STREAMS, name, unmade)

    def refuse():
        raise ParameterError("not here")

    with pytest.warns(RuntimeWarning, match="left out"):
        arena(tmp_path)
    assert len(made) == 32
    assert not any(STREAMS[name].fetched for name in made)
