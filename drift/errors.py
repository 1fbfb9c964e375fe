"""Every error that drift raises on purpose, in one tree.

::

    DriftError
    ├── ParameterError (ValueError)          a constructor or a function got a value it cannot use
    ├── LabelError (ValueError)              a label that the model cannot learn from
    ├── FeatureError (ValueError)            a feature whose value is infinite or too large
    ├── FeatureTypeError (TypeError)         a feature whose value is no number, features in no dict
    ├── DataError (ValueError)               a data file that cannot be read, with its line
    ├── MessageError (ValueError)            a message that cannot be learnt, with its field
    │   └── SkippedError                     one that is to be left out
    ├── ConsumerError                        a worker cannot continue without losing or doubling
    │   └── NothingLearntError               none of a group's first messages can be learnt
    ├── UnavailableError                     broker or folder cannot be reached: it may pass
    ├── CheckpointError                      a checkpoint that cannot be written, read or used
    │   ├── DamagedCheckpointError           its bytes are not those that were written
    │   ├── ConfigurationError (ValueError)  it was written under another configuration
    │   └── FencedError                      another process has taken over since
    └── MissingExtraError (ImportError)      an optional dependency is not installed

Those with a built-in error in parentheses derive from it, too, as Python programmers expect it, so
that code which knows nothing of drift can catch them. A refusal leaves the model as it was.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from os import PathLike
    from types import TracebackType

__all__ = [
    "CheckpointError",
    "ConfigurationError",
    "ConsumerError",
    "DamagedCheckpointError",
    "DataError",
    "DriftError",
    "FeatureError",
    "FeatureTypeError",
    "FencedError",
    "LabelError",
    "MessageError",
    "MissingExtraError",
    "NothingLearntError",
    "ParameterError",
    "SkippedError",
    "UnavailableError",
]


#: Characters of a message's error: what a log line and a record's header carry without harm.
_LONGEST = 300


def one_line(text: str, limit: int = _LONGEST) -> str:
    r"""Bring a text that may hold anything to one printable line of at most `limit` characters.

    Examples
    --------
    >>> one_line("two\nlines, and more", limit=12)
    'two lines...'
    """
    # A text may be as long as a message: what will be cut off is not looked at.
    beginning = text[: 2 * limit]
    line = " ".join("".join(c if c.isprintable() else " " for c in beginning).split())
    return line if len(line) <= limit else line[: limit - 3] + "..."


class DriftError(Exception):
    """Root of drift's errors.

    Attributes
    ----------
    rows_learnt : int or None
        How many rows of a batch were learnt before the error; None where there was no batch.
    """

    rows_learnt: int | None = None


class naming_row:  # noqa: N801 - it is used as a function, as contextlib.suppress is
    """Name the row of a batch in the message of an error; `row` returns its number, from 0.

    An exception that is not a `DriftError` keeps its message and gets a note.

    Examples
    --------
    >>> with naming_row(lambda: 3):
    ...     raise LabelError("label None is missing")
    Traceback (most recent call last):
    drift.errors.LabelError: row 3: label None is missing
    """

    def __init__(self, row: Callable[[], int]) -> None:
        self._row = row

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, DriftError):
            error.args = (f"row {self._row()}: {error}",)
        elif isinstance(error, Exception):  # of a kernel, a hook or the caller's objects
            error.add_note(f"at row {self._row()} of the batch")


class ParameterError(DriftError, ValueError):
    """A parameter lies outside of what its docstring allows."""


class LabelError(DriftError, ValueError):
    """A label cannot be learnt; the message names it and the remedy."""


class FeatureError(DriftError, ValueError):
    """A feature's value is infinite or too large; the message names the feature."""


class FeatureTypeError(DriftError, TypeError):
    """A feature's value is not a number; the message names the feature and the remedy."""


