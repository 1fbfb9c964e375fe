"""A worker's settings by file, environment and options: precedence, refusals, secrets."""

import json
import re

import pytest

from drift.cli import _kafka, _named, _settings
from drift.cli._log import Secrets
from drift.cli._settings import ConsumeOptions
from drift.consumers import CheckpointFolder
from drift.errors import CheckpointError, ParameterError
from drift.kernels import RBF

pytest.importorskip("kafka")

from kafka.cluster import collect_hosts

from drift.consumers.client import topics  # after the check that there is a client

GIVEN = {"topic": "t", "group": "g", "checkpoints": "c"}


@pytest.fixture
def settings(tmp_path):
    """Read settings from the text of a TOML file; return them with the secrets found."""

    def read(toml="", environ=(), worker=GIVEN, model=(), bootstrap="h:1"):
        path = tmp_path / "worker.toml"
        path.write_text(toml, encoding="utf-8")
        secrets = Secrets()
        result = _settings.read(
            path, dict(environ), worker, {"class": "RBP", **dict(model)}, bootstrap, secrets
        )
        return result, secrets

    return read


def test_options_come_before_the_environment_and_that_before_the_file(settings):
    toml = """
        [model]
        class = "LBP"
        budget = 9
        kernel = {class = "Polynomial", degree = 2}
        [worker]
        group = "of the file"
        max_idle = 2
        log_json = true
        [labels]
        topic = "of the file, too"
        grace = "5m"
        silence = false
        after = "30d"
        [kafka]
        bootstrap_servers = ["f:1"]
        security_protocol = "SSL"
        client_id = "f"
        [consumer]
        session_timeout_ms = 7000
        [producer]
        compression_type = "lz4"
    """
    environ = {
        "DRIFT_KAFKA_CLIENT_ID": "e",
        "DRIFT_KAFKA_SESSION_TIMEOUT_MS": "8000",
        "DRIFT_KAFKA_LINGER_MS": "5",
    }
    given = {**GIVEN, "labels": "l", "after": 86_400.0}
    actual, _ = settings(toml, environ, given, model={"class": None, "budget": 5})
    assert actual.model == {
        "class": "LBP",
        "budget": 5,
        "kernel": {"class": "Polynomial", "degree": 2},
    }
    assert actual.worker == ConsumeOptions(
        **given, max_idle=2, log_json=True, grace=300.0, silence=False
    )
    assert actual.kafka == {
        "bootstrap_servers": "h:1",
        "security_protocol": "SSL",
        "client_id": "e",
    }
    assert actual.consumer == {"session_timeout_ms": 8000}
    assert actual.producer == {"compression_type": "lz4", "linger_ms": 5}


def test_decisions_and_answers_have_tables_of_their_own(settings):
    options = settings("[decision]\ncost = [1, 20]\n[answers]\nexplain = 3")[0].worker
    assert (options.goal.name, options.goal.value) == ("cost", pytest.approx(1 / 21))
    assert options.explain == 3
    assert settings()[0].worker.goal is None
    with pytest.raises(ParameterError, match="cost and rate are two goals"):
        settings("[decision]\ncost = [1, 20]\nrate = 0.1")


def test_durations_of_a_file_may_have_units(settings):
    actual, _ = settings('[worker]\ncheckpoint_seconds = "2m"\nmax_idle = "10 min"\nmax_jump = 5')
    options = actual.worker
    assert (options.checkpoint_seconds, options.max_idle, options.max_jump) == (120.0, 600.0, 5)


