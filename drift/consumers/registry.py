"""Avro and JSON Schema messages, by the schemas of a Confluent-compatible registry.

A message is a zero byte, the id of its schema in four bytes, big-endian, and the data. The
registry has the schema: an id never changes its meaning, so each is fetched once.

===============================================  =================================================
what goes wrong                                  what becomes of it
===============================================  =================================================
no zero byte, data that do not fit, a schema     refused: the worker sends the message to the
that cannot be read, as of Protobuf, infinite    dead letters
floats
the registry does not know the id                asked for 20 s, as it may be registered just now,
                                                 then refused; so are others for 200 s, at once
the registry does not answer, or by 5xx or 429,  tried again for 20 s, then UnavailableError: the
or by something else than a schema               worker ends, and reads the message again
it answers by another 4xx, as for a password     ConsumerError: the worker ends for good
===============================================  =================================================

confluent-kafka's client of a registry is not used: for one GET it brings librdkafka and five more
packages, and its deserializers accept data that continue after a record, and recursion without end.
"""

from __future__ import annotations

import base64
import json
import logging
import math
import os
import re
import time
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from datetime import time as time_of_day
from decimal import Decimal
from http.client import HTTPException
from io import BytesIO
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen
from uuid import UUID

from drift._checks import check_address
from drift._options import option
from drift.consumers._json import is_deeper, is_plain, library, made_plain, refuse_repeated
from drift.consumers.json_codec import MAX_DEPTH, JsonCodec, schema_id
from drift.errors import (
    ConsumerError,
    DriftError,
    MessageError,
    ParameterError,
    UnavailableError,
    needing,
    one_line,
)

with needing("fastavro or jsonschema", "schema"):
    import fastavro
    from fastavro import _read_py
    from jsonschema.validators import Draft7Validator, validator_for
    from referencing import Registry, Resource
    from referencing.jsonschema import DRAFT7

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SchemaCodec"]

log = logging.getLogger("drift.consumers")

#: Seconds for which a registry is asked again, between two times, and for an answer.
_PATIENCE, _PAUSE, _TIMEOUT = 20.0, 1.0, 5.0
#: Unknown schemas that are remembered.
_MOST_UNKNOWN = 1_000
#: The variable of the environment that holds ``user:password``.
_AUTH = "DRIFT_REGISTRY_AUTH"
#: What a registry says where it has no such schema, as opposed to no such page.
_UNKNOWN = re.compile(rb'"error_code"\s*:\s*40403\b')
#: Statuses of a registry that may have another answer later.
_PASSING = {408, 429}


@dataclass(kw_only=True, eq=False)
class SchemaCodec(JsonCodec):
    """Examples by the schemas of a registry; where label and features are, as of `JsonCodec`.

    Of Avro's floats, NaN is absent. Of its logical types, decimals are numbers, moments seconds
    since 1970, dates and times texts as ISO 8601 has them, UUIDs texts.

    Parameters
    ----------
    registry
        Its address, as ``http://localhost:8081``; user and password are in the environment, as
        ``DRIFT_REGISTRY_AUTH=user:password``.
    schema_id
        The schema that `encode` writes by; None where nothing is written.

    Raises
    ------
    ParameterError
        If `registry` is no such address.
    """

    registry: str = option("Address of the schema registry.")
    schema_id: int | None = option(
        "Schema by which a program encodes; no worker does.", None, least=0
    )

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        super().__post_init__()
        check_address(
            "registry", self.registry, f", with user:password in the environment as {_AUTH}"
        )
        self._schemas: dict[int, _Avro | _Json] = {}
        self._unknown: dict[str, float] = {}  # when what is unknown is asked for again
        self._waits_again = -math.inf  # when something unknown is waited for again

    def settings(self) -> dict[str, Any]:
        """Return those of `JsonCodec`: a registry may move."""
        found = super().settings()
        del found["registry"]
        found.pop("schema_id", None)
        return found

    def _parse(self, value: bytes) -> Any:
        number = schema_id(value)
        if number is None:
            raise MessageError(
                "value", "has no schema's id before its data: send it by a registry's serializer"
            )
        with _fitting(number):
            return self._schema(number).read(value[5:])

    def _features(self, tree: dict[str, Any]) -> dict[str, Any]:
        # Floats of Avro may be what none of JSON's is.
        features = super()._features(tree)
        return features if is_plain(features) else made_plain(features)

    def _write(self, tree: dict[str, Any]) -> bytes:
        if self.schema_id is None:
            raise ParameterError("schema_id must be given where messages are written")
        with _fitting(self.schema_id):
            data = self._schema(self.schema_id).write(tree)
        return b"\0" + self.schema_id.to_bytes(4, "big") + data

    def _schema(self, number: int) -> _Avro | _Json:
        if number not in self._schemas:
            answer = self._ask(f"schemas/ids/{number}")
            kind = answer.get("schemaType", "AVRO")
            if kind not in _KINDS:
                raise MessageError("value", f"has schema {number}, of {kind}: send Avro or JSON")
            self._schemas[number] = _KINDS[kind](answer["schema"], self._others(answer))
        return self._schemas[number]

    def _others(self, answer: dict[str, Any]) -> dict[str, str]:
        """Return the schemas that one refers to by their names, those that they refer to first."""
        texts: dict[str, str] = {}
        for reference in answer.get("references") or ():
            path = (
                f"subjects/{quote(reference['subject'], safe='')}/versions/{reference['version']}"
            )
            other = self._ask(path)
            texts |= {**self._others(other), reference["name"]: other["schema"]}
        return texts

    def _ask(self, path: str) -> dict[str, Any]:
        """Return what the registry says, which may take some time."""
        url = f"{self.registry.rstrip('/')}/{path}"
        headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if given := os.environ.get(_AUTH):
            headers["Authorization"] = f"Basic {base64.b64encode(given.encode()).decode()}"
        started = time.monotonic()
        if started < self._unknown.get(path, -math.inf):
            raise _unknown(url)
        until, first = started + _PATIENCE, True
        problem: str | None  # None where it is unknown
        while True:
            try:
                with urlopen(Request(url, headers=headers), timeout=_TIMEOUT) as answer:  # noqa: S310
                    schema = json.load(answer)
                if isinstance(schema, dict) and isinstance(schema.get("schema"), str):
                    return schema
                problem = "with no schema"
            except HTTPError as error:
                problem = _refusal(error, url)
            except (OSError, HTTPException, ValueError) as error:
                problem = str(error)
            now = time.monotonic()
            if problem is None and (now > until or now < self._waits_again):
                self._give_up(path, now, waited=now > until)
                raise _unknown(url)
            why = (
                "is not there yet" if problem is None else f"does not answer ({one_line(problem)})"
            )
            said_so = f"{url} {why}"
            if now > until:
                raise UnavailableError(said_so)
            if first:
                log.warning("%s; asked again for %d s", said_so, _PATIENCE)
            first = False
            time.sleep(_PAUSE)

    def _give_up(self, path: str, now: float, *, waited: bool) -> None:
        """Refuse at once what is unknown, for a moment, and wait for nothing unknown for longer."""
        if len(self._unknown) == _MOST_UNKNOWN:
            self._unknown.clear()
        self._unknown[path] = now + _PAUSE
        if waited:
            self._waits_again = now + 10 * _PATIENCE


