"""Benchmarks of drift, each run as ``python -m benchmarks NAME`` from the root; see README.md.

All of them use one thread, which is set here, before anything imports numpy.
"""

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))
