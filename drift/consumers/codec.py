"""Messages and the examples they carry: the one place that knows what a payload looks like.

What becomes of a message under `JsonCodec`, whichever library reads the JSON:

=====================================================  ============================================
the value                                              what becomes of it
=====================================================  ============================================
null (a tombstone), empty, larger than `max_bytes`     refused
not UTF-8, not JSON, NaN or Infinity, 1e400,           refused
half of a surrogate pair, nested deeper than 64
no object, no ``features``, ``features`` no object     refused
a feature that is a number or a bool                   kept; an integer beyond 64 bits as a float
a feature that is null                                 absent: left out; kept as None with `raw`
a feature that is a string                             refused, numbers in quotes too; kept with
                                                       `raw`
a feature that is an object or an array                refused
no features at all (``{}``)                            learnt
a key that comes twice in one object                   the last one counts
fields of other names                                  ignored
``label`` absent or null                               predicted only; refused with `require_label`
``label`` a bool, an integer, a string                 kept
``label`` a whole float, as 1.0                        the integer
``label`` anything else, or none of `labels`           refused
``id`` absent, null, a string or an integer            kept; anything else is refused
``timestamp`` absent, null, a number or a string       kept, unread; anything else is refused
=====================================================  ============================================

Refused means `drift.errors.MessageError`: the worker sends the message to the dead letters.
"""

from __future__ import annotations

import math
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from drift.consumers._json import diagnosis, is_deeper, library, plain
from drift.consumers.records import Headers, Message, Outgoing, Position
from drift.errors import MessageError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from drift.types import Features, Label

__all__ = ["Codec", "Example", "Headers", "JsonCodec", "Message", "Outgoing", "Position"]

_MAX_DEPTH = 64
#: Characters of a label, id or timestamp, and bits of one that is a number.
_LONGEST = 1000
_NUMBERS = {float, int, bool}
_RAW = {*_NUMBERS, str, NoneType}
#: From here on, floats do not tell neighbouring integers apart.
_WHOLE = 2.0**53
_KINDS = {
    NoneType: "null",
    bool: "a bool",
    str: "a string",
    dict: "an object",
    list: "an array",
}
_SHAPE = 'send {"features": {"age": 31.5}, "label": true}'


class Example(NamedTuple):
    """What a message says: learnt where it has a label, else predicted only.

    `id` and `timestamp` are the sender's own, and go along to the prediction.
    """

    features: Features
    label: Label = None
    id: str | int | None = None
    timestamp: str | float | None = None


class Codec(Protocol):
    """How messages become examples, and examples messages. Yours may be any class of this shape.

    `decode` raises `drift.errors.MessageError` where a message cannot be learnt; any other error
    makes a dead letter, too, which names its class. It must not depend on anything but the message:
    what was learnt before a restart is not decoded again.

    Examples
    --------
    >>> from drift.errors import MessageError
    >>> class Csv:
    ...     def decode(self, value, headers=()):
    ...         try:
    ...             label, *numbers = (value or b"").decode().split(",")
    ...             return Example(dict(enumerate(map(float, numbers))), label)
    ...         except ValueError:
    ...             raise MessageError("value", "is no CSV: send label,1.5,2.5") from None
    ...
    ...     def encode(self, example):
    ...         return ",".join(map(str, [example.label, *example.features.values()])).encode()
    >>> Csv().decode(b"spam,1.5,2")
    Example(features={0: 1.5, 1: 2.0}, label='spam', id=None, timestamp=None)
    """

    def decode(self, value: bytes | None, headers: Headers = ()) -> Example:
        """Return the example, or raise `drift.errors.MessageError`."""
        ...

    def encode(self, example: Example) -> bytes:
        """Return the bytes that `decode` turns into the example."""
        ...


