"""What an update may allocate: second-order models change their matrices in place."""

import tracemalloc

import pytest

from drift.models import LBSOP, RBSOP, SOP, compiled
from tests.models.streams import random_stream

HELD = 300
ROW = 8 * HELD  # bytes of one row of their matrices, which have as many rows


def peaks(model, examples):
    """Bytes that each update allocates above the memory before it."""
    tracemalloc.start()
    try:
        for x, _ in examples:
            y = not model.predict_one(x)  # a mistake
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            model.learn_one(x, y)
            yield tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


@pytest.mark.skipif(not compiled, reason="the plain store makes Python objects of its numbers")
@pytest.mark.parametrize(
    "model", [SOP(), RBSOP(HELD, seed=1), LBSOP(HELD)], ids=lambda model: type(model).__name__
)
def test_an_update_allocates_a_few_rows_and_no_matrix(model):
    examples = list(random_stream(HELD + 80))
    for x, _ in examples[:HELD]:
        model.learn_one(x, not model.predict_one(x))
    assert model.n_supports == HELD
    measured = list(peaks(model, examples[HELD:]))  # enough for a check of the inverse
    # Without a budget the matrices make room for a quarter more, once in as many updates.
    # To copy a generator of random numbers takes as much as some 18 rows, once in 64 updates.
    grown = [peak for peak in measured if peak > 24 * ROW]
    assert len(grown) <= (1 if type(model) is SOP else 0)
