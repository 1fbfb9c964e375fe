"""What the commands that talk to Kafka share: logging, and answers in place of tracebacks."""

from __future__ import annotations

import json
import logging
from collections import deque
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from drift.errors import DriftError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from drift.cli_settings import Secrets

__all__ = ["answering", "logging_to_stderr", "read_key"]


class _Plain(logging.Formatter):
    """One line, without secrets: what a library says may quote its settings."""

    def __init__(self, secrets: Secrets) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self.secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        return self.secrets.hidden(super().format(record))


class _Json(logging.Formatter):
    """A JSON object for each line; counts are entries of their own."""

    def __init__(self, secrets: Secrets) -> None:
        super().__init__()
        self.secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": self.secrets.hidden(record.getMessage()),
        }
        if record.exc_info:
            entry["exception"] = self.secrets.hidden(self.formatException(record.exc_info))
        metrics = getattr(record, "metrics", None)
        if metrics is not None:
            entry |= json.loads(metrics.line(as_json=True))
        return json.dumps(entry)


def read_key(file: Path | str | None, secrets: Secrets | None = None) -> bytes | None:
    """Read the key of signed checkpoints from a file; with `secrets`, keep it out of the log."""
    if file is None:
        return None
    try:
        key = Path(file).read_bytes().strip()
    except OSError as problem:
        raise ParameterError(f"{file}: {problem.strerror}") from None
    if not key:
        raise ParameterError(f"{file} is empty: write a key into it")
    if secrets is not None:
        secrets.add(key.decode(errors="replace"))
    return key


@contextmanager
def logging_to_stderr(secrets: Secrets, *, as_json: bool = False) -> Iterator[None]:
    """Log drift's and kafka-python's lines to stderr for as long as it lasts."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Json(secrets) if as_json else _Plain(secrets))
    levels = {"drift": logging.INFO, "kafka": logging.WARNING}
    loggers = {logging.getLogger(name): level for name, level in levels.items()}
    before = {logger: logger.level for logger in loggers}
    for logger, level in loggers.items():
        logger.addHandler(handler)
        logger.setLevel(level)
    try:
        yield
    finally:
        for logger, level in before.items():
            logger.removeHandler(handler)
            logger.setLevel(level)


@contextmanager
def answering(secrets: Secrets, interrupted: str = "interrupted") -> Iterator[None]:
    """Turn errors into a line and an exit code: 2 for the user's, 1 for the broker's."""
    try:
        with _noting_failures() as failures:
            yield
    except DriftError as error:
        typer.echo(f"error: {secrets.hidden(str(error))}", err=True)
        raise typer.Exit(2) from None
    except OSError as error:
        typer.echo(f"error: {secrets.hidden(str(error))}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo(interrupted, err=True)
        raise typer.Exit(130) from None
    except Exception as error:
        from drift.consumers.client.topics import KafkaError, is_refusal  # noqa: PLC0415

        if not isinstance(error, (KafkaError, ValueError)):
            raise
        # A ValueError of kafka-python's may quote options: no traceback shows it.
        reasons = [error]
        if failures and _is_about_bootstrap(error):
            # Who hangs up may do so before its reason is read: one of many tries has it.
            reasons.append(max(failures, key=is_refusal))
        typer.echo(f"error: {secrets.hidden('; '.join(map(_named, reasons)))}", err=True)
        raise typer.Exit(2 if any(map(is_refusal, reasons)) else 1) from None


@contextmanager
def _noting_failures() -> Iterator[deque[BaseException]]:
    """Note why kafka-python could not connect.

    It tries again until its time is up, and says then that it is; the reasons are in its log alone.
    """
    found: deque[BaseException] = deque(maxlen=100)

    def note(record: logging.LogRecord) -> bool:
        for value in record.args if isinstance(record.args, tuple) else ():
            if isinstance(value, BaseException) and not _is_about_bootstrap(value):
                found.append(value)
        return True

    logger = logging.getLogger("kafka.net.manager")
    logger.addFilter(note)
    try:
        yield found
    finally:
        logger.removeFilter(note)


def _is_about_bootstrap(error: BaseException) -> bool:
    return "Unable to bootstrap" in str(error)


def _named(error: BaseException) -> str:
    """Say what an error is; those of kafka-python begin with that."""
    name = type(error).__name__
    return str(error) if str(error).startswith(name) else f"{name}: {error}"
