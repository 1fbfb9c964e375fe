"""A real Apache Kafka broker on this machine: one node in KRaft mode, for tests and for trying out.

::

    python tools/kafka/broker.py fetch     # Maven collects the jars, once; start does it, too
    python tools/kafka/broker.py start     # prints host:port when it answers
    python tools/kafka/broker.py status
    python tools/kafka/broker.py stop      # and deletes its data; --keep leaves them to a start

It needs Java 17 and, to fetch, Maven (Debian: ``apt-get install -y --no-install-recommends
openjdk-17-jre-headless maven``), and listens on 127.0.0.1 only. It runs before anything is
installed.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Self

__all__ = ["Broker", "BrokerError", "fetch", "fetched", "free_ports", "main"]

POM = Path(__file__).with_name("pom.xml")
INSTALL = "apt-get install -y --no-install-recommends openjdk-17-jre-headless maven"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
#: Base64 of sixteen bytes, as Kafka wants it. The brokers of this script never meet each other.
CLUSTER = "ZHJpZnQtdGVzdC1icm9rZQ"

#: Internal topics of one partition and few threads, as all of it runs on a tester's machine.
PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={data}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
num.network.threads=2
num.io.threads=2
background.threads=2
log.cleaner.dedupe.buffer.size=2097152
# Groups form at once, and tests may ask for members that are given up quickly.
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
# A killed broker may only come back once its former self has timed out: 9 s and more by default.
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=300
"""


class BrokerError(RuntimeError):
    """The broker cannot do what was asked; the message says why and what to do."""


def libraries() -> Path:
    """The folder for the jars of this pom.xml, below the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "drift" / f"kafka-{hashlib.sha256(POM.read_bytes()).hexdigest()[:12]}"


def fetched() -> bool:
    """Whether a broker can start without the network."""
    return shutil.which("java") is not None and libraries().is_dir()


def fetch() -> Path:
    """The folder of jars, which Maven fills where it is not there yet.

    Raises
    ------
    BrokerError
        Java 17 or Maven is missing, or Maven failed; with its last lines.
    """
    for program in ("java", "mvn"):
        if shutil.which(program) is None and not (program == "mvn" and libraries().is_dir()):
            raise BrokerError(f"{program} is not installed: {INSTALL}")
    folder = libraries()
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Beside its final place and renamed at the end, so that half a download is never taken for all.
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        jars = Path(scratch, "jars")
        command = ["mvn", "-q", "-B", "-f", str(POM), COPY]
        options = ["-DincludeScope=runtime", f"-DoutputDirectory={jars}"]
        done = subprocess.run(
            command + options, capture_output=True, text=True, timeout=900, check=False
        )
        if done.returncode:
            raise BrokerError(f"Maven cannot fetch Kafka:\n{done.stdout[-2000:]}")
        try:
            jars.rename(folder)
        except OSError:
            # Another process came first, with the same jars.
            if not folder.is_dir():
                raise
    return folder


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 on which nothing listens.

    They lie below those that a system gives connections: until a broker listens on it, which takes
    seconds, any connection might be given one of those.
    """
    result: set[int] = set()
    while len(result) < count:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            result.add(port)
    return list(result)


def answers(port: int) -> bool:
    """Whether a broker answers there: ApiVersions, the question that every client starts with."""
    request = struct.pack(">ihhih", 10, 18, 0, 7, -1)
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(request)
            return connection.recv(8)[4:] == request[8:12]
    except OSError:
        return False


