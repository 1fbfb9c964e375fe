"""drift's test tools on a real broker, and the script that starts one."""

import subprocess
import sys
import threading
import time

import pytest

from drift.testing import consume, produce
from tools.kafka import broker as tool

kafka = pytest.importorskip("kafka")
pytestmark = pytest.mark.kafka

COUNT = 10_000


def values(partition):
    return [f"{partition}-{number}".encode() for number in range(COUNT // 2)]


class Member(threading.Thread):
    """A member of a group that reads from when both members have a partition."""

    def __init__(self, address, topic, members):
        super().__init__(daemon=True)
        self.address, self.topic, self.members = address, topic, members
        self.owned = 0
        self.records = []

    def run(self):
        consumer = kafka.KafkaConsumer(
            self.topic,
            bootstrap_servers=self.address,
            group_id=self.topic,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )
        end = time.monotonic() + 60
        while time.monotonic() < end and sum(len(m.records) for m in self.members) < COUNT:
            batches = consumer.poll(timeout_ms=100).values()
            self.owned = len(consumer.assignment())
            if all(member.owned == 1 for member in self.members):
                consumer.resume(*consumer.paused())
                self.records += [(r.partition, r.offset, r.value) for rs in batches for r in rs]
            else:
                # Whoever is alone at first would have to hand over what it has read.
                consumer.pause(*consumer.assignment())
                for place in consumer.assignment():
                    consumer.seek(place, 0)
        consumer.close(timeout_ms=2000)


def test_a_group_of_two_reads_every_record_once(kafka_address, kafka_topic):
    for partition in (0, 1):
        produce(kafka_address, kafka_topic, values(partition), partition)
    members = []
    members += [Member(kafka_address, kafka_topic, members) for _ in range(2)]
    for member in members:
        member.start()
    for member in members:
        member.join(90)
    found = sorted(member.records for member in members)
    for partition in (0, 1):
        assert found[partition] == [(partition, n, v) for n, v in enumerate(values(partition))]


@pytest.mark.skipif(not tool.fetched(), reason="python tools/kafka/broker.py fetch gets a broker")
def test_a_killed_broker_comes_back_with_its_records(tmp_path):
    with tool.Broker(tmp_path) as broker:
        produce(broker.address, "t", values(0))
        address, killed = broker.address, broker.pid
        with pytest.raises(tool.BrokerError, match=r"runs in .* already"):
            tool.Broker(tmp_path).start()
        broker.stop(kill=True)
        assert not tool.answers(broker.port)
        assert broker.start() == address
        assert broker.pid != killed
        records = consume(address, "t", COUNT // 2, timeout=30)
    assert [record.value for record in records] == values(0)
    assert not tool.answers(broker.port)


@pytest.mark.skipif(not tool.fetched(), reason="python tools/kafka/broker.py fetch gets a broker")
def test_the_commands_print_where_it_answers_and_leave_nothing(tmp_path):
    (port,) = tool.free_ports(1)
    folder = tmp_path / "broker"

    def run(command, *options):
        line = [sys.executable, tool.__file__, command, "--folder", str(folder), *options]
        done = subprocess.run(line, capture_output=True, text=True, timeout=90, check=False)
        return done.returncode, done.stdout + done.stderr

    try:
        assert run("start", "--port", str(port)) == (0, f"127.0.0.1:{port}\n")
        assert run("status") == (0, f"127.0.0.1:{port}\n")
    finally:
        assert run("stop") == (0, "")
    assert not folder.exists()
    assert run("status") == (1, f"no broker answers in {folder}\n")
