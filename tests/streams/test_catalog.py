import builtins
import lzma
from pathlib import Path

import numpy as np
import pytest
import sklearn.datasets
from scipy.sparse import csr_matrix
from sklearn.utils import Bunch

from drift.errors import DataError, MissingExtraError, ParameterError
from drift.streams import (
    NEWSWIRE_TARGETS,
    RCV1_TARGETS,
    fetch_openml,
    fetch_rcv1,
    load,
    newswire,
    rcv1,
    rcv1v2,
    read_libsvm,
    segments,
)

SAMPLE = Path(__file__).parents[2] / "datasets" / "newswire_sample.svm"


@pytest.fixture
def no_data(monkeypatch):
    monkeypatch.delenv("DRIFT_DATA", raising=False)


@pytest.fixture
def sample(tmp_path):
    """Return a folder with two stories in the form of the RCV1 sample."""
    folder = tmp_path / "rcv1"
    folder.mkdir()
    text = b"0 1:0.5\n0,1 2:0.5\n"
    (folder / "rcv1_topics.svm.xz").write_bytes(lzma.compress(text))
    (folder / "topics.tsv").write_text("id\tcode\n0\tGCAT\n1\tMCAT\n")
    return folder


def test_rcv1_from_the_sample(sample):
    documents = rcv1(sample)
    assert list(documents) == [({0: 0.5}, {"GCAT"}), ({1: 0.5}, {"GCAT", "MCAT"})]
    assert (documents.name, documents.n_features) == ("rcv1", 47_236)
    assert len(rcv1(sample, 1)) == 1


def test_rcv1_from_the_official_files_reads_no_more_than_it_needs(tmp_path, monkeypatch):
    (tmp_path / "rcv1-v2.topics.qrels").write_text("GCAT 1 1\nMCAT 2 1\nC15 3 1\n")
    (tmp_path / "lyrl2004_vectors_train.dat").write_text("2  2:1\n1  1:1\n")
    monkeypatch.setattr(rcv1v2, "_N_TRAIN", 2)
    assert [topics for _, topics in rcv1(tmp_path, 2)] == [{"GCAT"}, {"MCAT"}]
    with pytest.raises(DataError, match=r"holds no lyrl2004_vectors_test_pt0\.dat"):
        rcv1(tmp_path, 3)
    for part in range(4):
        (tmp_path / f"lyrl2004_vectors_test_pt{part}.dat").write_text(f"{3 + part}  3:1\n")
    with pytest.raises(DataError, match="document 4 has no topics"):
        rcv1(tmp_path, 3)


def test_rcv1_from_an_empty_folder(tmp_path):
    with pytest.raises(DataError, match="fetch_rcv1"):
        rcv1(tmp_path)


@pytest.mark.parametrize("read", [rcv1, lambda _, n: fetch_rcv1(n), lambda f, n: load(f, n=n)])
def test_no_stories_at_all(read, sample):
    with pytest.raises(ParameterError, match="n must be an integer of at least 1, not 0"):
        read(str(sample), 0)


def test_a9a_as_it_is_downloaded_or_compressed(tmp_path):
    with pytest.raises(DataError, match="a9a"):
        load("a9a", tmp_path)
    (tmp_path / "a9a.xz").write_bytes(lzma.compress(b"-1 3:1 \n+1 1:1 \n"))
    documents, targets = load("a9a", tmp_path)
    assert (len(documents), documents.n_features, targets) == (2, 123, ("-1", "+1"))
    (tmp_path / "a9a").write_bytes(b"+1 2:1 \n")
    assert list(load("a9a", tmp_path)[0]) == [({1: 1.0}, {"+1"})]


