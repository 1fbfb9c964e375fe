"""Predictions over HTTP: what is answered, what is refused, and what nobody should send."""

import asyncio
import json
import math
import socket
import threading
import time
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from urllib.request import urlopen

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from drift.consumers import Codec, JsonCodec, WorkerOptions
from drift.consumers.answers import Answer, answer_of
from drift.consumers.openapi import openapi
from drift.consumers.options import ServiceOptions
from drift.errors import ParameterError, UnavailableError
from drift.models import LBP, Tracker

pytest.importorskip("uvicorn")
pytest.importorskip("httpx")

import httpx

from drift.consumers import service as module
from drift.consumers import web_server
from drift.consumers.service import Service

OPTIONS = ServiceOptions(max_examples=3, max_features=5)
GOOD = b'{"features": {"a": 1.5}, "id": "a7"}'


class Replica:
    """A replica that has learnt all there is, of a model that does not change."""

    def __init__(self, model=None, codec=None):
        self.codec = codec or JsonCodec(max_bytes=300)
        self.options = WorkerOptions(topic="orders", group="g")
        self.model = model or LBP(9)
        if model is None:
            self.model.learn_one({"a": 1.0}, True)
        self.version = {"checkpoint": "3-17", "offsets": {"orders": {"0": 1200}}}
        self.staleness, self.trouble, self.differs = 0.25, None, None
        self.starts, self.waits = 1, None
        self.fetched, self.closed, self.problem = 0, False, None

    def answer(self, features):
        predicted, score, chances = answer_of(self.model, features, ticket=False)
        return Answer(predicted, chances, score=score)

    def beside(self, answer):
        return {}

    def fetch(self, seconds):
        self.fetched += 1
        if self.problem is not None:
            raise self.problem
        time.sleep(0.01)

    def learn(self, seconds):
        return False

    def close(self):
        self.closed = True


class Client:
    """Asks an application without a socket; what it raises is raised here."""

    def __init__(self, app):
        self.app = app

    def _ask(self, method, path, **more):
        async def ask():
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as one:
                return await one.request(method, path, **more)

        return asyncio.run(ask())

    def get(self, path):
        return self._ask("GET", path)

    def post(self, path, **more):
        return self._ask("POST", path, **{"headers": {"content-type": "application/json"}} | more)


def client(replica=None, options=OPTIONS):
    return Client(Service(replica or Replica(), options).app)


@pytest.fixture(scope="module")
def asked():
    """A client that is shared by what leaves nothing behind."""
    return client()


def refused(answer, status=400):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["model"]["checkpoint"] == "3-17"
    return answer.json()["error"]


# --- what is answered ----------------------------------------------------------------------------


def test_an_example_is_answered_with_the_version_of_the_model(asked):
    answer = asked.post("/predict", content=GOOD)
    assert answer.status_code == 200
    output = answer.json()
    chances, score = output.pop("probabilities"), output.pop("score")
    assert output == {
        "id": "a7",
        "predicted": True,
        "model": {
            "checkpoint": "3-17",
            "offsets": {"orders": {"0": 1200}},
            "staleness_seconds": 0.25,
        },
    }
    assert chances.keys() == {"true", "false"}
    assert sum(chances.values()) == pytest.approx(1)
    assert score > 0


def test_a_list_is_answered_by_a_list(asked):
    body = json.dumps([json.loads(GOOD), {"features": {"a": -1}}])
    output = asked.post("/predict", content=body).json()
    assert [(one["id"], one["predicted"]) for one in output["predictions"]] == [
        ("a7", True),
        (None, False),
    ]
    assert output["model"]["checkpoint"] == "3-17"
    assert asked.post("/predict", content=b"[]").json()["predictions"] == []


def test_a_body_is_what_a_message_is_and_its_label_is_not_looked_at():
    codec = JsonCodec(label="fraud", id="order.id", one_hot=True, require_label=True, drop=["note"])
    asked = client(Replica(Tracker(9), codec))
    body = {"order": {"id": 7, "sum": 3.5}, "card": "visa", "fraud": [], "note": [1]}
    assert asked.post("/predict", json=body).json()["id"] == 7
    assert codec.decode_questions(json.dumps(body).encode())[0][0].features == {
        "order.sum": 3.5,
        "card=visa": 1,
    }


