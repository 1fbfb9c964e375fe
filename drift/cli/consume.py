"""A worker, until it is told to stop."""

from __future__ import annotations

import logging
import os
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

from drift._options import option
from drift.cli import _named, _settings
from drift.cli._client import Client, read_key
from drift.cli._log import logging_to_stderr

if TYPE_CHECKING:
    from drift.consumers import CheckpointFolder, Worker

__all__ = ["Consume"]

log = logging.getLogger("drift.consumers")


@dataclass(kw_only=True)
class Consume(Client):
    """Learn from a topic, each example exactly once, until SIGTERM or Ctrl-C.

    One worker of a group learns all partitions with one model. Start more of the same command to
    have them stand by: one of them takes over when it is gone.

    Each option of the worker may also be in [worker] of the --config file, those of labels that
    come later in [labels]. The file has [model], [codec], [kafka], [consumer] and [producer], too.
    Options of kafka-python come from there or from the environment, as
    DRIFT_KAFKA_SASL_PLAIN_PASSWORD.
    """

    shared = _settings.ConsumeOptions

    model: str | None = option(
        "Tracker, 'RBP(budget=500)', or module:function for your own; default: the one in the "
        "checkpoints, or Tracker.",
        None,
    )
    budget: int | None = option("Budget of the model.", None)
    kernel: str | None = option("Kernel of the model: 'Polynomial(degree=4)'.", None)
    seed: int | None = option("Seed of the model.", None)

    def _run(self) -> None:
        settings = self._read(_settings.ConsumeOptions)
        options = settings.worker
        from drift.consumers.exporter import Exporter  # noqa: PLC0415

        with logging_to_stderr(self.secrets, as_json=options.log_json):
            # Until the worker listens to them: nothing is begun, and clients that connect would
            # complain.
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: os._exit(0))
            worker = self._worker(settings)
            log.info("learning %s as one of %s", options.topic, options.group)
            try:
                exporter = Exporter(worker.metrics, options.metrics_port, options.metrics_address)
            except BaseException:
                worker.stop()
                worker.run(signals=False)  # leaves the group
                raise
            with exporter:
                worker.run()
            log.info("stopped")

    def _read(self, kind: type[_settings.ConsumeOptions]) -> _settings.Settings:
        model = {
            "class": self.model,
            "budget": self.budget,
            "kernel": self.kernel,
            "seed": self.seed,
        }
        return _settings.read(
            self.config, os.environ, self.given, model, self.bootstrap, self.secrets, kind
        )

    def _folder(self, settings: _settings.Settings) -> CheckpointFolder:
        from drift.consumers import CheckpointFolder  # noqa: PLC0415

        options = settings.worker
        if options.allow_pickle and options.key_file is None:
            log.warning(
                "pickles are allowed and nothing is signed: who can write to %s can run code here; "
                "give a --key-file",
                options.checkpoints,
            )
        return CheckpointFolder(
            options.checkpoints,
            {"topic": options.topic, **_named.configuration(settings.model)},
            keep=options.keep,
            key=read_key(options.key_file, self.secrets),
            allow_pickle=options.allow_pickle,
        )

    def _worker(self, settings: _settings.Settings) -> Worker:
        from drift.consumers import Worker  # noqa: PLC0415

        return Worker(
            _named.build(settings.model),
            self._folder(settings),
            settings.kafka,
            settings.worker,
            codec=settings.codec,
            consumer=settings.consumer,
            producer=settings.producer,
        )
