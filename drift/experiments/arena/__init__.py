"""The arena: a fixed list of streams and models, and a page that says where drift loses."""

from drift.experiments.arena.experiment import arena
from drift.experiments.arena.results import ArenaResults

__all__ = ["ArenaResults", "arena"]
