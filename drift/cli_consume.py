"""The command ``drift consume``: a worker, until it is told to stop."""

from __future__ import annotations

import logging
import os
from pathlib import Path  # noqa: TC003 - typer reads it
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drift import cli_model, cli_settings
from drift.cli_common import answering, logging_to_stderr, read_key

if TYPE_CHECKING:
    from drift.cli_settings import Secrets, Settings
    from drift.consumers.worker import Worker

__all__ = ["consume"]

log = logging.getLogger("drift.consumers")


def consume(  # noqa: PLR0913, PLR0917
    topic: Annotated[str | None, typer.Argument(help="The topic to learn.")] = None,
    group: Annotated[str | None, typer.Option(help="Consumer group.")] = None,
    checkpoints: Annotated[
        str | None, typer.Option(help="Folder of the checkpoints, shared by the group's workers.")
    ] = None,
    bootstrap: Annotated[str | None, typer.Option(help="host:port of a broker.")] = None,
    model: Annotated[
        str | None, typer.Option(help="RBP, 'RBP(budget=500)', or module:function for your own.")
    ] = None,
    budget: Annotated[int | None, typer.Option(help="Of the model.")] = None,
    kernel: Annotated[
        str | None, typer.Option(help="Of the model: 'Polynomial(degree=4)'.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of the model.")] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="TOML file: [model], [worker], [codec], [kafka], [consumer], [producer]."
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option("--from", help="Where to start without checkpoint: earliest or latest."),
    ] = None,
    on_gap: Annotated[
        str | None,
        typer.Option(help="Where messages were deleted before they were learnt: stop or skip."),
    ] = None,
    predictions: Annotated[str | None, typer.Option(help="Topic for predictions.")] = None,
    dead_letters: Annotated[
        str | None, typer.Option(help="Topic for messages that cannot be learnt.")
    ] = None,
    single: Annotated[
        bool | None, typer.Option("--single/--no-single", help="One model over all partitions.")
    ] = None,
    checkpoint_every: Annotated[
        int | None, typer.Option(help="Messages between checkpoints; else 20000.")
    ] = None,
    checkpoint_seconds: Annotated[
        float | None, typer.Option(help="Seconds between checkpoints; else 10.")
    ] = None,
    keep: Annotated[int | None, typer.Option(help="Checkpoints kept; else 3.")] = None,
    metrics_port: Annotated[int | None, typer.Option(help="Port for Prometheus.")] = None,
    metrics_address: Annotated[
        str | None, typer.Option(help="Address for Prometheus; else 127.0.0.1.")
    ] = None,
    key_file: Annotated[
        str | None, typer.Option(help="File of the key that signs checkpoints.")
    ] = None,
    allow_pickle: Annotated[
        bool | None,
        typer.Option("--allow-pickle/--no-allow-pickle", help="For models that are not drift's."),
    ] = None,
    log_json: Annotated[
        bool | None, typer.Option("--log-json/--no-log-json", help="Log JSON objects.")
    ] = None,
) -> None:
    """Learn a topic, each example exactly once, until SIGTERM or Ctrl-C.

    Options of kafka-python come from [kafka] of the --config file or from the environment, as
    DRIFT_KAFKA_SASL_PLAIN_PASSWORD. Start more of the same command to share the partitions.
    """
    given = {
        "from": start,
        "on_gap": on_gap,
        "topic": topic,
        "group": group,
        "checkpoints": checkpoints,
        "predictions": predictions,
        "dead_letters": dead_letters,
        "single": single,
        "checkpoint_every": checkpoint_every,
        "checkpoint_seconds": checkpoint_seconds,
        "keep": keep,
        "metrics_port": metrics_port,
        "metrics_address": metrics_address,
        "key_file": key_file,
        "allow_pickle": allow_pickle,
        "log_json": log_json,
    }
    wanted = {"class": model, "budget": budget, "kernel": kernel, "seed": seed}
    secrets = cli_settings.Secrets()
    with answering(secrets):
        settings = cli_settings.read(config, os.environ, given, wanted, bootstrap, secrets)
        with logging_to_stderr(secrets, as_json=settings.worker.get("log_json", False)):
            _run(settings, secrets)


def _run(settings: Settings, secrets: Secrets) -> None:
    options = settings.worker
    configuration = {"topic": options["topic"], **cli_model.configuration(settings.model)}
    worker = _worker(settings, configuration, secrets)
    log.info("learning %s as one of %s", options["topic"], options["group"])
    try:
        exporter = _exporter(worker, options)
    except BaseException:
        worker.stop()
        worker.run(signals=False)  # leaves the group
        raise
    try:
        worker.run()
    finally:
        if exporter is not None:
            exporter.close()
    log.info("stopped")


def _exporter(worker: Worker, options: dict[str, Any]) -> Any:
    if not options.get("metrics_port"):
        return None
    from drift.consumers.metrics import Exporter  # noqa: PLC0415

    address = options.get("metrics_address", "127.0.0.1")
    return Exporter(worker.metrics, options["metrics_port"], address)


def _worker(settings: Settings, configuration: dict[str, Any], secrets: Secrets) -> Worker:
    from drift.consumers.checkpoints.folder import CheckpointFolder  # noqa: PLC0415
    from drift.consumers.codec import JsonCodec  # noqa: PLC0415
    from drift.consumers.worker import Worker  # noqa: PLC0415

    options = settings.worker
    folder = CheckpointFolder(
        options["checkpoints"],
        configuration,
        keep=options.get("keep", 3),
        key=read_key(options.get("key_file"), secrets),
        allow_pickle=options.get("allow_pickle", False),
    )
    return Worker(
        cli_model.build(settings.model),
        options["topic"],
        options["group"],
        folder,
        settings.kafka,
        start=options.get("from"),
        on_gap=options.get("on_gap", "stop"),
        codec=JsonCodec(**settings.codec),
        predictions=options.get("predictions"),
        dead_letters=options.get("dead_letters"),
        single=options.get("single", False),
        every_messages=options.get("checkpoint_every", 20_000),
        every_seconds=options.get("checkpoint_seconds", 10.0),
        consumer=settings.consumer,
        producer=settings.producer,
    )