class _Avro:
    def __init__(self, text: str, others: dict[str, str]) -> None:
        known: dict[str, Any] = {}
        for other in others.values():
            fastavro.parse_schema(json.loads(other), known)
        self._schema: Any = fastavro.parse_schema(json.loads(text), known)
        # Compiled, it reads until the stack ends, and the process with it.
        reader = _read_py if _is_recursive(self._schema, known) else fastavro
        self._read, self._write = reader.schemaless_reader, fastavro.schemaless_writer
        self._is_plain = not any("logicalType" in schema for schema in (text, *others.values()))

    def read(self, data: bytes) -> Any:
        stream = BytesIO(data)
        tree = self._read(stream, self._schema, None)
        if stream.tell() < len(data):
            raise EOFError
        return tree if self._is_plain else _plain(tree)

    def write(self, tree: Any) -> bytes:
        stream = BytesIO()
        self._write(stream, self._schema, tree)
        return stream.getvalue()


def _is_recursive(schema: Any, known: dict[str, Any], within: frozenset[str] = frozenset()) -> bool:
    """Say whether a record may hold itself, so that no depth is too much for its data."""
    if isinstance(schema, str):
        named = known.get(schema)
        return schema in within or (named is not None and _is_recursive(named, known, within))
    parts = schema
    if isinstance(schema, dict):
        within |= {schema.get("name", "")}
        parts = [schema[kind] for kind in ("type", "items", "values") if kind in schema]
        parts += [field["type"] for field in schema.get("fields", ())]
    return any(_is_recursive(part, known, within) for part in parts)


class _Json:
    def __init__(self, text: str, others: dict[str, str]) -> None:
        contents = {name: json.loads(other) for name, other in others.items()}
        # What is not here is not fetched, either.
        known: Any = Registry().with_resources(
            (name, Resource.from_contents(schema, default_specification=DRAFT7))
            for name, schema in contents.items()
        )
        schema = json.loads(text)
        kind: Any = validator_for(schema, default=Draft7Validator)
        kind.check_schema(schema)
        self._validator = kind(schema, registry=known)

    def read(self, data: bytes) -> Any:
        if is_deeper(data, MAX_DEPTH):
            raise RecursionError
        tree = library()[0](data)
        refuse_repeated(data, tree)
        return self._checked(tree)

    def write(self, tree: Any) -> bytes:
        return library()[1](self._checked(tree))

    def _checked(self, tree: Any) -> Any:
        for error in self._validator.iter_errors(tree):
            raise MessageError(
                error.json_path, f"is not what its schema wants, by {error.validator}: correct it"
            )
        return tree


_KINDS: dict[str, type[_Avro | _Json]] = {"AVRO": _Avro, "JSON": _Json}


@contextmanager
def _fitting(number: int) -> Iterator[None]:
    """Have whatever a library says of data or a schema be a refusal of the message."""
    try:
        yield
    except (DriftError, MemoryError):
        raise
    except Exception as error:
        what = f"cannot be read by schema {number} ({type(error).__name__}): send what it describes"
        raise MessageError("value", what) from error


def _unknown(url: str) -> MessageError:
    return MessageError("value", f"has a schema that {url} does not know: register it")


def _refusal(error: HTTPError, url: str) -> str | None:
    """Return what may pass of an answer, None for an unknown schema; raise what does not."""
    with error:
        status, body = error.code, error.read(1000)
    if status == 404 and _UNKNOWN.search(body):
        return None
    if status < 500 and status not in _PASSING:
        raise ConsumerError(f"{url} answers {status}: correct registry, or {_AUTH}") from None
    return f"{status} {error.reason}"


def _plain(value: Any) -> Any:
    """Return what Avro's logical types make as JSON has it."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, (date, time_of_day)):
        return value.isoformat()
    return str(value) if isinstance(value, UUID) else value
