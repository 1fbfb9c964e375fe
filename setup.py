"""The one compiled module. Everything else about the package is in pyproject.toml."""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup

if sys.version_info < (3, 11):  # noqa: UP036 - pip else blames a dependency
    found = ".".join(map(str, sys.version_info[:3]))
    sys.exit(f"drift needs Python 3.11 or later, not {found}: make a newer environment")

# What is built for the interpreter at hand may use all of its C API. With DRIFT_ABI3=1 one wheel
# serves CPython 3.11 and every later one; so are those built that are given away.
abi3 = os.environ.get("DRIFT_ABI3") == "1"

# No contraction into fused multiply-adds: a score is the same bits on every machine.
# No bit depends on the last two: nothing looks at floating-point exceptions or errno, and a loop
# with a comparison or a square root in it becomes vectors then.
flags = ["-O3", "-ffp-contract=off", "-fno-trapping-math", "-fno-math-errno"]
if sys.platform == "win32":
    flags = ["/O2", "/std:c11", "/fp:precise"]

setup(
    ext_modules=[
        Extension(
            "drift.models._store.columns",
            sources=["drift/models/_store/columns.pyx"],
            depends=["drift/__init__.py"]
            + [
                path.as_posix()
                for path in sorted(Path("drift/models/_store").iterdir())
                if path.suffix in {".h", ".pxi"}
            ],
            extra_compile_args=flags,
            define_macros=[("Py_LIMITED_API", "0x030B0000")] if abi3 else [],
            py_limited_api=abi3,
            # Without a C compiler the installation goes on, and drift.models says what that costs.
            optional=not abi3,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if abi3 else {},
)
