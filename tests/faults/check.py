"""What must be true at the end: everything against a plain loop over the log."""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from drift.consumers import CheckpointFolder
from drift.consumers.checkpoints.state import encode
from drift.errors import MessageError
from tests.consumers.twin_late import Twin
from tests.faults.examples import PARTITIONS, codec
from tests.faults.runner import model

if TYPE_CHECKING:
    from collections.abc import Iterable

    from drift.consumers import WorkerOptions
    from drift.consumers.checkpoints.checkpoint import Checkpoint

__all__ = ["Findings", "check", "check_late", "check_single", "read"]


class Expected(NamedTuple):
    """What a plain loop over a partition gives."""

    model: Any
    learnt: int
    predictions: dict[str, dict[str, Any]]
    poison: dict[tuple[int, int], bytes | None]

    @property
    def unlabelled(self) -> int:
        return sum(body["label"] is None for body in self.predictions.values())


class Findings:
    """Counts, what does not hold, and what was not seen that the test is for."""

    def __init__(self) -> None:
        self.examples = 0
        self.unlabelled = 0
        self.poison = 0
        self.lost = 0
        self.doubled = 0
        self.predictions_again = 0
        self.letters_again = 0
        self.labels: Counter[str] = Counter()
        self.failures: list[str] = []
        self.blunt: list[str] = []


def read(address: str, topic: str, timeout: float = 120) -> list[Any]:
    """Return all records of a topic that were not given up, by partition and offset."""
    from kafka import KafkaConsumer, TopicPartition  # noqa: PLC0415 - an extra

    consumer = KafkaConsumer(
        bootstrap_servers=address, enable_auto_commit=False, isolation_level="read_committed"
    )
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
    return Expected(learner, learnt, predictions, poison)


def check(
    topic: str, log: list[Any], folder: CheckpointFolder, outputs: tuple[list[Any], ...]
) -> Findings:
    """Compare what the workers left with a plain loop over each partition.

    Parameters
    ----------
    topic
        What they learnt.
    log
        Its records.
    folder
        Their checkpoints.
    outputs
        Records of the topics of predictions and of dead letters.
    """
    findings = Findings()
    plains = [_replay([r for r in log if r.partition == p]) for p in range(PARTITIONS)]
    for partition, plain in enumerate(plains):
        findings.examples += plain.learnt
        findings.unlabelled += plain.unlabelled
        place = topic, partition
        newest = folder.newest(place)
        if newest is None:
            findings.failures.append(f"{place}: no checkpoint")
            findings.lost += plain.learnt
            continue
        _check_offsets(findings, newest, {place: _end(log, partition)})
        if encode(newest.model) != encode(plain.model):
            findings.failures.append(f"{place}: the model is not that of a plain loop")
        _check_count(findings, newest, plain.learnt)
    predictions, letters = outputs
    _check_predictions(findings, _merged(plain.predictions for plain in plains), predictions)
    _check_letters(findings, topic, _merged(plain.poison for plain in plains), letters)
    return findings


def check_single(
    topic: str, log: list[Any], folder: CheckpointFolder, outputs: tuple[list[Any], ...]
) -> Findings:
    """Compare one model over all partitions with a plain loop in the order in which it learnt.

    Of the predictions of a message, one has to be that of the plain loop: those that were sent
    before a crash were made in an order that was given up. Where a message without a label came in
    between is in no diary.
    """
    findings = Findings()
    newest = folder.newest((topic, None))
    if newest is None:
        findings.failures.append("no checkpoint")
        return findings
    order = list(newest.model.order)
    numbered = {int(dict(record.headers)["number"]): record for record in log}
    plain = _replay([numbered[number] for number in order])
    rest = _replay([record for number, record in numbered.items() if number not in set(order)])
    findings.examples = plain.learnt
    findings.unlabelled = rest.unlabelled
    _check_offsets(findings, newest, {(topic, p): _end(log, p) for p in range(PARTITIONS)})
    for p in range(PARTITIONS):
        offsets = [numbered[n].offset for n in order if numbered[n].partition == p]
        if offsets != sorted(set(offsets)):
            findings.failures.append(f"{topic}:{p} was not learnt in its order")
    if encode(newest.model.model) != encode(plain.model):
        findings.failures.append("the model is not that of a plain loop in the order it learnt")
    _check_count(findings, newest, len(set(order)) + rest.learnt)
    predictions, letters = outputs
    unlabelled = {
        key: {"id": body["id"], "label": body["label"]} for key, body in rest.predictions.items()
    }
    _check_predictions(findings, plain.predictions | unlabelled, predictions, every=False)
    _check_letters(findings, topic, rest.poison, letters)
    return findings


