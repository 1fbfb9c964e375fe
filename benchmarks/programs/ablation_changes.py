"""The changes of the Tracker that `ablation` measures: a rule left out, or another."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from drift.models._tracker import tables

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
_KERNELS = range(2 * len(tables.KERNELS) * len(tables.RATES))
_OTHERS = [*chain(*tables.FAMILIES.values())]


def _without(members: Iterable[int]) -> list[Edit]:
    """Return the edit by which these members' scores are 0 once they are computed."""
    silent = sum(1 << member for member in members)
    silence = f"""    for (int k = 0; k < t->n_rows * t->members; k++)
        if ({silent}u >> k % t->members & 1) t->scores[k] = 0.0;
"""
    return [("tracker.h", _SCORED, _SCORED + silence)]


def _without_one(name: str) -> list[Edit]:
    return _without([len(_KERNELS) + _OTHERS.index(name)])


#: The changes of each part of the Tracker, by name.
PARTS: dict[str, dict[str, list[Edit]]] = {
    "Members": {
        "no trees": _tables("TREES_FROM = 100", "TREES_FROM = 1000"),
        "no trees without context": _without_one("trees"),
        "no trees with context": _without_one("context, trees"),
        "no kernel members": _without(_KERNELS),
        "no linear kernel": _without(_KERNELS[:4]),
        "no kernel of gamma 0.25": _without(_KERNELS[4:8]),
        "no kernel of gamma 2": _without(_KERNELS[8:12]),
        "no kernel of gamma 16": _without(_KERNELS[12:]),
        "no kernel members of the slow rate": _without(e for e in _KERNELS if e % 4 < 2),
        "no kernel members of the fast rate": _without(e for e in _KERNELS if e % 4 >= 2),
        "no kernel members of slow forgetting": _without(_KERNELS[::2]),
        "no kernel members of fast forgetting": _without(_KERNELS[1::2]),
        "no context": _tables(
            "HORIZONS, CONTEXT = (8.0, 32.0, 128.0), 64",
            "HORIZONS, CONTEXT = (8.0, 32.0, 128.0), 0",
        ),
        "no AdaGrad": _without_one("context, AdaGrad"),
        "no Kalman filter with context": _without_one("context, Kalman"),
        "no splines with context": _without_one("context, splines"),
        "no Kalman filter without context": _without_one("Kalman"),
        "no splines without context": _without_one("splines"),
        "no slow gradient descent": _without_one("slow SGD"),
        "no fast gradient descent": _without_one("fast SGD"),
    },
    "Gates and calibration": {
        "no first gate, process noise 3e-6": _tables(
            _WALKS, _WALKS.replace("3e-6, 1e-4, 0.0", "1e-4, 0.0")
        ),
        "no second gate, 1e-4": _tables(_WALKS, _WALKS.replace("3e-6, 1e-4, 0.0", "3e-6, 0.0")),
        "no third gate, 0": _tables(_WALKS, _WALKS.replace(", 0.0", "")),
        "process noise 1e-7, 3e-5, 0": _tables(_WALKS, _WALKS.replace("3e-6, 1e-4", "1e-7, 3e-5")),
        "initial variance 0.01, not 0.1": _tables(_WALKS, _WALKS.replace("0.1,", "0.01,")),
        "initial variance 1, not 0.1": _tables(_WALKS, _WALKS.replace("0.1,", "1.0,")),
        "score against the likeliest other class alone": [("tracker.h", _RIVAL, _TO_RIVAL)],
        "no maps of power 2": _tables(_MAPS, _MAPS.replace("(1.0, 2.0)", "(1.0,)")),
        "no maps of label noise above 0": _tables(
            _MAPS, "SLOPES, FLOORS, MAP_SHARE = (1.0, 2.0), (0.0,), 3e-4"
        ),
        "no weight shared among maps": _tables(_MAPS, _MAPS.replace("3e-4", "0.0")),
        "probabilities from 0.0001, not 0.001": _tables(
            "SCORE_LIMIT, LEAST_PROBABILITY = 30.0, 1e-3",
            "SCORE_LIMIT, LEAST_PROBABILITY = 30.0, 1e-4",
        ),
    },
    "Supports": {
        "every example becomes a support": _tables("INSERTION = 0.1", "INSERTION = 0.0"),
        "a support from 0.25 times the mean log loss, not 0.1": _tables(
            "INSERTION = 0.1", "INSERTION = 0.25"
        ),
        "evict a random support": _tables("DRAWS = 16", "DRAWS = 1"),
        "evict without merging": [
            ("kernels.h", "        t->nearest = i;\n", "        t->nearest = -1;\n")
        ],
    },
    "Linear members and splines": {
        "full bias of sparse rows": _tables("SPARSE_BIAS = 0.2", "SPARSE_BIAS = 1.0"),
        "no CUSUM tests on sparse rows": _tables(
            "PATIENCE, PATIENCE_BY_WEIGHT = 15.0", "PATIENCE, PATIENCE_BY_WEIGHT = 1e300"
        ),
        "fast splines without context": _tables(
            "SPLINE_WALK, CONTEXT_SPLINE_WALK = 1e-4", "SPLINE_WALK, CONTEXT_SPLINE_WALK = 1e-2"
        ),
        "slow splines with context": _tables(
            "SPLINE_WALK, CONTEXT_SPLINE_WALK = 1e-4, 1e-2",
            "SPLINE_WALK, CONTEXT_SPLINE_WALK = 1e-4, 1e-4",
        ),
    },
    "Trees": {
        "6 trees, not 12": _tables(_SIZES, "TREES, MANY_TREES, DEPTH = 6, 24, 6"),
        "12 trees with many classes, not 24": _tables(
            _SIZES, "TREES, MANY_TREES, DEPTH = 12, 12, 6"
        ),
        "trees of depth 4, not 6": _tables(_SIZES, "TREES, MANY_TREES, DEPTH = 12, 24, 4"),
        "trees keep all rows": _tables(
            "KEPT, LEAST_KEPT = 4.0, 0.1", "KEPT, LEAST_KEPT = 4.0, 1.0"
        ),
        "trees never forget rows": _tables(
            "WORSE, LEAST_VARIANCE = 6.0", "WORSE, LEAST_VARIANCE = 1e300"
        ),
    },
    "Scales": {
        "means and deviations over 100 examples, not 1,000": _tables(
            _STATISTICS, "STATISTICS_RATE, VALUE_LIMIT = 1e-2, 3.0"
        ),
        "clip at 5 deviations, not 3": _tables(
            _STATISTICS, "STATISTICS_RATE, VALUE_LIMIT = 1e-3, 5.0"
        ),
        "no restart after a jump": _tables(_LEVEL, _LEVEL.replace("15.0", "1e9")),
        "no restart after a fall": _tables(_LEVEL, _LEVEL.replace("0.01", "0.0")),
        "no bound on outliers": _tables(
            "WARM_UP, OUTLIER = 10, 5.0", "WARM_UP, OUTLIER = 10, 1e300"
        ),
        "absent names are 0": [
            ("features.h", "return f->variance > 0.0 && (f->zero", "return 0 && (f->zero")
        ],
        "zeros of rare features have curves": [
            ("features.h", "if (!rare) *curve = z;", "*curve = z;")
        ],
        "nothing standardised in sparse rows": _tables(
            "COMMON_SHARE, FEW_EXAMPLES = 0.5, 8", "COMMON_SHARE, FEW_EXAMPLES = 2.0, 8"
        ),
        "sparse from 256 names, not 1,024": _tables(
            "MANY_NAMES, SPARSE_VALUES, DENSE_NAMES = 256, 0.25, 1024",
            "MANY_NAMES, SPARSE_VALUES, DENSE_NAMES = 256, 0.25, 256",
        ),
    },
    "Context": {
        "horizons 4, 16, 64, not 8, 32, 128": _tables(
            "HORIZONS, CONTEXT = (8.0, 32.0, 128.0)", "HORIZONS, CONTEXT = (4.0, 16.0, 64.0)"
        ),
        "horizons 16, 64, 256, not 8, 32, 128": _tables(
            "HORIZONS, CONTEXT = (8.0, 32.0, 128.0)", "HORIZONS, CONTEXT = (16.0, 64.0, 256.0)"
        ),
    },
}
CHANGES = {name: edits for part in PARTS.values() for name, edits in part.items()}
