"""Fixtures for the models' tests."""

import pytest

from drift.models import column_type, compiled
from drift.models._store import guard, plain, supports

STORES = ["compiled-float32", "compiled-float64", "plain"]


def pytest_collection_modifyitems(items):
    """Mark what a suite without the compiled extension runs just so."""
    for item in items:
        store = item.callspec.params.get("tolerance") if hasattr(item, "callspec") else None
        if store == "plain" and "drift_data" not in item.fixturenames:
            item.add_marker("plain")


@pytest.fixture(params=STORES)
def tolerance(request, monkeypatch):
    """Run on each column store; the value bounds errors as a share of sum |alpha_i k(x_i, x)|."""
    if request.param == "plain":
        monkeypatch.setattr(supports, "ColumnStore", plain.ColumnStore)
        monkeypatch.setattr(supports, "Guard", guard.Guard)
        monkeypatch.setattr(supports, "Calibration", plain.Calibration)
        yield 1e-9
        return
    if not compiled:
        pytest.skip("the compiled extension is missing")
    wide = request.param.endswith("64")
    before = column_type("float64" if wide else "float32")
    yield 1e-9 if wide else 1e-5
    column_type(before)
