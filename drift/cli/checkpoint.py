"""Make, show, verify, relearn, adopt or roll back checkpoints."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - options are read off their types
from typing import TYPE_CHECKING, Any, TypeVar

import click

from drift._checks import counted
from drift._options import option
from drift.cli import _named
from drift.cli._client import Client, read_secret
from drift.cli._command import Command, ask, noting, raise_all, warn
from drift.cli._learning import IDLE, Learning
from drift.cli._log import logging_to_stderr
from drift.cli._settings import TABLES
from drift.cli._settings import load as load_tables
from drift.cli._shadow import promotion_line, shadow_line
from drift.consumers.checkpoints.adoption import adopt, skip
from drift.consumers.checkpoints.checkpoint import from_bytes, verify
from drift.consumers.checkpoints.file_format import (
    Description,
    describe,
    id_of,
    load,
    naming,
    next_offsets,
)
from drift.consumers.checkpoints.files import files_in, models_in, newest, stored
from drift.consumers.checkpoints.journal import read_order
from drift.consumers.checkpoints.objects import as_path
from drift.consumers.checkpoints.rollback import plan, when
from drift.consumers.checkpoints.stored_keys import StoredKeys
from drift.consumers.preparing import prepare_folder, refuse_keyed
from drift.consumers.records import Position, written_offsets
from drift.errors import CheckpointError, ConsumerError, DriftError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from drift.cli._settings import Settings
    from drift.consumers import CheckpointFolder
    from drift.consumers.checkpoints.files import ModelFolder
    from drift.consumers.checkpoints.objects import AnyPath
    from drift.consumers.checkpoints.rollback import Rollback as Plan

__all__ = ["Adopt", "Init", "List", "Relearn", "Rollback", "Show", "Skip", "Verify"]

#: Counts that a line about a partition has.
_SHOWN = ("examples", "mistakes", "unlabelled", "dead_letters")
#: Among the metrics of a checkpoint, states of tens of KB that continue in the worker.
_STATES = ("measures", "alarms")
#: Lines about examples that are left out; the others are counted.
_LINES = 10
_UNCHECKED = "not checked: give --key-file"
_Row = TypeVar("_Row")


@dataclass(kw_only=True)
class Show(Command):
    """Show a checkpoint's offsets, configuration, metrics and versions.

    Of a folder, a line for the newest one of each model.
    """

    file: str = option("A checkpoint's file, or a folder of them.", argument=True)

    def _run(self) -> None:
        folder = as_path(self.file)
        if folder.is_dir():
            for _, header in newest(folder, warn):
                click.echo(_line(header))
        else:
            with naming(self.file):
                description = describe(load(self.file))
            click.echo(_described(description))


@dataclass(kw_only=True)
class List(Command):
    """List the checkpoints of a model, the newest first: those that it can be rolled back to."""

    folder: str = option("The checkpoints, or those of one model.", argument=True)
    json: bool = option("Print an object of JSON a line.", default=False)

    def _run(self) -> None:
        for files, _ in newest(as_path(self.folder), warn):
            for one in stored(files, warn):
                click.echo(json.dumps(_entry(files, one)) if self.json else _listed(one.header))


@dataclass(kw_only=True)
class _Signed(Command):
    key_file: Path | None = option("File of the key that it must be signed with.", None)


@dataclass(kw_only=True)
class Verify(_Signed):
    """Check a checkpoint's checksum, signature and model; runs nothing that is in the file.

    Of a folder, all of them are checked, and models of keys.
    """

    file: str = option("A checkpoint's file, or a folder of them.", argument=True)

    def _run(self) -> None:
        secret, path = read_secret(self.key_file), as_path(self.file)
        if not path.is_dir():
            click.echo(_verified(path, secret))
            return
        bad = count = 0
        problems: list[DriftError] = []
        for files in models_in(path):
            for which in files.listing().checkpoints:
                count += 1
                try:
                    with suppress(FileNotFoundError):  # the worker has removed it
                        click.echo(_verified(files.file(*which), secret))
                except CheckpointError as problem:
                    click.echo(problem)
                    bad += 1
            header = next((one.header for one in stored(files)), {"models": None})
            if header["models"] is not None:
                with noting(problems):
                    click.echo(_verified_models(files, header, secret))
        if bad:
            unusable = f"{bad} of {counted(count, 'checkpoint')} cannot be used"
            problems.insert(0, CheckpointError(unusable))
        raise_all(problems)


def _verified_models(files: ModelFolder, header: Mapping[str, Any], secret: bytes | None) -> str:
    """Return a line that says that the models of keys are sound."""
    keys = StoredKeys(files, header["models"], warn)
    if header["signed"] and secret is None:
        keys.check()
        return f"{keys.path}: signed, and not verified without --key-file"
    count, damaged = keys.verify(secret)
    if damaged:
        raise CheckpointError(f"{keys.path}: {damaged} of {counted(count, 'model')} cannot be used")
    signed = "" if secret is None else ", signed with this key"
    return f"{keys.path}: {counted(count, 'model')}, sound{signed}"


def _verified(path: AnyPath, secret: bytes | None) -> str:
    """Return a line that says that a checkpoint is sound."""
    with naming(path):
        description = verify(load(path), secret=secret)
    kind = description.header["payload"]
    unread = ", its model a pickle that was not loaded" if kind == "pickle" else ""
    signed = "" if secret is None else ", signed with this key"
    if secret is None and description.signature is not None:
        signed = f", its signature {_UNCHECKED}"
    return f"{path}: sound{signed}{unread}"


@dataclass(kw_only=True)
class Adopt(_Signed):
    """Let checkpoints continue with a topic that was recreated, moved or truncated.

    Messages before their offsets are not learnt. With --codec they continue with their topic and
    another [codec].
    """

    folder: str = option("The checkpoints, or those of one model.", argument=True)
    topic: str | None = option("The topic to adopt; default: ask.", None)
    offset: int | None = option(
        "Next offset of each partition of the topic; default: that of the checkpoint.",
        None,
        least=0,
    )
    partition: int | None = option(
        "Of this partition alone, whose log was truncated; default: of all.", None, least=0
    )
    codec: bool = option(
        "Accept another [codec], and no other topic; without --offset.", default=False
    )

    def _run(self) -> None:
        if self.codec and (self.offset, self.partition) != (None, None):
            raise ParameterError(
                "--codec leaves the offsets as they are: leave --offset and --partition out"
            )
        headers = dict(newest(as_path(self.folder), warn))
        for files, header in headers.items():
            known = ", ".join(f"{name} {value}" for name, value in header["identity"].items())
            click.echo(f"{files.path}: {_offsets(header)}, learnt from {known or 'no known topic'}")
        topic = self.topic or ask(
            click.prompt, "Name of the topic that these continue with", "it by --topic"
        )
        chosen = [
            one
            for one, h in headers.items()
            if any(
                name == topic and self.partition in {None, number}
                for name, number, _ in h["offsets"]
            )
        ]
        known = topic if self.partition is None else f"{topic}:{self.partition}"
        if not chosen:
            raise ParameterError(f"{self.folder} has no checkpoint of {known}: nothing was changed")
        for files in chosen:
            secret = read_secret(self.key_file)
            dropped = adopt(
                files, topic, self.offset, secret, partition=self.partition, codec=self.codec
            )
            what = f"the codec that {topic} is read with next"
            if not self.codec:
                what = f"{known} as it is now"
                if dropped:
                    is_labels = topic == headers[files]["configuration"].get("labels")
                    what += f", and drops {counted(dropped, 'label' if is_labels else 'message')} "
                    what += "of it that waited there"
                if self.offset is None:
                    what += f"; what is there before {_offsets(headers[files])} is not read"
            click.echo(f"{files.path}: continues with {what}")


@dataclass(kw_only=True)
class Skip(_Signed):
    """Leave a message out that ends the worker: it becomes a dead letter, the others are learnt.

    A worker that has the model loads the changed checkpoint.
    """

    folder: str = option("The checkpoints, or those of one model.", argument=True)
    message: str = option("TOPIC:PARTITION:OFFSET, as the log names it.", argument=True)

    def _run(self) -> None:
        topic, *numbers = self.message.rsplit(":", 2)
        if len(numbers) != 2 or not all(map(str.isdecimal, numbers)):
            raise ParameterError(f"{self.message!r} is no message, as orders:3:1207")
        position = Position(topic, *map(int, numbers))
        of = [
            files
            for files, header in newest(as_path(self.folder), warn)
            if [*position[:2]] in [one[:2] for one in header["offsets"]]
        ]
        if not of:
            raise ParameterError(
                f"{self.folder} has no checkpoint of {topic}:{position.partition}: nothing was "
                "changed"
            )
        for files in of:
            skip(files, position, read_secret(self.key_file))
            click.echo(f"{files.path}: leaves {position} out")


@dataclass(kw_only=True)
class Init(Learning):
    """Learn a history, and write the first checkpoint of a group, from which drift consume starts.

    The history is a table (CSV, Parquet, ARFF), whose columns are the features of the topic's
    messages, or a file of such messages, a line each (.jsonl, .ndjson), with their labels. Give the
    worker's --config and options.
    """

    history: Path = option("The file.")
    target: str | None = option("Column of a table that has the labels.", None)
    time: str | None = option("Column of a table by which rows are ordered.", None)
    drop: tuple[str, ...] = option("Columns of a table that are no features.", ())
    begin: str | None = option(
        "Where drift consume starts in the topic: earliest, latest or a time (UTC); default: "
        "--from.",
        None,
        name="start",
    )

    def _run(self) -> None:
        from drift.cli._progress import bar
        from drift.cli._warm import history_of, start_offsets
        from drift.consumers.measures import Measures
        from drift.consumers.warm import refuse_learnt, warm

        settings = self.settings()
        options, folder = settings.worker, self.folder(settings)
        model = _named.build(settings.model)

        refuse_learnt(folder, options)
        first, identity = start_offsets(self.begin, options, settings.kafka | settings.consumer)
        history = history_of(self.history, self.target, self.time, self.drop)
        left = 0

        def leave_out(number: int, problem: Exception | None) -> None:
            nonlocal left
            left += 1
            if left <= _LINES:
                warn(f"left out: {self.history}: {number}: {problem or 'it has no label'}")

        with bar(len(history)) as advance:
            checkpoint = warm(
                model,
                folder,
                options,
                _advancing(history, advance),
                first,
                codec=settings.codec,
                identity=identity,
                left_out=leave_out,
                shadow=settings.shadow and _named.build(settings.shadow),
            )
        counts, window = checkpoint.metrics, Measures().window
        begins = ", ".join(f"{topic}:{n} offset {at:,}" for (topic, n), at in sorted(first.items()))
        click.echo(
            f"{folder.folder((options.topic, options.partition))}: {checkpoint.id} has learnt "
            f"{counted(counts['examples'], 'example')}, {left:,} left out; error "
            f"{counts['mistakes'] / counts['examples']:.1%}, of the last "
            f"{min(counts['examples'], window):,} {_error({'metrics': counts}):.1%}"
        )
        click.echo(f"drift consume starts at {begins}")


def _advancing(rows: Iterable[_Row], advance: Callable[[], None]) -> Iterator[_Row]:
    for row in rows:
        yield row
        advance()


@dataclass(kw_only=True)
class Relearn(Learning):
    """Learn again what a checkpoint's model has learnt, and compare the two: nothing is changed.

    Reads the topics in the worker's order, which the order files have. It joins no group. Give the
    worker's --config and options.
    """

    to: str | None = option(
        "The checkpoint's id, or a time (UTC) by which it was written; default: the newest.", None
    )
    orders: Path | None = option(
        "Folder of order files that were copied elsewhere, or of such a folder.", None
    )
    history: Path | None = option(
        "The checkpoint that drift checkpoint init wrote, for a group that began with one.", None
    )
    out: Path | None = option("File for the predictions, a line of JSON each.", None)

    #: Options by which nothing is learnt otherwise.
    unused = IDLE | {"on_gap", "max_idle", "dead_letters", "log_json"}
    interrupted = "interrupted: the same command begins anew"

    def _run(self) -> None:
        from drift.cli._progress import bar
        from drift.cli._relearn import checked, compared, ends_of, logs_of, new_file
        from drift.consumers.relearning import relearning

        settings = self.settings()
        options, folder = settings.worker, self.folder(settings)
        refuse_keyed(settings.codec, "drift checkpoint relearn")
        prepare_folder(folder, options, settings.codec)
        if self.out is not None and options.predictions is None:
            raise ParameterError("--out is for predictions, and these options send none")
        files = files_in(folder.folder((options.topic, options.partition)))
        which, found = checked(files, self.to, folder, warn)
        if found is not None and found.signature is not None and folder.secret is None:
            warn(f"{files.path}: {which} is signed, and that was {_UNCHECKED}")
        order = read_order(self._orders(files), which)
        model, shadow = self._models(settings, folder, found, has_history=order.digest is None)
        count = sum(upto - order.first.get(place, 0) for place, upto in ends_of(order).items())
        reading = settings.kafka | settings.consumer
        known = {} if found is None else found.header["identity"]
        with (
            logging_to_stderr(self.secrets),
            new_file(self.out) as file,
            logs_of(order, reading, identity=known, labels=options.labels) as logs,
            bar(count) as advance,
        ):
            read = {place: _advancing(log, advance) for place, log in logs.items()}
            learner, sent = relearning(model, read, order, options, settings.codec, shadow=shadow)
            for output in sent:
                if file is not None and output.topic == options.predictions:
                    file.write((output.value or b"") + b"\n")
        examples = counted(learner.metrics.examples, "example")
        result = compared(found, learner.model, allow_pickle=options.allow_pickle)
        click.echo(f"{files.path}: {which}: {examples} learnt again: {result}")

    def _orders(self, files: ModelFolder) -> AnyPath:
        """Return the folder of the order files."""
        own: AnyPath = files.path
        if self.orders is None:
            return own
        inner = self.orders / own.name
        return inner if inner.is_dir() else self.orders

    def _models(
        self,
        settings: Settings,
        folder: CheckpointFolder,
        found: Description | None,
        *,
        has_history: bool,
    ) -> tuple[Any, Any]:
        """Return model and shadow as they were before the first message."""
        from drift.cli._relearn import untrained

        if self.history is not None:
            with naming(self.history):
                first = from_bytes(
                    load(self.history), secret=folder.secret, allow_pickle=folder.allow_pickle
                )
            return first.model, first.shadow and first.shadow[0]
        if has_history:
            raise ParameterError(
                "the model has begun with a history: give the checkpoint that drift checkpoint "
                "init wrote, or writes again in another folder and group, by --history"
            )
        model = untrained(found)
        model = _named.build(settings.model) if model is None else model
        shadow = settings.shadow and _named.build(settings.shadow)
        for one in (model, shadow):
            if getattr(one, "seed", 0) is None:
                warn(f"{type(one).__name__} draws, and has no seed: a replay may be another model")
        return model, shadow


@dataclass(kw_only=True)
class Rollback(_Signed, Client):
    """Roll a model back to an earlier checkpoint, which is copied as the newest.

    Messages since are learnt again, or not, with --keep-offsets. Shows the plan and asks. Stop all
    workers of the group first, standbys too.
    """

    folder: str = option("The checkpoints, or those of one model.", argument=True)
    to: str = option(
        "The checkpoint's id, or a time (UTC): the last one written by then, or by a day's end."
    )
    keep_offsets: bool = option("Keep the offsets of the newest checkpoint.", default=False)
    group: str | None = option(
        "The workers' group; default: that of the checkpoint, or of the file.", None
    )
    yes: bool = option("Do not ask.", default=False)

    def _run(self) -> None:
        secret = read_secret(self.key_file)
        models = [files for files, _ in newest(as_path(self.folder))]
        if len(models) > 1:
            names = ", ".join(str(one.path) for one in models)
            raise ParameterError(f"{self.folder} has several models, give one of {names}")
        rollback = plan(models[0], self.to, keep_offsets=self.keep_offsets, warn=warn)
        rollback.check(secret)
        group = (
            self.group
            or rollback.newest.header["identity"].get("group")
            or load_tables(self.config, TABLES)["worker"].get("group")  # after `adopt`
        )
        if group is None:
            raise ParameterError("the checkpoint does not name its group: give it by --group")
        for line in rollback.lines():
            click.echo(line)
        reading, _ = self.clients()
        _refuse_members(group, reading)
        for line in [] if self.keep_offsets else _gone(rollback, reading):
            click.echo(line)
        if not self.yes and not ask(click.confirm, "Roll back?", "--yes to roll back"):
            click.echo("nothing was changed")
            return
        _refuse_members(group, reading)
        written = rollback.write(secret)
        click.echo(f"{models[0].path}: {written} is the newest, start the workers")


def _refuse_members(group: str, options: Mapping[str, Any]) -> None:
    from drift.consumers.client.topics import members

    if found := members(group, options):
        raise ConsumerError(
            f"{', '.join(found)} in the group {group}: stop its workers first. A killed worker, "
            "or a static member, is one until its session_timeout_ms is over"
        )


def _gone(rollback: Plan, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each partition whose log no longer has the offset to go on at."""
    from drift.consumers.client.topics import Reader

    offsets = rollback.offsets()
    for topic in dict.fromkeys(topic for topic, _ in offsets):
        with Reader(topic, options) as reader:
            first, last = reader.beginnings(), reader.ends()
        for (of, number), (before, _) in offsets.items():
            begin, end = first.get(number, 0), last.get(number, 0)
            if of != topic or before is None:
                continue
            if begin > before:
                yield (
                    f"  {topic}:{number} now starts at {begin}: {begin - before:,} messages are "
                    "gone, and workers stop there unless on_gap = 'skip'"
                )
            elif end < before:
                yield (
                    f"  {topic}:{number} now ends at {end}, before {before}: it was truncated or "
                    "recreated, and workers stop there"
                )


