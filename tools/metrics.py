"""Write docs/metrics.md: the metrics as a worker exports them, the alerts as `deploy` has them."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import yaml

from drift.consumers.exporter import Exporter
from drift.consumers.json_codec import JsonCodec
from drift.consumers.metrics import WorkerMetrics
from drift.consumers.options import ServiceOptions, WorkerOptions
from drift.consumers.service import Service

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "metrics.md"
HEAD = """\
# Metrics and alerts

<!-- `python tools/metrics.py` writes this page. -->

All metrics of a worker and of `drift serve`, and all alerts with what to do. [Watch a
worker](monitoring.md) says which to look at first.

## Alerts

Those of [alerts.yml](../deploy/alerts.yml); `<...>` is a label of the metric. [Load
them](monitoring.md#load-the-alerts). Each links to the paragraph on it, as its `runbook_url` does.
*For* is how long the expression has to hold; without it, the alert fires as
soon as it does.

| alert | fires when | do | severity | for | expression |
|---|---|---|---|---|---|
{alerts}

## A worker

On `/metrics` at `metrics_port`, all with the labels `group` and `topic`. Those of [the
process](#the-process) are always there. All others are of a model: they have its class as the label
`model`, with models of keys also `partition`, and are absent on a standby. `drift_lag` and
`drift_lag_seconds` have rows for the topic of late labels, too. Exponential weights span some
10,000 examples. What a counter has before its first scrape is not in `rate()`: all alerts but
`DriftOrphans` take that into account.

{worker}

## `drift serve`

On `/metrics` at its port, with the labels `group` and `topic`.

| metric | type | meaning |
|---|---|---|
{serve}

## How late alarms are

How soon an [alarm](monitoring.md#alarms) comes after a rise. The bound that an error has to exceed
holds however long the stream is, so it is wide at first: after 10,000 examples with an error of
10 % it was at 11.1 to 11.8 %, on five streams.

In 20 streams for each cell below the error rises by 1 to 10 points, after 10,000 and after 100,000
examples, and the stream goes on for 20,000. A cell has the median number of examples from the rise
to the alarm, and the share of the streams that had one (`python -m benchmarks alarms`):

| error | points more | 10,000 before: error | log loss | 100,000 before: error | log loss |
|---|---|---|---|---|---|
| 2 % | 1 | 13,184 (10%) | 14,312 (20%) | 11,608 (90%) | 8,480 (95%) |
| 2 % | 2 | 5,012 (100%) | 3,532 (100%) | 3,052 (100%) | 2,108 (100%) |
| 2 % | 5 | 616 (100%) | 588 (100%) | 548 (100%) | 456 (100%) |
| 2 % | 10 | 208 (100%) | 208 (100%) | 208 (100%) | 196 (100%) |
| 10 % | 1 | none | 7,720 (5%) | none | 13,112 (5%) |
| 10 % | 2 | 8,824 (25%) | 13,040 (55%) | 13,708 (100%) | 6,384 (100%) |
| 10 % | 5 | 1,848 (100%) | 1,116 (100%) | 1,388 (100%) | 976 (100%) |
| 10 % | 10 | 492 (100%) | 392 (100%) | 512 (100%) | 380 (100%) |
| 30 % | 1 | none | none | none | none |
| 30 % | 2 | none | none | 15,080 (10%) | 12,720 (55%) |
| 30 % | 5 | 4,940 (100%) | 4,004 (100%) | 3,940 (100%) | 2,632 (100%) |
| 30 % | 10 | 1,076 (100%) | 1,044 (100%) | 940 (100%) | 976 (100%) |

Of 1,000 streams of 10,000 examples without a rise, for each of the three errors, none had an alarm;
the level of 1 % allows ten.
"""
#: The groups of a worker's metrics, and what the names of each begin with; the first that fits.
GROUPS = {
    "Measures": "drift_(windowed|faded)_",
    "Labels that come later": (
        "drift_(pending|orphans|duplicates|repeated|expired|evicted|silent|corrected)"
    ),
    "The shadow": "drift_(shadow|promotions)",
    "Models of keys": "drift_models|drift_model_loads",
    "Lag": "drift_lag",
    "What is learnt": "drift_(examples|unlabelled|mistakes|blind|model_|supports|updates|learn_)",
    "Messages and checkpoints": "drift_(checkpoint_age|jumps|dead|skipped|alarms)",
    "The process": "",
}
COLUMNS = "| metric | type | more labels | meaning |\n|---|---|---|---|"
#: Labels that the page names above its tables.
COMMON = {"group", "topic", "model"}


def page() -> str:
    """Return the page."""
    [group] = yaml.safe_load((ROOT / "deploy" / "alerts.yml").read_text("utf-8"))["groups"]
    return HEAD.format(
        worker="\n\n".join(_groups(_rows(Exporter(WorkerMetrics()).collect(), with_labels=True))),
        serve="\n".join(_rows(_service().registry.collect())),
        alerts="\n".join(map(_alert, group["rules"])),
    )


def _alert(rule: dict[str, Any]) -> str:
    notes = rule["annotations"]
    what = re.sub(r"{{ \$labels\.(\w+) }}", r"`<\1>`", notes["summary"]).replace("`:`", ":")
    book = notes["runbook_url"].partition("/docs/")[2].replace("/#", ".md#")
    cells = (
        *(f"[`{rule['alert']}`]({book})", what, notes["description"], rule["labels"]["severity"]),
        *(rule.get("for", ""), f"`{' '.join(rule['expr'].split())}`"),
    )
    return f"| {' | '.join(cells)} |"


def _groups(rows: Iterable[str]) -> Iterator[str]:
    """Yield a heading and a table for each group."""
    grouped: dict[str, list[str]] = {name: [] for name in reversed(GROUPS)}
    for one in rows:
        name = next(name for name, begin in GROUPS.items() if re.match(f"\\| `(?:{begin})", one))
        grouped[name].append(one)
    for name, some in grouped.items():
        yield "\n".join([f"### {name}\n\n{COLUMNS}", *some])


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


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
