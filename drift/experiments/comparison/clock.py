"""When examples and their labels come: from names, functions and spans to numbers for each row."""

from __future__ import annotations

import datetime as dt
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from drift._durations import seconds_of
from drift._values import number, seconds_since_1970
from drift.errors import ParameterError, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from drift.streams.stream import Stream

__all__ = ["column_of", "delays_of", "described", "lateness", "timed"]


def described(clock: Any) -> str:
    """Say what a moment or a delay is."""
    if hasattr(clock, "rvs"):
        drawn = [*map(repr, clock.args), *(f"{k}={v!r}" for k, v in clock.kwds.items())]
        return f"{clock.dist.name}({', '.join(drawn)})"
    return getattr(clock, "__name__", None) or str(clock)


def lateness(settings: Mapping[str, Any]) -> str:
    """Say when labels come, by the settings of a comparison.

    Examples
    --------
    >>> from drift.experiments.comparison.clock import lateness
    >>> lateness({"delay": "100", "moment": None}), lateness({"delay": "2 days", "moment": "day"})
    ('100 rows late', '2 days late')
    >>> lateness({"delay": None, "moment": None})
    'at once'
    """
    delay, unit = settings["delay"], "rows" if settings["moment"] is None else "seconds"
    if delay is None:
        return "at once"
    try:
        count = float(delay)
    except ValueError:
        return f"{delay} late" if seconds_of(delay) is not None else f"late: {delay}"
    return f"{count:,.10g} {unit[:-1] if count == 1 else unit} late"


def column_of(delay: Any) -> str | None:
    """Return the name that a delay is; None where it is a span, a distribution or a function.

    Examples
    --------
    >>> from drift.experiments.comparison.clock import column_of
    >>> column_of("paid_at"), column_of("2 days"), column_of(3)
    ('paid_at', None, None)
    """
    return delay if isinstance(delay, str) and seconds_of(delay) is None else None


def timed(stream: Stream, moment: Any, delay: Any) -> Stream:
    """Return a stream with its moments and the delays that each example has, sorted by moment.

    Parameters
    ----------
    stream
        What it has of both by itself stays: then these may only be the names of the columns that
        it was read from.
    moment, delay
        As of `drift.experiments.compare`. A feature that is a delay is none afterwards, as nobody
        knows it before the label. A moment stays a feature.

    Raises
    ------
    ParameterError
        An example has no such feature, or one that is neither a number nor a time; or the stream
        has moments or delays, and other features or a function say what they are.

    Warns
    -----
    RuntimeWarning
        Examples were sorted, or no label is late for all the delay.
    """
    named = column_of(delay)
    for what, clock, known in (
        ("moment", moment, stream.moments),
        ("delay", delay if _by_row(delay) else None, stream.delays),
    ):
        if known is not None and (callable(clock) or clock in stream.features):
            raise ParameterError(
                f"{stream.name} has {what}s of its own: leave {what} out, or give a stream without"
            )
    if stream.moments is None and moment is not None:
        ask = moment if callable(moment) else _feature(stream, str(moment), "moment")
        stream = replace(stream, moments=_numbers(stream, "moment", lambda x, _: ask(x)))
    if stream.delays is None and named is not None:
        late = _feature(stream, named, "delay")
        delays = _numbers(stream, "delay", lambda x, _: late(x))
        examples = [({k: v for k, v in x.items() if k != named}, y) for x, y in stream]
        stream = replace(stream, examples=examples, delays=delays)
    elif stream.delays is None and _by_row(delay):
        delays = _numbers(stream, "delay", delay)
        stream = replace(stream, delays=delays)
    ordered = stream.by_moment()
    notes = list(ordered.notes[len(stream.notes) :])
    waits, rows = ordered.delays, len(ordered)
    if _is_soon(ordered, delay):
        notes.append(
            "no label is late: each comes before the next row does; numbers beside a moment are "
            "seconds"
        )
    elif ordered.moments is None and waits is not None and waits.min() >= rows:
        notes.append(
            f"each label comes {waits.min():,.10g} rows late or more, and there are {rows:,}: "
            "beside a moment (moment=, --moment) such numbers are seconds"
        )
    if notes:
        ordered = replace(ordered, notes=(*stream.notes, *notes))
    for note in notes:
        warnings.warn(f"{stream.name}: {note}", RuntimeWarning, stacklevel=4)
    return ordered


def _is_soon(stream: Stream, delay: Any) -> bool:
    """Whether labels are delayed, and each comes before the moment of the next row all the same."""
    moments, delays = stream.moments, delays_of(stream, delay)
    if moments is None or delays is None or not delays[:-1].any():
        return False
    return bool((moments[:-1] + delays[:-1] <= moments[1:]).all())