def _entry(files: ModelFolder, one: Description) -> dict[str, Any]:
    header = one.header
    return {
        "folder": str(files.path),
        "id": id_of(header),
        "time": when(header).isoformat(),
        "offsets": header["offsets"],
        "examples": header["metrics"].get("examples"),
        "error": _error(header),
        "restores": header.get("restores"),
    }


def _error(header: Mapping[str, Any]) -> float | None:
    """Return the share of mistakes in the last examples."""
    from drift.consumers.measures import Measures

    try:
        error = Measures.restore(header["metrics"].get("measures")).error
    except ParameterError:
        return None
    return None if math.isnan(error) else error


def _listed(header: Mapping[str, Any]) -> str:
    error, restores = _error(header), header.get("restores")
    parts = [
        id_of(header),
        str(when(header)),
        _counted(header, ("examples",)),
        "" if error is None else f"error {error:.1%}",
        _offsets(header),
        f"rolled back to {restores}" if restores else "",
    ]
    return "  ".join(filter(None, parts))


def _offsets(header: Mapping[str, Any]) -> str:
    return written_offsets(next_offsets(header))


def _counted(header: Mapping[str, Any], names: tuple[str, ...]) -> str:
    counts = header["metrics"]
    return "  ".join(
        f"{name.replace('_', ' ')} {counts[name]:,}"
        for name in names
        if type(counts.get(name)) is int
    )


