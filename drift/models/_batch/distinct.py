"""What is computed once for each distinct label of a batch, not for each row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from drift.models._store import built

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

__all__ = ["once_per_distinct"]


def once_per_distinct(
    labels: Sequence[Any], values_of: Callable[[Sequence[Any]], NDArray[Any]]
) -> NDArray[Any]:
    """Return ``values_of(labels)``, from a call with the distinct objects where they are few.

    `values_of` must not depend on how often a label comes, only on the order of the first ones.

    Examples
    --------
    >>> import numpy as np
    >>> from drift.models._batch.distinct import once_per_distinct
    >>> once_per_distinct(
    ...     [True, False, True], lambda labels: np.array([print(y) or y for y in labels])
    ... )
    True
    False
    array([ True, False,  True])
    """
    numbered = built.numbered_objects(list(labels))
    if numbered is None:
        return values_of(labels)
    distinct, numbers = numbered
    return values_of(distinct)[np.frombuffer(numbers, dtype=np.uint8)]
