"""Predictions of a replica over HTTP.

docs/serving.md has the endpoints, docs/metrics.md the metrics.

Records are learnt and requests answered on one thread, in turns: no request waits for more than a
slice of learning, and no two threads meet in a model. Another thread waits for the broker.
"""

from __future__ import annotations

import asyncio
import logging
import math
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from drift.consumers import web_server
from drift.consumers._json import as_json
from drift.consumers.answers import by_text
from drift.consumers.openapi import openapi
from drift.errors import (
    DriftError,
    MessageError,
    UnavailableError,
    needing,
    one_line,
)

with needing("starlette or uvicorn", "serve"):
    from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
    from prometheus_client.core import CounterMetricFamily as Count
    from prometheus_client.core import GaugeMetricFamily as Gauge
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response
    from starlette.routing import Route

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

    import uvicorn
    from prometheus_client import Metric

    from drift.consumers.codec import Example
    from drift.consumers.options import ServiceOptions
    from drift.consumers.replica import Replica

__all__ = ["Service"]

log = logging.getLogger("drift.consumers")

_JSON = "application/json"

#: Seconds of learning between two looks at the requests, and of one wait for the broker.
_SLICE, _WAIT = 0.0005, 0.25
#: Seconds without a turn of the follower after which the process is taken for stuck.
_STUCK = 300.0
#: Labels of every metric.
_LABELS = "group", "topic"
#: Seconds between which times of answers are counted.
_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 5.0)


class _Refusal(Exception):  # noqa: N818 - it is an answer
    def __init__(self, status: int, error: str) -> None:
        super().__init__(error)
        self.status, self.error = status, error


