import gzip
import lzma
import struct
import sys

import h5py
import numpy as np
import pytest

from drift.errors import DataError, MissingExtraError, ParameterError
from drift.streams import Documents, catalog, handwriting, letter, load, load_split, mnist, usps

PIXELS = np.arange(3 * 28 * 28, dtype=np.uint8).reshape(3, 28, 28)
DIGITS = np.array([7, 0, 7], dtype=np.uint8)


def idx(array, magic=None):
    header = struct.pack(f">{1 + array.ndim}I", magic or 2048 + array.ndim, *array.shape)
    return header + array.tobytes()


@pytest.fixture
def digits(tmp_path):
    """A folder like MNIST's, with three images to train on and two to test."""
    for prefix, n in (("train", 3), ("t10k", 2)):
        images, labels = idx(PIXELS[:n]), idx(DIGITS[:n])
        (tmp_path / f"{prefix}-images-idx3-ubyte.gz").write_bytes(gzip.compress(images))
        (tmp_path / f"{prefix}-labels-idx1-ubyte").write_bytes(labels)
    return tmp_path


def test_mnist(digits):
    training, test = mnist(digits)
    assert (len(training), len(test), training.n_features) == (3, 2, 784)
    assert (training.rows.toarray() == PIXELS.reshape(3, 784)).all()
    assert [topics for _, topics in training] == [{"7"}, {"0"}, {"7"}]
    assert (training.name, test.name) == ("mnist-train", "mnist-test")
    assert training.sha256 != test.sha256


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("train-images-idx3-ubyte", idx(PIXELS[:1]), "holds 1 images for 3 labels"),
        ("train-images-idx3-ubyte", idx(PIXELS)[:-1], "does not match its header"),
        ("train-images-idx3-ubyte", idx(PIXELS, 2049), "is no idx file of 3 dimensions"),
        ("train-labels-idx1-ubyte", b"\0\0", "is no idx file of 1 dimensions"),
        ("t10k-labels-idx1-ubyte", b"", "the file is empty"),
    ],
)
def test_a_damaged_idx_file_is_refused(digits, name, content, message):
    (digits / name).write_bytes(content)  # what is not compressed comes first
    with pytest.raises(DataError, match=message):
        mnist(digits)


def test_a_file_of_mnist_that_is_missing(digits):
    (digits / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(DataError, match="holds no t10k-labels-idx1-ubyte"):
        mnist(digits)


@pytest.fixture
def hdf5(tmp_path):
    with h5py.File(tmp_path / "usps.h5", "w") as file:
        for part, n in (("train", 3), ("test", 1)):
            file[f"{part}/data"] = np.full((n, 256), 0.5, dtype=np.float32)
            file[f"{part}/target"] = np.arange(n, dtype=np.int32)
    return tmp_path


def test_usps_from_hdf5(hdf5):
    training, test = usps(hdf5)
    assert (len(training), len(test), training.n_features) == (3, 1, 256)
    assert [topics for _, topics in training] == [{"0"}, {"1"}, {"2"}]
    assert set(training.rows.data) == {0.5}


def test_usps_from_libsvm_files(tmp_path):
    (tmp_path / "usps.xz").write_bytes(lzma.compress(b"7 1:-1 256:0.5\n1 2:1\n"))
    (tmp_path / "usps.t").write_text("7 3:1\n")
    training, test = usps(tmp_path)
    assert (len(training), len(test), training.n_features, test.n_features) == (2, 1, 256, 256)
    assert next(iter(training)) == ({0: -1.0, 255: 0.5}, {"7"})


def test_usps_that_is_not_there_or_damaged(tmp_path):
    with pytest.raises(DataError, match=r"holds neither usps\.h5 nor LIBSVM's"):
        usps(tmp_path)
    (tmp_path / "usps.h5").write_bytes(b"nothing of the kind")
    with pytest.raises(DataError, match="is no HDF5 file of USPS"):
        usps(tmp_path)


def test_usps_from_hdf5_needs_h5py(hdf5, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MissingExtraError, match=r'pip install "\.\[data\]"'):
        usps(hdf5)


@pytest.fixture
def letters(tmp_path, monkeypatch):
    """Three letters, two of them for training."""
    monkeypatch.setattr(handwriting, "_LETTERS", 2)
    lines = ["T," + ",".join("2" * 16), "A," + ",".join("0" * 16), "T," + ",".join("1" * 16)]
    (tmp_path / "letter-recognition.data").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_letter(letters):
    training, test = letter(letters)
    assert list(training) == [(dict.fromkeys(range(16), 2.0), {"T"}), ({}, {"A"})]
    assert list(test) == [(dict.fromkeys(range(16), 1.0), {"T"})]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("T,1\n", r"line 1: expected a letter and 16 counts"),
        ("T," + ",".join("\u0663" * 16) + "\n", "expected a letter and 16 counts"),
        ("T," + ",".join("x" * 16) + "\n", "expected a letter and 16 counts"),
        ("T," + ",".join("1" * 16) + "\n", "has 1 lines, and the first 2 train"),
    ],
)
def test_a_damaged_letter_file_is_refused(letters, text, message):
    (letters / "letter-recognition.data").write_text(text)
    with pytest.raises(DataError, match=message):
        letter(letters)


