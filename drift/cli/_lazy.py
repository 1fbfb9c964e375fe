"""What commands use as they run, by its module: imported at each use, and not before.

So help and refusals need none of it, and an extra that is missing is named by what needs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # ruff: isort: off
    # ruff: noqa: PLC0414
    from drift.cli._figure import ErrorFigure as ErrorFigure, drawn as drawn
    from drift.cli._listing import listing as listing
    from drift.cli._progress import bar as bar, reading as reading
    from drift.cli._warm import history_of as history_of, start_offsets as start_offsets
    from drift.consumers.checkpoints.promotion import promote as promote
    from drift.consumers.client.consumer import LeadAssignor as LeadAssignor
    from drift.consumers.client.errors import (
        KafkaError as KafkaError,
        is_refusal as is_refusal,
        known_remedy as known_remedy,
        remedy as remedy,
    )
    from drift.consumers.client.producer import Producer as Producer
    from drift.consumers.client.topics import (
        Reader as Reader,
        create as create,
        known_options as known_options,
        members as members,
    )
    from drift.consumers.dry_run import DryRun as DryRun
    from drift.consumers.exporter import Exporter as Exporter
    from drift.consumers.measures import Measures as Measures
    from drift.consumers.registry import SchemaCodec as SchemaCodec
    from drift.consumers.replica import Replica as Replica
    from drift.consumers.service import Service as Service
    from drift.consumers.shadow import Shadow as Shadow
    from drift.consumers.warm import refuse_learnt as refuse_learnt, warm as warm
    from drift.experiments import (
        REPRODUCTIONS as REPRODUCTIONS,
        compare as compare,
        reproduce as reproduce,
        track as track,
    )
    from drift.experiments.arena import arena as arena
    from drift.experiments.arena.models import MODELS as MODELS
    from drift.experiments.comparison.clock import column_of as column_of
    from drift.experiments.comparison.focus import focus_of as focus_of
    from drift.experiments.reproduction.terminal import reproductions as reproductions
    from drift.models._state.codec import decode as decode, encode as encode, to_bytes as to_bytes
    from rich.console import Console as Console
    from river.multiclass import OneVsRestClassifier as OneVsRestClassifier
    from river.preprocessing import StandardScaler as StandardScaler
    from scipy import stats as stats

_NAMES = {
    "drift.cli._figure": ("ErrorFigure", "drawn"),
    "drift.cli._listing": ("listing",),
    "drift.cli._progress": ("bar", "reading"),
    "drift.cli._warm": ("history_of", "start_offsets"),
    "drift.consumers.checkpoints.promotion": ("promote",),
    "drift.consumers.client.consumer": ("LeadAssignor",),
    "drift.consumers.client.errors": ("KafkaError", "is_refusal", "known_remedy", "remedy"),
    "drift.consumers.client.producer": ("Producer",),
    "drift.consumers.client.topics": ("Reader", "create", "known_options", "members"),
    "drift.consumers.dry_run": ("DryRun",),
    "drift.consumers.exporter": ("Exporter",),
    "drift.consumers.measures": ("Measures",),
    "drift.consumers.registry": ("SchemaCodec",),
    "drift.consumers.replica": ("Replica",),
    "drift.consumers.service": ("Service",),
    "drift.consumers.shadow": ("Shadow",),
    "drift.consumers.warm": ("refuse_learnt", "warm"),
    "drift.experiments": ("REPRODUCTIONS", "compare", "reproduce", "track"),
    "drift.experiments.arena": ("arena",),
    "drift.experiments.arena.models": ("MODELS",),
    "drift.experiments.comparison.clock": ("column_of",),
    "drift.experiments.comparison.focus": ("focus_of",),
    "drift.experiments.reproduction.terminal": ("reproductions",),
    "drift.models._state.codec": ("decode", "encode", "to_bytes"),
    "rich.console": ("Console",),
    "river.multiclass": ("OneVsRestClassifier",),
    "river.preprocessing": ("StandardScaler",),
    "scipy": ("stats",),
}
HOMES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(HOMES[name]), name)
