"""Write docs/options.md: what the file of a worker may have, from where it is declared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from drift._options import declared
from drift.cli._kafka import REFUSED
from drift.cli._learning import Learning
from drift.cli._settings import ServeOptions
from drift.cli.consume import Consume
from drift.consumers.client import consumer, producer
from drift.consumers.client.topics import known_options
from drift.consumers.json_codec import UNSAVED, JsonCodec
from drift.consumers.options import WorkerOptions
from drift.consumers.registry import SchemaCodec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from drift._options import Option

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "options.md"
HEAD = """\
# All options of a worker

<!-- `python tools/options.py` writes this page. -->

Every setting of `drift consume` and `drift serve`, with its default. Most workers need those of
[this file](operations.md#one-file-for-all-settings). A row is a key of the file that `--config
worker.toml` names.

- **Which comes first:** the command line, then the environment, then the file. So `--bootstrap`
  overrides `DRIFT_KAFKA_BOOTSTRAP_SERVERS`, which overrides `bootstrap_servers`.
- **On the command line** `checkpoint_seconds` is `--checkpoint-seconds`, unless its row names
  another option. A list has commas, as `--cost 1,5`; of `probabilities`, `true` is
  `--probabilities`, and `false` is `--no-probabilities`. The tables from `[worker]` to `[promote]`
  have such options, `[model]` for the rows below, and `[codec]` for `key`.
- **`drift serve`** reads the same file, and `[serve]` is for it alone.
- **A duration** is a number of seconds, or a text with a unit: `"90s"`, `"10m"`, `"1h"`, `"30d"`.

| fixed | at a restart |
|---|---|
| | may change |
| from then on | may change, and changes what is learnt from then on, or in which order |
| yes | decides what has been learnt: [another value is refused](checkpoints.md#change-the-model); \
a renamed `group` [can be adopted](checkpoints.md#change-topic-or-group), and another `topic` \
begins another model |
| with late labels | as *yes* if `[labels]` has a topic, else as *from then on* |
| for a group | must stay: `checkpoints` may only move as a whole, `key_file` has the same key |

## Environment

| variable | meaning |
|---|---|
| `DRIFT_KAFKA_...` | [Options of kafka-python](#kafka-consumer-producer), as a password |
| `DRIFT_REGISTRY_AUTH` | `user:password` for `registry` in `[codec]` |
| `AWS_...` | Address, region and keys of checkpoints [in S3](checkpoints.md#in-s3) |
| `TMPDIR` | Folder for notes on checkpoints in S3, which must outlast a restart |
| `PYTHONPATH` | Where classes of your own are, beside the folder of the start |

## On the command line alone

| option | takes | meaning |
|---|---|---|
{alone}
"""
#: What is declared once for all keys of a table: its purpose, and the page that explains it.
TABLES = {
    "worker": "What is read, sent and saved: [run a worker](operations.md). What is kept and "
    "signed: [checkpoints](checkpoints.md). Metrics and alarms: [watch a worker](monitoring.md).",
    "labels": "[Labels that come later](kafka_labels.md), on a topic of their own.",
    "keyed": "[A model for each key](keyed.md).",
    "decision": "One of these: [a threshold](explain.md#decide-by-cost) that is learnt, by "
    "`cost = [1, 5]`, `recall = 0.9` or the like. `recall`, `precision` and `rate` are above 0, "
    "and at most 1.",
    "answers": "[Explanations](explain.md) in predictions.",
    "promote": "When a [second model](shadow.md) replaces the first.",
    "serve": "[Predictions over HTTP](serving.md), by `drift serve` alone.",
    "codec": "Where [messages](kafka_messages.md) have their parts; a path is as `order.id` or "
    "`header:id`. `[codec.labels]` has [an example](kafka_labels.md#settings). `registry` is for "
    "[Avro and JSON Schema](kafka_messages.md#avro-and-json-schema).",
    "model": "`class` is `--model`. Each parameter of the class is a key, too: see [all "
    "models](models.md).",
}
#: Keys that a group may not change, though they decide nothing that is learnt.
OF_GROUP = {"checkpoints", "key_file"}
#: The table that has the keys of another one.
SHADOW = """
## `[models.shadow]`

The same keys as in `[model]`, for the [second model](shadow.md).
"""
#: The key of `[codec]` that no dataclass declares, as it names one.
CLASS = (
    "| `class` | text | drift's own | yes | `module:Class` of [your own](kafka_python.md); the "
    "other keys are its parameters |"
)
KINDS = {
    bool: "true or false",
    int: "whole number",
    float: "number",
    object: "label",
    Mapping: "table",
}
KAFKA = """
## `[kafka]`, `[consumer]`, `[producer]`

Options of [kafka-python](https://kafka-python.readthedocs.io): `[kafka]` for all clients,
`[consumer]` and `[producer]` for one kind, which override it. Each is also a variable of the
environment with the prefix `DRIFT_KAFKA_`, as `DRIFT_KAFKA_BOOTSTRAP_SERVERS`. A variable overrides
all three tables, so consumers and producers cannot differ in it.
`sasl_oauth_token_provider` and `ssl_context` take a text, `module:name` of a class or function,
which is called without arguments.

Refused are those that the worker sets itself, or that take objects of Python: {refused}.

Some have other defaults than kafka-python's, or [guarantees](production.md#what-is-guaranteed) rest
on them:

| option | clients | kafka-python 3.0.12 | drift |
|---|---|---|---|
{defaults}

With `enable_idempotence = false`, an error that passes
may double outputs or change their order. With `isolation_level = "read_uncommitted"`, messages of
aborted transactions are learnt; a worker that reads late labels always has `"read_committed"`.
"""
#: Options that are shown though they are kafka-python's.
SHOWN = {"session_timeout_ms", "max_poll_interval_ms", "enable_idempotence"}
#: Keys that change what is learnt, or in which order, from then on.
ONWARD = {"skip", "allow_empty", "classes", "max_bytes", "require_label", "on_gap", "max_idle"}
#: What makes checkpoints those of another log or model.
IDENTITY = {
    *("topic", "group", "partition", "labels", "prior"),
    *("model", "budget", "kernel", "seed"),
}


def page() -> str:
    """Return the page."""
    codecs = {one.key: one for kind in (JsonCodec, SchemaCodec) for one in declared(kind)}
    del codecs["schema_id"]  # of programs that encode; no worker does
    model = [one for one in declared(Learning) if one.key in {"model", "budget", "kernel", "seed"}]
    alone = [one for one in declared(Consume) if one.key in {"config", "bootstrap", "dry_run"}]
    head = HEAD.format(alone="\n".join(map(alone_row, alone)))
    parts = [head]
    for table, about in TABLES.items():
        options: Iterable[Option] = {"codec": codecs.values(), "model": model}.get(
            table, [one for one in declared(ServeOptions) if (one.table or "worker") == table]
        )
        rows = [row(one, table) for one in options]
        if table == "codec":
            rows.insert(0, CLASS)
        heading = "| key | takes | default | fixed | meaning |\n|---|---|---|---|---|"
        parts.append("\n".join([f"## `[{table}]`\n\n{about}\n\n{heading}", *rows]) + "\n")
    refused = ", ".join(f"`{name}`" for name in sorted(REFUSED))
    return "\n".join(parts) + SHADOW + KAFKA.format(refused=refused, defaults="\n".join(defaults()))


def defaults() -> Iterable[str]:
    """Yield the rows of options with other defaults than kafka-python's, or that matter."""
    known = known_options()
    general = {k: v for k, v in consumer.DEFAULTS.items() if k not in consumer.WORKER_DEFAULTS}
    others = {k: v for k, v in consumer.DEFAULTS.items() if k not in general}
    kept = {name: known["consumer"][name] for name in sorted(SHOWN & known["consumer"].keys())}
    for clients, ours, theirs in (
        ("all consumers", general, known["consumer"]),
        ("workers, `drift serve`", consumer.WORKER_DEFAULTS, known["consumer"]),
        ("workers", kept, known["consumer"]),  # of a group, and `drift serve` is in none
        ("other consumers", others, known["consumer"]),
        ("producers", producer.DEFAULTS, known["producer"]),
    ):
        for name, value in ours.items():
            if name in SHOWN or (name not in REFUSED and value != theirs[name]):
                shown = "the same" if value == theirs[name] else f"`{value}`"
                yield f"| `{name}` | {clients} | `{theirs[name]}` | {shown} |"


def alone_row(one: Option) -> str:
    """Return the row of an option that no file has."""
    takes = ", ".join(filter(None, [KINDS.get(one.kind, "text"), one.bounds()]))
    return f"| `{one.flag}` | {takes} | {one.help.removesuffix('.')} |"


def is_fixed(one: Option, table: str) -> bool:
    """Whether checkpoints with another value are refused."""
    if table == "codec":
        return one.key == "key" or one.key not in UNSAVED | {"registry"}
    late = WorkerOptions(topic="t", group="g", labels="l").settings()
    return one.name in IDENTITY or (one.name != "max_jump" and f"labels.{one.name}" in late)


def row(one: Option, table: str) -> str:
    """Return the row of an option."""
    key = "class" if (table, one.key) == ("model", "model") else one.key
    spelt = "" if key == one.name or table in {"codec", "model"} else f" (`{one.flag}`)"
    spelt = " (first argument)" if one.argument else spelt
    spelt = " (`--keyed`)" if (table, one.key) == ("codec", "key") else spelt
    takes = "duration" if one.duration else KINDS.get(one.kind, "text")
    takes = " or ".join(f"`{choice}`" for choice in one.choices) or takes
    takes = f"list of {takes}s" if one.many else takes
    takes = ", ".join(filter(None, [takes, one.bounds()]))
    meaning, _, otherwise = one.help.removesuffix(".").partition("; default: ")
    if otherwise:
        default = otherwise
    elif one.required:
        default = "none" if table == "codec" else "must be given"
    elif isinstance(one.default, bool):
        default = f"`{str(one.default).lower()}`"
    elif one.key.endswith("_bytes"):
        default = f"`{one.default}` ({one.default >> 20} MiB)"
    elif one.many and one.default:
        default = f"`{json.dumps(one.default)}`"
    else:
        default = f"`{shown}`" if (shown := one.shown()) else "none"
    if table == "model" and default == "none":
        default = "the class's"
    fixed = "yes" if is_fixed(one, table) else ""
    if one.key in ONWARD:
        fixed = "from then on"
    elif one.key in OF_GROUP:
        fixed = "for a group"
    elif one.key == "max_jump":
        fixed = "with late labels"
    return f"| `{key}`{spelt} | {takes} | {default} | {fixed} | {meaning} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
