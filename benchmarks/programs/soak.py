"""Memory of a worker over two million examples whose vocabulary keeps growing.

A worker with a budgeted RBP learns a topic on a real broker, publishes every prediction and writes
checkpoints, while another process fills the topic. Every example brings a name that no other has,
the words beside it come from a pool that grows, and the target shifts, so that supports come and go
to the end. Memory is the resident set of the worker's process.

    python -m benchmarks soak

The same command again continues where it was interrupted, and draws the figure anew. With `--late`
labels are on a separate topic, in another order, one to two thousand messages after. At the
end the model is compared with that of a plain loop.
"""

from __future__ import annotations

import argparse
import csv
import json
import multiprocessing
import random
import statistics
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from benchmarks import output_option
from benchmarks.process import resident
from benchmarks.programs.topics import make_topics
from drift.consumers import CheckpointFolder, WorkerOptions
from drift.consumers.client.producer import Producer
from drift.consumers.client.topics import Reader
from drift.consumers.codec import Example
from drift.consumers.json_codec import JsonCodec
from drift.consumers.records import Outgoing
from drift.consumers.worker import Worker
from drift.models import RBP
from drift.models._state.codec import encode
from tools.kafka.broker import Broker

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator
    from pathlib import Path

TOPIC, LABELS, GROUP = "soak", "soak.labels", "soak"
BUDGET = 500
WORDS = 20
SUBJECTS = 8
#: Examples until the target shifts.
ERA = 5_000
#: Examples between two samples.
EVERY = 10_000
#: Examples that are drawn from one seed: where the stream can be taken up again.
_BLOCK = 1_000
#: Bytes an example by which memory may grow. A list of all examples would take 8 for each.
FLAT = 1.0
FIELDS = ("run", "examples", "seconds", "rss_mb", "names_held", "supports", "error", "kb_on_disk")


# --- the stream ----------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def block_of(number: int) -> list[Example]:
    """A block of the stream, which is the same wherever it is taken up."""
    rng = random.Random(number)
    return [_story(n, rng) for n in range(number * _BLOCK, (number + 1) * _BLOCK)]


def by_label(number: int, *, late: bool) -> list[Example]:
    """A block in the order in which its labels come."""
    block = block_of(number)
    return random.Random(f"labels {number}").sample(block, len(block)) if late else block


def messages(number: int, *, late: bool) -> Iterator[tuple[str, bytes]]:
    """Topics and values of a block, and with late labels those of the block before."""
    write = JsonCodec().encode
    for example in block_of(number):
        yield TOPIC, write(example._replace(label=None) if late else example)
    for example in by_label(number - 1, late=late) if late and number else ():
        yield LABELS, json.dumps({"id": example.id, "label": example.label}).encode()


def _story(number: int, rng: random.Random) -> Example:
    """Words by Zipf's law out of a pool that grows, most of them of one subject, and one name."""
    pool = 2_000 + number // 20
    subject = rng.randrange(SUBJECTS)
    features: dict[Hashable, float] = {f"name{number}": 1.0}
    for _ in range(WORDS):
        kind = subject if rng.random() < 0.25 else "w"
        features[f"{kind}.{int(pool ** rng.random())}"] = 1.0
    era = number // ERA
    return Example(features, subject in {era % SUBJECTS, (era + 3) % SUBJECTS}, number)


def fill(address: str, stop: int, topics: list[str]) -> None:
    """Send what the topics lack of the stream, up to the block after so many examples."""
    options = {"bootstrap_servers": address}
    there = {}
    for topic in topics:
        with Reader(topic, options) as reader:
            there[topic] = sum(reader.ends().values())
    first = min(there.values()) // _BLOCK
    sent = {topic: max(0, first - (topic == LABELS)) * _BLOCK for topic in topics}
    with Producer(options) as producer:
        for number in range(first, stop // _BLOCK + 1):
            for topic, value in messages(number, late=LABELS in topics):
                if sent[topic] >= there[topic]:
                    producer.send(Outgoing(topic, None, value, []))
                sent[topic] += 1
        producer.flush()


# --- the worker ----------------------------------------------------------------------------------


def sample(worker: Worker, folder: Path) -> dict[str, Any]:
    """What is written down every so many examples."""
    [metrics] = worker.metrics.models
    [claim] = worker._claims.values()
    learner = claim.learner
    names = set()
    for features, _ in learner.model._supports:
        names.update(features)
    return {
        "examples": metrics.examples,
        "rss_mb": round(resident(), 2),
        "names_held": len(names),
        "supports": learner.model.n_supports,
        "error": round(metrics.windowed_error, 4),
        "kb_on_disk": sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) // 1000,
    }


