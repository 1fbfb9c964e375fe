"""What the arena came to: one row a stream, model and delay, pairs of models, losses and costs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from statistics import median
from typing import TYPE_CHECKING

from drift.experiments.arena.models import MODELS
from drift.experiments.arena.streams import KINDS, STREAMS
from drift.experiments.comparison.statistics import TESTS, holm, pairs_of
from drift.experiments.comparison.tables import BASELINES, costs, mean_row
from drift.experiments.records import grouped, mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from drift.experiments.jobs import Record
    from drift.experiments.results import Results

__all__ = [
    "COLUMNS",
    "FIRST",
    "HALF",
    "LOSSES",
    "OWN",
    "PAIRS",
    "POINT",
    "QUICK_FIRST",
    "QUICK_ROWS",
    "TALLIES",
    "TENTH",
    "Standings",
    "error_after_delay",
    "error_of_all",
    "gap_of",
    "select",
]

#: The model that the others are held against.
OWN = "Tracker"
#: Rows before which the longest of the delays lets no label come, and the same in the quick form,
#: which has so many rows of a stream.
FIRST, QUICK_FIRST, QUICK_ROWS = 1_000, 100, 1_000
#: Leads that count as ahead: half a point, and a point. A loss is a tenth and more.
TENTH, HALF, POINT = 0.001, 0.005, 0.01
#: Streams over which a mean of costs is shown, at least.
_FEW = 3
COLUMNS = (
    *("stream", "model", "delay", "runs", "status", "rows", "unpredicted"),
    *("error", "error_after_delay", "kappa", "log_loss", "microseconds", "memory"),
)

#: Columns of `Standings.pairs`, `Standings.losses` and `Standings.tallies`.
PAIRS = (*TESTS, "error", "theirs")
LOSSES = ("stream", "delay", "error", "rival", "theirs", "gap")
TALLIES = (
    *("kind", "delay", "number", "fewest", "most"),
    *("ahead", "by_a_point", "level", "behind", "lead"),
)


@dataclass(frozen=True, eq=False)
class Standings:
    """What the runs of the arena come to.

    Parameters
    ----------
    runs
        Rows of its table "runs".

    Attributes
    ----------
    rows : list of dict
        One row a stream, model and delay, means over seeds: ``stream``, ``model``, ``delay``,
        ``runs``, ``status``, ``rows``, ``unpredicted``, ``error``, ``error_after_delay``,
        ``kappa``, ``log_loss``, ``microseconds``, ``memory``. ``NAME, tuned`` is the setting of
        NAME, its defaults included, that had the smallest error on this stream: a choice that
        nobody has beforehand.
    """

    runs: Sequence[Record]

    @classmethod
    def of(cls, results: Results) -> Standings:
        """Take the runs of results."""
        return cls(results.rows("runs"))

    @cached_property
    def rows(self) -> list[Record]:
        """One row a stream, model and delay."""
        groups = grouped(self.runs, "stream", "model", "delay")
        means = [_mean(group) for group in groups.values()]
        settings: dict[tuple[str, str], list[Record]] = {}
        for row in means:
            settings.setdefault((row["stream"], row["model"].partition(" @ ")[0]), []).append(row)
        all_rows = []
        for row in means:
            if " @ " not in row["model"]:
                all_rows += [row, *_tuned(row, settings[row["stream"], row["model"]])]
        return all_rows

    def error(self, stream: str, model: str, delay: str | None = None) -> float | None:
        """Error of a model on a stream; None: it has not ended well. Late, `error_after_delay`."""
        row = self.asked.get((stream, model, delay))
        if row is None or row["status"] != "ok":
            return None
        error: float | None = row["error" if delay is None else "error_after_delay"]
        return error

    @cached_property
    def asked(self) -> dict[tuple[str, str, str | None], Record]:
        """`rows` by stream, model and delay."""
        return {(row["stream"], row["model"], row["delay"]): row for row in self.rows}

    @cached_property
    def streams(self) -> list[str]:
        """Names of the streams, in the arena's order."""
        there = {row["stream"] for row in self.rows}
        return [name for name in STREAMS if name in there]

    def of_kind(self, kind: str) -> list[str]:
        """Names of the streams of a kind, one of `KINDS`, in the arena's order."""
        return [name for name in self.streams if STREAMS[name].kind == kind]

    @cached_property
    def models(self) -> list[str]:
        """Names of the models, in the arena's order."""
        there = {row["model"] for row in self.rows}
        names = [name for model in (*MODELS, *BASELINES) for name in (model, f"{model}, tuned")]
        return [name for name in names if name in there]

    @cached_property
    def delays(self) -> list[str | None]:
        """Delays of labels, in the order of the runs."""
        return list(dict.fromkeys(row["delay"] for row in self.rows))

    def pairs(self, kind: str) -> list[Record]:
        """Compare `OWN` with each other model on streams of a kind.

        Streams of one source count once, with their mean error. See `pairs_of`, which corrects for
        the number of these pairs alone; beside it stand the mean errors of both.
        """
        all_pairs: list[Record] = []
        streams = self.of_kind(kind)
        for other in (name for name in self.models if name != OWN):
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
                for key, name in (("error", OWN), ("theirs", other))
            }
            all_pairs += [pair | means for pair in pairs_of(rows)]
        for row, p in zip(all_pairs, holm([row["wilcoxon"] for row in all_pairs]), strict=True):
            row["holm"] = p
        return all_pairs

    def others(
        self,
        stream: str,
        delay: str | None = None,
        *,
        tuned: bool = False,
        always: bool = False,
    ) -> dict[str, float]:
        """Errors of the other models that have ended well on a stream, lowest first.

        Of equal ones the baselines come first. Those of `OWN`, of any size, are not among them.

        Parameters
        ----------
        stream, delay
            As for `error`.
        tuned
            Whether they are the tuned ones, not those at their defaults.
        always
            Whether they are those alone that have ended well with each delay.
        """
        errors = {
            model: error
            for model in self.models
            if not model.startswith(OWN)
            if model.endswith(", tuned") is tuned
            if (error := self.error(stream, model, delay)) is not None
            if not always or all(self.error(stream, model, d) is not None for d in self.delays)
        }
        return dict(sorted(errors.items(), key=lambda item: (item[1], item[0] not in BASELINES)))

    def tally(
        self, streams: Iterable[str], delay: str | None = None, *, always: bool = False
    ) -> Record | None:
        """Count where `OWN` is ahead of the best other model, level or behind.

        Parameters
        ----------
        streams
            Their names; those without `OWN` or `others` do not count.
        delay, always
            As for `others`.

        Returns
        -------
        dict or None
            ``number`` of the streams; ``fewest`` and ``most`` others on one; ``ahead`` and
            ``behind``, by half a point and more, and ``level``; ahead ``by_a_point`` and more;
            ``lead``, the median of the others' errors less its own. None: no stream counts.
        """
        pairs = (
            (self.error(stream, OWN, delay), self.others(stream, delay, always=always))
            for stream in streams
        )
        known = [(ours, others) for ours, others in pairs if ours is not None and others]
        if not known:
            return None
        leads = [-gap_of(ours, min(others.values())) for ours, others in known]
        numbers = [len(others) for _, others in known]
        ahead, behind = (sum(sign * lead >= HALF for lead in leads) for sign in (1, -1))
        return {
            "number": len(known),
            "fewest": min(numbers),
            "most": max(numbers),
            "ahead": ahead,
            "by_a_point": sum(lead >= POINT for lead in leads),
            "level": len(known) - ahead - behind,
            "behind": behind,
            "lead": median(leads),
        }

    def tallies(self) -> list[Record]:
        """Return the `tally` of each kind of streams, with each delay, where there is one."""
        return [
            {"kind": kind, "delay": delay, **row}
            for kind in KINDS
            for delay in self.delays
            if (row := self.tally(self.of_kind(kind), delay))
        ]

    def leads(self) -> list[Record]:
        """Return the gaps on held-out streams with labels at once, the largest lead first."""
        chosen = (row for row in self.gaps() if row["delay"] is None)
        rows = [row for row in chosen if STREAMS[row["stream"]].heldout]
        return sorted(rows, key=itemgetter("gap"))

    def gaps(self, *, tuned: bool = False) -> list[Record]:
        """Compare `OWN` with the best other model on each stream, with each delay.

        Parameters
        ----------
        tuned
            As for `others`.

        Returns
        -------
        list of dict
            ``stream``, ``delay``, ``error``, ``rival``, ``theirs`` and ``gap``, their `gap_of`; by
            kind, then by delay, the largest gap first.
        """
        gaps: list[Record] = []
        for delay in self.delays:
            for stream in self.streams:
                ours = self.error(stream, OWN, delay)
                others = self.others(stream, delay, tuned=tuned)
                if ours is not None and others:
                    rival, theirs = next(iter(others.items()))
                    values = (stream, delay, ours, rival, theirs, gap_of(ours, theirs))
                    gaps.append(dict(zip(LOSSES, values, strict=True)))
        return sorted(
            gaps,
            key=lambda row: (
                KINDS.index(STREAMS[row["stream"]].kind),
                self.delays.index(row["delay"]),
                -row["gap"],
            ),
        )

    def losses(self, *, tuned: bool = False) -> list[Record]:
        """Return the `gaps` of a tenth of a point or more."""
        return [row for row in self.gaps(tuned=tuned) if row["gap"] >= TENTH]

    @property
    def has_costs(self) -> bool:
        """Whether there are `costs` of any kind of streams."""
        return any(rows for _, rows in map(self.costs, KINDS))

    def costs(self, kind: str) -> tuple[list[str], list[Record]]:
        """Return streams, and error, time and memory of the models at their defaults over those.

        A run whose time was taken on another machine has none, and is left out. The streams are
        those on which at least half of the remaining models have run, the models those that have
        run on at least half of these, over the streams on which all of them have; see
        `drift.experiments.comparison.tables.costs`. There are none if these streams are fewer than
        three, or if of other models than `OWN` fewer than two are left.

        Parameters
        ----------
        kind
            Of the streams, one of `KINDS`.
        """
        kind_streams = self.of_kind(kind)
        rows = [
            row
            for row in self.rows
            if row["stream"] in kind_streams and row["delay"] is None and row["status"] == "ok"
            if row["microseconds"] is not None and not row["model"].endswith(", tuned")
        ]
        models_of = _gathered(rows, "stream", "model")
        names = set().union(*models_of.values())
        streams = {s for s, models in models_of.items() if 2 * len(models) >= len(names)}
        streams_of = _gathered((row for row in rows if row["stream"] in streams), "model", "stream")
        timed = {m: where for m, where in streams_of.items() if 2 * len(where) >= len(streams)}
        common = streams.intersection(*timed.values())
        if len(common) < _FEW or sum(not model.startswith(OWN) for model in timed) < 2:
            return [], []  # too little to compare
        return sorted(common), costs([row for row in rows if row["model"] in timed], common)