class JsonCodec:
    """Examples as JSON objects: ``{"features": {"age": 31.5}, "label": true, "id": "a7"}``.

    The module's table says what becomes of each kind of value. `orjson` reads and writes where
    it is installed, which is several times as fast; Python's own `json` gives the same results.

    Parameters
    ----------
    labels
        The labels that there are; a message with another one is refused. None for no limit. 1 and
        true are the same label, as they are in Python.
    require_label
        Refuse messages without a label, where each should have one: a producer that misspells
        ``label`` otherwise has its messages predicted and never learnt.
    raw
        Hand strings and null on as str and None, for a River pipeline that encodes text and fills
        in what is absent. drift's own models take numbers only.
    max_bytes
        Size of the largest value that is read, in bytes.

    Raises
    ------
    ParameterError
        If `labels` is a string or empty, or `max_bytes` not at least 1.

    Examples
    --------
    >>> codec = JsonCodec()
    >>> codec.decode(b'{"features": {"age": 31.5}, "label": true}')
    Example(features={'age': 31.5}, label=True, id=None, timestamp=None)
    >>> codec.encode(Example({"age": 31.5}, label=True))
    b'{"features":{"age":31.5},"label":true}'
    >>> codec.decode(b'{"features": {"age": "31.5"}}')
    Traceback (most recent call last):
    drift.errors.MessageError: features['age'] is a string: send numbers without quotes, ...
    """

    def __init__(
        self,
        *,
        labels: Collection[Label] | None = None,
        require_label: bool = False,
        raw: bool = False,
        max_bytes: int = 1 << 20,
    ) -> None:
        if isinstance(labels, str) or (labels is not None and not labels):
            raise ParameterError(f"labels must be a list of labels or None, not {labels!r}")
        if max_bytes < 1:
            raise ParameterError(f"max_bytes must be at least 1, not {max_bytes!r}")
        self.labels = None if labels is None else tuple(labels)
        self.require_label = require_label
        self.raw = raw
        self.max_bytes = max_bytes
        self._allowed = _RAW if raw else _NUMBERS
        self._loads, self._dumps = library()

    def __repr__(self) -> str:
        return (
            f"JsonCodec(labels={self.labels}, require_label={self.require_label}, "
            f"raw={self.raw}, max_bytes={self.max_bytes})"
        )

    def __reduce__(self) -> tuple[Callable[..., JsonCodec], tuple[Any, ...]]:
        return _codec, (self.labels, self.require_label, self.raw, self.max_bytes)

    def decode(self, value: bytes | None, headers: Headers = ()) -> Example:
        """Return the example that a value holds; `headers` are not read.

        Raises
        ------
        MessageError
            Where the value cannot be learnt; it names the field and the remedy.
        """
        return self._example(self._read(value))

    def encode(self, example: Example) -> bytes:
        """Return the JSON of an example, which `decode` turns into an equal one.

        NaN means absent, as in drift's models, and is left out, and so is None without `raw`.
        numpy's numbers become Python's, names that are no strings their text, integers beyond 64
        bits floats.

        Raises
        ------
        MessageError
            Where `decode` would refuse it, and where two names have the same text.
        """
        features: Any = example.features
        if not _is_plain(features):
            features = self._usable(_made_plain(features))
        sent = [plain(field) for field in example[1:]]
        valid = self._example(dict(zip(Example._fields, [features, *sent], strict=True)))
        try:
            value = self._dumps({k: v for k, v in valid._asdict().items() if v is not None})
        except (TypeError, UnicodeEncodeError):
            raise MessageError("value", "holds half of a surrogate pair: mend the text") from None
        self._refuse_size(len(value))
        return value

    def _example(self, tree: dict[str, Any]) -> Example:
        """Return the example that an object is, or refuse it."""
        features: Any = tree.get("features")
        if type(features) is not dict:
            raise MessageError("features", f"{_is(tree, 'features')}, not an object: {_SHAPE}")
        try:
            sum(features.values())  # of all that JSON has, numbers and bools alone add up
        except TypeError:
            features = self._usable(features)
        return Example(
            features,
            self._label(tree.get("label")),
            _one_of(tree, "id", (str, int), "a string or an integer"),
            _one_of(tree, "timestamp", (int, float, str), "a number or a string"),
        )

    def _read(self, value: bytes | None) -> dict[str, Any]:
        """Return the object that a value is."""
        if value is None:
            raise MessageError(
                "value", "is null (a tombstone): nothing can be learnt from it; read a topic of "
                "examples, not one that is compacted by key"
            )  # fmt: skip
        self._refuse_size(len(value))
        # The libraries stop at depths of their own.
        if is_deeper(value, _MAX_DEPTH):
            raise MessageError("value", f"is nested deeper than {_MAX_DEPTH}: {_SHAPE}")
        try:
            tree = self._loads(value)
        except ValueError as problem:
            raise MessageError("value", f"is no JSON ({diagnosis(value, problem)}): {_SHAPE}") \
                from None  # fmt: skip
        if type(tree) is not dict:
            raise MessageError("value", f"is {_kind(tree)}, not an object: {_SHAPE}")
        return tree

    def _refuse_size(self, size: int) -> None:
        if not size:
            raise MessageError("value", f"is empty: {_SHAPE}")
        if size > self.max_bytes:
            raise MessageError(
                "value",
                f"has {size} bytes, more than the {self.max_bytes} that are read: send less, or "
                "raise max_bytes",
            )

    def _usable(self, features: dict[str, Any]) -> dict[str, Any]:
        """Leave out what is absent, or refuse the first value that is no number."""
        for name, value in features.items():
            if value is None or type(value) in self._allowed:
                continue
            if type(value) is str:
                remedy = (
                    "send numbers without quotes, and a category as a feature of its own, as "
                    '"colour=red": 1; or let a River pipeline encode it, with raw'
                )
            else:
                remedy = 'send a number; for what is nested, one feature each, as "size.width": 3'
            raise MessageError(f"features[{_short(name)}]", f"is {_kind(value)}: {remedy}")
        if self.raw:
            return features
        return {name: value for name, value in features.items() if value is not None}

    def _label(self, label: Any) -> Label:
        """Return the label, or refuse it."""
        if label is None:
            if self.require_label:
                raise MessageError("label", f"is absent: {_SHAPE}")
            return None
        if type(label) is float and label.is_integer() and abs(label) < _WHOLE:
            label = int(label)
        if _is_long(label):
            raise MessageError("label", f"is longer than {_LONGEST}: send a short name")
        if type(label) not in {bool, int, str}:
            raise MessageError(
                "label",
                f"is {_kind(label)}: send a string, true, false or an integer; to have a message "
                "predicted only, leave it out",
            )
        if self.labels is not None and label not in self.labels:
            known = ", ".join(map(repr, self.labels[:5])) + ", ..." * (len(self.labels) > 5)
            raise MessageError(
                "label", f"is {_short(label)}, not one of {known}: correct it, or add it to labels"
            )
        return label


