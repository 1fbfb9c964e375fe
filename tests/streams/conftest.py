import os
from pathlib import Path

import pytest


@pytest.fixture
def data_folder():
    """Return a function from a data set's name to its folder, which skips where there is none."""

    def find(name):
        home = os.environ.get("DRIFT_DATA")
        if not home:
            pytest.skip("DRIFT_DATA names no folder of real data")
        folder = Path(home, name)
        if not folder.is_dir():
            pytest.skip(f"DRIFT_DATA holds no {name}")
        return folder

    return find
