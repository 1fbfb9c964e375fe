"""What a worker counts, as Prometheus reads it.

`docs/metrics.md` lists the metrics; `tools/metrics.py` writes it from the help texts here. What is
not known, such as the supports of a model that has none, is not exported.

A counter starts at 0 when the process starts or takes over the partitions, as Prometheus does not
expect one to fall when a worker returns to a checkpoint. The log has the counts of the checkpoint:
all that the model has ever learnt.

Needs the extra ``kafka``, for prometheus-client.
"""

from __future__ import annotations

import threading
from socketserver import TCPServer, ThreadingMixIn
from typing import TYPE_CHECKING, Any, Self
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from drift.consumers.measures import FADED
from drift.errors import ParameterError, needing

with needing("prometheus-client", "kafka"):
    from prometheus_client import CollectorRegistry, make_wsgi_app
    from prometheus_client.core import CounterMetricFamily as Counter
    from prometheus_client.core import GaugeMetricFamily as Gauge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from prometheus_client import Metric

    from drift.consumers.metrics import Metrics, WorkerMetrics

__all__ = ["Exporter"]


class Exporter:
    """Shows a worker's counts to Prometheus, as they are when it asks.

    Examples are learnt at no extra cost. It has its own registry, so that it shows drift's
    metrics and nothing of the process's.

    Parameters
    ----------
    worker
        The counts.
    port
        Port of ``/metrics``, ``/livez`` and ``/readyz``; None or 0 for none. Each worker of a
        machine needs its own. ``/livez``, or ``/healthz``, is 503 where the worker has not polled
        for as long as its group waits, so that it is to be started again; ``/readyz`` also where it
        has no broker or no partition, takes a model over, waits for a partition that stalls, or
        could not write its last checkpoint. Both say why.
    address
        Where the page is served. It shows topics and error figures: leave it on 127.0.0.1,
        or bind it to a private network.

    Attributes
    ----------
    registry : prometheus_client.CollectorRegistry
        For a page or a push gateway of your own.

    Raises
    ------
    ParameterError
        If the port is taken or out of range, or the address none of this machine's.

    Examples
    --------
    >>> from prometheus_client import generate_latest
    >>> from drift.consumers.metrics import WorkerMetrics
    >>> worker = WorkerMetrics("readers", "news")
    >>> with Exporter(worker) as exporter:
    ...     print(generate_latest(exporter.registry).decode())
    # HELP drift_poll_seconds_total Time spent waiting for messages
    # TYPE drift_poll_seconds_total counter
    drift_poll_seconds_total{group="readers",topic="news"} 0.0
    ...
    """

    def __init__(
        self, worker: WorkerMetrics, port: int | None = None, address: str = "127.0.0.1"
    ) -> None:
        self._worker = worker
        self.registry: CollectorRegistry = CollectorRegistry()
        self.registry.register(self)
        self._metrics: Callable[..., Iterable[bytes]] = make_wsgi_app(self.registry)
        self._server: WSGIServer | None = None
        if not port:
            return
        try:
            self._server = make_server(address, port, self._page, _Server, _Handler)
        except (OSError, OverflowError) as problem:
            raise ParameterError(
                f"metrics cannot be served on {address}:{port} ({problem}): give each worker a "
                "free port and an address of this machine, or the port 0 for none"
            ) from None
        # Seconds after which it sees that it is to end.
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving; a second call does nothing."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
            self._server = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _page(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path == "/metrics":
            return self._metrics(environ, start_response)
        if path not in {"/livez", "/healthz", "/readyz"}:
            start_response("404 Not Found", [])
            return [b"/metrics, /livez or /readyz\n"]
        problems = self._worker.problems()
        good = not problems if path == "/readyz" else self._worker.is_alive()
        start_response("200 OK" if good else "503 Service Unavailable", [])
        return ["; ".join(problems if not good else ["ok"]).encode() + b"\n"]

    def collect(self) -> Iterator[Metric]:
        """Yield what prometheus-client asks for, in the thread that serves the page."""
        worker = self._worker
        for family, name, text, shown in (
            (Counter, "poll_seconds", "Time spent waiting for messages", worker.poll_seconds),
            (
                Counter,
                "forced_steps",
                "Records learnt out of order, as max_idle was over",
                worker.forced_steps(),
            ),
            (
                Gauge,
                "held_seconds",
                "Time for which the next record has waited for another partition",
                worker.held,
            ),
            (
                Counter,
                "partitions_taken_over",
                "Partitions assigned and started, counted again each time",
                worker.taken_over,
            ),
            (
                Gauge,
                "partitions",
                "Partitions assigned to this worker; 0 on a standby",
                worker.partitions,
            ),
            (
                Gauge,
                "takeover_seconds",
                "Time for which a model has been taken over; 0 where none is",
                worker.takeover_seconds,
            ),
            (Counter, "reread", "Messages that takeovers have read again", worker.reread),
            (Gauge, "broker_connections", "Open connections to brokers", worker.connections()),
            (
                Gauge,
                "checkpoint_failing",
                "1 if the last checkpoint could not be written",
                bool(worker.trouble),
            ),
            (Gauge, "alive", "1 if /livez is 200", worker.is_alive()),
            (Gauge, "ready", "1 if /readyz is 200", not worker.problems()),
        ):
            metric = family(f"drift_{name}", text, labels=["group", "topic"])
            metric.add_metric([worker.group, worker.topic], shown)
            yield metric
        models = worker.models  # once, as they may go meanwhile
        apart = any(m.keyed for m in models)  # each partition has its models of keys
        names = ["model", "group", "topic", *(["partition"] if apart else [])]
        rows = [
            (
                [m.model or "", m.group, m.topic, *([str(m.partition)] if apart else [])],
                {**m.values(), **m.faded(), "model_examples": m.examples, **m.counted()},
            )
            for m in models
        ]
        for name, text in _HELP.items():
            family = Gauge if name in _GAUGES else Counter
            metric = family(f"drift_{name}", text, labels=names)
            for labels, values in rows:
                if (value := values.get(name)) is not None:
                    metric.add_metric(labels, value)
            yield metric
        yield from _lags(models)
        alarms = Counter(
            "drift_alarms",
            "Alarms on a rise of error or log loss",
            labels=[*names, "measure"],
        )
        for (labels, _), m in zip(rows, models, strict=True):
            for measure, count in m.alarms_counted().items():
                alarms.add_metric([*labels, measure], count)
        yield alarms


def _lags(models: Iterable[Metrics]) -> Iterator[Metric]:
    """Yield what waits in each partition, of labels, too."""
    names = ["model", "group", "topic", "partition"]
    messages = Gauge(
        "drift_lag", "Messages that are still to be learnt, at the last fetch", labels=names
    )
    seconds = Gauge(
        "drift_lag_seconds",
        "Time for which the oldest of these messages has waited, by its timestamp; 0 if all of "
        "them are behind an open transaction",
        labels=names,
    )
    for m in models:
        lags = m.lags  # once, as they are replaced meanwhile
        for place, waited in m.lag_seconds().items():
            if place in lags:
                labels = [m.model or "", m.group, place[0], str(place[1])]
                messages.add_metric(labels, lags[place][0])
                seconds.add_metric(labels, waited)
    yield messages
    yield seconds


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def server_bind(self) -> None:
        # Without the look for the name of the machine, which may take long.
        self.allow_reuse_address = True
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]
        self.setup_environ()