def test_labels_and_probabilities_of_several_classes_and_of_none():
    model = Tracker(9, late=True)
    asked = client(Replica(model))
    output = asked.post("/predict", content=GOOD).json()
    assert (output["predicted"], output["probabilities"]) == (None, {})
    for label in ("new", "old", 3):
        model.learn_one({"a": 1.0}, label)
    output = asked.post("/predict", content=GOOD).json()
    assert set(output["probabilities"]) == {"new", "old", "3"}
    assert not len(model._core.tickets)


def test_what_numpy_predicts_is_answered_as_json_has_it():
    model = SimpleNamespace(
        predict_one=lambda x: np.bool_(x["a"] > 1),
        decision_function_one=lambda x: np.float32(x["a"]),
        predict_proba_one=lambda x: {np.bool_(True): np.float64(0.75), np.bool_(False): 0.25},
    )
    output = client(Replica(model)).post("/predict", content=GOOD).json()
    assert (output["predicted"], output["score"]) == (True, 1.5)
    assert output["probabilities"] == {"true": 0.75, "false": 0.25}


def test_a_codec_of_another_kind_reads_the_body_as_a_message():
    class Csv(Codec):
        def decode(self, value, headers=()):
            if b"?" in value:
                raise UnavailableError("the registry is away")
            return JsonCodec().decode(b'{"features": {"a": %s}}' % value)

    asked = client(Replica(codec=Csv()))
    assert asked.post("/predict", content=b"2.5").json()["predicted"] is True
    assert "value is no JSON" in refused(asked.post("/predict", content=b"x"))
    assert refused(asked.post("/predict", content=b"?"), 503) == "the registry is away"


# --- what is refused -----------------------------------------------------------------------------

REFUSED = {
    b"": "value is empty",
    b"{": "value is no JSON",
    b"\xff\xfe": "value is no JSON ('utf-8' codec",
    b"1": "value is the number 1, not an object",
    b"null": "value is null, not an object",
    b"[" * 70: "value is nested deeper than 64",
    b'{"features":' * 20: "value is no JSON",
    b"{}": "features is absent, not an object",
    b'{"features": []}': "features is an array",
    b'{"features": {"a": "1"}}': "features['a'] is a string: send numbers without quotes",
    b'{"features": {"a": [1]}}': "features['a'] is an array",
    b'{"features": {"a": NaN}}': "value is no JSON",
    b'{"features": {"a": -Infinity}}': "value is no JSON",
    b'{"features": {"a": 1e999}}': "value is no JSON",
    b'{"features": {"a": 1, "b": 2, "a": 3}}': "value has 'a' twice in an object: send it once",
    b'{"features": {}, "features": {}}': "value has 'features' twice",
    b'{"features": {"a": "\\ud800"}}': "value is no JSON",
    b'{"features": {}, "id": [1]}': "id is an array: send a string or an integer",
    b'{"features": {}, "id": true}': "id is a bool",
    b'[{"features": {}}, 7]': "[1].value is the number 7, not an object",
    b'[{"features": {}}, {"features": {"a": null, "b": "x"}}]': "[1].features['b'] is a string",
    b'{"features": {"a":1,"b":1,"c":1,"d":1,"e":1,"f":1}}': "features has 6 entries, more than 5",
    b'{"features": {"a": 1e308}}': "features: ",
    b'[{"features": {}}, {"features": {"a": 1e308}}]': "[1].features: ",
}


@pytest.mark.parametrize("body", REFUSED, ids=[repr(body)[:40] for body in REFUSED])
def test_what_cannot_be_predicted_is_refused_by_its_culprit(asked, body):
    output = refused(asked.post("/predict", content=body))
    assert output.replace("the 5", "5").startswith(REFUSED[body])


def test_numbers_beyond_64_bits_are_floats_as_in_messages(asked):
    body = b'{"features": {"a": 1%s}}' % (b"0" * 30)
    assert asked.post("/predict", content=body).status_code == 200


