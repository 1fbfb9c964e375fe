import subprocess
import sys

import pytest

from drift import streams


def test_importing_the_package_imports_nothing_heavy():
    heavy = "{'numpy', 'scipy', 'river', 'sklearn'}"
    code = f"import sys, drift.streams; print(sorted({heavy} & set(sys.modules)))"
    run = [sys.executable, "-c", code]
    result = subprocess.run(run, check=True, capture_output=True, text=True)
    assert result.stdout == "[]\n"


def test_every_public_name_is_there():
    assert sorted(streams.__all__, key=lambda name: (not name.isupper(), name)) == streams.__all__
    assert dir(streams) == sorted(streams.__all__)
    for name in streams.__all__:
        assert getattr(streams, name) is not None


def test_no_module_hides_a_function():
    for name in streams.__all__:
        assert f"drift.streams.{name}" not in sys.modules


def test_unknown_names():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = streams.nothing