def _codec(labels: Any, require_label: bool, raw: bool, max_bytes: int) -> JsonCodec:  # noqa: FBT001
    return JsonCodec(labels=labels, require_label=require_label, raw=raw, max_bytes=max_bytes)


# --- what a value is, in the words of JSON -----------------------------------------------------


def _kind(value: Any) -> str:
    """Say what a value is without repeating it: it may be long, and nobody else's business.

    >>> _kind([1, 2]), _kind(0.5), _kind("secret"), _kind(None)
    ('an array', 'the number 0.5', 'a string', 'null')
    """
    if type(value) in {int, float}:
        return f"the number {value!r:.40}"
    return _KINDS.get(type(value), f"a {type(value).__name__}")


def _is(tree: dict[str, Any], field: str) -> str:
    return f"is {_kind(tree[field])}" if field in tree else "is absent"


def _short(value: Any) -> str:
    return repr(value if not isinstance(value, str) or len(value) <= 60 else value[:57] + "...")


def _is_unsayable(value: Any) -> bool:
    return type(value) is float and not math.isfinite(value)


def _one_of(tree: dict[str, Any], field: str, types: tuple[type, ...], what: str) -> Any:
    value = tree.get(field)
    if value is not None and (type(value) not in types or _is_unsayable(value)):
        raise MessageError(field, f"is {_kind(value)}: send {what}, or leave it out")
    if _is_long(value):
        raise MessageError(field, f"is longer than {_LONGEST}: send {what} that is shorter")
    return value


def _is_long(value: Any) -> bool:
    """Whether a text or a number is too long to go into every prediction and dead letter."""
    return (type(value) is str and len(value) > _LONGEST) or (
        type(value) is int and value.bit_length() > _LONGEST
    )


# --- what is sent ------------------------------------------------------------------------------


def _is_plain(features: Features) -> bool:
    """Say whether features need no conversion: a dict by str of finite floats and bools."""
    return (
        type(features) is dict
        and {str}.issuperset(map(type, features))
        and {float, bool}.issuperset(map(type, features.values()))
        and math.isfinite(sum(features.values()))
    )


def _made_plain(features: Features) -> dict[str, Any]:
    """Convert names and values to what JSON has, and leave out NaN."""
    names: dict[str, Any] = {}
    made = {}
    for name, value in features.items():
        text = str(name)
        if names.setdefault(text, name) is not name:
            raise MessageError(
                f"features[{_short(name)}]", f"has the name of {_short(names[text])}: rename one"
            )
        number = plain(value)
        if _is_unsayable(number):
            if number != number:
                continue
            raise MessageError(
                f"features[{_short(name)}]", f"is {number}: send a finite number, or none"
            )
        made[text] = number
    return made
