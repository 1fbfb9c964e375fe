"""Constants of both column stores: of how they round, and of how the compiled one keeps columns.

`drift.models._base.rounding` has `TIE`, for sums of float64.
"""

__all__ = [
    "DENSE",
    "DISTANCE_ERROR",
    "DISTANCE_ERROR_FLOAT32",
    "EXACT_ABOVE",
    "EXACT_ABOVE_FLOAT32",
    "LANES",
    "LEAST_FACTOR",
    "MOST_FACTOR",
    "SAME",
    "SPARSE",
    "TIE_FLOAT32",
    "VANISHES",
    "ZERO_EXPONENT",
]

#: A score below this share of its terms' magnitudes is rounding error, with float32 columns. Their
#: inner products have a relative error of about 2^-24, and a power of them a few times that.
TIE_FLOAT32 = 2.0**-22
#: Where ``gamma |x|^2`` exceeds this, the rounding error of ``|a|^2 + |b|^2 - 2 <a, b>`` changes
#: the RBF. So it sums squared differences there.
EXACT_ABOVE, EXACT_ABOVE_FLOAT32 = 2.0**36, 2.0**10
#: That error is at most this share of ``|a|^2 + |b|^2``. A support so far away that the RBF
#: vanishes in spite of it needs no exact distance.
DISTANCE_ERROR, DISTANCE_ERROR_FLOAT32 = 2.0**-46, 2.0**-20
#: ``exp(-ZERO_EXPONENT)``, 2e-22, vanishes beside the rounding of a score.
ZERO_EXPONENT = 50.0
#: A support and the point may be the same example if their squared distance is at most
#: ``SAME |x|^2``.
SAME = 2.0**-16
#: Magnitudes up to this are 0 in float32.
VANISHES = 2.0**-150
#: A hypothesis has a factor, so that all coefficients are scaled in constant time. Outside of these
#: bounds it moves into the coefficients, long before it or they could under- or overflow.
LEAST_FACTOR, MOST_FACTOR = 1e-100, 1e100
#: A column turns dense above one value in `DENSE` slots, sparse below one in `SPARSE`. Slots come
#: in multiples of `LANES`, so that loops over slots have no tail.
DENSE, SPARSE, LANES = 8, 16, 16
