"""Classifiers that follow a stream which drifts, on a budget of memory and time.

Importing the package is cheap: it loads neither numpy nor River. Take what you need from
`drift.models`, `drift.kernels`, `drift.features`, `drift.explain`, `drift.streams` and
`drift.experiments`.
"""

import sys

__all__ = ["__version__"]

__version__ = "0.3.0"

if sys.version_info < (3, 11):  # noqa: UP036 - nobody asks before sources are imported
    version = ".".join(map(str, sys.version_info[:3]))
    raise ImportError(f"drift needs Python 3.11 or later, not {version}: make a newer environment")


def __getattr__(name: str) -> object:
    """Say where classes are."""
    if not name[:1].isupper():
        raise AttributeError(f"drift has no attribute {name!r}")
    problem = f"{name} is not in drift itself: from drift.models import {name}"
    # ``from drift import Tracker`` asks from here, and would not show an AttributeError's text.
    if sys._getframe(1).f_globals.get("__name__") == "importlib._bootstrap":  # noqa: SLF001
        raise ImportError(problem)
    raise AttributeError(problem)
