"""What `drift consume` is told: by a TOML file, by the environment, by its options.

Options come before the environment, and that before the file. Values of kafka-python's options are
never shown: any of them may be a secret.
"""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any, NamedTuple

from drift.cli_model import build, imported, nearest, parse
from drift.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

__all__ = ["PREFIX", "WORKER", "Secrets", "Settings", "kafka_options", "load_kafka", "read"]

PREFIX = "DRIFT_KAFKA_"
#: Keys of ``[worker]`` and what they hold.
WORKER: dict[str, tuple[type, ...]] = {
    "topic": (str,),
    "group": (str,),
    "checkpoints": (str,),
    "from": (str,),
    "predictions": (str,),
    "dead_letters": (str,),
    "single": (bool,),
    "checkpoint_every": (int,),
    "checkpoint_seconds": (int, float),
    "keep": (int,),
    "metrics_port": (int,),
    "metrics_address": (str,),
    "key_file": (str,),
    "allow_pickle": (bool,),
    "log_json": (bool,),
}
_TABLES = ("model", "worker", "kafka", "consumer", "producer")
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
_SECRET = ("password", "secret", "token")


class Secrets(set[str]):
    """Texts that are not to be shown.

    Examples
    --------
    >>> Secrets({"hunter2"}).hidden("wrong password hunter2")
    'wrong password ***'
    """

    def hidden(self, text: str) -> str:
        """Return a text without them."""
        for secret in sorted(self, key=len, reverse=True):
            text = text.replace(secret, "***")
        return text


class Settings(NamedTuple):
    """All that a worker is told.

    Attributes
    ----------
    model
        Table of the model, as `drift.cli_model.build` takes it.
    worker
        What `WORKER` names.
    kafka
        Options of kafka-python for all clients.
    consumer, producer
        More of them for the one or the other.
    """

    model: dict[str, Any]
    worker: dict[str, Any]
    kafka: dict[str, Any]
    consumer: dict[str, Any]
    producer: dict[str, Any]


def read(  # noqa: PLR0913, PLR0917
    config: Path | None,
    environ: Mapping[str, str],
    worker: Mapping[str, Any],
    model: Mapping[str, Any],
    bootstrap: str | None,
    secrets: Secrets,
) -> Settings:
    """Read the file and the environment, and put the options over them.

    Parameters
    ----------
    config
        The TOML file; None for none.
    environ
        The environment; ``DRIFT_KAFKA_<OPTION>`` is an option of kafka-python.
    worker, model
        Options given, None where not: of `WORKER`; ``class``, budget, kernel and seed.
    bootstrap
        The broker's ``host:port``.
    secrets
        What must not be shown is added to it.

    Raises
    ------
    ParameterError
        If the file cannot be read, or names what there is not.
    """
    tables = _load(config)
    kafka = kafka_options(tables, environ, bootstrap, secrets)
    merged = dict(tables["worker"]) | _given(worker)
    _check_keys("[worker]", merged, WORKER)
    for name, value in merged.items():
        if type(value) not in WORKER[name]:
            wanted = " or ".join(kind.__name__ for kind in WORKER[name])
            raise ParameterError(f"[worker] {name} must be {wanted}, not {type(value).__name__}")
    for name in ("topic", "group", "checkpoints"):
        if not merged.get(name):
            option = "the topic" if name == "topic" else f"--{name}"
            raise ParameterError(f"give {option}, or {name} in [worker] of the --config file")
    return Settings(_model(tables["model"], _given(model)), merged, *kafka)


