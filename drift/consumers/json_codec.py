"""Messages of JSON: which parts make an example, and what is refused.

`JsonCodec` has the paths of features, label, id and timestamp; by default they are these names. Its
outcomes:

=====================================================  ============================================
the value                                              outcome
=====================================================  ============================================
what `skip` names                                      left out: counted, and no dead letter
null (a tombstone), empty, larger than `max_bytes`     refused
not UTF-8, not JSON, NaN or Infinity, 1e400,           refused
half of a surrogate pair, nested deeper than 64
no object, no ``features``, ``features`` no object     refused
a feature that is a number or a bool                   kept; an integer beyond 64 bits as a float
a feature that is null                                 absent: left out; kept as None with `raw`
a feature that Debezium has not, as Postgres did not   as null
log a large value that did not change
a feature that is a string                             refused, numbers in quotes too; kept with
                                                       `raw`; a feature of its own, as
                                                       ``colour=red``, with `one_hot`
a feature that is an object                            its entries, under ``size.width``
a feature that is an array                             refused
``features`` is ``{}``                                 learnt
an object without features: all of its fields are      refused; learnt with `allow_empty`
null, dropped or named otherwise
a key that comes twice in one object                   refused
fields of other names                                  ignored
``label`` absent or null                               predicted only; refused with `require_label`
``label`` a bool, an integer, a string                 kept
``label`` a whole float, as 1.0                        the integer
``label`` anything else, or none of `classes`          refused
``id`` absent, null, a string or an integer            kept; anything else is refused
``timestamp`` absent, null, a number or a string       kept, unread; anything else is refused
a weight that is absent or null                        1
a weight that is a number of at least 0                goes to `learn_one`; anything else is refused
=====================================================  ============================================

Refused means `drift.errors.MessageError`: the worker sends the message to the dead letters.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from itertools import islice
from types import NoneType
from typing import TYPE_CHECKING, Any

from drift._options import Checked, from_table, option
from drift.consumers._json import (
    LONGEST,
    check_kind,
    diagnosis,
    found_at,
    is_deeper,
    is_long,
    is_plain,
    kind_of,
    library,
    made_plain,
    plain,
    put_at,
    quoted,
    refuse_repeated,
    stated,
)
from drift.consumers.codec import Codec, Example
from drift.consumers.skip import HEADER, TOMBSTONE, Rule, header, literal
from drift.errors import MessageError, ParameterError, SkippedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from collections.abc import Set as AbstractSet

    from drift.consumers.records import Headers
    from drift.types import Label

__all__ = ["MAX_DEPTH", "UNSAVED", "JsonCodec", "checked_codec", "schema_id"]

log = logging.getLogger("drift.consumers")

#: Levels of brackets.
MAX_DEPTH = 64
#: Names of features, by kind, beyond which none is remembered any more.
_REMEMBERED = 10_000
_NUMBERS = {float, int, bool}
_LABELS = {bool, int, str}
#: What an id or a key may be.
_NAME = (str, int), "a string or an integer"
_RAW = {*_NUMBERS, str, NoneType}
#: From here on, floats do not tell neighbouring integers apart.
_WHOLE = 2.0**53
#: Options that decide which messages are refused, which may change, and the key.
UNSAVED = {"require_label", "classes", "max_bytes", "key", "skip", "allow_empty"}
#: What Debezium sends for a value that is large and did not change, as Postgres does not log it.
_UNAVAILABLE = "__debezium_unavailable_value"
_SHAPE = 'send {"features": {"age": 31.5}, "label": true}'


def schema_id(value: bytes) -> int | None:
    """Return the id of the schema with which a registry's serializer begins a value.

    >>> schema_id(bytes([0, 0, 0, 0, 7, 1])), schema_id(b"{}")
    (7, None)
    """
    return int.from_bytes(value[1:5], "big") if len(value) >= 5 and not value[0] else None


def _twice(names: Iterable[str], where: str) -> MessageError:
    """Return the refusal of two features with the same name."""
    [(name, _)] = Counter(names).most_common(1)
    return MessageError(f"features[{quoted(name)}]", f"comes twice, {where}: rename one")


@dataclass(frozen=True, kw_only=True)
class _LabelPaths:
    """Paths in messages of the labels' topic."""

    id: str | None = option("Where the id is.", None)
    label: str | None = option("Where the label is.", None)
    weight: str | None = option("Where the weight is.", None)