def test_the_test_brokers_variable_is_no_option(settings):
    actual, _ = settings(environ={"DRIFT_KAFKA": "x:1", "DRIFT_KAFKA_API_VERSION": "2.3"})
    assert actual.kafka == {"bootstrap_servers": "h:1", "api_version": (2, 3)}


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("[worke]", "no 'worke': did you mean 'worker'?"),
        ("worker = 1", "worker must be a table"),
        ("[worker]\nlog_jsn = true", "[worker] has no 'log_jsn': did you mean 'log_json'?"),
        (
            "[worker]\nlog_json = 'yes'",
            "--log-json (log_json in [worker]) must be true or false, not 'yes'",
        ),
        ("[worker]\nlabels = 'l'", "[worker] has no 'labels': write topic in [labels]"),
        *(
            (f"[worker]\n{key} = 1", f"[worker] has no '{key}': write {key} in [labels]")
            for key in ("max_age", "grace", "pending", "pending_bytes", "silence", "after")
        ),
        ("[worker]\ntimestamps = 'log'", "has no 'timestamps': write timestamps in [labels]"),
        ("[worker]\norphans = 'o'", "has no 'orphans': write orphans in [labels]"),
        ("[labels]\npredictions = 'p'", "[labels] has no 'predictions': write predictions in [wo"),
        ("[labels]\ngrac = 1", "[labels] has no 'grac': did you mean 'grace'?"),
        (
            "[labels]\ntopic = 'l'\nmax_age = '1 fortnight'",
            "--max-age (max_age in [labels]) must be a number of seconds, or as '30d'",
        ),
        (
            "[labels]\nmax_age = 5\ngrace = 1",
            "[labels] has max_age, grace and no topic: write the topic of the labels",
        ),
        (
            "[labels]\ntopic = 'l'\nsilence = false",
            "silence and after belong together",
        ),
        ("[codec]\nlable = 'a'", "[codec] has no 'lable': did you mean 'label'?"),
        ("[codec]\nclasses = 'spam'", "[codec] classes must be a list, each a label: a string, "),
        ("[codec]\nclasses = []", "classes must be a list of labels"),
        ("[codec]\nclasses = ['a', 0.5]", "classes must be a list, each a label: a string, "),
        ("[codec]\nlabels = ['a']", "[codec] labels must be a table, not ['a']"),
        ("[codec.labels]\nlable = 'y'", "[codec.labels] has no 'lable': did you mean 'label'?"),
        ("[codec.labels]\nid = 7", "[codec.labels] id must be a string, not 7"),
        ("[codec]\nrequire_label = 1", "[codec] require_label must be true or false, not 1"),
        ("[codec]\nmax_bytes = 0", "max_bytes must be at least 1, not 0"),
        ("[codec]\nclass = 'drift.kernels:RBF'", "RBF is no codec: derive it from drift.consumers"),
        ("[codec]\nclass = 'drift.consumers:Codec'", "Codec: Can't instantiate abstract class"),
        ("[codec]\nclass = 'drift.kernels:RBF'\nsize = 3", "[codec] class drift.kernels:RBF: "),
        ("[model]\nbudgt = 4", "RBP has no parameter 'budgt': did you mean 'budget'?"),
        (
            "[model]\ndelay = 100",
            "Tracker has no delay: write late = true; any delay is followed",
        ),
        ("[model]\nbudget = 0", "budget must be an integer of at least 1, not 0"),
        ("[model]\nkernel = {class = 'Polynomal'}", "no model or kernel 'Polynomal': did you mean"),
        ("[model]\nkernel = {class = 'drift.kernels.RBF'}", "write 'drift.kernels:RBF'"),
        ("[kafka]\nsasl_plain_pasword = 'x'", "did you mean 'sasl_plain_password'?"),
        ("[consumer]\ngroup_id = 'x'", "group_id is the worker's own"),
        ("[consumer]\nenable_auto_commit = true", "enable_auto_commit is the worker's own"),
        ("[producer]\nlingerms = 1", "did you mean 'linger_ms'?"),
        ("[producer]\nacks = 1", "[producer] acks is the worker's own: leave it out"),
        ("[kafka", "is not valid TOML"),
    ],
)
def test_what_there_is_not_is_refused_with_the_nearest_name(settings, toml, message):
    kind = "Tracker" if "delay" in toml else "RBP"
    toml = toml.replace("[model]", f"[model]\nclass = '{kind}'")
    with pytest.raises(ParameterError, match=re.escape(message)):
        settings(toml, model={"class": None})


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("security_protocol = 'ssl'", "cannot be 'ssl': did you mean 'SSL'?"),
        (
            "security_protocol = 'SASL_PLAINTXT'",
            "cannot be 'SASL_PLAINTXT': did you mean 'SASL_PLAINTEXT'?",
        ),
        ("security_protocol = 'TLS'", "cannot be 'TLS': choose among PLAINTEXT, SSL, SASL_PLAIN"),
        ("session_timeout_ms = 'abc'", "must be a whole number, not str"),
        ("session_timeout_ms = true", "must be a whole number, not bool"),
        ("check_crcs = 1", "must be true or false, not int"),
        ("client_id = 3", "must be a string, not int"),
        ("api_version = 2", "must be numbers, as [2, 3] in a file"),
        ("api_version = ['2']", "must be numbers, as [2, 3] in a file"),
        ("api_version = []", "must be numbers, as [2, 3] in a file"),
        ("socket_options = [1]", "must be a list of lists"),
        ("receive_buffer_bytes = 'few'", "must be a whole number, not str"),
        ("max_poll_records = 0", "must be at least 1"),
        ("request_timeout_ms = 0", "must be at least 1"),
        ("fetch_max_wait_ms = -1", "must be at least 0"),
        ("ssl_cafile = '/nonexistent.pem'", "/nonexistent.pem: No such file or directory"),
        ("ssl_keyfile = '.'", ".: Is a directory"),
        ("partition_assignment_strategy = ['x']", "takes classes or functions, of Python alone"),
    ],
)
def test_values_that_cannot_be_are_refused_by_their_name_in_file_and_environment(
    settings, option, message
):
    name, value = option.split(" = ")
    with pytest.raises(ParameterError, match=re.escape(message)) as refused:
        settings(f"[consumer]\n{option}")
    assert str(refused.value).startswith(f"[consumer] {name}")
    if value.startswith("'"):
        variable = f"DRIFT_KAFKA_{name.upper()}"
        with pytest.raises(ParameterError, match=variable) as refused:
            settings(environ={variable: value.strip("'")})
        assert message in str(refused.value)


