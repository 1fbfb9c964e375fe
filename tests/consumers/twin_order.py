"""The order of logs that are wholly there, from the words of docs/one_model.md: by sorting."""

from itertools import accumulate

__all__ = ["in_time", "times"]

HOUR = 3_600_000


def times(stamps, jump=HOUR):
    """The times of a partition's records: the latest timestamp except for jumps of one record."""
    result, doubted = [], None  # the timestamp of the record before, where it was not believed
    for stamp in stamps:
        time = result[-1] if result else -1
        if time < 0 or stamp < 0 or abs(stamp - time) <= jump:  # -1: it has none
            time, doubted = max(time, stamp), None
        elif doubted is not None and (doubted > time) == (stamp > time):
            # Two in a row say so; as far as both do.
            time, doubted = min(doubted, stamp, key=lambda one: abs(one - result[-1])), None
        else:
            doubted = stamp
        result.append(time)
    return result


def in_time(logs):
    """The order of logs that are wholly there.

    Of the next records the least is next. So a record whose time falls back comes right after the
    one before it, and what is sorted by is the latest time so far.
    """
    rows = []
    for (topic, partition), log in logs.items():
        latest = accumulate(times([message.time for message in log]), max)
        rows += [
            ((time, topic == "l", topic, partition), n, message)
            for n, (time, message) in enumerate(zip(latest, log, strict=True))
        ]
    return [message for _, _, message in sorted(rows, key=lambda row: row[:2])]
