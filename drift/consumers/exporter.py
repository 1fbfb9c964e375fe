"""What a worker counts, as Prometheus reads it.

========================================  =======  ================================================
name in Prometheus                        type     what it is
========================================  =======  ================================================
``drift_examples_total``                  counter  examples predicted and learnt
``drift_unlabelled_total``                counter  examples predicted that had no label by then
``drift_mistakes_total``                  counter  examples learnt whose prediction was wrong
``drift_windowed_error``                  gauge    share of mistakes, from 0 to 1
``drift_windowed_recall``                 gauge    of the positive label, or over the classes
``drift_windowed_precision``              gauge    likewise
``drift_windowed_f1``                     gauge    likewise
``drift_windowed_log_loss``               gauge    mean log loss
``drift_windowed_roc_auc``                gauge    area under the ROC curve
``drift_windowed_calibration_error``      gauge    distance between probabilities and shares
``drift_windowed_base_rate``              gauge    share of the positive label, or the commonest
``drift_windowed_label_latency_seconds``  gauge    from features to label, by the logs
``drift_faded_error``                     gauge    the same over some 10,000 examples, faded
``drift_faded_recall``                    gauge    likewise
``drift_faded_precision``                 gauge    likewise
``drift_faded_f1``                        gauge    likewise
``drift_faded_log_loss``                  gauge    likewise
``drift_faded_base_rate``                 gauge    likewise
``drift_faded_label_latency_seconds``     gauge    likewise
``drift_alarms_total``                    counter  alarms, by one more label: measure
``drift_model_examples``                  gauge    examples that the model has ever learnt
``drift_supports``                        gauge    supports of the model
``drift_updates_total``                   counter  examples that changed the model
``drift_lag``                             gauge    messages between the next one and the end
``drift_learn_seconds_total``             counter  time in predicting and learning
``drift_jumps_total``                     counter  records whose timestamp was not believed
``drift_checkpoint_age_seconds``          gauge    since the newest checkpoint was written
``drift_dead_letters_total``              counter  messages sent to the dead letters
``drift_pending``                         gauge    features that wait for their label
``drift_orphans_total``                   counter  labels without features
``drift_duplicates_total``                counter  labels of what has one already
``drift_expired_total``                   counter  features without a label for `max_age`
``drift_evicted_total``                   counter  features given up as too many waited
``drift_silent_total``                    counter  features learnt as `silence`
``drift_corrected_total``                 counter  of those, learnt again by a label that differs
``drift_shadow_examples``                 gauge    examples that a shadow was compared on
``drift_shadow_mistakes``                 gauge    its mistakes in them
``drift_shadowed_mistakes``               gauge    those of the model
``drift_shadow_windowed_error``           gauge    the shadow's share of mistakes in the last 1,000
``drift_shadow_errors``                   gauge    predictions and updates of the shadow that raised
``drift_shadow_e_value``                  gauge    evidence that the shadow errs less; 1 is none
``drift_shadowed_e_value``                gauge    evidence that the model errs less
``drift_promotions``                      gauge    shadows that took the model's place
``drift_models``                          gauge    models of keys that there are
``drift_models_in_memory``                gauge    those of them in memory
``drift_model_loads_total``               counter  models of keys that were loaded
``drift_forced_steps_total``              counter  times that a partition which brought nothing was
                                                   waited for in vain, of the worker
``drift_poll_seconds_total``              counter  time in waiting for messages, of the worker
``drift_rebalances_total``                counter  assignments of partitions, of the worker
``drift_partitions``                      gauge    partitions that the worker learns
``drift_broker_connections``              gauge    brokers that the worker is connected to
``drift_checkpoint_failing``              gauge    1 where the last checkpoint could not be written
``drift_alive``, ``drift_ready``          gauge    1 where the probe of this name says ok
========================================  =======  ================================================

`drift.consumers.measures` says what is windowed, over the last 1,000 examples, and what is faded.
The last eight are the worker's, the three before of models of keys (`drift.consumers.keyed`), the
eight before of a shadow (`drift.consumers.shadow`), and the seven before those of labels that come
later, on a topic of their own. All but the last eight have the labels ``model`` (its class),
``group`` and ``topic``, and ``partition`` where keys have models. What is not known, as the
supports of a model that has none, is not exported.
Counters begin at 0 with the process, or where it takes the partition over, as Prometheus wants it:
a worker that goes back to a checkpoint must not count down. The log shows the counts that the
checkpoint keeps, of all that the model has ever learnt, without ``drift_`` and ``_total``, and what
is windowed.

The only module that imports prometheus-client, and it does so late: it is an extra.
"""

