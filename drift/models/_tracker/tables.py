"""The tracker's constants and the arrays that it consists of: each stands here, and only here.

`setup.py` writes both into a header, `tables.h`, which the compiled core includes. So this file
imports nothing of the package.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ARRAYS", "DIMENSIONS", "FAMILIES", "FEATURE", "SUMS", "Array", "header", "n_knots"]

# --- kernel experts ------------------------------------------------------------------------------

#: Largest weight of an example, learning rate and `gamma`: beyond, float32 would overflow.
MOST = 1e6
#: An example becomes a support where its loss is above this share of the running mean loss. With
#: 0 spam loses 6 % and time a quarter; with 0.25 the mean error rises by 0.4 %.
INSERTION = 0.1
#: What the running mean loss keeps at each example: it is over the last thousand.
MEMORY = 0.999
#: Share of the coefficients that an insertion takes: times the budget, of experts that forget
#: slowly; times rate and root of the budget, of the others, as large steps overwrite what is wrong.
SLOWLY, SOON = 0.05, 0.75
#: Number of supports drawn; the cheapest of them is evicted.
DRAWS = 16

# --- linear experts ------------------------------------------------------------------------------

#: Weights of sparse rows, by hash; two words in one slot are one.
SLOTS = 16384
#: Rates of gradient descent over dense and over sparse rows, and of AdaGrad.
DESCENT_DENSE, DESCENT_SPARSE, ADAGRAD = (0.15, 1.5), (0.8, 8.0), 0.25
#: What the bias counts as a feature of sparse rows. It is in every text, a word in few: at a rate
#: that suits words it would swing from class to class.
SPARSE_BIAS = 0.2
#: Over sparse rows, nats by which the slower of the two may fall behind the faster one, whose
#: weights it then takes, and that one behind the gate, when it starts anew; and the same for each
#: weight, if that is more, so that writing them all costs little beside the examples in between.
PATIENCE, PATIENCE_BY_WEIGHT = 15.0, 1e-3
#: Variance of a weight of a Kalman filter, linear or spline, before it has seen anything.
PRIOR = 10.0

# --- splines -------------------------------------------------------------------------------------

#: What an example adds to the variance of a weight in each of them: one slow, one fast.
SPLINE_WALKS = (1e-4, 1e-2)
#: Knots of a curve, half a deviation apart, and number of the features that have one.
KNOTS, SPLINED = 9, 256
#: Knots along a side of a surface, a deviation apart, and the features whose pairs have one.
PAIR_KNOTS, PAIRED = 5, 16
#: Sides behind those of an example: a vector may be filled up with them, and one is zeros.
SPARE_SIDES = 8

# --- context -------------------------------------------------------------------------------------

#: Horizons, in examples, of the running means that a feature is compared with; where there are no
#: more features than the second number.
HORIZONS, CONTEXT = (8.0, 32.0, 128.0), 64
#: Values of a feature beside its context: itself, and its deviation from each mean.
BESIDE = 1 + len(HORIZONS)

# --- gate and calibration ------------------------------------------------------------------------

#: Of the gates' weights: variance at first, and what an example adds to it in each. Where labels
#: come late, what was right when they were predicted is not what is right now.
GATE_PRIOR, GATE_WALKS = 0.1, (3e-6, 1e-4)
LATE_PRIOR, LATE_WALKS = 0.03, (0.0, 1e-8)
#: Share of a late label's weight with which each gate learns from the members' scores of now; with
#: the rest it learns from the ticket's. After a shift, tickets say for a whole delay that no member
#: is any good, though they have learnt the new rule by then. The scores of now alone would trust
#: those that memorise.
LATE_NOW = (0.2, 0.7)
#: Scores beyond this count as this, and no class has a smaller probability than that.
LARGEST, CLIP = 30.0, 1e-3
#: A gate that gives all other classes less than this learns nothing.
SURE = 1e-12
#: Maps from the gate's probabilities to those shown: log-odds times a slope, mixed with equal
#: chances by a floor. Their weights follow the log loss, and a share of them goes round.
SLOPES, FLOORS, MAP_SHARE = (1.0, 2.0), (0.0, 0.1, 0.2, 0.4), 3e-4

# --- tickets -------------------------------------------------------------------------------------

#: Bytes that tickets may take, and what the longest delay seen keeps with each label.
TICKETS, TICKETS_KEPT = 64 * 2**20, 0.9999

# --- scale of dense features ---------------------------------------------------------------------

#: Least rate of the running statistics, and the largest standardised value.
RATE, CLIPPED = 1e-3, 3.0
#: After as many values, one further off than so many deviations counts as that far.
EARLY, FAR = 10, 5.0
#: Rate of short means of squared errors, over the variance, and of squared steps: where the first
#: is above the second of these, or the other one below the third of its long mean, the feature's
#: statistics restart.
LEVEL_RATE, LEVEL_HIGH, LEVEL_LOW = 0.02, 15.0, 0.01
#: Rows are sparse where more than the first names were met, of which examples have less than this
#: share and, up to the second number of names, a name has had fewer values than that. At the third
#: number they are in any case: zeros would take too much time.
FEW_NAMES, SPARSE_SHARE, MANY_NAMES, SPARSE_VALUES, DENSE_NAMES = 256, 0.25, 1024, 3.0, 4096
#: What such a share of the examples had, if they were so many, is standardised in sparse rows, too.
COMMON_SHARE, FEW_EXAMPLES = 0.5, 8

_LINEAR = ("slow SGD", "fast SGD", "AdaGrad", "Kalman")
_SPLINES = ("slow splines", "fast splines")
#: The families of members, in their order, and what their members are called: those of the kernel
#: experts follow from the parameters. Each has a class in `reference.py`.
FAMILIES: dict[str, tuple[str, ...]] = {
    "kernels": (),
    "linear": _LINEAR,
    "splines": _SPLINES,
    "context_linear": tuple(f"context, {name}" for name in _LINEAR[2:]),
    "context_splines": tuple(f"context, {name}" for name in _SPLINES),
}


class Array(NamedTuple):
    """One array of the tracker.

    Parameters
    ----------
    type
        Of a number, as numpy has it.
    shape
        Its dimensions: their names, or numbers.
    stored
        Whether it is part of a tracker's state; else it is work space.
    """

    type: str
    shape: tuple[str | int, ...]
    stored: bool = True

    def sized(self, sizes: dict[str, int]) -> tuple[int, ...]:
        """Return the shape, dimensions of these sizes."""
        return tuple(sizes[d] if isinstance(d, str) else d for d in self.shape)


#: What is kept of a feature: mean and variance of the values given and their number since these
#: began; the share of examples that gave it; the short mean of its errors; the last value, long and
#: short mean of the steps between values; how many examples had it other than 0, and the number of
#: those before the first; whether it was ever given as 0.
FEATURE = (
    *("mean", "variance", "count", "share", "level", "last"),
    *("steps", "recent", "present", "since", "zero"),
)
#: Sums over the examples: of their weights, of losses that fade and of their weights, of squared
#: norms; numbers of examples learnt, of examples since the scale began, and of values in these; of
#: squared norms with the context.
SUMS = (
    *("total", "mean_loss", "mean_weight", "squares", "learnt", "examples", "values"),
    "context_squares",
)

(TOTAL, MEAN_LOSS, MEAN_WEIGHT, SQUARES, LEARNT, EXAMPLES, VALUES, CONTEXT_SQUARES) = range(
    len(SUMS)
)

#: Every array. Dimensions: `members` of the list; `experts` over the supports and their `kernels`;
#: `rows` of scores, one of two classes, else one for each and one for the next; `classes`, as many
#: but at least two; `slots` of the supports; `cells` of the linear experts, the bias and one for
#: each name or hash; `knots` of the splines, the bias included; `names` of features, in sparse rows
#: those that are standardised, whose hashes are `common`; `inputs` of an example, and names, and
#: `hashed` as many in sparse rows; `sides` of a point on the splines; `context`, the features that
#: have one, whose members have `context_cells`, `context_knots` and `context_sides`.
ARRAYS = {
    "coefficients": Array("float32", ("rows", "experts", "slots")),
    "factors": Array("float64", ("experts",)),
    "squared": Array("float64", ("slots",)),
    "linear": Array("float32", ("rows", "cells", 6)),
    "lags": Array("float64", (2,)),
    "splines": Array("float32", ("rows", 2, "knots", 2)),
    "context_linear": Array("float32", ("rows", "context_cells", 4)),
    "context_splines": Array("float32", ("rows", 2, "context_knots", 2)),
    "means": Array("float64", ("context", len(HORIZONS), 2)),  # and the weight of each
    "deviations": Array("float64", ("context", len(HORIZONS), len(FEATURE))),
    "gates": Array("float64", (len(GATE_WALKS), "members")),
    "covariances": Array("float64", (len(GATE_WALKS), "members", "members")),
    "maps": Array("float64", (len(GATE_WALKS) * len(SLOPES) * len(FLOORS),)),
    "features": Array("float64", ("names", len(FEATURE))),
    "common": Array("int32", ("names",)),
    "sums": Array("float64", (len(SUMS),)),
    "errors": Array("float64", ("members",)),
    "losses": Array("float64", ("members",)),
    # Parameters of the experts, and of an example what the members say of it.
    "widths": Array("float64", ("kernels",), stored=False),
    "rates": Array("float64", ("experts",), stored=False),
    "kept": Array("float64", ("experts",), stored=False),
    "walks": Array("float64", (len(GATE_WALKS),), stored=False),
    "dots": Array("float64", ("slots",), stored=False),
    "distances": Array("float32", ("slots",), stored=False),
    "kernel_values": Array("float32", ("kernels", "slots"), stored=False),
    "scores": Array("float64", ("rows", "members"), stored=False),
    "said": Array("float64", ("rows", "members"), stored=False),  # when it was predicted
    "softmax": Array("float64", ("classes", "members"), stored=False),
    "lost": Array("float64", ("members",), stored=False),
    "choices": Array("int32", ("members",), stored=False),
    "chances": Array("float64", (len(GATE_WALKS) + 1, "classes"), stored=False),
    "margins": Array("float64", ("members",), stored=False),
    "gains": Array("float64", ("members",), stored=False),
    # An example as it was read: its features among the supports, ascending, their values; cells of
    # the linear experts, and values of these; and what it and the one before it were read from.
    "numbers": Array("int32", ("inputs",), stored=False),
    "values": Array("float64", ("inputs",), stored=False),
    "input_cells": Array("int32", ("inputs",), stored=False),
    "cell_values": Array("float32", ("inputs",), stored=False),
    "raw": Array("float64", ("inputs",), stored=False),
    "last_raw": Array("float64", ("inputs",), stored=False),
    "raw_numbers": Array("int32", ("inputs",), stored=False),
    "last_numbers": Array("int32", ("hashed",), stored=False),
    "standardised": Array("float64", ("inputs",), stored=False),
    "curves": Array("float64", ("inputs",), stored=False),
    # Deviations from the running means; values beside their context, standardised, as inputs of the
    # linear experts, and for the curves.
    "back": Array("float64", ("context", len(HORIZONS)), stored=False),
    "beside": Array("float64", ("context", BESIDE), stored=False),
    "context_values": Array("float32", ("context", BESIDE), stored=False),
    "context_curves": Array("float64", ("context", BESIDE), stored=False),
    # Where the example is on the curves and surfaces; see hats.h.
    "hat_knots": Array("int32", ("sides",), stored=False),
    "hat_heights": Array("float32", ("sides", 2 * len(_SPLINES)), stored=False),
    "context_hat_knots": Array("int32", ("context_sides",), stored=False),
    "context_hat_heights": Array("float32", ("context_sides", 2 * len(_SPLINES)), stored=False),
    "hashes": Array("uint64", ("names",), stored=False),
    "keys": Array("uint64", ("hashed",), stored=False),
    "spare_keys": Array("uint64", ("hashed",), stored=False),
}

#: Names of the dimensions.
DIMENSIONS = sorted({d for a in ARRAYS.values() for d in a.shape if isinstance(d, str)})

_TYPES = {"float32": "float", "float64": "double", "int32": "int32_t", "uint64": "uint64_t"}


def sizes_of(names: int, *, pairs: bool, sparse: bool) -> dict[str, int]:
    """Return the dimensions that follow from the number of names."""
    context = 0 if sparse else min(names, CONTEXT)
    curves = 0 if sparse else names
    return {
        "cells": 1 + (SLOTS if sparse else names),
        "knots": n_knots(curves, pairs=pairs),
        "sides": _n_sides(curves, pairs=pairs),
        "names": names,
        "context": context,
        "context_cells": 1 + BESIDE * context,
        "context_knots": n_knots(BESIDE * context, pairs=False),
        "context_sides": _n_sides(BESIDE * context, pairs=False),
    }


def n_knots(names: int, *, pairs: bool) -> int:
    """Return the number of a spline's weights over so many dense features.

    First is the bias. A feature's curve is followed by its surfaces with the features before it, so
    that nothing moves as names join.
    """
    return 1 + KNOTS * min(names, SPLINED) + pairs * PAIR_KNOTS**2 * _n_pairs(names)


def _n_sides(names: int, *, pairs: bool) -> int:
    return min(names, SPLINED) + pairs * 2 * _n_pairs(names) + SPARE_SIDES


def _n_pairs(names: int) -> int:
    paired = min(names, PAIRED)
    return paired * (paired - 1) // 2


def header() -> str:
    """Return the C header that has all of this.

    The struct begins with the arrays, in their order, and the dimensions: they are set by number.
    """
    lines = ["/* Made by tables.py. */"]
    for name, value in globals().items():
        if name.isupper() and isinstance(value, (int, float)) and name.lower() not in SUMS:
            lines.append(f"#define DRIFT_{name} {value!r}")
        elif name.isupper() and isinstance(value, tuple) and isinstance(value[0], float):
            numbers = ", ".join(map(repr, value))
            lines.append(f"static const double DRIFT_{name}[{len(value)}] = {{{numbers}}};")
            lines.append(f"enum {{ DRIFT_N_{name} = {len(value)} }};")
    sums, feature = ", ".join(SUMS), ", ".join(FEATURE)
    lines.append(f"typedef struct {{ double {feature}; }} DriftFeature;")
    lines.append(f"typedef struct {{ double {sums}; }} DriftSums;")
    own = {"features": "DriftFeature", "deviations": "DriftFeature", "sums": "DriftSums"}
    fields = [f"{own.get(name, _TYPES[a.type])} *{name};" for name, a in ARRAYS.items()]
    lines.append(f"#define DRIFT_ARRAYS {' '.join(fields)} int {', '.join(DIMENSIONS)};")
    counts = f"DRIFT_N_ARRAYS = {len(ARRAYS)}, DRIFT_N_DIMENSIONS = {len(DIMENSIONS)}"
    lines.append(f"enum {{ {counts} }};")
    for name, members in FAMILIES.items():
        lines.append(f"#define DRIFT_COUNT_{name} {len(members)}")
    lines.append(f"enum {{ DRIFT_USUAL = {16 + sum(map(len, FAMILIES.values()))} }};")
    by_rows = [(name, a.shape[1:]) for name, a in ARRAYS.items() if a.shape[0] == "rows"]
    sizes = {
        name: [f"(size_t)t->{d}" if isinstance(d, str) else str(d) for d in shape]
        for name, shape in by_rows
    }
    uses = " ".join(f"X({name}, {' * '.join(size)})" for name, size in sizes.items())
    lines.append(f"#define DRIFT_BY_ROWS(X) {uses}")
    lines.append("#define DRIFT_FAMILIES(X) " + " ".join(f"X({name})" for name in FAMILIES))
    return "\n".join(lines) + "\n"