def test_fetch_rcv1_is_in_the_order_of_document_ids(monkeypatch, tmp_path):
    bunch = Bunch(
        data=csr_matrix([[0.0, 3.0], [1.0, 0.0], [2.0, 0.0]]),
        target=csr_matrix([[1, 1], [1, 0], [0, 1]], dtype=np.uint8),
        sample_id=np.array([30, 10, 20]),
        target_names=np.array(["CCAT", "ECAT"], dtype=object),
    )
    homes = []

    def fetch(*, data_home):
        homes.append(data_home)
        return bunch

    monkeypatch.setattr(sklearn.datasets, "fetch_rcv1", fetch)
    assert [topics for _, topics in fetch_rcv1()] == [{"CCAT"}, {"ECAT"}, {"CCAT", "ECAT"}]
    assert list(fetch_rcv1(1, tmp_path)) == [({0: 1.0}, {"CCAT"})]
    assert homes == [None, str(tmp_path)]


def test_fetch_openml(monkeypatch):
    def fetch(name, *, version, data_home, as_frame):
        assert (name, version, data_home, as_frame) == ("electricity", 1, None, False)
        return Bunch(
            data=np.array([[1.0, np.nan], [0.0, 2.0]]),
            target=np.array(["UP", "DOWN"], dtype=object),
            feature_names=["price", "demand"],
        )

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    documents = fetch_openml("electricity", version=1)
    assert list(documents) == [({"price": 1.0}, {"UP"}), ({"demand": 2.0}, {"DOWN"})]
    assert documents.name == "electricity"


@pytest.mark.parametrize("fetch", [fetch_rcv1, lambda: fetch_openml("electricity")])
def test_fetching_needs_scikit_learn(monkeypatch, fetch):
    import_ = builtins.__import__

    def without(name, *args):
        if name.startswith("sklearn"):
            raise ImportError(name)
        return import_(name, *args)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r'pip install "\.\[data\]"'):
        fetch()


def test_load_newswire():
    documents, targets = load("newswire", n=50, seed=3)
    assert documents.sha256 == newswire(50, 3).sha256
    assert targets == NEWSWIRE_TARGETS


def test_load_segments():
    documents, targets = load("segments", n=100)
    assert (len(documents), documents.sha256) == (100, segments().sha256)
    assert targets == ("brickface", "cement", "foliage", "grass")


def test_load_a_file_with_fewer_than_four_topics(tmp_path):
    path = tmp_path / "two.svm"
    path.write_text("b 1:1\na 1:1\na 1:1\n")
    documents, targets = load(str(path))
    assert (documents.name, targets) == ("two", ("a", "b"))
    assert load(str(path), n=1)[1] == ("b",)


@pytest.mark.usefixtures("no_data")
def test_load_finds_a_folder_by_argument_or_environment(sample, monkeypatch):
    assert load("rcv1", data=sample, n=1)[1] == RCV1_TARGETS
    monkeypatch.setenv("DRIFT_DATA", str(sample.parent))
    assert len(load("rcv1")[0]) == 2


@pytest.mark.usefixtures("no_data")
@pytest.mark.parametrize("stream", ["rcv1", "reuters21578"])
def test_load_says_how_to_get_the_data(stream, tmp_path):
    with pytest.raises(ParameterError, match=r"no data folder is given\. Download .* DRIFT_DATA"):
        load(stream)
    with pytest.raises(ParameterError, match=r"nowhere does not exist\. Download"):
        load(stream, data=tmp_path / "nowhere")


@pytest.mark.parametrize("stream", ["newswire", "gaussians", "segments", str(SAMPLE)])
def test_a_folder_is_refused_where_none_is_read(stream, tmp_path):
    with pytest.raises(ParameterError, match="is not read from a folder: leave data out"):
        load(stream, tmp_path)


def test_load_guesses_what_was_meant():
    with pytest.raises(ParameterError, match=r"no stream 'newswires': did you mean 'newswire'"):
        load("newswires")


def test_the_sample_in_the_repository_is_what_its_readme_says():
    documents, targets = load(str(SAMPLE))
    assert set(targets) <= set(newswire(1).topic_names)
    expected = newswire(len(documents))
    assert [topics for _, topics in documents] == [topics for _, topics in expected]
    read = read_libsvm(SAMPLE, n_features=30_000).rows
    assert np.allclose((read - expected.rows).data, 0, atol=5e-5)
