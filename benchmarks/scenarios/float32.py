"""What keeping supports in float32 instead of float64 changes, and what it saves: models on RCV1.

Every model learns the eight streams of 20,000 stories with no and with seven shifts twice, once in
each type. The table says how many of its runs differ in any prediction, in how many
predictions at most, and by how many mistakes float32 is worse (or, below zero, better).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from drift.models import LBP, MRBP, RBP, SPA, Forgetron, Perceptron, column_type
from drift.streams import load, tracking_groups

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from drift.streams import ShiftingStream


class NarrowForgetron(Forgetron):
    """The Forgetron with columns of the type in use."""

    _wide = False


_BUDGETS = (100, 350, 1000)
#: By the table's first column, the settings that a model is run with.
MODELS: dict[str, list[Callable[[], Any]]] = {
    "Perceptron": [Perceptron],
    "SPA, decay 0.5": [lambda: SPA(decay=0.5)],
    "RBP": [lambda b=b: RBP(b, seed=0) for b in _BUDGETS],  # type: ignore[misc]
    "LBP": [lambda b=b: LBP(b) for b in _BUDGETS],  # type: ignore[misc]
    "Forgetron, if it were in float32": [
        lambda b=b: NarrowForgetron(b)  # type: ignore[misc]
        for b in _BUDGETS
    ],
    "MRBP": [lambda b=b: MRBP(b, seed=0) for b in _BUDGETS],  # type: ignore[misc]
}


def learn(make: Callable[[], Any], stream: ShiftingStream, columns: str) -> tuple[Any, float]:
    """Return predictions, and seconds of processor time."""
    column_type(columns)
    model = make()
    started = time.process_time()
    predictions = model.predict_learn_many(stream.X, stream.y)
    return np.asarray(predictions), time.process_time() - started


def row(
    name: str, makes: Sequence[Callable[[], Any]], streams: Sequence[ShiftingStream]
) -> dict[str, Any]:
    """Return a model's row."""
    others, worse, seconds = [], [], np.zeros(2)
    for make in makes:
        for stream in streams:
            (narrow, fast), (wide, slow) = (
                learn(make, stream, columns) for columns in ("float32", "float64")
            )
            others.append(int((narrow != wide).sum()))
            worse.append(int((narrow != stream.y).sum()) - int((wide != stream.y).sum()))
            seconds += fast, slow
    return {
        "model": name,
        "runs": len(others),
        "differ": sum(count > 0 for count in others),
        "predictions at most": max(others),
        "mistakes": f"{min(worse):+d} to {max(worse):+d}",
        "in all": sum(worse),
        "time of float64": float(seconds[1] / seconds[0]),
    }


def float32(*, quick: bool) -> dict[str, Any]:
    """Runs that differ, by model."""
    documents, targets = load("rcv1", n=2_000 if quick else 20_000)
    before = column_type()
    groups = tracking_groups(documents, targets, shifts=(0, 7))
    streams = [stream for group in groups.values() for stream in group]
    try:
        rows = [row(name, makes, streams) for name, makes in MODELS.items()]
    finally:
        column_type(before)
    return {"table": rows}
