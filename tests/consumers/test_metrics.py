"""Counts, the windowed error, what a checkpoint keeps, the log and Prometheus."""

import importlib
import json
import math
import pickle
import socket
import sys
import time
from types import SimpleNamespace
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from drift.consumers import exporter as module
from drift.consumers.answers import Answer
from drift.consumers.exporter import Exporter
from drift.consumers.metrics import Metrics, WorkerMetrics
from drift.errors import MissingExtraError, ParameterError

#: Model, group and topic of the first of the two models.
ONE = ("RBP", "readers", "news")
#: Group and topic of their worker.
WORKER = ("readers", "news")
LABELS = ("model", "group", "topic", "partition", "measure")

outcomes = st.lists(st.booleans(), max_size=40)
windows = st.integers(1, 12)


def counted(mistakes, window=1000):
    metrics = Metrics("news", 0, group="readers", window=window)
    for mistake in mistakes:
        metrics.learnt(mistake, Answer(False, {False: 0.75, True: 0.25}))
        metrics.learn_seconds += 0.5
    return metrics


@given(outcomes, windows)
def test_the_windowed_error_is_the_share_in_the_last_examples(mistakes, window):
    metrics = counted(mistakes, window)
    last = mistakes[-window:]
    assert metrics.examples == len(mistakes)
    assert metrics.mistakes == sum(mistakes)
    if last:
        assert metrics.windowed_error == sum(last) / len(last)
    else:
        assert math.isnan(metrics.windowed_error)


@given(outcomes, outcomes, windows)
def test_a_restored_state_continues_as_if_nothing_had_happened(before, after, window):
    whole = counted([*before, *after], window)
    whole.unlabelled, whole.dead_letters = 3, 2
    first = counted(before, window)
    first.unlabelled, first.dead_letters = 3, 2
    second = counted([True] * 20, window)
    second.restore(json.loads(json.dumps(first.state())))
    assert second.state() == first.state()
    for mistake in after:
        second.learnt(mistake, Answer(False, {False: 0.75, True: 0.25}))
    assert second.state() == whole.state()
    assert second.windowed_error == whole.windowed_error or not whole.examples


@given(outcomes, windows, windows)
def test_a_state_of_another_window_keeps_the_last_examples(mistakes, before, after):
    metrics = Metrics("news", 0, window=after)
    metrics.restore(counted(mistakes, before).state())
    last = mistakes[-min(before, after) :]
    assert metrics.measures.state()["of"] == [int(mistake != last[0]) for mistake in last]
    assert metrics.examples == len(mistakes)


@pytest.mark.parametrize(
    "change",
    [
        {"examples": "1"},
        {"mistakes": -1},
        {"dead_letters": True},
        {"measures": {}},
        {"alarmed": {"error": "1"}},
    ],
)
def test_a_state_of_something_else_is_refused_and_changes_nothing(change):
    metrics = counted([True, False])
    before = metrics.state()
    with pytest.raises(ParameterError, match=next(iter(change))):
        metrics.restore(before | change)
    with pytest.raises(ParameterError, match="examples"):
        metrics.restore({})
    assert metrics.state() == before


def test_the_window_is_checked():
    with pytest.raises(ParameterError, match="window must be at least 1, not 0"):
        Metrics("news", 0, window=0)


def test_the_age_of_a_checkpoint_follows_the_clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("drift.consumers.metrics.time", SimpleNamespace(time=lambda: now[0]))
    metrics = Metrics("news", 0)
    assert metrics.values()["checkpoint_age_seconds"] is None
    metrics.checkpointed()
    now[0] = 130.0
    assert metrics.values()["checkpoint_age_seconds"] == 30
    metrics.checkpointed(at=90.0)
    assert metrics.values()["checkpoint_age_seconds"] == 40
    metrics.checkpointed(at=1000.0)  # by a machine whose clock is ahead
    assert metrics.values()["checkpoint_age_seconds"] == 0


def test_metrics_survive_pickling():
    metrics = counted([True, False])
    assert pickle.loads(pickle.dumps(metrics)).state() == metrics.state()


# --- the log -----------------------------------------------------------------------------------


