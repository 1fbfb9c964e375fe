"""The tracker's constants and arrays, each defined here alone.

`setup.py` writes them into a header, `tables.h`, which the compiled core includes. So this file
imports nothing of the package.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = [
    "ARRAYS",
    "DIMENSIONS",
    "FAMILIES",
    "FEATURE",
    "GROUPS",
    "GROUP_OF",
    "OPTIONAL",
    "SUMS",
    "Array",
    "header",
    "n_knots",
    "sizes_of",
    "trees_of",
    "window_of",
]

# --- kernel members ------------------------------------------------------------------------------

#: Kernels, 0 being the linear one, and learning rates, each slow and fast to forget.
KERNELS, RATES = (0.0, 0.25, 2.0, 16.0), (0.5, 6.0)
#: Largest weight of an example, learning rate and `gamma`: beyond, float32 would overflow.
LARGEST_PARAMETER = 1e6
#: An example becomes a support if its loss exceeds this share of the running mean loss;
#: docs/tracker_ablation.md has what 0 and 0.25 would change.
INSERTION = 0.1
#: Decay of the running mean loss by example: it spans some thousand.
LOSS_DECAY = 0.999
#: Share of the coefficients that an insertion removes: times the budget, of members that forget
#: slowly; times the rate and the root of the budget, of the others. Large steps correct errors
#: themselves, so that a high rate needs less forgetting.
SLOW_FORGETTING, FAST_FORGETTING = 0.05, 0.75
#: Number of supports drawn; the cheapest of them is evicted.
DRAWS = 16

# --- linear members ------------------------------------------------------------------------------

#: First bits of a name's hash that are its number among the supports; collisions are rare.
NUMBER_BITS = 31
#: Weights of sparse rows, by number; words that collide share one.
HASH_SLOTS = 16384
#: Rates of gradient descent over dense and over sparse rows, and of AdaGrad.
DESCENT_DENSE, DESCENT_SPARSE, ADAGRAD = (0.15, 1.5), (0.8, 8.0), 0.25
#: Value of the bias's input in sparse rows. It is in every text, a word in few: at the words' rate
#: it would swing from class to class.
SPARSE_BIAS = 0.2
#: Over sparse rows, the regret in nats at which the slow descent copies the fast one's weights, and
#: at which the fast one, compared with the gate, resets. The second number is by weight and holds
#: where it gives more, so that writing all weights stays cheap.
PATIENCE, PATIENCE_BY_WEIGHT = 15.0, 1e-3
#: Prior variance of a weight of a Kalman filter, linear or spline.
PRIOR = 10.0

# --- splines -------------------------------------------------------------------------------------

#: Variance that an example adds to a weight, of the features' splines and of those of the context.
SPLINE_WALK, CONTEXT_SPLINE_WALK = 1e-4, 1e-2
#: Knots of a curve, half a deviation apart, and the largest number of features with one.
KNOTS, SPLINED = 9, 256
#: Padding after an example's sides, so that vectors are full.
SPARE_SIDES = 8

# --- context -------------------------------------------------------------------------------------

#: Horizons of the running means, in examples, and the largest number of features that have them.
HORIZONS, CONTEXT = (8.0, 32.0, 128.0), 64
#: Inputs of a feature with its context: its value, and its deviation from each mean.
CONTEXT_INPUTS = 1 + len(HORIZONS)

# --- trees ---------------------------------------------------------------------------------------

#: Trees of a member with two classes and with more, their depth, and the leaves of one.
TREES, MANY_TREES, DEPTH = 12, 24, 6
LEAVES = 2**DEPTH
#: The window of kept rows, as a multiple of the budget, and its least size.
WINDOW_BY_BUDGET, FEWEST = 8, 32
#: Largest number of columns, of bins of a column, of columns that a tree chooses from, and of
#: columns whose edges are renewed at one example, so that no update takes long.
TREE_COLUMNS, BINS, CHOSEN, RENEWED = 256, 64, 12, 16
#: Newest kept rows that edges are computed of.
SAMPLE = 256
#: A row is kept with the probability that it was given another class, times the first number; at
#: least with the second.
KEPT, LEAST_KEPT = 4.0, 0.1
#: What a leaf learns is scaled by the first, has the second as ridge, and is bounded by the third.
SHRINKAGE, RIDGE, LEAF_LIMIT = 0.5, 1.0, 4.0
#: Decay of a column's gains each time that it is chosen from.
FADE = 0.9
#: Deviations by which the newest rows must be predicted worse for older ones to be forgotten; the
#: least variance.
WORSE, LEAST_VARIANCE = 6.0, 1e-4
#: Gradients and curvatures are multiples of one over this, so that sums are exact in any order.
UNIT = 4096.0
#: Bounds of an example's weight in a window.
LEAST_TREE_WEIGHT, MOST_TREE_WEIGHT = 1e-6, 1e3
#: Bound of a column's values, and what stands for a missing one in a sample.
COLUMN_LIMIT, COLUMN_MISSING = 1e38, 3e38
#: From this budget on a tracker has trees unless it is told.
TREES_FROM = 100

# --- gate and calibration ------------------------------------------------------------------------

#: Gates' weights: prior variance, and the variance that an example adds in each gate. The second
#: line is for late labels, whose evidence is old.
GATE_PRIOR, GATE_WALKS = 0.1, (3e-6, 1e-4, 0.0)
LATE_PRIOR, LATE_WALKS = 0.03, (0.0, 1e-8, 0.0)
#: Share of a late label's weight with which each gate learns from current scores; the rest goes to
#: the ticket's. After a shift, tickets show old scores for a whole delay, though members have
#: adapted. Current scores alone would favour members that memorise.
LATE_CURRENT_SHARE = (0.2, 0.7, 0.2)
#: Bounds of a member's score, and of a class's probability from below.
SCORE_LIMIT, LEAST_PROBABILITY = 30.0, 1e-3
#: A gate does not learn if it gives the other classes less than this.
CONFIDENT = 1e-12
#: Maps from a gate's probabilities to calibrated ones: log-odds times a slope, mixed with equal
#: probabilities by a floor. Their weights follow the log loss; a share is redistributed equally.
SLOPES, FLOORS, MAP_SHARE = (1.0, 2.0), (0.0, 0.1, 0.2, 0.4), 3e-4

# --- tickets -------------------------------------------------------------------------------------

#: Largest size of all tickets in bytes. The longest delay decays by label, and grows at a label
#: without a ticket.
TICKET_BYTES, DELAY_DECAY, DELAY_GROWTH = 64 * 2**20, 0.999, 1.01

# --- scale of dense features ---------------------------------------------------------------------

#: Least rate of the running statistics, and bound of standardised values.
STATISTICS_RATE, VALUE_LIMIT = 1e-3, 3.0
#: After so many values, outliers are clipped at so many deviations.
WARM_UP, OUTLIER = 10, 5.0
#: Rate of the short means of squared errors, in variances, and of squared steps. A feature's
#: statistics restart if the former exceeds LEVEL_HIGH, or if the latter falls below LEVEL_LOW times
#: its long mean. An error counts for at most LEVEL_MOST variances.
LEVEL_RATE, LEVEL_HIGH, LEVEL_LOW, LEVEL_MOST = 0.02, 15.0, 0.01, 1e6
#: Rows are sparse above FEW_NAMES names of which examples have less than SPARSE_SHARE on average;
#: up to MANY_NAMES, a name must also have had fewer than SPARSE_VALUES values. From DENSE_NAMES on
#: they always are, as zeros would take too much time.
FEW_NAMES, SPARSE_SHARE, MANY_NAMES, SPARSE_VALUES, DENSE_NAMES = 256, 0.25, 1024, 3.0, 4096
#: Features of so large a share of the examples stay standardised in sparse rows, after so many.
COMMON_SHARE, FEW_EXAMPLES = 0.5, 8

#: Families of members in order, with the members' names; kernel members follow from the parameters.
#: Each family has a class in `reference.py`.
FAMILIES: dict[str, tuple[str, ...]] = {
    "kernels": (),
    "linear": ("slow SGD", "fast SGD", "Kalman"),
    "splines": ("splines",),
    "context_linear": ("context, AdaGrad", "context, Kalman"),
    "context_splines": ("context, splines",),
    "trees": ("trees",),
    "context_trees": ("context, trees",),
}
#: Those that a tracker may lack; they come last.
OPTIONAL = "trees", "context_trees"


class Array(NamedTuple):
    """One array of the tracker.

    Parameters
    ----------
    type
        Type of a number, as numpy names it.
    shape
        Names of dimensions, or their sizes.
    stored
        Whether it is part of the state; else it is work space.
    """

    type: str
    shape: tuple[str | int, ...]
    stored: bool = True

    def sized(self, sizes: dict[str, int]) -> tuple[int, ...]:
        """Return the shape for these sizes of dimensions."""
        return tuple(sizes[d] if isinstance(d, str) else d for d in self.shape)


#: Statistics of a feature: mean, variance and number of values since the last restart; share of
#: examples that have it; short mean of squared errors; last value; long and short mean of squared
#: steps; number of examples in which it was not 0; number of examples before the first; whether 0
#: was ever given.
FEATURE = (
    *("mean", "variance", "count", "share", "level", "last"),
    *("steps", "recent", "present", "since", "zero"),
)
#: Sums over examples: weights; decaying sums of losses and of their weights; squared norms; number
#: of examples learnt; examples and values since the last change of scale; squared norms with the
#: context.
SUMS = (
    *("total", "mean_loss", "mean_weight", "squares", "learnt", "examples", "values"),
    "context_squares",
)

(TOTAL, MEAN_LOSS, MEAN_WEIGHT, SQUARES, LEARNT, EXAMPLES, VALUES, CONTEXT_SQUARES) = range(
    len(SUMS)
)

#: Counts of a member of trees: the state of its draws; examples that were kept, at which number of
#: them edges are renewed, and the column from which on they still are; examples since a tree was
#: fitted; trees, and which one is fitted next.
FOREST = ("draws", "kept", "renew", "renewing", "since", "n_trees", "next")


def _trees(prefix: str) -> dict[str, Array]:
    """Return the arrays of a member of trees.

    The window, oldest row first: codes by column, leaves by tree, numbers of classes, scores,
    weights, and what the true class's probability lacked to 1. The newest kept rows; edges between
    the codes of a column, ascending, their number and the column's gains. Trees as heaps: a
    column, or -1 where all rows go left, and a threshold in each node, and the leaves' values.
    """
    window, columns = f"{prefix}window", f"{prefix}columns"
    arrays = {
        "codes": Array("uint8", (window, columns)),
        "places": Array("uint8", ("trees", window)),
        "labels": Array("int32", (window,)),
        "scores": Array("float32", ("rows", window)),
        "weights": Array("float32", (window,)),
        "missed": Array("float32", (window,)),
        "sample": Array("float32", (columns, SAMPLE)),
        "edges": Array("float32", (columns, BINS - 1)),
        "n_edges": Array("int32", (columns,)),
        "gains": Array("float64", (columns,)),
        "features": Array("int32", ("trees", LEAVES - 1)),
        "thresholds": Array("float32", ("trees", LEAVES - 1)),
        "leaves": Array("float32", ("rows", "trees", LEAVES)),
        "forest": Array("uint64", ("forests", len(FOREST))),
        "row": Array("float32", (columns,), stored=False),  # the example's
    }
    return {f"{prefix}tree_{name}": array for name, array in arrays.items()}


#: Every array. Dimensions: `members`; `kernel_members` and their `kernels`; `rows` of scores, one
#: for two classes, else one for each and one for the next; `classes`, as many, at least two;
#: `slots` of supports; `cells` of linear members, the bias and one for each name or hash; `knots`
#: of splines, bias included; `names` of features, in sparse rows those that are standardised, whose
#: hashes are `common`; `inputs` of an example, at least as many as names, `linear_inputs` with the
#: context, and `hashed` as many as `inputs` in sparse rows; `sides` of a point on the splines;
#: `context`, features that have one, and `context_cells`, `context_knots` and `context_sides` of
#: the members over them; `window`, `columns`, `context_window` and `context_columns` of the members
#: of trees, `trees` of each, `forests`, 1 or none, and `histograms` and `fitted` of the work space
#: of a fit.
ARRAYS = {
    "coefficients": Array("float32", ("rows", "kernel_members", "slots")),
    "factors": Array("float64", ("kernel_members",)),
    "squared": Array("float64", ("slots",)),
    "linear": Array("float32", ("rows", "cells", 4)),
    "regrets": Array("float64", (2,)),
    "splines": Array("float32", ("rows", 2, "knots")),
    "context_linear": Array("float32", ("rows", "context_cells", 4)),
    "context_splines": Array("float32", ("rows", 2, "context_knots")),
    **_trees(""),
    **_trees("context_"),
    "means": Array("float64", ("context", len(HORIZONS), 2)),  # and the weight of each
    "deviation_statistics": Array("float64", ("context", len(HORIZONS), len(FEATURE))),
    "gates": Array("float64", (len(GATE_WALKS), "members")),
    "covariances": Array("float64", (len(GATE_WALKS), "members", "members")),
    "maps": Array("float64", (len(GATE_WALKS) * len(SLOPES) * len(FLOORS),)),
    "features": Array("float64", ("names", len(FEATURE))),
    "common": Array("int32", ("names",)),
    "sums": Array("float64", (len(SUMS),)),
    "errors": Array("float64", ("members",)),
    "losses": Array("float64", ("members",)),
    # Parameters of the members, and the members' scores of an example.
    "widths": Array("float64", ("kernels",), stored=False),
    "rates": Array("float64", ("kernel_members",), stored=False),
    "retention": Array("float64", ("kernel_members",), stored=False),
    "walks": Array("float64", (len(GATE_WALKS),), stored=False),
    "dots": Array("float64", ("slots",), stored=False),
    "distances": Array("float32", ("slots",), stored=False),
    "kernel_values": Array("float32", ("kernels", "slots"), stored=False),
    "scores": Array("float64", ("rows", "members"), stored=False),
    "ticket_scores": Array("float64", ("rows", "members"), stored=False),
    "softmax": Array("float64", ("classes", "members"), stored=False),
    "example_losses": Array("float64", ("members",), stored=False),
    "predicted": Array("int32", ("members",), stored=False),
    "probabilities": Array("float64", (len(GATE_WALKS) + 1, "classes"), stored=False),
    "margins": Array("float64", ("members",), stored=False),
    "gains": Array("float64", ("members",), stored=False),
    # An example: its features among the supports, ascending, and their values; cells of the linear
    # members and their inputs; the raw values of this example and of the last one.
    "numbers": Array("int32", ("inputs",), stored=False),
    "values": Array("float64", ("inputs",), stored=False),
    "input_cells": Array("int32", ("linear_inputs",), stored=False),
    "cell_values": Array("float32", ("inputs",), stored=False),
    "raw": Array("float64", ("inputs",), stored=False),
    "last_raw": Array("float64", ("inputs",), stored=False),
    "raw_numbers": Array("int32", ("inputs",), stored=False),
    "last_numbers": Array("int32", ("hashed",), stored=False),
    "standardised": Array("float64", ("inputs",), stored=False),
    "curves": Array("float64", ("inputs",), stored=False),
    # Deviations from the running means; values with their context: standardised, as inputs of the
    # linear members, and for the curves.
    "raw_deviations": Array("float64", ("context", len(HORIZONS)), stored=False),
    "context_standardised": Array("float64", ("context", CONTEXT_INPUTS), stored=False),
    "context_values": Array("float32", ("context", CONTEXT_INPUTS), stored=False),
    "context_curves": Array("float64", ("context", CONTEXT_INPUTS), stored=False),
    # Statistics of the features and of their deviations after the example.
    "read_features": Array("float64", ("names", len(FEATURE)), stored=False),
    "read_deviations": Array("float64", ("context", len(HORIZONS), len(FEATURE)), stored=False),
    # The example's knots and basis values on curves; see hats.h.
    "hat_knots": Array("int32", ("sides",), stored=False),
    "hat_heights": Array("float32", ("sides", 2), stored=False),
    "context_hat_knots": Array("int32", ("context_sides",), stored=False),
    "context_hat_heights": Array("float32", ("context_sides", 2), stored=False),
    # A fit of a tree: the window's rows by node, gradients, curvatures, probabilities; histograms.
    "fit_rows": Array("int32", ("fitted",), stored=False),
    "fit_spare": Array("int32", ("fitted",), stored=False),
    "fit_gradients": Array("int32", ("fitted",), stored=False),
    "fit_curvatures": Array("int32", ("fitted",), stored=False),
    "fit_probabilities": Array("float32", ("rows", "fitted"), stored=False),
    "fit_sums": Array("float64", ("fitted",), stored=False),
    "fit_tops": Array("float32", ("fitted",), stored=False),
    "fit_signs": Array("float64", ("classes",), stored=False),
    "fit_histograms": Array("int64", ("histograms", CHOSEN, BINS, 2), stored=False),
    "hashes": Array("uint64", ("names",), stored=False),
    "keys": Array("uint64", ("hashed",), stored=False),
    "spare_keys": Array("uint64", ("hashed",), stored=False),
}

#: Groups of the stored arrays: a state has all of a type one behind the other in one array, as to
#: store and to check many small ones would take longer. Behind those of int32 are the supports'
#: sizes and features, behind those of float32 their values.
GROUP_OF = {name: array.type for name, array in ARRAYS.items() if array.stored}
GROUP_OF["covariances"] = "covariances"  # matrices, of which half is stored
GROUPS = {
    group: tuple(name for name, own in GROUP_OF.items() if own == group)
    for group in dict.fromkeys(GROUP_OF.values())
}

#: Names of the dimensions.
DIMENSIONS = sorted({d for a in ARRAYS.values() for d in a.shape if isinstance(d, str)})

_TYPES = {
    "float32": "float",
    "float64": "double",
    **{name: f"{name}_t" for name in ("uint8", "int32", "int64", "uint64")},
}


def sizes_of(names: int, *, sparse: bool, trees: int) -> dict[str, int]:
    """Return the dimensions that follow from the numbers of names and of trees."""
    context, trees = (0, 0) if sparse else (min(names, CONTEXT), trees)
    curves, context_curves = (0 if sparse else names), CONTEXT_INPUTS * context
    return {
        "cells": 1 + (HASH_SLOTS if sparse else names),
        "linear_inputs": max(names, context_curves),
        "knots": n_knots(curves),
        "sides": min(curves, SPLINED) + SPARE_SIDES,
        "names": names,
        "context": context,
        "context_cells": 1 + context_curves,
        "context_knots": n_knots(context_curves),
        "context_sides": min(context_curves, SPLINED) + SPARE_SIDES,
        "columns": min(curves, TREE_COLUMNS) * (trees > 0),
        "context_columns": context_curves * (trees > 0),
        "trees": trees,
        "forests": int(trees > 0),
        "histograms": (2 * DEPTH - 1) * (trees > 0),
    }


def trees_of(classes: int) -> int:
    """Return the number of trees of a member."""
    return MANY_TREES if classes > 2 else TREES


def window_of(budget: int) -> int:
    """Return the largest number of rows in the window of a member of trees."""
    return max(WINDOW_BY_BUDGET * budget, 2 * FEWEST)


def n_knots(names: int) -> int:
    """Return the number of a spline's weights over so many dense features: the bias comes first."""
    return 1 + KNOTS * min(names, SPLINED)