class DataError(DriftError, ValueError):
    """A data file cannot be read as what it should be.

    Parameters
    ----------
    path
        The file.
    line
        Number of the offending line, from 1; None where the whole file is meant.
    problem
        What is wrong, and what to do about it.

    Examples
    --------
    >>> raise DataError("news.svm", 3, "no ':' in feature '12'")
    Traceback (most recent call last):
    drift.errors.DataError: news.svm, line 3: no ':' in feature '12'
    """

    def __init__(self, path: str | PathLike[str], line: int | None, problem: str) -> None:
        self.path = path
        self.line = line
        self.problem = problem
        place = f"{path}" if line is None else f"{path}, line {line}"
        super().__init__(f"{place}: {problem}")

    def __reduce__(self) -> tuple[type[DataError], tuple[str | PathLike[str], int | None, str]]:
        return type(self), (self.path, self.line, self.problem)


class MessageError(DriftError, ValueError):
    """A message cannot be learnt: a worker sends it to the dead letters and continues.

    The text is one line of at most 300 characters, whatever the message held.

    Parameters
    ----------
    field
        What is wrong: "value", or the field of the message, as "features['age']".
    problem
        What is wrong with it, and what to do about it.

    Examples
    --------
    >>> raise MessageError("features['age']", "is null: leave it out")
    Traceback (most recent call last):
    drift.errors.MessageError: features['age'] is null: leave it out
    """

    def __init__(self, field: str, problem: str) -> None:
        self.field = field
        self.problem = problem
        super().__init__(one_line(f"{field} {problem}"))

    def __reduce__(self) -> tuple[type[MessageError], tuple[str, str]]:
        return type(self), (self.field, self.problem)


class SkippedError(MessageError):
    """A message is to be left out: a worker counts it, and it is no dead letter.

    Examples
    --------
    >>> raise SkippedError("op", 'is "d", which [codec] skips')
    Traceback (most recent call last):
    drift.errors.SkippedError: op is "d", which [codec] skips
    """


class ConsumerError(DriftError):
    """A worker cannot continue without losing or doubling examples; the message says what to do."""


class NothingLearntError(ConsumerError):
    """None of the first messages of a group can be learnt.

    Parameters
    ----------
    topic
        The topic.
    failures
        The messages, and why each cannot be learnt.
    """

    def __init__(self, topic: str, failures: Sequence[tuple[Any, Exception]]) -> None:
        self.topic = topic
        self.failures = failures
        _, first = failures[0]
        super().__init__(
            f"none of the first {len(failures)} messages of {topic} can be learnt, the first as "
            f"{one_line(str(first))}. Nothing was saved, and no dead letter sent: correct [codec], "
            "and try it by drift consume --dry-run 20"
        )

    def __reduce__(self) -> tuple[type[NothingLearntError], tuple[str, Any]]:
        return type(self), (self.topic, self.failures)


class UnavailableError(DriftError):
    """A broker or a folder was out of reach for longer than a worker waits: trying again may help.

    A command that it ends has the exit code 1; one that any other error of drift's ends has 2.
    """


class CheckpointError(DriftError):
    """A checkpoint cannot be written, read or used; the message says why and what to do."""


class DamagedCheckpointError(CheckpointError):
    """A checkpoint's bytes are not those that were written: it was cut short or changed."""


class ConfigurationError(CheckpointError, ValueError):
    """A checkpoint was written under another configuration; the message has a line for each key."""


class FencedError(CheckpointError):
    """Another process has claimed the partition since: its checkpoints count, ours would not."""


class MissingExtraError(DriftError, ImportError):
    """An optional dependency is missing.

    Parameters
    ----------
    package
        What could not be imported.
    extra
        The extra of drift that brings it.

    Examples
    --------
    >>> raise MissingExtraError("matplotlib", "plots")
    Traceback (most recent call last):
    drift.errors.MissingExtraError: matplotlib is not installed: pip install ".[plots]" in
        drift's source folder
    """

    def __init__(self, package: str, extra: str) -> None:
        self.package = package
        self.extra = extra
        super().__init__(
            f'{package} is not installed: pip install ".[{extra}]" in drift\'s source folder'
        )

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str]]:
        return type(self), (self.package, self.extra)


@contextmanager
def needing(package: str, extra: str) -> Iterator[None]:
    """Have an import that fails name the extra of drift that brings the package.

    Examples
    --------
    >>> with needing("plotly", "compare"):
    ...     import plotly
    """
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(package, extra) from error
