"""The short form of ``python -m tests.faults``, on a broker of its own that is restarted, too."""

import pytest

from tests.faults.run import run
from tools.kafka import broker as tool

pytest.importorskip("kafka")
pytestmark = [pytest.mark.kafka, pytest.mark.slow]


@pytest.mark.skipif(not tool.fetched(), reason="python tools/kafka/broker.py fetch gets a broker")
@pytest.mark.parametrize("form", ["each partition", "single", "late", "s3"])
def test_faults_lose_and_double_nothing(tmp_path, form):
    if form == "s3":
        pytest.importorskip("obstore", reason="obstore is not installed")
    how = {form: True} if form != "each partition" else {}
    with tool.Broker(tmp_path / "kafka") as broker:
        report = run(broker, tmp_path / "run", seed=1, seconds=5, examples=6_000, **how)
    assert report.holds, "\n".join(report.lines())
    findings = report.findings
    if form == "late":
        assert min(findings.labels[kind] for kind in ("orphan", "duplicate", "refused")) > 50
        assert findings.labels["learnt"] > 2_000
    else:
        assert findings.examples > 5_000
        assert findings.examples + findings.unlabelled + findings.poison == report.messages
    assert findings.poison > 50
    assert {"abort", "broker kill", "damaged files", "zombie"} <= report.faults.keys()
