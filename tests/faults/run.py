"""One fault test from its start to its report."""

from __future__ import annotations

import os
import signal
import threading
import time
import uuid
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from kafka import KafkaAdminClient

from drift.consumers import CheckpointFolder
from drift.consumers.checkpoints.file_format import describe, load
from drift.consumers.checkpoints.files import files_in
from drift.errors import CheckpointError
from tests.consumers.s3 import Store
from tests.faults.check import Findings, check, ends, read
from tests.faults.examples import PARTITIONS
from tests.faults.feed import ENDS, Feed
from tests.faults.group import Group
from tests.faults.plan import Fault, plan
from tests.faults.runner import (
    DENIED,
    PLACE,
    REFUSED,
    SESSION,
    SILENCE,
    claims,
    clock,
    folder,
    journal,
    model,
    shadow,
    worker_options,
)
from tools.kafka.broker import Broker, BrokerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["Report", "run"]

#: Seconds from one fault to the next, even if nothing was learnt in between.
_PATIENCE = 4
#: Faults that come first, one by one, and what each must have workers say; of an abort nothing.
_ACTS = {
    "abort": None,
    "tear": "; going back to ",
    "zombie": "claimed again since",
    "broker kill": ": going back to the checkpoint",
}
#: What workers must say once, and then as often as once in so many seconds.
_SEEN_EVERY = {
    "saves refused to zombies": 300,
    "fallbacks from damaged checkpoints": 200,
    "ways back to the checkpoint": 300,
}
#: Seconds after a checkpoint when the next is not yet due, and some outputs are not yet sent.
_HALFWAY = 0.5
#: Seconds from which on a run is long, and those for which its first outage lasts then: longer than
#: a worker waits for the answers to its outputs.
_LONG, _OUTAGE = 300, 65
#: Seconds in which they say it, which they do in a few unless the machine is busy; how often the
#: fault comes until they do; and seconds until it comes though there is no checkpoint.
_ACT, _TIMES, _PAUSE = 20, 6, 180
#: Seconds in which the workers must save something, until they are at the end of the log.
_QUIET = 300


@dataclass
class Report:
    """What was done, and what came of it."""

    findings: Findings
    faults: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    events: dict[str, int] = field(default_factory=dict)
    transactions: Counter[str] = field(default_factory=Counter)
    messages: int = 0
    learnt_under_faults: int = 0
    seconds: float = 0.0
    catching_up: float = 0.0
    about: str = ""  # the model and whose clock

    @property
    def holds(self) -> bool:
        """Whether everything holds that must."""
        return not self.findings.failures and not self.findings.blunt

    def lines(self) -> Iterator[str]:
        """Yield the report."""
        result = self.findings
        yield "faults: " + ", ".join(f"{k} {n}" for k, n in sorted(self.faults.items()))
        yield "seen by workers: " + ", ".join(f"{k} {n}" for k, n in self.events.items())
        yield "transactions: " + ", ".join(f"{k} {n}" for k, n in sorted(self.transactions.items()))
        for text, count in self.errors.most_common():
            yield f"a worker ended, and was started again, {count}x: {text}"
        yield (
            f"{self.messages:,} messages: {result.examples:,} examples, {result.unlabelled:,} "
            f"without a label, {result.poison:,} poison; {self.learnt_under_faults:,} of them "
            "checkpointed while faults lasted"
        )
        yield (
            f"{self.seconds:.0f} s of faults, {self.catching_up:.1f} s to the end of the log after "
            f"them; sent more than once: {result.predictions_again:,} predictions, "
            f"{result.letters_again:,} dead letters"
        )
        order = result.order
        yield (
            f"order: {order.falls:,} times back between two of {order.lines:,} checkpoints; lines "
            f"given up {order.given_up:,}, torn {order.torn:,}; orphans given up "
            f"{result.orphans_given_up:,}"
        )
        if result.labels:
            yield "labels: " + ", ".join(f"{k} {n:,}" for k, n in sorted(result.labels.items()))
        yield f"lost {result.lost}, doubled {result.doubled}"
        yield from (f"FAILED: {failure}" for failure in result.failures)
        yield from (f"BLUNT: {unseen}" for unseen in result.blunt)
        if self.holds:
            shadow = f"; promotions {result.promotions:,}" if result.promotions else ""
            keys = f", and so do those of {result.models:,} keys" if result.models else ""
            yield f"the model equals the twin's: {self.about}{keys}{shadow}"


