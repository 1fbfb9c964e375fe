"""Write docs/metrics.md: the metrics as a worker exports them, the alerts as `deploy` has them."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from drift.consumers.codec import JsonCodec
from drift.consumers.exporter import Exporter
from drift.consumers.metrics import WorkerMetrics
from drift.consumers.options import ServiceOptions, WorkerOptions
from drift.consumers.service import Service

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "metrics.md"
HEAD = """\
# Metrics and alerts

All metrics of a worker and of `drift serve`, and all alerts with what to do. [Watch a
worker](monitoring.md) says which to look at first. `python tools/metrics.py` writes this page.

## Alerts

Those of [alerts.yml](../deploy/alerts.yml), which has their expressions; `<...>` is a label of the
metric. Each links to the paragraph on it. `runbook_url` has the same link: put the address of your
copy of these pages there. *For* is how long the expression has to hold; without it, the alert fires
as soon as it does. Some expressions are themselves of a span: `DriftStalls` of the last minute.

| alert | fires when | do | severity | for |
|---|---|---|---|---|
{alerts}

## A worker

On `/metrics` at `metrics_port`, all with the labels `group` and `topic`. The label `model` is the
model's class; with models of keys these metrics also have a label `partition`. `drift_lag` and
`drift_lag_seconds` have rows for the topic of late labels, too. Exponential weights span some
10,000 examples.

| metric | type | more labels | meaning |
|---|---|---|---|
{worker}

## `drift serve`

On `/metrics` at its port, with the labels `group` and `topic`.

| metric | type | meaning |
|---|---|---|
{serve}
"""
#: Labels of all metrics.
COMMON = {"group", "topic"}


def page() -> str:
    """Return the page."""
    rules = (ROOT / "deploy" / "alerts.yml").read_text(encoding="utf-8")
    rules = re.sub(r"{{ \$labels\.(\w+) }}", r"`<\1>`", rules).replace("`:`", ":")
    rules = re.sub(r'summary: "(.*)"', r"summary: \1", rules)
    alerts = [
        f"| [`{name}`]({book}.md{anchor}) | {what} | {more} "
        f"| {_found('severity: (.*)}', rule)} | {_found('for: (.*)', rule)} |"
        for name, rule, what, more, book, anchor in re.findall(
            r"alert: (\w+)(.*?)summary: (.*?)\n *description: (.*?)\n"
            r" *runbook_url: \S*/docs/(\w+)/(#\S+)\n",
            rules,
            re.DOTALL,
        )
    ]
    return HEAD.format(
        worker="\n".join(_rows(Exporter(WorkerMetrics()).collect(), with_labels=True)),
        serve="\n".join(_rows(_service().registry.collect())),
        alerts="\n".join(alerts),
    )


def _rows(families: Iterable[Any], *, with_labels: bool = False) -> Iterator[str]:
    for family in families:
        name = f"`{family.name}{'_total' * (family.type == 'counter')}`"
        # Of what has no samples, as there is no model yet.
        more = [f"`{one}`" for one in getattr(family, "_labelnames", ()) if one not in COMMON]
        labels = [", ".join(more)] * with_labels
        yield f"| {' | '.join([name, family.type, *labels, family.documentation])} |"


def _service() -> Service:
    """Return a service without a model."""
    replica: Any = SimpleNamespace(
        codec=JsonCodec(),
        options=WorkerOptions(topic="t", group="g"),
        version={"checkpoint": None},
        staleness=0.0,
        starts=0,
        differs=None,
        trouble=None,
        waits=None,
    )
    return Service(replica, ServiceOptions())


def _found(pattern: str, rule: str) -> str:
    return str((re.findall(pattern, rule) or [""])[0])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
