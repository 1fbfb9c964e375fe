"""What a claim is, and what several claims need."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from drift.experiments.folder import Record

__all__ = ["Claim", "chunk_supports"]


class Claim(NamedTuple):
    """One statement about one model in one group of streams.

    Attributes
    ----------
    claim
        Letter of the claim.
    shifts
        The group.
    model
        Whom it is about.
    holds
        Whether it is true of these records.
    statement
        What is claimed, with the rule that decides it.
    figures
        The numbers that decide it; errors and their differences are in percent.
    """

    claim: str
    shifts: int
    model: str
    holds: bool
    statement: str
    figures: str


def chunk_supports(chunks: Sequence[Record], model: str, shifts: int) -> tuple[int, float]:
    """Size of a group's chunks, and the mean of the supports that a model needs for one."""
    group = [r for r in chunks if (r["model"], r["shifts"]) == (model, shifts)]
    return group[0]["n_samples"], float(np.mean([record["supports"] for record in group]))
