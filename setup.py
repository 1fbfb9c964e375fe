"""The compiled modules. Everything else about the package is in pyproject.toml."""

import os
import runpy
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext  # Cython's, where that is installed

if sys.version_info < (3, 11):  # noqa: UP036 - pip else blames a dependency
    found = ".".join(map(str, sys.version_info[:3]))
    sys.exit(f"drift needs Python 3.11 or later, not {found}: make a newer environment")

# What is built for the interpreter at hand may use all of its C API. With DRIFT_ABI3=1 one wheel
# serves CPython 3.11 and every later one; so do released wheels.
abi3 = os.environ.get("DRIFT_ABI3") == "1"

# No contraction into fused multiply-adds: a score is the same bits on every machine.
# No bit depends on the last two: nothing looks at floating-point exceptions or errno, and a loop
# with a comparison or a square root in it becomes vectors then.
flags = ["-ffp-contract=off", "-fno-trapping-math", "-fno-math-errno"]
# A macro of Python that the limited API lacks is an error here, not where the module is loaded.
flags.append("-Werror=implicit-function-declaration")
if "-O" not in os.environ.get("CFLAGS", ""):
    flags.append("-O3")  # comes last, and would overrule a level that is asked for
if "CFLAGS" not in os.environ:
    flags.append("-g0")  # debug symbols, which Python's own flags ask for, take a third of the time
if sys.platform == "win32":
    flags = ["/O2", "/std:c11", "/fp:precise"]

models = Path("drift/models")
# The tracker's constants and arrays stand in a table, of which this is the C header.
tables, header = models / "_tracker/tables.py", models / "_tracker/tables.h"
text = runpy.run_path(str(tables))["header"]()
if not header.exists() or header.read_text(encoding="utf-8") != text:
    header.write_text(text, encoding="utf-8")


def parts(*folders: str) -> list[str]:
    """Return what is included in modules of these folders, and the version."""
    found = [p for folder in folders for p in (models / folder).iterdir()]
    included = sorted(p.as_posix() for p in found if p.suffix in {".h", ".pxi"})
    return ["drift/__init__.py", *included]


class Build(build_ext):
    """Compile the modules at once."""

    def build_extensions(self) -> None:
        """Translate one by one first, as Cython is not made for threads."""
        from Cython.Build import cythonize  # noqa: PLC0415 - behind the check of Python's version

        cythonize(self.extensions, force=self.force, quiet=True)
        self.force, self.parallel = False, True
        super().build_extensions()

    def build_extension(self, ext: Extension) -> None:
        """Remove an older build where this one fails: it would run in its place."""
        try:
            super().build_extension(ext)
        except Exception:  # and the installation goes on without it
            source = Path(ext.sources[0])
            for old in source.parent.glob(f"{source.stem}.*"):
                if old.suffix in {".so", ".pyd"}:
                    old.unlink()
            raise


# The tracker includes the column store's headers.
modules = {
    "_store/columns": ["_base", "_store"],
    "_tracker/core": ["_base", "_store", "_tracker"],
}

setup(
    cmdclass={"build_ext": Build},
    ext_modules=[
        Extension(
            f"drift.models.{module.replace('/', '.')}",
            sources=[f"drift/models/{module}.pyx"],
            depends=parts(*folders),
            extra_compile_args=flags,
            define_macros=[("Py_LIMITED_API", "0x030B0000")] if abi3 else [],
            py_limited_api=abi3,
            # Without a C compiler the installation goes on, and drift.models says what that costs.
            optional=not abi3,
        )
        for module, folders in modules.items()
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if abi3 else {},
)