@pytest.mark.parametrize("table", ["consumer", "producer"])
def test_every_option_takes_its_default(settings, table):
    defaults = topics.known_options()[table]
    # Given by --bootstrap here; the others are the worker's own.
    other = {"bootstrap_servers", "acks", "auto_offset_reset", "auto_commit_interval_ms"}
    other.add("enable_auto_commit")
    plain = {
        name: value
        for name, value in defaults.items()
        if type(value) in {bool, int, str} and name not in other
    }
    assert len(plain) > 20
    lines = [f"{name} = {json.dumps(value)}" for name, value in plain.items()]
    actual, _ = settings("\n".join([f"[{table}]", *lines]))
    assert getattr(actual, table) == plain


def test_a_variable_and_an_option_come_before_every_table_of_the_file(settings):
    toml = """
        [kafka]
        request_timeout_ms = 9999
        [consumer]
        request_timeout_ms = 11111
        bootstrap_servers = "c:1"
        [producer]
        request_timeout_ms = 'not looked at'
        linger_ms = 3
    """
    actual, _ = settings(toml, {"DRIFT_KAFKA_REQUEST_TIMEOUT_MS": "222"})
    assert actual.kafka == {"bootstrap_servers": "h:1", "request_timeout_ms": 222}
    assert (actual.consumer, actual.producer) == ({}, {"linger_ms": 3})


