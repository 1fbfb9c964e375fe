"""Which checkpoints are kept: the last ones, one for each ten minutes, hour and day, some more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from drift._options import Checked, option

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Retention"]

_TEN_MINUTES, _HOUR, _DAY = 600, 3_600, 86_400


@dataclass(frozen=True, kw_only=True)
class Retention(Checked):
    """Which checkpoints of a model are kept.

    Spans of ten minutes, hours and days are UTC. Those without a checkpoint do not count: a worker
    that was stopped for a week keeps its checkpoints.

    What was changed by hand, as by a rollback, can be undone for a day: the checkpoint before it
    is kept, too, and the one that it made.

    Parameters
    ----------
    keep
        Number of the last ones, damaged ones not counted; at least 1.
    keep_ten_minutes, keep_hourly, keep_daily
        Number of ten-minute spans, hours and days. The last checkpoint of each is kept.

    Raises
    ------
    ParameterError
        If one of them is no integer, or too small.

    Examples
    --------
    >>> hourly = Retention(keep=1, keep_ten_minutes=0, keep_hourly=2, keep_daily=0)
    >>> sorted(hourly.kept([0.0, 10.0, 3600.0, 7200.0, 7210.0]))
    [2, 4]
    """

    keep: int = option("Newest checkpoints to keep.", 3, least=1)
    keep_ten_minutes: int = option(
        "Spans of ten minutes whose last checkpoint is kept.", 6, least=0
    )
    keep_hourly: int = option("Hours whose last checkpoint is kept.", 24, least=0)
    keep_daily: int = option("Days whose last checkpoint is kept.", 30, least=0)

    def kept(
        self, times: Sequence[float | None], by_hand: Iterable[tuple[int, int]] = ()
    ) -> set[int]:
        """Return the indices of the checkpoints to keep.

        Parameters
        ----------
        times
            When each was written, seconds since 1970, from the oldest to the newest; None for one
            that is damaged, which is kept as long as it is newer than one of the last.
        by_hand
            Indices of checkpoints that were replaced by hand, each with that of the one that did.
        """
        whole = [i for i, time in enumerate(times) if time is not None]
        last = whole[-self.keep :]
        first = last[0] if len(last) == self.keep else 0
        found = {*range(first, len(times))}
        for size, count in (
            (_TEN_MINUTES, self.keep_ten_minutes),
            (_HOUR, self.keep_hourly),
            (_DAY, self.keep_daily),
        ):
            ends = {int((times[i] or 0) // size): i for i in whole}
            # The last written, not the latest: a clock that was ahead for a while would have them.
            found |= {*sorted(ends.values(), reverse=True)[:count]}
        for replaced, made in by_hand:
            if (times[last[-1]] or 0) - (times[made] or 0) < _DAY:
                found |= {replaced, made}
        return found