def soak(address: str, folder: Path, count: int, *, late: bool) -> None:
    """Learn the topic up to so many examples, and add samples to the table."""
    checkpoints, table = folder / "checkpoints", folder / "soak.csv"
    worker = Worker(
        RBP(budget=BUDGET, seed=0),
        CheckpointFolder(checkpoints),
        {"bootstrap_servers": address},
        WorkerOptions(
            topic=TOPIC,
            group=GROUP,
            start="earliest",
            predictions="soak.predicted",
            labels=LABELS if late else None,
        ),
    )
    while not worker.metrics.models:
        worker.step(0.1)
    [metrics] = worker.metrics.models
    run = 1 + max((int(row["run"]) for row in read(table)), default=0)
    started, first = time.monotonic(), metrics.examples
    due = first
    with table.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not file.tell():
            writer.writeheader()
        while True:
            if metrics.examples >= due:
                due = metrics.examples // EVERY * EVERY + EVERY
                seconds = time.monotonic() - started
                row = {"run": run, "seconds": round(seconds, 1), **sample(worker, checkpoints)}
                writer.writerow(row)
                file.flush()
                rate = (metrics.examples - first) / seconds
                print(
                    f"{metrics.examples:9,} of {count:,}  {row['rss_mb']:6.1f} MB  "
                    f"{row['names_held']:6,} names  error {row['error']:.1%}  {rate:,.0f}/s",
                    flush=True,
                )
            if metrics.examples >= count:
                break
            worker.step(1.0)
    worker.stop()
    worker.run(signals=False)


def is_sound(folder: Path, *, late: bool) -> bool:
    """Say whether the newest model is that of a plain loop over as many examples."""
    newest = CheckpointFolder(folder / "checkpoints").newest((TOPIC, None))
    assert newest is not None
    learnt = newest.metrics["examples"]
    model = RBP(budget=BUDGET, seed=0)
    for number in range(-(-learnt // _BLOCK)):
        for example in by_label(number, late=late)[: learnt - number * _BLOCK]:
            model.predict_one(example.features)
            model.learn_one(example.features, example.label)
    return encode(model) == encode(newest.model)


# --- what comes of it ----------------------------------------------------------------------------


def read(table: Path) -> list[dict[str, str]]:
    """Rows of the table; none where there is no file."""
    if not table.exists():
        return []
    with table.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def growth(rows: list[dict[str, str]], full: int) -> tuple[float, float, float]:
    """Memory of the longest run: medians after each tenth and at its end; bytes per example.

    Up to there a worker fills its buffers, its budget and what waits for labels.
    """
    by_run: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        by_run.setdefault(row["run"], []).append(row)
    run = max(by_run.values(), key=len)
    tenth = max(1, len(run) // 10)
    early, late = run[full * tenth : (full + 1) * tenth], run[-tenth:]
    before, after = (statistics.median(float(r["rss_mb"]) for r in part) for part in (early, late))
    examples = int(late[-1]["examples"]) - int(early[0]["examples"])
    return before, after, (after - before) * 1e6 / max(1, examples)


def draw(rows: list[dict[str, str]], path: Path) -> None:
    """Draw memory, and the names that the model holds, over the examples."""
    # Not in the process that is measured.
    from drift.experiments.plots import COLOURS, examples, finish, panels_of, save  # noqa: PLC0415

    figure, (memory, names) = panels_of(7, 4.6, rows=2, sharex=True, height_ratios=(2, 1))
    for run in sorted({int(row["run"]) for row in rows}):
        part = [row for row in rows if int(row["run"]) == run]
        learnt = [int(row["examples"]) for row in part]
        memory.plot(learnt, [float(row["rss_mb"]) for row in part], color=COLOURS[1])
        names.plot(learnt, [int(row["names_held"]) for row in part], color=COLOURS[2])
    memory.set_ylim(bottom=0)
    memory.set_ylabel("resident memory, MB")
    names.set_ylim(bottom=0)
    names.set_ylabel("names held")
    examples(names, max(int(row["examples"]) for row in rows))
    names.yaxis.set_major_formatter("{x:,.0f}")
    title = f"A worker with RBP, B = {BUDGET}; each example brings a new name"
    finish(figure, title, [memory, names])
    path.parent.mkdir(parents=True, exist_ok=True)
    save(figure, path)


def main(arguments: list[str]) -> int:
    """Run the soak; 0 if memory is flat and the model sound."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks soak")
    parser.add_argument("--examples", type=int, default=2_000_000)
    parser.add_argument("--late", action="store_true", help="labels on a topic of their own")
    output_option(parser)
    given = parser.parse_args(arguments)
    if given.examples < 10 * EVERY:  # a tenth, which is compared, has a sample
        parser.error(f"--examples: at least {10 * EVERY:,}, as a sample is of {EVERY:,}")
    name = "soak_late" if given.late else "soak"
    folder = given.output / name
    topics = [TOPIC, *([LABELS] if given.late else [])]
    with Broker(folder / "kafka") as broker:
        make_topics(broker.address, topics, log_times=True)
        processes = multiprocessing.get_context("spawn")
        feed = processes.Process(
            target=fill, args=(broker.address, given.examples, topics), daemon=True
        )
        feed.start()
        soak(broker.address, folder, given.examples, late=given.late)
        feed.join()
    rows = read(folder / "soak.csv")
    full = 2 if given.late else 1
    before, after, each = growth(rows, full)
    draw(rows, given.output / f"{name}.svg")
    print(
        f"{before:.1f} MB behind {full} tenths, {after:.1f} MB at the end: {each:+.2f} bytes each"
    )
    sound = is_sound(folder, late=given.late)
    print(f"the model is {'' if sound else 'NOT '}that of a plain loop")
    from benchmarks.report import write_result  # noqa: PLC0415 - not while memory is measured

    measured = {"before, MB": before, "after, MB": after, "bytes an example": each}
    write_result(given.output, name, {"table": [measured], "sound": sound, "samples": rows})
    return 0 if each <= FLAT and sound else 1
