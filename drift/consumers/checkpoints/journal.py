"""The journal of the order of learning: with the logs it reproduces the model.

Beside the checkpoints, a line of JSON for each: its identifier, that of the checkpoint which its
model comes from, and what was learnt between the two::

    {
        "checkpoint": "3-17",
        "previous": "3-16",
        "places": [["orders", 0], ["frauds", 0]],
        "runs": [[[0, 1200], [1, 310]], [[1, 312]]],
        "digest": 3190462561,
        "models": [1, 2891043077],
    }

A run says up to which offset each partition was learnt, by its number in `places`; within a run
messages are in the order of their times (`drift.consumers.order.sort_key`). The digest is that of
all that the model has learnt, as `drift.consumers.learner.Learner` has it; `which_models` has the
numbers of the models, which are others once a shadow begins or takes the model's place. A line
without runs and with one promotion more is of `drift promote`. A line is written before its
checkpoint: one whose checkpoint was never completed is no other's predecessor. One that has the
model of `previous` with the offsets of another, as ``"offsets_of"`` says, has left out what lies
between. Single messages that were left out, as they had ended the worker or by `drift checkpoint
skip`, are in ``"skips"``: ``["orders", 0, 1207, "why"]``; the line of the command has them before
they come. Where partitions were started since
`previous` is in ``"first"``: ``["orders", 0, 1100]``. The files may be deleted, whole and
oldest first; a folder deletes them itself beyond 256 MB or 4,000 files. An object store has none.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from drift.consumers.checkpoints.files import saying_why
from drift.consumers.order import Learnt, LearntRuns
from drift.consumers.records import Position
from drift.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from drift.consumers.checkpoints.objects import AnyPath
    from drift.consumers.order import Run
    from drift.consumers.records import TopicPartition

__all__ = ["Journal", "order_line", "read_journal", "read_order", "which_models"]


def order_line(  # noqa: PLR0913
    checkpoint: str,
    previous: str | None,
    runs: Sequence[Run],
    *,
    offsets_of: str | None = None,
    digest: int | None = None,
    models: Sequence[int | None] = (0, None),
) -> bytes:
    r"""Return the line of a checkpoint.

    Examples
    --------
    >>> order_line("3-17", "3-16", [{("orders", 0): 1200}])
    b'{"checkpoint":"3-17",...,"places":[["orders",0]],"runs":[[[0,1200]]],"models":[0,null]}\n'
    """
    number = {place: i for i, place in enumerate(dict.fromkeys(p for run in runs for p in run))}
    line: dict[str, Any] = {
        "checkpoint": checkpoint,
        "previous": previous,
        "places": [*number],
        "runs": [[[number[place], upto] for place, upto in run.items()] for run in runs],
        "models": models,
    }
    if offsets_of is not None:
        line["offsets_of"] = offsets_of
    if digest is not None:
        line["digest"] = digest
    if isinstance(runs, LearntRuns) and runs.skips:
        line["skips"] = [[*position, why] for position, why in runs.skips.items()]
    if isinstance(runs, LearntRuns) and runs.first:
        line["first"] = [[*place, offset] for place, offset in runs.first.items()]
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def which_models(
    promotions: Sequence[Mapping[str, Any]], shadow: Mapping[str, Any] | None
) -> list[int | None]:
    """Return what tells models from each other: the same as long as none changes its place.

    The first number counts the promotions; the second is that of where the shadow began, None
    without one.

    Parameters
    ----------
    promotions
        Those of the checkpoint.
    shadow
        `drift.consumers.shadow.Shadow.state` of its shadow; None for none.

    Examples
    --------
    >>> which_models([], None), which_models([{"number": 1}], {"since": [["orders", 0, 7]]})
    ([0, None], [1, 4012759626])
    """
    number = promotions[-1]["number"] if promotions else 0
    return [number, None if shadow is None else crc32(json.dumps(shadow["since"]).encode())]


def read_order(folder: AnyPath, checkpoint: str, since: str | None = None) -> LearntRuns:
    """Return the order of all that a checkpoint's model has learnt, and which messages it has not.

    Parameters
    ----------
    folder
        The folder of the checkpoints of a topic, as `CheckpointFolder.folder` has it.
    checkpoint
        Its identifier.
    since
        That of a checkpoint which its model comes from: what that knows is left out. None for all.

    Raises
    ------
    CheckpointError
        If lines are missing or cannot be read, the model does not come from that one, or a rollback
        kept the newer offsets.
    """
    return read_journal(folder, checkpoint, since).runs


class Journal(NamedTuple):
    """What a replica compares with its own.

    Attributes
    ----------
    runs
        In which order it was learnt, and which messages were left out.
    digest
        Of all that was learnt; None where it is not known.
    models
        As `which_models` has it; None where there is no line.
    """

    runs: LearntRuns
    digest: int | None
    models: list[int | None] | None


def read_journal(folder: AnyPath, checkpoint: str, since: str | None = None) -> Journal:
    """Return what `read_order` does, and what else the checkpoint's line has."""
    found: list[Learnt] = []
    skips: dict[Position, str] = {}
    first: dict[TopicPartition, int] = {}
    digest: int | None = None
    models: list[int | None] | None = None
    has_history = False
    at: str | None = checkpoint
    lines = _lines(folder)
    while at != since:
        # A line was written after that of the checkpoint which it comes from.
        line = next((line for line in lines if line["checkpoint"] == at), None)
        if line is None:
            raise CheckpointError(
                f"{folder} has no order of what checkpoint {at} learnt: its files were deleted, or "
                "the model comes from elsewhere, as after drift checkpoint adopt --offset"
            )
        if "offsets_of" in line:
            raise CheckpointError(
                f"{folder}: checkpoint {at} has the model of {line['previous']} and the offsets of "
                f"{line['offsets_of']}, by --keep-offsets: what lies between was not "
                "learnt, so that no order gives it back"
            )
        if at == checkpoint:
            digest, models = line.get("digest"), line["models"]
        places = [(topic, number) for topic, number in line["places"]]
        runs = [{places[i]: upto for i, upto in run} for run in line["runs"]]
        found.append(Learnt(line["checkpoint"], runs, *line["models"]))
        has_history = not runs and bool(line.get("digest"))  # of the first one, at last
        skips |= {Position(*position): why for *position, why in line.get("skips", ())}
        first |= {(topic, number): offset for topic, number, offset in line.get("first", ())}
        at = line["previous"]
    found.reverse()
    runs = [run for part in found for run in part.runs]
    of_all = None if has_history or since is not None else digest
    return Journal(LearntRuns(runs, skips, found, first, of_all), digest, models)


def _lines(folder: AnyPath) -> Iterator[dict[str, Any]]:
    """Yield the lines, the newest first; the newest of a checkpoint counts."""
    with saying_why(folder, "read"):
        files = [path for path in folder.iterdir() if path.name.startswith("order-")]
    for file in sorted(files, reverse=True):
        with saying_why(file, "read"):
            lines = file.read_bytes().splitlines()
        for line in reversed(lines):
            with suppress(ValueError):  # the last one, where its worker was killed
                yield json.loads(line)
