"""What must be true at the end: everything against a plain loop over the log."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from drift.consumers._state import encode
from drift.errors import MessageError
from tests.faults.examples import PARTITIONS, codec
from tests.faults.runner import model

if TYPE_CHECKING:
    from drift.consumers import CheckpointFolder

__all__ = ["Expected", "Findings", "check", "read", "replay"]


class Expected(NamedTuple):
    """What a plain loop over a partition gives."""

    model: Any
    learnt: int
    end: int
    predictions: dict[str, dict[str, Any]]
    poison: dict[tuple[int, int], bytes | None]


class Findings:
    """Counts, and what does not hold."""

    def __init__(self) -> None:
        self.examples = 0
        self.poison = 0
        self.lost = 0
        self.doubled = 0
        self.predictions_again = 0
        self.letters_again = 0
        self.failures: list[str] = []


def read(address: str, topic: str, timeout: float = 120) -> list[Any]:
    """Return all records of a topic, by partition and offset."""
    from kafka import KafkaConsumer, TopicPartition  # noqa: PLC0415 - an extra

    consumer = KafkaConsumer(bootstrap_servers=address, enable_auto_commit=False)
    try:
        places = [TopicPartition(topic, p) for p in consumer.partitions_for_topic(topic) or ()]
        ends = consumer.end_offsets(places)
        consumer.assign(places)
        consumer.seek_to_beginning()
        records: list[Any] = []
        limit = time.monotonic() + timeout
        while any(consumer.position(place) < ends[place] for place in places):
            if time.monotonic() > limit:
                raise TimeoutError(f"{topic}: {len(records)} records read, {ends} expected")
            for batch in consumer.poll(timeout_ms=200, max_records=5_000).values():
                records += batch
    finally:
        consumer.close(timeout_ms=1000)
    return sorted(records, key=lambda record: (record.partition, record.offset))


def replay(log: list[Any]) -> list[Expected]:
    """Return what a plain loop over each partition of the log gives."""
    return [_replay([r for r in log if r.partition == p]) for p in range(PARTITIONS)]


def _replay(records: list[Any]) -> Expected:
    learner, decode = model(), codec().decode
    predictions, poison = {}, {}
    learnt = 0
    for record in records:
        try:
            example = decode(record.value, record.headers)
        except MessageError:
            poison[record.partition, record.offset] = record.value
            continue
        predictions[f"{record.topic}:{record.partition}:{record.offset}"] = {
            "id": example.id,
            "predicted": learner.predict_one(example.features),
            "score": learner.decision_function_one(example.features),
            "label": example.label,
        }
        if example.label is not None:
            learner.learn_one(example.features, example.label)
            learnt += 1
    end = records[-1].offset + 1 if records else 0
    return Expected(learner, learnt, end, predictions, poison)


def check(
    topic: str, expected: list[Expected], folder: CheckpointFolder, outputs: tuple[list[Any], ...]
) -> Findings:
    """Compare what the workers left with the plain loop.

    Parameters
    ----------
    topic
        What they learnt.
    expected
        What `replay` gave.
    folder
        Their checkpoints.
    outputs
        Records of the topics of predictions and of dead letters.
    """
    findings = Findings()
    for partition, plain in enumerate(expected):
        findings.examples += plain.learnt
        findings.poison += len(plain.poison)
        _check_model(findings, (topic, partition), plain, folder)
    predictions, letters = outputs
    _check_predictions(findings, expected, predictions)
    _check_letters(findings, topic, expected, letters)
    return findings


def _check_model(
    findings: Findings, place: tuple[str, int], plain: Expected, folder: CheckpointFolder
) -> None:
    newest = folder.newest(place)
    if newest is None:
        findings.failures.append(f"{place}: no checkpoint")
        findings.lost += plain.learnt
        return
    if newest.offsets != {place: plain.end}:
        findings.failures.append(f"{place}: ends at {dict(newest.offsets)}, the log at {plain.end}")
    if encode(newest.model) != encode(plain.model):
        findings.failures.append(f"{place}: the model is not that of a plain loop")
    difference = newest.metrics["examples"] - plain.learnt
    findings.lost += max(0, -difference)
    findings.doubled += max(0, difference)
    if difference:
        findings.failures.append(f"{place}: {newest.metrics['examples']} learnt of {plain.learnt}")


def _check_predictions(findings: Findings, expected: list[Expected], records: list[Any]) -> None:
    wanted = {key: body for plain in expected for key, body in plain.predictions.items()}
    got: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        got[record.key.decode()].append(json.loads(record.value))
    missing = wanted.keys() - got.keys()
    findings.lost += len(missing)
    wrong = [
        key
        for key, bodies in got.items()
        for body in bodies
        if key not in wanted or {name: body[name] for name in wanted[key]} != wanted[key]
    ]
    findings.predictions_again = sum(map(len, got.values())) - len(got)
    if missing:
        findings.failures.append(f"{len(missing)} predictions are missing: {sorted(missing)[:3]}")
    if wrong:
        findings.failures.append(
            f"{len(wrong)} predictions are not those of a plain loop: {wrong[:3]}"
        )


def _check_letters(
    findings: Findings, topic: str, expected: list[Expected], records: list[Any]
) -> None:
    wanted = {place: value for plain in expected for place, value in plain.poison.items()}
    got = {}
    for record in records:
        facts = dict(record.headers)
        if facts["drift.topic"].decode() == topic:
            place = int(facts["drift.partition"]), int(facts["drift.offset"])
            got[place] = record.value
    findings.letters_again = len(records) - len(got)
    findings.lost += len(wanted.keys() - got.keys())
    if got != wanted:
        wrong = sorted(p for p in got.keys() | wanted.keys() if got.get(p, 0) != wanted.get(p, 0))
        findings.failures.append(f"dead letters are not the poison: {wrong[:3]}")
