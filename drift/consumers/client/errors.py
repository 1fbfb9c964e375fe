"""The meaning of kafka-python's errors, in one table.

==================  ===============================================  ==============================
what                which                                            what becomes of it
==================  ===============================================  ==============================
refused             settings or rights, by client or broker          ends a worker, exit code 2
passing             what kafka-python calls retriable                tried again for the patience,
                                                                     then `UnavailableError`, 1
unreadable          a damaged message, a codec that is missing       `ConsumerError`, 2
gone                offsets or leader epochs that the log lacks      `Gap`: see `WorkerOptions`
anything else                                                        ends a worker, exit code 1
==================  ===============================================  ==============================
"""

from __future__ import annotations

import ssl
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kafka import errors
from kafka.errors import KafkaError

from drift._checks import check_choice
from drift.consumers.records import PROTOCOLS
from drift.errors import ConsumerError, ParameterError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

__all__ = [
    "GONE",
    "UNREADABLE",
    "KafkaError",
    "asking",
    "check_partition",
    "is_refusal",
    "known_remedy",
    "making_clients",
    "missing",
    "remedy",
    "truncated",
]

_REFUSED = (
    errors.AuthorizationError,
    errors.InconsistentGroupProtocolError,
    errors.IllegalSaslStateError,
    errors.InvalidGroupIdError,
    errors.InvalidPartitionsError,
    errors.InvalidSessionTimeoutError,
    errors.InvalidTopicError,
    errors.KafkaConfigurationError,
    errors.PolicyViolationError,
    errors.SaslAuthenticationFailedError,
    errors.UnsupportedSaslMechanismError,
)
_REMEDIES = {
    errors.SaslAuthenticationFailedError: (
        "check the login, such as sasl_plain_username and sasl_plain_password in [kafka]"
    ),
    errors.UnsupportedSaslMechanismError: (
        "set sasl_mechanism in [kafka] to one that the listener has"
    ),
    errors.InconsistentGroupProtocolError: (
        "another member of the group assigns partitions in another way: it is no worker of "
        "drift, or only one of the two has --keyed. Stop it, or give another --group"
    ),
    errors.GroupAuthorizationFailedError: (
        "grant this user Read on the group, or give another --group"
    ),
    errors.TopicAuthorizationFailedError: (
        "grant this user Read on topics that are read, and Write on those that are sent to"
    ),
    errors.InvalidSessionTimeoutError: (
        "set session_timeout_ms in [consumer] between the broker's group.min.session.timeout.ms "
        "and group.max.session.timeout.ms"
    ),
    errors.IllegalSaslStateError: (
        "this listener takes no login: set security_protocol in [kafka] to PLAINTEXT or SSL, or "
        "give the address of one that does by --bootstrap"
    ),
}
#: Errors of a poll whose messages cannot be read, and of one at offsets that the log lacks.
UNREADABLE = (errors.CorruptRecordError, errors.UnsupportedCodecError)
GONE = (errors.OffsetOutOfRangeError, errors.LogTruncationError)


def is_refusal(error: BaseException | None) -> bool:
    """Whether an error is of settings or rights, so that a retry cannot help.

    Examples
    --------
    >>> is_refusal(errors.SaslAuthenticationFailedError("no")), is_refusal(KafkaError("timed out"))
    (True, False)
    """
    # A certificate of ours that cannot be used; of a handshake that fails, the broker's alone.
    reason = getattr(error, "__context__", None)
    return isinstance(error, (*_REFUSED, ssl.SSLError)) or isinstance(
        reason, ssl.SSLCertVerificationError
    )


