"""Write docs/metrics.md: the metrics as a worker exports them, the alerts as `deploy` has them."""

from __future__ import annotations

import re
from pathlib import Path

from drift.consumers.exporter import Exporter
from drift.consumers.metrics import WorkerMetrics

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "metrics.md"
HEAD = """\
# Metrics and alerts

Written by `python tools/metrics.py`. [Watch a worker](monitoring.md) says how to use them.

A worker serves these metrics on `/metrics` at `--metrics-port`. All have the labels
`group` and `topic`. Those marked * also have `model` (its class), with models of keys `partition`;
`drift_lag` and `drift_lag_seconds` always have `partition`, and rows for the topic of late labels;
`drift_alarms_total` has `measure`. Exponential weights span some 10,000 examples.
[`drift serve`](serving.md#requests) has metrics of its own.

| metric | type | meaning |
|---|---|---|
"""
ALERTS = """
## Alerts

Those of [alerts.yml](../deploy/alerts.yml), which has their expressions; `<...>` is a label of the
metric. [Operations](production.md#outages-and-lost-messages) says what a worker does meanwhile.

| alert | severity | fires when | for | what to know |
|---|---|---|---|---|
"""


def page() -> str:
    """Return the page."""
    rows = []
    for family in Exporter(WorkerMetrics()).collect():
        name = f"`{family.name}{'_total' * (family.type == 'counter')}`"
        has_labels = not family.samples  # as there is no model yet
        rows.append(f"| {name}{' *' * has_labels} | {family.type} | {family.documentation} |")
    rules = (ROOT / "deploy" / "alerts.yml").read_text(encoding="utf-8")
    rules = re.sub(r"{{ \$labels\.(\w+) }}", r"`<\1>`", rules).replace("`:`", ":")
    rules = re.sub(r'summary: "(.*)"', r"summary: \1", rules)
    alerts = [
        f"| `{name}` | {_found('severity: (.*)}', rule)} | {what} "
        f"| {_found('for: (.*)', rule)} | {more} |"
        for name, rule, what, more in re.findall(
            r"alert: (\w+)(.*?)summary: (.*?)\n *description: (.*?)\n", rules, re.DOTALL
        )
    ]
    return HEAD + "\n".join(rows) + "\n" + ALERTS + "\n".join(alerts) + "\n"


def _found(pattern: str, rule: str) -> str:
    return (re.findall(pattern, rule) or [""])[0]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
