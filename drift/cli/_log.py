"""Lines of the log, without the secrets that a library may quote."""

from __future__ import annotations

import json
import logging
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

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


@contextmanager
def logging_to_stderr(secrets: Secrets, *, as_json: bool = False) -> Iterator[None]:
    """Log drift's and kafka-python's lines to stderr for as long as it lasts."""
    handler = logging.StreamHandler()
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
