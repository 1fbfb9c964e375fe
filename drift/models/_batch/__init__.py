"""Batches of examples as users pass them. Nothing here knows a model.

================  =================================================================================
``column_kinds``  Whether a batch has the same kind of columns as the last one.
``distinct``      What is computed once for each distinct label of a batch.
``frames``        Data frames of any library.
``batches``       Rows, labels and weights of a call, and results in the form that came in.
================  =================================================================================

A file uses only files above it. Why a batch equals the loop over its rows stands above
`_learn_batch` in `drift/models/_template/contract.py`.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from drift.models._batch import batches as batches
    from drift.models._batch import frames as frames

__all__ = ["batches", "frames"]


def __getattr__(name: str) -> Any:
    """Import these on first use: scipy and narwhals take longer than everything else."""
    if name not in __all__:
        problem = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(problem, name=name, obj=sys.modules[__name__])
    return import_module(f"{__name__}.{name}")
