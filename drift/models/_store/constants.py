"""Constants of both column stores: of how they round, and of how the compiled one keeps columns.

`RELATIVE_TOLERANCE`, the one for sums of float64, is in `drift/models/_base/rounding.py`. The last
three are macros in `columns.h` and `portable.h`, too; `columns.pyx` checks that they agree.
"""

__all__ = [
    "DENSE",
    "DISTANCE_ERROR",
    "DISTANCE_ERROR_FLOAT32",
    "EXACT_ABOVE",
    "EXACT_ABOVE_FLOAT32",
    "LANES",
    "MAX_COEFFICIENT_FACTOR",
    "MAX_FLOAT32_ZERO",
    "MIN_COEFFICIENT_FACTOR",
    "RELATIVE_TOLERANCE_FLOAT32",
    "SAME_EXAMPLE_TOLERANCE",
    "SPARSE",
    "ZERO_EXPONENT",
]

#: A score up to this times its terms' magnitudes is rounding error, with float32 columns. Their
#: inner products have a relative error of about 2^-24, and a power of them a few times that.
RELATIVE_TOLERANCE_FLOAT32 = 2.0**-22
#: Where ``gamma |x|^2`` exceeds this, the rounding error of ``|a|^2 + |b|^2 - 2 <a, b>`` changes
#: the RBF. So it sums squared differences there.
EXACT_ABOVE, EXACT_ABOVE_FLOAT32 = 2.0**36, 2.0**10
#: That error is at most this share of ``|a|^2 + |b|^2``. A support so far away that the RBF
#: vanishes in spite of it needs no exact distance.
DISTANCE_ERROR, DISTANCE_ERROR_FLOAT32 = 2.0**-46, 2.0**-20
#: ``exp(-ZERO_EXPONENT)``, 2e-22, vanishes beside the rounding of a score.
ZERO_EXPONENT = 50.0
#: A support and the point may be the same example if their squared distance is at most this times
#: ``|x|^2``.
SAME_EXAMPLE_TOLERANCE = 2.0**-16
#: Magnitudes up to this are 0 in float32.
MAX_FLOAT32_ZERO = 2.0**-150
#: Scaling all coefficients of a hypothesis changes one factor of them, in constant time. Outside of
#: these bounds that factor moves into the coefficients, long before it or they under- or overflow.
MIN_COEFFICIENT_FACTOR, MAX_COEFFICIENT_FACTOR = 1e-100, 1e100
#: A column turns dense if more than one in `DENSE` slots has a value, sparse if less than one in
#: `SPARSE` has.
DENSE, SPARSE = 8, 16
#: Slots come in multiples of this, so that loops over slots have no tail.
LANES = 16
