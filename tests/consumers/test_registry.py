"""Messages by the schemas of a registry, which is a server of HTTP on this machine."""

import json
import math
import pickle
import re
import struct
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path

import pytest

from drift.cli import _settings
from drift.cli._log import Secrets
from drift.consumers.codec import Example
from drift.consumers.learner import Learner
from drift.consumers.metrics import Metrics
from drift.consumers.options import WorkerOptions
from drift.consumers.records import Message, Position
from drift.consumers.registry import SchemaCodec
from drift.errors import (
    ConsumerError,
    MessageError,
    MissingExtraError,
    ParameterError,
    UnavailableError,
)
from drift.models import LBP
from drift.testing import consume

fastavro = pytest.importorskip("fastavro")
pytest.importorskip("jsonschema")

CARD = {"type": "record", "name": "Card", "fields": [{"name": "fee", "type": "double"}]}
ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "sum", "type": "double"}, {"name": "fraud", "type": "boolean"}],
}
SHAPE = {
    "type": "object",
    "properties": {"sum": {"type": "number"}, "fraud": {"type": "boolean"}},
    "required": ["sum"],
}


def avro(number, data):
    return b"\0" + struct.pack(">I", number) + data


class Registry:
    """Answers by path, and how often it was asked; `status` is that of its next answers."""

    def __init__(self):
        self.schemas, self.asked, self.status, self.headers = {}, [], [], []
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                registry.asked.append(self.path)
                registry.headers.append(self.headers)
                status = registry.status.pop(0) if registry.status else 200
                output = registry.schemas.get(self.path)
                if status == 200 and output is None:
                    status, output = 404, {"error_code": 40403, "message": "Schema not found"}
                body = json.dumps(output).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"

    def add(self, number, schema, kind=None, references=None):
        output = {"schema": json.dumps(schema)}
        if kind:
            output["schemaType"] = kind
        if references:
            output["references"] = references
        self.schemas[f"/schemas/ids/{number}"] = output


@pytest.fixture
def registry(monkeypatch):
    made = Registry()
    thread = threading.Thread(target=made.server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    monkeypatch.setattr("drift.consumers.registry._PAUSE", 0.0)
    made.add(7, ORDER)
    made.add(8, SHAPE, "JSON")
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


@pytest.fixture
def codec(registry):
    return SchemaCodec(registry=registry.address, label="fraud")


def test_avro_is_read_by_the_schema_of_its_id_which_is_requested_once(registry, codec):
    for amount, fraud in ((31.5, True), (0.25, False)):
        value = avro(7, struct.pack("<d", amount) + bytes([fraud]))
        assert codec.decode(value) == Example({"sum": amount}, fraud)
    assert registry.asked == ["/schemas/ids/7"]


def test_json_is_checked_by_its_schema(codec):
    assert codec.decode(avro(8, b'{"sum": 2, "fraud": true}')) == Example({"sum": 2}, True)
    with pytest.raises(MessageError, match=r"^\$\.sum is not what its schema wants, by type"):
        codec.decode(avro(8, b'{"sum": "secret"}'))
    with pytest.raises(MessageError, match="value has 'sum' twice in an object"):
        codec.decode(avro(8, b'{"sum": 2, "sum": 3}'))


@pytest.mark.parametrize(
    ("value", "refusal"),
    [
        (b'{"sum": 2}', "no schema's id"),
        (b"\0\0\0\0", "no schema's id"),
        (avro(7, b""), r"schema 7 \("),
        (avro(7, struct.pack("<d", 1.0) + b"\1\1"), r"schema 7 \(EOFError\)"),
        (avro(8, b""), r"schema 8 \("),
        (avro(8, b"[" * 100), r"schema 8 \(RecursionError\)"),
        (avro(8, b"[]"), "is not what its schema wants"),
        (avro(10, b"x"), "of PROTOBUF"),
        (avro(11, b"x"), r"schema 11 \(UnknownType\)"),
        (avro(12, b"\2"), "is the number 1, not an object"),
        (None, "tombstone"),
        (b"", "empty"),
    ],
)
def test_what_its_schema_does_not_describe_is_refused(registry, codec, value, refusal):
    registry.add(10, {}, "PROTOBUF")
    registry.add(11, {"type": "record", "name": "No", "fields": [{"name": "a", "type": "no"}]})
    registry.add(12, "long")
    with pytest.raises(MessageError, match=refusal):
        codec.decode(value)


def test_logical_types_are_numbers_and_texts(registry):
    types = [
        ("price", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}),
        ("at", {"type": "long", "logicalType": "timestamp-millis"}),
        ("local", {"type": "long", "logicalType": "local-timestamp-millis"}),
        ("day", {"type": "int", "logicalType": "date"}),
        ("label", {"type": "string", "logicalType": "uuid"}),
    ]
    fields = [{"name": name, "type": kind} for name, kind in types]
    registry.add(1, {"type": "record", "name": "R", "fields": fields})
    uuid = "12345678-1234-5678-1234-567812345678"
    packed = b"\4\x0b\xb8"  # two bytes: 3000, of scale 2
    moment = b"\xd0\x0f"  # 1,000 in Avro's zigzag
    text = bytes([2 * len(uuid)]) + uuid.encode()
    codec = SchemaCodec(registry=registry.address, label="label", one_hot=True)
    made = codec.decode(avro(1, packed + moment + moment + b"\2" + text))
    assert made == Example({"price": 30.0, "at": 1.0, "local": 1.0, "day=1970-01-02": 1}, uuid)