class Broker:
    """One broker with its data in one folder.

    As a context manager it does not outlive this process, however that ends; `start` alone leaves
    a broker that runs until it is stopped.

    Parameters
    ----------
    folder
        Where configuration, data and the log file live; created where missing. One that has data
        continues with them, at the port it had.
    port
        Port on 127.0.0.1; None takes a free one.

    Examples
    --------
    ::

        with Broker("kafka") as broker:
            KafkaConsumer(bootstrap_servers=broker.address)
            broker.stop(kill=True)  # as a crash would
            broker.start()  # the same data, the same address
    """

    def __init__(self, folder: str | os.PathLike[str], port: int | None = None) -> None:
        self.folder = Path(folder).resolve()
        self.log = self.folder / "broker.log"
        self._port = port
        self._properties = self.folder / "server.properties"
        self._pid_file = self.folder / "pid"
        self._process: subprocess.Popen[bytes] | None = None
        self._is_tied = False
        self._watchdog: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._is_tied = True
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()
        self._is_tied = False

    @property
    def address(self) -> str:
        """``host:port`` that clients are given."""
        return f"127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        """Of the folder's configuration, which outlives the process."""
        try:
            lines = self._properties.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            raise BrokerError(f"{self.folder} has no broker: start one") from None
        line = next(line for line in lines if line.startswith("advertised.listeners="))
        return int(line.partition(",")[0].rpartition(":")[2])

    @property
    def pid(self) -> int | None:
        """Of the running broker, or None."""
        if self._process is not None:
            return self._process.pid if self._process.poll() is None else None
        try:
            pid = int(self._pid_file.read_text(encoding="utf-8"))
            os.kill(pid, 0)
        except (FileNotFoundError, ProcessLookupError, ValueError):
            return None
        # The number may have gone to another process since.
        arguments = Path(f"/proc/{pid}/cmdline")
        if arguments.parent.parent.joinpath("self").exists():
            return pid if str(self._properties) in arguments.read_text(encoding="utf-8") else None
        return pid

    def start(self, timeout: float = 300) -> str:
        """Start the broker and wait until it answers.

        Parameters
        ----------
        timeout
            Seconds to wait for it; on a machine that is busy it has taken more than 60.

        Returns
        -------
        str
            Its address.

        Raises
        ------
        BrokerError
            It runs already, died, or did not answer in time; with the end of its log.
        """
        if self.pid is not None:
            raise BrokerError(f"a broker runs in {self.folder} already, at {self.address}")
        java = self._java(fetch())
        self._prepare(java)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*java, "kafka.Kafka", str(self._properties)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C in the terminal is for whoever started it, not for the broker.
                start_new_session=True,
            )
        if self._is_tied:
            # Its input ends with this process: a handler of signals would miss SIGKILL.
            self._watchdog = subprocess.Popen(
                ["/bin/sh", "-c", 'read -r _; kill -9 "$0"', str(self._process.pid)],
                stdin=subprocess.PIPE,
                start_new_session=True,
            )
        self._pid_file.write_text(f"{self._process.pid}\n", encoding="utf-8")
        end = time.monotonic() + timeout
        while self._process.poll() is None and time.monotonic() < end:
            if answers(self.port):
                return self.address
            time.sleep(0.05)
        self.stop(kill=True)
        raise BrokerError(f"Kafka did not start:\n{self._end_of_log()}")

    def stop(self, *, kill: bool = False, timeout: float = 30) -> None:
        """Stop the broker where it runs, and wait for its end; its data stay.

        Parameters
        ----------
        kill
            End it as a crash would (SIGKILL) rather than in order (SIGTERM).
        timeout
            Seconds until one that ends in order is killed.
        """
        pid = self.pid
        if pid is not None:
            os.kill(pid, signal.SIGKILL if kill else signal.SIGTERM)
            end = time.monotonic() + timeout
            while self.pid is not None:
                if time.monotonic() > end:
                    os.kill(pid, signal.SIGKILL)
                time.sleep(0.02)
        if self._watchdog is not None:
            with self._watchdog:
                self._watchdog.kill()
            self._watchdog = None
        self._process = None
        self._pid_file.unlink(missing_ok=True)

    def _java(self, jars: Path) -> list[str]:
        heap = ["-Xms64m", "-Xmx384m", "-XX:+UseSerialGC"]
        options = ["-Djava.awt.headless=true", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        if self._is_tied:  # A test's broker does not live for so long that better code pays off.
            options.append("-XX:TieredStopAtLevel=1")
        return ["java", *heap, *options, "-cp", f"{jars}/*"]

    def _prepare(self, java: list[str]) -> None:
        """Configuration and formatted storage, where the folder has none yet."""
        data = self.folder / "data"
        if (data / "meta.properties").exists():
            return
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._properties.write_text(self._configuration(data), encoding="utf-8")
        command = ["kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(self._properties)]
        done = subprocess.run(
            java + command, capture_output=True, text=True, timeout=60, check=False
        )
        if done.returncode:
            raise BrokerError(f"Kafka cannot format {data}:\n{done.stdout}{done.stderr}")

    def _configuration(self, data: Path) -> str:
        controller, free = free_ports(2)
        return PROPERTIES.format(port=self._port or free, controller=controller, data=data)

    def _end_of_log(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")[-2000:]


def main(arguments: list[str] | None = None) -> int:
    """Run one command; 1 where it failed or, for status, where no broker answers."""
    home = Path(tempfile.gettempdir(), f"drift-kafka-{os.getuid()}")
    parser = argparse.ArgumentParser(description="A real Kafka broker on 127.0.0.1.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("fetch", help="have Maven collect the broker's jars")
    for name, text in (
        ("start", "start it and print host:port"),
        ("status", "print host:port where it answers"),
        ("stop", "stop it and delete its folder"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("--folder", type=Path, default=home, help="default: %(default)s")
        if name == "start":
            command.add_argument("--port", type=int, help="default: a free one")
        elif name == "stop":
            command.add_argument("--keep", action="store_true", help="leave the data")
            command.add_argument("--kill", action="store_true", help="as a crash would; keeps, too")
    options = parser.parse_args(arguments)
    try:
        return run(options)
    except BrokerError as error:
        print(error, file=sys.stderr)
        return 1


def run(options: argparse.Namespace) -> int:
    if options.command == "fetch":
        print(fetch())
        return 0
    broker = Broker(options.folder, getattr(options, "port", None))
    if options.command == "start":
        print(broker.start())
    elif options.command == "stop":
        broker.stop(kill=options.kill)
        # Only a folder that start has made is deleted.
        if not (options.keep or options.kill) and (broker.folder / "server.properties").exists():
            shutil.rmtree(broker.folder)
    elif broker.pid is None or not answers(broker.port):
        print(f"no broker answers in {broker.folder}", file=sys.stderr)
        return 1
    else:
        print(broker.address)
    return 0


if __name__ == "__main__":
    sys.exit(main())
