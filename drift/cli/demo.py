"""Broker, producer, two workers and a kill, in one terminal."""

from __future__ import annotations

import multiprocessing
import tempfile
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from drift._checks import counted
from drift._options import option
from drift.cli._client import send_all
from drift.cli._command import Command
from drift.cli.produce import messages, paced, pick, rest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from drift.cli._figure import ErrorFigure
    from drift.consumers.client.topics import Reader
    from drift.streams import ShiftingStream
    from drift.testing import MockKafka

__all__ = ["Demo"]

_TOPIC, _PREDICTIONS = "news", "news.predicted"
_PARTITIONS = 2
_ROWS = 4000  # about 4 MiB a partition: the mock cluster drops what is beyond 5
_BUDGET = 150
_SHIFTS = 7
_BEGIN = 100  # examples after a shift
_PATIENCE = 120  # seconds in which something has to come of the workers: one core takes 12 to 43


@dataclass(kw_only=True)
class Demo(Command):
    """Show two workers that learn a stream, and what happens when one is killed; needs no broker.

    Ends by itself after half a minute, or by Ctrl-C.
    """

    rate: float = option("Examples a second.", 250.0, least=0, above=True)

    def _run(self) -> None:
        from drift.testing import MockKafka  # noqa: PLC0415

        stream = pick("newswire", None, _ROWS, _SHIFTS, 0)
        with tempfile.TemporaryDirectory() as folder, MockKafka() as broker:
            broker.create_topic(_TOPIC, _PARTITIONS)
            broker.create_topic(_PREDICTIONS)
            _Show(broker, folder, stream).run(self.rate)


def _work(clients: dict[str, Any], folder: str) -> None:
    """Be a worker; in a process of its own."""
    from drift.consumers import CheckpointFolder, Worker, WorkerOptions  # noqa: PLC0415
    from drift.models import LBP  # noqa: PLC0415
    from drift.testing import patient_assignor  # noqa: PLC0415

    Worker(
        LBP(_BUDGET),
        CheckpointFolder(folder),
        clients,
        WorkerOptions(
            topic=_TOPIC,
            group="demo",
            start="earliest",
            predictions=_PREDICTIONS,
            checkpoint_every=500,
            checkpoint_seconds=1.0,
        ),
        consumer={
            "partition_assignment_strategy": [patient_assignor(1.0)],
            "session_timeout_ms": 2000,
            "heartbeat_interval_ms": 200,
        },
    ).run()


class _Show:
    """The demo while it runs."""

    def __init__(self, broker: MockKafka, folder: str, stream: ShiftingStream) -> None:
        self.broker = broker
        self.folder = folder
        self.stream = stream
        self.workers: list[multiprocessing.process.BaseProcess] = []
        self.events: list[str] = []
        self.mistakes: dict[int, bool] = {}  # by the number of the row
        self.started = time.monotonic()
        self._stopping = threading.Event()

    def run(self, rate: float) -> None:
        from drift.cli._figure import ErrorFigure, drawn  # noqa: PLC0415
        from drift.consumers.client.topics import Reader  # noqa: PLC0415

        figure = ErrorFigure()
        sending = threading.Thread(target=self._send, args=(rate,))
        try:
            self._start()
            self._start()
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
            sending.join()
        self._tell(figure)

    def _say(self, event: str) -> None:
        self.events.append(f"{time.monotonic() - self.started:5.1f} s  {event}")

    def _start(self) -> None:
        # A spawned process shares nothing with this one: it can be killed as any other.
        worker = multiprocessing.get_context("spawn").Process(
            target=_work, args=(self.broker.client_args, self.folder)
        )
        worker.start()
        self.workers.append(worker)
        self._say(f"worker {len(self.workers)} started, process {worker.pid}")

    def _send(self, rate: float) -> None:
        rows = rest(self.stream, _TOPIC, dict.fromkeys(range(_PARTITIONS), 0))
        confirmed = send_all(paced(rows, rate, self._stopping.wait), self.broker.client_args)
        self._say(f"producer done, {counted(confirmed, 'example')} confirmed")

    def _follow(self, reader: Reader, figure: ErrorFigure) -> None:
        """Draw until every row has its prediction; kill a worker halfway, then start another."""
        kill_at, start_at = self.stream.n_samples // 2, self.stream.n_samples * 5 // 8
        end = time.monotonic() + _PATIENCE
        while figure.examples < self.stream.n_samples and time.monotonic() < end:
            for body in figure.add(reader.poll(0.25)):
                self.mistakes[body["id"]] = body["predicted"] != body["label"]
                end = time.monotonic() + _PATIENCE
            if len(self.workers) == 2 and figure.examples >= start_at:
                self._start()
            elif figure.examples >= kill_at and self.workers[0].is_alive():
                self.workers[0].kill()
                self.workers[0].join()
                self._say(f"worker 1 killed by SIGKILL, {figure.examples:,} examples so far")
        self._say(f"{figure.examples:,} of {self.stream.n_samples:,} examples predicted")

    def _tell(self, figure: ErrorFigure) -> None:
        """Print what happened."""
        again = sum(partition.again for partition in figure.partitions.values())
        lines = [
            *self.events,
            f"{again:,} predictions were sent again after the kill, and counted once",
            f"models as a plain loop over each partition learns them: {self._same()}",
            "error by target:",
            *self._errors(),
        ]
        click.echo("\n".join(lines))

    def _errors(self) -> Iterator[str]:
        """Yield a line for each chunk of the stream: its error as a whole, and when it began."""
        size = self.stream.chunk_size
        for number, target in enumerate(self.stream.targets):
            rows = range(number * size, (number + 1) * size)
            known = [self.mistakes[row] for row in rows if row in self.mistakes]
            begin, rest = known[:_BEGIN], known[_BEGIN:]
            yield (
                f"  {target:<12} {_share(known)}, {_share(begin)} in the first {_BEGIN} examples "
                f"and {_share(rest)} after"
            )

    def _same(self) -> bool:
        """Whether the checkpoints' models are those of a loop that nobody killed."""
        from drift.consumers import CheckpointFolder, JsonCodec  # noqa: PLC0415
        from drift.consumers.checkpoints.state import encode  # noqa: PLC0415
        from drift.models import LBP  # noqa: PLC0415

        plain = [LBP(_BUDGET) for _ in range(_PARTITIONS)]
        newest = [CheckpointFolder(self.folder).newest((_TOPIC, p)) for p in range(_PARTITIONS)]
        ends = [0 if one is None else one.offsets[_TOPIC, p] for p, one in enumerate(newest)]
        codec = JsonCodec()
        for row, value in enumerate(messages(self.stream)):
            turn, number = divmod(row, _PARTITIONS)
            if turn < ends[number]:
                example = codec.decode(value)
                plain[number].learn_one(example.features, example.label)
        return all(
            one is not None and encode(one.model) == encode(plain[number])
            for number, one in enumerate(newest)
        )


def _share(mistakes: list[bool]) -> str:
    return f"{sum(mistakes) / len(mistakes):5.1%}" if mistakes else "    -"
