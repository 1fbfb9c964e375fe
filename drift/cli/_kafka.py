"""kafka-python's options as a file and the environment give them: read, checked and kept secret.

kafka-python checks few of them: what it does not know it ignores, or stumbles over much later.
Their values are never shown, as any of them may be a secret; the names of files are.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from drift._checks import check_choice, check_names
from drift._options import KINDS
from drift.cli._named import imported
from drift.consumers.records import PROTOCOLS
from drift.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from drift.cli._log import Secrets

__all__ = ["PREFIX", "REFUSED", "kafka_options"]

PREFIX = "DRIFT_KAFKA_"
#: Options that users cannot set, and why.
REFUSED = dict.fromkeys(
    (
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
    ),
    "is the worker's own",  # another value would lose or double examples
) | dict.fromkeys(
    (
        "default_offset_commit_callback",
        "kafka_client",
        "metric_reporters",
        "partition_assignment_strategy",
        "partitioner",
        "selector",
    ),
    "takes classes or functions, of Python alone",  # which no text names
)
#: Options that hold objects: ``module:function``, which is called for one.
_OBJECTS = {"sasl_oauth_token_provider", "ssl_context"}
_FILES = {"ssl_cafile", "ssl_certfile", "ssl_crlfile", "ssl_keyfile"}
#: Types of options by that of their default; those of all others are strings.
_TYPES_BY_DEFAULT: dict[type, tuple[type, ...]] = {
    bool: (bool,),
    int: (int,),
    float: (float, int),  # infinity, where there is no limit
}
#: Types of those whose default does not tell them.
_TYPES: dict[str, tuple[type, ...]] = {
    "api_version": (list, tuple),
    "bootstrap_servers": (str, list),
    "receive_buffer_bytes": (int,),
    "send_buffer_bytes": (int,),
    "socket_options": (list,),
}
#: What the lists among these hold.
_ELEMENTS: dict[str, type] = {"api_version": int, "bootstrap_servers": str, "socket_options": list}
#: How a variable is read as a type; as the others it is left as it is.
_READERS: dict[type, Callable[[str], Any]] = {
    bool: lambda text: {"true": True, "1": True, "false": False, "0": False}[text.lower()],
    int: int,
    float: float,
    list: lambda text: tuple(int(part) for part in text.split(".")),  # of a version, as 2.3
}
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
#: A broker's address, as kafka-python reads it, and its port.
_SERVER = re.compile(
    r"""
    (?: \w+:// )?                                # ignored, as in Java
    (?: (?: \[ [\da-fA-F:.]+ (?: %[\w.-]+ )? \]  # of IPv6, maybe with its zone
          | [^\s:/\[\]]+                         # a name, or of IPv4
        ) (?: :(\d{1,5}) )?
      | [\da-fA-F.]* (?: :[\da-fA-F.]* ){2,}     # of IPv6, without a port
    )
    """,
    re.VERBOSE,
)
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
        Secrets found are added.

    Raises
    ------
    ParameterError
        If there is no such option, or its value cannot be.
    """
    from drift.consumers.client.topics import known_options

    known = known_options()
    all_known = known["consumer"] | known["producer"]
    options_of = {name: dict(tables.get(name, {})) for name in known}
    variables = {
        name.removeprefix(PREFIX).lower(): text
        for name, text in environ.items()
        if name.startswith(PREFIX) and name != PREFIX
    }
    for given in (variables, *options_of.values()):
        # Misspelt names hold secrets, too: what looks like one is hidden before names are checked.
        secrets.update(
            str(value)
            for name, value in given.items()
            if any(word in name.lower() for word in _SECRET) and str(value)
        )
    check_names(f"the environment, {PREFIX}...: has no", variables, all_known)
    first = {
        name: _checked(f"{PREFIX}{name.upper()}", name, _read(name, text, all_known), all_known)
        for name, text in variables.items()
    }
    if bootstrap is not None:
        _check_servers("--bootstrap", bootstrap)
        first["bootstrap_servers"] = bootstrap
    for where, options in known.items():
        check_names(f"[{where}] has no", options_of[where], options)
        options_of[where] = {
            name: _checked(f"[{where}] {name}", name, value, options)
            for name, value in options_of[where].items()
            if name not in first
        }
    for name, value in first.items():
        home = next(where for where, options in known.items() if name in options)
        options_of[home][name] = value
    if not options_of["kafka"].get("bootstrap_servers"):
        raise ParameterError(
            "say where the broker is: --bootstrap host:port, bootstrap_servers in [kafka], "
            f"or {PREFIX}BOOTSTRAP_SERVERS"
        )
    return options_of["kafka"], options_of["consumer"], options_of["producer"]


def _types(name: str, defaults: _Options) -> tuple[type, ...]:
    """Return the types that an option may have, that of a variable first."""
    return _TYPES.get(name) or _TYPES_BY_DEFAULT.get(type(defaults[name]), (str,))


def _read(name: str, text: str, defaults: _Options) -> Any:
    """Read a variable as what the option holds; left as it is where it is none."""
    try:
        return _READERS.get(_types(name, defaults)[0], str)(text)
    except (KeyError, ValueError):
        return text


def _checked(where: str, name: str, value: Any, defaults: _Options) -> Any:
    """Return what a client is given for a value, or refuse it by where it stands."""
    if name in REFUSED:
        raise ParameterError(f"{where} {REFUSED[name]}: leave it out")
    _check_type(where, name, value, _types(name, defaults))
    least = int(name in _POSITIVE)
    if type(value) in {int, float} and not value >= least:
        raise ParameterError(f"{where} must be at least {least}")
    if name == "bootstrap_servers":
        _check_servers(where, value)
    if name == "security_protocol":
        check_choice(where, value, PROTOCOLS)
    if name in _FILES:
        _check_file(where, value)
    if name in _OBJECTS:
        return imported(value)()
    return tuple(value) if name == "api_version" else value


def _check_type(where: str, name: str, value: Any, types: tuple[type, ...]) -> None:
    wanted = _WANTED_BY_NAME.get(name) or KINDS[types[0]]
    if type(value) not in types:
        raise ParameterError(f"{where} must be {wanted}, not {type(value).__name__}")
    if isinstance(value, (list, tuple)) and {type(one) for one in value} != {_ELEMENTS[name]}:
        raise ParameterError(f"{where} must be {wanted}")


def _check_servers(where: str, value: str | list[str]) -> None:
    # kafka-python's error has no word of the option, or it tries to connect for half a minute.
    servers = value.split(",") if isinstance(value, str) else value
    for server in servers:
        if len(servers) > 1 and not server.strip():
            raise ParameterError(
                f"{where} has an empty address, as behind a comma at its end: leave it out"
            )
        found = _SERVER.fullmatch(server.strip())
        if not found or not 0 < int(found[1] or 9092) < 1 << 16:
            raise ParameterError(
                f"{where} must be host:port, as kafka-1:9092, or several with commas between them"
            )


def _check_file(where: str, file: str) -> None:
    # kafka-python would try to connect for half a minute, and not say which file it lacks.
    try:
        Path(file).read_bytes()
    except OSError as problem:
        raise ParameterError(f"{where}: {file}: {problem.strerror}") from None
