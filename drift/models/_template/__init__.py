"""The templates that algorithms fill in, from River's contract down to their hooks.

`river` has the public methods of every model, which need no supports. Its `Scored` has the flags
that a class may set; some of them are about supports. `kernel` adds one list of supports. On it
stand `binary`, with `labels`, and `multiclass`, with `prototypes`, which do not know each other;
`two_or_more` is both. `batches` has the rows, labels and weights of a call, `frames` the data
frames; neither knows a model. `draws` is for algorithms that draw random numbers, `redundant` for
those that evict the support that the others classify best.

Hooks reach the supports through the model's `_supports`, not through its store. What an update
changes is an attribute of the model or of one of its parts, so that the guard can undo it.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from drift.models._template import batches as batches
    from drift.models._template import frames as frames

__all__ = ["batches", "frames"]


def __getattr__(name: str) -> Any:
    """Import these on first use: scipy and narwhals take longer than everything else."""
    if name not in __all__:
        problem = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(problem, name=name, obj=sys.modules[__name__])
    return import_module(f"{__name__}.{name}")