def test_clients_that_are_no_workers_have_the_consumers_and_the_producers_options(tmp_path):
    path = tmp_path / "w.toml"
    path.write_text("[kafka]\nclient_id = 'k'\n[consumer]\nfetch_min_bytes = 2\n")
    environ = {"DRIFT_KAFKA_COMPRESSION_TYPE": "gzip"}
    reading, sending = _settings.load_kafka(path, environ, "h:1", Secrets())
    every = {"bootstrap_servers": "h:1", "client_id": "k"}
    assert reading == {**every, "fetch_min_bytes": 2}
    assert sending == {**every, "compression_type": "gzip"}


@pytest.mark.parametrize(
    ("name", "value", "bounds"),
    [
        ("checkpoint_every", 0, "at least 1, not 0"),
        ("checkpoint_seconds", -1.0, "at least 0, not -1.0"),
        ("checkpoint_seconds", float("nan"), "at least 0, not nan"),
        ("keep", 0, "at least 1, not 0"),
        ("metrics_port", 65536, "from 0 to 65535, not 65536"),
    ],
)
def test_numbers_of_the_worker_that_cannot_be_are_refused(settings, name, value, bounds):
    option = f"--{name.replace('_', '-')} ({name} in [worker]) must be {bounds}"
    with pytest.raises(ParameterError, match=re.escape(option)):
        settings(worker={**GIVEN, name: value})
    with pytest.raises(ParameterError, match=re.escape(option)):
        settings(f"[worker]\n{name} = {value}")


def test_an_address_that_cannot_be_is_refused_where_it_stands(settings):
    said = "{} must be host:port, as kafka-1:9092, or several with commas between them"
    empty = "{} has an empty address, as behind a comma at its end: leave it out"
    for address in (
        "h:abc",
        ":9092",
        "h:0",
        "h:65536",
        "[::1",
        "a:1,b:x",
        "a b:1",
        "h:1/x",
        "fe80::1%eth0",
        "[fe80::1%]:9092",
        "[%eth0]:9092",
    ):
        with pytest.raises(ParameterError, match=re.escape(said.format("--bootstrap"))):
            settings(bootstrap=address)
        for given in (repr(address), repr(["h:1", *address.split(",")])):
            with pytest.raises(ParameterError, match=re.escape("[kafka] bootstrap_servers must")):
                settings(f"[kafka]\nbootstrap_servers = {given}", bootstrap=None)
        with pytest.raises(ParameterError, match="DRIFT_KAFKA_BOOTSTRAP_SERVERS must be host:port"):
            settings(environ={"DRIFT_KAFKA_BOOTSTRAP_SERVERS": address}, bootstrap=None)
    with pytest.raises(ParameterError, match=re.escape(said.format("--bootstrap"))):
        settings(bootstrap=" ")
    for address in ("a:1,", ",a:1", "a:1, ,b:2", ","):
        with pytest.raises(ParameterError, match=re.escape(empty.format("--bootstrap"))):
            settings(bootstrap=address)
        for given in (repr(address), repr(["h:1", *address.split(",")])):
            said = empty.format("[kafka] bootstrap_servers")
            with pytest.raises(ParameterError, match=re.escape(said)):
                settings(f"[kafka]\nbootstrap_servers = {given}", bootstrap=None)
    for address, read in (
        ("h", ("h", 9092)),
        ("h:1", ("h", 1)),
        ("a_b.c-d:65535", ("a_b.c-d", 65535)),
        ("10.0.0.1:9093", ("10.0.0.1", 9093)),
        ("[::1]:9093", ("::1", 9093)),
        ("[::1]", ("::1", 9092)),
        ("::1", ("::1", 9092)),
        ("[fe80::1%eth0]:9093", ("fe80::1%eth0", 9093)),
        ("SASL_SSL://[fe80::1%en-0.1]:9093", ("fe80::1%en-0.1", 9093)),
        ("SSL://h:1", ("h", 1)),
        ("b, a:1", ("b", 9092)),
    ):
        found, _ = settings(bootstrap=address)
        assert found.kafka["bootstrap_servers"] == address
        assert collect_hosts(address, randomize=False)[0][:2] == read


