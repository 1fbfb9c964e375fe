"""The arena: a fixed list of streams and models, and where drift wins and loses."""

from drift.experiments.arena.experiment import ARENA, arena, tables_of

__all__ = ["ARENA", "arena", "tables_of"]
