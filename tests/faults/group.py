"""The worker processes: what a supervisor does for them, and what the faults do to them."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drift.consumers.checkpoints.checkpoint import verify
from drift.consumers.checkpoints.file_format import load
from drift.consumers.checkpoints.files import files_in
from drift.errors import CheckpointError
from tests.faults.runner import claim_steps, claims, folder, steps

if TYPE_CHECKING:
    from drift.consumers.checkpoints.files import ModelFolder
    from tests.faults.plan import Fault

__all__ = ["Group"]

_ROOT = Path(__file__).parents[2]
_CLAIMED = re.compile(r" \S+?(?::(\d+))?: epoch (\d+), ")
_FEWEST, _MOST = 2, 4
#: Faults that all workers suffer while they last.
_LASTING = ("full", "slow", "errors")
#: Share of the faults that hit the worker that learns.
_ACTIVE = 0.6
#: Seconds until a worker that has ended is started again.
_RESTART = 0.3
#: Where zombies are frozen: two before the last check whether they may save, one after it.
_ZOMBIES = tuple(f"checkpoint.{step}" for step in ("written", "checked", "order-half-written"))
#: Seconds between looks at a worker that is to become a zombie.
_LOOK = 0.2


class _Worker:
    """A process and its log."""

    def __init__(self, number: int, root: Path, options: dict[str, Any]) -> None:
        self.log = root / f"worker-{number:03d}.log"
        self.aborts = self.frozen = False
        self.leaving = False
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.faults.runner", json.dumps(options)],
                cwd=_ROOT,
                stdout=log,
                stderr=log,
            )

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def lines(self) -> list[str]:
        return self.log.read_text(encoding="utf-8", errors="replace").splitlines()

    def claims(self) -> dict[str, int]:
        """Newest epochs that it has claimed, by partition."""
        matches = [match for line in self.lines() if (match := _CLAIMED.search(line))]
        return {str(match[1]): int(match[2]) for match in matches}


class Group:
    """Two to four workers.

    Parameters
    ----------
    root
        Folder of checkpoints and logs.
    options
        What `tests.faults.runner` takes.
    seed
        Of what is torn where, and of the steps at which workers abort or freeze.

    Attributes
    ----------
    injected
        Faults by kind.
    errors
        Last lines of workers that ended by themselves, counted.
    """

    def __init__(self, root: Path, options: dict[str, Any], seed: int) -> None:
        self.root = root
        self.options = options | {"root": str(root), "parent": os.getpid()}
        self.injected: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self._rng = random.Random(seed)
        self._workers: list[_Worker] = []
        self._all: list[_Worker] = []
        self._later: list[tuple[float, Any, tuple[Any, ...]]] = []
        #: Files that have all workers do as they say for as long as they are there.
        self._lasting = {kind: root / kind for kind in (*_LASTING, "takeover")}
        checkpoints, self._keyed = folder(root, options["seed"]), options["keyed"]
        self._files = {
            str(claim[1]): files_in(checkpoints.folder(claim))
            for claim in claims(options["topic"], keyed=self._keyed)
        }
        self._saving = steps(keyed=self._keyed)
        self._steps = ["checkpoint.renamed"]  # where what was not sent before is lost
        for _ in range(_FEWEST + 1):
            self._start()

    # --- supervision ---------------------------------------------------------------------------

    def watch(self) -> None:
        """Do what is due, and start workers again that have ended; call it often."""
        now = time.monotonic()
        due = [entry for entry in self._later if entry[0] <= now]
        self._later = [entry for entry in self._later if entry[0] > now]
        for _, action, arguments in due:
            action(*arguments)
        for worker in list(self._workers):
            status = worker.process.poll()
            if status is None:
                continue
            self._workers.remove(worker)
            if worker.leaving and status in {0, -signal.SIGTERM}:  # it had not started to listen
                continue
            if worker.aborts and status == -signal.SIGKILL:
                self.injected["abort"] += 1
            else:
                self._note(worker, status)
            if not worker.leaving:
                self._in(_RESTART, self._start)

    def settle(self) -> None:
        """End all faults that last."""
        for worker in self._workers:
            self._wish(worker).unlink(missing_ok=True)
            if worker.frozen:
                self._thaw(worker)
        for path in self._lasting.values():
            path.unlink(missing_ok=True)

    def stop(self, timeout: float = 30) -> bool:
        """Stop all workers; whether each left in order."""
        self._later = []
        for worker in self._workers:
            worker.leaving = True
            worker.send(signal.SIGTERM)
        end = time.monotonic() + timeout
        while self._workers and time.monotonic() < end:
            self.watch()
            time.sleep(0.05)
        left = not self._workers
        self.kill()
        return left

    def kill(self) -> None:
        """Kill what is left."""
        for worker in self._workers:
            worker.process.kill()
            worker.process.wait()
        self._workers = []

    def hold_outputs(self) -> None:
        """Have the broker refuse all outputs, until `settle`."""
        self._lasting["errors"].write_text("all", encoding="utf-8")

    def logged(self, text: str) -> int:
        """Count the lines of all logs that hold a text."""
        return sum(text in line for worker in self._all for line in worker.lines())

    def _start(self) -> None:
        worker = _Worker(len(self._all), self.root, self.options)
        self._workers.append(worker)
        self._all.append(worker)

    def _in(self, seconds: float, action: Any, *arguments: Any) -> None:
        self._later.append((time.monotonic() + seconds, action, arguments))

    def _note(self, worker: _Worker, status: int) -> None:
        last = next((line for line in reversed(worker.lines()) if line.strip()), "")
        text = re.sub(r"\d+", "#", last)
        self.errors[f"status {status}: {text[:160]}"] += 1

    # --- faults --------------------------------------------------------------------------------

    def inject(self, fault: Fault) -> None:
        """Let a fault happen to a worker; left out where there is none to take."""
        awake = [w for w in self._workers if not w.frozen and not w.leaving]
        planned = len(awake) + sum(action == self._start for _, action, _ in self._later)
        if fault.kind in _LASTING:
            self._last(fault)
        elif fault.kind == "add" or planned < _FEWEST:
            if planned >= _MOST:
                return
            self._start()
        elif not awake:
            return
        else:
            free = [w for w in awake if not w.aborts] or awake
            if fault.kind in {"abort", "tear", "zombie", "claim", "takeover"}:
                free = [w for w in free if self._held(w)] or free
            worker = self._pick(free, fault.draw)
            if fault.kind == "remove" and planned <= _FEWEST:
                return
            getattr(self, f"_{fault.kind}")(worker, fault)
        if fault.kind not in {"abort", "zombie"}:  # which count when they are reached
            self.injected["add" if planned < _FEWEST else fault.kind] += 1

    def _pick(self, awake: list[_Worker], draw: float) -> _Worker:
        """One of them, most often the one that learns."""
        if draw < _ACTIVE:
            return max(awake, key=lambda worker: max(worker.claims().values(), default=0))
        return awake[int((draw - _ACTIVE) / (1 - _ACTIVE) * len(awake))]

    def _end(self, worker: _Worker) -> None:
        worker.process.kill()
        worker.process.wait()
        self._workers.remove(worker)

    def _kill(self, worker: _Worker, fault: Fault) -> None:
        self._end(worker)
        self._in(fault.seconds, self._start)

    def _abort(self, worker: _Worker, fault: Fault) -> None:
        """Have it kill itself at a step of its next checkpoint.

        Each step comes once before any comes twice.
        """
        self._steps = self._steps or self._rng.sample(self._saving, len(self._saving))
        worker.aborts = True
        self._ask(worker, signal.SIGKILL, self._steps.pop())

    def _remove(self, worker: _Worker, fault: Fault) -> None:
        worker.leaving = True
        worker.send(signal.SIGTERM)

    def _freeze(self, worker: _Worker, fault: Fault) -> None:
        """Freeze it wherever it is, or when it comes to a step of a checkpoint."""
        worker.frozen = True
        if self._rng.random() < 0.5:
            worker.send(signal.SIGSTOP)
        else:
            self._ask(worker, signal.SIGSTOP, self._rng.choice(self._saving))
        self._in(fault.seconds, self._thaw, worker)

    def _zombie(self, worker: _Worker, fault: Fault) -> None:
        """Freeze a worker before its checkpoint gets its name, until others have learnt all it had.

        If it has yet to check whether it is fenced, it is refused. If it has checked, it adds its
        checkpoint beside those of the others. The first one is refused.
        """
        worker.frozen = True
        self._ask(worker, signal.SIGSTOP, _ZOMBIES[self.injected["zombie"] % 3])
        self._in(_LOOK, self._rise, worker)

    def _rise(self, worker: _Worker) -> None:
        if worker not in self._workers or not worker.frozen:
            return
        if self._wish(worker).exists() or self._held(worker):
            self._in(_LOOK, self._rise, worker)
            return
        self._thaw(worker)
        self.injected["zombie"] += 1

    def _claim(self, worker: _Worker, fault: Fault) -> None:
        """Kill it, and freeze or kill whoever takes over, one after the other, amid the claim."""
        for other in self._workers:
            if other is worker or other.frozen or other.leaving or other.aborts:
                continue
            other.aborts = self._rng.random() < 0.5
            other.frozen = not other.aborts
            number = signal.SIGKILL if other.aborts else signal.SIGSTOP
            self._ask(other, number, self._rng.choice(claim_steps(keyed=self._keyed)))
            if other.frozen:
                self._in(fault.seconds, self._thaw, other)
        self._kill(worker, fault)

    def _held(self, worker: _Worker) -> list[ModelFolder]:
        """Return the files to which it may still save."""
        claimed = worker.claims().items()
        return [self._files[one] for one, n in claimed if n in self._files[one].listing().epochs]

    def _thaw(self, worker: _Worker) -> None:
        worker.frozen = False
        self._wish(worker).unlink(missing_ok=True)
        if worker in self._workers:
            worker.send(signal.SIGCONT)

    def _ask(self, worker: _Worker, number: int, step: str) -> None:
        self._wish(worker).write_text(f"{int(number)} {step}", encoding="utf-8")

    def _wish(self, worker: _Worker) -> Path:
        return self.root / f"signal-{worker.process.pid}"

    def _last(self, fault: Fault) -> None:
        """Have all workers suffer it for its time."""
        path = self._lasting[fault.kind]
        path.touch()
        self._in(fault.seconds, path.unlink, True)

    def _takeover(self, worker: _Worker, fault: Fault) -> None:
        """Kill it; who takes over does not get on before the fault has ended."""
        self._last(fault)
        self._kill(worker, fault._replace(seconds=0.0))

    def _tear(self, worker: _Worker, fault: Fault) -> None:
        """Damage the newest checkpoints of what the worker learnt.

        The one before stays whole: where all are damaged a worker rightly refuses to continue.
        """
        self._end(worker)
        for held in self._held(worker):
            files = [held.file(*which) for which in held.listing().checkpoints]
            if sum(map(_whole, files)) > 1 and _whole(files[-1]):
                self._damage(held, files[-1])
                self.injected["damaged files"] += 1
        self._in(fault.seconds, self._start)

    def _damage(self, files: ModelFolder, path: Any) -> None:
        data = bytearray(path.read_bytes())
        place = self._rng.randrange(len(data))
        if self._rng.random() < 0.5:
            del data[place:]
        else:
            data[place] ^= 1 << self._rng.randrange(8)
        path.unlink()
        files._create(path.name, bytes(data))


def _whole(path: Path) -> bool:
    try:
        verify(load(path))
    except (CheckpointError, OSError):
        return False
    return True