def test_a_file_may_have_the_mark_that_windows_writes_before_it(tmp_path):
    (tmp_path / "w.toml").write_bytes(b'\xef\xbb\xbf[worker]\ngroup = "g"\n')
    assert _settings.load(tmp_path / "w.toml", ["worker"]) == {"worker": {"group": "g"}}


def test_a_file_in_place_of_the_checkpoints_is_named(settings, tmp_path):
    (tmp_path / "c").write_text("")
    for folder in ("c", "c/below"):
        given = {**GIVEN, "checkpoints": str(tmp_path / folder)}
        with pytest.raises(CheckpointError, match=f"^{tmp_path}/c is a file: give another folder"):
            settings(worker=given, model={"class": None})


def test_settings_that_are_missing_are_named(settings):
    with pytest.raises(ParameterError, match="give --group and --checkpoints, or group"):
        settings(worker={"topic": "t"})
    with pytest.raises(ParameterError, match="say where the broker is"):
        settings(bootstrap=None)
    missing = "give the topic, --group and --checkpoints, or topic, group and .*; say where the bro"
    with pytest.raises(ParameterError, match=missing):
        settings(worker={}, bootstrap=None)
    with pytest.raises(ParameterError, match="bootstrap_servers must be host:port or a list"):
        settings("[kafka]\nbootstrap_servers = 9092", bootstrap=None)
    with pytest.raises(ParameterError, match="bootstrap_servers must be host:port or a list"):
        settings("[kafka]\nbootstrap_servers = [9092]", bootstrap=None)
    with pytest.raises(
        ParameterError, match="DRIFT_KAFKA_SESSION_TIMEOUT_MS must be a whole number"
    ):
        settings(environ={"DRIFT_KAFKA_SESSION_TIMEOUT_MS": "long"})


def test_the_model_is_that_of_the_checkpoints_and_else_the_tracker(settings, tmp_path):
    given = GIVEN | {"checkpoints": str(tmp_path / "c")}
    nothing = {"class": None}
    assert settings(worker=given, model=nothing)[0].model == {"class": "Tracker"}
    assert settings(worker=given, model=nothing | {"budget": 99})[0].model == {
        "class": "Tracker",
        "budget": 99,
    }
    table = {"class": "LBP", "budget": 7, "kernel": {"class": "RBF", "gamma": 0.5}}
    for topic in ("other", "t"):
        folder = CheckpointFolder(
            given["checkpoints"],
            {"topic": topic, **_named.configuration(table if topic == "t" else {"class": "RBP"})},
        )
        epoch, _ = folder.claim((topic, 0))
        folder.save((topic, 0), epoch, _named.build(table), {(topic, 0): 5})
    actual = settings(worker=given, model=nothing)[0].model
    assert _named.configuration(actual) == _named.configuration(table)


@pytest.mark.parametrize(
    ("model", "labels", "late"),
    [
        (None, None, None),
        (None, "l", True),
        ("Tracker", "l", True),
        ("Tracker(budget=5)", "l", True),
        ("Tracker(late=False)", "l", False),
        ("Tracker(late=True)", None, True),
        ("drift.models:Tracker", "l", None),  # which the worker tells
        ("LBP", "l", None),
    ],
)
def test_a_tracker_knows_that_labels_have_a_topic_of_their_own(settings, model, labels, late):
    given = GIVEN | {"labels": labels}
    actual = settings(worker=given, model={"class": model})[0].model
    assert actual.get("late") is late
    assert _named.configuration(actual).get("model.late") is late
    assert getattr(_named.build(actual), "late", None) is late


