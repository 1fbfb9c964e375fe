"""The arena: a fixed list of streams and models, and a page that says where drift loses."""

from drift.experiments.arena.experiment import ARENA, arena

__all__ = ["ARENA", "arena"]
