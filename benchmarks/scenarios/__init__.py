"""What `python -m benchmarks NAME` measures: each file has a function of its name.

A further one is a file, a line in `SCENARIOS` of `benchmarks/__main__.py`, one in `DATA` if it
needs downloaded data, and one in the table of README.md, which says what its figures are for.

Its argument `quick` asks for small sizes. It returns a dict. `table` is a list of rows, each a dict
by column; `tables` has several by title. `notes` are lines of text. `bars` are what is to be
reached.
"""