def test_a_codec_of_the_user_is_made_with_its_parameters(settings):
    actual, _ = settings("[codec]\nclass = 'drift.consumers:JsonCodec'\nlabel = 'y'")
    assert actual.codec.label == "y"
    actual, _ = settings("[codec]\nlabel = 'y'\none_hot = true\ndrop = ['a.b']")
    assert (actual.codec.one_hot, actual.codec.drop) == (True, ["a.b"])
    actual, _ = settings("[codec]\nid = 'order.id'\n[codec.labels]\nid = 'ref'\nlabel = 'y'")
    assert actual.codec.label_paths["id"] == "ref"
    assert actual.codec.decode_label(b'{"ref": 7, "y": 0}')[1:3] == (0, 7)
    with pytest.raises(ParameterError, match="drop must be a list, each a string, not 'a'"):
        settings("[codec]\ndrop = 'a'")


def test_a_class_of_anyones_takes_parameters_as_drifts_do():
    table = _named.parse("drift.models:LBP(budget=9, kernel=Linear())")
    assert table == {"class": "drift.models:LBP", "budget": 9, "kernel": {"class": "Linear"}}
    assert _named.build(table).budget == 9


@pytest.mark.parametrize(
    "text", ["RBP(5)", "RBP(budget=x())(1)", "import os", "a.b", "3", "", "a:b(5)", ":b"]
)
def test_a_model_is_data_and_never_code(text):
    with pytest.raises(ParameterError, match="write RBP"):
        _named.parse(text)


def test_a_wrapped_model_is_built_and_described():
    table = _named.parse("OneVsRest(model=LBP(budget=9, kernel=RBF(gamma=0.5)))")
    assert _named.build(table).model.kernel.gamma == 0.5
    entries = _named.configuration(table)
    assert entries["model"] == "OneVsRest"
    assert entries["model.model.budget"] == 9
    assert entries["model.model.kernel.gamma"] == 0.5


def test_the_default_kernel_is_the_same_configuration_when_it_is_named():
    kernel = {"class": "Polynomial", "degree": 4, "coef0": 1.0, "normalize": True}
    assert _named.configuration({"class": "RBP"}) == _named.configuration(
        {"class": "RBP", "budget": 100, "kernel": kernel}
    )


def test_a_kernel_of_rows_of_unit_norm_is_named_by_a_text():
    table = _named.parse("RBP(kernel=RBF(gamma=2.0, normalize='rows'))")
    assert _named.build(table).kernel == RBF(2.0, "rows")
    assert _named.configuration(table)["model.kernel.normalize"] == "rows"
    with pytest.raises(ParameterError, match="normalize='rows'"):
        _named.build(_named.parse("RBP(kernel=RBF(normalize=True))"))


def test_a_model_of_the_user_comes_from_a_function(tmp_path, monkeypatch):
    (tmp_path / "own_models.py").write_text(
        "from drift.models import RBP\ndef make(size=3):\n    return RBP(size)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    table = {**_named.parse("own_models:make"), "size": 4}
    assert _named.build(table).budget == 4
    assert _named.configuration(table) == {"model": "own_models:make", "model.size": 4}
    with pytest.raises(ParameterError, match="cannot be imported"):
        _named.build({"class": "own_models:mak"})


def test_a_secret_is_hidden_as_python_shows_it_and_as_a_number(settings):
    secret = "it's\\a 'quoted' ☃\n"  # noqa: S105
    _, secrets = settings(f"[kafka]\nsasl_plain_password = {json.dumps(secret)}")
    shown = secrets.hidden(f"{secret} {secret!r} { ({'sasl_plain_password': secret}) }")
    assert "quoted" not in shown
    assert shown.count("***") == 3
    secrets = Secrets()
    with pytest.raises(ParameterError, match="sasl_plain_password must be a string") as refused:
        _kafka.kafka_options({"kafka": {"sasl_plain_password": 20061}}, {}, "h:1", secrets)
    assert "20061" not in str(refused.value)
    assert secrets.hidden("20061") == "***"
