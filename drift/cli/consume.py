"""Run a worker until a signal."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from drift import consumers
from drift._checks import counted
from drift._options import option
from drift.cli import _named
from drift.cli._learning import Learning
from drift.cli._log import logging_to_stderr
from drift.cli._settings import TABLES, load
from drift.cli._signals import leave_at_signals
from drift.consumers.preparing import check_reads_labels
from drift.errors import ConsumerError, NothingLearntError, UnavailableError

if TYPE_CHECKING:
    from drift.cli._settings import Settings
    from drift.consumers.dry_run import DryRun
    from drift.consumers.records import Message

__all__ = ["Consume"]

log = logging.getLogger("drift.consumers")

#: Messages that are shown where none can be learnt.
_SHOWN = 20


@dataclass(kw_only=True)
class Consume(Learning):
    """Learn from a topic, each example exactly once, until SIGTERM or Ctrl-C.

    One worker of a group learns all partitions with one model. Start the same command more than
    once for standbys: one takes over when the active worker is gone. With --keyed each key has a
    model of its own, and the workers of a group share the partitions.

    The worker's options may also be in [worker] of the --config file, those of late labels in
    [labels]. The file may have [model], [codec], [kafka], [consumer] and [producer], too.
    [models.shadow] is a second model that learns beside the first, and [promote] lets it replace
    that. Options of kafka-python come from the file or the environment:
    DRIFT_KAFKA_SASL_PLAIN_PASSWORD.
    """

    dry_run: int | None = option(
        "Print what so many messages become, the first or with --from latest the last, and end: "
        "no group, no file and no topic is touched.",
        None,
        least=1,
    )

    def _run(self) -> None:
        if self.dry_run is not None:
            self._try_out(self.dry_run)
            return
        leave_at_signals()
        settings = self.settings()
        options = settings.worker
        from drift.consumers.exporter import Exporter

        with logging_to_stderr(self.secrets, as_json=options.log_json):
            worker = self._worker(settings)
            log.info("learning %s as one of %s", options.topic, options.group)
            try:
                exporter = Exporter(worker.metrics, options.metrics_port, options.metrics_address)
            except BaseException:
                worker.close()
                raise
            with exporter:
                try:
                    worker.run()
                except NothingLearntError as error:
                    from drift.consumers.dry_run import DryRun

                    messages = [message for message, _ in error.failures[:_SHOWN]]
                    _print(DryRun(settings.codec, messages, options.labels))
                    raise
            log.info("stopped")

    def _try_out(self, count: int) -> None:
        """Print what messages become."""
        from drift.consumers.client.topics import Reader
        from drift.consumers.dry_run import DryRun

        known = load(self.config, TABLES)["worker"]
        needless = {name: "(none)" for name in ("group", "checkpoints") if name not in known}
        self.given = needless | self.given
        settings = self.settings()
        options = settings.worker
        if options.labels:
            check_reads_labels(settings.codec, options.silence)
        messages: list[Message] = []
        with logging_to_stderr(self.secrets):
            for topic in options.topics:
                with Reader(topic, settings.kafka | settings.consumer) as reader:
                    reader.require(options.partition)
                    messages += reader.sample(count, options.start, options.partition)
        if not messages:
            raise UnavailableError(f"{options.topic} has no messages yet: send some")
        run = DryRun(settings.codec, messages, options.labels)
        _print(run)
        if not run.examples:
            raise ConsumerError(
                f"none of {counted(len(messages), 'message')} can be learnt: correct [codec]"
            )

    def _worker(self, settings: Settings) -> consumers.Worker:
        options, shadow = settings.worker, settings.shadow
        if options.allow_pickle and options.key_file is None:
            log.warning(
                "pickles are allowed and nothing is signed: who can write to %s can run code here; "
                "give a --key-file",
                options.checkpoints,
            )
        return consumers.Worker(
            _named.build(settings.model),
            self.folder(settings),
            settings.kafka,
            settings.worker,
            codec=settings.codec,
            consumer=settings.consumer,
            producer=settings.producer,
            shadow=shadow and _named.build(shadow),
        )


def _print(run: DryRun) -> None:
    for line in run.lines():
        click.echo(line)
