"""Which versions of a key's model some checkpoint needs: the newest of each lineage."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from drift.consumers.checkpoints.file_format import describe, load, naming
from drift.consumers.checkpoints.keyed_file import newest_of
from drift.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from drift.consumers.checkpoints.files import ModelFolder
    from drift.consumers.checkpoints.keyed_file import Lineage

__all__ = ["KeptLineages"]


class _Seen(NamedTuple):
    """The lineages of all checkpoints, and whether one of them is of this claim."""

    lineages: tuple[Lineage, ...]
    is_settled: bool


class KeptLineages:
    """The lineages of the checkpoints that there are, and of those that this claim is to write.

    One thread looks which there are, another one may ask meanwhile.

    Parameters
    ----------
    files
        Those of the claim's partition.
    epoch
        The number of the claim.
    """

    def __init__(self, files: ModelFolder, epoch: int) -> None:
        self._files = files
        self._epoch = epoch
        self._read: dict[tuple[int, int], Lineage] = {}  # by checkpoint
        self._seen: _Seen | None = None  # None where any version may be needed

    def refresh(self, own: Callable[[], Lineage]) -> None:
        """Look which checkpoints there are; `own` returns the lineage of the next one, so far."""
        read: dict[tuple[int, int], Lineage] = {}
        try:
            for which in self._files.listing().checkpoints:
                lineage = self._read.get(which)
                if lineage is None:
                    file = self._files.file(*which)
                    with naming(file):
                        lineage = describe(load(file)).header["models"] or []
                read[which] = lineage
        except (CheckpointError, FileNotFoundError):
            self._seen = None
            return
        self._read = read
        # Only now, as lineages may have been added while the files were read.
        self._seen = _Seen((*read.values(), own()), any(epoch == self._epoch for epoch, _ in read))

    def add(self, lineage: Lineage) -> None:
        """Note the lineage of a checkpoint that is to be written."""
        if self._seen is not None:
            self._seen = self._seen._replace(lineages=(*self._seen.lineages, lineage))

    @property
    def is_settled(self) -> bool:
        """Whether all lineages are known, and there is a checkpoint of this claim."""
        return self._seen is not None and self._seen.is_settled

    def last_versions(self) -> set[int] | None:
        """Return the last versions of the lineages; None where any may be needed."""
        seen = self._seen
        if seen is None or not seen.is_settled:
            return None
        return {lineage[-1][-1] for lineage in seen.lineages if lineage}

    def unneeded(self, versions: Sequence[int], own: Lineage) -> list[int]:
        """Return which of a key's versions, in ascending order, may be removed.

        `own` is the lineage that the claim writes. A version of no lineage, from a claim that broke
        off, stays until this claim has a checkpoint: a process that was frozen may still add one.
        """
        seen = self._seen
        if seen is None:
            return []
        lineages = [*seen.lineages, own]
        needed = {newest_of(versions, lineage) for lineage in lineages}
        return [
            version
            for version in versions
            if version not in needed
            and (
                seen.is_settled
                or any(newest_of([version], lineage) is not None for lineage in lineages)
            )
        ]
