"""Pages of the arena that are kept, with the runs that they show, and are brought up to date."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from drift.errors import DataError, ParameterError, needing
from drift.experiments.arena.page import errors_of, page_of
from drift.experiments.arena.standings import Standings, select
from drift.experiments.comparison.tables import BASELINES
from drift.experiments.folder import RunFolder
from drift.experiments.results import Results

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from drift.experiments.jobs import Record

__all__ = ["runs_of_page", "update"]


def runs_of_page(path: str | PathLike[str], columns: Sequence[str]) -> list[Record]:
    """Return the runs of a page; none where it has none yet.

    Parameters
    ----------
    path
        ``NAME.md``, beside which they are, ``NAME-runs.parquet``.
    columns
        Of the table.

    Raises
    ------
    ParameterError
        The page is no ``.md``.
    DataError
        The table is not one of runs.
    MissingExtraError
        pyarrow, pandas or matplotlib is not installed. `update` needs all three.
    """
    if Path(path).suffix != ".md":
        raise ParameterError(f"page {path}: must be a file NAME.md, such as docs/arena.md")
    for extra in ("pandas", "matplotlib"):
        with needing(extra, "compare"):
            import_module(extra)
    with needing("pyarrow", "compare"):
        from pyarrow import parquet  # noqa: PLC0415 - optional
    if not (runs := _runs(path)).exists():
        return []
    try:
        found: list[Record] = parquet.read_table(runs, columns=list(columns)).to_pylist()
    except (OSError, ValueError) as error:
        problem = f"is no table of the arena's runs ({error}): give a page of the arena"
        raise DataError(runs, None, problem) from error
    return found


def update(path: str | PathLike[str], results: Results) -> None:
    """Add runs to those of a page, and make its tables and its figure of all.

    Parameters
    ----------
    path
        ``NAME.md``, beside which are the runs, ``NAME-runs.parquet``, the errors,
        ``NAME-errors.md``, and the figures that it shows. Sections that the arena does not make
        stay where they are.
    results
        Of the arena. Its runs take the place of equal ones.

    Raises
    ------
    ParameterError, DataError, MissingExtraError
        As `runs_of_page`.
    """
    path, tables = Path(path), dict(results.kind.tables)
    known = runs_of_page(path, tables["runs"].columns)
    from drift.experiments.plots import save  # noqa: PLC0415 - matplotlib is optional

    tables["runs"] = tables["runs"]._replace(rows=lambda results: results.records)
    kind = results.kind._replace(tables=tables)
    new = results.rows("runs")
    # The baselines run in every call: the page's stay, with their times.
    models = [row for row in new if row["model"] not in BASELINES]
    every = Results(kind, select([*new, *known, *models]), {}, {}, 0.0)
    folder = RunFolder(path.parent)
    folder.write_parquet(_runs(path).stem, every["runs"])
    for name in every.figures:
        (path.parent / name).parent.mkdir(exist_ok=True)
        save(every.plot(name), path.parent / f"{name}.svg")
    standings = every.cached(Standings.of)
    page = page_of(standings, kept=True)
    folder.write_text(f"{path.stem}-errors.md", errors_of(standings, kept=True))
    folder.write_text(path.name, _within(path.read_text("utf-8"), page) if path.exists() else page)


def _runs(path: str | PathLike[str]) -> Path:
    return Path(path).with_name(f"{Path(path).stem}-runs.parquet")


def _within(page: str, made: str) -> str:
    """Return a page with its sections as they are made now, and those that are not made."""
    now = _sections(made)
    parts = [now.pop(title, part) for title, part in _sections(page).items()]
    return "\n\n".join([*parts, *now.values()]) + "\n"


def _sections(page: str) -> dict[str, str]:
    """Return sections by their title."""
    parts = [part.strip() for part in re.split("^(?=## )", page, flags=re.MULTILINE)]
    return {part.partition("\n")[0]: part for part in parts}
