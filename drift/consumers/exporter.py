"""The only module that imports prometheus-client, and it does so late: it is an extra."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from drift.errors import MissingExtraError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

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
        Port of the page ``/metrics``; None or 0 for none. Each worker of a machine needs its own.
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
        try:
            from prometheus_client import CollectorRegistry, start_http_server  # noqa: PLC0415
        except ImportError:
            raise MissingExtraError("prometheus-client", "kafka") from None
        self.registry: CollectorRegistry = CollectorRegistry()
        self.registry.register(_Collector(worker))
        self._server = None
        if not port:
            return
        try:
            self._server, self._thread = start_http_server(port, address, self.registry)
        except (OSError, OverflowError) as problem:
            raise ParameterError(
                f"metrics cannot be served on {address}:{port} ({problem}): give each worker a "
                "free port and an address of this machine, or the port 0 for none"
            ) from None

    def close(self) -> None:
        """Stop serving; a second call does nothing."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
            self._server = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


_HELP = {
    "examples": "Examples predicted and learnt",
    "unlabelled": "Examples without a label, predicted only",
    "mistakes": "Examples learnt whose prediction was wrong",
    "windowed_error": "Share of mistakes in the last examples learnt",
    "model_examples": "Examples that the model has ever learnt",
    "supports": "Supports of the model",
    "updates": "Examples that changed the model",
    "lag": "Messages between the next one and the end",
    "learn_seconds": "Time in predicting and learning",
    "checkpoint_age_seconds": "Time since the newest checkpoint was written",
    "dead_letters": "Messages sent to the dead letters",
}
_GAUGES = {"windowed_error", "model_examples", "supports", "lag", "checkpoint_age_seconds"}


class _Collector:
    """What prometheus-client asks for the metrics, in the thread that serves the page."""

    def __init__(self, worker: WorkerMetrics) -> None:
        self.worker = worker

    def collect(self) -> Iterator[Metric]:
        from prometheus_client.core import (  # noqa: PLC0415
            CounterMetricFamily,
            GaugeMetricFamily,
        )

        worker = self.worker
        yield CounterMetricFamily(
            "drift_poll_seconds", "Time in waiting for messages", value=worker.poll_seconds
        )
        yield CounterMetricFamily(
            "drift_rebalances", "Assignments of partitions", value=worker.rebalances
        )
        rows = [
            (
                [m.topic, "all" if m.partition is None else str(m.partition)],
                {**m.values(), "model_examples": m.examples, "updates": None, **m.counted()},
            )
            for m in worker.models
        ]
        for name, text in _HELP.items():
            family = GaugeMetricFamily if name in _GAUGES else CounterMetricFamily
            metric = family(f"drift_{name}", text, labels=["topic", "partition"])
            for labels, values in rows:
                if (value := values[name]) is not None:
                    metric.add_metric(labels, value)
            yield metric