def gap_of(ours: float, theirs: float) -> float:
    """By how much the second error is lower than the first.

    It is the difference of both as pages print them, in percent with two decimals. So a reader who
    subtracts finds what is printed, and what is counted or bold.

    Parameters
    ----------
    ours, theirs
        Errors.

    Examples
    --------
    >>> from drift.experiments.arena.standings import gap_of
    >>> gap_of(0.25766, 0.22324)  # 25.77 % and 22.32 %
    0.0345
    """
    return round(round(100 * ours, 2) - round(100 * theirs, 2), 2) / 100


def error_of_all(record: Record) -> float | None:
    """Error of a run over all rows that count: a row without a prediction is a mistake.

    Else a model that says nothing where it is hard would have fewer rows than its rivals.

    Parameters
    ----------
    record
        Of the run.
    """
    if not record["rows"]:
        return None
    error: float = (record["mistakes"] + record["unpredicted"]) / record["rows"]
    return error


def error_after_delay(record: Record, rows: int = FIRST) -> float | None:
    """Error of a run with late labels over the windows behind the first rows, if any.

    Before the first label comes there is nothing to know. Behind there all are asked the same, and
    a row without a prediction is a mistake.

    Parameters
    ----------
    record
        Of the run.
    rows
        How many of the first do not count.
    """
    known = [part for part in record["windows"] if part["start"] >= rows and part["rows"]]
    if record["delay"] is None or not known:
        return None
    wrong = sum(
        part["unpredicted"] + (part["error"] or 0.0) * (part["rows"] - part["unpredicted"])
        for part in known
    )
    return float(wrong / sum(part["rows"] for part in known))


