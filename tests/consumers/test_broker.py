"""What starts a real broker, with a stand-in for Java that answers in its place."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools.kafka import broker as tool

ROOT = Path(__file__).resolve().parents[2]
#: Formats nothing, and answers every question with its own first bytes.
JAVA = """#!{python}
import socket, sys
from pathlib import Path
if "kafka.Kafka" in sys.argv:
    lines = Path(sys.argv[-1]).read_text().splitlines()
    address = next(line for line in lines if line.startswith("advertised")).split(",")[0]
    server = socket.create_server(("127.0.0.1", int(address.rpartition(":")[2])))
    while True:
        connection, _ = server.accept()
        connection.sendall(bytes(4) + connection.recv(14)[8:12])
"""
OWNER = """
import sys, time
from tools.kafka.broker import Broker
with Broker(sys.argv[1]) as broker:
    print(broker.address, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def environment(tmp_path):
    """An environment in which that is Java, and the jars have been fetched."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(JAVA.format(python=sys.executable))
    java.chmod(0o755)
    cache = tmp_path / "cache"
    (cache / "drift" / tool.libraries().name).mkdir(parents=True)
    path = f"{java.parent}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {"PATH": path, "XDG_CACHE_HOME": str(cache)}


@pytest.mark.skipif(sys.platform != "linux", reason="the broker's pid is looked up in /proc")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_broker_does_not_outlive_the_process_that_entered_it(tmp_path, environment, how):
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path / "kafka")],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    with owner:
        assert owner.stdout.readline().startswith("127.0.0.1:")
        broker = tool.Broker(tmp_path / "kafka")
        assert broker.pid is not None
        owner.send_signal(how)
    end = time.monotonic() + 30
    while broker.pid is not None and time.monotonic() < end:
        time.sleep(0.02)
    running, _ = broker.pid, broker.stop(kill=True)
    assert running is None


def test_no_connection_is_given_the_port_of_a_broker_that_starts():
    given = Path("/proc/sys/net/ipv4/ip_local_port_range")
    first, _ = map(int, given.read_text().split()) if given.exists() else (32_768, 0)
    ports = tool.free_ports(50)
    assert len(set(ports)) == 50
    assert max(ports) < first


def test_the_commands_print_where_it_answers_and_leave_nothing(tmp_path, environment):
    (port,) = tool.free_ports(1)
    folder = tmp_path / "broker"

    def run(command, *options):
        line = [sys.executable, tool.__file__, command, "--folder", str(folder), *options]
        done = subprocess.run(
            line, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        return done.returncode, done.stdout + done.stderr

    try:
        assert run("start", "--port", str(port)) == (0, f"127.0.0.1:{port}\n")
        assert run("status") == (0, f"127.0.0.1:{port}\n")
    finally:
        assert run("stop") == (0, "")
    assert not folder.exists()
    assert run("status") == (1, f"no broker answers in {folder}\n")
