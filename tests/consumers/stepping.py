"""Workers that are stepped until something is true of them, or run until an error ends them."""

import threading
import time

__all__ = [
    "SESSION",
    "claim_of",
    "close",
    "kill",
    "learner_of",
    "offsets",
    "run",
    "until",
]

#: Milliseconds. The mock cluster leaves a member a second less to agree on partitions, which a busy
#: machine needs, and has whoever comes into a group after somebody else wait as long.
SESSION = 8000


def until(worker, done, seconds=60):
    """Step a worker until `done()`, for so long at most."""
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, offsets(worker)
        worker.step(0.1)


def claim_of(worker):
    """The claim of a worker of one model; None where it has none."""
    return next(iter(worker._claims.values()), None)


def learner_of(worker):
    """The learner of a worker of one model; None where it has none."""
    return claim_of(worker) and claim_of(worker).learner


def offsets(worker):
    """How far a worker has learnt each partition; nothing where it has no model."""
    return {} if learner_of(worker) is None else learner_of(worker).offsets


def close(worker):
    """Have a worker save what it has and let go of its clients."""
    worker.stop()
    worker.run(signals=False)


def kill(worker):
    """Let go of the clients; what the producer has not sent is lost, as in a kill."""
    from drift.consumers.client.workarounds import force_close  # noqa: PLC0415 - needs kafka-python

    worker._claims.clear()  # or it is saved as the client leaves its group
    force_close(worker._producer.producer, 10)  # to close it would flush it first
    worker._writer.shutdown()
    worker._taker.shutdown()
    worker._consumer.close()


def run(worker, seconds=60):
    """Run a worker that an error is to end; one that continues is stopped, and raises nothing."""
    timer = threading.Timer(seconds, worker.stop)
    timer.start()
    try:
        worker.run(signals=False)
    finally:
        timer.cancel()
