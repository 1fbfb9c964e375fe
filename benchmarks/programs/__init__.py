"""Benchmarks with options of their own: `python -m benchmarks NAME` calls `main` of the file NAME.

Its argument has what follows the name on the command line; it returns an exit status, None for 0.
`ablation_changes` belongs to `ablation`, `worker_clock` to `worker`, and `topics` to those that
start a broker.
"""
