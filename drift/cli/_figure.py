"""The error of a worker's predictions as it goes, drawn in the terminal.

rich lays out the tables; it has no bar chart, and plotext would be a dependency for twelve lines.
"""

from __future__ import annotations

import json
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.live import Live
from rich.table import Column, Table
from rich.text import Text

from drift._checks import counted
from drift.consumers._json import text_of
from drift.consumers.answers import Answer
from drift.consumers.measures import Measures

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from drift.consumers.records import Message
    from drift.types import Label

__all__ = ["ErrorFigure", "drawn"]

_BARS = " ▁▂▃▄▅▆▇█"
_WIDTH = 72
_HEIGHT = 6
_RECENT = 500
#: Alarms that are shown.
_ALARMS = 5
#: How measures are called and shown; the error has a chart.
_SHOWN = {
    "recall": "recall {:.1%}",
    "precision": "precision {:.1%}",
    "f1": "F1 {:.1%}",
    "log_loss": "log loss {:.3f}",
    "roc_auc": "AUC {:.3f}",
    "calibration_error": "calibration error {:.1%}",
    "base_rate": "base rate {:.1%}",
}
#: Offsets of a partition that are kept, to recognise duplicates.
_REMEMBERED = 100_000


@contextmanager
def drawn(figure: ErrorFigure) -> Iterator[None]:
    """Draw a figure while it changes; where there is no terminal, once, at the end."""
    shown = Live(figure, refresh_per_second=4)
    try:
        with shown:
            yield
    finally:
        if not shown.console.is_terminal:
            shown.console.print()  # rich leaves the last line open


class _Partition:
    """Counts of one partition."""

    def __init__(self) -> None:
        self.predicted = self.examples = self.mistakes = self.again = 0
        self.recent: deque[bool] = deque(maxlen=_RECENT)
        self.checkpoint: str | None = None
        self._seen: set[int] = set()

    def is_new(self, offset: int) -> bool:
        if offset in self._seen:
            self.again += 1
            return False
        self._seen.add(offset)
        if len(self._seen) > 2 * _REMEMBERED:
            newest = max(self._seen)
            self._seen = {one for one in self._seen if one > newest - _REMEMBERED}
        return True


