"""The one compiled file. Everything else about the package is in pyproject.toml."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "drift.models._columns",
            sources=["drift/models/_columns.pyx"],
            depends=[f"drift/models/{name}.h" for name in ("_columns", "_vocabulary", "_ahead")],
            # No contraction into fused multiply-adds: a score is the same bits on every machine.
            extra_compile_args=["-O3", "-ffp-contract=off"],
            # Without a C compiler the installation goes on, and drift.models says what that costs.
            optional=True,
        )
    ]
)
