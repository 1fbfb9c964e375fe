"""What `python -m benchmarks NAME` measures: each file has a function of its name.

Its argument `quick` is for small sizes. It returns a dict with `table`, or `tables` by title, rows
of which are dicts; `notes`, lines of text; `bars`; and `draw`, which draws a picture to a path.
"""
