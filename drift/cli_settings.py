"""What `drift consume` is told: by a TOML file, by the environment, by its options.

Options come before the environment, and that before the file.
"""

from __future__ import annotations

import math
import tomllib
from typing import TYPE_CHECKING, Any, NamedTuple

from drift.cli_kafka import PREFIX, Secrets, check_names, kafka_options
from drift.cli_model import build, parse
from drift.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["CODEC", "PREFIX", "WORKER", "Secrets", "Settings", "load_kafka", "read"]

#: Keys of ``[worker]`` and what they hold.
WORKER: dict[str, tuple[type, ...]] = {
    "topic": (str,),
    "group": (str,),
    "checkpoints": (str,),
    "from": (str,),
    "on_gap": (str,),
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
#: Keys of ``[codec]``, which are those of `drift.consumers.codec.JsonCodec`.
CODEC: dict[str, tuple[type, ...]] = {
    "labels": (list,),
    "require_label": (bool,),
    "raw": (bool,),
    "max_bytes": (int,),
}
_TABLES = ("model", "worker", "codec", "kafka", "consumer", "producer")
#: Least and largest numbers of these.
_BOUNDS: dict[str, tuple[int, float]] = {
    "checkpoint_every": (1, math.inf),
    "checkpoint_seconds": (0, math.inf),
    "keep": (1, math.inf),
    "metrics_port": (0, 65535),
}


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
    codec
        What `CODEC` names.
    """

    model: dict[str, Any]
    worker: dict[str, Any]
    kafka: dict[str, Any]
    consumer: dict[str, Any]
    producer: dict[str, Any]
    codec: dict[str, Any]


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
    _check_worker(merged)
    _check_codec(tables["codec"])
    return Settings(_model(tables["model"], _given(model)), merged, *kafka, tables["codec"])


def _check_types(
    where: str, options: Mapping[str, Any], known: Mapping[str, tuple[type, ...]]
) -> None:
    check_names(where, options, known)
    for name, value in options.items():
        if type(value) not in known[name]:
            wanted = " or ".join(kind.__name__ for kind in known[name])
            raise ParameterError(f"{where} {name} must be {wanted}, not {type(value).__name__}")


def _check_codec(options: Mapping[str, Any]) -> None:
    from drift.consumers.codec import JsonCodec  # noqa: PLC0415

    _check_types("[codec]", options, CODEC)
    for label in options.get("labels", []):
        if type(label) not in {bool, int, str}:
            raise ParameterError(
                f"[codec] labels: {label!r} is no label: those are strings, true, false, integers"
            )
    JsonCodec(**options)  # so that what it refuses is said before anything is connected to


def _check_worker(options: Mapping[str, Any]) -> None:
    _check_types("[worker]", options, WORKER)
    for name, (least, most) in _BOUNDS.items():
        if name in options and not least <= options[name] <= most:
            option = f"--{name.replace('_', '-')} ({name} in [worker])"
            bounds = f"at least {least}" if most == math.inf else f"from {least} to {most}"
            raise ParameterError(f"{option} must be {bounds}, not {options[name]}")
    for name in ("topic", "group", "checkpoints"):
        if not options.get(name):
            option = "the topic" if name == "topic" else f"--{name}"
            raise ParameterError(f"give {option}, or {name} in [worker] of the --config file")


def load_kafka(
    config: Path | None, environ: Mapping[str, str], bootstrap: str | None, secrets: Secrets
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return kafka-python's options of a consumer and of a producer that are no worker's."""
    kafka, consumer, producer = kafka_options(_load(config), environ, bootstrap, secrets)
    return kafka | consumer, kafka | producer


def _load(config: Path | None) -> dict[str, dict[str, Any]]:
    tables: dict[str, Any] = {}
    if config is not None:
        try:
            tables = tomllib.loads(config.read_text(encoding="utf-8"))
        except OSError as problem:
            raise ParameterError(f"{config}: {problem.strerror}") from None
        except ValueError as problem:
            raise ParameterError(f"{config} is no TOML: {problem}") from None
        check_names(f"{config}:", tables, _TABLES)
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
