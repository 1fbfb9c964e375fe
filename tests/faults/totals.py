"""The runs of a folder, each a line of JSON, which add up across calls."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.faults.run import Report

__all__ = ["Runs"]

#: What is counted of a run by kind.
_COUNTS = ("faults", "seen by workers", "workers ended", "messages", "labels", "sent again")
_PACKAGE = Path(__file__).parents[2] / "drift"


def _sources() -> str:
    """Return a checksum of what is tested: runs of other sources do not count."""
    kinds = {".py", ".pyx", ".pxi", ".h"}
    files = sorted(one for one in _PACKAGE.rglob("*") if one.suffix in kinds)
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:16]


def _line(report: Report) -> dict[str, Any]:
    found = report.findings
    return {
        "seconds": report.seconds,
        "faults": dict(report.faults),
        "seen by workers": dict(report.events),
        "workers ended": dict(report.errors),
        "messages": {
            "all": report.messages,
            "examples": found.examples,
            "unlabelled": found.unlabelled,
            "poison": found.poison,
            "under faults": report.learnt_under_faults,
        },
        "labels": dict(found.labels),
        "sent again": {"predictions": found.predictions_again, "letters": found.letters_again},
        "lost": found.lost,
        "doubled": found.doubled,
        "failed": found.failures,
    }


class Runs:
    """Those of one form and of the present sources; the others stay in the file.

    Parameters
    ----------
    folder
        Where ``runs.jsonl`` is, or will be.
    form
        What was asked for beside seed and length, which are those of a run.
    """

    def __init__(self, folder: Path, form: str) -> None:
        self.file = folder / "runs.jsonl"
        self._own = {"form": form, "sources": _sources()}
        folder.mkdir(parents=True, exist_ok=True)
        self.lines = []
        text = self.file.read_text(encoding="utf-8") if self.file.exists() else ""
        for line in text.splitlines():
            try:
                entry = json.loads(line)
            except ValueError:  # the call was killed as it wrote this
                continue
            if {**entry, **self._own} == entry:
                self.lines.append(entry)
        self._begin = "\n" if text and not text.endswith("\n") else ""

    def next_seed(self, first: int) -> int:
        """Return the seed after those that there are."""
        return max([first, *(line["seed"] + 1 for line in self.lines)])

    def add(self, seed: int, report: Report) -> None:
        """Append a run."""
        line = {**self._own, "seed": seed, **_line(report)}
        with self.file.open("a", encoding="utf-8") as file:
            file.write(f"{self._begin}{json.dumps(line)}\n")
        self._begin = ""
        self.lines.append(line)

    @property
    def faults(self) -> int:
        """Number of the faults so far."""
        return sum(sum(line["faults"].values()) for line in self.lines)

    @property
    def hold(self) -> bool:
        """Whether every run held."""
        return not any(line["failed"] for line in self.lines)

    def report(self) -> Iterator[str]:
        """Yield what they come to."""
        seeds = ", ".join(str(line["seed"]) for line in self.lines)
        seconds, runs = sum(line["seconds"] for line in self.lines), len(self.lines)
        yield f"total of {runs} runs, seeds {seeds}: {seconds:.0f} s, {self.faults:,} faults"
        for name in _COUNTS:
            sums: Counter[str] = Counter()
            for line in self.lines:
                sums.update(line[name])
            if sums:
                yield f"{name}: " + ", ".join(f"{k} {n:,}" for k, n in sorted(sums.items()))
        lost, doubled = (sum(line[name] for line in self.lines) for name in ("lost", "doubled"))
        yield f"lost {lost}, doubled {doubled}"
        for line in self.lines:
            yield from (f"FAILED with seed {line['seed']}: {one}" for one in line["failed"])
        if self.hold:
            yield "every model of every run equals that of a plain loop"
