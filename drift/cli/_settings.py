"""Settings of commands, from a TOML file, the environment and their options.

Options override the environment, which overrides the file.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from drift._checks import check_names
from drift._options import declared, from_table, from_tables, option
from drift.cli._kafka import PREFIX, kafka_options
from drift.cli._named import build, imported, parse, table_of
from drift.consumers.checkpoints.files import newest, no_folder
from drift.consumers.checkpoints.objects import as_path
from drift.consumers.checkpoints.retention import Retention
from drift.consumers.codec import is_keyed
from drift.consumers.json_codec import JsonCodec, checked_codec
from drift.consumers.options import ServiceOptions, WorkerOptions
from drift.errors import CheckpointError, ParameterError, UnavailableError, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from drift.cli._log import Secrets
    from drift.consumers.codec import Codec

__all__ = [
    "PREFIX",
    "TABLES",
    "ConsumeOptions",
    "ServeOptions",
    "Settings",
    "load",
    "load_kafka",
    "read",
]


@dataclass(frozen=True, kw_only=True)
class ConsumeOptions(Retention, WorkerOptions):
    """Settings of the worker of `drift consume`, from the file and the command line.

    In the file, options of late labels are in ``[labels]``, of promotion in ``[promote]``, of
    models of keys in ``[keyed]``, of thresholds in ``[decision]``, of explanations in
    ``[answers]``, the rest in ``[worker]``.
    """

    checkpoints: str = option(
        "Folder of the checkpoints, shared by the group's workers, or s3://bucket/prefix."
    )
    metrics_port: int = option("Port for Prometheus; 0 for none.", 0, least=0, most=65535)
    metrics_address: str = option("Address for Prometheus.", "127.0.0.1")
    key_file: str | None = option("File of the key that signs checkpoints.", None)
    allow_pickle: bool = option("Allow pickle, for models that are not drift's.", default=False)
    log_json: bool = option("Log JSON objects.", default=False)


@dataclass(frozen=True, kw_only=True)
class ServeOptions(ServiceOptions, ConsumeOptions):
    """Settings of `drift serve`: those of `drift consume`, and ``[serve]``."""


#: The tables of a file.
TABLES = (
    *("model", "models", "worker"),
    *dict.fromkeys(one.table for one in declared(ServeOptions) if one.table),
    *("codec", "kafka", "consumer", "producer"),
)


class Settings(NamedTuple):
    """All settings of a worker.

    Attributes
    ----------
    model
        Table of the model, as `drift.cli._named.build` takes it.
    worker
        Its options.
    kafka
        Options of kafka-python for all clients.
    consumer, producer
        More of them for the one or the other.
    codec
        Parameters of `drift.consumers.JsonCodec`.
    shadow
        Table of the second model; None for none.
    """

    model: dict[str, Any]
    worker: ConsumeOptions
    kafka: dict[str, Any]
    consumer: dict[str, Any]
    producer: dict[str, Any]
    codec: Codec
    shadow: dict[str, Any] | None


def read(  # noqa: PLR0913, PLR0917
    config: Path | None,
    environ: Mapping[str, str],
    worker: Mapping[str, Any],
    model: Mapping[str, Any],
    bootstrap: str | None,
    secrets: Secrets,
    kind: type[ConsumeOptions] = ConsumeOptions,
    keyed: str | None = None,
) -> Settings:
    """Read the file and the environment, and put the options over them.

    Parameters
    ----------
    config
        The TOML file; None for none.
    environ
        The environment; ``DRIFT_KAFKA_<OPTION>`` is an option of kafka-python.
    worker
        Options of the worker that were given.
    model
        ``class``, budget, kernel and seed, None where they were not given.
    bootstrap
        The broker's ``host:port``.
    secrets
        Secrets found are added.
    kind
        What has the options of the worker.
    keyed
        The codec's `key`, which comes before the file's.

    Raises
    ------
    ParameterError
        If the file cannot be read, or has an unknown name.
    """
    tables = load(config, TABLES)
    options, (kafka, consumer, producer) = _at_once(
        lambda: _worker(tables, worker, kind),
        lambda: kafka_options(tables, environ, bootstrap, secrets),
    )
    codec = _codec(tables["codec"] | ({} if keyed is None else {"key": keyed}))
    if tables["keyed"] and not is_keyed(codec):
        names = ", ".join(tables["keyed"])
        raise ParameterError(f"[keyed] has {names} and no key: give --keyed, or key in [codec]")
    given = {name: value for name, value in model.items() if value is not None}
    table = _model(tables["model"], given, options)
    shadow = _shadow(tables["models"], options)
    return Settings(table, options, kafka, consumer, producer, codec, shadow)


def _at_once(*steps: Callable[[], Any]) -> list[Any]:
    """Return the result of each step; report the errors of all steps at once."""
    results, problems = [], []
    for step in steps:
        try:
            results.append(step())
        except ParameterError as problem:
            problems.append(str(problem))
    if problems:
        raise ParameterError("; ".join(problems))
    return results


def _worker(
    tables: Mapping[str, Mapping[str, Any]], given: Mapping[str, Any], kind: type[ConsumeOptions]
) -> ConsumeOptions:
    """Return the options of a worker."""
    wanted = {"worker", *(one.table for one in declared(kind) if one.table)}
    options = from_tables(kind, "worker", {name: tables[name] for name in wanted}, given)
    if options.labels is None and tables["labels"]:
        names = ", ".join(tables["labels"])
        raise ParameterError(f"[labels] has {names} and no topic: write the topic of the labels")
    return options


def _codec(table: dict[str, Any]) -> Codec:
    """Return drift's codec, or that of a class of the user's."""
    if "class" in table:
        name = str(table.pop("class"))
        kind = imported(name)
        try:
            return checked_codec(kind(**table))
        except TypeError as error:  # a key that it has no parameter for, or no decode
            raise ParameterError(f"[codec] class {name}: {one_line(str(error))}") from error
    if "registry" not in table:
        return from_table(JsonCodec, table, "[codec]")
    from drift.consumers.registry import SchemaCodec

    return from_table(SchemaCodec, table, "[codec]")


def load_kafka(
    config: Path | None, environ: Mapping[str, str], bootstrap: str | None, secrets: Secrets
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return kafka-python's options of a consumer and of a producer that are no worker's."""
    kafka, consumer, producer = kafka_options(load(config, TABLES), environ, bootstrap, secrets)
    return kafka | consumer, kafka | producer


