"""The fault runs of a folder, which add up across calls."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from drift.experiments.code import code_fingerprint
from drift.experiments.jobs import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from drift.experiments import RunFolder
    from tests.faults.run import Report

__all__ = ["Runs"]

#: What is counted of a run by kind.
_COUNTS = (
    *("faults", "transactions", "seen by workers", "workers ended"),
    *("messages", "labels", "order", "sent again"),
)


def _line(report: Report) -> dict[str, Any]:
    result = report.findings
    return {
        "seconds": report.seconds,
        "faults": dict(report.faults),
        "transactions": dict(report.transactions),
        "seen by workers": dict(report.events),
        "workers ended": dict(report.errors),
        "messages": {
            "all": report.messages,
            "examples": result.examples,
            "unlabelled": result.unlabelled,
            "poison": result.poison,
            "under faults": report.learnt_under_faults,
        },
        "labels": dict(result.labels),
        "order": {
            "times back": result.order.falls,
            "lines": result.order.lines,
            "lines given up": result.order.given_up,
            "lines torn": result.order.torn,
            "orphans given up": result.orphans_given_up,
        },
        "sent again": {"predictions": result.predictions_again, "letters": result.letters_again},
        "lost": result.lost,
        "doubled": result.doubled,
        "failed": result.failures,
        "blunt": result.blunt,
    }


class Runs:
    """Those of one form and of the present sources; the others stay in the file.

    A run that was blunt, as on a machine that is too busy, must hold and is not counted.

    Parameters
    ----------
    folder
        The folder.
    form
        The other settings; seed and length differ by run.
    """

    def __init__(self, folder: RunFolder, form: str) -> None:
        self.folder = folder
        self._own = {"form": form, "sources": code_fingerprint()}
        self.lines = [one for one in folder.read().values() if one | self._own == one]

    def next_seed(self, first: int) -> int:
        """Return the seed after those that there are."""
        return max([first, *(line["seed"] + 1 for line in self.lines)])

    def add(self, seed: int, report: Report) -> None:
        """Append a run."""
        identity = {**self._own, "seed": seed}
        line = {"key": fingerprint(identity), **identity, **_line(report)}
        self.folder.append(line)
        self.lines.append(line)

    @property
    def faults(self) -> int:
        """Number of the faults so far."""
        return sum(sum(line["faults"].values()) for line in self._sharp)

    @property
    def _sharp(self) -> list[dict[str, Any]]:
        return [line for line in self.lines if not line.get("blunt")]

    @property
    def hold(self) -> bool:
        """Whether every run held."""
        return not any(line["failed"] for line in self.lines)

    def report(self) -> Iterator[str]:
        """Yield what they come to."""
        sharp = self._sharp
        seeds = ", ".join(str(line["seed"]) for line in sharp)
        seconds, runs = sum(line["seconds"] for line in sharp), len(sharp)
        yield f"total of {runs} runs, seeds {seeds}: {seconds:.0f} s, {self.faults:,} faults"
        for name in _COUNTS:
            sums: Counter[str] = Counter()
            for line in sharp:
                sums.update(line[name])
            if sums:
                yield f"{name}: " + ", ".join(f"{k} {n:,}" for k, n in sorted(sums.items()))
        lost, doubled = (sum(line[name] for line in self.lines) for name in ("lost", "doubled"))
        yield f"lost {lost}, doubled {doubled}"
        for line in self.lines:
            yield from (f"FAILED with seed {line['seed']}: {one}" for one in line["failed"])
            if line.get("blunt"):
                yield f"not counted, seed {line['seed']}, blunt: " + "; ".join(line["blunt"])
        if self.hold:
            yield "the model of every run equals the twin's"