@pytest.mark.parametrize("raw", [False, True])
def test_a_float_that_json_does_not_have_is_absent_or_refused(registry, raw):
    codec = SchemaCodec(registry=registry.address, label="fraud", raw=raw)
    codec.decode(avro(7, struct.pack("<d", 1.0) + b"\1"))
    assert codec.decode(avro(7, struct.pack("<d", math.nan) + b"\1")) == Example({}, True)
    for infinite in (math.inf, -math.inf):
        with pytest.raises(MessageError, match=r"features\['sum'\] is -?inf: send a finite number"):
            codec.decode(avro(7, struct.pack("<d", infinite) + b"\1"))


@pytest.mark.parametrize("apart", [False, True])
def test_data_that_nest_without_end_are_refused(registry, codec, apart):
    link = {"name": "next", "type": ["null", {"type": "array", "items": "Sum"}, "Sum"]}
    amount = {"name": "sum", "type": "double"}
    chain = {"type": "record", "name": "Sum", "fields": [amount, link]}
    if apart:
        registry.schemas["/subjects/sum/versions/1"] = {"schema": json.dumps(chain)}
        names = [{"name": "Sum", "subject": "sum", "version": 1}]
        one = {"name": "first", "type": "Sum"}
        registry.add(9, {"type": "record", "name": "R", "fields": [one]}, references=names)
    else:
        registry.add(9, chain)
    level = struct.pack("<d", 1.0)
    read = codec.decode(avro(9, (level + b"\4") * 3 + level + b"\0")).features
    assert sorted(read.values()) == [1.0] * 4
    with pytest.raises(MessageError, match=r"cannot be read by schema 9 \(RecursionError\)"):
        codec.decode(avro(9, (level + b"\4") * 50_000 + level + b"\0"))


def test_schemas_that_refer_to_others_are_read_with_them(registry, codec):
    order = {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "card", "type": "Card"}, {"name": "fraud", "type": "boolean"}],
    }
    registry.schemas["/subjects/a%2Fcard/versions/3"] = {"schema": json.dumps(CARD)}
    registry.add(1, order, None, [{"name": "Card", "subject": "a/card", "version": 3}])
    assert codec.decode(avro(1, struct.pack("<d", 0.5) + b"\1")) == Example({"card.fee": 0.5}, True)
    registry.schemas["/subjects/fee/versions/1"] = {"schema": json.dumps({"type": "number"})}
    shape = {"type": "object", "properties": {"fee": {"$ref": "fee.json"}}}
    registry.add(2, shape, "JSON", [{"name": "fee.json", "subject": "fee", "version": 1}])
    assert codec.decode(avro(2, b'{"fee": 1.5}')).features == {"fee": 1.5}
    with pytest.raises(MessageError, match=r"\$\.fee"):
        codec.decode(avro(2, b'{"fee": null}'))


