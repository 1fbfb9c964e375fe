"""What must be true at the end: everything against a twin that learns the logs by lists."""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from drift.consumers.checkpoints.keyed_store import ModelStore
from drift.consumers.keyed_models import KeyedModels
from drift.models._state.codec import encode
from tests.faults.twin import Order, Twin, read_order

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from drift.consumers import CheckpointFolder, WorkerOptions
    from drift.consumers.checkpoints.checkpoint import Checkpoint
    from drift.consumers.checkpoints.folder import AnyClaimId

__all__ = ["Findings", "check", "ends", "read"]


class Findings:
    """Counts, what does not hold, and what was not seen that the test is for."""

    def __init__(self) -> None:
        self.examples = 0
        self.unlabelled = 0
        self.poison = 0
        self.models = 0  # of keys
        self.promotions = 0
        self.lost = 0
        self.doubled = 0
        self.predictions_again = 0
        self.letters_again = 0
        self.orphans_given_up = 0
        self.labels: Counter[str] = Counter()
        self.order = Order()
        self.failures: list[str] = []
        self.blunt: list[str] = []


def _consumer(address: str, topics: list[str], timeout: float = 60) -> tuple[Any, dict[Any, int]]:
    """Return a consumer and the ends; a broker that has just been started knows nobody at first."""
    limit = time.monotonic() + timeout
    while True:
        consumer = KafkaConsumer(
            bootstrap_servers=address, enable_auto_commit=False, isolation_level="read_committed"
        )
        try:
            places = [
                TopicPartition(topic, number)
                for topic in topics
                for number in consumer.partitions_for_topic(topic) or ()
            ]
            return consumer, consumer.end_offsets(places)
        except KafkaError as problem:
            consumer.close(timeout_ms=1000)
            if not problem.retriable or time.monotonic() > limit:
                raise


def ends(address: str, topics: list[str]) -> dict[tuple[str, int], int]:
    """Return the offsets after all that was committed or given up, by topic and partition."""
    consumer, result = _consumer(address, topics)
    consumer.close(timeout_ms=1000)
    return {tuple(place): end for place, end in result.items()}


def read(address: str, topic: str, timeout: float = 120) -> list[Any]:
    """Return all records of a topic that were not given up, by partition and offset."""
    consumer, limits = _consumer(address, [topic])
    try:
        consumer.assign([*limits])
        consumer.seek_to_beginning()
        records: list[Any] = []
        limit = time.monotonic() + timeout
        while any(consumer.position(place) < limits[place] for place in limits):
            if time.monotonic() > limit:
                raise TimeoutError(f"{topic}: {len(records)} records read, {limits} expected")
            for batch in consumer.poll(timeout_ms=200, max_records=5_000).values():
                records += batch
    finally:
        consumer.close(timeout_ms=1000)
    return sorted(records, key=lambda record: (record.partition, record.offset))


def check(  # noqa: PLR0917
    options: WorkerOptions,
    model: Any,
    shadow: Any,
    logs: list[list[Any]],
    last: Mapping[tuple[str, int], int],
    folder: CheckpointFolder,
    journals: Mapping[AnyClaimId, Path],
    outputs: Mapping[str, list[Any]],
) -> Findings:
    """Compare what the workers left with what the twin makes of the logs.

    Parameters
    ----------
    options
        The workers'.
    model
        As theirs was before it learnt anything.
    shadow
        The second one likewise; None where there is none.
    logs
        The records of what they learnt, a list for each topic.
    last
        Where the logs end.
    folder
        Their checkpoints.
    journals
        The folder with the order in which they learnt, of each claim.
    outputs
        Records of the topics of predictions, of dead letters and of orphans.
    """
    findings = Findings()
    parted: dict[tuple[str, int], list[Any]] = {place: [] for place in last}
    for record in (record for log in logs for record in log):
        parted[record.topic, record.partition].append(record)
    predictions: dict[str, dict[str, Any]] = {}
    poison: dict[tuple[str, int, int], bytes | None] = {}
    orphans: dict[tuple[str, int, int], bytes | None] = {}
    for claim, journal in journals.items():
        newest = folder.newest(claim)
        if newest is None:
            findings.failures.append(f"{claim}: no checkpoint")
            continue
        order = Order()
        try:
            order = read_order(journal, newest.id)
        except KeyError as problem:
            findings.failures.append(f"{claim}: the order of checkpoint {problem} is missing")
        own = {place: log for place, log in parted.items() if claim[1] in {None, place[1]}}
        twin = Twin(own, order.runs, options, deepcopy(model), shadow, keyed=claim[1] is not None)
        findings.order.count(order)
        _count(findings, twin)
        _check_end(findings, newest, twin, {place: last[place] for place in own})
        _check_state(findings, newest, twin)
        if twin.keyed:
            _check_models(findings, folder, claim, twin)
        predictions |= twin.predictions
        poison |= twin.poison
        orphans |= twin.orphans
    _check_predictions(findings, predictions, outputs["predictions"])
    _check_kept(findings, "dead letters", outputs["dead_letters"], poison)
    if options.labels is not None:
        # A label that no features have in an order that a crash undid may have some in the next.
        labels = {(r.topic, r.partition, r.offset): r.value for r in logs[1]}
        _check_kept(findings, "orphans", outputs["orphans"], orphans, or_else=labels)
    return findings