def test_bodies_and_lists_that_are_too_long_are_refused(asked):
    assert "more than 300 bytes" in refused(asked.post("/predict", content=b" " * 301), 413)
    assert asked.post("/predict", content=GOOD.ljust(300)).status_code == 200
    body = json.dumps([{"features": {}}] * 4)
    assert "4 examples, more than the 3" in refused(asked.post("/predict", content=body), 413)


def test_what_a_model_of_the_users_raises_is_the_fault_of_what_it_was_given(caplog):
    class Odd:
        def predict_one(self, features):
            return features["needed"]

    asked = client(Replica(Odd()))
    assert refused(asked.post("/predict", content=GOOD)) == "features: KeyError: 'needed'"
    assert "a request is refused: KeyError('needed')" in caplog.text


def test_other_pages_and_methods_are_not_there(asked):
    for answer, status in (
        (asked.get("/predict"), 405),
        (asked.post("/metrics"), 405),
        (asked.get("/"), 404),
        (asked.get("/" + "x" * 999), 404),
    ):
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json")
        assert " is not served" in answer.json()["error"] or len(answer.json()["error"]) == 300
    assert asked.get("/predict").headers["allow"] == "POST"
    assert asked.get("/x").json()["error"] == "GET /x is not served: see GET /openapi.json"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["features", "id", "a", "label"]) | st.text(), inner)
    ),
    max_leaves=12,
)


@given(st.binary(max_size=40) | JSON.map(lambda tree: json.dumps(tree).encode()), st.data())
@example(b'{"features": {"a": 1}}', None)
def test_no_body_makes_a_fault_of_the_service(asked, body, data):
    if data is not None and body:
        at = data.draw(st.integers(0, len(body) - 1))
        body = data.draw(st.sampled_from([body, body[:at], body[:at] + b"\x00" + body[at + 1 :]]))
    answer = asked.post("/predict", content=body)
    assert answer.status_code in {200, 400, 413}, (body, answer.text)
    assert ("error" in answer.json()) == (answer.status_code != 200)


# --- a model that is missing or stale ------------------------------------------------------------


def test_a_model_that_is_not_the_workers_does_not_answer():
    replica = Replica()
    replica.differs = "something else was learnt"
    asked = client(replica)
    assert asked.post("/predict", content=GOOD).status_code == 503
    ready = asked.get("/readyz")
    assert (ready.status_code, ready.text) == (503, "something else was learnt\n")


def test_without_a_checkpoint_there_is_no_answer():
    replica = Replica()
    replica.version = {"checkpoint": None, "offsets": {}}
    replica.staleness, replica.trouble = math.inf, "the folder is away"
    asked = client(replica)
    answer = asked.post("/predict", content=GOOD)
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    assert answer.json() == {
        "error": "there is no checkpoint of orders yet: start a worker; the folder is away",
        "model": {"checkpoint": None, "offsets": {}, "staleness_seconds": None},
    }
    ready = asked.get("/readyz")
    assert (ready.status_code, ready.text[:22]) == (503, "there is no checkpoint")


def test_a_model_that_waits_for_what_is_read_again_needs_no_other_worker():
    replica = Replica()
    replica.version, replica.staleness = {"checkpoint": None, "offsets": {}}, math.inf
    replica.waits = "reads again what waits"
    answer = client(replica).get("/readyz")
    said = "the model of orders is not there yet; reads again what waits\n"
    assert (answer.status_code, answer.text) == (503, said)


def test_a_stale_model_says_so_and_answers_up_to_the_bound():
    replica = Replica()
    replica.staleness = 31.25
    answer = client(replica).post("/predict", content=GOOD)
    assert (answer.status_code, answer.json()["model"]["staleness_seconds"]) == (200, 31.25)
    asked = client(replica, ServiceOptions(max_staleness=30))
    output = refused(asked.post("/predict", content=GOOD), 503)
    assert output == "the model is 31.2 s behind the logs, more than 30"
    assert asked.get("/readyz").status_code == 503
    replica.staleness = 30
    assert asked.post("/predict", content=GOOD).status_code == 200
    assert (asked.get("/readyz").status_code, asked.get("/readyz").text) == (200, "ok\n")