def test_the_line_for_the_log_leaves_out_what_is_not_known():
    assert Metrics("news").line() == (
        "topic=news partition=all examples=0 unlabelled=0 mistakes=0 blind=0 learn_seconds=0 "
        "jumps=0 dead_letters=0 skipped=0 alarms=0"
    )
    metrics = counted([True, False, False])
    metrics.supports, metrics.updates, metrics.lags = 10, 12, {("news", 0): (0, None)}
    assert metrics.line() == (
        "topic=news partition=0 examples=3 unlabelled=0 mistakes=1 blind=0 windowed_error=0.333333 "
        "windowed_recall=0 windowed_f1=0 windowed_base_rate=0.333333 windowed_log_loss=0.653886 "
        "windowed_roc_auc=0.5 windowed_calibration_error=0.083333 "
        "supports=10 updates=12 lag=0 lag_seconds=0 learn_seconds=1.5 jumps=0 dead_letters=0 "
        "skipped=0 alarms=0"
    )
    assert repr(metrics) == f"<Metrics {metrics.line()}>"


def test_the_log_in_json_has_what_is_known():
    metrics = counted([True, False, False])
    assert metrics.known() == {
        "topic": "news",
        "partition": 0,
        "examples": 3,
        "unlabelled": 0,
        "mistakes": 1,
        "blind": 0,
        "windowed_error": 0.333333,
        "windowed_recall": 0.0,
        "windowed_f1": 0.0,
        "windowed_base_rate": 0.333333,
        "windowed_log_loss": 0.653886,
        "windowed_roc_auc": 0.5,
        "windowed_calibration_error": 0.083333,
        "learn_seconds": 1.5,
        "jumps": 0,
        "dead_letters": 0,
        "skipped": 0,
        "alarms": 0,
    }


# --- Prometheus --------------------------------------------------------------------------------


class RBP:
    def __init__(self, n_supports, n_updates):
        self.n_supports, self.n_updates = n_supports, n_updates


def worker_of_two():
    worker = WorkerMetrics("readers", "news")
    worker.poll_seconds, worker.taken_over = 2.5, 3
    first = counted([True, False, False, False])
    first.counts_of(RBP(6, 20))
    first.counts_of(RBP(7, 28))
    first.lags = {("news", 0): (9, int(1000 * time.time()) - 90_000), ("labels", 2): (1, None)}
    first.dead_letters = 1
    first.checkpointed(at=time.time() - 60)
    worker.models = [first, Metrics('ne"w\\s\n')]
    return worker