def _count(findings: Findings, twin: Twin) -> None:
    is_late = twin.options.labels is not None
    findings.examples += twin.learnt
    findings.unlabelled += len(twin.predictions) if is_late else twin.unlabelled
    findings.labels += twin.counts
    findings.poison += len(twin.poison)


def _check_end(
    findings: Findings, newest: Checkpoint, twin: Twin, last: Mapping[tuple[str, int], int]
) -> None:
    left = sum(map(len, twin.left.values()))
    findings.lost += left
    if left or newest.offsets != last:
        findings.failures.append(
            f"{left} records are in no run; the model ends at {dict(newest.offsets)}, "
            f"the logs at {dict(last)}"
        )


def _check_models(
    findings: Findings, folder: CheckpointFolder, claim: AnyClaimId, twin: Twin
) -> None:
    """Claim the models of keys, as the next worker does, and compare each."""
    epoch, newest = folder.claim(claim)
    assert newest is not None
    store = ModelStore(folder.folder(claim), epoch, newest.models or ())
    models = KeyedModels(store, len(twin.own) + 1)
    wrong = []
    for key, model in twin.own.items():
        found = models.get(key)
        if found is None or encode(found) != encode(model):
            wrong.append(key)
    models.close()
    findings.models += len(twin.own)
    findings.lost += max(0, len(twin.own) - models.count)
    if wrong:
        findings.failures.append(f"{claim}: models of {len(wrong)} keys: {wrong[:3]}")
    if models.count != len(twin.own):
        findings.failures.append(f"{claim}: {models.count} models of {len(twin.own)} keys")


def _check_state(findings: Findings, newest: Checkpoint, twin: Twin) -> None:
    if encode(newest.model) != encode(twin.model):
        findings.failures.append("the model is not the twin's")
    counted = {
        "examples": twin.learnt,
        "mistakes": twin.mistakes,
        "unlabelled": twin.unlabelled,
        "dead_letters": len(twin.poison),
    }
    for name, wanted in counted.items():
        difference = newest.metrics[name] - wanted
        findings.lost += max(0, -difference)
        findings.doubled += max(0, difference)
        if difference:
            findings.failures.append(f"{name}: {newest.metrics[name]} counted of {wanted}")
    if twin.shadow is not None:
        _check_shadow(findings, newest, twin)
    if twin.options.labels is not None:
        for name in twin.differences(newest.join[0] if newest.join else {}):
            findings.failures.append(f"{name} of what waits: not the twin's")


def _check_shadow(findings: Findings, newest: Checkpoint, twin: Twin) -> None:
    findings.promotions += twin.promotions
    model, state = newest.shadow or (None, None)
    if encode(model) != encode(twin.shadow):
        findings.failures.append("the shadow is not the twin's")
    promoted = newest.promotions[-1]["number"] if newest.promotions else 0
    counts = state and [state["test"][name] for name in ("wins", "losses")]
    wanted = [twin.bettor.won, twin.bettor.lost]
    if (promoted, counts) != (twin.promotions, wanted):
        findings.failures.append(
            f"promoted {promoted} times of {twin.promotions}, then {counts} of {wanted}"
        )


def _check_predictions(
    findings: Findings, wanted: dict[str, dict[str, Any]], records: list[Any]
) -> None:
    """Look for each prediction; one for each message has to be the twin's.

    Those that were sent before a crash may be of an order that it undid.
    """
    got: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        got[record.key.decode()].append(json.loads(record.value))
    missing = wanted.keys() - got.keys()
    findings.lost += len(missing)
    wrong = [
        key
        for key, bodies in got.items()
        if key not in wanted
        or not any({name: body[name] for name in wanted[key]} == wanted[key] for body in bodies)
    ]
    findings.predictions_again = len(records) - len(got)
    if missing:
        findings.failures.append(f"{len(missing)} predictions are missing: {sorted(missing)[:3]}")
    if wrong:
        findings.failures.append(f"{len(wrong)} predictions are not the twin's: {wrong[:3]}")


def _check_kept(
    findings: Findings,
    name: str,
    records: list[Any],
    wanted: dict[tuple[str, int, int], bytes | None],
    or_else: Mapping[tuple[str, int, int], bytes | None] | None = None,
) -> None:
    """Compare what was sent on with what was to be; `or_else` are others that may be among it."""
    got = {}
    for record in records:
        facts = {key: value.decode() for key, value in dict(record.headers).items()}
        place = facts["drift.topic"], int(facts["drift.partition"]), int(facts["drift.offset"])
        got[place] = record.value
    findings.letters_again += len(records) - len(got)
    findings.lost += len(wanted.keys() - got.keys())
    for place in got.keys() - wanted.keys():
        if or_else is not None and or_else.get(place, 0) == got[place]:
            findings.orphans_given_up += 1
            del got[place]
    if got != wanted:
        wrong = sorted(p for p in got.keys() | wanted.keys() if got.get(p, 0) != wanted.get(p, 0))
        findings.failures.append(f"{name} are not the twin's: {len(wrong)}, {wrong[:3]}")