def test_load_and_load_split_know_them(digits, monkeypatch):
    assert len(load("mnist", digits, 2)[0]) == 2
    training, test = load_split("mnist", digits, 2, 1)
    assert (len(training), len(test)) == (2, 1)
    monkeypatch.delenv("DRIFT_DATA", raising=False)
    with pytest.raises(ParameterError, match=r"mnist: no data folder is given\. Download its four"):
        load_split("mnist")


@pytest.mark.parametrize(
    ("stream", "name", "n"),
    [("mnist", "mnist_784", 60_000), ("usps", "USPS", 7_291), ("letter", "letter", 16_000)],
)
def test_the_first_rows_at_openml_are_for_training(monkeypatch, stream, name, n):
    everything = Documents.from_arrays(np.arange(n + 3)[:, None], np.arange(n + 3) % 2, name=name)
    fetched = []

    def fetch(name):
        fetched.append(name)
        return everything

    monkeypatch.setattr(catalog, "fetch_openml", fetch)
    training, test = load_split(stream, "openml")
    assert (len(training), test.rows.toarray().ravel().tolist()) == (n, [n, n + 1, n + 2])
    assert (test.topics == everything.topics[n:]).all()
    assert len(load(stream, "openml", 5)[0]) == 5
    assert fetched == [name, name]


def test_load_split_of_libsvm_files_writes_two_classes_alike(tmp_path):
    (tmp_path / "ijcnn1").write_text("-1.0 1:1\n1.0 22:1\n")
    (tmp_path / "ijcnn1.t.xz").write_bytes(lzma.compress(b"+1 2:1\n"))
    training, test = load_split("ijcnn1", tmp_path)
    assert [topics for _, topics in training] == [{"-1"}, {"+1"}]
    assert [topics for _, topics in test] == [{"+1"}]
    assert training.n_features == test.n_features == 22


@pytest.mark.parametrize("stream", ["news20", "rcv1", "gaussians"])
def test_a_stream_without_test_part(stream):
    with pytest.raises(ParameterError, match=f"'{stream}' has no test part: choose among a9a"):
        load_split(stream)


@pytest.mark.parametrize(
    ("stream", "shape", "n_test", "classes"),
    [
        pytest.param("mnist", (60_000, 784), 10_000, 10, marks=pytest.mark.slow),
        ("usps", (7_291, 256), 2_007, 10),
        ("letter", (16_000, 16), 4_000, 26),
        pytest.param("ijcnn1", (49_990, 22), 91_701, 2, marks=pytest.mark.slow),
    ],
)
def test_the_real_sets_have_the_papers_shapes(drift_data, stream, shape, n_test, classes):
    training, test = load_split(stream, drift_data(stream))
    assert training.rows.shape == shape
    assert len(test) == n_test
    assert set(training.topic_names) == set(test.topic_names)
    assert len(training.topic_names) == classes
    assert (training.topics.sum(axis=1) == 1).all()
