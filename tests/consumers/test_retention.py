"""Which checkpoints are kept, against a rule that is written out for each of them."""

from hypothesis import given
from hypothesis import strategies as st

from drift.consumers.checkpoints.retention import Retention

TEN_MINUTES, HOUR, DAY = 600.0, 3600.0, 86_400.0
NEAR = st.integers(0, 90 * 24 * 12).map(lambda number: 300.0 * number)
RULES = st.builds(
    Retention,
    keep=st.integers(1, 4),
    keep_ten_minutes=st.integers(0, 9),
    keep_hourly=st.integers(0, 30),
    keep_daily=st.integers(0, 9),
)


def twin(rule, times):
    """Ask of each checkpoint whether there is a reason to keep it."""

    def is_last(i):
        behind = [time for time in times[i + 1 :] if time is not None]
        return len(behind) < rule.keep

    def is_last_of(i, length, count):
        if times[i] is None:
            return False
        mine = times[i] // length
        behind = [time // length for time in times[i + 1 :] if time is not None]
        return mine not in behind and len({*behind}) < count

    return {
        i
        for i in range(len(times))
        if is_last(i)
        or is_last_of(i, TEN_MINUTES, rule.keep_ten_minutes)
        or is_last_of(i, HOUR, rule.keep_hourly)
        or is_last_of(i, DAY, rule.keep_daily)
    }


@given(RULES, st.lists(st.none() | NEAR, max_size=60))
def test_each_is_kept_for_a_reason_and_no_other(rule, times):
    assert rule.kept(times) == twin(rule, times)


@given(RULES, st.lists(NEAR, max_size=60).map(sorted))
def test_what_is_kept_does_not_depend_on_how_often_others_are_removed(rule, times):
    left = []
    for time in times:
        left.append(time)
        kept = rule.kept(left)
        left = [one for i, one in enumerate(left) if i in kept]
    assert left == [times[i] for i in sorted(rule.kept(times))]


def test_a_month_of_checkpoints_by_the_minute_is_few():
    kept = Retention().kept([60.0 * minute for minute in range(40 * 24 * 60)])
    # One is the last of its day, hour and ten minutes, and of all.
    assert len(kept) == 24 + 29 + 2 + 5


def test_the_first_hour_can_be_gone_back_to():
    times = [10.0 * n for n in range(360)]
    assert [times[i] for i in sorted(Retention().kept(times))] == [
        *(590.0, 1190.0, 1790.0, 2390.0, 2990.0),
        *(3570.0, 3580.0, 3590.0),
    ]


def test_a_clock_that_was_ahead_for_a_while_takes_no_span_for_ever():
    ahead = [1000 * DAY + HOUR * n for n in range(30)]
    times = [*(HOUR * n for n in range(3)), *ahead, *(HOUR * n for n in range(3, 53))]
    hourly = Retention(keep=1, keep_ten_minutes=0, keep_hourly=24, keep_daily=0)
    assert [times[i] for i in sorted(hourly.kept(times))] == [HOUR * n for n in range(29, 53)]


def test_what_was_replaced_by_hand_is_kept_for_a_day_with_what_replaced_it():
    """The third checkpoint, of a minute past, was made by hand instead of the second."""
    rule = Retention(keep=1, keep_ten_minutes=0, keep_hourly=0, keep_daily=0)
    for seconds, kept in ((DAY - 1, {1, 2, 3}), (DAY, {3})):
        assert rule.kept([0.0, 30.0, 60.0, 60.0 + seconds], [(1, 2)]) == kept
