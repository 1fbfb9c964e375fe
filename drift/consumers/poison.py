"""Poison messages: one that ends the process is found, and left out after three times.

It may end the process whenever it comes: by MemoryError, by the system's memory killer, or
by a hang beyond what /livez allows. Each claim leaves a small file beside its checkpoints::

    attempt-00000007.json    {"starts": 2, "offsets": [["t", 0, 5]], "at": ["t", 0, 7], "deaths": 1}

Claims that went on from the same checkpoint and have not said that they end count as `starts`. From
the second on, messages are taken one at a time until the next checkpoint: the file names a message
before it is taken, and none once it was. MemoryError and a hang are noticed while they last, and
named at once. So a claim that finds a name knows where the one before died. Before that message a
checkpoint is written, so that what came before it is not sent again; after three deaths in it, it
is left out.

Errors that say what they are, as of a registry that is away, end a worker, too, but name no
message. For checkpoints in an object store the file is in the temporary folder of the machine.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from drift.consumers.checkpoints.files import private
from drift.consumers.records import Position

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from drift.consumers.checkpoints.objects import AnyPath
    from drift.consumers.records import TopicPartition

__all__ = ["DEATHS", "PoisonNotes", "folder_of_notes"]

#: Deaths in one message that are enough.
DEATHS = 3


def folder_of_notes(checkpoints: AnyPath) -> Path | None:
    """Return the folder of the notes on a claim; None where an object store's cannot be made."""
    if isinstance(checkpoints, Path):
        return checkpoints
    mine = Path(tempfile.gettempdir(), f"drift-{os.getuid()}")
    folder = mine / sha256(str(checkpoints).encode()).hexdigest()
    with suppress(OSError):
        mine.mkdir(mode=0o700, exist_ok=True)
        if mine.stat().st_uid == os.getuid():  # others may write to the temporary folder, too
            folder.mkdir(exist_ok=True)
            return folder
    return None


class PoisonNotes:
    """What a claim notes for the next one.

    Parameters
    ----------
    folder
        That of the claim's checkpoints.
    epoch
        The claim's.
    offsets
        Where it starts.

    Attributes
    ----------
    starts : int
        How many claims have gone on from there without saying that they end, with this one.
    is_careful : bool
        Whether each message is to be noted before it is taken.
    at : Position or None
        The message that is noted now.
    suspect : Position or None
        The message in which a claim before died.
    deaths : int
        How often.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder, message = Path(tempfile.mkdtemp()), Position("t", 0, 7)
    >>> for epoch in range(1, 6):
    ...     notes = PoisonNotes(folder, epoch, {("t", 0): 5})
    ...     print(notes.is_careful, notes.deaths, notes.is_given_up(message))
    ...     if notes.is_careful:
    ...         notes.note(message)
    False 0 False
    True 0 False
    True 1 False
    True 2 False
    True 3 True
    """

    def __init__(self, folder: Path, epoch: int, offsets: Mapping[TopicPartition, int]) -> None:
        self._file = folder / f"attempt-{epoch:08d}.json"
        self._offsets = _listed(offsets)
        self._lock = threading.Lock()
        self.starts, self.deaths = 1, 0
        self.suspect: Position | None = None
        self.at: Position | None = None
        with suppress(OSError, LookupError, TypeError, ValueError):  # where it is damaged
            self._go_on(folder, offsets)
        self.is_careful = self.starts > 1 or self.suspect is not None
        self.note(None)
        with suppress(OSError):  # the next claim tries again
            for file in folder.glob("attempt-*.json"):
                if file.name < self._file.name:
                    file.unlink(missing_ok=True)

    def _go_on(self, folder: Path, offsets: Mapping[TopicPartition, int]) -> None:
        """Count on from what the claim before has noted."""
        file = max(folder.glob("attempt-*.json"), default=self._file)
        before = json.loads(file.read_bytes().partition(b"\n")[0])
        noted = {(topic, number): at for topic, number, at in before["offsets"]}
        if any(at < noted.get(place, 0) for place, at in offsets.items()):
            return  # somebody went back, perhaps as the log has other messages now
        deaths, suspect = int(before["deaths"]), before["suspect"] and Position(*before["suspect"])
        if before["at"]:
            died = Position(*before["at"])
            deaths, suspect = (deaths if died == suspect else 0) + 1, died
        if suspect is not None and offsets.get(suspect[:2], 0) > suspect.offset:
            deaths, suspect = 0, None  # it was taken
        if before["offsets"] == self._offsets:
            self.starts += int(before["starts"])
        self.suspect, self.deaths = suspect, deaths

    def is_given_up(self, position: Position) -> bool:
        """Whether too many claims have died in a message."""
        return position == self.suspect and self.deaths >= DEATHS

    def note(self, position: Position | None) -> None:
        """Note the message that is taken now; None for none."""
        with self._lock:
            self._write(position)

    def note_while(self, lasts: Callable[[], bool], position: Position) -> None:
        """Note a message that another thread takes, unless it has ended meanwhile.

        If it ends later, that thread finds the note.
        """
        with self._lock:
            before = self.at
            self._write(position)
            if not lasts():
                self._write(before)

    def _write(self, position: Position | None) -> None:
        self.at = position
        text = json.dumps(
            {
                "starts": self.starts,
                "offsets": self._offsets,
                "at": position,
                "suspect": self.suspect,
                "deaths": self.deaths,
            }
        )
        # Not synced: it is to outlive the process, not the machine. Nor is the file emptied first,
        # for which a file system may wait for the disk. Who dies before the end of the old text is
        # cut off has left a whole first line.
        with (
            suppress(OSError),  # as of a full disk
            os.fdopen(private(str(self._file), os.O_WRONLY | os.O_CREAT), "wb") as file,
        ):
            file.write(f"{text}\n".encode())
            file.truncate()

    def saved(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Note that there is a checkpoint; it ends the care once it is behind the suspect."""
        self._offsets, self.starts = _listed(offsets), 1
        if self.suspect is None or offsets.get(self.suspect[:2], 0) > self.suspect.offset:
            self.suspect, self.deaths, self.is_careful = None, 0, False
        self.note(self.at)

    def end(self) -> None:
        """Note that the claim ends, and not because of a message."""
        if self.at is None:
            self.starts = 0
            self.note(None)


def _listed(offsets: Mapping[TopicPartition, int]) -> list[list[str | int]]:
    return [[*place, offset] for place, offset in sorted(offsets.items())]
