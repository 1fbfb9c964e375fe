"""A folder of checkpoints that processes share: one writes, the newest counts.

A worker that is assigned a partition claims the next epoch, then loads the newest checkpoint. It
saves only while no higher epoch exists. A process frozen between that check and its rename may
still add a checkpoint of its old epoch; it is consistent, and those of the new epoch come first.
"""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import re
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast
from urllib.parse import quote

from drift.consumers.checkpoints.agreement import agree, check_identity, without
from drift.consumers.checkpoints.checkpoint import (
    Checkpoint,
    check_readable,
    encoding,
    from_bytes,
    to_bytes,
)
from drift.consumers.checkpoints.file_format import Written, load, naming, written_id
from drift.consumers.checkpoints.files import (
    ATTEMPTS,
    ModelFolder,
    create_whole,
    files_in,
    saying_why,
)
from drift.consumers.checkpoints.journal import order_line, which_models
from drift.consumers.checkpoints.objects import as_path
from drift.consumers.checkpoints.retention import Retention
from drift.consumers.crash_points import reached
from drift.errors import (
    CheckpointError,
    DamagedCheckpointError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike
    from pathlib import Path

    from drift.consumers.checkpoints.keyed_file import Lineage
    from drift.consumers.checkpoints.objects import AnyPath, ObjectPath
    from drift.consumers.order import Run
    from drift.consumers.records import TopicPartition

__all__ = ["CheckpointFolder", "Claim", "this_process"]

#: A `ClaimId`, or a plain tuple of a topic and the number of a partition.
AnyClaimId: TypeAlias = tuple[str, int | None]

log = logging.getLogger("drift.consumers")
_LONGEST = 200  # bytes of a folder's name; file systems take 255


def this_process() -> str:
    """Say which process this is, for those of other machines, too."""
    return f"process {os.getpid()} on {platform.node()}"


class Claim(NamedTuple):
    """The result of `CheckpointFolder.claim`.

    Attributes
    ----------
    epoch
        To give to `save`.
    checkpoint
        The newest one; None where there has never been any.
    """

    epoch: int
    checkpoint: Checkpoint | None


class _Found(NamedTuple):
    """The newest checkpoint, a line for each damaged one after it, and all that were there."""

    checkpoint: Checkpoint | None
    damages: list[str]
    there: list[tuple[int, int]]


class CheckpointFolder:
    """Checkpoints by partition, in a folder that all workers share, or an S3-compatible store.

    Parameters
    ----------
    path
        The folder; it is made where it is missing. Or ``s3://bucket/prefix``: a store that puts an
        object only where there is none, as its clients ask (``If-None-Match: *``). What it takes to
        reach it is in the environment, as ``AWS_ENDPOINT_URL`` and ``AWS_ACCESS_KEY_ID``.
    configuration
        What must be the same to continue, JSON values by name: kernel, budget, topic, ...
        A checkpoint of another one is refused; a worker adds its codec, and what it says of keys
        and labels. None to take any except for those. Names that begin with ``model``
        are the model's, those with ``shadow`` its shadow's: of a checkpoint with another one the
        shadow is left out. Where a shadow was promoted, either of the two may be ``model``.
    keep, keep_ten_minutes, keep_hourly, keep_daily
        How many undamaged checkpoints are kept of each partition: the last ones, at least 1, and
        the last one of each of these spans, hours and days; see
        `drift.consumers.checkpoints.retention`.
    secret
        Sign checkpoints with this, and refuse those that are not. Without it signed ones are read,
        but not claimed, as those that follow would be refused by who has it.
    allow_pickle
        Store models that are not of drift's own as pickles, and load them, which runs what is in
        them.
    warn
        Called with one line of text when a checkpoint is skipped because it is damaged; such
        lines go to the log of ``drift.consumers`` as errors, too.

    Raises
    ------
    ParameterError
        If one of `keep` is no integer or too small, or a URL without a bucket.
    MissingExtraError
        If it is a URL, and obstore is not installed.

    Notes
    -----
    What is claimed, the ``claim_id``, is a topic with the number of a partition, or with None where
    one model learns all partitions.

    Examples
    --------
    >>> import tempfile
    >>> from drift.models import LBP
    >>> folder = CheckpointFolder(tempfile.mkdtemp(), {"budget": 3})
    >>> epoch, newest = folder.claim(("news", 0))
    >>> epoch, newest
    (1, None)
    >>> folder.save(("news", 0), epoch, LBP(budget=3), {("news", 0): 17}).id
    '1-1'
    >>> folder.claim(("news", 0)).checkpoint.offsets
    {('news', 0): 17}
    """

    def __init__(  # noqa: PLR0913
        self,
        path: str | PathLike[str] | ObjectPath,
        configuration: Mapping[str, Any] | None = None,
        *,
        keep: int = Retention.keep,
        keep_ten_minutes: int = Retention.keep_ten_minutes,
        keep_hourly: int = Retention.keep_hourly,
        keep_daily: int = Retention.keep_daily,
        secret: bytes | None = None,
        allow_pickle: bool = False,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        self.retention = Retention(
            keep=keep,
            keep_ten_minutes=keep_ten_minutes,
            keep_hourly=keep_hourly,
            keep_daily=keep_daily,
        )
        self.path = as_path(path)
        self.configuration = configuration
        self._takes_any = configuration is None
        self.secret = secret
        self.allow_pickle = allow_pickle
        self.warn = warn
        self._written: dict[Any, Written | None] = {}  # when, by their file
        #: Who claims partitions, for those who are fenced by it.
        self.owner = this_process()
        #: Whether a replica follows what others write: what it refuses is theirs to decide.
        self.follows = False

    def folder(self, claim_id: AnyClaimId) -> AnyPath:
        """Return the folder of a claim's checkpoints."""
        topic, number = claim_id
        return self.path / f"{self._name(topic)}-{'all' if number is None else number}"

    @staticmethod
    def _name(topic: str) -> str:
        name = quote(topic, safe="")  # '/' and the like; '.' stays, '-' may be there
        name = name.replace(".", "%2E", 1) if name.startswith(".") else name
        if len(name) > _LONGEST:
            name = f"{name[: _LONGEST // 2]}%{hashlib.sha256(topic.encode()).hexdigest()}"
        return name

    # --- reading -------------------------------------------------------------------------------

    def newest(
        self, claim_id: AnyClaimId, identity: Mapping[str, str] | None = None
    ) -> Checkpoint | None:
        """Return a claim's newest checkpoint that is not damaged.

        Parameters
        ----------
        claim_id
            Topic and number.
        identity
            The identity of the present topic; None to accept any.

        Returns
        -------
        Checkpoint or None
            None where there has never been any.

        Raises
        ------
        CheckpointError
            If all of them are damaged, or the newest other one cannot be used, or is of another
            topic of that name.
        ConfigurationError
            If it was written under another configuration.
        """
        return self._told(self._look(claim_id, identity))

    def _told(self, found: _Found) -> Checkpoint | None:
        """Say which checkpoints are damaged; return the one that is not."""
        for damage in found.damages:
            log.error(damage)
            if self.warn is not None:
                self.warn(damage)
        return found.checkpoint

    def newest_id(self, claim_id: AnyClaimId) -> str | None:
        """Return the id of a claim's newest file without reading it, or None.

        Raises
        ------
        CheckpointError
            If the folder cannot be read.
        """
        checkpoints = self._files(claim_id).listing().checkpoints
        return written_id(*checkpoints[-1]) if checkpoints else None

    def _look(self, claim_id: AnyClaimId, identity: Mapping[str, str] | None) -> _Found:
        for _ in range(ATTEMPTS):
            checkpoints = self._files(claim_id).listing().checkpoints
            if not checkpoints:
                self._refuse_parts(claim_id)
                return _Found(None, [], checkpoints)
            try:
                checkpoint, damages = self._newest(claim_id, checkpoints)
            except FileNotFoundError:  # another process has just thrown it away for newer ones
                continue
            self.check_identity(claim_id, checkpoint.identity, identity or {})
            return _Found(checkpoint, damages, checkpoints)
        raise CheckpointError(f"{self.folder(claim_id)}: checkpoints vanish while they are read")

    def _refuse_parts(self, claim_id: AnyClaimId) -> None:
        """Refuse a folder with models of single partitions for one model of all."""
        topic, number = claim_id
        if number is None and (parts := self.parts(topic)):
            names = ", ".join(sorted(self.folder((topic, part)).name for part in parts))
            raise CheckpointError(
                f"{self.path} has models of single partitions, {names}, and one learns all of "
                f"{topic} now: start with another folder and group, or continue with one of them "
                "by --partition"
            )

    def parts(self, topic: str) -> list[int]:
        """Return the partitions of a topic that have checkpoints of their own."""
        name = re.compile(re.escape(self._name(topic)) + r"-(\d+)")
        with saying_why(self.path, "read"), suppress(FileNotFoundError):
            found = {path: name.fullmatch(path.name) for path in self.path.iterdir()}
            return [
                int(match[1])
                for path, match in found.items()
                if match and files_in(path).listing().checkpoints
            ]
        return []

    def first_partitions(self, topic: str, count: int) -> int:
        """Return how many partitions a topic had when the first of them was claimed.

        Parameters
        ----------
        topic
            A topic whose partitions have checkpoints of their own.
        count
            How many it has now, which is noted where none was claimed before.

        Raises
        ------
        CheckpointError
            If that cannot be noted, or what was noted cannot be read.
        """
        file = self.path / f"{self._name(topic)}-partitions"
        with saying_why(file, "read"), suppress(FileNotFoundError):
            return _noted(file, topic)
        first = max(self.parts(topic), default=count - 1) + 1
        with saying_why(file), suppress(FileExistsError):  # another worker's, since
            create_whole(cast("Path", file), b"%d\n" % first)
        with saying_why(file, "read"):
            return _noted(file, topic)

    def _newest(
        self, claim_id: AnyClaimId, checkpoints: list[tuple[int, int]]
    ) -> tuple[Checkpoint, list[str]]:
        """Return the newest undamaged checkpoint, and a line for each damaged one."""
        damaged: list[str] = []
        for which in reversed(checkpoints):
            path = self._files(claim_id).file(*which)
            try:
                with naming(path):
                    data = load(path)
                    checkpoint = from_bytes(
                        data, secret=self.secret, allow_pickle=self.allow_pickle
                    )
                    _check_offsets(claim_id, checkpoint)
            except DamagedCheckpointError as problem:
                damaged.append(str(problem))
                continue
            if self.configuration is not None:
                checkpoint = self._agreed(path, checkpoint, self.configuration)
            return checkpoint, [f"{line}; going back to {path.name}" for line in damaged]
        raise CheckpointError(
            "all checkpoints are damaged, restore one of them, or start afresh with another folder "
            "and group: " + "; ".join(damaged)
        )

    def _agreed(self, path: AnyPath, checkpoint: Checkpoint, now: Mapping[str, Any]) -> Checkpoint:
        """Return a checkpoint that agrees with the configuration, else ConfigurationError."""
        if self._takes_any:  # except what a worker has added
            now = {**without(checkpoint.configuration, "codec"), **now}
        if checkpoint.is_blank:
            return replace(checkpoint, configuration=now)
        replaced = checkpoint.promotions[-1]["replaced"] if checkpoint.promotions else None
        agreed, has_shadow = agree(
            path, checkpoint.configuration, now, replaced, follows=self.follows
        )
        shadow = checkpoint.shadow if has_shadow else None
        return replace(checkpoint, configuration=agreed, shadow=shadow)

    def check_identity(
        self, claim_id: AnyClaimId, before: Mapping[str, str], now: Mapping[str, str]
    ) -> None:
        """Raise CheckpointError if the topic is not the one that was learnt.

        Parameters
        ----------
        claim_id
            Topic and number.
        before, now
            The identity of the topic, when it was learnt and now.
        """
        folder, (topic, _) = self.folder(claim_id), claim_id
        labels = (self.configuration or {}).get("labels")
        check_identity(folder, topic, before, now, labels=labels, follows=self.follows)

    # --- writing -------------------------------------------------------------------------------

    def check(self, model: Any) -> None:
        """Raise CheckpointError if a model cannot be stored, before it learns."""
        checkpoint = Checkpoint(model, {}, configuration=self.configuration or {})
        to_bytes(checkpoint, secret=self.secret, allow_pickle=self.allow_pickle)

    def claim(self, claim_id: AnyClaimId, identity: Mapping[str, str] | None = None) -> Claim:
        """Claim the next epoch of a model: earlier claimants can no longer save.

        Parameters
        ----------
        claim_id
            Topic and number.
        identity
            The identity of the present topic; None to accept any.

        Returns
        -------
        Claim
            Epoch and newest checkpoint.

        Raises
        ------
        CheckpointError
            As `newest` does, or if it is signed, and there is no key; a checkpoint that cannot be
            used is found before anything is claimed.
        """
        files = self._files(claim_id)
        found = self._continued(claim_id, identity)
        reached("claim.checked")
        epoch = files.claim(self.owner)
        reached("claim.created")
        if files.listing().checkpoints != found.there:  # one was written, or removed, meanwhile
            found = self._continued(claim_id, identity)
        checkpoint = self._told(found)
        reached("claim.loaded")
        files.clean(epoch)
        reached("claim.cleaned")
        return Claim(epoch, checkpoint)

    def _continued(self, claim_id: AnyClaimId, identity: Mapping[str, str] | None) -> _Found:
        """Look for what to continue; refuse it if what would be saved after it lacked its key."""
        found = self._look(claim_id, identity)
        checkpoint = found.checkpoint
        if checkpoint is not None and checkpoint.is_signed and self.secret is None:
            raise CheckpointError(
                f"{self.folder(claim_id)}: checkpoint {checkpoint.id} is signed: give the file of "
                "its key, --key-file"
            )
        return found

    def save(  # noqa: PLR0913
        self,
        claim_id: AnyClaimId,
        epoch: int,
        model: Any,
        offsets: Mapping[TopicPartition, int],
        metrics: Mapping[str, Any] | None = None,
        *,
        join: Callable[[], tuple[Mapping[str, Any], bytes]] | None = None,
        runs: Sequence[Run] = (),
        previous: str | None = None,
        **more: Any,
    ) -> Checkpoint:
        """Write a checkpoint atomically: `prepare`, then write.

        `model`, `offsets`, `metrics` and `more` are those of a `Checkpoint`.
        """
        checkpoint = Checkpoint(model, dict(offsets), epoch, metrics=metrics or {}, **more)
        return self.prepare(claim_id, checkpoint, join=join, runs=runs, previous=previous)()

    def prepare(  # noqa: PLR0913
        self,
        claim_id: AnyClaimId,
        checkpoint: Checkpoint,
        *,
        join: Callable[[], tuple[Mapping[str, Any], bytes]] | None = None,
        keyed: Callable[[], Lineage] | None = None,
        runs: Sequence[Run] = (),
        previous: str | None = None,
    ) -> Callable[[], Checkpoint]:
        """Return a function that writes a checkpoint of the model as it is now, on any thread.

        Parameters
        ----------
        claim_id
            Topic and number.
        checkpoint
            What is to be written; its epoch is what `claim` gave. It gets the next sequence, and
            the folder's configuration where it has none.
        join
            Returns the state of labels that come later, as it is now, on any thread.
        keyed
            Writes the models of keys, as they are now, on any thread, and returns their lineage;
            None for none.
        runs
            In which order messages were learnt since the checkpoint `previous`.
        previous
            The one that the model comes from; None where it comes from none.

        Returns
        -------
        callable
            Returns the checkpoint once it is written. It raises FencedError if another process has
            made the claim since, and CheckpointError if it cannot be written: the ones
            before are as they were.

        Raises
        ------
        FencedError
            If another process has made the claim since: drop the model.
        CheckpointError
            If the model cannot be stored.
        """
        reached("checkpoint.begun")
        files, epoch = self._files(claim_id), checkpoint.epoch
        before = files.owned(epoch)
        sequence = max((s for e, s in before.checkpoints if e == epoch), default=0) + 1
        configuration = checkpoint.configuration or self.configuration or {}
        checkpoint = replace(checkpoint, sequence=sequence, configuration=configuration)
        models = [checkpoint.model, *(checkpoint.shadow or ())[:1]]
        # What keeps changing is copied here; the rest, which takes longer, is left to the thread.
        encodings = [encoding(model, allow_pickle=self.allow_pickle) for model in models]
        reached("checkpoint.encoded")

        def write() -> Checkpoint:
            models = None if keyed is None else keyed()
            whole = replace(checkpoint, models=models, join=None if join is None else join())
            encoded = [encode() for encode in encodings]
            check_readable(encoded)
            data = to_bytes(whole, secret=self.secret, encoded=encoded)
            _, state = checkpoint.shadow or (None, None)
            which = which_models(checkpoint.promotions, state)
            digest = checkpoint.digest
            line = order_line(checkpoint.id, previous, runs, digest=digest, models=which)
            files.append_order(epoch, sequence, line, before.orders)
            written = [*files.write(epoch, sequence, data).checkpoints, (epoch, sequence)]
            reached("checkpoint.recorded")
            self._written[files.file(epoch, sequence)] = Written(checkpoint.time)
            files.prune(self.retention, written, self._written)
            reached("checkpoint.pruned")
            return whole

        return write

    def _files(self, claim_id: AnyClaimId) -> ModelFolder:
        return files_in(self.folder(claim_id))


def _noted(file: AnyPath, topic: str) -> int:
    """Return the number of partitions in a file."""
    data = file.read_bytes()
    with suppress(ValueError):
        if (count := int(data)) > 0:
            return count
    raise CheckpointError(
        f"{file} has no number: write how many partitions {topic} had when its group started"
    )


def _check_offsets(claim_id: AnyClaimId, checkpoint: Checkpoint) -> None:
    topic, number = claim_id
    topics = {topic, checkpoint.configuration.get("labels")}
    for other, of in checkpoint.offsets:
        if other not in topics or number not in {None, of}:
            raise CheckpointError(f"it is of {other}:{of}, and lies in the folder of {claim_id}")
