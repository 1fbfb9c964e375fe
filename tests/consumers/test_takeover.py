"""A takeover, and how it ends where its partitions go."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from drift.consumers import takeover
from drift.consumers.metrics import WorkerMetrics
from drift.consumers.records import ClaimId
from drift.consumers.takeover import TakeOver


@pytest.fixture
def one():
    source = Mock()
    source.reread.return_value = (["a", "b"], 7)
    return TakeOver(ClaimId("t", None), source, WorkerMetrics())


@pytest.fixture
def thread():
    with ThreadPoolExecutor(1) as executor:
        yield executor


def test_it_says_how_far_it_is_now_and_then(one, monkeypatch, caplog):
    caplog.set_level("INFO")
    assert one.reread(("t", 3), 5) == (["a", "b"], 7)
    for seconds in (9.5, 10.25, 19.5, 21.0):
        clock = SimpleNamespace(monotonic=lambda at=one._began + seconds: at)
        monkeypatch.setattr(takeover, "time", clock)
        one.say()
    assert one.seconds == pytest.approx(21.0)
    said = "t is being taken over for {} s, has read t:3 again up to offset 7"
    assert caplog.messages == [said.format(10), said.format(21)]
    assert one._metrics.reread == 2


def test_a_partition_of_its_own_is_named():
    other = TakeOver(ClaimId("t", 4), Mock(), WorkerMetrics())
    assert str(other).startswith("t:4 is being taken over for 0 s")


def test_what_reads_again_ends_as_it_is_abandoned(one, thread):
    begun = Event()

    def take_over(self):
        while True:
            self.reread(("t", 0), 0)
            begun.set()

    one.begin(thread, take_over)
    assert begun.wait(10)
    one.abandon()
    with pytest.raises(takeover._AbandonedError):
        one.loading.result(10)


@pytest.mark.parametrize("is_done", [True, False])
def test_a_learner_that_nobody_takes_is_closed(one, thread, is_done):
    learner, begun, go, closed = Mock(), Event(), Event(), Event()
    learner.close.side_effect = closed.set

    def take_over(_):
        begun.set()
        assert go.wait(10)
        return learner

    one.begin(thread, take_over)
    assert begun.wait(10)
    if is_done:
        go.set()
        assert one.loading.result(10) is learner
    one.abandon()
    go.set()
    assert closed.wait(10)


def test_one_that_has_not_begun_never_does(one, thread):
    go, other = Event(), Mock()
    thread.submit(go.wait, 10)
    one.begin(thread, other)
    one.abandon()
    go.set()
    thread.shutdown()
    other.assert_not_called()
    assert one.loading.cancelled()
