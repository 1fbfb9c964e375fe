"""What tables of every experiment make of records: groups and means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from drift.experiments.jobs import Record

__all__ = ["grouped", "mean"]


def grouped(rows: Iterable[Record], *names: str) -> dict[tuple[Any, ...], list[Record]]:
    """Rows by what they have in these columns, in the order in which that comes first.

    Examples
    --------
    >>> from drift.experiments.records import grouped
    >>> grouped([{"model": "LBP", "error": 0.2}, {"model": "LBP", "error": 0.3}], "model")
    {('LBP',): [{'model': 'LBP', 'error': 0.2}, {'model': 'LBP', 'error': 0.3}]}
    """
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return groups


def mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that there are; None of none."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
