"""Fixtures for the models' tests."""

from contextlib import contextmanager

import pytest

from drift.models import column_type, compiled, tracker
from drift.models._base import guard
from drift.models._store import built, calibration, plain
from drift.models._tracker.reference_core import TrackerCore

STORES = ["compiled-float32", "compiled-float64", "plain"]


def pytest_collection_modifyitems(items):
    """Mark what a suite without the compiled extension runs just so."""
    for item in items:
        params = item.callspec.params if hasattr(item, "callspec") else {}
        plainly = params.get("tolerance") == "plain" or params.get("core") == "reference"
        if plainly and "drift_data" not in item.fixturenames:
            item.add_marker("plain")


@pytest.fixture
def on_plain_store(monkeypatch):
    """Context in which models are made as without the compiled extension."""

    @contextmanager
    def context():
        with monkeypatch.context() as patch:
            patch.setattr(built, "ColumnStore", plain.ColumnStore)
            patch.setattr(built, "Guard", guard.Guard)
            patch.setattr(built, "Calibration", calibration.Calibration)
            patch.setattr(built, "prefix_votes", plain.prefix_votes)
            patch.setattr(tracker, "TrackerCore", TrackerCore)
            yield

    return context


@pytest.fixture(params=STORES)
def tolerance(request, on_plain_store):
    """Run on each column store; the value bounds errors as a share of sum |alpha_i k(x_i, x)|."""
    if request.param == "plain":
        with on_plain_store():
            yield 1e-9
        return
    if not compiled:
        pytest.skip("the compiled extension is missing")
    wide = request.param.endswith("64")
    before = column_type("float64" if wide else "float32")
    yield 1e-9 if wide else 1e-5
    column_type(before)


@pytest.fixture(params=["compiled", "reference"])
def core(request, on_plain_store):
    """Make Trackers on each core."""
    if request.param == "reference":
        with on_plain_store():
            yield request.param
        return
    if not compiled:
        pytest.skip("the compiled extension is missing")
    yield request.param
