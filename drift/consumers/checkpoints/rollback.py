"""Roll a model back: an earlier checkpoint is copied as the newest."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from drift._durations import moment
from drift.consumers.checkpoints.file_format import Description, id_of, next_offsets
from drift.consumers.checkpoints.files import stored
from drift.consumers.checkpoints.rewriting import check_secret, publish
from drift.consumers.crash_points import reached
from drift.errors import CheckpointError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from drift.consumers.checkpoints.files import ModelFolder
    from drift.consumers.records import TopicPartition

__all__ = ["Rollback", "meant", "plan", "when"]

_DAY = timedelta(days=1, microseconds=-1)
_ONLY_A_DAY = re.compile(r"\d{4}-?\d\d-?\d\d|\d{4}-?W\d\d(-?\d)?")
#: Where a model continues: from the newest checkpoint, if the offsets are kept.
_WHERE = ("offsets", "leader_epochs", "clocks", "identity", "join")


def when(header: Mapping[str, Any]) -> datetime:
    """Return when a checkpoint was written, to the second."""
    return datetime.fromtimestamp(int(header["time"]), UTC)


def plan(
    files: ModelFolder,
    to: str,
    *,
    keep_offsets: bool = False,
    warn: Callable[[str], None] = lambda _: None,
) -> Rollback:
    """Find the checkpoint to roll back to; nothing is changed.

    Parameters
    ----------
    files
        The files of a model.
    to
        An identifier, as ``"3-17"``; or a time in ISO's form, UTC where it does not say otherwise:
        the newest checkpoint that was written by then. A day is meant to its end.
    keep_offsets
        Continue at the offsets of the newest checkpoint.
    warn
        Called with a line for each checkpoint that is skipped, as it cannot be used.

    Raises
    ------
    ParameterError
        If `to` is neither.
    CheckpointError
        If there is no such checkpoint, or it is the newest.
    """
    which, is_meant = meant(to)
    newest: Description | None = None
    for description in stored(files, warn):
        found = is_meant(description.header)
        if newest is None:
            newest = description
            if found:
                raise CheckpointError(
                    f"{files.path}: {id_of(newest.header)} of {when(newest.header)} is the "
                    "newest: there is nothing to roll back"
                )
        elif found:
            return Rollback(files, description, newest, keep_offsets)
    if newest is None:
        raise CheckpointError(f"{files.path} has no checkpoint that can be used")
    raise CheckpointError(
        f"{files.path} has no checkpoint {which}: drift checkpoint list shows all"
    )


def meant(to: str) -> tuple[str, Callable[[Mapping[str, Any]], bool]]:
    """Return what an id or a time asks for, in words, and which header is of that.

    Of several in descending order it is the first.

    Parameters
    ----------
    to
        As of `plan`.

    Raises
    ------
    ParameterError
        If it is neither.
    """
    wanted = _time(to)
    if wanted is None:
        return to, lambda header: id_of(header) == to
    return f"from {wanted} or before", lambda header: when(header) <= wanted


def _time(text: str) -> datetime | None:
    """Parse a time; None for an id."""
    epoch, dash, sequence = text.partition("-")
    if dash and epoch.isdigit() and sequence.isdigit():
        return None
    try:
        return moment(text) + (_DAY if _ONLY_A_DAY.fullmatch(text) else timedelta())
    except ValueError:
        raise ParameterError(
            f"{text!r} is neither a time, as 2026-11-20T08:00, nor the id of a checkpoint, as 3-17"
        ) from None


@dataclass(frozen=True)
class Rollback:
    """A planned rollback.

    Parameters
    ----------
    files
        Its files.
    target
        The checkpoint whose model it is to be.
    newest
        The newest checkpoint.
    keep_offsets
        Whether to continue at the offsets of the newest, with its state of late labels. Else
        where `target` does.
    """

    files: ModelFolder
    target: Description
    newest: Description
    keep_offsets: bool

    def offsets(self) -> dict[TopicPartition, tuple[int | None, int]]:
        """Return the next offsets of target and newest, by partition."""
        before, now = next_offsets(self.target.header), next_offsets(self.newest.header)
        return {place: (before.get(place), offset) for place, offset in now.items()}

    def lines(self) -> list[str]:
        """Describe what will be learnt again, and what will not."""
        back, now = self.target.header, self.newest.header
        lines = [
            f"{self.files.path}: from {_named(now)} back to {_named(back)}",
            *(
                f"  {topic}:{n} {self._said(before, at)}"
                for (topic, n), (before, at) in self.offsets().items()
            ),
        ]
        if self.keep_offsets and "join" in now:
            lines.append("  features that wait for their labels still do")
        if back["configuration"] != now["configuration"]:
            lines.append("  it was written under another configuration, which workers need then")
        return lines

    def _said(self, before: int | None, now: int) -> str:
        if self.keep_offsets:
            if before is None or self._differing():  # offsets of two logs have no difference
                return f"continues at {now}: all before it are not learnt again"
            if now < before:
                twice = "messages are learnt that it may have learnt before"
                return f"continues at {now}: {before - now:,} {twice}"
            return f"continues at {now}: {now - before:,} messages before it are not learnt again"
        if before is None:
            return "starts at its first offset"
        if now < before:
            # By it, as after a rollback; or by nobody, as of a log that was truncated and adopted.
            said = f"{before - now:,} messages between count as learnt"
            return f"goes on from {now} to {before}: {said}"
        return f"goes back from {now} to {before}: {now - before:,} messages are learnt again"

    def _differing(self) -> list[str]:
        """Return in what the topic or group of the target differs from that of the newest."""
        before, now = (description.header["identity"] for description in (self.target, self.newest))
        return [name for name in before if name in now and before[name] != now[name]]

    def check(self, secret: bytes | None) -> None:
        """Refuse a checkpoint that cannot be continued.

        Parameters
        ----------
        secret
            What the checkpoints are signed with, if they are.

        Raises
        ------
        CheckpointError
            If they are signed with another key, or the target is of another log.
        """
        for description in (self.target, self.newest):
            check_secret(self.files, description, secret)
        if (differ := self._differing()) and not self.keep_offsets:
            raise CheckpointError(
                f"{self.files.path}: {id_of(self.target.header)} was learnt from another topic "
                f"or group ({', '.join(differ)}), so that its offsets mean nothing now: give "
                "--keep-offsets"
            )

    def write(self, secret: bytes | None, owner: str = "drift checkpoint rollback") -> str:
        """Write the checkpoint, fence its worker, and return the checkpoint's id.

        Parameters
        ----------
        secret
            As of `check`.
        owner
            Who does so, for those who are fenced.

        Raises
        ------
        FencedError
            If a worker has claimed the model meanwhile.
        CheckpointError
            If a worker has written another checkpoint since the plan was made, or nothing can be
            written: the newest is what it was.
        """
        files, back = self.files, self.target
        self.check(secret)
        reached("rollback.checked")
        epoch = files.claim(owner)
        reached("rollback.claimed")
        left = [description.header for description in stored(files)]
        now, wanted = next(iter(left), self.newest.header), id_of(back.header)
        if id_of(now) != id_of(self.newest.header):
            raise CheckpointError(
                f"{files.path}: {id_of(now)} was written meanwhile, nothing was rolled back: "
                "stop the workers and try again"
            )
        if wanted not in map(id_of, left):
            raise CheckpointError(
                f"{files.path}: {wanted} was removed meanwhile, nothing was rolled back: "
                "drift checkpoint list shows what is left"
            )
        header = back.header | {"restores": wanted}
        payload, offsets_of = back.payload, None
        skips = back.header["skips"]
        added = [position for position in now["skips"] if position not in skips]
        if added:  # it would end the worker again
            header["skips"] = [*skips, *added]
        if self.keep_offsets:
            header["is_blank"] = False  # it has what waits
            header |= {name: now[name] for name in _WHERE if name in now}
            if "shadow" in header:  # it has not predicted what waits
                state = header["shadow"]["state"] | {"since": now["offsets"]}
                header["shadow"] = header["shadow"] | {"state": state}
            payload = _models(back) + self.newest.payload[len(_models(self.newest)) :]
            offsets_of = id_of(now)
        made = publish(
            files,
            epoch,
            header,
            [payload],
            secret,
            replaced=id_of(now),
            previous=wanted,
            offsets_of=offsets_of,
        )
        return id_of(made)


def _models(description: Description) -> bytes:
    """Return a payload without the state of late labels."""
    return description.payload[: len(description.payload) - sum(description.header.get("join", ()))]


def _named(header: Mapping[str, Any]) -> str:
    examples = header["metrics"].get("examples")
    known = f", {examples:,} examples" if type(examples) is int else ""
    return f"{id_of(header)} of {when(header)}{known}"