def test_a_schema_elsewhere_is_not_fetched(registry, codec):
    registry.add(1, {"$ref": f"{registry.address}/schemas/ids/8"}, "JSON")
    with pytest.raises(MessageError, match=r"schema 1 \("):
        codec.decode(avro(1, b"{}"))
    assert registry.asked == ["/schemas/ids/1"]


@pytest.mark.parametrize(("number", "refusal"), [(7, "schema 7"), (8, "by required")])
def test_what_is_encoded_is_decoded_and_what_does_not_fit_is_refused(registry, number, refusal):
    codec = SchemaCodec(registry=registry.address, label="fraud", schema_id=number)
    example = Example({"sum": 2.5}, True)
    assert codec.decode(codec.encode(example)) == example
    with pytest.raises(MessageError, match=refusal):
        codec.encode(Example({"some": 2.5}, True))
    assert pickle.loads(pickle.dumps(codec)).decode(codec.encode(example)) == example


def test_avro_of_others_is_read(codec):
    stream = BytesIO()
    row = {"sum": 1.25, "fraud": False}
    fastavro.schemaless_writer(stream, fastavro.parse_schema(ORDER), row)
    assert codec.decode(avro(7, stream.getvalue())) == Example({"sum": 1.25}, False)
    with pytest.raises(ParameterError, match="schema_id"):
        codec.encode(Example({"sum": 1.25}, False))


def test_the_page_sends_what_is_read(registry, broker):
    page = (Path(__file__).parents[2] / "docs" / "kafka_messages.md").read_text(encoding="utf-8")
    [schema] = re.findall(r"order\.avsc <<'END'\n(.*?)^END", page, re.DOTALL | re.MULTILINE)
    registry.add(1, json.loads(schema))
    [code] = re.findall(r"send\.py <<'END'\n(.*?)^END", page, re.DOTALL | re.MULTILINE)
    broker.create_topic("cards")
    code = code.replace('bootstrap_servers=os.environ["BROKER"]', "**broker")
    code = code.replace("http://localhost:8081", registry.address)
    exec(code, {"broker": broker.client_args})  # noqa: S102 - ours
    [record] = consume(broker, "cards", 1)
    read = SchemaCodec(registry=registry.address, label="fraud").decode(record.value)
    assert read == Example({"sum": 31.5}, True)


def test_labels_of_a_topic_of_their_own_have_schemas_too(registry):
    fields = [{"name": "id", "type": "long"}, {"name": "label", "type": "boolean"}]
    registry.add(1, {"type": "record", "name": "L", "fields": fields})
    codec = SchemaCodec(registry=registry.address)
    assert codec.decode_label(avro(1, b"\x0e\1")) == Example({}, True, 7)


# --- a registry that is not there -----------------------------------------------------------------


def test_a_registry_that_comes_back_is_waited_for(registry, codec):
    registry.status = [503, 429, 500]
    value = avro(7, struct.pack("<d", 1.0) + b"\1")
    assert codec.decode(value).label is True
    assert len(registry.asked) == 4


def test_a_schema_that_is_registered_a_moment_later_is_waited_for(registry, codec, monkeypatch):
    value, path = avro(9, struct.pack("<d", 1.0) + b"\1"), "/schemas/ids/9"

    def later(_):
        if registry.asked.count(path) == 3:
            registry.add(9, ORDER)

    monkeypatch.setattr("drift.consumers.registry.time.sleep", later)
    assert codec.decode(value) == Example({"sum": 1.0}, True)
    assert registry.asked == [path] * 4


def test_schemas_that_stay_unknown_are_waited_for_once(registry, codec, monkeypatch):
    """A flood of them is refused at once, each asked for at most once a second."""
    clock = [1000.0]
    monkeypatch.setattr("drift.consumers.registry._PAUSE", 1.0)
    monkeypatch.setattr("drift.consumers.registry.time.monotonic", lambda: clock[0])
    monkeypatch.setattr(
        "drift.consumers.registry.time.sleep", lambda s: clock.append(clock.pop() + s)
    )
    for number in (9, 9, 9, 10, 11, 10):
        with pytest.raises(MessageError, match=f"ids/{number} does not know: register it"):
            codec.decode(avro(number, b"{}"))
    asked = [registry.asked.count(f"/schemas/ids/{number}") for number in (9, 10, 11)]
    assert asked == [22, 1, 1]  # 0, 1, ... 21 s
    clock[0] += 1
    registry.add(9, ORDER)
    assert codec.decode(avro(9, struct.pack("<d", 1.0) + b"\1")).label is True
    clock[0] += 200
    before = clock[0]
    with pytest.raises(MessageError):
        codec.decode(avro(12, b"{}"))
    assert clock[0] == before + 21