class Service:
    """Answers HTTP requests from a replica, which learns between them.

    Parameters
    ----------
    replica
        The replica, which `run` closes.
    options
        Where it listens, and what it refuses.

    Attributes
    ----------
    app : starlette.applications.Starlette
        The application, for a server of your own: it needs `follow` beside it.

    Examples
    --------
    ::

        Service(replica, ServiceOptions(port=8080, max_staleness=30)).run()
    """

    def __init__(self, replica: Replica, options: ServiceOptions) -> None:
        self.replica = replica
        self.options = options
        codec = replica.codec
        self._decode = codec.decode_questions
        self._max_bytes = codec.max_bytes or 1 << 20
        self._api = as_json(openapi(replica.options.topic, options))
        self._stopping = False
        self._asked = 0  # predictions that are being answered
        self._turned = time.monotonic()  # when the follower last waited for records
        self._server: uvicorn.Server | None = None
        self._labels = [replica.options.group, replica.options.topic]
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self._predictions = Counter(
            "drift_serve_predictions", "Examples predicted", _LABELS, registry=self.registry
        ).labels(*self._labels)
        self._requests = Counter(
            "drift_serve_requests",
            "Requests for predictions, by the label code",
            [*_LABELS, "code"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "drift_serve_seconds",
            "Time from a request to its answer",
            _LABELS,
            registry=self.registry,
            buckets=_BUCKETS,
        ).labels(*self._labels)
        self.app = Starlette(
            routes=[
                Route("/predict", self._predict, methods=["POST"]),
                Route("/healthz", self._healthz),
                Route("/livez", self._healthz),
                Route("/readyz", self._readyz),
                Route("/metrics", self._metrics),
                Route("/openapi.json", self._openapi),
            ],
            exception_handlers={HTTPException: _no_such_page},
        )
        if options.hosts or web_server.is_local(options.host):
            known = {"localhost", *options.hosts}
            self.app.add_middleware(web_server.KnownHosts, known=known)

    # --- life ----------------------------------------------------------------------------------

    def run(self) -> None:
        """Serve until `stop`, SIGTERM or SIGINT.

        Raises
        ------
        ParameterError
            If the port is taken, or the address none of this machine's.
        DriftError
            As `Replica.fetch` does.
        """
        address = self.options.host, self.options.port
        try:
            with web_server.listening(*address) as listener, web_server.short_pauses():
                if threading.current_thread() is threading.main_thread():
                    for number in (signal.SIGTERM, signal.SIGINT):
                        signal.signal(number, self.stop)
                asyncio.run(self._serve(listener))
        finally:
            self.replica.close()

    def stop(self, *_signal: object) -> None:
        """Answer open requests, then end; callable from any thread."""
        self._stopping = True
        if self._server is not None:
            self._server.should_exit = True

    async def _serve(self, listener: socket.socket) -> None:
        self._server = web_server.server(self.app, self.options.timeout)
        self._server.should_exit = self._stopping
        serving = asyncio.create_task(self._server.serve([listener]))
        following = asyncio.create_task(self.follow())
        await asyncio.wait({serving, following}, return_when=asyncio.FIRST_COMPLETED)
        self.stop()
        await serving
        await following

    async def follow(self) -> None:
        """Have the replica learn, until `stop`: a slice at a time, requests in between."""
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1, "drift-fetch") as pool:
            while not self._stopping:
                await loop.run_in_executor(pool, self.replica.fetch, _WAIT)
                self._turned = time.monotonic()
                while self.replica.learn(_SLICE):  # noqa: ASYNC110 - what was asked is answered
                    await asyncio.sleep(0)

    # --- predictions ---------------------------------------------------------------------------

    async def _predict(self, request: Request) -> Response:
        started = time.perf_counter()
        headers = {}
        self._asked += 1
        try:
            self._check_request(request)
            status, body = 200, self._answers(await self._body(request))
        except _Refusal as refusal:
            status, body = refusal.status, as_json({"error": refusal.error, **self._model()})
            headers = {"Retry-After": "1"} if status == 503 else {}
        finally:
            self._asked -= 1
        self._requests.labels(*self._labels, status).inc()
        self._seconds.observe(time.perf_counter() - started)
        return Response(body, status, headers, _JSON)

    def _check_request(self, request: Request) -> None:
        if self._asked > web_server.CONNECTIONS:
            what = f"{web_server.CONNECTIONS} requests are being answered: ask again"
            raise _Refusal(503, what)
        # A browser sends no other site's JSON before it has asked whether it may.
        if request.headers.get("content-type", "").partition(";")[0].strip() != _JSON:
            raise _Refusal(415, f"send Content-Type: {_JSON}, as curl --json does")
        if problems := self._problems(is_ready=False):
            raise _Refusal(503, "; ".join(problems))

    async def _body(self, request: Request) -> bytes:
        """Return the body of a request, or refuse one that is too long or too slow."""
        body = bytearray()
        try:
            async with asyncio.timeout(self.options.timeout):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > self._max_bytes:
                        raise _Refusal(
                            413, f"the body has more than {self._max_bytes} bytes: send less"
                        )
        except TimeoutError:
            raise _Refusal(
                408, f"the body took longer than {self.options.timeout:g} s: send it at once"
            ) from None
        except ClientDisconnect:
            raise _Refusal(400, "the body ends before its end") from None
        return bytes(body)

    def _answers(self, body: bytes) -> bytes:
        examples, is_list = self._examples(body)
        answers = [self._answer(example, f"[{i}]." * is_list) for i, example in enumerate(examples)]
        self._predictions.inc(len(answers))
        content = {"predictions": answers} if is_list else answers[0]
        return as_json(content | self._model())

    def _examples(self, body: bytes) -> tuple[list[Example], bool]:
        try:
            examples, is_list = self._decode(body)
        except Exception as problem:  # noqa: BLE001 - a codec of the user's may raise anything
            raise _refusal(problem) from None
        if len(examples) > self.options.max_examples:
            raise _Refusal(
                413,
                f"value has {len(examples)} examples, more than the {self.options.max_examples} "
                "that are answered at once: send several requests",
            )
        return examples, is_list

    def _answer(self, example: Example, where: str) -> dict[str, Any]:
        count = len(example.features)
        if count > self.options.max_features:
            raise _Refusal(
                400,
                f"{where}features has {count} entries, more than the {self.options.max_features} "
                "that are read: send less, or raise max_features",
            )
        try:
            answer = self.replica.answer(example.features)
            beside = self.replica.beside(answer)
        except Exception as problem:  # noqa: BLE001 - models of the user's may raise anything
            raise _refusal(problem, where) from None
        return {
            "id": example.id,
            "predicted": answer.predicted,
            "score": answer.score,
            "probabilities": by_text(answer.chances),
            **beside,
        }

    def _model(self) -> dict[str, Any]:
        """Return the version of the model."""
        stale = self.replica.staleness
        shown = round(stale, 3) if math.isfinite(stale) else None
        return {"model": {**self.replica.version, "staleness_seconds": shown}}

    # --- what it says of itself ----------------------------------------------------------------

    def _problems(self, *, is_ready: bool) -> list[str]:
        """Return why there is no model, or a stale one."""
        stale, most = self.replica.staleness, self.options.max_staleness
        problems = []
        if self.replica.version["checkpoint"] is None:
            topic = self.replica.options.topic
            problems = [f"there is no checkpoint of {topic} yet: start a worker"]
            if self.replica.waits:
                problems = [f"the model of {topic} is not there yet"]
        elif most is not None and stale > most:
            problems = [f"the model is {stale:.3g} s behind the logs, more than {most:g}"]
        elif is_ready and math.isinf(stale):
            problems = ["the model has not caught up with the logs yet"]
        if self.replica.differs:
            problems.append(self.replica.differs)
        if problems:
            problems += filter(None, [self.replica.waits, self.replica.trouble])
        return problems

    async def _readyz(self, _: Request) -> Response:
        problems = self._problems(is_ready=True)
        return Response("; ".join(problems or ["ok"]) + "\n", 503 if problems else 200)

    async def _healthz(self, _: Request) -> Response:
        silent = time.monotonic() - self._turned
        if silent > _STUCK:
            return Response(f"nothing was read for {silent:.0f} s\n", 503)
        return Response("ok\n")

    async def _openapi(self, _: Request) -> Response:
        return Response(self._api, media_type="application/json")

    async def _metrics(self, _: Request) -> Response:
        return Response(generate_latest(self.registry), media_type="text/plain; version=0.0.4")

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics that prometheus-client does not count itself."""
        ready = not self._problems(is_ready=True)
        for family, name, text, value in (
            (
                Gauge,
                "staleness_seconds",
                "Time since the model had learnt all that the logs had",
                self.replica.staleness,
            ),
            (Gauge, "serve_ready", "1 if /readyz is 200", ready),
            (Count, "serve_checkpoints", "Checkpoints loaded", self.replica.starts),
        ):
            metric = family(f"drift_{name}", text, labels=_LABELS)
            metric.add_metric(self._labels, value)
            yield metric


def _no_such_page(request: Request, problem: Exception) -> Response:
    """Answer in JSON, too, where there is no such page, or not by that method."""
    assert isinstance(problem, HTTPException)  # noqa: S101 - which it is registered for
    what = f"{request.method} {request.url.path} is not served: see GET /openapi.json"
    body = as_json({"error": one_line(what)})
    return Response(body, problem.status_code, problem.headers, _JSON)


def _refusal(problem: Exception, where: str = "") -> _Refusal:
    """Return the response for a request that cannot be answered."""
    if isinstance(problem, UnavailableError):
        return _Refusal(503, one_line(str(problem)))
    if isinstance(problem, MessageError):
        return _Refusal(400, str(problem))
    if isinstance(problem, DriftError):
        return _Refusal(400, one_line(f"{where}features: {problem}"))
    log.warning("a request is refused: %s", one_line(repr(problem)))
    return _Refusal(400, one_line(f"{where}features: {type(problem).__name__}: {problem}"))
