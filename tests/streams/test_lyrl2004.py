import gzip
import hashlib

import pytest

from drift.errors import DataError
from drift.streams import read_lyrl2004

TRAIN = "2290  5:0.25 47236:1\n2286  1:0.5\n"
TEST = "30000  2:0.75\n"
QRELS = "ECAT 2286 1\nGCAT 30000 1\nMCAT 2290 1\nCCAT 2286 1\nGCAT 99999 1\nGDIP 99999 1\n"


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
        return path

    return write


def test_several_files_in_the_order_of_document_ids(write):
    paths = [write("pt0.dat.gz", TEST), write("train.dat", TRAIN), write("topics.qrels", QRELS)]
    documents = read_lyrl2004(paths[:2], paths[2])
    assert list(documents) == [
        ({0: 0.5}, {"ECAT", "CCAT"}),
        ({4: 0.25, 47_235: 1.0}, {"MCAT"}),
        ({1: 0.75}, {"GCAT"}),
    ]
    # GDIP belongs to a story that is not among the vectors.
    assert documents.topic_names == ("ECAT", "GCAT", "MCAT", "CCAT")
    assert documents.n_features == 47_236
    source = b"".join(path.read_bytes() for path in paths)
    assert documents.sha256 == hashlib.sha256(source).hexdigest()


def test_one_path_will_do(write):
    vectors, qrels = write("train.dat", TRAIN), write("topics.qrels", QRELS)
    assert len(read_lyrl2004(vectors, qrels)) == len(read_lyrl2004(str(vectors), str(qrels))) == 2


@pytest.mark.parametrize(
    ("vectors", "line", "problem"),
    [
        (TRAIN + "2286  1:1\n", 3, r"document 2286 is already at .*train\.dat, line 2"),
        (TRAIN + "2287  1:1\n", 3, "document 2287 has no topics"),
        (TRAIN + "22x7  1:1\n", 3, "'22x7' is not a document id"),
        (TRAIN + 5_000 * "9" + " 1:1\n", 3, "is not a document id"),
        (TRAIN + "1:1\n", 3, "'' is not a document id"),
        ("2286  1:1 47237:1\n", 1, "index '47237' is not a whole number from 1 to 47236"),
        ("2286  1:1 x\n", 1, "no ':' in feature 'x'"),
        (TRAIN[:-1], 2, "has no newline"),
    ],
)
def test_malformed_vectors(write, vectors, line, problem):
    path = write("train.dat", vectors)
    with pytest.raises(DataError, match=problem) as caught:
        read_lyrl2004(path, write("topics.qrels", QRELS))
    assert (caught.value.path, caught.value.line) == (path, line)


@pytest.mark.parametrize(
    ("qrels", "line", "problem"),
    [
        (QRELS + "ECAT 2286\n", 7, "expected topic, document id and 1, but read 'ECAT 2286'"),
        (QRELS + "2286 ECAT 1\n", 7, "expected topic"),
        (QRELS + "ECAT 2286 0\n", 7, "document id and 1, but read 'ECAT 2286 0'"),
        (QRELS[:-1], 6, "has no newline"),
    ],
)
def test_malformed_qrels(write, qrels, line, problem):
    path = write("topics.qrels", qrels)
    with pytest.raises(DataError, match=problem) as caught:
        read_lyrl2004(write("train.dat", TRAIN), path)
    assert (caught.value.path, caught.value.line) == (path, line)
