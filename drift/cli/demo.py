"""Broker, producer, two workers and a kill, in one terminal."""

from __future__ import annotations

import multiprocessing
import tempfile
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from drift import consumers, models, testing
from drift._checks import counted
from drift._options import option
from drift.cli._client import send_all
from drift.cli._command import Command
from drift.cli.produce import paced, pick, rest
from drift.consumers.checkpoints.files import files_in
from drift.consumers.checkpoints.journal import read_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from drift.cli._figure import ErrorFigure
    from drift.consumers.client.topics import Reader
    from drift.streams import ShiftingStream

__all__ = ["Demo"]

_TOPIC, _PREDICTIONS, _LETTERS = "news", "news.predicted", "news.dead"
_PARTITIONS = 2
_ROWS = 4000  # about 4 MiB a partition: the mock cluster drops what is beyond 5
_BUDGET = 150
_SHIFTS = 7
_BEGIN = 100  # examples after a shift
_PATIENCE = 120  # seconds in which something has to come of the workers: one core takes 12 to 43


@dataclass(kw_only=True)
class Demo(Command):
    """Show a worker, a standby and a kill; needs no broker.

    Two workers of one group: the first learns a stream, the second takes over where the first is
    killed. Ends by itself after half a minute, or by Ctrl-C.
    """

    rate: float = option("Examples a second.", 250.0, least=0, above=True)

    def _run(self) -> None:
        stream = pick("newswire", None, _ROWS, _SHIFTS, 0)
        with tempfile.TemporaryDirectory() as folder, testing.MockKafka() as broker:
            broker.create_topic(_TOPIC, _PARTITIONS)
            broker.create_topic(_PREDICTIONS)
            broker.create_topic(_LETTERS)
            _Show(broker, folder, stream).run(self.rate)


def _work(clients: dict[str, Any], folder: str) -> None:
    """Run a worker, in a process of its own."""
    from drift.consumers.client.assignor import LeadAssignor

    consumers.Worker(
        models.LBP(_BUDGET),
        consumers.CheckpointFolder(folder),
        clients,
        _options(),
        consumer={
            "partition_assignment_strategy": [testing.patient_assignor(1.0, of=LeadAssignor())],
            "session_timeout_ms": 2000,
            "heartbeat_interval_ms": 200,
        },
    ).run()


def _options() -> consumers.WorkerOptions:
    return consumers.WorkerOptions(
        topic=_TOPIC,
        group="demo",
        start="earliest",
        predictions=_PREDICTIONS,
        dead_letters=_LETTERS,
        checkpoint_every=500,
        checkpoint_seconds=1.0,
    )


