"""The arena: a fixed list of streams and models, and where drift wins and loses."""

from drift.experiments.arena.experiment import ARENA, arena

__all__ = ["ARENA", "arena"]
