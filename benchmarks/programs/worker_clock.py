"""Time of a worker's process by step: decode, learner, publish, client, checkpoint.

Each step is a few methods that get a clock around them. What is counted is time of the processor,
which other processes on the machine do not add to.
"""

from __future__ import annotations

import inspect
import threading
import time
from functools import wraps
from typing import Any

from drift.consumers.client.consumer import GroupConsumer
from drift.consumers.client.producer import Producer
from drift.consumers.json_codec import JsonCodec
from drift.consumers.learner import Learner
from drift.consumers.worker import Worker
from drift.models import Tracker

__all__ = ["Clock"]

#: Methods by step. What one calls of another step counts there.
STEPS: dict[str, list[tuple[type, str]]] = {
    "decode": [(JsonCodec, "decode")],
    "learner": [(Tracker, name) for name in ("answer_one", "predict_one", "learn_one")],
    "publish": [(Learner, "_predict"), (Producer, "send"), (Producer, "flush")],
    "client": [(GroupConsumer, "poll"), (GroupConsumer, "lag")],
    "checkpoint": [(Worker, "_save")],
}
#: Parts of the names of kafka-python's threads, by the step that they work for.
THREADS = {"network-thread": "publish", "kafka-io": "client"}


class Clock:
    """Counts from when it is made, in the thread that makes it and in kafka-python's."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = dict.fromkeys((*STEPS, "rest"), 0.0)
        self.step, self.since = "rest", time.thread_time()
        self.others = self._others()
        for step, methods in STEPS.items():
            for owner, name in methods:
                setattr(owner, name, self._timed(getattr(owner, name), step))

    def shares(self) -> dict[str, float]:
        """Share of each step, the rest with them."""
        self._switch("rest")
        for step, seconds in self._others().items():
            self.seconds[step] += seconds - self.others[step]
        whole = sum(self.seconds.values())
        return {step: self.seconds[step] / whole for step in (*STEPS, "rest")}

    def _others(self) -> dict[str, float]:
        seconds: dict[str, float] = dict.fromkeys((*STEPS, "rest"), 0.0)
        for thread in threading.enumerate():
            for part, step in THREADS.items():
                if part in thread.name and thread.ident is not None:
                    clock = time.pthread_getcpuclockid(thread.ident)
                    seconds[step] += time.clock_gettime(clock)
        return seconds

    def _switch(self, step: str) -> str:
        now = time.thread_time()
        self.seconds[self.step] += now - self.since
        before, self.step, self.since = self.step, step, now
        return before

    def _timed(self, method: Any, step: str) -> Any:
        whole = list if inspect.isgeneratorfunction(method) else lambda result: result

        @wraps(method)
        def timed(*arguments: Any, **keywords: Any) -> Any:
            before = self._switch(step)
            try:
                return whole(method(*arguments, **keywords))
            finally:
                self._switch(before)

        return timed
