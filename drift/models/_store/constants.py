"""Constants of both column stores: of how they round, and of how the compiled one keeps columns."""

__all__ = ["DENSE", "FAR", "LANES", "SAME", "SPARSE", "VANISHES"]

#: Where ``gamma |x|^2`` exceeds this, ``|a|^2 + |b|^2 - 2 <a, b>`` is only rounding error, in
#: float64 columns. So the RBF sums squared differences there.
FAR = 2.0**36
#: A support and the point may be the same example if their squared distance is at most
#: ``SAME |x|^2``.
SAME = 2.0**-16
#: Magnitudes up to this are 0 in float32.
VANISHES = 2.0**-150
#: A column turns dense above one value in `DENSE` slots, sparse below one in `SPARSE`. Slots come
#: in multiples of `LANES`, so that loops over slots have no tail.
DENSE, SPARSE, LANES = 8, 16, 16