def load(config: Path | None, names: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return the tables of a TOML file, empty where it has not; those of these names alone."""
    try:
        tables = tomllib.loads("" if config is None else config.read_text(encoding="utf-8-sig"))
    except OSError as problem:
        raise ParameterError(f"{config}: {problem.strerror}") from None
    except ValueError as problem:
        raise ParameterError(f"{config} is not valid TOML: {problem}") from None
    check_names(f"{config}: has no", tables, names)
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise ParameterError(f"{config}: {name} must be a table: [{name}]")
    return {name: dict(tables.get(name, {})) for name in names}


def _model(table: dict[str, Any], given: dict[str, Any], options: ConsumeOptions) -> dict[str, Any]:
    """Put the options over the file's table; a class given replaces all of that.

    Without a class it is the model that the checkpoints have, and `Tracker` where there is none. Of
    one that does not say whether labels come late, a topic of their own does.
    """
    if "class" in given:
        table = parse(given.pop("class"))
    table |= given
    if isinstance(table.get("kernel"), str):
        table["kernel"] = parse(table["kernel"])
    if "class" not in table:
        table = _stored(options) | table
    return _late(table, options)


def _shadow(tables: Mapping[str, Any], options: ConsumeOptions) -> dict[str, Any] | None:
    """Return the table of the second model, which names its class."""
    check_names("[models] has no", tables, ["shadow"])
    if "shadow" not in tables:
        if options.promote is not None:
            raise ParameterError("[promote] promotes a shadow, and there is no [models.shadow]")
        return None
    table = tables["shadow"]
    if not isinstance(table, dict):
        raise ParameterError("[models] shadow must be a table: [models.shadow]")
    if isinstance(table.get("kernel"), str):
        table["kernel"] = parse(table["kernel"])
    return _late(table, options)


def _late(table: dict[str, Any], options: ConsumeOptions) -> dict[str, Any]:
    """Return the table of a model that can be built, with whether labels come late."""
    model = build(table)  # refuses bad parameters before any connection
    if options.labels and ":" not in table["class"] and getattr(model, "late", False) is None:
        table["late"] = True
    return table


def _stored(options: ConsumeOptions) -> dict[str, Any]:
    """Return the table of the model that the checkpoints of a topic have."""
    try:
        for _, header in newest(as_path(options.checkpoints)):
            if header["configuration"].get("topic") == options.topic:
                return table_of(header["configuration"])
    except FileNotFoundError:
        pass
    except NotADirectoryError as problem:
        raise no_folder(problem.filename) from None
    except (CheckpointError, OSError) as problem:
        cause = problem if isinstance(problem, OSError) else problem.__cause__
        if isinstance(cause, OSError):  # else there is none that is whole
            kind = CheckpointError if isinstance(cause, PermissionError) else UnavailableError
            raise kind(f"{options.checkpoints}: cannot be read: {problem}") from problem
    return {"class": "Tracker"}
