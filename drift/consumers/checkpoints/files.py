"""The files of one model's checkpoints: claim, write, list and remove.

::

    epoch-00000007                          the newest claim: made by exclusive creation
    checkpoint-00000006-0000000041.drift    epoch and sequence; the highest is the newest
    checkpoint-00000007-0000000001.drift
    order-00000007-0000000001.jsonl         what was learnt from that checkpoint on: see `journal`
    models.sqlite                           models of keys: see `keyed_file`
    .tmp-00000007-5f1d...                   while one is written

They contain learnt rows, so files and folders are for their user alone. What root makes, as by a
rollback, gets the owner of the folder around it, so that the workers can read it. Objects of an
S3-compatible store have the same names, each after that of the folder, without order and models.
"""

from __future__ import annotations

import logging
import os
import re
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, NamedTuple

from drift.consumers.checkpoints.file_format import (
    Description,
    Written,
    describe,
    load,
    naming,
    written,
    written_id,
)
from drift.consumers.checkpoints.objects import ObjectPath
from drift.consumers.crash_points import reached
from drift.errors import CheckpointError, FencedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from drift.consumers.checkpoints.objects import AnyPath
    from drift.consumers.checkpoints.retention import Retention

__all__ = [
    "ATTEMPTS",
    "ModelFolder",
    "ModelObjects",
    "create_whole",
    "files_in",
    "models_in",
    "newest",
    "no_folder",
    "private",
    "saying_why",
    "stored",
]

log = logging.getLogger("drift.consumers")

#: Bytes of an order file, and of all that are kept. Each claim starts a file, most of them small,
#: so their number is bounded, too.
_ORDER_BYTES, _ORDER_ALL, _ORDER_FILES = 8 << 20, 256 << 20, 4_000

#: Races with other processes that are lost before something must be wrong.
ATTEMPTS = 100

_EPOCH = re.compile(r"epoch-(\d{8,})")
_FILE = re.compile(r"checkpoint-(\d{8,})-(\d{10,})\.drift")
_ORDER = re.compile(r"order-(\d{8,})-(\d{10,})\.jsonl")
_TEMPORARY = re.compile(r"\.tmp-(\d{8,})(-\w+)?")


class Listing(NamedTuple):
    """The files of a folder, in ascending order."""

    epochs: list[int]
    checkpoints: list[tuple[int, int]]  # epoch and sequence
    temporary: list[tuple[int, str]]  # epoch and name
    orders: list[tuple[int, int]]  # epoch and sequence of the first checkpoint


