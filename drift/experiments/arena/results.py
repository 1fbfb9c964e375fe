"""What the arena came to: one row a stream, model and delay, pairs of models, losses and costs."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from drift._checks import counted
from drift.errors import MissingExtraError
from drift.experiments.arena.models import MODELS
from drift.experiments.arena.streams import STREAMS
from drift.experiments.comparison.results import frame
from drift.experiments.comparison.rows import (
    BASELINES,
    RUNS,
    costs,
    grouped,
    mean,
    mean_row,
    run_rows,
)
from drift.experiments.comparison.statistics import holm, pairs_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from matplotlib.figure import Figure
    from pandas import DataFrame
    from rich.console import RenderableType

    from drift.experiments.folder import Record, RunFolder

__all__ = ["OWN", "SETTLED", "ArenaResults"]

#: The model that the others are held against.
OWN = "Tracker"
#: Rows before which the longest of the delays lets no label come.
SETTLED = 1_000
_COLUMNS = (
    *("stream", "model", "delay", "runs", "status", "rows", "unpredicted"),
    *("error", "kappa", "log_loss", "microseconds", "memory"),
)


@dataclass(frozen=True, repr=False)
class ArenaResults:
    """Records of the arena and what they show.

    Parameters
    ----------
    records
        One a run, as they are in the folder.
    seconds
        Wall time of the call that made this.

    Attributes
    ----------
    rows : list of dict
        One row a stream, model and delay, means over seeds: ``stream``, ``model``, ``delay``,
        ``runs``, ``status``, ``rows``, ``unpredicted``, ``error``, ``kappa``, ``log_loss``,
        ``microseconds``, ``memory``. ``NAME, tuned`` is the setting of NAME, its defaults included,
        that had the smallest error on this stream: a choice that nobody has beforehand.
    """

    records: list[Record]
    seconds: float

    @classmethod
    def of(
        cls, folder: RunFolder, streams: Iterable[str] = STREAMS, models: Iterable[str] = MODELS
    ) -> ArenaResults:
        """Take what a folder has, in the arena's order; of equal runs of other code the last.

        Parameters
        ----------
        folder
            Which `drift.experiments.arena.arena` has run in, to its end or not.
        streams, models
            Names to take alone.
        """
        streams, models = list(streams), [*models, *BASELINES]
        found: dict[tuple[int, ...], Record] = {}
        for record in folder.read().values():
            family, _, setting = record["model"].partition(" @ ")
            if record["stream"] in streams and family in models:
                delay, *rest = (
                    -1 if number in {None, ""} else int(number)
                    for number in (record["delay"], setting, record["seed"])
                )
                place = streams.index(record["stream"]), delay, models.index(family), *rest
                found[place] = record
        return cls([found[place] for place in sorted(found)], 0.0)

    def __repr__(self) -> str:
        return f"<ArenaResults: {counted(len(self.records), 'run')}>"

    def __rich__(self) -> RenderableType:
        from rich.markdown import Markdown  # noqa: PLC0415 - rich is for terminals

        from drift.experiments.arena.page import losses  # noqa: PLC0415 - it imports this module

        return Markdown(losses(self))

    @cached_property
    def rows(self) -> list[Record]:
        """One row a stream, model and delay."""
        groups = grouped(self.records, "stream", "model", "delay")
        means = [_mean(group) for group in groups.values()]
        found = []
        for row in means:
            if " @ " not in row["model"]:
                found += [row, *_tuned(row, means)]
        return found

    def error(self, stream: str, model: str, delay: str | None = None) -> float | None:
        """Error of a model on a stream; None where it has not ended well."""
        row = self.asked.get((stream, model, delay))
        return row["error"] if row is not None and row["status"] == "ok" else None

    @cached_property
    def asked(self) -> dict[tuple[str, str, str | None], Record]:
        """`rows` by stream, model and delay."""
        return {(row["stream"], row["model"], row["delay"]): row for row in self.rows}

    def settled(self, stream: str, model: str, delay: str | None = None) -> float | None:
        """Error over the windows behind the first `SETTLED` rows; None where it has not ended well.

        Before the first label comes there is nothing to know, and a model that says nothing there
        gains by it. Behind there all are asked the same.
        """
        return self._settled.get((stream, model, delay))

    @cached_property
    def _settled(self) -> dict[tuple[str, str, str | None], float]:
        found: dict[tuple[str, str, str | None], list[float]] = defaultdict(list)
        for record in self.records:
            known = [
                (part["error"], part["rows"] - part["unpredicted"])
                for part in record["windows"]
                if part["start"] >= SETTLED and part["error"] is not None
            ]
            if record["status"] == "ok" and known:
                errors, counts = zip(*known, strict=True)
                place = record["stream"], record["model"], record["delay"]
                found[place].append(float(np.average(errors, weights=counts)))
        return {place: sum(errors) / len(errors) for place, errors in found.items()}

    @cached_property
    def streams(self) -> list[str]:
        """Names of the streams, in the arena's order."""
        there = {row["stream"] for row in self.rows}
        return [name for name in STREAMS if name in there]

    @cached_property
    def models(self) -> list[str]:
        """Names of the models, in the arena's order."""
        there = {row["model"] for row in self.rows}
        names = [name for model in (*MODELS, *BASELINES) for name in (model, f"{model}, tuned")]
        return [name for name in names if name in there]

    def pairs(self, *, real: bool) -> list[Record]:
        """Compare `OWN` with each model, on real streams or on generated ones.

        Streams of one source count once, with their mean error. See `pairs_of`, which corrects for
        the number of these pairs alone; beside it stand the mean errors of both and of no change.
        """
        found: list[Record] = []
        streams = [s for s in self.streams if bool(STREAMS[s].source) is real]
        for other in (model for model in self.models if model != OWN):
            shared = {
                s: errors
                for s in streams
                if None not in (errors := [self.error(s, name) for name in (OWN, other)])
            }
            rows: list[Record] = [
                {"model": name, "stream": STREAMS[s].source or s, "fold": None, "error": error}
                | {"status": "ok"}
                for s, errors in shared.items()
                for name, error in zip((OWN, other), errors, strict=True)
            ]
            means = {
                key: _by_source({s: self.error(s, name) for s in shared})
                for key, name in (("error", OWN), ("theirs", other), ("no_change", BASELINES[0]))
            }
            found += [pair | means for pair in pairs_of(rows)]
        for row, p in zip(found, holm([row["wilcoxon"] for row in found]), strict=True):
            row["holm"] = p
        return found

    def losses(self, delay: str | None = None, least: float = 0.005) -> list[Record]:
        """Streams on which a rival at its defaults is better, by at least so much; worst first.

        With a delay, by the errors that are `settled`.
        """
        found = []
        error_of = self.error if delay is None else self.settled
        for stream in self.streams:
            own = error_of(stream, OWN, delay)
            rivals = {
                model: error
                for model in self.models
                if not model.startswith(OWN) and not model.endswith(", tuned")
                if (error := error_of(stream, model, delay)) is not None
            }
            if own is None or not rivals:
                continue
            best = min(rivals, key=rivals.__getitem__)
            if own - rivals[best] >= least:
                row = {"stream": stream, "error": own, "rival": best, "theirs": rivals[best]}
                found.append(row | {"gap": own - rivals[best]})
        return sorted(found, key=lambda row: -row["gap"])

    def costs(self, *, real: bool | None = None) -> tuple[list[str], list[Record]]:
        """Return streams, and error, time and memory of the models at their defaults over those.

        The models are those that ended well on half of the streams or more, and the streams those
        on which all of them did; see `drift.experiments.comparison.rows.costs`.

        Parameters
        ----------
        real
            Whether to take real streams, or generated ones; None: both.
        """
        streams = [s for s in self.streams if real in {None, bool(STREAMS[s].source)}]
        ended = {
            model: own
            for model in self.models
            if not model.endswith(", tuned")
            and 2 * len(own := {s for s in streams if self.error(s, model) is not None})
            >= len(streams)
        }
        common = set(streams).intersection(*ended.values())
        rows = [row for row in self.rows if row["model"] in ended and row["delay"] is None]
        return sorted(common), costs(rows, common)

    @property
    def runs(self) -> DataFrame:
        """One row a run, with the columns of `ComparisonResults.runs`.

        Raises
        ------
        MissingExtraError
            pandas is not installed.
        """
        groups = grouped(self.records, "delay")
        return frame([row for group in groups.values() for row in run_rows(group)], RUNS)

    @property
    def figures(self) -> dict[str, Figure]:
        """Error against time, of real streams and of generated ones, by the name of its file.

        Raises
        ------
        MissingExtraError
            matplotlib is not installed.
        """
        from drift.experiments.cost_figure import (  # noqa: PLC0415 - optional
            error_against_cost,
            panel_of,
        )

        panels = []
        for kind in ("real", "generated"):
            streams, rows = self.costs(real=kind == "real")
            title = f"mean of {len(streams)} {kind} streams"
            panels += [panel_of(rows, "microseconds", self.records, title)] if rows else []
        return {"arena-cost": error_against_cost("Error against time", panels, every=True)}

    def save(self, folder: RunFolder) -> None:
        """Write the tables, the ones without times and memory apart, the figure and the page."""
        from drift.experiments.arena.page import page  # noqa: PLC0415 - it imports this module

        timeless = [name for name in _COLUMNS if name not in {"microseconds", "memory"}]
        folder.write_table("errors.csv", [{n: row[n] for n in timeless} for row in self.rows])
        folder.write_table("table.csv", self.rows)
        for real, name in ((True, "real"), (False, "generated")):
            folder.write_table(f"pairs_{name}.csv", self.pairs(real=real))
        folder.write_table("losses.csv", self.losses())
        with suppress(MissingExtraError):  # no pandas, no Parquet
            folder.write_frame("runs", self.runs)
        (folder.path / "img").mkdir(exist_ok=True)  # where the page looks for them
        folder.write_figures(lambda: {f"img/{name}": one for name, one in self.figures.items()})
        folder.write_text("arena.md", page(self))


def _mean(group: list[Record]) -> Record:
    found = mean_row(group, _COLUMNS[:3], _COLUMNS[5:])
    for name in ("rows", "unpredicted"):
        found[name] = round(found[name])
    return found


def _by_source(errors: Mapping[str, float | None]) -> float | None:
    """Mean error over the sources of streams; None where one is not known."""
    rows = [{"source": STREAMS[s].source or s, "error": error} for s, error in errors.items()]
    if None in errors.values():
        return None
    return mean(mean(row["error"] for row in own) for own in grouped(rows, "source").values())


def _tuned(row: Record, means: Iterable[Record]) -> list[Record]:
    """Return the setting of a model with the smallest error; nothing where there is one alone."""
    known = [
        one
        for one in means
        if one["stream"] == row["stream"] and one["model"].partition(" @ ")[0] == row["model"]
        if one["delay"] is None and one["status"] == "ok" and one["error"] is not None
    ]
    if row["delay"] is not None or len(known) < 2:
        return []
    return [{**min(known, key=lambda one: one["error"]), "model": f"{row['model']}, tuned"}]
