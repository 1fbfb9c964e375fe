"""Serve predictions over HTTP, by a replica of a worker's model."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from drift.cli import _settings
from drift.cli._learning import IDLE, Learning
from drift.cli._log import logging_to_stderr
from drift.cli._signals import leave_at_signals

__all__ = ["Serve"]

log = logging.getLogger("drift.consumers")


@dataclass(kw_only=True)
class Serve(Learning):
    """Serve predictions of a group's model over HTTP, until SIGTERM or Ctrl-C.

    Takes the file of `drift consume`, and of its options those that decide what is learnt. Follows
    the group's checkpoints and learns the same logs in the same order, without joining the group;
    sends and writes nothing. POST /predict takes a message or a list of them; GET /openapi.json
    describes the rest.
    """

    shared = _settings.ServeOptions
    #: Options that `Replica` does not use: it sends, saves and promotes nothing, and has one model.
    unused = IDLE | {"predictions", "promote"}

    def _run(self) -> None:
        leave_at_signals()
        settings = self.settings()
        options = settings.worker
        assert isinstance(options, _settings.ServeOptions)  # noqa: S101 - by `shared`

        from drift.consumers.replica import Replica
        from drift.consumers.service import Service

        with logging_to_stderr(self.secrets, as_json=options.log_json):
            replica = Replica(
                self.folder(settings),
                settings.kafka,
                options,
                codec=settings.codec,
                consumer=settings.consumer,
            )
            log.info("serving %s at http://%s:%d", options.topic, options.host, options.port)
            Service(replica, options).run()
            log.info("stopped")
