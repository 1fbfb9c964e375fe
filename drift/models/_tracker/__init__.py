"""The tracker: `reference.py` is the algorithm, `core.pyx` the same compiled.

`tables.py` has the constants and the arrays, and each family of members a header of its name and a
class in `reference.py`. `built.py` has the core that there is.
"""