from __future__ import annotations

import threading
from socketserver import TCPServer, ThreadingMixIn
from typing import TYPE_CHECKING, Any, Self
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from drift.consumers.measures import FADED
from drift.errors import ParameterError, needing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from prometheus_client import CollectorRegistry, Metric

    from drift.consumers.metrics import WorkerMetrics

__all__ = ["Exporter"]


class Exporter:
    """Shows a worker's counts to Prometheus, as they are when it asks.

    Examples are learnt at no extra cost. It has a registry of its own, so that it shows drift's
    metrics and nothing of the process's.

    Parameters
    ----------
    worker
        The counts.
    port
        Port of ``/metrics``, ``/livez`` and ``/readyz``; None or 0 for none. Each worker of a
        machine needs its own. ``/livez`` is 503 where the worker has not polled for as long as its
        group waits, so that it is to be started again; ``/readyz`` also where it has no broker or
        no partition, or could not write its last checkpoint. Both say why.
    address
        Where the page is served. Whoever reaches it reads topics and error figures: leave it on
        127.0.0.1, or bind it to a network that is yours.

    Attributes
    ----------
    registry : prometheus_client.CollectorRegistry
        For a page or a push gateway of your own.

    Raises
    ------
    MissingExtraError
        If prometheus-client is not installed.
    ParameterError
        If the port is taken or out of range, or the address none of this machine's.

    Examples
    --------
    >>> from prometheus_client import generate_latest
    >>> from drift.consumers.metrics import WorkerMetrics
    >>> worker = WorkerMetrics()
    >>> with Exporter(worker) as exporter:
    ...     print(generate_latest(exporter.registry).decode())
    # HELP drift_poll_seconds_total Time in waiting for messages
    # TYPE drift_poll_seconds_total counter
    drift_poll_seconds_total 0.0
    ...
    """

    def __init__(
        self, worker: WorkerMetrics, port: int | None = None, address: str = "127.0.0.1"
    ) -> None:
        with needing("prometheus-client", "kafka"):
            from prometheus_client import CollectorRegistry, make_wsgi_app  # noqa: PLC0415
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
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
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
        if path not in {"/livez", "/readyz"}:
            start_response("404 Not Found", [])
            return [b"/metrics, /livez or /readyz\n"]
        problems = self._worker.problems()
        good = self._worker.is_alive() if path == "/livez" else not problems
        start_response("200 OK" if good else "503 Service Unavailable", [])
        return ["; ".join(problems if not good else ["ok"]).encode() + b"\n"]

    def collect(self) -> Iterator[Metric]:
        """Yield what prometheus-client asks for, in the thread that serves the page."""
        from prometheus_client.core import CounterMetricFamily as Counter  # noqa: PLC0415
        from prometheus_client.core import GaugeMetricFamily as Gauge  # noqa: PLC0415

        worker = self._worker
        for family, name, text, shown in (
            (Counter, "poll_seconds", "Time in waiting for messages", worker.poll_seconds),
            (Counter, "forced_steps", "Partitions waited for in vain", worker.forced_steps()),
            (Counter, "rebalances", "Assignments of partitions", worker.rebalances),
            (Gauge, "partitions", "Partitions that the worker learns", worker.partitions),
            (Gauge, "broker_connections", "Brokers that it is connected to", worker.connections()),
            (Gauge, "checkpoint_failing", "The last checkpoint failed", bool(worker.trouble)),
            (Gauge, "alive", "What /livez says", worker.is_alive()),
            (Gauge, "ready", "What /readyz says", not worker.problems()),
        ):
            yield family(f"drift_{name}", text, value=shown)
        apart = any(m.keyed for m in worker.models)  # each partition has its models of keys
        names = ["model", "group", "topic", *(["partition"] if apart else [])]
        rows = [
            (
                [m.model or "", m.group, m.topic, *([str(m.partition)] if apart else [])],
                {**m.values(), **m.faded(), "model_examples": m.examples, **m.counted()},
            )
            for m in worker.models
        ]
        for name, text in _HELP.items():
            family = Gauge if name in _GAUGES else Counter
            metric = family(f"drift_{name}", text, labels=names)
            for labels, values in rows:
                if (value := values.get(name)) is not None:
                    metric.add_metric(labels, value)
            yield metric
        alarms = Counter(
            "drift_alarms",
            "Rises of error or log loss",
            labels=[*names, "measure"],
        )
        for (labels, _), m in zip(rows, worker.models, strict=False):
            for measure, count in m.alarms_counted().items():
                alarms.add_metric([*labels, measure], count)
        yield alarms


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
    "error": "Share of mistakes",
    "recall": "Recall of the positive label, or mean over the classes",
    "precision": "Precision of the positive label, or mean over the classes",
    "f1": "F1 of the positive label, or mean over the classes",
    "log_loss": "Mean log loss",
    "roc_auc": "Area under the ROC curve",
    "calibration_error": "Mean distance between probabilities and shares",
    "base_rate": "Share of the positive label, or of the commonest",
    "label_latency_seconds": "Mean time from the features to the label",
}
_HELP = {
    "examples": "Examples predicted and learnt",
    "unlabelled": "Examples predicted that had no label by then",
    "mistakes": "Examples learnt whose prediction was wrong",
    **{f"windowed_{name}": f"{text}, of the last examples" for name, text in _MEASURES.items()},
    **{f"faded_{name}": f"{text}, faded" for name, text in _MEASURES.items() if name in FADED},
    "model_examples": "Examples that the model has ever learnt",
    "supports": "Supports of the model",
    "updates": "Examples that changed the model",
    "lag": "Messages between the next one and the end",
    "learn_seconds": "Time in predicting and learning",
    "checkpoint_age_seconds": "Time since the newest checkpoint was written",
    "jumps": "Records whose timestamp was not believed",
    "dead_letters": "Messages sent to the dead letters",
    "pending": "Features that wait for their label",
    "orphans": "Labels without features",
    "duplicates": "Labels of what has one already",
    "expired": "Features without a label for max_age",
    "evicted": "Features given up as too many waited",
    "silent": "Features learnt as silence",
    "corrected": "Features learnt again, by a label that differs from silence",
    "shadow_examples": "Examples that a shadow was compared on",
    "shadow_mistakes": "Mistakes of the shadow in them",
    "shadowed_mistakes": "Mistakes of the model in them",
    "shadow_windowed_error": "The shadow's share of mistakes in the last of them",
    "shadow_errors": "Predictions and updates of the shadow that raised",
    "shadow_e_value": "Evidence that the shadow errs less",
    "shadowed_e_value": "Evidence that the model errs less",
    "promotions": "Shadows that took the model's place",
    "models": "Models of keys that there are",
    "models_in_memory": "Models of keys in memory",
    "model_loads": "Models of keys that were loaded",
}
_GAUGES = {
    *("models", "models_in_memory"),
    *("model_examples", "supports", "lag", "checkpoint_age_seconds", "pending", "promotions"),
    *(name for name in _HELP if name.startswith(("windowed_", "faded_", "shadow"))),
}