@pytest.mark.parametrize(
    "message", ["<html>sign in</html>", [1], [["schema", "x"]], 3, {}, {"schema": 3}]
)
def test_what_is_no_answer_of_a_registry_skips_no_message(registry, codec, monkeypatch, message):
    monkeypatch.setattr("drift.consumers.registry._PATIENCE", 0.0)
    value = avro(7, struct.pack("<d", 1.0) + b"\1")
    right = registry.schemas["/schemas/ids/7"]
    registry.schemas["/schemas/ids/7"] = message
    with pytest.raises(UnavailableError, match=r"ids/7 does not answer"):
        codec.decode(value)
    registry.schemas["/schemas/ids/7"] = right
    assert codec.decode(value).label is True


def test_a_message_whose_registry_is_down_is_not_skipped(registry, codec, monkeypatch):
    monkeypatch.setattr("drift.consumers.registry._PATIENCE", 0.0)
    options = WorkerOptions(topic="t", group="g", dead_letters="dead")
    learner = Learner(LBP(9), codec, Metrics("t", 0), options)
    learner.start({("t", 0): 5})
    message = Message(Position("t", 0, 5), None, avro(7, struct.pack("<d", 1.0) + b"\1"))
    registry.status = [503] * 9
    with pytest.raises(UnavailableError, match=r"ids/7 does not answer \(503"):
        learner.take(message)
    assert (learner.offsets, learner.metrics.dead_letters) == ({("t", 0): 5}, 0)
    registry.status = []
    assert learner.take(message) == []
    assert (learner.offsets, learner.metrics.examples) == ({("t", 0): 6}, 1)
    address = SchemaCodec(registry="http://127.0.0.1:1", label="fraud")
    with pytest.raises(UnavailableError, match="does not answer"):
        address.decode(message.value)


@pytest.mark.parametrize("status", [401, 403, 404])
def test_what_a_person_has_to_mend_ends_the_worker(registry, codec, status):
    registry.status = [status]
    with pytest.raises(ConsumerError, match=f"answers {status}"):
        codec.decode(avro(7, b""))


def test_user_and_password_come_from_the_environment(registry, codec, monkeypatch):
    monkeypatch.setenv("DRIFT_REGISTRY_AUTH", "Aladdin:open sesame")
    codec.decode(avro(7, struct.pack("<d", 1.0) + b"\1"))
    # The example of RFC 2617.
    assert registry.headers[0]["Authorization"] == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="


@pytest.mark.parametrize("address", ["localhost:8081", "ftp://localhost", "http://me:pass@here"])
def test_what_is_no_address_is_refused_without_a_word_of_it(address):
    with pytest.raises(ParameterError, match="DRIFT_REGISTRY_AUTH") as refused:
        SchemaCodec(registry=address)
    assert "pass@" not in str(refused.value)


def test_the_file_names_the_registry(tmp_path, monkeypatch):
    file = tmp_path / "worker.toml"
    file.write_text(
        '[worker]\ntopic = "t"\ngroup = "g"\ncheckpoints = "c"\n'
        '[codec]\nregistry = "http://localhost:8081"\nlabel = "fraud"\n'
    )
    given = file, {}, {}, {}, "localhost:9092", Secrets()
    codec = _settings.read(*given).codec
    assert (type(codec), codec.label) == (SchemaCodec, "fraud")
    monkeypatch.setitem(sys.modules, "fastavro", None)
    monkeypatch.delitem(sys.modules, "drift.consumers.registry")
    with pytest.raises(MissingExtraError, match=r"\.\[schema\]"):
        _settings.read(*given)
