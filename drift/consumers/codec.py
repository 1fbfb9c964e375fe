"""What makes examples of messages: the class that every codec derives from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence  # noqa: TC003 - options are read off their types
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from drift.errors import MessageError

if TYPE_CHECKING:
    from drift.consumers.records import Headers
    from drift.types import Features, Label

__all__ = ["Codec", "Example", "codec_settings", "is_keyed"]


class Example(NamedTuple):
    """A decoded message: learnt if it has a label, else only predicted.

    `id`, `timestamp` and `key` are copied to the prediction; `key` finds the model where each key
    has one; `weight` is passed to ``learn_one``.
    """

    features: Features
    label: Label = None
    id: str | int | None = None
    timestamp: str | float | None = None
    weight: float | None = None
    key: str | int | None = None


class Codec(ABC):
    """What makes examples of messages: the base class of all codecs, also of your own.

    A class of your own has to have `decode`; what else it may have is here, with its default. A
    result must depend on the message alone, since a restart does not decode learnt messages again.
    A checkpoint names the class and its `settings`, and is refused with others.

    Attributes
    ----------
    key : str or None
        Path of the key, where each key has a model of its own; examples then have a `key`. None for
        one model.
    max_bytes : int or None
        Size of the largest value that is read; None for 64 MiB, and 1 MiB of a request for
        predictions.
    require_label : bool
        Whether messages without a label are refused.
    classes : sequence or None
        All labels that there are; None where that is not known.
    paths, label_paths : mapping
        Where each part of a message is, and of one of the labels' topic, by its name: ``id``,
        ``label``, ``weight``, ``timestamp``, ``key``, ``features``. None where it has none, and
        for features at its top; empty where that is not known.

    Examples
    --------
    >>> from drift.errors import MessageError
    >>> class Csv(Codec):
    ...     def decode(self, value, headers=()):
    ...         try:
    ...             label, *numbers = (value or b"").decode().split(",")
    ...             features = dict(enumerate(map(float, numbers)))
    ...         except ValueError:
    ...             raise MessageError("value", "is no CSV: send label,1.5,2.5") from None
    ...         if not features:
    ...             raise MessageError("value", "has no numbers: send label,1.5,2.5")
    ...         return Example(features, label or None)
    >>> Csv().decode(b"spam,1.5,2")
    Example(features={0: 1.5, 1: 2.0}, label='spam', id=None, timestamp=None, weight=None, key=None)
    """

    key: str | None = None
    max_bytes: int | None = None
    require_label: bool = False
    classes: Sequence[object] | None = None
    paths: Mapping[str, str | None] = MappingProxyType({})
    label_paths: Mapping[str, str | None] = MappingProxyType({})

    def settings(self) -> dict[str, Any]:
        """Return what a checkpoint must agree with: JSON values by name, without secrets."""
        return {}

    @abstractmethod
    def decode(self, value: bytes | None, headers: Headers = ()) -> Example:
        """Return the example that a message holds.

        Raises
        ------
        MessageError
            Where it cannot be learnt; any other error makes a dead letter, too, with its class.
        SkippedError
            Where it is to be left out.
        UnavailableError
            Where the fault is not the message's, as when a registry is away: the worker ends, and
            reads the message again later.
        """

    def decode_label(self, value: bytes | None, headers: Headers = ()) -> Example:
        """Return id, label and weight of a message of the labels' topic; errors as of `decode`."""
        raise NotImplementedError

    def decode_questions(self, value: bytes) -> tuple[list[Example], bool]:
        """Return the examples of a request for predictions, and whether it is a list."""
        return [self.decode(value)], False

    def encode(self, example: Example) -> bytes:
        """Return the bytes that `decode` turns into the example."""
        raise MessageError("value", f"cannot be written: {type(self).__name__} has no encode")


def codec_settings(codec: Codec) -> dict[str, Any]:
    """Return what a checkpoint's configuration says of a codec.

    Examples
    --------
    >>> from drift.consumers.json_codec import JsonCodec
    >>> codec_settings(JsonCodec(label="fraud"))
    {'codec': 'JsonCodec', 'codec.label': 'fraud'}
    """
    kind = type(codec)
    is_ours = kind.__module__.partition(".")[0] == "drift"
    name = kind.__qualname__ if is_ours else f"{kind.__module__}:{kind.__qualname__}"
    settings = {f"codec.{name}": value for name, value in codec.settings().items()}
    return {"codec": name, **settings}


def is_keyed(codec: Codec) -> bool:
    """Whether each key has its own model, by what reads the messages."""
    return codec.key is not None
