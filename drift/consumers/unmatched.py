"""Why labels of a topic of their own find no features: the likely cause, said once."""

from __future__ import annotations

import logging
import math
from time import monotonic
from typing import TYPE_CHECKING

from drift._durations import shown_moment

if TYPE_CHECKING:
    from drift.consumers.codec import Codec
    from drift.consumers.options import WorkerOptions
    from drift.consumers.waiting import Id

__all__ = ["Unmatched"]

log = logging.getLogger("drift.consumers")

#: Seconds after the first label in which one has to find its features, or a warning says so.
_PATIENCE = 30.0


class Unmatched:
    """The first message of features and the first label, for as long as no label finds any.

    Parameters
    ----------
    codec
        What reads the ids of both.
    options
        The worker's: the two topics.
    """

    def __init__(self, codec: Codec, options: WorkerOptions) -> None:
        self._codec, self._options = codec, options
        self._features: tuple[Id, int] | None = None  # id and time
        self._label: tuple[Id | None, int] | None = None
        self._since = math.inf  # when the label came, until the warning

    def note_features(self, name: Id, time: int) -> None:
        """Note the id and the time of features, if they are the first."""
        if self._features is None:
            self._features = name, time

    def note_label(self, name: Id | None, time: int) -> None:
        """Note those of a label, if it is the first."""
        if self._label is None:
            self._label, self._since = (name, time), monotonic()

    def warn(self) -> None:
        """Say once that no label has found its features, if that takes long."""
        features, label = self._features, self._label
        if features is None or label is None or monotonic() <= self._since + _PATIENCE:
            return
        self._since = math.inf
        topics, paths = self._options.topics, self._id_paths()
        sides = [
            f"the first message of {topic} has the id {name!r}{path} and the time "
            f"{shown_moment(at)}"
            for topic, path, (name, at) in zip(topics, paths, (features, label), strict=True)
        ]
        question = (
            "Is that the same id? [codec] and [codec.labels] say where it is"
            if features[0] != label[0]
            else "The id is the same, so look at the times: if they should be near each other, "
            "one of the producers' clocks is off, or sends seconds for milliseconds"
        )
        log.warning(
            "no label has found its features for %d s: %s. %s",
            *(_PATIENCE, ", ".join(sides), question),
        )

    def _id_paths(self) -> list[str]:
        """Return the codec's paths of the ids of features and labels, if known."""
        of = [paths.get("id") for paths in (self._codec.paths, self._codec.label_paths)]
        return ["" if path is None else f" at {path!r}" for path in of]
