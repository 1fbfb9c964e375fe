"""The error of predictions whose labels come later, on a topic of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drift.cli._figure import ErrorFigure
from drift.consumers.answers import text_of
from drift.consumers.join import Early, Join, JoinOptions, Waiting
from drift.consumers.late import identified
from drift.consumers.learner import attempt
from drift.consumers.order import Clock

if TYPE_CHECKING:
    from collections.abc import Iterable

    from drift.consumers.client.topics import Reader
    from drift.consumers.codec import Codec
    from drift.consumers.records import Message, Place
    from drift.types import Label

__all__ = ["LateFigure"]

#: Milliseconds by which one label moves the time.
_JUMP = 3_600_000


class LateFigure(ErrorFigure):
    """Joins predictions and labels by their ids as they come, and draws the error of what was sent.

    A prediction counts as it was first sent, once it has its label. One that has none for `after`
    counts by its silence; a label that corrects it changes the error of all, not the chart.

    Parameters
    ----------
    codec
        What reads the labels.
    options
        How many wait, and what silence means.
    positive
        As of `ErrorFigure`.

    Examples
    --------
    >>> from drift.consumers.codec import JsonCodec
    >>> from drift.consumers.records import Message, Position
    >>> figure = LateFigure(JsonCodec(), JoinOptions())
    >>> body = (
    ...     b'{"topic": "t", "partition": 0, "offset": 7, "predicted": 1, "label": null, "id": 5}'
    ... )
    >>> _ = figure.add([Message(Position("out", 0, 0), None, body)])
    >>> figure.examples, figure.waiting
    (0, 1)
    >>> figure.add_labels([Message(Position("l", 0, 0), None, b'{"id": 5, "label": 0}')])
    >>> figure.examples, figure.partitions["t", 0].mistakes, figure.waiting
    (1, 1, 0)
    """

    _hint = ""

    def __init__(self, codec: Codec, options: JoinOptions, positive: Label = None) -> None:
        super().__init__(positive)
        self._codec = codec
        self._join = Join(options)
        self._silence = options.silence
        self._clocks: dict[Place, Clock] = {}
        self._most = options.pending // 2
        self._early = 0
        self._more = True  # whether the labels brought something when they were last read

    @property
    def waiting(self) -> int:
        """Number of predictions that wait for their label."""
        return self._join.pending

    def read(self, predictions: Reader, labels: Reader, seconds: float) -> None:
        """Read both topics; one far ahead of the other waits while that has more.

        Parameters
        ----------
        predictions, labels
            What reads them.
        seconds
            How long to wait for either.
        """
        is_ahead, labels_are = self.waiting > self._most, self._early > self._most
        came: list[Message] = []
        if not (is_ahead and self._more) or labels_are:
            came = list(predictions.poll(seconds))
            self.add(came)
        if not (labels_are and came) or is_ahead:
            came = list(labels.poll(seconds))
            self._more = bool(came)
            self.add_labels(came)

    def add(self, predictions: Iterable[Message]) -> list[dict[str, Any]]:
        """Add messages of a topic of predictions; return those whose label came first."""
        bodies = []
        for message, partition, body in self._new(predictions):
            name, predicted = body.get("id"), body["predicted"]
            if not isinstance(name, (str, int)):
                continue
            place = body["topic"], body["partition"]
            chances = body["probabilities"]
            packed = self._join.classes.pack(chances)
            waits = Waiting(place, body["offset"], message.time, predicted, 0, b"", chances=packed)
            early = self._join.features(name, waits)
            if early is not None:
                self._early -= 1
                self._count(partition, early.label, predicted, chances, 0.0)
                bodies.append(body)
        return bodies

    def add_labels(self, labels: Iterable[Message]) -> None:
        """Add messages of the labels' topic; other messages are skipped."""
        decode = self._codec.decode_label  # type: ignore[attr-defined]
        for message in labels:
            example, error = attempt(identified, decode, message)
            place = message.position[:2]
            clock = self._clocks[place] = self._clocks.get(place, Clock()).after(
                message.time, _JUMP
            )
            for waiting in self._join.silent(clock.time):
                if self._silence is not None:
                    self._by_label(waiting, self._silence)
            if error is not None:
                continue
            early = Early(message._replace(value=b"", headers=()), example.label, None, clock.time)
            kind, matched = self._join.label(example.id, early)
            self._early += kind == "early"
            self._early -= sum(1 for _ in self._join.orphans())
            if kind == "learnt" and matched is not None:
                self._by_label(matched, example.label, (clock.time - matched.time) / 1000)
            elif matched is not None:
                change = (matched.predicted != example.label) - (matched.predicted != self._silence)
                self.partitions[matched.place].mistakes += change

    def _by_label(self, waiting: Waiting, label: Label, delay: float | None = None) -> None:
        chances: Any = self._join.classes.unpack(waiting.chances, text_of(label))
        self._count(self.partitions[waiting.place], label, waiting.predicted, chances, delay)