def samples(text):
    return {
        (
            sample.name,
            *(sample.labels[n] for n in LABELS if n in sample.labels),
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_prometheus_gets_every_count():
    worker = worker_of_two()
    worker.connections, worker.trouble = lambda: 2, {("news", 0): "No space left on device"}
    worker.forced_steps, worker.models[0].jumps, worker.held = lambda: 4, 5, 12.5
    worker.models[0].alarmed["error"] = 2
    with Exporter(worker) as exporter:
        shown = samples(generate_latest(exporter.registry).decode())
    other = ("", "", 'ne"w\\s\n')
    assert math.isnan(shown.pop(("drift_windowed_error", *other)))
    assert shown == {
        ("drift_poll_seconds_total", *WORKER): 2.5,
        ("drift_partitions", *WORKER): 0,
        ("drift_broker_connections", *WORKER): 2,
        ("drift_checkpoint_failing", *WORKER): 1,
        ("drift_alive", *WORKER): 1,
        ("drift_ready", *WORKER): 0,
        ("drift_partitions_taken_over_total", *WORKER): 3,
        ("drift_forced_steps_total", *WORKER): 4,
        ("drift_held_seconds", *WORKER): 12.5,
        ("drift_takeover_seconds", *WORKER): 0,
        ("drift_reread_total", *WORKER): 0,
        ("drift_jumps_total", *ONE): 5,
        ("drift_jumps_total", *other): 0,
        ("drift_examples_total", *ONE): 4,
        ("drift_unlabelled_total", *ONE): 0,
        ("drift_mistakes_total", *ONE): 1,
        ("drift_blind_total", *ONE): 0,
        ("drift_windowed_error", *ONE): 0.25,
        ("drift_faded_error", *ONE): pytest.approx(0.25, rel=1e-3),
        ("drift_windowed_recall", *ONE): 0,
        ("drift_faded_recall", *ONE): 0,
        ("drift_windowed_f1", *ONE): 0,
        ("drift_faded_f1", *ONE): 0,
        ("drift_windowed_log_loss", *ONE): pytest.approx(0.562335),
        ("drift_faded_log_loss", *ONE): pytest.approx(0.562335, rel=1e-3),
        ("drift_windowed_roc_auc", *ONE): 0.5,
        ("drift_windowed_calibration_error", *ONE): 0,
        ("drift_windowed_base_rate", *ONE): 0.25,
        ("drift_faded_base_rate", *ONE): pytest.approx(0.25, rel=1e-3),
        ("drift_model_examples", *ONE): 4,
        ("drift_supports", *ONE): 7,
        ("drift_updates_total", *ONE): 8,
        ("drift_lag", *ONE, "0"): 9,
        ("drift_lag_seconds", *ONE, "0"): pytest.approx(90, abs=10),
        ("drift_lag", "RBP", "readers", "labels", "2"): 1,
        ("drift_lag_seconds", "RBP", "readers", "labels", "2"): 0,
        ("drift_learn_seconds_total", *ONE): 2,
        ("drift_checkpoint_age_seconds", *ONE): pytest.approx(60, abs=10),
        ("drift_dead_letters_total", *ONE): 1,
        ("drift_skipped_total", *ONE): 0,
        ("drift_alarms_total", *ONE, "error"): 2,
        ("drift_alarms_total", *ONE, "log_loss"): 0,
        ("drift_alarms_total", *other, "error"): 0,
        ("drift_alarms_total", *other, "log_loss"): 0,
        ("drift_examples_total", *other): 0,
        ("drift_unlabelled_total", *other): 0,
        ("drift_mistakes_total", *other): 0,
        ("drift_blind_total", *other): 0,
        ("drift_model_examples", *other): 0,
        ("drift_learn_seconds_total", *other): 0,
        ("drift_dead_letters_total", *other): 0,
        ("drift_skipped_total", *other): 0,
    }


def test_a_page_is_of_one_moment_while_the_worker_goes_on():
    """It is made on another thread, while models come and go, and their partitions."""

    class Growing(Metrics):
        def lag_seconds(self):
            found = super().lag_seconds()
            self.lags = {**self.lags, (self.topic, len(self.lags)): (3, None)}
            return found

    class Losing(WorkerMetrics):
        @property
        def models(self):
            self.times += 1
            return [one, other] if self.times == 1 else [other]

        @models.setter
        def models(self, _):
            self.times = 0

    one, other = (Growing(topic, group="readers") for topic in ("news", "sport"))
    one.alarmed["error"], other.alarmed["error"] = 2, 5
    with Exporter(Losing("readers", "news")) as exporter:
        shown = samples(generate_latest(exporter.registry).decode())
    for topic, count in (("news", 2), ("sport", 5)):
        assert shown["drift_alarms_total", "", "readers", topic, "error"] == count
        assert shown["drift_lag", "", "readers", topic, "0"] == 3


def test_counters_start_anew_where_a_model_goes_back_to_its_checkpoint():
    before = counted([True, False, True])
    metrics = Metrics("news", 0, group="readers")
    metrics.restore(before.state())
    metrics.learnt(True, Answer(None))
    metrics.counts_of(RBP(7, 28))
    worker = WorkerMetrics()
    worker.models = [metrics]
    with Exporter(worker) as exporter:
        shown = samples(generate_latest(exporter.registry).decode())
    assert shown["drift_examples_total", *ONE] == shown["drift_mistakes_total", *ONE]
    assert shown["drift_examples_total", *ONE] == 1
    assert shown["drift_model_examples", *ONE] == metrics.examples == 4


def test_nothing_of_the_process_is_shown_and_nothing_registered_globally():
    with Exporter(worker_of_two()) as exporter:
        assert all(family.name.startswith("drift_") for family in exporter.registry.collect())
        assert not any(family.name.startswith("drift_") for family in REGISTRY.collect())


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_the_page_is_served_on_this_machine_alone_and_follows_the_counts():
    worker = worker_of_two()
    port = free_port()
    with Exporter(worker, port) as exporter:
        assert exporter._server.server_address[0] == "127.0.0.1"
        page = f"http://127.0.0.1:{port}/metrics"
        worker.models[0].learnt(False, Answer(False))
        with urlopen(page) as answer:
            shown = samples(answer.read().decode())
        assert shown["drift_examples_total", *ONE] == 5
        worker.models = []
        with urlopen(page) as answer:
            assert set(samples(answer.read().decode())) == {
                ("drift_poll_seconds_total", *WORKER),
                ("drift_partitions_taken_over_total", *WORKER),
                ("drift_forced_steps_total", *WORKER),
                ("drift_held_seconds", *WORKER),
                ("drift_takeover_seconds", *WORKER),
                ("drift_reread_total", *WORKER),
                ("drift_partitions", *WORKER),
                ("drift_broker_connections", *WORKER),
                ("drift_checkpoint_failing", *WORKER),
                ("drift_alive", *WORKER),
                ("drift_ready", *WORKER),
            }
    exporter.close()
    with pytest.raises(OSError, match="refused"):
        urlopen(page)


def test_probes_say_what_is_wrong():
    worker, port = worker_of_two(), free_port()

    def probe(path):
        try:
            with urlopen(f"http://127.0.0.1:{port}/{path}") as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            with error:
                return error.code, error.read().decode()

    with Exporter(worker, port):
        assert probe("livez") == (200, "ok\n")
        assert probe("readyz") == (503, "no broker is connected; no partition is assigned\n")
        worker.connections = lambda: 1
        assert probe("readyz") == (503, "no partition is assigned\n")
        worker.partitions = 2
        assert probe("readyz") == (200, "ok\n")
        worker.trouble = {("t", 0): "t-0: No space left on device"}
        assert probe("readyz") == (503, "no checkpoint: t-0: No space left on device\n")
        worker.trouble, worker.waits = {}, ["waiting for t:1 at offset 5 of 9"]
        assert probe("readyz") == (503, "waiting for t:1 at offset 5 of 9\n")
        assert probe("livez") == (200, "ok\n")
        worker.waits, worker.polled = [], worker.polled - 400
        for path in ("livez", "healthz", "readyz"):
            status, text = probe(path)
            assert (status, text.split(" for ")[0]) == (503, "no poll")
        worker.silence = 500.0
        assert probe("livez") == probe("healthz") == probe("readyz") == (200, "ok\n")
        assert probe("")[0] == 404


def test_a_port_that_is_taken_is_named():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ParameterError, match=f"127.0.0.1:{port} .*give each worker"):
            Exporter(WorkerMetrics(), port)


@pytest.mark.parametrize(("port", "address"), [(70_000, "127.0.0.1"), (9, "256.0.0.1")])
def test_ports_and_addresses_that_there_are_not(port, address):
    with pytest.raises(ParameterError, match="metrics cannot be served"):
        Exporter(WorkerMetrics(), port, address)


@pytest.mark.parametrize("port", [None, 0])
def test_without_a_port_nothing_is_served(port):
    exporter = Exporter(WorkerMetrics(), port)
    assert exporter._server is None
    exporter.close()


def test_without_prometheus_client_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(MissingExtraError, match=r"\.\[kafka\]"):
        importlib.reload(module)


def test_mistakes_without_a_prediction_are_counted_apart():
    metrics = Metrics("t", 0)
    for predicted, label in ((None, True), (None, False), (True, False), (True, True)):
        metrics.learnt(label, Answer(predicted, {True: 0.75, False: 0.25} if predicted else {}))
    assert (metrics.mistakes, metrics.blind) == (3, 2)
    assert metrics.known()["windowed_error"] == 0.75
    assert metrics.known()["windowed_precision"] == 0.5
    again = Metrics("t", 0)
    again.restore({k: v for k, v in metrics.state().items() if k not in {"blind", "skipped"}})
    assert (again.mistakes, again.blind, again.skipped) == (3, 0, 0)
