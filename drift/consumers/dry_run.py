"""What messages become, and the lines of a file by which more of them become examples.

Nothing is learnt, sent or saved. What is proposed is tried on the messages before it is shown.
"""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any

from drift._checks import counted
from drift._durations import shown_moment
from drift.consumers._json import found_at, text_of
from drift.consumers.codec import is_keyed
from drift.consumers.dead_letters import caught
from drift.consumers.json_codec import JsonCodec, schema_id
from drift.consumers.keyed import key_of
from drift.consumers.late import identified, labelled
from drift.consumers.learner import ONE_KIND, decoded
from drift.consumers.records import CutValue
from drift.consumers.skip import HEADER, TOMBSTONE
from drift.errors import MessageError, SkippedError, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from drift.consumers.codec import Codec, Example
    from drift.consumers.records import Message

__all__ = ["DryRun", "toml"]

#: Rounds of changes, each for one kind of failure.
_ROUNDS = 20
#: Characters of features that are shown, and of a text that is a category.
_SHOWN, _CATEGORY = 300, 40
#: With fewer texts it says nothing that none comes twice.
_FEW = 4
#: Last names of paths, the likeliest first.
_LABELS = ("label", "target", "class", "outcome", "y")
_IDS = ("id", "uuid", "event_id")
_TIMES = ("timestamp", "time", "ts", "ts_ms")
#: Parts of a message, in the order of a file.
_PARTS = ("features", "label", "id", "timestamp")
#: Envelopes: what a message has, and what to make of it.
_ENVELOPES: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (("op", "after"), {"features": "after", "timestamp": "ts_ms"}),
    (("payload.op", "payload.after"), {"features": "payload.after", "timestamp": "payload.ts_ms"}),
    (("specversion", "data"), {"features": "data", "id": "id", "timestamp": "time"}),
)


@dataclass(frozen=True)
class Outcome:
    """What a message becomes: an example, or the reason why not."""

    message: Message
    example: Example | None
    error: Exception | None = None

    @property
    def failed(self) -> bool:
        """Whether it is neither an example nor to be left out."""
        return self.error is not None and not isinstance(self.error, SkippedError)


