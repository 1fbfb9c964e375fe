"""The journal of the order of learning: with the logs it reproduces the model.

Beside the checkpoints, a line of JSON for each: its identifier, that of the checkpoint which its
model comes from, and what was learnt between the two::

    {
        "checkpoint": "3-17",
        "previous": "3-16",
        "places": [["orders", 0], ["frauds", 0]],
        "runs": [[[0, 1200], [1, 310]], [[1, 312]]],
        "digest": 3190462561,
        "models": 2891043077,
    }

A run says up to which offset each partition was learnt, by its number in `places`; within a run
messages are in the order of their times (`drift.consumers.order.sort_key`). The digest is that of
all that the model has learnt, as `drift.consumers.learner.Learner` has it; `which_models` has the
number of the models, which is another one once a shadow begins or takes the model's place. A line
is written before its checkpoint: one whose checkpoint was never completed is no other's
predecessor. One that has the model of `previous` with the offsets of another, as ``"offsets_of"``
says, has left out what lies between. Single messages that were left out, as they had ended the
worker or by `drift checkpoint skip`, are in ``"skips"``: ``["orders", 0, 1207, "why"]``. The files
may be deleted, whole and oldest first; a folder of 256 MB deletes them itself. An object store has
none.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from drift.consumers.order import LearntRuns
from drift.consumers.records import Position
from drift.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from drift.consumers.checkpoints.objects import AnyPath
    from drift.consumers.order import Run

__all__ = ["Journal", "order_line", "read_journal", "read_order", "which_models"]


def order_line(  # noqa: PLR0913
    checkpoint: str,
    previous: str | None,
    runs: Sequence[Run],
    *,
    offsets_of: str | None = None,
    digest: int | None = None,
    models: int | None = None,
) -> bytes:
    r"""Return the line of a checkpoint.

    Examples
    --------
    >>> order_line("3-17", "3-16", [{("orders", 0): 1200}])
    b'{"checkpoint":"3-17","previous":"3-16","places":[["orders",0]],"runs":[[[0,1200]]]}\n'
    """
    number = {place: i for i, place in enumerate(dict.fromkeys(p for run in runs for p in run))}
    line: dict[str, Any] = {
        "checkpoint": checkpoint,
        "previous": previous,
        "places": [*number],
        "runs": [[[number[place], upto] for place, upto in run.items()] for run in runs],
    }
    if offsets_of is not None:
        line["offsets_of"] = offsets_of
    if digest is not None:
        line["digest"] = digest
    if models is not None:
        line["models"] = models
    if isinstance(runs, LearntRuns) and runs.skips:
        line["skips"] = [[*position, why] for position, why in runs.skips.items()]
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def which_models(promotions: Sequence[Mapping[str, Any]], shadow: Mapping[str, Any] | None) -> int:
    """Return a number of what learns and answers: the same as long as no model changes its place.

    Parameters
    ----------
    promotions
        Those of the checkpoint.
    shadow
        `drift.consumers.shadow.Shadow.state` of its shadow; None for none.

    Examples
    --------
    >>> which_models([], None) == which_models([{"number": 1}], None)
    False
    """
    number = promotions[-1]["number"] if promotions else 0
    return crc32(json.dumps([number, shadow and shadow["since"]]).encode())


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
        If lines are missing, the model does not come from that one, or it has left out what it was
        rolled back over.
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
        As `which_models` has it; None where it is not known.
    """

    runs: LearntRuns
    digest: int | None
    models: int | None


def read_journal(folder: AnyPath, checkpoint: str, since: str | None = None) -> Journal:
    """Return what `read_order` does, and what else the checkpoint's line has."""
    found: list[list[Run]] = []
    skips: dict[Position, str] = {}
    digest: int | None = None
    models: int | None = None
    at: str | None = checkpoint
    lines = _lines(folder)
    while at != since:
        # A line was written after that of the checkpoint which it comes from.
        line = next((line for line in lines if line["checkpoint"] == at), None)
        if line is None:
            raise CheckpointError(
                f"{folder} has no order of what checkpoint {at} learnt: its files were deleted, or "
                "the model comes from elsewhere"
            )
        if "offsets_of" in line:
            raise CheckpointError(
                f"{folder}: checkpoint {at} has the model of {line['previous']} and the offsets of "
                f"{line['offsets_of']}, by --keep-offsets: what lies between was not "
                "learnt, so that no order gives it back"
            )
        if at == checkpoint:
            digest, models = line.get("digest"), line.get("models")
        places = [(topic, number) for topic, number in line["places"]]
        found.append([{places[i]: upto for i, upto in run} for run in line["runs"]])
        skips |= {Position(*position): why for *position, why in line.get("skips", ())}
        at = line["previous"]
    runs = LearntRuns((run for runs in reversed(found) for run in runs), skips)
    return Journal(runs, digest, models)


def _lines(folder: AnyPath) -> Iterator[dict[str, Any]]:
    """Yield the lines, the newest first; the newest of a checkpoint counts."""
    files = [path for path in folder.iterdir() if path.name.startswith("order-")]
    for file in sorted(files, reverse=True):
        for line in reversed(file.read_bytes().splitlines()):
            with suppress(ValueError):  # the last one, where its worker was killed
                yield json.loads(line)
