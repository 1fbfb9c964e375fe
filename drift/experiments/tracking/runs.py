"""One model on one shifting stream, or on one chunk of it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import drift
from drift.experiments.jobs import Rows, Run, code_fingerprint, float64_columns
from drift.experiments.runner import learn
from drift.kernels import DEFAULT_KERNEL

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from drift.experiments.folder import Record
    from drift.experiments.setting import Setting
    from drift.models import KernelClassifier
    from drift.streams import ShiftingStream

__all__ = ["tracking_run"]


def tracking_run(
    one: Setting,
    stream: ShiftingStream,
    index: int,
    seed: int | None = None,
    chunk: int | None = None,
) -> Run:
    """Return the run of one contender on one stream, or on one chunk of it.

    Parameters
    ----------
    one
        Model, parameters and kernel, of which Tracker has its own.
    stream
        What it learns.
    index
        Number of the stream among those with as many shifts.
    seed
        Of a model that draws at random; None for the others.
    chunk
        Number of the one chunk to learn, afresh; None for the whole stream.

    Examples
    --------
    >>> from drift.experiments.setting import Setting
    >>> from drift.experiments.tracking.runs import tracking_run
    >>> from drift.streams import ShiftingStream, segments
    >>> stream = ShiftingStream(segments(), ["sky", "grass"])
    >>> run = tracking_run(Setting("LBP", {"budget": 10}), stream, index=0, chunk=1)
    >>> [run.identity[name] for name in ("start", "stop", "targets")]
    [1155, 2310, ['grass']]
    """
    size = stream.chunk_size
    start, stop = (0, len(stream.y)) if chunk is None else (chunk * size, (chunk + 1) * size)
    targets = stream.targets if chunk is None else stream.targets[chunk : chunk + 1]
    identity = {
        "model": one.model,
        "parameters": dict(one.parameters),
        "seed": seed,
        "kernel": None if one.model == "Tracker" else repr(one.kernel or DEFAULT_KERNEL),
        "columns": "float64",
        "drift": drift.__version__,
        "code": code_fingerprint(),
        "stream": stream.documents.name,
        "sha256": stream.documents.sha256,
        "shifts": len(stream.targets) - 1,
        "index": index,
        "targets": list(targets),
        "start": start,
        "stop": stop,
    }
    # Workers cut their part themselves: parts cut here would be so many more arrays to send.
    arguments = (start, stop, stream.y, *Rows.of(stream.documents.rows))
    return Run(identity, partial(one.make, seed), _learn_part, arguments, stop - start)


@float64_columns()
def _learn_part(
    model: KernelClassifier, start: int, stop: int, y: NDArray[np.bool_], *rows: Any
) -> Record:
    return learn(model, Rows(*rows).part(start, stop), y[start:stop])
