"""Time and memory of a run, by hand, on clocks that the test sets."""

from contextlib import suppress
from types import SimpleNamespace

import pytest

from drift.experiments.comparison import meter
from drift.experiments.comparison.meter import Meter, TimeUpError


@pytest.fixture
def clocks(monkeypatch):
    """Seconds on the wall and of the processor."""
    clocks = SimpleNamespace(wall=100.0, cpu=50.0)
    times = {"perf_counter": lambda: clocks.wall, "process_time": lambda: clocks.cpu}
    monkeypatch.setattr(meter, "time", SimpleNamespace(**times))
    return clocks


def test_time_is_that_of_the_processor(clocks):
    """Of 10 s the processor had 4 for the window, and the model was busy for half of them."""
    measured = Meter(3)
    with measured.window(0):
        clocks.wall += 10
        clocks.cpu += 4
        measured.busy += 5
    with suppress(ValueError), measured.window(1):
        clocks.wall += 2
        clocks.cpu += 2
        measured.busy += 1
        raise ValueError
    assert measured.seconds == [2.0, 1.0, 0.0]


def test_a_look_at_the_memory_takes_a_tenth_of_the_time_or_less(clocks, monkeypatch):
    """A look takes 1 s and a window 4, so the next one is after 12 s, and one at the end."""
    sizes = iter([10, 40, 30, 7])

    def memory(_):
        clocks.wall += 1
        return next(sizes)

    monkeypatch.setattr(meter, "memory", memory)
    measured = Meter(4)
    for number in range(4):
        with measured.window(number):
            clocks.wall += 4
            clocks.cpu += 4
            measured.busy += 4
        measured.weigh(number, None)
    assert measured.bytes == [10, None, 40, 30]
    assert measured.largest(None) == 40
    assert Meter(4).largest(None) == 7  # of a run that has not come to the end of a window


def test_the_limit_is_of_the_processor(clocks):
    """At the deadline on the wall 3 of 5 s are used: it is put off by the other 2."""
    measured = Meter(1, limit=5.0)
    assert measured.deadline == 105.0
    clocks.wall, clocks.cpu = 105.5, 53.0
    measured.check(clocks.wall)
    assert measured.deadline == 107.5
    clocks.wall, clocks.cpu = 108.0, 55.0
    with pytest.raises(TimeUpError, match="more than 5 s"):
        measured.check(clocks.wall)
    assert Meter(1).deadline == float("inf")
