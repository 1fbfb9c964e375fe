"""Whether differences between models are more than chance, by tests that others wrote."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import rankdata, studentized_range, wilcoxon

from drift.experiments.records import grouped

if TYPE_CHECKING:
    from collections.abc import Iterable

    from drift.experiments.jobs import Record

__all__ = ["ROPE", "TESTS", "holm", "pairs_of", "ranks_of"]

#: Columns of the table of tests.
TESTS = (
    *("model", "other", "unit", "n", "wins", "losses", "ties", "median_difference", "wilcoxon"),
    *("holm", "p_better", "p_equivalent", "p_worse"),
)
#: Errors that differ by less count as the same: half a point.
ROPE = 0.005
_SAMPLES = 10_000


def pairs_of(rows: Iterable[Record]) -> list[Record]:
    """Compare the errors of each pair of models, run beside run.

    Parameters
    ----------
    rows
        As from `drift.experiments.comparison.tables.run_rows`; those that did not end well are left
        out, and so is what only one of the two has run.

    Returns
    -------
    list of dict
        For each pair ``model`` and ``other``; ``unit``: what they are compared over, ``stream``
        where there are several, each with its mean error over seeds and folds, else ``fold``;
        ``n``, so many; ``wins``, ``losses`` and ``ties``, those where the error of the model is
        smaller, larger, or the same; ``median_difference`` of the errors, the model's less the
        other's; ``wilcoxon``, the p of SciPy's signed-rank test without the ties, exact for up to
        50 differences, and up to 13 if some are equally large; and ``holm``, the same corrected by
        Holm's method for the number of pairs; ``p_better``, ``p_equivalent``, ``p_worse``, what
        the Bayesian signed-rank test of baycomp says with a region of equivalence of half a point;
        None where baycomp, of the extra ``compare``, is not installed. One stream with one fold has
        nothing to test: no rows.

    References
    ----------
    .. [1] A. Benavoli, G. Corani, J. Demsar, M. Zaffalon, "Time for a change: a tutorial for
       comparing multiple classifiers through Bayesian analysis", JMLR 18 (2017).
    """
    unit, errors = _errors(rows)
    pairs = []
    for model, other in combinations(errors, 2):
        common = [place for place in errors[model] if place in errors[other]]
        if len(common) < 2:
            continue
        ours, theirs = (
            np.array([errors[name][place] for place in common]) for name in (model, other)
        )
        pairs.append({"model": model, "other": other, "unit": unit, **_pair(ours, theirs)})
    for row, p in zip(pairs, holm([row["wilcoxon"] for row in pairs]), strict=True):
        row["holm"] = p
    return pairs


def _errors(rows: Iterable[Record]) -> tuple[str, dict[str, dict[Any, float]]]:
    """What models are compared over, and the mean error of each there, by model."""
    ended = [row for row in rows if row["status"] == "ok" and row["error"] is not None]
    unit = "stream" if len({row["stream"] for row in ended}) > 1 else "fold"
    errors: dict[str, dict[Any, float]] = {}
    for (model, place), group in grouped(ended, "model", unit).items():
        errors.setdefault(model, {})[place] = float(np.mean([row["error"] for row in group]))
    return unit, errors


def ranks_of(rows: Iterable[Record]) -> tuple[dict[str, float], float]:
    """Mean rank of each model, 1 the smallest error, and Nemenyi's critical difference at 5 %.

    Parameters
    ----------
    rows
        As for `pairs_of`; models that have not ended everywhere are left out.

    Examples
    --------
    >>> from drift.experiments.comparison.statistics import ranks_of
    >>> rows = [
    ...     {"model": model, "stream": stream, "status": "ok", "error": error}
    ...     for stream, errors in {"s": [0.1, 0.2, 0.2], "t": [0.3, 0.1, 0.2]}.items()
    ...     for model, error in zip("abc", errors)
    ... ]
    >>> ranks_of(rows)[0]
    {'a': 2.0, 'b': 1.75, 'c': 2.25}
    """
    _, errors = _errors(rows)
    places = {place for by_place in errors.values() for place in by_place}
    whole = {model: by_place for model, by_place in errors.items() if by_place.keys() == places}
    table = np.array([[by_place[place] for place in places] for by_place in whole.values()])
    means = dict(zip(whole, rankdata(table, axis=0).mean(axis=1).tolist(), strict=True))
    k, n = max(2, len(whole)), max(1, len(places))
    q = studentized_range.ppf(0.95, k, np.inf) / np.sqrt(2)
    return means, float(q * np.sqrt(k * (k + 1) / (6 * n)))


def _pair(ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any]) -> Record:
    gaps = ours - theirs
    # SciPy's test leaves out ties, too, but takes the normal approximation for their sake.
    apart = gaps[gaps != 0]
    try:
        shares: Iterable[float | None] = _bayesian(tuple(ours.tolist()), tuple(theirs.tolist()))
    except ImportError:
        shares = (None, None, None)
    return {
        "n": len(gaps),
        "wins": int((gaps < 0).sum()),
        "losses": int((gaps > 0).sum()),
        "ties": int((gaps == 0).sum()),
        "median_difference": float(np.median(gaps)),
        "wilcoxon": float(wilcoxon(apart).pvalue) if apart.size else 1.0,
        **dict(zip(("p_worse", "p_equivalent", "p_better"), shares, strict=True)),
    }


@cache  # a table, a page and a figure ask for the same
def _bayesian(ours: tuple[float, ...], theirs: tuple[float, ...]) -> tuple[float, ...]:
    from baycomp import SignedRankTest  # noqa: PLC0415 - optional

    # It expects scores, where more is better: the first is p(our errors are larger).
    shares = SignedRankTest.probs(
        np.array(ours), np.array(theirs), ROPE, nsamples=_SAMPLES, random_state=0
    )
    return tuple(map(float, shares))


def holm(pvalues: list[float]) -> list[float]:
    """Correct p-values for their number, by Holm's method.

    Examples
    --------
    >>> from drift.experiments.comparison.statistics import holm
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(pvalues, kind="stable")
    adjusted, so_far = [1.0] * len(pvalues), 0.0
    for rank, i in enumerate(order.tolist()):
        so_far = max(so_far, min(1.0, (len(pvalues) - rank) * pvalues[i]))
        adjusted[i] = so_far
    return adjusted
