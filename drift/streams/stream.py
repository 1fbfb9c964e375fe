"""Labelled examples in their order, with the rows at which the concept is documented to drift."""

from __future__ import annotations

import hashlib
import pickle
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from drift._checks import check_integer, counted
from drift._values import is_missing, number
from drift.errors import ParameterError, one_line
from drift.streams.table import Table

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from numpy.typing import NDArray

    from drift.types import Features, Label

__all__ = ["Drift", "Stream", "are_categories", "labels_of", "problem_of", "unpacked"]


class Drift(NamedTuple):
    """A documented change of the concept.

    Attributes
    ----------
    row
        Number of the first example after the change started.
    width
        Number of examples over which it happens: 1, abrupt; more, gradual.
    """

    row: int
    width: int = 1


class _Checked(list["tuple[Features, Label]"]):
    """Pairs that a stream has checked: `replace` and parts of it do not check them again."""

    __slots__ = ()


@dataclass(frozen=True, eq=False)
class Stream:
    """Examples in the order in which a model learns them.

    Parameters
    ----------
    examples
        Pairs of features, as a dict, and a label.
    name
        Name of the stream in results.
    drifts
        Documented changes: `Drift`, or numbers of rows.
    shuffled
        Whether it is another stream's, in another order.
    notes
        What its reader left out, counted as missing or read otherwise than it stands, and columns
        that may leak the label.
    moments
        When each example comes, shape (n,): seconds, if a reader found times; None: unknown.
    delays
        How long after it its label comes, shape (n,): in the unit of `moments`, or in examples
        where there are none; None: unknown.

    Raises
    ------
    ParameterError
        No examples, one that is no pair or has no label, or a drift outside of them; a moment or a
        delay that is no finite number, or a negative delay.

    Examples
    --------
    >>> from drift.streams import Stream
    >>> stream = Stream([({"a": 1.0}, True), ({"a": 2.0}, False)], "two", drifts=[1])
    >>> len(stream), stream.drifts
    (2, (Drift(row=1, width=1),))
    """

    examples: Sequence[tuple[Features, Label]]
    name: str = "stream"
    drifts: tuple[Drift, ...] = ()
    shuffled: bool = False
    notes: tuple[str, ...] = ()
    moments: NDArray[np.float64] | None = None
    delays: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "drifts", _drifts(self.drifts))
        if not isinstance(self.examples, Table):
            checked = isinstance(self.examples, _Checked)
            object.__setattr__(self, "examples", _Checked(self.examples))  # a list of its own
            if not checked:
                self._check_pairs()
        if not len(self):
            raise ParameterError(f"{self.name} has no examples")
        for drift in self.drifts:
            if not 0 < drift.row < len(self) or drift.width < 1:
                raise ParameterError(
                    f"{self.name} has {counted(len(self), 'example')}: a drift starts after the "
                    f"first of them and is at least one row wide, not {drift}"
                )
        for name in ("moments", "delays"):
            self._check_clock(name)

    def _check_clock(self, name: str) -> None:
        values = getattr(self, name)
        if values is None:
            return
        values = np.asarray(values, dtype=np.float64)
        if values.shape != (len(self),):
            raise ParameterError(
                f"{self.name} has {counted(len(self), 'example')}, and {name} of shape "
                f"{values.shape}: give one for each"
            )
        wrong = np.flatnonzero(~np.isfinite(values) | ((values < 0) & (name == "delays")))
        if len(wrong):
            what = "a finite number" if name == "moments" else "0 or more: no label comes before it"
            raise ParameterError(
                f"{self.name}: {name[:-1]} of example {wrong[0]} must be {what}, not "
                f"{values[wrong[0]]:g}"
            )
        object.__setattr__(self, name, values)

    def _check_pairs(self) -> None:
        for i, pair in enumerate(self.examples):
            if (
                not isinstance(pair, tuple | list)
                or len(pair) != 2
                or not isinstance(pair[0], Mapping)
            ):
                raise ParameterError(
                    f"{self.name}: example {i} is not a pair of features, in a dict, and a label: "
                    f"{one_line(repr(pair)):.80}; give such pairs, or a data frame and its target"
                )
            if problem := problem_of(pair[1]):
                raise ParameterError(f"{self.name}: example {i} has {problem}")

    def __len__(self) -> int:
        return len(self.examples)

    def __iter__(self) -> Iterator[tuple[Features, Label]]:
        return iter(self.examples)

    def __repr__(self) -> str:
        return f"<Stream {self.name}: {counted(len(self), 'example')}>"

    @classmethod
    def of(cls, pairs: Iterable[Any], name: str | None = None, rows: int | None = None) -> Stream:
        """Make a stream from pairs of features and label.

        Parameters
        ----------
        pairs
            Any iterable of them. Longer tuples, such as River's with a weight, are refused.
        name
            Name of the stream; None: the class of the data set, if it is one.
        rows
            Number of examples to read; None: all.
        """
        if name is None:
            plain = isinstance(pairs, list | tuple | Iterator)
            name = "stream" if plain else type(pairs).__name__
        rows = None if rows is None else check_integer("rows", rows)
        return cls(
            [tuple(one) if isinstance(one, list) else one for one in islice(pairs, rows)], name
        )

    def head(self, rows: int | None) -> Stream:
        """Return the first examples, at least one; None: all."""
        if rows is None or check_integer("rows", rows) >= len(self):
            return self
        drifts = tuple(drift for drift in self.drifts if drift.row < rows)
        return replace(
            self,
            examples=self._part(np.arange(rows)),
            drifts=drifts,
            moments=None if self.moments is None else self.moments[:rows],
            delays=None if self.delays is None else self.delays[:rows],
        )

    def block_shuffled(self, length: int, seed: int = 0) -> Stream:
        """Put blocks of examples in random order, and keep the order inside each block.

        Neighbours stay neighbours. The order in which the concept moved is lost, and so are the
        documented drifts. The first example comes at the first moment still, and so on; a delay
        goes with its example.

        Parameters
        ----------
        length
            Examples in a block, at least 1.
        seed
            Seed of the order of the blocks, at least 0.

        Raises
        ------
        ParameterError
            A parameter out of its range.
        """
        check_integer("length", length)
        check_integer("seed", seed, least=0)
        starts = np.arange(0, len(self), length)
        np.random.default_rng(seed).shuffle(starts)
        order = np.concatenate([np.arange(len(self))[at : at + length] for at in starts.tolist()])
        name = f"{self.name}, shuffled"
        return replace(self._in_order(order), name=name, drifts=(), shuffled=True)

    def by_moment(self) -> Stream:
        """Sort the examples by their moments, if these fall somewhere, and leave a note of it."""
        moments = self.moments
        if moments is None or not (np.diff(moments) < 0).any():
            return self
        after = int((moments < np.maximum.accumulate(moments)).sum())
        rows = counted(len(self), "row")
        note = f"sorted by the moment: {after:,} of {rows} stood behind a later one"
        order = np.argsort(moments, kind="stable")
        notes = (*self.notes, note)
        return replace(self._in_order(order), moments=moments[order], notes=notes)

    def _in_order(self, order: NDArray[np.int64]) -> Stream:
        """Examples and their delays in another order; moments stay."""
        delays = None if self.delays is None else self.delays[order]
        return replace(self, examples=self._part(order), delays=delays)

    def _part(self, rows: NDArray[np.int64]) -> Sequence[tuple[Features, Label]]:
        """Examples by their numbers."""
        if isinstance(self.examples, Table):
            return self.examples.take(rows)
        return _Checked(self.examples[i] for i in rows.tolist())

    @cached_property
    def classes(self) -> dict[Label, int]:
        """Number of examples of each label."""
        return dict(Counter(y for _, y in self.examples))

    @cached_property
    def sha256(self) -> str:
        """Fingerprint of the examples, their moments and delays."""
        digest = hashlib.sha256()
        if isinstance(self.examples, Table):
            digest.update(self.examples.fingerprint().encode())
        else:
            for pair in self.examples:
                digest.update(repr(pair).encode("utf-8", "surrogatepass") + b"\n")
        for clock in (self.moments, self.delays):
            digest.update(b"" if clock is None else clock.astype("<f8").tobytes())
        return digest.hexdigest()

    @cached_property
    def labels(self) -> list[Label]:
        """The label of each example."""
        return labels_of(self.examples)

    @cached_property
    def features(self) -> list[Hashable]:
        """Names of the features, in the order in which they come first."""
        if isinstance(self.examples, Table):
            return [column.name for column in self.examples.columns]
        return list(dict.fromkeys(name for x, _ in self.examples for name in x))

    @cached_property
    def categories(self) -> dict[Hashable, int]:
        """Number of different texts of each feature; empty if one feature's are no categories."""
        if isinstance(self.examples, Table):
            return self.examples.categories
        texts: dict[Hashable, set[str]] = {}
        counts: Counter[Hashable] = Counter()
        for x, _ in self.examples:
            for name, value in x.items():
                if isinstance(value, str):
                    texts.setdefault(name, set()).add(value)
                    counts[name] += 1
        sizes = {name: len(different) for name, different in texts.items()}
        all_are = all(are_categories(size, counts[name]) for name, size in sizes.items())
        return sizes if all_are else {}

    @cached_property
    def packed(self) -> NDArray[np.uint8]:
        """The examples as one array of bytes, which a worker gets once; see `unpacked`."""
        if isinstance(self.examples, Table):
            return self.examples.packed
        return np.frombuffer(pickle.dumps(list(self.examples), protocol=5), dtype=np.uint8)


