"""The short form of ``python -m tests.faults``, on a broker of its own that is restarted, too."""

import pytest

from tests.faults.run import run
from tools.kafka import broker as tool

pytest.importorskip("kafka")
pytestmark = [pytest.mark.kafka, pytest.mark.slow]


@pytest.mark.skipif(not tool.fetched(), reason="python tools/kafka/broker.py fetch gets a broker")
@pytest.mark.parametrize("single", [False, True], ids=["each partition", "single"])
def test_faults_lose_and_double_nothing(tmp_path, single):
    with tool.Broker(tmp_path / "kafka") as broker:
        report = run(broker, tmp_path / "run", seed=1, seconds=5, examples=6_000, single=single)
    assert report.holds, "\n".join(report.lines())
    findings = report.findings
    assert findings.examples > 5_000
    assert findings.poison > 50
    assert findings.examples + findings.unlabelled + findings.poison == report.messages
    assert {"abort", "broker kill", "damaged files", "zombie"} <= report.faults.keys()