def delays_of(stream: Stream, delay: Any) -> NDArray[np.float64] | None:
    """Return the delay of each example, in the unit of the moments; None: labels come at once.

    Parameters
    ----------
    stream
        As `timed` returns it.
    delay
        As of `drift.experiments.compare`.

    Raises
    ------
    ParameterError
        The delay is negative or not finite, or is a span of time and there are no moments.
    """
    if stream.delays is not None and (delay is None or _by_row(delay)):
        return stream.delays
    if delay is None:
        return None
    if hasattr(delay, "rvs"):
        try:
            delays = np.asarray(delay.rvs(size=len(stream), random_state=0), dtype=np.float64)
        except ValueError as error:
            raise ParameterError(
                f"no delay can be drawn from {described(delay)} ({error}): give it other parameters"
            ) from None
    else:
        delays = np.full(len(stream), _span(delay, stream))
    least = delays[np.argmin(delays)]  # NaN is the least
    if least < 0 or not np.isfinite(delays).all():
        of = f" (of {described(delay)})" if hasattr(delay, "rvs") else ""
        raise ParameterError(f"delay must be at least 0 and finite, not {least:g}{of}")
    return delays


def _by_row(delay: Any) -> bool:
    return column_of(delay) is not None or (callable(delay) and not hasattr(delay, "rvs"))


def _span(delay: Any, stream: Stream) -> float:
    """A number of examples or seconds."""
    seconds = seconds_of(delay) if isinstance(delay, str) else _seconds(delay, spans=True)
    if seconds is None or isinstance(delay, bool | np.bool_):
        raise ParameterError(
            f"delay {delay!r} is no time: give a number, a span such as '2 days' or "
            "datetime.timedelta(days=2), a column, a function or a distribution of SciPy's"
        )
    if stream.moments is None and isinstance(delay, str | dt.timedelta | np.timedelta64):
        raise ParameterError(
            f"delay {described(delay)} is a span of time, and {stream.name} has no moments: name "
            "the column of the times at which examples come (moment=, --moment), or give a number "
            "of examples"
        )
    return seconds


def _feature(stream: Stream, name: str, what: str) -> Callable[[Any], Any]:
    def feature(x: Any) -> Any:
        try:
            return x[name]
        except KeyError:
            others = ", a number of examples or 'geom(p=0.01)'" if what == "delay" else ""
            raise ParameterError(
                f"{stream.name} has an example without {name!r}: give a {what} that every example "
                f"has{others}"
            ) from None

    return feature


def _numbers(stream: Stream, what: str, ask: Callable[[Any, Any], Any]) -> NDArray[np.float64]:
    """Numbers, and times or, as delays, spans of time as numbers."""
    numbers, zones, spans = [], set(), what == "delay"
    for row, (x, y) in enumerate(stream):
        try:
            value = ask(x, y)
        except ParameterError:
            raise
        except Exception as error:
            given = "features and label" if spans else "features"
            raise ParameterError(
                f"{stream.name}: the function for the {what} fails on example {row} "
                f"({one_line(f'{type(error).__name__}: {error}')}): it gets the {given}, and "
                "times of a table are no features: name their column instead"
            ) from error
        seconds = _seconds(value, spans=spans)
        if seconds is None:
            kind = "span of time" if spans else "time"
            raise ParameterError(
                f"{stream.name}: the {what} of example {row} is {value!r:.80}: it must be a number "
                f"or a {kind}"
            )
        if isinstance(value, dt.timedelta | np.timedelta64) and stream.moments is None:
            raise ParameterError(
                f"{stream.name}: the delay of example {row} is a span of time, {value!r:.80}: give "
                "a moment, too, or a number of examples"
            )
        zones.add(value.tzinfo is not None if isinstance(value, dt.datetime) else None)
        numbers.append(seconds)
    if len(zones) > 1:
        raise ParameterError(
            f"{stream.name}: its {what}s are of several kinds, numbers and times, or times with "
            "and without a zone: make them one"
        )
    return np.array(numbers, dtype=np.float64)


def _seconds(value: Any, *, spans: bool) -> float | None:
    """Return a number, or a time or a span of time in seconds; None for what is none of them."""
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, np.timedelta64):
        value = value.astype("timedelta64[us]").item()
    if isinstance(value, dt.timedelta):
        return value.total_seconds() if spans else None
    if isinstance(value, dt.date):
        return None if spans else seconds_since_1970(value)
    try:
        return number(value)
    except (TypeError, ValueError, OverflowError):
        return None