class ModelFolder:
    """Files of one model's checkpoints; OSErrors become CheckpointErrors with the cause.

    Parameters
    ----------
    path
        The folder.
    """

    def __init__(self, path: AnyPath) -> None:
        self.path: Any = path

    def file(self, epoch: int, sequence: int) -> Any:
        """Return the file of a checkpoint."""
        return self.path / f"checkpoint-{epoch:08d}-{sequence:010d}.drift"

    def listing(self) -> Listing:
        """List the files; empty without a folder."""
        names: list[str] = []
        with saying_why(self.path, "read"), suppress(FileNotFoundError):
            names = [path.name for path in self.path.iterdir()]
        return Listing(
            sorted(int(m[1]) for m in map(_EPOCH.fullmatch, names) if m),
            sorted((int(m[1]), int(m[2])) for m in map(_FILE.fullmatch, names) if m),
            sorted((int(m[1]), m[0]) for m in map(_TEMPORARY.fullmatch, names) if m),
            sorted((int(m[1]), int(m[2])) for m in map(_ORDER.fullmatch, names) if m),
        )

    # --- epochs --------------------------------------------------------------------------------

    def claim(self, owner: str = "") -> int:
        """Create the next epoch, and the folder if needed; the file names the owner."""
        with saying_why(self.path):
            for folder in (self.path.parent, self.path):
                if not folder.is_dir():
                    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                    _hand_over(folder)
            epoch = self._next_epoch(owner)
            for folder in (self.path, *list(self.path.parents)[:2]):
                _sync(folder)
        return epoch

    def _next_epoch(self, owner: str) -> int:
        for _ in range(ATTEMPTS):
            listing = self.listing()
            used = [*listing.epochs[-1:], *(epoch for epoch, _ in listing.checkpoints[-1:])]
            epoch = max(used, default=0) + 1
            # No two claims are the same bytes, so that a store's client knows its own.
            with suppress(FileExistsError):
                self._create(f"epoch-{epoch:08d}", f"{owner}\n{token_hex(8)}\n".encode())
                if self.listing().epochs[-1:] == [epoch]:
                    return epoch  # else others went on, and cleaned up, between look and file
        raise CheckpointError(f"{self.path}: other processes claim it again and again")

    def _owner(self, epoch: int | str) -> str:
        """Return the owner of an epoch, if its file has one."""
        with suppress(OSError, ValueError):
            text: str = (self.path / f"epoch-{epoch:08}").read_bytes().decode()
            if name := text.partition("\n")[0]:
                return name
        return "another worker"

    def look_again(self, epoch: int) -> None:
        """Refuse to call a checkpoint the newest that is written, where others may not have it.

        Who claims from now on continues from it; who did before may have loaded another one.

        Raises
        ------
        FencedError
            If somebody did before.
        """
        try:
            self.owned(epoch)
        except FencedError as problem:
            more = "drift checkpoint list shows what is the newest"
            raise FencedError(f"{problem}: {more}") from None

    def owned(self, epoch: int) -> Listing:
        """List the files if an epoch is the newest; else FencedError."""
        listing = self.listing()
        if listing.epochs[-1:] != [epoch]:
            newest = listing.epochs[-1] if listing.epochs else "gone"
            raise FencedError(
                f"{self.path}: claimed again since, our epoch is {epoch} and the newest {newest}: "
                f"{self._owner(newest)} has the partition"
            )
        return listing

    # --- files ---------------------------------------------------------------------------------

    def clean(self, epoch: int) -> None:
        """Remove epochs and temporary files of earlier epochs."""
        listing = self.listing()
        self._remove(f"epoch-{old:08d}" for old in listing.epochs if old < epoch)
        self._remove(name for old, name in listing.temporary if old < epoch)

    def prune(
        self,
        retention: Retention,
        checkpoints: Sequence[tuple[int, int]],
        known: dict[Any, Written | None],
    ) -> None:
        """Remove the checkpoints that are not kept.

        Parameters
        ----------
        retention
            Which are kept.
        checkpoints
            Those that there are, in ascending order; the last one has just been written.
        known
            What `written` says of them, by their file; what is missing is added.
        """
        files = [self.file(*which) for which in checkpoints]
        found: list[Written | None] = []
        for file in reversed(files):
            # The last ones are looked at each time, as a disk may damage them; the others once.
            is_last = 0 < len(found) - found.count(None) < retention.keep
            if is_last or file not in known:
                try:
                    known[file] = written(file)
                except CheckpointError as problem:  # it may be the only one of its day
                    log.warning("%s: %s: no older checkpoint is removed", self.path, problem)
                    return
            found.append(known[file])
        found.reverse()
        at = {written_id(*which): i for i, which in enumerate(checkpoints)}
        made = [(one.replaced, i) for i, one in enumerate(found) if one is not None]
        by_hand = [(at[before], i) for before, i in made if before in at]
        kept = retention.kept([one and one.time for one in found], by_hand)
        gone = [file for i, file in enumerate(files) if i not in kept]
        for file in gone:
            del known[file]
        self._remove(file.name for file in gone)

    def _remove(self, names: Iterable[str]) -> None:
        """Remove files; failures are retried next time."""
        for name in names:
            with suppress(OSError):
                (self.path / name).unlink()

    def _create(self, name: str, data: bytes) -> None:
        """Create a file; FileExistsError if it exists."""
        with open(self.path / name, "xb", opener=private) as file:
            file.write(data)

    def append_order(
        self,
        epoch: int,
        sequence: int,
        line: bytes,
        orders: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        """Append the order of what the next checkpoint has learnt; None has `orders` listed."""
        orders = self.listing().orders if orders is None else orders
        last = max((order for order in orders if order[0] == epoch), default=None)
        if last is None or self._order_size(last) > _ORDER_BYTES:
            last = epoch, sequence
        file = self._order(*last)
        with saying_why(file), open(file, "ab+", opener=private) as appended:
            if appended.tell():
                appended.seek(-1, os.SEEK_END)
                if appended.read() != b"\n":  # a full disk has cut the line before
                    appended.write(b"\n")
            half = len(line) // 2
            appended.write(line[:half])
            appended.flush()
            reached("checkpoint.order-half-written")
            appended.write(line[half:])
            appended.flush()
            os.fsync(appended.fileno())
        self._forget_orders(orders)

    def _forget_orders(self, orders: Sequence[tuple[int, int]]) -> None:
        """Remove the oldest order files beyond the bounds."""
        size, kept = 0, 0
        for order in reversed(orders):
            size += self._order_size(order)
            kept += size <= _ORDER_ALL
        kept = min(kept, _ORDER_FILES)
        self._remove(self._order(*order).name for order in orders[: len(orders) - kept])

    def _order_size(self, order: tuple[int, int]) -> int:
        """Return the bytes of an order file; 0 where it cannot be told, as once it is deleted."""
        with suppress(OSError):
            return int(self._order(*order).stat().st_size)
        return 0

    def _order(self, epoch: int, sequence: int) -> Any:
        return self.path / f"order-{epoch:08d}-{sequence:010d}.jsonl"

    def write(self, epoch: int, sequence: int, data: bytes) -> Listing:
        """Write a checkpoint's file atomically; list those that there were before."""
        temporary = self.path / f".tmp-{epoch:08d}-{token_hex(8)}"
        with saying_why(temporary):
            try:
                _write(temporary, data)
                listing = self.owned(epoch)  # writing may have taken long
                reached("checkpoint.checked")
                temporary.replace(self.file(epoch, sequence))
            except OSError:
                self.owned(epoch)  # who claims the partition removes the file
                raise
            finally:
                with suppress(OSError):
                    temporary.unlink()
            reached("checkpoint.renamed")
            _sync(self.path)
        return listing


class ModelObjects(ModelFolder):
    """The same in an S3-compatible store, where a put is atomic and durable."""

    def claim(self, owner: str = "") -> int:
        """Create the next epoch; a folder exists with its first object."""
        with saying_why(self.path):
            self.path.check_conditions()
            return self._next_epoch(owner)

    def _create(self, name: str, data: bytes) -> None:
        (self.path / name).create(data)

    def append_order(
        self,
        epoch: int,
        sequence: int,
        line: bytes,
        orders: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        """Do nothing: objects cannot be appended to."""
        reached("checkpoint.order-half-written")

    def write(self, epoch: int, sequence: int, data: bytes) -> Listing:
        """Put a checkpoint's object; list those that there were before."""
        file = self.file(epoch, sequence)
        with saying_why(file):
            for step in ("half-written", "written", "synced"):
                reached(f"checkpoint.{step}")
            listing = self.owned(epoch)
            reached("checkpoint.checked")
            file.create(data)
        reached("checkpoint.renamed")
        return listing


def files_in(path: AnyPath) -> ModelFolder:
    """Return the files of a model, in a folder or a store."""
    return ModelObjects(path) if isinstance(path, ObjectPath) else ModelFolder(path)


def newest(
    folder: AnyPath, warn: Callable[[str], None] = lambda _: None
) -> Iterator[tuple[ModelFolder, dict[str, Any]]]:
    """Yield the headers of the newest checkpoints, in a folder of one model or of several.

    Parameters
    ----------
    folder
        The folder.
    warn
        Called with a line for each checkpoint that is skipped, as it cannot be used.

    Raises
    ------
    CheckpointError
        At the end, if a model has no checkpoint that can be used, or if there is no model.
    """
    damaged = []
    for files in models_in(folder):
        found = next(stored(files, warn), None)
        if found is None:
            damaged.append(f"{files.path}: no checkpoint can be used")
        else:
            yield files, found.header
    if damaged:
        raise CheckpointError("; ".join(damaged))


def models_in(folder: AnyPath) -> list[ModelFolder]:
    """Return the files of each model that has checkpoints in a folder, of one or of several.

    Raises
    ------
    CheckpointError
        If there is none.
    """
    folders = sorted(path for path in folder.iterdir() if path.is_dir())
    known = [files for files in map(files_in, [folder, *folders]) if files.listing().checkpoints]
    if not known:
        raise CheckpointError(f"{folder} has no checkpoint: give the folder of --checkpoints")
    return known


def stored(
    files: ModelFolder, warn: Callable[[str], None] = lambda _: None
) -> Iterator[Description]:
    """Yield the checkpoints of a model that are whole, the newest first.

    Parameters
    ----------
    files
        Its files.
    warn
        Called with a line for each that is skipped, as it cannot be used.
    """
    for which in reversed(files.listing().checkpoints):
        file = files.file(*which)
        try:
            with suppress(FileNotFoundError), naming(file):
                yield describe(load(file))
        except CheckpointError as problem:
            warn(str(problem))


@contextmanager
def saying_why(path: AnyPath, what: str = "written") -> Iterator[None]:
    """Turn OSErrors into CheckpointErrors: that a path cannot be written, and why."""
    try:
        yield
    except NotADirectoryError as problem:
        raise no_folder(problem.filename or path) from None  # it does not pass
    except OSError as problem:
        kept = "; the checkpoints before are as they were" if what == "written" else ""
        reason = f"{path}: cannot be {what}: {problem.strerror or problem}{kept}"
        raise CheckpointError(reason) from problem


def no_folder(path: str | AnyPath) -> CheckpointError:
    """Return the error of a path that is below a file, or one itself."""
    whole = Path(str(path))
    file = next((one for one in [*reversed(whole.parents), whole] if one.is_file()), whole)
    return CheckpointError(f"{file} is a file: give another folder for the checkpoints")


def _write(path: Path, data: bytes) -> None:
    half = len(data) // 2
    with open(path, "xb", opener=private) as file:
        file.write(data[:half])
        file.flush()
        reached("checkpoint.half-written")
        file.write(data[half:])
        file.flush()
        reached("checkpoint.written")
        os.fsync(file.fileno())
    reached("checkpoint.synced")


def create_whole(path: Path, data: bytes) -> None:
    """Create a file that has all its bytes once it has its name; FileExistsError if it exists."""
    temporary = path.with_name(f".tmp-{token_hex(8)}")
    try:
        with open(temporary, "xb", opener=private) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        path.hardlink_to(temporary)  # which, unlike a rename, replaces nothing
    finally:
        with suppress(OSError):
            temporary.unlink()
    _sync(path.parent)


def private(path: str, flags: int) -> int:
    """Open a file for its user alone; a link in its place is not followed."""
    file = os.open(path, flags | os.O_NOFOLLOW, 0o600)
    _hand_over(path, file)
    return file


def _hand_over(path: Path | str, file: int | None = None) -> None:
    """Give what root has made, a file by its descriptor, to the owner of the folder around it."""
    if os.geteuid() == 0:
        around = Path(path).parent.stat()
        with suppress(PermissionError):  # as of root that a server of NFS does not trust
            os.chown(path if file is None else file, around.st_uid, around.st_gid)


def _sync(folder: Path) -> None:
    """Sync the names in a folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
