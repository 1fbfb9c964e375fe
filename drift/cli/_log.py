"""Lines of the log, without the secrets that a library may quote."""

from __future__ import annotations

import json
import logging
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TextIO

from drift.consumers.trouble_log import OncePerMinute, others

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Secrets", "logging_to_stderr"]


class Secrets(set[str]):
    r"""Texts that are not to be shown.

    Examples
    --------
    >>> Secrets({"hunter2"}).hidden("wrong password hunter2")
    'wrong password ***'
    >>> Secrets({"it's\\me"}).hidden(repr({"password": "it's\\me"}))
    '{\'password\': "***"}'
    """

    def hidden(self, text: str) -> str:
        """Return a text without them, nor what Python shows for them."""
        spelt = {form for secret in self for form in (secret, repr(secret)[1:-1])}
        for secret in sorted(spelt, key=len, reverse=True):
            text = text.replace(secret, "***")
        return text


class _Plain(logging.Formatter):
    """One line, without secrets: what a library says may quote its settings."""

    def __init__(self, secrets: Secrets) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self.secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        return self.secrets.hidden(super().format(record))


class _Json(_Plain):
    """A JSON object for each line; counts are entries of their own."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": self.secrets.hidden(record.getMessage()),
        }
        if record.exc_info:
            entry["exception"] = self.secrets.hidden(self.formatException(record.exc_info))
        if hasattr(record, "metrics"):
            entry |= record.metrics.known()
        return json.dumps(entry)


class _Limited(logging.StreamHandler[TextIO]):
    """Prints warnings and errors of a kind once a minute: those of one line of code.

    Where that names a partition first, those of the partition. What came meanwhile is counted, and
    the last one printed with the count once the minute is over: another line comes at least at each
    checkpoint.
    """

    def __init__(self) -> None:
        super().__init__()
        self._limit = OncePerMinute()

    def emit(self, record: logging.LogRecord) -> None:
        self._emit_others()
        first = record.args[0] if isinstance(record.args, tuple) and record.args else None
        kind = record.pathname, record.lineno, first if isinstance(first, tuple) else None
        if (
            record.levelno < logging.WARNING
            or hasattr(record, "limited")
            or self._limit.admits(kind, record)
        ):
            super().emit(record)

    def close(self) -> None:
        self._emit_others(at_once=True)
        super().close()

    def _emit_others(self, *, at_once: bool = False) -> None:
        for record, count in self._limit.over(at_once=at_once):
            record.msg, record.args = f"{record.getMessage()}{others(count - 1)}", ()
            super().emit(record)


@contextmanager
def logging_to_stderr(secrets: Secrets, *, as_json: bool = False) -> Iterator[None]:
    """Log drift's and kafka-python's lines to stderr for as long as it lasts."""
    handler = _Limited()
    handler.setFormatter(_Json(secrets) if as_json else _Plain(secrets))
    levels = {"drift": logging.INFO, "kafka": logging.WARNING}
    before = {name: logging.getLogger(name).level for name in levels}
    for name, level in levels.items():
        logging.getLogger(name).addHandler(handler)
        logging.getLogger(name).setLevel(level)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).removeHandler(handler)
            logging.getLogger(name).setLevel(level)
        handler.close()
