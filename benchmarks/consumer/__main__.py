"""Workers of topics: speed, beside an older version, how long a checkpoint stops them, memory.

    python -m benchmarks.consumer rate --help

`rate` is examples a second end to end, and where the time goes; `pairs` the same beside an older
version; `stop` how long a checkpoint stops a worker of late labels; `soak` memory over two million
examples. All but `stop` start a real broker.
"""

import argparse
import sys
from importlib import import_module

parser = argparse.ArgumentParser(prog="python -m benchmarks.consumer", description=__doc__)
parser.formatter_class = argparse.RawDescriptionHelpFormatter
parser.add_argument("scenario", choices=("rate", "pairs", "stop", "soak"))
name = parser.parse_args(sys.argv[1:2]).scenario
# No other, as memory of this process is measured.
scenario = import_module(f"benchmarks.consumer.{name}")
parser = argparse.ArgumentParser(
    prog=f"{parser.prog} {name}", description=(scenario.__doc__ or "").splitlines()[0]
)
scenario.options(parser)
sys.exit(scenario.run(parser.parse_args(sys.argv[2:])))