class DryRun:
    """What a codec makes of messages.

    Parameters
    ----------
    codec
        Which reads them.
    messages
        The messages, at least one.
    labels
        The topic of labels, where they have their own.

    Attributes
    ----------
    outcomes : list of Outcome
        One for each message.

    Examples
    --------
    >>> from drift.consumers.records import Message, Position
    >>> value = b'{"sum": 31.5, "card": "visa", "fraud": true}'
    >>> run = DryRun(JsonCodec(), [Message(Position("orders", 0, 0), None, value)])
    >>> for line in run.lines():
    ...     print(line)
    orders:0:0
        not learnt: features is absent, not an object: send {"features": {"age": 31.5}, ...}
        [codec]
        label = "fraud"
    1 message: 0 with a label, 0 without, 1 not learnt, 0 skipped
    <BLANKLINE>
    With this 1 of 1 become examples, 1 with a label:
    <BLANKLINE>
    [codec]
    label = "fraud"
    one_hot = true
    """

    def __init__(
        self, codec: Codec, messages: Iterable[Message], labels: str | None = None
    ) -> None:
        self.codec = codec
        self.labels = labels
        self.outcomes = [self._outcome(codec, message) for message in messages]
        self._found: dict[bool, list[dict[str, Any]]] = {}  # see `_trees`

    @property
    def examples(self) -> list[Example]:
        """What the messages have become that can be predicted or learnt."""
        return [outcome.example for outcome in self.outcomes if outcome.example is not None]

    @property
    def labelled(self) -> int:
        """Number of examples with a label."""
        return sum(example.label is not None for example in self.examples)

    @property
    def failed(self) -> int:
        """Number of messages that are neither examples nor to be left out."""
        return sum(outcome.failed for outcome in self.outcomes)

    def lines(self) -> Iterator[str]:
        """Yield lines for each message, a summary, hints, and the table that is proposed."""
        said: list[dict[str, Any]] = []
        for outcome in self.outcomes:
            yield from self._lines_of(outcome)
            change = self._change(outcome)
            if change and change not in said:
                said.append(change)
                yield textwrap.indent(toml(change), "    ")
        yield self._summary()
        yield from self._hints()
        changes = self.changes()
        if not changes:
            return
        if "registry" in changes:  # which cannot be tried from here
            yield "\nThe messages name a schema. With the address of your schema registry:\n"
        else:
            better = DryRun(self._changed(changes), self._messages(), self.labels)
            if (better.failed, -better.labelled) >= (self.failed, -self.labelled):
                return
            yield (
                f"\nWith this {len(better.examples)} of {len(self.outcomes)} become examples, "
                f"{better.labelled} with a label:\n"
            )
        yield toml({**_given(self.codec), **changes})

    def changes(self) -> dict[str, Any]:
        """Return what to change in [codec]; nothing where nothing helps."""
        changes: dict[str, Any] = {}
        run: DryRun = self
        for _ in range(_ROUNDS):
            change = next(filter(None, map(run._change, run.outcomes)), None) or run._labelling()
            if not change:
                break
            changes |= change
            if "registry" in change:
                break
            run = DryRun(self._changed(changes), self._messages(), self.labels)
        return changes

    # --- outcomes ------------------------------------------------------------------------------

    def _messages(self) -> list[Message]:
        return [outcome.message for outcome in self.outcomes]

    def _outcome(self, codec: Codec, message: Message) -> Outcome:
        is_label = message.position.topic == self.labels
        decode: Callable[[Message], Example]
        if is_label:
            decode = partial(labelled, codec.decode_label)
        else:
            decode = partial(identified if self.labels else decoded, codec.decode)
        example, error = caught(decode, message)
        if error is None and is_keyed(codec) and not is_label:
            _, error = caught(key_of, codec, example)
        return Outcome(message, example if error is None else None, error)

    def _lines_of(self, outcome: Outcome) -> Iterator[str]:
        at = outcome.message.timestamp
        moment = "" if at is None else f"  {shown_moment(at, ' ').removesuffix('+00:00')}"
        yield f"{outcome.message.position}{moment}"
        if outcome.example is None:
            why = one_line(str(outcome.error))
            yield f"    {'not learnt' if outcome.failed else 'skipped'}: {why}"
            return
        parts = outcome.example._asdict()
        features = parts.pop("features")
        if outcome.message.position.topic != self.labels:
            shown = _shown(features)
            cut = f"{shown[:_SHOWN]} ... {len(features)} in all"
            yield f"    features   {shown if len(shown) <= _SHOWN else cut}"
        for name, value in parts.items():
            if value is not None:
                yield f"    {name:10} {_shown(value)}"

    def _summary(self) -> str:
        examples = self.examples
        labels = Counter(_shown(example.label) for example in examples if example.label is not None)
        shown = ", ".join(f"{label}: {n}" for label, n in labels.most_common(10))
        count, unlabelled = len(self.outcomes), len(examples) - self.labelled
        return (
            f"{counted(count, 'message')}: {self.labelled} with a label"
            f"{f' ({shown})' if shown else ''}, {unlabelled} without, "
            f"{self.failed} not learnt, {count - len(examples) - self.failed} skipped"
        )

    def _hints(self) -> Iterator[str]:
        mixed = mixed_labels(
            example.label for example in self.examples if example.label is not None
        )
        if mixed is not None:
            yield mixed
        if isinstance(self.codec, JsonCodec):
            yield from self._mapping_hints(self.codec)
        if self.labels is None:
            return
        features = [
            outcome.example
            for outcome in self.outcomes
            if outcome.example is not None and outcome.message.position.topic != self.labels
        ]
        if any(example.id is None for example in features):
            yield "Some messages have no id, so that no label finds them: id in [codec] says where"
        if any(example.label is not None for example in features):
            yield (
                f"Labels come from {self.labels}: those in other messages are ignored. To learn "
                "these, leave topic in [labels] out"
            )

    def _mapping_hints(self, codec: JsonCodec) -> Iterator[str]:
        """Yield what points to a wrong path, though messages are read by it."""
        read = [
            outcome.example.features
            for outcome in self.outcomes
            if outcome.example is not None and outcome.message.position.topic != self.labels
        ]
        if len(read) > 1 and all(features == read[0] for features in read):
            yield "All examples have the same features: are others elsewhere, or dropped?"
        trees = self._trees()
        label = None if self.labels else codec.label
        for path in filter(None, (*codec.drop, codec.id, codec.timestamp, codec.weight, label)):
            if trees and all(found_at(tree, path) is None for tree in trees):
                yield f"No message has {path}, which [codec] names"
        if codec.one_hot:
            for name, values in self._given_features(codec).items():
                texts = _texts(values)
                if len(texts) >= _FEW and len({*texts}) == len(texts):
                    yield (
                        f"No text of {name} comes twice here, and each becomes a feature of its "
                        "own: drop it in [codec], unless they come again later"
                    )

    def _given_features(self, codec: JsonCodec) -> dict[str, list[Any]]:
        """Return the values of all features, by their paths in messages."""
        path = codec.paths["features"]
        leaves = _leaves(self._trees(), "" if path is None else f"{path}.")
        given = {*codec.drop, *filter(None, codec.paths.values())}
        within = tuple(f"{name}." for name in codec.drop)
        return {
            name: values
            for name, values in leaves.items()
            if name not in given and not name.startswith(within)
        }

    # --- changes -------------------------------------------------------------------------------

    def _changed(self, changes: Mapping[str, Any]) -> Codec:
        return type(self.codec)(**{**_given(self.codec), **changes})

    def _change(self, outcome: Outcome) -> dict[str, Any]:
        """Return what to change for a message; nothing where nothing helps."""
        codec, error = self.codec, outcome.error
        if not (
            outcome.failed and isinstance(codec, JsonCodec) and isinstance(error, MessageError)
        ):
            return {}
        tree = self._tree(outcome.message)
        if tree is None:
            return self._unread(codec, outcome.message.value)
        if outcome.message.position.topic == self.labels:
            return self._label_paths(codec, error.field)
        return self._refused(codec, error.field, tree)

    @staticmethod
    def _unread(codec: JsonCodec, value: bytes | None) -> dict[str, Any]:
        """Return what to change for a value that has no object."""
        if value is None:
            return {"skip": [*codec.skip, TOMBSTONE]}
        size = getattr(value, "size", len(value))
        if size > codec.max_bytes:
            return {"max_bytes": 1 << (size - 1).bit_length()}
        if schema_id(value) is not None and not hasattr(codec, "registry"):
            return {"registry": "http://localhost:8081"}
        return {}

    def _refused(self, codec: JsonCodec, field: str, tree: Mapping[str, Any]) -> dict[str, Any]:
        """Return what to change for an object with a field that is refused."""
        at = codec.paths
        if field == str(at["features"]):
            parent = field.rpartition(".")[0]
            op = f"{parent}.op" if parent else "op"
            if found_at(tree, op) == "d":
                return {"skip": [*codec.skip, f'{op} = "d"']}
            return {} if codec.features else self._shape()
        if field.startswith("features["):
            return self._kinds(codec)
        if field == at["label"]:
            label = found_at(tree, field)
            if label is None:
                return {"require_label": False}
            if codec.classes is not None and type(label) in {bool, int, str}:
                return {"classes": [*codec.classes, label]}
        return {}

    def _tree(self, message: Message) -> dict[str, Any] | None:
        """Return the object of a message of examples; None where it has none."""
        if isinstance(message.value, CutValue) or not isinstance(self.codec, JsonCodec):
            return None
        try:
            return self.codec.read(message.value, message.headers)
        except MessageError:
            return None

    def _trees(self, *, labels: bool = False) -> list[dict[str, Any]]:
        """Return the objects of the messages of examples, or of labels."""
        if labels not in self._found:
            of = [m for m in self._messages() if (m.position.topic == self.labels) is labels]
            self._found[labels] = [tree for tree in map(self._tree, of) if tree is not None]
        return self._found[labels]

    def _shape(self) -> dict[str, Any]:
        """Return where the parts of messages are that have another shape."""
        trees = self._trees()
        change: dict[str, Any] = {}
        for marks, parts in _ENVELOPES:
            if any(all(found_at(tree, mark) is not None for mark in marks) for tree in trees):
                change = dict(parts)
                break
        within = f"{change['features']}." if change else ""
        leaves = _leaves(trees, within)
        label = _label_path(leaves)
        change["label"] = label or f"{within}label"
        change |= self._names(leaves, change)
        return {part: change[part] for part in _PARTS if part in change}

    def _labelling(self) -> dict[str, Any]:
        """Return where the label is, if it is where nobody has said, as among the features."""
        codec = self.codec
        if self.labels or not isinstance(codec, JsonCodec) or codec.label is not None:
            return {}
        trees = self._trees()
        if any(found_at(tree, codec.paths["label"]) is not None for tree in trees):
            return {}
        leaves, path = _leaves(trees), str(codec.paths["features"])
        # A bool among the features may be one.
        apart = {
            name: values
            for name, values in leaves.items()
            if not name.startswith(f"{path}.") or name.rpartition(".")[2].lower() in _LABELS
        }
        label = _label_path(apart)
        return {"features": path, "label": label, **self._names(apart, {})} if label else {}

    def _names(
        self, leaves: Mapping[str, Sequence[Any]], known: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the paths of id and timestamp, as far as they can be guessed."""
        found = {"id": _named(leaves, _IDS), "timestamp": _named(leaves, _TIMES)}
        headers = {name for message in self._messages() for name, _ in message.headers}
        for part, name in (("id", "ce_id"), ("timestamp", "ce_time")):
            if name in headers:
                found[part] = HEADER + name
        return {part: path for part, path in found.items() if path and part not in known}

    def _kinds(self, codec: JsonCodec) -> dict[str, Any]:
        """Return what to drop, and whether texts are categories; what the label is, before."""
        if label := self._labelling():
            return label
        texts: list[str] = []
        drop: list[str] = []
        for name, values in self._given_features(codec).items():
            if list in map(type, values):
                drop.append(name)
            elif str in map(type, values) and not codec.one_hot:
                (texts if _is_category(values) else drop).append(name)
        change: dict[str, Any] = {"one_hot": True} if texts else {}
        return change | ({"drop": [*codec.drop, *drop]} if drop else {})

    def _label_paths(self, codec: JsonCodec, field: str) -> dict[str, Any]:
        """Return where messages of labels have an id or a label."""
        leaves = _leaves(self._trees(labels=True))
        known = dict(codec.labels or {})
        part = next((part for part, path in codec.label_paths.items() if path == field), None)
        path = _named(leaves, _IDS) if part == "id" else _label_path(leaves)
        if part not in {"id", "label"} or path in {None, field}:
            return {}
        return {"labels": {**known, part: path}}


def mixed_labels(labels: Iterable[Any]) -> str | None:
    """Return a hint where labels of one text are of several kinds; None elsewhere.

    >>> mixed_labels([True, False, "true"])
    'Label true is a bool and a string, which are two classes: send one kind; classes = [...] ...'
    """
    kinds: dict[str, set[str]] = {}
    for label in labels:
        kind = {bool: "a bool", str: "a string"}.get(type(label), "a number")
        kinds.setdefault(text_of(label), set()).add(kind)
    for text, found in kinds.items():
        if len(found) > 1:
            return (
                f"Label {text} is {' and '.join(sorted(found))}, which are two classes: {ONE_KIND}"
            )
    return None


def toml(options: Mapping[str, Any]) -> str:
    """Return the table [codec] of a file.

    >>> print(toml({"label": "fraud", "drop": ["note"], "labels": {"id": "ref"}}))
    [codec]
    label = "fraud"
    drop = ["note"]
    [codec.labels]
    id = "ref"
    """
    plain = {name: value for name, value in options.items() if not isinstance(value, dict)}
    lines = ["[codec]", *(f"{name} = {_toml_value(value)}" for name, value in plain.items())]
    for name in options.keys() - plain.keys():
        lines.append(f"[codec.{name}]")
        lines += [f"{key} = {_toml_value(value)}" for key, value in options[name].items()]
    return "\n".join(lines)


def _toml_value(value: Any) -> str:
    return _printable(json.dumps(value, ensure_ascii=False))


def _given(codec: Any) -> dict[str, Any]:
    """Return the options of a codec that are no defaults, as a file has them."""
    given = {}
    for field in fields(codec):
        value = getattr(codec, field.name)
        if value != field.default:
            given[field.name] = [*value] if isinstance(value, tuple) else value
    return given


def _leaves(trees: Iterable[Mapping[str, Any]], within: str = "") -> dict[str, list[Any]]:
    """Return the values of all paths at which no object is; of those within one, if given."""
    found: dict[str, list[Any]] = {}

    def walk(tree: Mapping[str, Any], prefix: str) -> None:
        for name, value in tree.items():
            if isinstance(value, dict):
                walk(value, f"{prefix}{name}.")
            elif f"{prefix}{name}".startswith(within) and not name.startswith(HEADER):
                found.setdefault(f"{prefix}{name}", []).append(value)

    for tree in trees:
        walk(tree, "")
    return found


def _label_path(leaves: Mapping[str, Sequence[Any]]) -> str | None:
    """Return the likeliest path of a label: by its name, a bool, 0 and 1; None without."""

    def rank(path: str) -> tuple[int, int] | None:
        values = [value for value in leaves[path] if value is not None]
        kinds = {*map(type, values)}
        name = path.rpartition(".")[2].lower()
        if not values or kinds - {bool, int, str}:
            return None
        if name in _LABELS:
            return _LABELS.index(name), path.count(".")
        if kinds == {bool} or (kinds == {int} and {0, 1}.issuperset(values)):
            return len(_LABELS) + (bool not in kinds), path.count(".")
        return None

    ranks = {path: found for path in leaves if (found := rank(path)) is not None}
    return min(ranks, key=ranks.__getitem__, default=None)


def _named(leaves: Mapping[str, Sequence[Any]], names: Sequence[str]) -> str | None:
    """Return the path whose last name is the first of some; the shortest one."""
    ranks = {
        path: (names.index(name), path.count("."))
        for path, values in leaves.items()
        if (name := path.rpartition(".")[2].lower()) in names and {*map(type, values)} <= {int, str}
    }
    return min(ranks, key=ranks.__getitem__, default=None)


def _is_category(values: Sequence[Any]) -> bool:
    """Say whether texts come again: not names, numbers, times and the like."""
    texts = _texts(values)
    if any(len(text) > _CATEGORY or text[:1].isdigit() for text in texts):
        return False
    return len(texts) < _FEW or len({*texts}) <= len(texts) / 2


def _texts(values: Iterable[Any]) -> list[str]:
    return [value for value in values if isinstance(value, str)]


def _shown(value: Any) -> str:
    try:
        return _printable(json.dumps(value, ensure_ascii=False, default=str))
    except TypeError:  # a codec of the user's may name features as it likes
        return repr(value)


def _printable(text: str) -> str:
    """Escape what a terminal may obey, as TOML does."""
    return "".join(
        letter
        if letter.isprintable()
        else f"\\U{ord(letter):08x}"
        if ord(letter) > 0xFFFF
        else f"\\u{ord(letter):04x}"
        for letter in text
    )
