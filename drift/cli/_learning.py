"""What the commands share that learn or follow a topic: the model, its options, its checkpoints."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import ClassVar

from drift import consumers
from drift._options import option
from drift.cli import _named, _settings
from drift.cli._client import Client, read_secret

__all__ = ["IDLE", "Learning"]


#: Options that do nothing in a command which learns one model, and sends and saves nothing.
IDLE = frozenset(
    {
        *("start", "headers", "orphans", "events", "alarm_level"),
        *("checkpoint_every", "checkpoint_seconds"),
        *("keep", "keep_ten_minutes", "keep_hourly", "keep_daily"),
        *("metrics_port", "metrics_address"),
        *("max_models", "prior", "expire"),
    }
)


@dataclass(kw_only=True)
class Learning(Client):
    """A command that learns a topic."""

    shared: ClassVar[type[_settings.ConsumeOptions]] = _settings.ConsumeOptions

    model: str | None = option(
        "Tracker, 'RBP(budget=500)', or module:function for your own; default: the one in the "
        "checkpoints, or Tracker.",
        None,
    )
    budget: int | None = option("Budget of the model.", None)
    kernel: str | None = option("Kernel of the model: 'Polynomial(degree=4)'.", None)
    seed: int | None = option("Seed of the model.", None)
    keyed: str | None = option(
        "Where the key of a message is that has a model of its own; key in [codec].", None
    )

    def settings(self) -> _settings.Settings:
        """Return what the file, the environment and the options say."""
        model = {
            "class": self.model,
            "budget": self.budget,
            "kernel": self.kernel,
            "seed": self.seed,
        }
        return _settings.read(
            self.config,
            os.environ,
            worker=self.given,
            model=model,
            bootstrap=self.bootstrap,
            secrets=self.secrets,
            kind=self.shared,
            keyed=self.keyed,
        )

    def folder(self, settings: _settings.Settings) -> consumers.CheckpointFolder:
        """Return the checkpoints of the model."""
        options, shadow = settings.worker, settings.shadow
        return consumers.CheckpointFolder(
            options.checkpoints,
            {
                "topic": options.topic,
                **_named.configuration(settings.model),
                **(_named.configuration(shadow, "shadow") if shadow else {}),
            },
            keep=options.keep,
            keep_ten_minutes=options.keep_ten_minutes,
            keep_hourly=options.keep_hourly,
            keep_daily=options.keep_daily,
            secret=read_secret(options.key_file, self.secrets),
            allow_pickle=options.allow_pickle,
        )
