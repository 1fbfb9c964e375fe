"""Classifiers that follow a stream which drifts, on a budget of memory and time.

Importing the package is cheap: it loads neither numpy nor River. Take what you need from
`drift.models`, `drift.kernels`, `drift.streams` and `drift.experiments`.
"""

__all__ = ["__version__"]

__version__ = "0.2.0"