def test_a_model_that_has_not_caught_up_answers_and_is_not_ready():
    replica = Replica()
    replica.staleness = math.inf
    asked = client(replica)
    answer = asked.post("/predict", content=GOOD)
    assert (answer.status_code, answer.json()["model"]["staleness_seconds"]) == (200, None)
    assert asked.get("/readyz").text == "the model has not caught up with the logs yet\n"


def test_a_model_that_waits_for_a_partition_is_ready_until_it_is_stale():
    # All replicas wait for the same partition: a load balancer would have none left.
    replica = Replica()
    replica.waits = "waiting for orders:1 at offset 5 of 9"
    asked = client(replica, ServiceOptions(max_staleness=60))
    assert asked.post("/predict", content=GOOD).status_code == 200
    assert asked.get("/readyz").status_code == 200
    replica.staleness = 90.0
    assert asked.post("/predict", content=GOOD).status_code == 503
    ready = asked.get("/readyz")
    assert (ready.status_code, ready.text) == (
        503,
        "the model is 90 s behind the logs, more than 60; waiting for orders:1 at offset 5 of 9\n",
    )


def test_a_follower_that_is_stuck_is_to_be_started_again(monkeypatch):
    asked = client()
    for path in ("/healthz", "/livez"):
        assert (asked.get(path).status_code, asked.get(path).text) == (200, "ok\n")
    later = time.monotonic() + 301
    monkeypatch.setattr(
        module, "time", SimpleNamespace(monotonic=lambda: later, perf_counter=time.perf_counter)
    )
    assert asked.get("/healthz").status_code == 503


# --- what it says of itself ----------------------------------------------------------------------


def test_metrics_count_requests_by_their_answers():
    asked = client()
    asked.post("/predict", content=GOOD)
    asked.post("/predict", content=b"[%s, %s]" % (GOOD, GOOD))
    asked.post("/predict", content=b"{")
    text = asked.get("/metrics").text
    labels = ("g", "orders")
    shown = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert shown["drift_staleness_seconds", *labels] == 0.25
    assert shown["drift_serve_ready", *labels] == 1
    assert shown["drift_serve_checkpoints_total", *labels] == 1
    assert shown["drift_serve_predictions_total", *labels] == 3
    assert shown["drift_serve_requests_total", "200", *labels] == 2
    assert shown["drift_serve_requests_total", "400", *labels] == 1
    assert shown["drift_serve_seconds_count", *labels] == 3


def test_the_document_describes_what_is_answered():
    jsonschema = pytest.importorskip("jsonschema")
    asked = client()
    api = asked.get("/openapi.json").json()
    assert api == openapi("orders", OPTIONS)
    assert set(api["paths"]) == {route.path for route in asked.app.routes}

    def check(name, value):
        schema = {"$ref": f"#/components/schemas/{name}", "components": api["components"]}
        jsonschema.validate(value, schema, cls=jsonschema.Draft202012Validator)

    check("Question", json.loads(GOOD))
    fresh, bare, seen = Replica(), Replica(LBP(9)), set()
    fresh.version, fresh.staleness = {"checkpoint": None, "offsets": {}}, math.inf  # as it starts
    bare.beside = lambda _: {"threshold": 0.5, "explanation": None}  # which has learnt nothing
    for one in (asked, client(fresh), client(bare)):
        for body in (GOOD, b"[%s]" % GOOD, b"{"):
            answer = one.post("/predict", content=body)
            seen.add(answer.status_code)
            assert str(answer.status_code) in api["paths"]["/predict"]["post"]["responses"]
            check("Answer" if answer.status_code == 200 else "Refusal", answer.json())
    assert seen == {200, 400, 503}
    with pytest.raises(jsonschema.ValidationError):
        check("Answer", {"predicted": True})