def kafka_options(
    tables: Mapping[str, Mapping[str, Any]],
    environ: Mapping[str, str],
    bootstrap: str | None,
    secrets: Secrets,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return kafka-python's options for all clients, for the consumer and for the producer."""
    from drift.consumers import topics  # noqa: PLC0415

    known = {
        "kafka": topics.client_options(),
        "consumer": topics.consumer_options(),
        "producer": topics.producer_options(),
    }
    found = {name: dict(tables.get(name, {})) for name in known}
    for table in found.values():
        _hide(secrets, table)
    every = known["consumer"] | known["producer"]
    for variable, text in environ.items():
        name = variable.removeprefix(PREFIX).lower()
        if variable.startswith(PREFIX) and name:
            _hide(secrets, {name: text})
            _check_keys(f"the environment, {PREFIX}...:", [name], every)
            home = next(table for table, names in known.items() if name in names)
            found[home][name] = _converted(variable, text, every[name])
    if bootstrap is not None:
        found["kafka"]["bootstrap_servers"] = bootstrap
    for name, options in found.items():
        _check_keys(f"[{name}]", options, known[name])
        if taken := sorted(_OURS & options.keys()):
            raise ParameterError(f"{taken[0]} is the worker's own: leave it out of [{name}]")
        options.update({key: _object(key, value) for key, value in options.items()})
    if not found["kafka"].get("bootstrap_servers"):
        raise ParameterError(
            "say where the broker is: --bootstrap host:port, bootstrap_servers in [kafka], "
            f"or {PREFIX}BOOTSTRAP_SERVERS"
        )
    return found["kafka"], found["consumer"], found["producer"]


def load_kafka(
    config: Path | None, environ: Mapping[str, str], bootstrap: str | None, secrets: Secrets
) -> dict[str, Any]:
    """Return kafka-python's options for a client that is no worker."""
    return kafka_options(_load(config), environ, bootstrap, secrets)[0]


def _load(config: Path | None) -> dict[str, dict[str, Any]]:
    tables: dict[str, Any] = {}
    if config is not None:
        try:
            tables = tomllib.loads(config.read_text(encoding="utf-8"))
        except OSError as problem:
            raise ParameterError(f"{config}: {problem.strerror}") from None
        except ValueError as problem:
            raise ParameterError(f"{config} is no TOML: {problem}") from None
        _check_keys(f"{config}:", tables, _TABLES)
        for name, table in tables.items():
            if not isinstance(table, dict):
                raise ParameterError(f"{config}: {name} must be a table: [{name}]")
    return {name: dict(tables.get(name, {})) for name in _TABLES}


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _model(table: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Put the options over the file's table; a class given replaces all of that."""
    if "class" in given:
        table = parse(given.pop("class"))
    kernel = given.get("kernel", table.get("kernel"))
    table |= given
    if isinstance(kernel, str):
        table["kernel"] = parse(kernel)
    if "class" not in table:
        raise ParameterError("say which model: --model RBP, or class = 'RBP' in [model]")
    build(table)  # so that what it refuses is said before anything is connected to
    return table


def _check_keys(where: str, names: Iterable[str], known: Iterable[str]) -> None:
    known = list(known)
    for name in names:
        if name not in known:
            raise ParameterError(f"{where} has no {name!r}: {nearest(name, known)}")


def _hide(secrets: Secrets, options: Mapping[str, Any]) -> None:
    # Misspelt names hold secrets, too: what looks like one is hidden before names are checked.
    for name, value in options.items():
        if isinstance(value, str) and value and any(word in name.lower() for word in _SECRET):
            secrets.add(value)


def _object(name: str, value: Any) -> Any:
    """Make what TOML cannot say of what it says."""
    if name in _OBJECTS:
        return imported(value)()
    return tuple(value) if name == "api_version" and isinstance(value, list) else value


def _converted(variable: str, text: str, default: Any) -> Any:
    """Read a variable as what the option's default is."""
    try:
        if variable == f"{PREFIX}API_VERSION":
            return tuple(int(part) for part in text.split("."))
        if isinstance(default, bool):
            return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
        return type(default)(text) if isinstance(default, (int, float)) else text
    except (KeyError, ValueError):
        kind = "true or false" if isinstance(default, bool) else "a number"
        raise ParameterError(f"{variable} must be {kind}") from None
