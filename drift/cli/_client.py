"""What commands that use Kafka share: the broker's address, and exit codes of its errors."""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Collection  # noqa: TC003 - types of fields are read
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drift._options import option
from drift.cli._command import Command
from drift.cli._log import Secrets
from drift.cli._settings import load_kafka
from drift.errors import DriftError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from drift.consumers.records import Outgoing

__all__ = ["Client", "read_secret", "send_all"]


@dataclass(kw_only=True)
class Client(Command):
    """A command that talks to Kafka."""

    bootstrap: str | None = option("host:port of a broker.", None)
    config: Path | None = option("TOML file of settings; [kafka] has the broker.", None)
    secrets: Secrets = field(default_factory=Secrets, init=False)
    failures: Collection[BaseException] = field(default=(), init=False)

    def answer(self) -> None:
        """Run, and note why kafka-python could not connect."""
        with _noting_failures() as self.failures:
            super().answer()

    def answer_to(self, error: Exception) -> tuple[str, int] | None:
        """Return a line without secrets, and 1 for what may pass."""
        answer = super().answer_to(error)
        if answer is not None:
            message, code = answer
            return self.secrets.hidden(message), code if isinstance(error, DriftError) else 1
        from drift.consumers.client.errors import KafkaError, is_refusal, known_remedy, remedy

        if not isinstance(error, (KafkaError, ValueError)):
            return None
        # A ValueError of kafka-python's may quote options: no traceback shows it.
        reasons: list[BaseException] = [error]
        if self.failures and _is_about_bootstrap(error):
            # Who hangs up may do so before its reason is read: one of many tries has it.
            reasons.append(max(self.failures, key=is_refusal))
        message = self.secrets.hidden("; ".join(map(_named, reasons)))
        if _is_about_bootstrap(error):
            message += f": {remedy(reasons[1:])}"
        elif what := known_remedy(reasons):
            message += f": {what}"
        return message, 2 if any(map(is_refusal, reasons)) else 1

    def clients(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return kafka-python's options to read with, and to send with."""
        return load_kafka(self.config, os.environ, self.bootstrap, self.secrets)


@contextmanager
def _noting_failures() -> Iterator[deque[BaseException]]:
    """Note why kafka-python could not connect.

    It tries again until its time is up, and says then that it is; the reasons are in its log alone.
    """
    failures: deque[BaseException] = deque(maxlen=100)

    def note(record: logging.LogRecord) -> bool:
        for value in record.args if isinstance(record.args, tuple) else ():
            if isinstance(value, BaseException) and not _is_about_bootstrap(value):
                failures.append(value)
        return True

    logger = logging.getLogger("kafka.net.manager")
    logger.addFilter(note)
    try:
        yield failures
    finally:
        logger.removeFilter(note)


def _is_about_bootstrap(error: BaseException) -> bool:
    return "Unable to bootstrap" in str(error)


def _named(error: BaseException) -> str:
    """Return the text of an error with its class, which kafka-python's texts start with."""
    name = type(error).__name__
    return str(error) if str(error).startswith(name) else f"{name}: {error}"


def send_all(
    rows: Iterable[Outgoing], options: Mapping[str, Any], sent: Callable[[], None] = lambda: None
) -> int:
    """Send records, call `sent` after each, and return how many the broker has confirmed."""
    from drift.consumers.client.producer import Producer

    with Producer(options) as producer:
        for outgoing in rows:
            producer.send(outgoing)
            sent()
        producer.flush()
    return producer.confirmed


def read_secret(file: Path | str | None, secrets: Secrets | None = None) -> bytes | None:
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
