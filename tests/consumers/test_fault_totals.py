"""Fault runs that continue where a call before ended; and workers that end with their run."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("kafka")

from tests.faults import __main__ as command
from tests.faults import totals
from tests.faults.check import Findings
from tests.faults.run import Report


def report(kills, lost=0, blunt=()):
    findings = Findings()
    findings.blunt += blunt
    findings.examples, findings.lost = 100, lost
    findings.failures += [f"{lost} lost"] * bool(lost)
    made = Report(findings, Counter({"kill": kills, "abort": 1}), messages=110, seconds=60.0)
    made.events = {"partitions claimed": 3}
    return made


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Call the command; its runs are those that are given, of the seeds that are returned."""

    monkeypatch.setattr(totals, "code_fingerprint", lambda: "these")

    def run(*options, reports=()):
        seeds, waiting = [], list(reports)

        def one(_, given):
            seeds.append(given.seed)
            return waiting.pop(0)

        monkeypatch.setattr(command, "_report", one)
        line = ["faults", "--folder", str(tmp_path), *options]
        monkeypatch.setattr(sys, "argv", line)
        code = command.main()
        assert not waiting
        return code, seeds

    return run


def test_totals_and_seeds_add_up_across_calls(call, tmp_path, capsys):
    assert call("--seed", "5", reports=[report(2)]) == (0, [5])
    with (tmp_path / "runs.jsonl").open("a") as file:
        file.write('{"seed": 6, "fau')  # killed in the middle of a line
    with pytest.warns(RuntimeWarning, match="cut short"):
        assert call("--seed", "5", "--total", "10", reports=[report(3), report(4)]) == (0, [6, 7])
    output = capsys.readouterr().out
    assert "total of 3 runs, seeds 5, 6, 7: 180 s, 12 faults" in output
    assert "faults: abort 3, kill 9" in output
    assert "messages: all 330, examples 300," in output
    assert "lost 0, doubled 0" in output
    assert call("--total", "10") == (0, [])  # all is done


@pytest.mark.parametrize("end", ["holds", "fails", "raises"])
def test_what_a_run_has_left_stays_unless_it_holds(end, tmp_path, monkeypatch, capsys):
    def run(root, _):
        (root / "worker-000.log").write_text("why\n")
        if end == "raises":
            raise TimeoutError("the group does not form")
        return report(1, lost=2 * (end == "fails"))

    monkeypatch.setattr(command, "_with_broker", run)
    monkeypatch.setattr(sys, "argv", ["faults", "--folder", str(tmp_path), "--seed", "3"])
    if end == "raises":
        with pytest.raises(TimeoutError):
            command.main()
    else:
        assert command.main() == (end == "fails")
    left = list(tmp_path.glob("faults-seed-3-*"))
    assert len(left) == (end != "holds")
    for root in left:
        assert (root / "worker-000.log").read_text() == "why\n"
        output = (root / "report.txt").read_text()
        assert ("FAILED: 2 lost" if end == "fails" else "the group does not form") in output
    if end == "fails":
        assert f"logs and checkpoints are in {left[0]}" in capsys.readouterr().out


def test_a_run_that_fails_ends_the_call_and_stays_in_the_total(call, capsys):
    assert call("--total", "9", reports=[report(1), report(1, lost=2)]) == (1, [0, 1])
    assert call("--total", "9") == (1, [])
    assert "FAILED with seed 1: 2 lost" in capsys.readouterr().out


def test_a_blunt_run_ends_the_call_and_is_not_counted(call, capsys):
    runs = [report(8), report(8, blunt=["zombies: 0, fewer than 1"])]
    assert call("--total", "12", reports=runs) == (1, [0, 1])
    assert call("--total", "12", reports=[report(8)]) == (0, [2])
    output = capsys.readouterr().out
    assert "total of 2 runs, seeds 0, 2: 120 s, 18 faults" in output
    assert "not counted, seed 1, blunt: zombies: 0, fewer than 1" in output


def test_other_forms_and_other_sources_are_counted_apart(call, monkeypatch):
    call(reports=[report(5)])
    assert call("--late", "--total", "2", reports=[report(5)]) == (0, [0])
    assert call("--total", "2") == (0, [])
    monkeypatch.setattr(totals, "code_fingerprint", lambda: "others")
    assert call("--total", "2", reports=[report(5)]) == (0, [0])


_WORKER = """
import os, sys, time
from tests.faults.runner import end_with

end_with(int(sys.argv[1]))
print(os.getpid(), flush=True)
time.sleep(600)
"""
_RUN = """
import os, subprocess, sys

subprocess.run([sys.executable, "-c", sys.argv[1], str(os.getpid())], check=True)
"""


def is_there(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


@pytest.mark.skipif(sys.platform != "linux", reason="Linux ends a process with its parent")
def test_a_run_that_is_killed_leaves_no_worker_even_a_frozen_one():
    line = [sys.executable, "-c", _RUN, _WORKER]
    with subprocess.Popen(line, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as run:
        worker = int(run.stdout.readline())
        os.kill(worker, signal.SIGSTOP)
        run.kill()
    until = time.monotonic() + 30
    while is_there(worker) and time.monotonic() < until:
        time.sleep(0.02)
    assert not is_there(worker)
