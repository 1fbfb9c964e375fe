"""Type aliases shared by the whole package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Array", "Features", "Label"]

#: A numpy array of doubles.
Array: TypeAlias = "NDArray[np.float64]"

#: One example's features by hashable name. Values are numbers; NaN means absent. Names
#: are `Any` since a mapping's keys are invariant: Hashable would refuse a dict[str, float].
Features: TypeAlias = Mapping[Any, Any]

#: What a classifier predicts: bool, 0/1 or -1/+1 for the binary ones.
Label: TypeAlias = Any
