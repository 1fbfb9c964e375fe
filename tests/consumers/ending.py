"""Workers that are to end by themselves."""

import threading

__all__ = ["run"]


def run(worker, seconds=60):
    """Run a worker that an error is to end; one that goes on is stopped, and raises nothing."""
    timer = threading.Timer(seconds, worker.stop)
    timer.start()
    try:
        worker.run(signals=False)
    finally:
        timer.cancel()