def select(
    records: Iterable[Record], streams: Iterable[str] = STREAMS, models: Iterable[str] = MODELS
) -> list[Record]:
    """Return the records of these streams and models, in their order; of equal runs the last.

    Parameters
    ----------
    records
        All that a folder has.
    streams, models
        Names.
    """
    streams, models = list(streams), [*models, *BASELINES]
    chosen: dict[tuple[int, ...], Record] = {}
    for record in records:
        family, _, setting = record["model"].partition(" @ ")
        if record["stream"] in streams and family in models:
            delay, *rest = (
                -1 if number in {None, ""} else int(number)
                for number in (record["delay"], setting, record["seed"])
            )
            place = streams.index(record["stream"]), delay, models.index(family), *rest
            chosen[place] = {"contender": record["model"], **record}
    return [chosen[place] for place in sorted(chosen)]


def _gathered(rows: Iterable[Record], key: str, column: str) -> dict[str, set[str]]:
    return {name: {row[column] for row in group} for (name,), group in grouped(rows, key).items()}


def _mean(group: list[Record]) -> Record:
    row = mean_row(group, COLUMNS)
    for name in ("rows", "unpredicted"):
        row[name] = round(row[name])
    return row


def _by_source(errors: Mapping[str, float | None]) -> float | None:
    """Mean error over the sources of streams; None where one is not known."""
    rows = [{"source": STREAMS[s].source or s, "error": error} for s, error in errors.items()]
    if None in errors.values():
        return None
    return mean(mean(row["error"] for row in group) for group in grouped(rows, "source").values())


def _tuned(row: Record, settings: Iterable[Record]) -> list[Record]:
    """Return the setting of a model with the smallest error; nothing where there is one alone."""
    known = [
        setting
        for setting in settings
        if setting["delay"] is None and setting["status"] == "ok" and setting["error"] is not None
    ]
    if row["delay"] is not None or len(known) < 2:
        return []
    return [{**min(known, key=lambda setting: setting["error"]), "model": f"{row['model']}, tuned"}]