def header() -> str:
    """Return the C header.

    The struct starts with the arrays, in order, and the dimensions: both are set by index.
    """
    lines = ["/* Made by tables.py. */"]
    for name, value in globals().items():
        if name.isupper() and isinstance(value, (int, float)) and name.lower() not in SUMS:
            lines.append(f"#define DRIFT_{name} {value!r}")
        elif name.isupper() and isinstance(value, tuple) and isinstance(value[0], float):
            numbers = ", ".join(map(repr, value))
            lines.append(f"static const double DRIFT_{name}[{len(value)}] = {{{numbers}}};")
            lines.append(f"enum {{ DRIFT_N_{name} = {len(value)} }};")
    sums, feature, forest = map(", ".join, (SUMS, FEATURE, FOREST))
    lines.append(f"typedef struct {{ double {feature}; }} DriftFeature;")
    lines.append(f"typedef struct {{ double {sums}; }} DriftSums;")
    lines.append(f"typedef struct {{ uint64_t {forest}; }} DriftForest;")
    structs = dict.fromkeys(("tree_forest", "context_tree_forest"), "DriftForest")
    statistics = "features", "deviation_statistics", "read_features", "read_deviations"
    structs |= dict.fromkeys(statistics, "DriftFeature")
    structs["sums"] = "DriftSums"
    fields = [f"{structs.get(name, _TYPES[a.type])} *{name};" for name, a in ARRAYS.items()]
    lines.append(f"#define DRIFT_ARRAYS {' '.join(fields)} int {', '.join(DIMENSIONS)};")
    counts = f"DRIFT_N_ARRAYS = {len(ARRAYS)}, DRIFT_N_DIMENSIONS = {len(DIMENSIONS)}"
    lines.append(f"enum {{ {counts} }};")
    for name, members in FAMILIES.items():
        count = "t->has_trees" if name in OPTIONAL else len(members) or "t->kernel_members"
        lines.append(f"#define DRIFT_COUNT_{name} {count}")
    usual = 2 * len(KERNELS) * len(RATES) + sum(map(len, FAMILIES.values()))
    small = usual - sum(len(FAMILIES[name]) for name in OPTIONAL)
    lines.append(f"enum {{ DRIFT_USUAL = {usual}, DRIFT_USUAL_SMALL = {small} }};")
    by_rows = [(name, a.shape[1:]) for name, a in ARRAYS.items() if a.shape[0] == "rows"]
    sizes = {
        name: [f"(size_t)t->{d}" if isinstance(d, str) else str(d) for d in shape]
        for name, shape in by_rows
    }
    uses = " ".join(f"X({name}, {' * '.join(size)})" for name, size in sizes.items())
    lines.append(f"#define DRIFT_BY_ROWS(X) {uses}")
    lines.append("#define DRIFT_FAMILIES(X) " + " ".join(f"X({name})" for name in FAMILIES))
    return "\n".join(lines) + "\n"
