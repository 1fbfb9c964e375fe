"""The tracker: `reference.py` is the algorithm, `core.pyx` the same compiled.

`tables.py` has the constants and arrays. Each family of members has a header of its name and a
class in `reference.py`. `built.py` chooses the core.
"""