class _Show:
    """The demo while it runs."""

    def __init__(self, broker: testing.MockKafka, folder: str, stream: ShiftingStream) -> None:
        self.broker = broker
        self.folder = folder
        self.stream = stream
        self.workers: list[multiprocessing.process.BaseProcess] = []
        self.events: list[str] = []
        self.mistakes: dict[int, bool] = {}  # by the number of the row
        self.started = time.monotonic()
        self._stopping = threading.Event()

    def run(self, rate: float) -> None:
        from drift.cli._figure import ErrorFigure, drawn
        from drift.consumers.client.topics import Reader

        figure = ErrorFigure()
        sending = threading.Thread(target=self._send, args=(rate,))
        try:
            self._start("learns")
            sending.start()
            with (
                Reader(_PREDICTIONS, self.broker.client_args) as reader,
                drawn(figure),
            ):
                self._follow(reader, figure)
        finally:
            self._stopping.set()
            for worker in self.workers:
                worker.terminate()
            for worker in self.workers:
                worker.join(20)
            if sending.is_alive():
                sending.join()
        self._report(figure)

    def _log(self, event: str) -> None:
        self.events.append(f"{time.monotonic() - self.started:5.1f} s  {event}")

    def _start(self, role: str) -> None:
        # A spawned process shares nothing with this one: it can be killed as any other.
        worker = multiprocessing.get_context("spawn").Process(
            target=_work, args=(self.broker.client_args, self.folder), daemon=True
        )
        worker.start()
        self.workers.append(worker)
        self._log(f"worker {len(self.workers)} started, process {worker.pid}: it {role}")

    def _send(self, rate: float) -> None:
        rows = rest(self.stream, _TOPIC, dict.fromkeys(range(_PARTITIONS), 0))
        confirmed = send_all(paced(rows, rate, self._stopping.wait), self.broker.client_args)
        self._log(f"producer done, {counted(confirmed, 'example')} confirmed")

    def _follow(self, reader: Reader, figure: ErrorFigure) -> None:
        """Draw until every row has its prediction; kill the worker that learns halfway."""
        kill_at, start_at = self.stream.n_samples // 2, self.stream.n_samples * 5 // 8
        killed = taken_over = 0  # number of the claim: before the kill, and after
        end = time.monotonic() + _PATIENCE
        while figure.examples < self.stream.n_samples and time.monotonic() < end:
            for body in figure.add(reader.poll(0.25)):
                self.mistakes[body["id"]] = body["predicted"] != body["label"]
                end = time.monotonic() + _PATIENCE
            if len(self.workers) == 1 and figure.examples:
                # Not before, so that it is the first which learns.
                self._start("stands by")
            elif killed and not taken_over and self._claims() > killed:
                taken_over = self._claims()
                self._log(f"worker 2 takes over, {figure.examples:,} examples so far")
            elif len(self.workers) == 2 and taken_over and figure.examples >= start_at:
                self._start("stands by")
            elif figure.examples >= kill_at and not killed:
                self.workers[0].kill()
                self.workers[0].join()
                killed = self._claims()
                self._log(f"worker 1 killed by SIGKILL, {figure.examples:,} examples so far")
        self._log(f"{figure.examples:,} of {self.stream.n_samples:,} examples predicted")

    def _claims(self) -> int:
        """Return the number of takeovers, the first start included."""
        files = files_in(consumers.CheckpointFolder(self.folder).folder((_TOPIC, None)))
        return max(files.listing().epochs, default=0)

    def _report(self, figure: ErrorFigure) -> None:
        """Print what happened."""
        again = sum(partition.again for partition in figure.partitions.values())
        lines = [
            *self.events,
            f"{again:,} predictions were sent again, and counted once",
            f"the model is that of a plain loop over the topic, in its order: {self._is_exact()}",
            "error by target:",
            *self._errors(),
        ]
        click.echo("\n".join(lines))

    def _errors(self) -> Iterator[str]:
        """Yield a line for each chunk of the stream: its error, and that of its first examples."""
        size = self.stream.chunk_size
        for number, target in enumerate(self.stream.targets):
            rows = range(number * size, (number + 1) * size)
            known = [self.mistakes[row] for row in rows if row in self.mistakes]
            begin, rest = known[:_BEGIN], known[_BEGIN:]
            yield (
                f"  {target:<12} {_share(known)}, {_share(begin)} in the first {_BEGIN} examples "
                f"and {_share(rest)} after"
            )

    def _is_exact(self) -> bool:
        """Whether the newest checkpoint's model equals that of an uninterrupted loop."""
        from drift.cli._relearn import logs_of
        from drift.models._state.codec import encode

        folder, place = consumers.CheckpointFolder(self.folder), (_TOPIC, None)
        newest = folder.newest(place)
        if newest is None:
            return False
        order = read_order(folder.folder(place), newest.id)
        with logs_of(order, self.broker.client_args) as logs:
            plain, _ = consumers.relearn(models.LBP(_BUDGET), logs, order, _options())
        return encode(newest.model) == encode(plain.model)


def _share(mistakes: list[bool]) -> str:
    return f"{sum(mistakes) / len(mistakes):5.1%}" if mistakes else "    -"