class ErrorFigure:
    """Counts predictions, each once however often it was sent, and draws their error.

    Parameters
    ----------
    positive
        As of `drift.consumers.measures.Measures`.

    Attributes
    ----------
    measures : Measures
        Of all partitions.
    partitions : dict
        By topic and partition of the examples.
    examples : int
        Predictions counted.
    shadow : str
        A line to be shown below.

    Examples
    --------
    >>> from drift.consumers.records import Message, Position
    >>> figure, position = ErrorFigure(), Position("out", 0, 0)
    >>> body = b'{"topic": "t", "partition": 0, "offset": 7, "predicted": 1, "label": 0}'
    >>> [prediction["offset"] for prediction in figure.add(2 * [Message(position, None, body)])]
    [7]
    >>> figure.examples, figure.partitions["t", 0].again
    (1, 1)
    """

    #: Shown before the first label.
    _hint = "; of labels that come later the worker's metrics and log have the error"

    def __init__(self, positive: Label = None) -> None:
        self.measures = Measures(positive)
        self._alarms: dict[bytes | None, str] = {}  # by their keys: each comes at least once
        self.partitions: dict[tuple[str, int], _Partition] = {}
        self.examples = 0
        self.shadow = ""
        self._size = 20  # examples in a column; doubled when they do not fit any more
        self._columns: list[list[int]] = []

    def add(self, predictions: Iterable[Message]) -> list[dict[str, Any]]:
        """Count messages of a topic of predictions, and return those that are counted.

        Other messages are skipped.
        """
        bodies = []
        for partition, body in self._new(predictions):
            if body["label"] is not None:
                self._count(partition, body["label"], body["predicted"], body["probabilities"])
                bodies.append(body)
        return bodies

    def add_events(self, events: Iterable[Message]) -> None:
        """Add the alarms of a topic of events; other records are skipped."""
        for message in events:
            try:
                body = json.loads(message.value or b"")
                moved = ", ".join(f"{f['name']} ({f['distance']:.2f})" for f in body["features"])
                text = (
                    f"{body['topic']}:{body['partition']}:{body['offset']} {body['measure']} rose "
                    f"from {body['before']:.3g} to {body['now']:.3g}"
                )
            except (ValueError, KeyError, TypeError):
                continue
            self._alarms[message.key] = f"{text}, moved most: {moved}" if moved else text
            if len(self._alarms) > _ALARMS:
                del self._alarms[next(iter(self._alarms))]

    def _new(self, predictions: Iterable[Message]) -> Iterator[tuple[_Partition, dict[str, Any]]]:
        """Yield the predictions that have not been counted before."""
        for message in predictions:
            try:
                body = json.loads(message.value or b"")
                place, offset = (body["topic"], body["partition"]), body["offset"]
                hash((body["predicted"], body["label"]))
                chances = body.get("probabilities") or {}
                body["probabilities"] = {name: float(chances[name]) for name in chances}
            except (ValueError, KeyError, TypeError):
                continue
            partition = self.partitions.setdefault(place, _Partition())
            if partition.is_new(offset):
                partition.checkpoint = body.get("checkpoint")
                partition.predicted += 1
                yield partition, body

    def _count(
        self,
        partition: _Partition,
        label: Label,
        predicted: Label,
        probabilities: dict[str, float] | None,  # by the texts of labels
    ) -> None:
        chances = None
        if probabilities:
            chances = {one: probabilities.get(text_of(one), 0.0) for one in (label, predicted)}
        self.measures.learnt(label, Answer(predicted, chances))
        mistake = predicted != label
        partition.examples += 1
        partition.mistakes += mistake
        partition.recent.append(mistake)
        self.examples += 1
        if not self._columns or self._columns[-1][0] == self._size:
            self._columns.append([0, 0])
        self._columns[-1][0] += 1
        self._columns[-1][1] += mistake
        if len(self._columns) > _WIDTH:
            pairs = zip(self._columns[::2], [*self._columns[1::2], [0, 0]], strict=False)
            self._columns = [[a[0] + b[0], a[1] + b[1]] for a, b in pairs]
            self._size *= 2

    def __rich__(self) -> Group:
        alarms = [Text(f"alarm: {text}") for text in self._alarms.values()]
        shadow = [Text(self.shadow)] if self.shadow else []
        return Group(self._chart(), self._table(), *self._measured(), *alarms, *shadow)

    def _chart(self) -> Text:
        """Return a bar for each column, as high as its error."""
        errors = [mistakes / count for count, mistakes in self._columns]
        top = max([0.1, *errors])
        lines = []
        for row in reversed(range(_HEIGHT)):
            heights = [round(8 * (_HEIGHT * error / top - row)) for error in errors]
            bars = "".join(_BARS[min(8, max(0, height))] for height in heights)
            label = {_HEIGHT - 1: f"{100 * top:5.1f}%", 0: "    0%"}.get(row, " " * 6)
            lines.append(f"{label} {bars}")
        if not errors:
            predicted = sum(one.predicted for one in self.partitions.values())
            hint = self._hint if predicted else ""
            return Text(f"no label yet, {counted(predicted, 'prediction')}{hint}", no_wrap=True)
        lines.append(f"       error, {self._size} examples a column, {self.examples:,} so far")
        return Text("\n".join(lines), no_wrap=True)

    def _measured(self) -> list[Text]:
        """Return the measures of the last examples, if there are any."""
        measured = self.measures.windowed()
        shown = [text.format(measured[name]) for name, text in _SHOWN.items() if name in measured]
        return [Text(f"last 1,000: {', '.join(shown)}")] if shown else []

    def _table(self) -> Table:
        numbers = (
            *("examples", "error", f"last {_RECENT}"),
            *("no label", "sent again", "checkpoint"),
        )
        columns = [Column(name, justify="right") for name in numbers]
        table = Table("partition", *columns, box=None, padding=(0, 3, 0, 0))
        for (topic, number), one in sorted(self.partitions.items()):
            recent = sum(one.recent) / max(1, len(one.recent))
            table.add_row(
                f"{topic}:{number}",
                f"{one.examples:,}",
                f"{one.mistakes / one.examples:.1%}" if one.examples else "-",
                f"{recent:.1%}" if one.recent else "-",
                f"{one.predicted - one.examples:,}",
                f"{one.again:,}",
                one.checkpoint or "",
            )
        return table