class _Test:
    def __init__(
        self,
        broker: Broker | str,
        root: Path,
        seed: int,
        examples: int,
        *,
        late: bool,
        keyed: bool,
        shadow: bool,
    ) -> None:
        self.broker = None if isinstance(broker, str) else broker
        self.address = broker if isinstance(broker, str) else broker.address
        self.root, self.seed, self.n = root, seed, examples
        self.long = False
        name = f"drift-faults-{uuid.uuid4().hex[:8]}"
        self.topics = {"topic": name, "predictions": f"{name}-out", "dead_letters": f"{name}-dead"}
        if late:
            self.topics |= {"labels": f"{name}-labels", "orphans": f"{name}-orphans"}
        self.logs = [name, *([self.topics["labels"]] if late else [])]
        self.late, self.keyed, self.shadow = late, keyed, shadow
        self.claims = claims(name, keyed=keyed)
        self.report = Report(Findings(), about=f"{type(model(seed)).__name__}, {clock(seed)}")
        self.folder = folder(root, seed)
        self._chores: list[threading.Thread] = []
        self._last: dict[tuple[str, int], int] = {}  # where the logs end
        self._broker_lock = threading.Lock()
        self._broker_error: BrokerError | None = None  # why it is not back

    def run(self, seconds: float, tell: Callable[[float, int], None]) -> Report:
        self.long = seconds >= _LONG
        self._create_topics()
        options = {
            **self.topics,
            "group": self.topics["topic"],
            "address": self.address,
            "seed": self.seed,
            "keyed": self.keyed,
            "shadow": self.shadow,
        }
        feed = Feed(
            self.address,
            self.topics["topic"],
            self.n,
            0.95 * seconds,
            self.seed,
            self.topics.get("labels"),
            keyed=self.keyed,
        )
        group = Group(self.root, options, self.seed)
        try:
            self._wait_for_all(group)
            feed.start()
            for kind, text in _ACTS.items():
                self._act(group, feed, kind, text)
            feed.hasten()
            self._make_trouble(group, seconds, tell)
            self._finish(group, feed, seconds, tell)
        finally:
            group.kill()
            for chore in self._chores:
                chore.join()
        self._count(group, seconds)
        self._check(feed)
        return self.report

    def _create_topics(self) -> None:
        admin = KafkaAdminClient(bootstrap_servers=self.address)
        times = {
            "message.timestamp.type": "LogAppendTime"
            if clock(self.seed) == "log"
            else "CreateTime",
            "message.timestamp.after.max.ms": str(2**63 - 1),
            "retention.ms": "-1",
        }
        admin.create_topics(
            {
                topic: {
                    "num_partitions": PARTITIONS if topic in self.logs else 1,
                    "replication_factor": 1,
                    "configs": times,
                }
                for topic in self.topics.values()
            },
            wait_for_metadata=True,
        )
        admin.close()

    def _wait_for_all(self, group: Group) -> None:
        """Let the group form, so that the faults find it at work."""
        end = time.monotonic() + 90
        while len(self._offsets()) < PARTITIONS * len(self.logs):
            if time.monotonic() > end:
                raise TimeoutError(f"the group does not form: see the logs in {self.root}")
            group.watch()
            time.sleep(0.1)

    # --- while it runs -------------------------------------------------------------------------

    def _act(self, group: Group, feed: Feed, kind: str, text: str | None) -> None:
        """Let a fault happen to a group at work, until a worker says what it must lead to."""
        broker = self.broker if kind.startswith("broker") else None
        if kind.startswith("broker") and broker is None:
            return
        for _ in range(_TIMES):  # it may come too early or too late
            self._wait_between_checkpoints(group, feed)
            if not feed.is_alive():  # nothing comes that a worker could save
                break
            before = self._said(group, text)
            if broker is None:
                group.inject(Fault(0.0, kind, 0.0, 0.0))
            else:
                self.report.faults[kind] += 1
                refused = group.logged(REFUSED)
                group.hold_outputs()  # so that some are on their way
                self._watch(group, partial(self._has_said, group, REFUSED, refused))
                broker.stop(kill=True)
                group.settle()
            said = self._watch(group, partial(self._has_said, group, text, before))
            if broker is not None:
                if said and self.long:
                    self._watch(group, lambda: False, _OUTAGE)
                broker.start()
            if said:
                return
        self.report.findings.blunt.append(f"{kind}: no worker says {text!r}")

    def _said(self, group: Group, text: str | None) -> int:
        return group.injected["abort"] if text is None else group.logged(text)

    def _has_said(self, group: Group, text: str | None, before: int) -> bool:
        return self._said(group, text) > before

    def _wait_between_checkpoints(self, group: Group, feed: Feed) -> None:
        """Wait for two checkpoints, so that one may be damaged, and until the next is due."""
        for _ in range(2):
            self._watch(group, partial(self._is_beyond, self.checkpointed(), feed), _PAUSE)
        self._watch(group, lambda: False, _HALFWAY)

    def _is_beyond(self, before: int, feed: Feed) -> bool:
        """Whether there is a newer checkpoint, or there will be none."""
        return self.checkpointed() > before or not feed.is_alive()

    def _look(self, group: Group) -> None:
        """Do what is due; without a broker nothing can come of the run."""
        group.watch()
        if self._broker_error is not None:
            raise self._broker_error

    def _watch(self, group: Group, done: Callable[[], bool], seconds: float = _ACT) -> bool:
        """Wait for something, not for long, and say whether it came."""
        end = time.monotonic() + seconds
        while not done() and time.monotonic() < end:
            group.watch()
            time.sleep(0.05)
        return done()

    def _make_trouble(
        self, group: Group, seconds: float, tell: Callable[[float, int], None]
    ) -> None:
        brokers = self.broker is not None
        faults = plan(self.seed, seconds, brokers=brokers, session=SESSION, silence=SILENCE)
        started = printed = last = time.monotonic()
        done = before = 0
        while (now := time.monotonic()) < started + seconds:
            # Every other fault finds the group at work, however slow the machine is.
            ready = len(faults) % 2 or done > before or now > last + _PATIENCE
            if faults and now >= started + faults[0].time and ready:
                self._inject(group, faults.pop(0))
                last, before = now, self.checkpointed()
            self._look(group)
            if now > printed + 0.25:
                printed, done = now, self.checkpointed()
                tell(now - started, done)
            time.sleep(0.02)

    def _inject(self, group: Group, fault: Fault) -> None:
        if not fault.kind.startswith("broker"):
            group.inject(fault)
            return
        if any(chore.is_alive() for chore in self._chores):
            return  # on a busy machine it takes long to come back
        chore = threading.Thread(target=self._trouble_broker, args=(fault,))
        chore.start()
        self._chores.append(chore)

    def _trouble_broker(self, fault: Fault) -> None:
        assert self.broker is not None
        with self._broker_lock:
            if fault.kind == "broker freeze":
                pid = self.broker.pid
                assert pid is not None
                os.kill(pid, signal.SIGSTOP)
                time.sleep(1 + 9 * fault.seconds)
                os.kill(pid, signal.SIGCONT)
            else:
                self.broker.stop(kill=fault.kind == "broker kill")
                time.sleep(fault.seconds)
                try:
                    self.broker.start()
                except BrokerError as error:
                    self._broker_error = error
        self.report.faults[fault.kind] += 1

    def _finish(
        self, group: Group, feed: Feed, seconds: float, tell: Callable[[float, int], None]
    ) -> None:
        started = time.monotonic()
        before = self.report.learnt_under_faults = self.checkpointed()
        for chore in self._chores:
            chore.join()
        group.settle()
        moved = time.monotonic()
        while time.monotonic() < moved + _QUIET:
            self._look(group)
            done = self.checkpointed()
            tell(seconds, done)
            if done > before:
                moved, before = time.monotonic(), done
            if not feed.is_alive():
                self._last = self._last or ends(self.address, self.logs)
                if feed.error is not None or self._offsets() == self._last:
                    break
            time.sleep(0.2)
        else:
            self.report.findings.failures.append(
                f"the workers have saved nothing for {_QUIET} s: {self._offsets()} of {self._last}"
            )
        self.report.catching_up = time.monotonic() - started
        if not group.stop():
            self.report.findings.failures.append("a worker did not stop at SIGTERM")

    def checkpointed(self) -> int:
        """Sum of the offsets in the newest checkpoints, which counts the marks of transactions."""
        return sum(self._offsets().values())

    def _offsets(self) -> dict[tuple[str, int], int]:
        """Return where the newest checkpoints continue, without loading their models."""
        offsets = {}
        for claim in self.claims:
            files = files_in(self.folder.folder(claim))
            for which in reversed(files.listing().checkpoints):
                try:
                    entries = describe(load(files.file(*which))).header["offsets"]
                except (CheckpointError, OSError):
                    continue
                offsets |= {(topic, partition): offset for topic, partition, offset in entries}
                break
        return offsets

    # --- after it ------------------------------------------------------------------------------

    def _count(self, group: Group, seconds: float) -> None:
        report = self.report
        report.seconds = seconds
        report.faults += group.injected
        report.errors = group.errors
        report.events = {
            "models claimed": group.logged(": epoch "),
            "saves refused to zombies": group.logged("claimed again since"),
            "saves refused by a full disk": group.logged("no checkpoint, the next is tried later"),
            "fallbacks from damaged checkpoints": group.logged("; going back to "),
            "ways back to the checkpoint": group.logged(": going back to the checkpoint"),
            "outputs refused": group.logged(REFUSED),
            "outputs denied": group.logged(DENIED),
        }

    def _check_sharpness(self) -> None:
        """Note where too little was seen of what the test is for, or exit codes mislead.

        Each of these happened once before the others started. Whatever happens here may pass, so
        that no worker may end as if somebody had something to mend.
        """
        report = self.report
        for event, seconds in _SEEN_EVERY.items():
            least = 1 + int(report.seconds / seconds)
            if report.events[event] < least:
                report.findings.blunt.append(f"{event}: {report.events[event]}, fewer than {least}")
        for how in ENDS:
            if not report.transactions[how]:
                report.findings.blunt.append(f"no transaction was {how}")
        if not report.findings.predictions_again:
            report.findings.blunt.append("nothing was sent again")
        for text in report.errors:
            if text.startswith("status 2:"):
                report.findings.failures.append(f"a worker ended for good: {text}")

    def _check(self, feed: Feed) -> None:
        failures, blunt = self.report.findings.failures, self.report.findings.blunt
        feed.join(60)
        if feed.error is not None or feed.is_alive():
            failures.append(f"the producer failed: {feed.error}")
        self.report.transactions = feed.transactions
        records = {name: read(self.address, topic) for name, topic in self.topics.items()}
        logs = [records.pop(name) for name in ("topic", "labels") if name in records]
        self.report.messages = len(logs[0])
        numbers = {int(dict(r.headers)["number"]) for r in logs[0]}
        if numbers != set(range(self.n)):
            failures.append(f"the log has {len(numbers)} of {self.n} messages")
        options = {**self.topics, "group": "any", "seed": self.seed, "shadow": self.shadow}
        self.report.findings = check(
            worker_options(options),
            model(self.seed, late=self.late),
            shadow(self.seed, late=self.late) if self.shadow else None,
            logs,
            self._last,
            CheckpointFolder(self.folder.path),
            {claim: journal(self.root, self.folder, claim) for claim in self.claims},
            records,
        )
        self.report.findings.failures[:0] = failures
        self.report.findings.blunt += blunt
        self._check_sharpness()


