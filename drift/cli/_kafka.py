"""kafka-python's options as a file and the environment give them: read, checked and kept secret.

kafka-python checks few of them: what it does not know it ignores, or stumbles over much later.
Their values are never shown, as any of them may be a secret; the names of files are.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from drift._checks import check_names
from drift._options import KINDS
from drift.cli._named import imported
from drift.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drift.cli._log import Secrets

__all__ = ["PREFIX", "kafka_options"]

PREFIX = "DRIFT_KAFKA_"
#: What the worker decides: another value would lose or double examples.
_OURS = {
    "acks",
    "auto_commit_interval_ms",
    "auto_offset_reset",
    "consumer_timeout_ms",
    "enable_auto_commit",
    "group_id",
    "key_deserializer",
    "key_serializer",
    "transactional_id",
    "value_deserializer",
    "value_serializer",
}
#: Options that hold objects: ``module:function``, which is called for one.
_OBJECTS = {"sasl_oauth_token_provider", "ssl_context"}
#: Options that hold classes and functions, which no text names.
_UNSAYABLE = {
    "default_offset_commit_callback",
    "kafka_client",
    "metric_reporters",
    "partition_assignment_strategy",
    "partitioner",
    "selector",
}
_FILES = {"ssl_cafile", "ssl_certfile", "ssl_crlfile", "ssl_keyfile"}
#: Options whose default does not tell their type, but for those that are strings.
_TYPES: dict[str, tuple[type, ...]] = {
    "api_version": (list, tuple),
    "bootstrap_servers": (str, list),
    "receive_buffer_bytes": (int,),
    "send_buffer_bytes": (int,),
    "socket_options": (list,),
}
#: What the lists among these hold.
_ELEMENTS: dict[str, type] = {"api_version": int, "bootstrap_servers": str, "socket_options": list}
#: Numbers that cannot be 0; no number can be negative.
_POSITIVE = {
    "bootstrap_timeout_ms",
    "connections_max_idle_ms",
    "delivery_timeout_ms",
    "fetch_max_bytes",
    "heartbeat_interval_ms",
    "max_block_ms",
    "max_in_flight_requests_per_connection",
    "max_partition_fetch_bytes",
    "max_poll_interval_ms",
    "max_poll_records",
    "max_request_size",
    "receive_message_max_bytes",
    "request_timeout_ms",
    "session_timeout_ms",
}
_SECRET = ("password", "secret", "token")
_WANTED_BY_NAME = {
    "api_version": "numbers, as [2, 3] in a file and 2.3 in the environment",
    "bootstrap_servers": "host:port or a list of them",
    "socket_options": "a list of lists",
}

_Options: TypeAlias = dict[str, Any]


def kafka_options(
    tables: Mapping[str, Mapping[str, Any]],
    environ: Mapping[str, str],
    bootstrap: str | None,
    secrets: Secrets,
) -> tuple[_Options, _Options, _Options]:
    """Return kafka-python's options for all clients, for the consumer and for the producer.

    Parameters
    ----------
    tables
        ``kafka``, ``consumer`` and ``producer`` of the file, as far as they are there.
    environ
        The environment; ``DRIFT_KAFKA_<OPTION>`` comes before the file.
    bootstrap
        The broker's ``host:port``, which comes before both.
    secrets
        What must not be shown is added to it.

    Raises
    ------
    ParameterError
        If there is no such option, or its value cannot be.
    """
    from drift.consumers.client.topics import known_options  # noqa: PLC0415

    known = known_options()
    found = {name: dict(tables.get(name, {})) for name in known}
    for table in found.values():
        _hide(secrets, table)
    first = _from_environment(environ, known["consumer"] | known["producer"], secrets)
    if bootstrap is not None:
        first["bootstrap_servers"] = bootstrap
    for where, options in known.items():
        check_names(f"[{where}] has no", found[where], options)
        found[where] = {
            name: _checked(f"[{where}] {name}", name, value, options[name])
            for name, value in found[where].items()
            if name not in first
        }
    for name, value in first.items():
        home = next(where for where, options in known.items() if name in options)
        found[home][name] = value
    if not found["kafka"].get("bootstrap_servers"):
        raise ParameterError(
            "say where the broker is: --bootstrap host:port, bootstrap_servers in [kafka], "
            f"or {PREFIX}BOOTSTRAP_SERVERS"
        )
    return found["kafka"], found["consumer"], found["producer"]


def _from_environment(
    environ: Mapping[str, str], known: Mapping[str, Any], secrets: Secrets
) -> _Options:
    found = {}
    for variable, text in environ.items():
        name = variable.removeprefix(PREFIX).lower()
        if variable.startswith(PREFIX) and name:
            _hide(secrets, {name: text})
            check_names(f"the environment, {PREFIX}...: has no", [name], known)
            value = _read(text, _types(name, known[name]))
            found[name] = _checked(variable, name, value, known[name])
    return found


def _hide(secrets: Secrets, options: Mapping[str, Any]) -> None:
    # Misspelt names hold secrets, too: what looks like one is hidden before names are checked.
    for name, value in options.items():
        if any(word in name.lower() for word in _SECRET) and str(value):
            secrets.add(str(value))


def _types(name: str, default: Any) -> tuple[type, ...]:
    """Return the types that an option may have."""
    if name in _TYPES:
        return _TYPES[name]
    if isinstance(default, float):  # infinity, where there is no limit
        return (float, int)
    return (type(default) if isinstance(default, (bool, int)) else str,)


def _read(text: str, types: tuple[type, ...]) -> Any:
    """Read a variable as what the option holds; left as it is where it is none."""
    try:
        if tuple in types:
            return tuple(int(part) for part in text.split("."))
        if bool in types:
            return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
        return types[0](text) if types[0] in {int, float} else text
    except (KeyError, ValueError):
        return text


def _checked(where: str, name: str, value: Any, default: Any) -> Any:
    """Return what a client is given for a value, or refuse it by where it stands."""
    if name in _OURS:
        raise ParameterError(f"{where} is the worker's own: leave it out")
    if name in _UNSAYABLE:
        raise ParameterError(f"{where} takes classes or functions, of Python alone: leave it out")
    _check_type(where, name, value, _types(name, default))
    least = int(name in _POSITIVE)
    if type(value) in {int, float} and not value >= least:
        raise ParameterError(f"{where} must be at least {least}")
    if name == "security_protocol":
        _check_protocol(where, value)
    if name in _FILES:
        _check_file(where, value)
    if name in _OBJECTS:
        return imported(value)()
    return tuple(value) if name == "api_version" else value


def _check_type(where: str, name: str, value: Any, types: tuple[type, ...]) -> None:
    wanted = _WANTED_BY_NAME.get(name) or KINDS[types[0]]
    if type(value) not in types:
        raise ParameterError(f"{where} must be {wanted}, not {type(value).__name__}")
    if isinstance(value, (list, tuple)):
        kinds = {type(one) for one in value}
        if kinds != {_ELEMENTS[name]}:
            raise ParameterError(f"{where} must be {wanted}")


def _check_protocol(where: str, value: str) -> None:
    from drift.consumers.records import PROTOCOLS  # noqa: PLC0415

    if value not in PROTOCOLS:
        raise ParameterError(f"{where} cannot be {value!r}: choose among {', '.join(PROTOCOLS)}")


def _check_file(where: str, file: str) -> None:
    # kafka-python would try to connect for half a minute, and not say which file it lacks.
    try:
        Path(file).read_bytes()
    except OSError as problem:
        raise ParameterError(f"{where}: {file}: {problem.strerror}") from None
