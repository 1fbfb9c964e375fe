"""Benchmarks of drift, each run as ``python -m benchmarks NAME`` from the root; see README.md.

All of them use one thread, which is set here, before anything imports numpy.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))


def output_option(parser: argparse.ArgumentParser) -> None:
    """Add the option of every benchmark: where it writes NAME.json and what else it leaves."""
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("results"),
        metavar="FOLDER",
        help="where NAME.json goes, and what else it leaves; default: results",
    )