def _line(header: Mapping[str, Any]) -> str:
    parts = [
        _offsets(header),
        id_of(header),
        str(when(header)),
        header["model"],
        f"shadow {header['shadow']['model']}" if "shadow" in header else "",
        *(f"promotions {last['number']}" for last in header["promotions"][-1:]),
        _counted(header, _SHOWN),
    ]
    return "  ".join(filter(None, parts))


def _described(description: Description) -> str:
    header = description.header
    signed = "" if description.signature is None else ", signed"
    size = f"{len(description.payload):,} bytes"
    lines = [
        f"format   version {description.version}, model as {header['payload']}, {size}{signed}",
        f"model    {header['model']}",
        f"id       {id_of(header)}",
        f"time     {when(header)}",
        "offsets",
        *(f"  {topic}:{partition} {offset}" for topic, partition, offset in header["offsets"]),
    ]
    if "shadow" in header:
        lines.append(f"shadow   {shadow_line(header)}")
    lines += [f"promoted {promotion_line(one)}" for one in header["promotions"]]
    for part in ("identity", "configuration", "metrics", "versions"):
        lines.append(part)
        for name, value in header[part].items():
            if part != "metrics" or name not in _STATES:
                lines.append(f"  {name} {value if isinstance(value, str) else json.dumps(value)}")
    return "\n".join(lines)