def remedy(reasons: Iterable[BaseException]) -> str:
    """Return the remedy for a failed connection, by the errors of the attempts.

    Examples
    --------
    >>> remedy([errors.UnsupportedSaslMechanismError()])
    'set sasl_mechanism in [kafka] to one that the listener has'
    >>> remedy([errors.KafkaConnectionError("111 ECONNREFUSED")])
    'start the broker, or give its address by --bootstrap'
    """
    reasons = list(reasons)
    if what := known_remedy(reasons):
        return what
    there = "start the broker, or give its address by --bootstrap"
    if any("ECONNREFUSED" in str(error) for error in reasons):
        return there
    return (
        f"{there}; if it is there, its listener may want another security_protocol "
        f"({', '.join(PROTOCOLS)}) or a login, sasl_mechanism and what that takes: set them in "
        "[kafka]"
    )


def known_remedy(reasons: Iterable[BaseException]) -> str:
    """Return the remedy for errors that have one of their own, else nothing.

    Examples
    --------
    >>> known_remedy([errors.InvalidSessionTimeoutError()])
    "set session_timeout_ms in [consumer] between the broker's group.min.session.timeout.ms and ..."
    """
    reasons = list(reasons)
    for kind, what in _REMEDIES.items():
        if any(isinstance(error, kind) for error in reasons):
            return what
    return ""


def missing(topic: str) -> str:
    """Say that a topic does not exist, as far as the broker tells this user.

    Examples
    --------
    >>> missing("news")
    'there is no topic news, or this user may not see it'
    """
    return f"there is no topic {topic}, or this user may not see it"


def truncated(topic: str, partition: int, offset: int) -> ConsumerError:
    """Return the error of a log that is another one than what was read of it.

    Examples
    --------
    >>> print(truncated("news", 2, 40))
    news:2 was read up to 40, and is another log now: it was truncated or recreated. Start ...
    """
    return ConsumerError(
        f"{topic}:{partition} was read up to {offset}, and is another log now: it was truncated or "
        "recreated. Start again, from its beginning"
    )


def check_partition(topic: str, partition: int | None, numbers: Collection[int]) -> None:
    """Refuse a partition that a topic does not have; None is all of them.

    Examples
    --------
    >>> check_partition("news", 2, [0, 1])
    Traceback (most recent call last):
    drift.errors.ConsumerError: news has no partition 2, it has 2: give one below that, or leave ...
    """
    if partition is not None and partition not in numbers:
        raise ConsumerError(
            f"{topic} has no partition {partition}, it has {len(numbers)}: give one below that, or "
            "leave --partition out to learn them all"
        )


@contextmanager
def asking(kind: Callable[[str], UnavailableError] = UnavailableError) -> Iterator[None]:
    """Turn retriable errors into an UnavailableError, or what `kind` makes of the text.

    Examples
    --------
    >>> with asking():
    ...     raise errors.KafkaTimeoutError("no answer in 5 s")
    Traceback (most recent call last):
    drift.errors.UnavailableError: the broker does not answer (KafkaTimeoutError: no answer ...)
    """
    try:
        yield
    except KafkaError as error:
        if not error.retriable:
            raise
        raise kind(f"the broker does not answer ({error})") from error


@contextmanager
def making_clients(*options: Mapping[str, Any]) -> Iterator[None]:
    """Turn kafka-python's errors about options into a ParameterError.

    Examples
    --------
    >>> import kafka
    >>> options = {"fetch_max_wait_ms": 9, "request_timeout_ms": 5}
    >>> with making_clients(options):
    ...     kafka.KafkaConsumer(**options)
    Traceback (most recent call last):
    drift.errors.ParameterError: kafka-python refuses its options: KafkaConfigurationError: ...
    """
    for protocol in (option.get("security_protocol", PROTOCOLS[0]) for option in options):
        check_choice("security_protocol", protocol, PROTOCOLS)
    try:
        yield
    except errors.KafkaConfigurationError as error:  # whose text starts with its class
        raise ParameterError(f"kafka-python refuses its options: {error}") from error
    # A codec whose library is missing is a RuntimeError.
    except (AssertionError, RuntimeError, TypeError, ValueError) as error:
        raise ParameterError(
            f"kafka-python refuses its options: {type(error).__name__}: {error}"
        ) from error