def unpacked(packed: NDArray[np.uint8]) -> Sequence[tuple[Features, Label]]:
    """Fresh examples from `Stream.packed`."""
    if Table.is_packed(packed):
        return Table(packed)
    examples: list[tuple[Features, Label]] = pickle.loads(packed.tobytes())
    return examples


def labels_of(examples: Sequence[tuple[Features, Label]]) -> list[Label]:
    """Return the label of each example."""
    return examples.labels if isinstance(examples, Table) else [y for _, y in examples]


def are_categories(different: int, total: int) -> bool:
    """Whether so many different texts are categories, rather than row names or prose.

    Examples
    --------
    >>> from drift.streams.stream import are_categories
    >>> are_categories(8, 3000), are_categories(2900, 3000)
    (True, False)
    """
    return different <= max(100, total / 2)


def problem_of(label: Any) -> str:
    """Why a label cannot be learnt; empty: it can."""
    try:
        hash(label)
    except TypeError:
        kind = type(label).__name__
        return f"the label {label!r}, a {kind}, which is unhashable: use a string or a tuple"
    if is_missing(label):
        return "no label: leave it out, or give it one"
    try:
        value = number(label)
    except (TypeError, ValueError, OverflowError):
        return ""
    if not value.is_integer():
        return f"the label {label}: classes are texts or whole numbers, no fractions"
    return ""


def _drifts(given: Any) -> tuple[Drift, ...]:
    """Return drifts, each given as a row, or as row and width."""
    try:
        parts = [one if isinstance(one, tuple) else (one,) for one in given]
        rows = [[check_integer("drifts", part, least=0) for part in one] for one in parts]
        return tuple(sorted(Drift(*row) for row in rows))
    except TypeError:
        raise ParameterError(
            f"drifts must be a list of rows or of (row, width), not {given!r:.80}"
        ) from None