def run(
    broker: Broker | str,
    root: Path,
    *,
    seed: int = 0,
    seconds: float = 60,
    examples: int = 50_000,
    late: bool = False,
    s3: bool = False,
    keyed: bool = False,
    shadow: bool = False,
    tell: Callable[[float, int], None] = lambda _seconds, _done: None,
) -> Report:
    """Run one fault test.

    Parameters
    ----------
    broker
        One of this machine's, which is restarted, too; or the address of one that is not.
    root
        Folder for checkpoints and logs; absent or empty.
    seed
        Of messages and faults.
    seconds
        How long faults come.
    examples
        Messages, poison included.
    late
        Labels on a separate topic, some time after the features.
    s3
        Checkpoints in an S3-compatible store, which loses answers.
    keyed
        A model for each key.
    shadow
        A second model beside the first, which often takes its place.
    tell
        Is told how far it is: seconds, and messages that are in checkpoints.
    """
    root.mkdir(parents=True, exist_ok=True)
    with _store(wanted=s3) as store:
        test = _Test(broker, root, seed, examples, late=late, keyed=keyed, shadow=shadow)
        report = test.run(seconds, tell)
        if store is not None:
            report.events["answers of the store that were lost"] = store.lost
            if not store.lost:
                report.findings.blunt.append("no answer was lost")
    return report


@contextmanager
def _store(*, wanted: bool) -> Iterator[Store | None]:
    """Have workers keep their checkpoints in a store that loses answers to a third of the puts."""
    if not wanted:
        yield None
        return
    with Store() as store:
        store.lose = 0.3
        names = {**store.environment, PLACE: "s3://faults/checkpoints"}
        before = {name: os.environ.pop(name, None) for name in names}
        os.environ.update(names)
        try:
            yield store
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value
