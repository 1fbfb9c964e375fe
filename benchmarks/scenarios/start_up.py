"""From a bare Python to a first prediction and to that of a checkpoint, whose memory is counted."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.report import bar
from benchmarks.streams import stream
from benchmarks.timing import Times, figure, mistakes, progress, turns
from drift.consumers.checkpoints.checkpoint import Checkpoint, to_bytes
from drift.models import RBP

ROOT = Path(__file__).parents[2]
_BARE = "pass"
_FIRST = "from drift.models import RBP; RBP().predict_one({'a': 1.0})"
_CHECKPOINT = (
    "import sys, pathlib; from drift.consumers.checkpoints.checkpoint import from_bytes; "
    "from_bytes(pathlib.Path(sys.argv[1]).read_bytes()).model.predict_one({'a': 1.0})"
)
_LINEAR = "from river.linear_model import LogisticRegression as L; L().predict_one({'a': 1.0})"
#: Megabytes by which a process grows for each of ten more models, beside what a model counts.
_MEMORY = (
    "import sys, pathlib; from drift.consumers.checkpoints.checkpoint import from_bytes; "
    "from benchmarks.process import resident; "
    "data = pathlib.Path(sys.argv[1]).read_bytes(); models = [from_bytes(data).model]; "
    "before = resident(); models += [from_bytes(data).model for _ in range(10)]; "
    "print((resident() - before) / 10, models[0]._raw_memory_usage / 1e6)"
)


def python(code: str, *arguments: str) -> str:
    """Run a fresh Python; return what it prints."""
    done = subprocess.run(  # noqa: S603 - the code is above
        [sys.executable, "-c", code, *arguments],
        # An empty value: what was compiled before is kept, as it is where drift is installed.
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def start_up(*, quick: bool) -> dict[str, Any]:
    """Fresh processes, in turns: the processor time that each took."""
    model = RBP(2000, seed=1)
    mistakes(model, stream("rcv1 shifts").head(5_000 if quick else 20_000))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "checkpoint")
        path.write_bytes(to_bytes(Checkpoint(model, {})))
        codes = {
            "bare Python": (_BARE,),
            "RBP": (_FIRST,),
            "Tracker": (_FIRST.replace("RBP", "Tracker"),),
            "checkpoint of RBP(2000)": (_CHECKPOINT, str(path)),
            "River LogisticRegression": (_LINEAR,),
        }
        times = in_turns(codes, 5 if quick else 15)
        grown, counted = map(float, python(_MEMORY, str(path)).split())
    bare = times["bare Python"]
    over = {
        name: figure([(a - b) / 1e3 for a, b in zip(spent, bare, strict=True)])
        for name, spent in times.items()
    }
    first = [{"to a first prediction": n, "ms beyond bare Python": ms} for n, ms in over.items()]
    others = {"resident MB of RBP(2000)": grown, "counted MB of RBP(2000)": counted}
    bars = [bar("resident MB of RBP(2000)", figure([grown]), most=6.0)]
    sizes = [{"what": name, "figure": value} for name, value in others.items()]
    return {"tables": {"start": first, "sizes": sizes}, "bars": bars}


def in_turns(codes: dict[str, tuple[str, ...]], rounds: int) -> Times:
    """Microseconds of each process, after one that fills the caches of files."""
    times = Times({name: [] for name in codes})
    for k, name in progress(turns(codes, 1 + rounds), "start-up: rounds"):
        before = children()
        python(*codes[name])
        if k:
            times[name].append(1e6 * (children() - before))
    return times


def children() -> float:
    """Processor seconds of the processes that this one has started and seen end."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime
