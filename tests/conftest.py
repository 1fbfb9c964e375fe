"""Fixtures for the whole suite."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("drift", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("drift")


@pytest.fixture(scope="session")
def drift_data():
    """The folder of real data sets; tests that need it skip without."""
    folder = os.environ.get("DRIFT_DATA")
    if not folder:
        pytest.skip("DRIFT_DATA names no folder of real data sets")
    if not Path(folder).is_dir():
        pytest.skip(f"DRIFT_DATA={folder} is no folder")
    return Path(folder)