@dataclass(kw_only=True, eq=False)
class JsonCodec(Checked, Codec):
    """Examples as JSON objects: ``{"features": {"age": 31.5}, "label": true, "id": "a7"}``.

    The module's table has the outcome of each kind of value. Needs the extra ``kafka``, for orjson.

    For messages of another shape, give paths: ``payload.label`` is the entry ``label`` of the
    object ``payload``, ``header:label`` the header ``label``. Features cannot be in a header.
    Headers are texts; labels in them may be numbers or bools, too. Once `label` is given, only
    given paths are read; everything else is a feature.

    Parameters
    ----------
    features
        Where the features are; None for ``features``, or, where `label` is named, for all of the
        message but what is named otherwise.
    label
        Where the label is; None for ``label``.
    id, timestamp
        Where they are; None for ``id`` and ``timestamp``, or, where `label` is named, for none.
    weight
        Where the weight of an example is; None for none.
    key
        Where the key is that has a model of its own, as ``customer.id``; None for one model. See
        `drift.consumers.keyed`.
    drop
        What is no feature.
    skip
        Messages to leave out, of labels, too: ``"tombstone"`` for those without a value, and by a
        value at a path, as ``'op = "d"'``, ``'header:kind != "sale"'`` or ``'after = null'``.
    one_hot
        Make of a string or bool a feature of its own: of ``"red"`` under ``colour``, ``colour=red``
        is 1. Otherwise a string is refused, and a bool is 0 or 1. Each text makes a feature: drop
        those that hardly ever come again, as names and numbers of orders.
    classes
        The labels that there are; a message with another one is refused. None for no limit. 1 and
        true are the same label, as they are in Python.
    labels
        Where the messages of a topic of labels have their ``id``, ``label`` and ``weight``, each a
        path; what is not named is where this codec has it for all other messages.
    require_label
        Refuse messages without a label, where each should have one: a producer that misspells
        ``label`` otherwise has its messages predicted and never learnt.
    allow_empty
        Learn messages without features. By default they are refused, because a producer may have
        dropped a field, or a path may be misspelt. An empty object of features is always learnt.
    raw
        Hand strings and null on as str and None, for a River pipeline that encodes text and fills
        in what is absent. drift's own models take numbers only.
    max_bytes
        Size of the largest value that is read, in bytes.

    Raises
    ------
    ParameterError
        If `classes` is empty, `labels` names something else, `skip` has no rule, features are to
        come from a header, or `max_bytes` is not at least 1.

    Examples
    --------
    >>> codec = JsonCodec()
    >>> codec.decode(b'{"features": {"age": 31.5}, "label": true}')
    Example(features={'age': 31.5}, label=True, id=None, timestamp=None, weight=None, key=None)
    >>> codec.encode(Example({"age": 31.5}, label=True))
    b'{"features":{"age":31.5},"label":true}'
    >>> codec.decode(b'{"features": {"age": "31.5"}}')
    Traceback (most recent call last):
    drift.errors.MessageError: features['age'] is a string: send numbers without quotes; ...
    >>> codec = JsonCodec(label="fraud", id="order.id", drop=["order.note"], one_hot=True)
    >>> codec.decode(b'''{"order": {"id": 7, "sum": 3.5, "card": "visa", "note": "call"},
    ...                  "fraud": false}''')
    Example(features={'order.sum': 3.5, 'order.card=visa': 1}, label=False, id=7, ...)
    """

    features: str | None = option(
        "Path of the features; default: `features`; with `label`, all that is not named.", None
    )
    label: str | None = option("Path of the label; default: `label`.", None)
    id: str | None = option("Path of the id; default: `id`; with `label`, none.", None)
    timestamp: str | None = option(
        "Path of the timestamp; default: `timestamp`; with `label`, none.", None
    )
    weight: str | None = option("Path of the weight of the example.", None)
    key: str | None = option("Path of the key; each key has a model of its own.", None)
    drop: Sequence[str] = option("Paths of what is no feature.", ())
    skip: Sequence[str] = option("Rules that name messages to leave out.", ())
    one_hot: bool = option("Make a feature of each text and bool.", default=False)
    classes: Sequence[object] | None = option(
        "All labels; a message with another is refused.", None
    )
    labels: Mapping[str, str] | None = option(
        "Paths of id, label and weight in a topic of labels: `[codec.labels]`.", None
    )
    require_label: bool = option("Refuse messages without a label.", default=False)
    allow_empty: bool = option("Learn messages that have no features.", default=False)
    raw: bool = option("Hand strings and null on to a River pipeline.", default=False)
    max_bytes: int = option("Bytes of the largest value that is read.", 1 << 20, least=1)

    def __post_init__(self) -> None:
        """Check the options, and prepare what every message is read by."""
        super().__post_init__()
        if self.classes is not None and not self.classes:
            raise ParameterError("classes must be a list of labels or None, not []")
        self._read_paths()
        self._read_rules()
        self._allowed = _RAW if self.raw else _NUMBERS
        #: Names of features that have come as numbers, and as texts or bools.
        self._numbers: set[str] = set()
        self._hot: set[str] = set()
        self._loads, self._dumps = library()

    def _read_paths(self) -> None:
        is_named = self.label is not None  # then only given paths are read
        self.paths = {
            "features": self.features or (None if is_named else "features"),
            "label": self.label or "label",
            "id": self.id or (None if is_named else "id"),
            "timestamp": self.timestamp or (None if is_named else "timestamp"),
            "weight": self.weight,
            "key": self.key,
        }
        of_labels = from_table(_LabelPaths, self.labels or {}, "[codec.labels]")
        named = {name: path for name, path in vars(of_labels).items() if path}
        self.label_paths = {**self.paths, **named, "timestamp": None, "key": None}
        features = self.paths["features"]
        if (features or "").startswith(HEADER):
            raise ParameterError(f"features cannot be in a header: {features!r} has no object")
        every = {*self.paths.values(), *self.label_paths.values()}
        self._headers = [path for path in every if path and path.startswith(HEADER)]
        both = self.paths, self.label_paths
        #: Headers that may be more than texts.
        self._typed = {at[name] for at in both for name in ("label", "weight")}
        is_nested = any("." in path for path in every if path)
        self._look_up: Any = found_at if is_nested else dict.get  # which is faster
        #: What a feature's path begins with, and those that are no features.
        self._prefix = "" if features is None else f"{features}."
        others = {path for name, path in self.paths.items() if path and name != "features"}
        no_features = {*others, *self.drop, *self._headers}
        self._without = {path for path in no_features if path.startswith(self._prefix)}

    def _read_rules(self) -> None:
        rules = [Rule.read(rule) for rule in self.skip if rule != TOMBSTONE]
        self._skips_tombstones = len(rules) < len(self.skip)
        self._header_rules = [rule for rule in rules if rule.path.startswith(HEADER)]
        self._rules = [rule for rule in rules if not rule.path.startswith(HEADER)]

    def settings(self) -> dict[str, Any]:
        """Return the options that decide what messages become, unless they have their defaults.

        Those are missing that only refuse messages, and `key`, which checkpoints name elsewhere.

        Examples
        --------
        >>> JsonCodec(label="fraud", drop=["note"]).settings()
        {'label': 'fraud', 'drop': ['note']}
        """
        found = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in UNSAVED and (value or None) != (field.default or None):
                is_list = isinstance(value, Sequence) and not isinstance(value, str)
                found[field.name] = [*value] if is_list else value
        return found

    def __reduce__(self) -> tuple[Callable[[], JsonCodec], tuple[()]]:
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return partial(type(self), **given), ()

    def decode(self, value: bytes | None, headers: Headers = ()) -> Example:
        """Return the example that a value holds; of `headers`, those are read that are named.

        Raises
        ------
        MessageError
            Where the value cannot be learnt; it names the field and the remedy.
        SkippedError
            Where it is to be left out.

        Examples
        --------
        >>> codec = JsonCodec(label="fraud", id="header:ce_id")
        >>> codec.decode(b'{"sum": 31.5, "fraud": true}', [("ce_id", b"a7")])
        Example(features={'sum': 31.5}, label=True, id='a7', timestamp=None, weight=None, key=None)
        """
        return self._example(self.read(value, headers), self.paths)

    def decode_label(self, value: bytes | None, headers: Headers = ()) -> Example:
        """Return the id, label and weight of a message of the labels' topic.

        Raises
        ------
        MessageError
            Where one is missing, or cannot be.

        Examples
        --------
        >>> JsonCodec().decode_label(b'{"id": "a7", "label": true}')
        Example(features={}, label=True, id='a7', timestamp=None, weight=None, key=None)
        >>> codec = JsonCodec(labels={"id": "order.id", "label": "fraud"})
        >>> codec.decode_label(b'{"order": {"id": "a7"}, "fraud": true}')
        Example(features={}, label=True, id='a7', timestamp=None, weight=None, key=None)
        """
        example = self._example(self.read(value, headers), self.label_paths, with_features=False)
        if example.id is None or example.label is None:
            name = "id" if example.id is None else "label"
            path = str(self.label_paths[name])
            what = f"is absent: send the {name} there, or say where it is, in [codec.labels]"
            raise MessageError(path, what)
        return example

    def decode_questions(self, value: bytes) -> tuple[list[Example], bool]:
        """Return the examples of a request for predictions, and whether it is a list.

        Each is JSON as for `decode`, also if the codec is a `SchemaCodec`; label, weight and
        timestamp are ignored.

        Raises
        ------
        MessageError
            If one cannot be predicted; in a list, the field has its index.

        Examples
        --------
        >>> examples, is_list = JsonCodec().decode_questions(b'[{"features": {"age": 31.5}}]')
        >>> examples[0].features, is_list
        ({'age': 31.5}, True)
        >>> JsonCodec().decode_questions(b'[{"features": {"age": "31.5"}}]')
        Traceback (most recent call last):
        drift.errors.MessageError: [0].features['age'] is a string: send numbers without quotes; ...
        """
        self._refuse_size(len(value))
        tree = JsonCodec._parse(self, value)
        if type(tree) is not list:
            return [self._question(tree)], False
        examples = []
        for number, question in enumerate(tree):
            try:
                examples.append(self._question(question))
            except MessageError as problem:
                raise MessageError(f"[{number}].{problem.field}", problem.problem) from None
        return examples, True

    def _question(self, tree: Any) -> Example:
        if type(tree) is not dict:
            raise MessageError("value", f"is {kind_of(tree)}, not an object: {self._shape()}")
        name = self._look_up(tree, self.paths["id"])
        if name is not None:
            check_kind(name, self.paths["id"], *_NAME)
        return Example(self._features(tree), id=name)

    def encode(self, example: Example) -> bytes:
        """Return an example as JSON; `decode` inverts it.

        NaN is left out, as drift's models take it for absent, and None without `raw`. numpy's
        scalars become Python's, other names strings, integers beyond 64 bits floats. What `drop`
        names is no feature here either.

        Raises
        ------
        MessageError
            Where `decode` would refuse it, where two names have the same text, and where a feature
            is called as the path of the label, id, timestamp, weight or key is.
        """
        features: Any = example.features
        if not is_plain(features):
            features = self._usable(made_plain(features))
        parts = {path: name for name, path in self.paths.items() if name != "features"}
        for name in features:
            if (part := parts.get(self._prefix + name)) is not None:
                problem = f"is where a message has its {part}, as [codec] says: rename or drop it"
                raise MessageError(f"features[{quoted(name)}]", problem)
        tree: dict[str, Any] = {}
        for name, path in self.paths.items():
            value = features if name == "features" else plain(getattr(example, name))
            if value is None:
                continue
            if path is None and name != "features":
                raise MessageError(name, "has no place in a message: say where it is to be")
            if path in self._headers:
                raise MessageError(name, f"is read from {path}, and encode writes no headers")
            put_at(tree, path, value)
        self._example(tree, self.paths)
        data = self._write(tree)
        self._refuse_size(len(data))
        return data

    def _write(self, tree: dict[str, Any]) -> bytes:
        try:
            return self._dumps(tree)
        except (TypeError, UnicodeEncodeError):
            raise MessageError("value", "holds half of a surrogate pair: fix the text") from None

    def _example(
        self, tree: dict[str, Any], at: Mapping[str, str | None], *, with_features: bool = True
    ) -> Example:
        """Return the example of an object, or refuse it."""
        look_up = self._look_up
        weight = look_up(tree, at["weight"])
        if weight is not None:
            check_kind(weight, at["weight"], (int, float), "a number")
            if weight < 0:
                raise MessageError(str(at["weight"]), f"is {weight}: send a number of at least 0")
        name = look_up(tree, at["id"])
        if name is not None:
            check_kind(name, at["id"], *_NAME)
        timestamp = look_up(tree, at["timestamp"])
        if timestamp is not None:
            check_kind(timestamp, at["timestamp"], (int, float, str), "a number or a string")
        key = look_up(tree, at["key"])
        if key is not None:
            check_kind(key, at["key"], *_NAME)
        features = self._features(tree) if with_features else {}
        label = self._label(look_up(tree, at["label"]), str(at["label"]))
        return Example(features, label, name, timestamp, weight, key)

    def _features(self, tree: dict[str, Any]) -> dict[str, Any]:
        """Return the features of an object, or refuse them."""
        path = self.paths["features"]
        features = tree if path is None else self._look_up(tree, path)
        if type(features) is not dict:
            raise MessageError(str(path), f"{stated(tree, path)}, not an object: {self._shape()}")
        usable = self._features_in(features)
        if not usable and (features or path is None) and not self.allow_empty:
            held = ", ".join(map(quoted, islice(features, 3))) + ", ..." * (len(features) > 3)
            raise MessageError(
                path or "value",
                f"has no feature, only {held or 'nothing'}: send one, or learn without any by "
                "allow_empty = true in [codec]",
            )
        return usable

    def _features_in(self, features: dict[str, Any]) -> dict[str, Any]:
        """Return what of an object is a feature, or refuse it."""
        prefix, without = self._prefix, self._without
        if without:
            features = {
                name: value for name, value in features.items() if prefix + name not in without
            }
        try:
            sum(features.values())  # of all that JSON has, numbers and bools alone add up
        except TypeError:
            entries = list(self._flat(features))
            flat = dict(entries)
            if len(flat) < len(entries):
                names = (name for name, _ in entries)
                raise _twice(names, "in an object and under this name") from None
            return self._usable(flat)
        return self._usable(features) if self.one_hot else features

    def _flat(self, tree: dict[str, Any], name: str = "") -> Iterator[tuple[str, Any]]:
        """Yield the entries of an object and of those in it."""
        for key, value in tree.items():
            if self._prefix + name + key in self._without:
                continue
            if type(value) is dict:
                yield from self._flat(value, f"{name}{key}.")
            else:
                yield name + key, None if type(value) is str and value == _UNAVAILABLE else value

    def _shape(self) -> str:
        if self.label is None:
            return _SHAPE
        return f"send an object with the label at {self.label!r}, as [codec] says"

    def read(self, value: bytes | None, headers: Headers = ()) -> dict[str, Any]:
        """Return the object in a value, with the headers that are named, or refuse it or skip it.

        Examples
        --------
        >>> JsonCodec(key="header:shop").read(b'{"features": {}}', [("shop", b"north")])
        {'features': {}, 'header:shop': 'north'}
        """
        if value is None and self._skips_tombstones:
            raise SkippedError("value", "is null (a tombstone), which [codec] skips")
        if self._header_rules:
            for rule in self._header_rules:
                rule.check_headers(headers)
        if value is None:
            raise MessageError(
                "value", "is null (a tombstone): nothing can be learnt from it; to leave those "
                'out, write skip = ["tombstone"] in [codec]'
            )  # fmt: skip
        self._refuse_size(len(value))
        tree = self._parse(value)
        if type(tree) is not dict:
            raise MessageError("value", f"is {kind_of(tree)}, not an object: {self._shape()}")
        if self._rules or self._headers:
            self._complete(tree, headers)
        return tree

    def _complete(self, tree: dict[str, Any], headers: Headers) -> None:
        """Skip an object by what it holds, and add the headers that are named."""
        for rule in self._rules:
            rule.check(tree)
        for path in self._headers:
            text = header(headers, path)
            tree[path] = literal(text) if text is not None and path in self._typed else text

    def _parse(self, value: bytes) -> Any:
        # The libraries stop at depths of their own. Each bracket is a byte.
        if len(value) > MAX_DEPTH and is_deeper(value, MAX_DEPTH):
            raise MessageError("value", f"is nested deeper than {MAX_DEPTH}: {self._shape()}")
        try:
            tree = self._loads(value)
        except ValueError as problem:
            what = f"is no JSON ({diagnosis(value, problem)}): {self._shape()}"
            if (schema := schema_id(value)) is not None:
                what = (
                    "is no JSON, and begins as those that a schema registry describes, here by "
                    f"schema {schema}: give its address, registry in [codec]"
                )
            raise MessageError("value", what) from None
        refuse_repeated(value, tree)
        return tree

    def _refuse_size(self, size: int) -> None:
        if not size:
            raise MessageError("value", f"is empty: {self._shape()}")
        if size > self.max_bytes:
            raise MessageError(
                "value",
                f"has {size} bytes, more than the {self.max_bytes} that are read: send less, or "
                "raise max_bytes",
            )

    def _usable(self, features: dict[str, Any]) -> dict[str, Any]:
        """Leave out absent values, encode strings as features, refuse other values."""
        if self.one_hot:
            features = self._made_one_hot(features)
        for name, value in features.items():
            if value is None or type(value) in self._allowed:
                continue
            remedy = "send a number, or drop it"
            if type(value) is str:
                remedy = (
                    "send numbers without quotes; a category as a feature of its own, as "
                    '"colour=red": 1, which one_hot in [codec] makes of it; or drop it'
                )
            raise MessageError(f"features[{quoted(name)}]", f"is {kind_of(value)}: {remedy}")
        if self.raw:
            return features
        return {name: value for name, value in features.items() if value is not None}

    def _made_one_hot(self, features: dict[str, Any]) -> dict[str, Any]:
        """Return features with one for each text and bool, as ``colour=red``, behind the others."""
        hot = {name: value for name, value in features.items() if type(value) in {bool, str}}
        others = {name: value for name, value in features.items() if name not in hot}
        self._note_kinds(others, hot)
        made = [
            f"{name}={value}" if type(value) is str else f"{name}={str(value).lower()}"
            for name, value in hot.items()
        ]
        found = others | dict.fromkeys(made, 1)
        if len(found) < len(features):
            raise _twice([*others, *made], "once as one_hot makes it of a text or bool")
        return found

    def _note_kinds(self, others: Mapping[str, Any], hot: Mapping[str, Any]) -> None:
        """Say once of a feature that it is a number here and none there, as a schema changed."""
        known = self._numbers
        if len(known) + len(self._hot) > _REMEMBERED:
            return
        numbers: AbstractSet[str] = others.keys()
        if None in others.values():
            numbers = {name for name, value in others.items() if value is not None}
        if numbers <= known and hot.keys() <= self._hot:
            return
        for name in sorted((numbers - known) & self._hot | (hot.keys() - self._hot) & known):
            log.warning(
                "feature %s is a number in some messages and a text or bool in others, here %s, "
                "which one_hot makes a feature of its own: send one kind",
                *(quoted(name), quoted({**others, **hot}[name])),
            )
        known.update(numbers)
        self._hot.update(hot)

    def _label(self, label: Any, name: str) -> Label:
        """Return the label, or refuse it."""
        if label is None:
            if self.require_label:
                raise MessageError(name, f"is absent: {self._shape()}")
            return None
        if type(label) is float and label.is_integer() and abs(label) < _WHOLE:
            label = int(label)
        if type(label) is not bool and is_long(label):
            raise MessageError(name, f"is longer than {LONGEST}: send a short name")
        if type(label) not in _LABELS:
            raise MessageError(
                name,
                f"is {kind_of(label)}: send a string, true, false or an integer; to have a message "
                "predicted only, leave it out",
            )
        if self.classes is not None and label not in self.classes:
            known = ", ".join(map(repr, self.classes[:5])) + ", ..." * (len(self.classes) > 5)
            raise MessageError(
                name, f"is {quoted(label)}, not one of {known}: correct it, or add it to classes"
            )
        return label


def checked_codec(codec: Codec | None) -> Codec:
    """Return a codec, `JsonCodec` for None; ParameterError for what is none.

    Examples
    --------
    >>> checked_codec("json")
    Traceback (most recent call last):
    drift.errors.ParameterError: str is no codec: derive it from drift.consumers.Codec
    """
    if codec is None:
        return JsonCodec()
    if not isinstance(codec, Codec):
        name = type(codec).__name__
        raise ParameterError(f"{name} is no codec: derive it from drift.consumers.Codec")
    library()  # or refuse before the first message, as predictions need it, too
    return codec