# --- the process ---------------------------------------------------------------------------------


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextmanager
def running(replica, **more):
    """A service that runs on a thread, with the errors that end it."""
    options = ServiceOptions(**{"port": free_port(), "timeout": 0.3} | more)
    service, ended = Service(replica, options), []

    def run():
        try:
            service.run()
        except Exception as problem:  # noqa: BLE001 - it is looked at
            ended.append(problem)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        end = time.monotonic() + 30
        while not ended and time.monotonic() < end:
            try:
                urlopen(f"http://127.0.0.1:{options.port}/healthz", timeout=5).close()
            except OSError:
                time.sleep(0.01)
            else:
                break
        yield options.port, ended
    finally:
        service.stop()
        thread.join(30)
    assert not thread.is_alive()


def exchange(port, *parts, wait=0.0):
    """Send bytes, in parts with pauses between them; return all that is answered."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as one:
        for part in parts:
            one.sendall(part)
            time.sleep(wait)
        one.shutdown(socket.SHUT_WR)
        result = b""
        while chunk := one.recv(65536):
            result += chunk
        return result


HEAD = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def request(body, length=None):
    size = len(body) if length is None else length
    return HEAD + b"Content-Length: %d\r\n\r\n%s" % (size, body)


def test_it_answers_learns_and_ends():
    replica = Replica()
    with running(replica) as (port, ended):
        answer = exchange(port, request(GOOD))
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["predicted"] is True
    assert replica.fetched
    assert replica.closed
    assert not ended


@pytest.mark.parametrize("sent", [[], [HEAD], [request(GOOD), HEAD[:9]]])
def test_a_head_that_does_not_come_is_not_waited_for(sent):
    """Of the first request of a connection, and of the next one."""
    with running(Replica()) as (port, _):
        with socket.create_connection(("127.0.0.1", port), timeout=10) as one:
            for part in sent:
                one.sendall(part)
            result = b""
            while chunk := one.recv(65536):  # until it is closed
                result += chunk
        assert result.count(b"200 OK") == (len(sent) > 1)


def test_connections_without_a_request_keep_nobody_out(monkeypatch):
    monkeypatch.setattr(web_server, "CONNECTIONS", 3)
    monkeypatch.setattr(web_server, "SPARE", 2)
    with running(Replica(), timeout=60) as (port, _), ExitStack() as stack:
        for n in range(9):
            one = socket.create_connection(("127.0.0.1", port), timeout=10)
            stack.enter_context(one)
            one.sendall([b"", HEAD, request(GOOD)][n % 3])
        assert b"200 OK" in exchange(port, request(GOOD))
        assert b"200 OK" in exchange(port, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")


def test_health_has_room_beside_too_many_predictions(monkeypatch):
    monkeypatch.setattr(web_server, "CONNECTIONS", 2)
    with running(Replica(), timeout=60) as (port, _), ExitStack() as stack:
        for _ in range(2):
            one = socket.create_connection(("127.0.0.1", port), timeout=10)
            stack.enter_context(one)
            one.sendall(request(b"", 5))
        while b"2 requests are being answered" not in exchange(port, request(GOOD)):
            pass  # until both have come
        assert b"200 OK" in exchange(port, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", ""])
def test_what_a_web_page_may_send_unasked_is_refused(asked, kind):
    headers = {} if kind is None else {"content-type": kind}
    answer = asked.post("/predict", content=GOOD, headers=headers)
    assert "send Content-Type: application/json" in refused(answer, 415)
    good = {"content-type": "application/json; charset=utf-8"}
    assert asked.post("/predict", content=GOOD, headers=good).status_code == 200


EVERYWHERE = "0.0.0.0"  # noqa: S104 - nothing listens there


@pytest.mark.parametrize(
    ("more", "known", "unknown"),
    [
        ({}, ["localhost", "localhost:8000", "127.0.0.1:80", "[::1]:80"], ["evil.org", "", "[x"]),
        ({"host": "localhost"}, ["localhost"], ["localhost.evil.org:80"]),
        ({"host": EVERYWHERE}, ["scores", "evil.org"], []),
        (
            {"host": EVERYWHERE, "hosts": ("scores",)},
            ["scores", "Scores:80", "10.0.0.7:80", "localhost"],
            ["evil.org", "a.scores"],
        ),
    ],
)
def test_a_name_that_is_not_the_services_is_refused(more, known, unknown):
    one = client(options=ServiceOptions(**more))
    for host in [*known, *unknown]:
        headers = {"host": host, "content-type": "application/json"}
        answer = one.post("/predict", content=GOOD, headers=headers)
        if host in known:
            assert answer.status_code == 200
        else:
            assert answer.status_code == 403
            assert "is no name of this service: add it to hosts" in answer.json()["error"]


def test_a_server_of_ones_own_may_ask_whether_the_application_has_started():
    """By the lifespan protocol, which has no headers, and so no host."""
    sent, asked = [], iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])

    async def receive():
        return next(asked)

    async def send(message):
        sent.append(message["type"])

    app = Service(Replica(), ServiceOptions(hosts=("scores",))).app
    asyncio.run(app({"type": "lifespan", "asgi": {"version": "3.0"}}, receive, send))
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


def test_a_body_that_does_not_come_is_not_waited_for():
    with running(Replica()) as (port, _):
        with socket.create_connection(("127.0.0.1", port), timeout=10) as one:
            one.sendall(request(GOOD[:5], len(GOOD)))
            assert one.recv(1000).startswith(b"HTTP/1.1 408 ")
        assert b"400" in exchange(port, b"nonsense\r\n\r\n")
        assert b"400" in exchange(port, b"GET / HTTP/1.1\r\n" + b"X: %s\r\n" % (b"x" * 40_000))
        assert exchange(port, request(GOOD)).startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize("count", [80, pytest.param(10_000, marks=pytest.mark.slow)])
def test_hostile_requests_get_no_fault_and_no_memory(count):
    from benchmarks.process import resident  # noqa: PLC0415
    from benchmarks.programs.serve import ask_badly  # noqa: PLC0415

    with running(Replica(codec=JsonCodec()), timeout=30) as (port, ended):
        asyncio.run(ask_badly(port, count // 4))
        before = resident()
        statuses = asyncio.run(ask_badly(port, count))
        assert set(statuses) <= {200, 400, 413}
        assert sum(statuses.values()) == count
        assert exchange(port, request(GOOD)).startswith(b"HTTP/1.1 200 OK\r\n")
        assert resident() < before + 20
    assert not ended


def test_a_client_that_goes_amid_its_body_does_no_harm(caplog):
    with running(Replica(), timeout=5) as (port, ended):
        exchange(port, request(GOOD[:5], len(GOOD)))
        assert exchange(port, request(GOOD)).startswith(b"HTTP/1.1 200 OK\r\n")
    assert not ended
    assert "Exception" not in caplog.text


def test_what_ends_the_replica_ends_the_service():
    replica = Replica()
    replica.problem = ParameterError("the topic is another one")
    with running(replica) as (_, ended):
        pass
    assert [str(problem) for problem in ended] == ["the topic is another one"]
    assert replica.closed


def test_a_port_that_is_taken_is_refused():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        replica = Replica()
        with pytest.raises(ParameterError, match=f"127.0.0.1:{port} cannot be listened at"):
            Service(replica, ServiceOptions(port=port)).run()
    assert replica.closed


def test_options_that_cannot_be_are_refused():
    with pytest.raises(ParameterError, match="max_examples must be at least 1, not 0"):
        ServiceOptions(max_examples=0)


def test_requests_are_answered_between_slices_of_learning():
    """Of a replica that always has more to learn."""

    class Busy(Replica):
        slices = 0

        def learn(self, seconds):
            assert seconds <= 0.001
            self.slices += 1
            return not service._stopping

    replica = Busy()
    service = Service(replica, OPTIONS)

    async def both():
        following = asyncio.create_task(service.follow())
        await asyncio.sleep(0.1)
        before = replica.slices
        for _ in range(10):
            await asyncio.sleep(0)
        assert before < replica.slices <= before + 10
        service.stop()
        await following

    asyncio.run(both())
