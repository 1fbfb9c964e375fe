"""The short form of ``python -m tests.faults``, on a broker of its own that is restarted, too."""

import pytest

from tests.faults.run import run
from tools.kafka import broker as tool

pytest.importorskip("kafka")
pytestmark = [pytest.mark.kafka, pytest.mark.slow]


# Seed 7 has producers' clocks, and features that learn their silence; 0 a Tracker.
@pytest.mark.skipif(not tool.fetched(), reason="python tools/kafka/broker.py fetch gets a broker")
@pytest.mark.parametrize(
    ("form", "seed"),
    [("at once", 1), ("late", 0), ("late shadow", 7), ("keyed", 2), ("s3", 2)],
)
def test_faults_lose_and_double_nothing(tmp_path, form, seed):
    how = {} if form == "at once" else dict.fromkeys(form.split(), True)
    if form == "s3":
        pytest.importorskip("obstore", reason="obstore is not installed")
    with tool.Broker(tmp_path / "kafka") as broker:
        report = run(broker, tmp_path / "run", seed=seed, seconds=10, examples=6_000, **how)
    assert report.holds, "\n".join(report.lines())
    findings = report.findings
    if "late" in form:
        kinds = ("learnt", "duplicate", "silent") if seed % 2 else ("learnt", "duplicate")
        assert min(findings.labels[kind] for kind in kinds) > 50
        assert findings.examples > 2_000
    else:
        assert findings.examples > 5_000
        assert findings.examples + findings.unlabelled + findings.poison == report.messages
    assert (findings.models > 100) is (form == "keyed")
    assert findings.poison > 50
    assert {"abort", "broker kill", "damaged files", "zombie"} <= report.faults.keys()