class _Handler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing: probes come every few seconds."""


_MEASURES = {
    "error": "Error rate",
    "recall": "Recall",
    "precision": "Precision",
    "f1": "F1",
    "log_loss": "Log loss",
    "roc_auc": "ROC AUC",
    "calibration_error": "Expected calibration error, ten bins",
    "base_rate": "Share of the positive label, or of the commonest class",
    "label_latency_seconds": "Mean time from features to label",
}
_HELP = {
    "examples": "Examples learnt",
    "unlabelled": "Examples predicted before they had a label",
    "mistakes": "Examples learnt whose prediction was wrong",
    "blind": "Mistakes before the first label, when predictions are null; in no measure but error",
    **{f"windowed_{name}": f"{text}, last 1,000 examples" for name, text in _MEASURES.items()},
    **{
        # Those of labels are faded only where one of them is positive.
        f"faded_{name}": f"{text.partition(', or')[0]}, exponentially weighted"
        for name, text in _MEASURES.items()
        if name in FADED
    },
    "model_examples": "Examples that the model has ever learnt, across restarts",
    "supports": "Support vectors of the model",
    "updates": "Examples that changed the model",
    "learn_seconds": "Time spent predicting and learning",
    "checkpoint_age_seconds": "Age of the newest checkpoint",
    "jumps": "Timestamps left out of account, as they jump by more than max_jump",
    "dead_letters": "Messages that could not be learnt, whether sent to a topic or lost",
    "skipped": "Messages left out by skip in [codec], and heartbeats of labels",
    "pending": "Late labels: features that wait for their label",
    "orphans": "Late labels: labels whose features did not come, or are gone",
    "duplicates": "Late labels: second labels of an id",
    "repeated": "Late labels: features not learnt, as their id came before",
    "expired": "Late labels: features dropped at max_age",
    "evicted": "Late labels: features dropped beyond pending or pending_bytes",
    "silent": "Late labels: features learnt with the label silence",
    "corrected": "Late labels: silent features learnt again, by a label that differs",
    "shadow_examples": "Shadow: examples that both models predicted",
    "shadow_mistakes": "Shadow: its mistakes on these",
    "shadow_model_mistakes": "Shadow: the model's mistakes on these",
    "shadow_windowed_error": "Shadow: its error, last 1,000 of these",
    "shadow_errors": "Shadow: exceptions that it raised",
    "shadow_e_value": "Shadow: evidence that it errs less than the model; 1 is none",
    "shadow_model_e_value": "Shadow: evidence that the model errs less; 1 is none",
    "promotions": "Shadow: promotions so far",
    "models": "Models of keys",
    "models_in_memory": "Models of keys in memory",
    "model_loads": "Models of keys loaded from the store",
}
_GAUGES = {
    *("models", "models_in_memory"),
    *("model_examples", "supports", "checkpoint_age_seconds", "pending", "promotions"),
    *(name for name in _HELP if name.startswith(("windowed_", "faded_", "shadow"))),
}
