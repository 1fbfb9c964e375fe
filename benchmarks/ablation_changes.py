"""The changes of the Tracker that `benchmarks.ablation` measures: a rule left out, or another."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

#: A file of `drift/models/_tracker`, text that stands there once, and what takes its place.
Edit = tuple[str, str, str]


def _tables(old: str, new: str) -> list[Edit]:
    return [("tables.py", old, new)]


_WALKS = "GATE_PRIOR, GATE_WALKS = 0.1, (3e-6, 1e-4, 0.0)"
_MAPS = "SLOPES, FLOORS, MAP_SHARE = (1.0, 2.0), (0.0, 0.1, 0.2, 0.4), 3e-4"
_RIVAL = """    for (int r = 0; t->n_rows > 1 && r < t->n_rows; r++)
        for (int e = 0; r != number && e < n; e++) z[e] -= probabilities[r] / others * t->scores[(size_t)r * n + e];
"""  # noqa: E501 - a line of tracker.h
_TO_RIVAL = """    int rival = -1;
    for (int r = 0; t->n_rows > 1 && r < t->n_rows; r++)
        if (r != number && (rival < 0 || probabilities[r] > probabilities[rival])) rival = r;
    for (int e = 0; rival >= 0 && e < n; e++) z[e] -= t->scores[(size_t)rival * n + e];
    if (rival >= 0) others = probabilities[rival] / (probabilities[rival] + probabilities[number]);
"""
_STATISTICS = "STATISTICS_RATE, VALUE_LIMIT = 1e-3, 3.0"
_LEVEL = "LEVEL_RATE, LEVEL_HIGH, LEVEL_LOW, LEVEL_MOST = 0.02, 15.0, 0.01"

_SIZES = "TREES, MANY_TREES, DEPTH = 12, 24, 6"
_SCORED = "#undef DRIFT_SCORES\n"
#: Members by their place in the docstring of `Tracker.members`: kernel members by kernel, rate and
#: forgetting, then the others.
_KERNELS = range(16)
_OTHERS = (
    *("slow", "fast", "kalman", "splines"),
    *("context adagrad", "context kalman", "context splines", "trees", "context trees"),
)


def _without(members: Iterable[int]) -> list[Edit]:
    """Return the edit by which these members' scores are 0 once they are computed."""
    silent = sum(1 << member for member in members)
    silence = f"""    for (int k = 0; k < t->n_rows * t->members; k++)
        if ({silent}u >> k % t->members & 1) t->scores[k] = 0.0;
"""
    return [("tracker.h", _SCORED, _SCORED + silence)]


def _without_one(name: str) -> list[Edit]:
    return _without([len(_KERNELS) + _OTHERS.index(name)])


