"""Constants of both column stores: of how they round, and of how the compiled one keeps columns."""

__all__ = ["DENSE", "FAR", "LANES", "SAME", "SPARSE", "VANISHES"]

#: ``gamma |x|^2`` above which, in double, the RBF needs exact distances.
FAR = 2.0**36
#: A support within this share of ``|x|^2``, by squared distance, may be the same example.
SAME = 2.0**-16
#: Magnitudes up to this are 0 in float32.
VANISHES = 2.0**-150
#: A column turns dense above one value in `DENSE` slots, sparse below one in `SPARSE`. Slots come
#: in multiples of `LANES`, so that loops over slots have no tail.
DENSE, SPARSE, LANES = 8, 16, 16
