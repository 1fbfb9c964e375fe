"""Predictions over HTTP, by a model that follows a worker's."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from drift.cli import _lazy, _settings
from drift.cli._learning import Learning
from drift.cli._log import logging_to_stderr

__all__ = ["Serve"]

log = logging.getLogger("drift.consumers")


@dataclass(kw_only=True)
class Serve(Learning):
    """Answer what the model of a group predicts, over HTTP, until SIGTERM or Ctrl-C.

    It takes the file and the options of `drift consume`, follows the checkpoints of its group and
    learns the same logs in the same order, without joining the group; it sends and writes nothing.
    POST /predict takes what a message is, or a list of those; GET /openapi.json says the rest.
    """

    shared = _settings.ServeOptions

    def _run(self) -> None:
        settings = self.settings()
        options = settings.worker
        assert isinstance(options, _settings.ServeOptions)  # noqa: S101 - it was asked for

        service = _lazy.Service  # which names its extra
        with logging_to_stderr(self.secrets, as_json=options.log_json):
            given = self.folder(settings), settings.kafka, options
            replica = _lazy.Replica(*given, codec=settings.codec, consumer=settings.consumer)
            log.info("serving %s at http://%s:%d", options.topic, options.host, options.port)
            service(replica, options).run()
            log.info("stopped")