CHANGES: dict[str, list[Edit]] = {
    # The gates, and the calibration of their probabilities.
    "no gate of walk 3e-6": _tables(_WALKS, _WALKS.replace("3e-6, 1e-4, 0.0", "1e-4, 0.0")),
    "no gate of walk 1e-4": _tables(_WALKS, _WALKS.replace("3e-6, 1e-4, 0.0", "3e-6, 0.0")),
    "no gate of walk 0": _tables(_WALKS, _WALKS.replace(", 0.0", "")),
    "walks 1e-7, 3e-5, 0": _tables(_WALKS, _WALKS.replace("3e-6, 1e-4", "1e-7, 3e-5")),
    "gate's prior 0.01": _tables(_WALKS, _WALKS.replace("0.1,", "0.01,")),
    "gate's prior 1": _tables(_WALKS, _WALKS.replace("0.1,", "1.0,")),
    "margin over the rival alone": [("tracker.h", _RIVAL, _TO_RIVAL)],
    "no slope 2": _tables(_MAPS, _MAPS.replace("(1.0, 2.0)", "(1.0,)")),
    "no floors": _tables(_MAPS, "SLOPES, FLOORS, MAP_SHARE = (1.0, 2.0), (0.0,), 3e-4"),
    "no share among maps": _tables(_MAPS, _MAPS.replace("3e-4", "0.0")),
    "clip at 1e-4": _tables(
        "SCORE_LIMIT, LEAST_PROBABILITY = 30.0, 1e-3", "SCORE_LIMIT, LEAST_PROBABILITY = 30.0, 1e-4"
    ),
    # Kernel members.
    "insert always": _tables("INSERTION = 0.1", "INSERTION = 0.0"),
    "insert from 0.25": _tables("INSERTION = 0.1", "INSERTION = 0.25"),
    "evict at random": _tables("DRAWS = 16", "DRAWS = 1"),
    "evict without merging": [
        ("kernels.h", "        t->nearest = i;\n", "        t->nearest = -1;\n")
    ],
    "no linear kernel": _without(_KERNELS[:4]),
    "no kernel of width 0.25": _without(_KERNELS[4:8]),
    "no kernel of width 2": _without(_KERNELS[8:12]),
    "no kernel of width 16": _without(_KERNELS[12:]),
    "no slow rate": _without(e for e in _KERNELS if e % 4 < 2),
    "no fast rate": _without(e for e in _KERNELS if e % 4 >= 2),
    "none forgets slowly": _without(_KERNELS[::2]),
    "none forgets soon": _without(_KERNELS[1::2]),
    "no kernel members": _without(_KERNELS),
    # Linear members.
    "no slow descent": _without_one("slow"),
    "no fast descent": _without_one("fast"),
    "no Kalman filter over the features": _without_one("kalman"),
    "bias of sparse rows as a word": _tables("SPARSE_BIAS = 0.2", "SPARSE_BIAS = 1.0"),
    "no catching up": _tables(
        "PATIENCE, PATIENCE_BY_WEIGHT = 15.0", "PATIENCE, PATIENCE_BY_WEIGHT = 1e300"
    ),
    # Splines.
    "no splines over the features": _without_one("splines"),
    "fast splines": _tables(
        "SPLINE_WALK, CONTEXT_SPLINE_WALK = 1e-4", "SPLINE_WALK, CONTEXT_SPLINE_WALK = 1e-2"
    ),
    # Trees.
    "no trees": _tables("TREES_FROM = 100", "TREES_FROM = 1000"),
    "no trees over the features": _without_one("trees"),
    "no trees over the context": _without_one("context trees"),
    "6 trees": _tables(_SIZES, "TREES, MANY_TREES, DEPTH = 6, 24, 6"),
    "12 trees of many classes": _tables(_SIZES, "TREES, MANY_TREES, DEPTH = 12, 12, 6"),
    "trees of depth 4": _tables(_SIZES, "TREES, MANY_TREES, DEPTH = 12, 24, 4"),
    "all rows kept": _tables("KEPT, LEAST_KEPT = 4.0, 0.1", "KEPT, LEAST_KEPT = 4.0, 1.0"),
    "no row forgotten": _tables("WORSE, LEAST_VARIANCE = 6.0", "WORSE, LEAST_VARIANCE = 1e300"),
    # Scales.
    "statistics over 100 examples": _tables(
        _STATISTICS, "STATISTICS_RATE, VALUE_LIMIT = 1e-2, 3.0"
    ),
    "clip at 5 deviations": _tables(_STATISTICS, "STATISTICS_RATE, VALUE_LIMIT = 1e-3, 5.0"),
    "no restart after a jump": _tables(_LEVEL, _LEVEL.replace("15.0", "1e9")),
    "no restart after a fall": _tables(_LEVEL, _LEVEL.replace("0.01", "0.0")),
    "no bound on outliers": _tables("WARM_UP, OUTLIER = 10, 5.0", "WARM_UP, OUTLIER = 10, 1e300"),
    "absent is 0": [("features.h", "return f->variance > 0.0 && (f->zero", "return 0 && (f->zero")],
    "zeros of rare features have curves": [("features.h", "if (!rare) *curve = z;", "*curve = z;")],
    "nothing standardised in sparse rows": _tables(
        "COMMON_SHARE, FEW_EXAMPLES = 0.5, 8", "COMMON_SHARE, FEW_EXAMPLES = 2.0, 8"
    ),
    "sparse from 256 names": _tables(
        "MANY_NAMES, SPARSE_VALUES, DENSE_NAMES = 256, 0.25, 1024",
        "MANY_NAMES, SPARSE_VALUES, DENSE_NAMES = 256, 0.25, 256",
    ),
    # Context.
    "no context": _tables(
        "HORIZONS, CONTEXT = (8.0, 32.0, 128.0), 64", "HORIZONS, CONTEXT = (8.0, 32.0, 128.0), 0"
    ),
    "horizons 4, 16, 64": _tables(
        "HORIZONS, CONTEXT = (8.0, 32.0, 128.0)", "HORIZONS, CONTEXT = (4.0, 16.0, 64.0)"
    ),
    "horizons 16, 64, 256": _tables(
        "HORIZONS, CONTEXT = (8.0, 32.0, 128.0)", "HORIZONS, CONTEXT = (16.0, 64.0, 256.0)"
    ),
    "no AdaGrad over the context": _without_one("context adagrad"),
    "no Kalman filter over the context": _without_one("context kalman"),
    "no splines over the context": _without_one("context splines"),
    "slow splines over the context": _tables(
        "SPLINE_WALK, CONTEXT_SPLINE_WALK = 1e-4, 1e-2",
        "SPLINE_WALK, CONTEXT_SPLINE_WALK = 1e-4, 1e-4",
    ),
}
