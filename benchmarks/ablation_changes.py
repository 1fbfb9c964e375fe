"""The changes of the Tracker that `benchmarks.ablation` measures: a rule left out, or another."""

from __future__ import annotations

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
_RATES = "DESCENT_DENSE, DESCENT_SPARSE, ADAGRAD = (0.15, 1.5), (0.8, 8.0), 0.25"
_STATISTICS = "STATISTICS_RATE, VALUE_LIMIT = 1e-3, 3.0"
_LEVEL = "LEVEL_RATE, LEVEL_HIGH, LEVEL_LOW, LEVEL_MOST = 0.02, 15.0, 0.01"

_SIZES = "TREES, MANY_TREES, DEPTH = 12, 24, 6"
_LINEAR = "drift_score_linear(t, drift_linear_of(t), scores); }"
_SPLINES = "drift_score_splines(t, drift_splines_of(t), scores); }"
_TREES = "    if (t->has_trees) drift_score_trees(t, drift_trees_of(t), t->forests, scores);\n}"
_CONTEXT_TREES = "    if (t->has_trees) drift_score_trees(t, drift_context_trees_of(t), t->forests && t->n_context, scores);\n}"  # noqa: E501 - a line of trees.h
_CONTEXT_LINEAR = "drift_score_linear(t, drift_context_linear_of(t), scores); }"
_CONTEXT_SPLINES = "drift_score_splines(t, drift_context_splines_of(t), scores); }"


def _silent(scores: str, member: int) -> str:
    """Return code by which a member's scores are 0 once they are computed."""
    silence = f"scores[(size_t)r * t->members + {member}] = 0.0;"
    return scores.replace("}", f"for (int r = 0; r < t->n_rows; r++) {silence} }}")


CHANGES: dict[str, list[Edit]] = {
    # The gates, and the calibration of their probabilities.
    "no gate of walk 3e-6": _tables(_WALKS, _WALKS.replace("3e-6, 1e-4, 0.0", "1e-4, 0.0")),
    "no gate of walk 1e-4": _tables(_WALKS, _WALKS.replace("3e-6, 1e-4, 0.0", "3e-6, 0.0")),
    "no gate of walk 0": _tables(_WALKS, _WALKS.replace(", 0.0", "")),
    "walks 1e-7, 3e-5, 0": _tables(_WALKS, _WALKS.replace("3e-6, 1e-4", "1e-7, 3e-5")),
    "gate's prior 0.01": _tables(_WALKS, _WALKS.replace("0.1,", "0.01,")),
    "gate's prior 1": _tables(_WALKS, _WALKS.replace("0.1,", "1.0,")),
    "margin over the rival alone": [("tracker.h", _RIVAL, _TO_RIVAL)],
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
    "no linear kernel": [("tables.py", "(0.0, 0.25, 2.0, 16.0), (0.5", "(0.25, 2.0, 16.0), (0.5")],
    "no kernel of width 0.25": [
        ("tables.py", "(0.0, 0.25, 2.0, 16.0), (0.5", "(0.0, 2.0, 16.0), (0.5")
    ],
    "no kernel of width 2": [
        ("tables.py", "(0.0, 0.25, 2.0, 16.0), (0.5", "(0.0, 0.25, 16.0), (0.5")
    ],
    "no kernel of width 16": [
        ("tables.py", "(0.0, 0.25, 2.0, 16.0), (0.5", "(0.0, 0.25, 2.0), (0.5")
    ],
    "no slow rate": _tables("16.0), (0.5, 6.0)", "16.0), (6.0,)"),
    "no fast rate": _tables("16.0), (0.5, 6.0)", "16.0), (0.5,)"),
    "none forgets soon": _tables(
        "SLOW_FORGETTING, FAST_FORGETTING = 0.05, 0.75",
        "SLOW_FORGETTING, FAST_FORGETTING = 0.05, 1e-9",
    ),
    # Linear members.
    "no slow descent": _tables(_RATES, _RATES.replace("(0.15,", "(0.0,").replace("(0.8,", "(0.0,")),
    "no fast descent": _tables(_RATES, _RATES.replace("1.5)", "0.0)").replace("8.0)", "0.0)")),
    "no linear Kalman filter": [("linear.h", _LINEAR, _silent(_LINEAR, 2))],
    "bias of sparse rows as a word": _tables("SPARSE_BIAS = 0.2", "SPARSE_BIAS = 1.0"),
    "no catching up": _tables(
        "PATIENCE, PATIENCE_BY_WEIGHT = 15.0", "PATIENCE, PATIENCE_BY_WEIGHT = 1e300"
    ),
    # Splines.
    "no splines": [("splines.h", _SPLINES, _silent(_SPLINES, 0))],
    "fast splines": _tables(
        "SPLINE_WALK, CONTEXT_SPLINE_WALK = 1e-4", "SPLINE_WALK, CONTEXT_SPLINE_WALK = 1e-2"
    ),
    # Trees.
    "no trees": _tables("TREES_FROM = 100", "TREES_FROM = 1000"),
    "no plain trees": [("trees.h", _TREES, _silent(_TREES, 0))],
    "no trees over the context": [("trees.h", _CONTEXT_TREES, _silent(_CONTEXT_TREES, 0))],
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
    "no AdaGrad over the context": [("linear.h", _CONTEXT_LINEAR, _silent(_CONTEXT_LINEAR, 0))],
    "no Kalman filter over the context": [
        ("linear.h", _CONTEXT_LINEAR, _silent(_CONTEXT_LINEAR, 1))
    ],
    "no splines over the context": [("splines.h", _CONTEXT_SPLINES, _silent(_CONTEXT_SPLINES, 0))],
    "slow splines over the context": _tables(
        "SPLINE_WALK, CONTEXT_SPLINE_WALK = 1e-4, 1e-2",
        "SPLINE_WALK, CONTEXT_SPLINE_WALK = 1e-4, 1e-4",
    ),
}
