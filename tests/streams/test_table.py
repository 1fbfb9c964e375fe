"""Tables of examples: in memory or in a file that processes share."""

import gc
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from river.naive_bayes import GaussianNB

from drift.errors import ParameterError
from drift.experiments import compare
from drift.experiments.jobs import count_in, tell
from drift.streams import Stream, read_stream, table
from drift.streams.stream import unpacked

RNG = np.random.default_rng(0)
N = 1_200
FRAME = pd.DataFrame(
    {
        "x": RNG.normal(size=N),
        "town": RNG.choice(["Bern", "Genf"], N),
        "y": RNG.choice(["yes", "no"], N),
    }
)
FRAME.loc[::7, "x"] = np.nan
FRAME.loc[::5, "town"] = None
EXAMPLES = [
    ({k: v for k, v in (("x", x), ("town", town)) if v == v and v is not None}, y)
    for x, town, y in FRAME.astype(object).where(FRAME.notna(), None).itertuples(index=False)
]


@pytest.fixture(params=["memory", "file"])
def stream(request, monkeypatch, tmp_path):
    monkeypatch.setattr(table.tempfile, "tempdir", str(tmp_path))
    if request.param == "file":
        monkeypatch.setattr(table, "_IN_MEMORY", 0)
    return read_stream(FRAME, "y")


def test_it_has_the_examples_of_the_frame(stream):
    assert list(stream) == EXAMPLES
    assert [stream.examples[i] for i in (0, 700, -1)] == [EXAMPLES[i] for i in (0, 700, -1)]
    assert list(stream.head(5)) == EXAMPLES[:5]
    assert stream.labels == [y for _, y in EXAMPLES]
    assert (stream.features, stream.categories) == (["x", "town"], {"town": 2})


def test_another_process_has_the_same(stream):
    for other in (unpacked(stream.packed), pickle.loads(pickle.dumps(stream)).examples):
        assert list(other) == EXAMPLES
        assert other.fingerprint() == stream.examples.fingerprint()


def test_shuffled_blocks_are_those_of_pairs(stream):
    shuffled = Stream(EXAMPLES).block_shuffled(50, seed=1)
    assert list(stream.block_shuffled(50, seed=1)) == list(shuffled)


def test_runs_in_other_processes_make_the_mistakes_of_pairs(stream):
    kept = stream.sha256
    ours = compare(GaussianNB(), stream, jobs=2)
    pairs = compare(GaussianNB(), Stream(EXAMPLES, "DataFrame"), jobs=1)
    names = ["model", "rows", "mistakes", "kappa", "log_loss"]
    assert ours["runs"][names].equals(pairs["runs"][names])
    assert stream.sha256 == kept


def test_its_file_goes_with_it_and_after_an_error(monkeypatch, tmp_path):
    monkeypatch.setattr(table.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(table, "_IN_MEMORY", 0)
    stream = read_stream(FRAME, "y")
    assert len(list(Path(tmp_path).glob("drift-*.table"))) == 1
    del stream
    gc.collect()
    assert not list(tmp_path.iterdir())
    with pytest.raises(ParameterError, match="classes are texts or whole numbers"):
        read_stream(FRAME.fillna({"x": 0.5}), "x")
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_a_run_tells_how_far_it_is(tmp_path):
    counters = tmp_path / "counters"
    np.zeros(3, dtype=np.int64).tofile(counters)
    try:
        count_in(str(counters), 1)
        tell(40)
    finally:
        count_in(None, 0)
    tell(50)
    assert np.fromfile(counters, dtype=np.int64).tolist() == [0, 40, 0]