def check_late(
    options: WorkerOptions,
    topic: str,
    log: list[Any],
    folder: CheckpointFolder,
    outputs: tuple[list[Any], ...],
) -> Findings:
    """Compare with a plain loop over both logs, and each prediction with the model that made it.

    Parameters
    ----------
    options
        How long features and labels wait.
    topic, log, folder
        As of `check`.
    outputs
        Records of the topics of predictions, dead letters, labels and orphans.
    """
    findings = Findings()
    folder = CheckpointFolder(folder.path)  # the worker has added its settings of labels
    predictions, letters, labels, orphans = outputs
    wanted: dict[str, dict[str, Any]] = {}
    poison: dict[tuple[str, int, int], bytes | None] = {}
    lost: dict[tuple[str, int, int], bytes | None] = {}
    for partition in range(PARTITIONS):
        parts = [
            [(r.offset, r.timestamp, r.value) for r in records if r.partition == partition]
            for records in (log, labels)
        ]
        headers = {
            r.offset: sum(len(name) + len(value) for name, value in r.headers)
            for r in log
            if r.partition == partition
        }
        twin = Twin(*parts, options, codec=codec(), headers=headers)
        findings.labels += twin.counts
        findings.examples += len(twin.learnt)
        place = topic, partition
        newest = folder.newest(place)
        if newest is None or newest.join is None:
            findings.failures.append(f"{place}: no checkpoint")
            continue
        ends = {place: _end(log, partition), (options.labels, partition): _end(labels, partition)}
        _check_offsets(findings, newest, ends)
        if encode(newest.model) != encode(twin.model(model())):
            findings.failures.append(f"{place}: the model is not that of a plain loop")
        try:
            twin.assert_joined(newest.join)
        except AssertionError as problem:
            findings.failures.append(f"{place}: what waits is not what a loop has: {problem!s:.80}")
        _check_count(findings, newest, len(twin.learnt))
        _check_late_predictions(findings, topic, partition, twin, predictions)
        for offset, _, value, example in twin.features:
            if example is None:
                poison[topic, partition, offset] = value
            else:
                wanted[f"{topic}:{partition}:{offset}"] = {"id": example.id}
        name = str(options.labels)
        poison |= {(name, partition, offset): value for offset, value in twin.refused}
        lost |= {(name, partition, offset): value for offset, value in twin.orphans}
    findings.unlabelled = len(wanted)
    _check_predictions(findings, wanted, predictions)
    for name, records, of in (("dead letters", letters, poison), ("orphans", orphans, lost)):
        _check_kept(findings, name, records, of)
    findings.poison = len(poison)
    return findings


def _check_late_predictions(
    findings: Findings, topic: str, partition: int, twin: Twin, records: list[Any]
) -> None:
    """Predict each message that was predicted by the model that it says."""
    features = {offset: example.features for offset, _, _, example in twin.features if example}
    made: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        body = json.loads(record.value)
        if (body["topic"], body["partition"]) == (topic, partition):
            made[body["labels_learnt"]].append(body)
    wrong = 0
    for after, learner in twin.models(model(), made):
        for body in made[after]:
            x = features.get(body["offset"])
            wrong += x is None or (body["predicted"], body["score"]) != (
                learner.predict_one(x),
                learner.decision_function_one(x),
            )
    if wrong:
        findings.failures.append(f"{topic}:{partition}: {wrong} predictions are not the model's")


def _check_kept(
    findings: Findings,
    name: str,
    records: list[Any],
    wanted: dict[tuple[str, int, int], bytes | None],
) -> None:
    got = {}
    for record in records:
        facts = {key: value.decode() for key, value in dict(record.headers).items()}
        place = facts["drift.topic"], int(facts["drift.partition"]), int(facts["drift.offset"])
        got[place] = record.value
    findings.letters_again += len(records) - len(got)
    findings.lost += len(wanted.keys() - got.keys())
    if got != wanted:
        wrong = sorted(p for p in got.keys() | wanted.keys() if got.get(p, 0) != wanted.get(p, 0))
        findings.failures.append(f"{name} are not those of a loop: {len(wrong)}, {wrong[:3]}")


def _end(log: list[Any], partition: int) -> int:
    return max((r.offset + 1 for r in log if r.partition == partition), default=0)


def _merged(parts: Iterable[dict[Any, Any]]) -> dict[Any, Any]:
    return {key: value for part in parts for key, value in part.items()}


def _check_offsets(findings: Findings, newest: Checkpoint, ends: dict[Any, int]) -> None:
    if newest.offsets != ends:
        findings.failures.append(f"a model ends at {dict(newest.offsets)}, the log at {ends}")


def _check_count(findings: Findings, newest: Checkpoint, wanted: int) -> None:
    difference = newest.metrics["examples"] - wanted
    findings.lost += max(0, -difference)
    findings.doubled += max(0, difference)
    if difference:
        findings.failures.append(f"{newest.metrics['examples']} learnt of {wanted}")


def _check_predictions(
    findings: Findings,
    wanted: dict[str, dict[str, Any]],
    records: list[Any],
    *,
    every: bool = True,
) -> None:
    """Look for each prediction; each that was sent has to be right, or one for each message."""
    got: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        got[record.key.decode()].append(json.loads(record.value))
    missing = wanted.keys() - got.keys()
    findings.lost += len(missing)
    enough = all if every else any
    wrong = [
        key
        for key, bodies in got.items()
        if key not in wanted
        or not enough({name: body[name] for name in wanted[key]} == wanted[key] for body in bodies)
    ]
    findings.predictions_again = sum(map(len, got.values())) - len(got)
    if missing:
        findings.failures.append(f"{len(missing)} predictions are missing: {sorted(missing)[:3]}")
    if wrong:
        findings.failures.append(
            f"{len(wrong)} predictions are not those of a plain loop: {wrong[:3]}"
        )


def _check_letters(
    findings: Findings,
    topic: str,
    poison: dict[tuple[int, int], bytes | None],
    records: list[Any],
) -> None:
    findings.poison = len(poison)
    wanted = {(topic, *place): value for place, value in poison.items()}
    _check_kept(findings, "dead letters", records, wanted)
