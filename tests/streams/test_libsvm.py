import bz2
import gzip
import hashlib
import io
import lzma
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drift.errors import DataError
from drift.streams import _files, _svmlight, load, rcv1v2, read_libsvm, read_stream


def zipped(content):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("news.svm", content)
    return buffer.getvalue()


COMPRESS = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zip": zipped,
}
TEXT = b"1,7 1:0.5 4:-2e1\n 2:3\n3:1.5\n+1\n"
DOCUMENTS = [
    ({0: 0.5, 3: -20.0}, {"1", "7"}),
    ({1: 3.0}, set()),
    ({2: 1.5}, set()),
    ({}, {"+1"}),
]


@pytest.fixture
def write(tmp_path):
    def write(content, name="news.svm"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.mark.parametrize("suffix", COMPRESS)
def test_plain_and_compressed(write, suffix):
    raw = COMPRESS[suffix](TEXT)
    documents = read_libsvm(write(raw, f"news.svm{suffix}"))
    assert list(documents) == DOCUMENTS
    assert documents.topic_names == ("1", "7", "+1")
    assert (documents.name, documents.n_features) == ("news", 4)
    assert documents.sha256 == hashlib.sha256(raw).hexdigest()


@pytest.mark.parametrize(
    "text",
    [
        "a 2:1 1:3\n",
        "a 1:3\t2:1\n",
        "a\t1:3\t2:1\n",
        "a  1:3  2:1  \n",
        "a 1:3 2:1\r\n",
        "a 01:3 2:1\n",
        "\ufeffa 1:3 2:1\n",
        "# written by svmlight\na 1:3 2:1 # story 7: 9:9\n  # the end\n",
    ],
)
def test_unusual_but_legal_lines(write, text):
    assert list(read_libsvm(write(text))) == [({0: 3.0, 1: 1.0}, {"a"})]


@settings(deadline=None)
@given(
    st.lists(
        st.dictionaries(
            st.integers(1, 10**6), st.floats(allow_nan=False, allow_infinity=False), max_size=6
        ),
        min_size=1,
    ),
    st.booleans(),
)
def test_what_was_written_is_read(rows, in_order):
    lines = []
    for row in rows:
        pairs = sorted(row.items()) if in_order else row.items()
        lines.append("x " + " ".join(f"{index}:{value!r}" for index, value in pairs) + "\n")
    heads, matrix, _, _ = _svmlight.parse("".join(lines).encode(), "file")
    assert heads == ["x"] * len(rows)
    for i, row in enumerate(rows):
        begin, end = matrix.indptr[i : i + 2]
        read = dict(zip(matrix.indices[begin:end] + 1, matrix.data[begin:end], strict=True))
        assert read == row


def test_blocks_join_and_errors_know_their_line(monkeypatch):
    monkeypatch.setattr(_svmlight, "_BLOCK", 2)
    _, rows, _, _ = _svmlight.parse(
        b"a 1:1\nb 2:2\nc 3:3 1:1\n d 1:5\n".replace(b" d", b"d"), "file"
    )
    assert rows.toarray().tolist() == [[1, 0, 0], [0, 2, 0], [1, 0, 3], [5, 0, 0]]
    with pytest.raises(DataError, match=r"^file, line 4: "):
        _svmlight.parse(b"a 1:1\nb 1:1\nc 1:1\nd 1:x\n", "file")


def test_comments_leave_labels_and_numbers_of_lines_as_they_are(write):
    path = write("# two\n#comments\nc# 1:1\n 2:3 #\n")
    assert list(read_libsvm(path)) == [({0: 1.0}, {"c#"}), ({1: 3.0}, set())]
    with pytest.raises(DataError, match="line 3: label 'c#'"):
        read_libsvm(path, {4: "C15"})
    with pytest.raises(DataError, match="line 3: feature 1 occurs twice"):
        read_libsvm(write("# one\na 1:1\na 1:1 1:2\n"))
    with pytest.raises(DataError, match="comments only"):
        read_libsvm(write("# one\n"))


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ("a 12", "no ':' in feature '12'"),
        ("a 1:2 :3", "index '' is not a whole number"),
        ("a -1:1", "index '-1'"),
        ("a 1.0:1", r"index '1\.0'"),
        ("a 1e2:1", "index '1e2'"),
        ("a 99999999999:1", "index '99999999999'"),
        ("a " + 5_000 * "9" + ":1", "index '9999.* is not a whole number"),
        ("a \u0663:1", "index '\u0663' is not a whole number"),
        ("a 3:1_0", "feature 3 holds '1_0', which is not a number"),
        ("a 3:\u0663", "feature 3 holds '\u0663', which is not a number"),
        ("a 3:1 3:2", "feature 3 occurs twice"),
        ("a 3:1 2:0 3:2", "feature 3 occurs twice"),
        ("a 1:nan", "feature 1 holds 'nan', which is not a number"),
        ("a 1:-inf", "feature 1 holds '-inf', which is not a number"),
        ("a 1:1e999", "feature 1 holds '1e999': values must be finite"),
        ("a 1:two", "'two', which is not a number"),
        ("a 1:1.2.3", "not a number"),
        ("a 1:", "'', which is not a number"),
        ("a 1:2:3", "'2:3', which is not a number"),
        ("a,,b 1:1", "label ''"),
        ("", "empty"),
        ("   ", "empty"),
    ],
)
def test_a_malformed_line_is_named(write, bad, problem):
    path = write(f"a 1:1\n{bad}\na 1:1\n")
    with pytest.raises(DataError, match=problem) as caught:
        read_libsvm(path)
    assert (caught.value.path, caught.value.line) == (path, 2)


def test_labels_that_are_no_text(write):
    with pytest.raises(DataError, match=r"line 1: .*UTF-8"):
        read_libsvm(write(b"\xff 1:1\n"))


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
@pytest.mark.parametrize("kept", [0.5, 0.9])
def test_a_truncated_compressed_file(write, suffix, kept):
    raw = COMPRESS[suffix](TEXT * 50)
    path = write(raw[: int(len(raw) * kept)], f"news.svm{suffix}")
    with pytest.raises(DataError, match="cut short or damaged"):
        read_libsvm(path)


def test_a_damaged_zip(write):
    raw = zipped(TEXT * 50)
    deflated = raw.index(b"news.svm") + len(b"news.svm")
    for broken in (
        raw[: len(raw) // 2],
        raw.replace(raw[14:18], b"\0\0\0\0"),  # the checksum, in both places
        raw[:deflated] + b"\xff" + raw[deflated + 1 :],
    ):
        path = write(broken, "news.svm.zip")
        for read in (read_libsvm, read_stream):
            with pytest.raises(DataError, match="is no zip file that can be read"):
                read(path)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
def test_every_stream_of_a_compressed_file_counts(write, suffix):
    one = COMPRESS[suffix](TEXT)
    damaged = one[:-9] + bytes(byte ^ 255 for byte in one[-9:])
    padded = write(one + one + bytes(8), f"news.svm{suffix}")  # as tapes and xz pad
    assert list(read_libsvm(padded)) == 2 * DOCUMENTS
    for rest in (damaged, one[:-1], b"junk"):
        path = write(one + rest, f"news.svm{suffix}")
        with pytest.raises(
            DataError, match=f"cut short or damaged.*from byte {len(one)} on.*fetch"
        ):
            read_libsvm(path)


@pytest.mark.parametrize("suffix", list(COMPRESS)[1:])
def test_a_decompression_bomb_is_refused(write, suffix, monkeypatch):
    monkeypatch.setattr(_files, "_ALWAYS_ALLOWED", 1 << 20)
    path = write(COMPRESS[suffix](TEXT + bytes(1 << 20)), f"news.svm{suffix}")
    with pytest.raises(DataError, match=r"more than 1,048,576 bytes.*decompress it yourself"):
        read_libsvm(path)
    monkeypatch.setattr(_files, "_ALWAYS_ALLOWED", 1 << 21)
    with pytest.raises(DataError, match="newline"):
        read_libsvm(path)


@pytest.mark.parametrize("suffix", COMPRESS)
def test_a_last_line_without_newline(write, suffix):
    path = write(COMPRESS[suffix](TEXT[:-1]), f"news.svm{suffix}")
    with pytest.raises(DataError, match="line 4: the last line has no newline"):
        read_libsvm(path)


def test_empty_and_missing_files(write, tmp_path):
    with pytest.raises(DataError, match="empty"):
        read_libsvm(write(""))
    with pytest.raises(DataError, match="check the path"):
        read_libsvm(tmp_path / "nowhere.svm")


def test_a_file_without_a_feature_is_of_another_kind(write):
    with pytest.raises(DataError, match=r"line 1: no line has a feature.*'1,2,0'.*CSV"):
        read_libsvm(write("1,2,0\n3,4,1\n"))
    assert read_libsvm(write("1\n0\n"), n_features=3).rows.shape == (2, 3)


def test_topics_by_mapping_or_table(write):
    path = write("4 1:1\n59,4 1:1\n")
    table = write("label_id\tcode\tparent\n4\tC15\tCCAT\n59\tECAT\t\n60\tE11\tECAT\n", "topics.tsv")
    for topics in ({4: "C15", 59: "ECAT", 60: "E11"}, table):
        documents = read_libsvm(path, topics)
        assert documents.topic_names == ("C15", "ECAT", "E11")
        assert [topics for _, topics in documents] == [{"C15"}, {"C15", "ECAT"}]


def test_a_label_without_a_name(write):
    with pytest.raises(DataError, match="line 1: label '5' of '4,5'"):
        read_libsvm(write("4,5 1:1\n"), {4: "C15"})
    with pytest.raises(DataError, match=r"topics\.tsv, line 2: expected label, tab, name"):
        read_libsvm(write("4 1:1\n"), write("id\tcode\n4 C15\n", "topics.tsv"))


def test_n_features_widens_and_limits(write):
    assert read_libsvm(write("a 3:1\n"), n_features=9).n_features == 9
    assert read_libsvm(write("a 0:1 3:1\n")).n_features == 4
    with pytest.raises(DataError, match="feature index '0' is not a whole number from 1 to 9"):
        read_libsvm(write("a 0:1\n"), n_features=9)
    with pytest.raises(
        DataError, match="line 1: feature index '3' is not a whole number from 1 to 2"
    ):
        read_libsvm(write("a 3:1\n"), n_features=2)


@pytest.mark.slow
def test_the_real_rcv1_sample(drift_data, monkeypatch):
    folder = drift_data("rcv1")
    documents = read_libsvm(folder / "rcv1_topics.svm.xz", folder / "topics.tsv")
    assert documents.rows.shape == (27_495, 47_236)
    # Its table of topics counts the stories of each.
    table = (folder / "topics.tsv").read_text().splitlines()[1:]
    counts = {line.split("\t")[1]: int(line.split("\t")[3]) for line in table}
    assert dict(zip(documents.topic_names, documents.topics.sum(axis=0), strict=True)) == counts
    norms = np.sqrt(documents.rows.multiply(documents.rows).sum(axis=1))
    assert np.allclose(norms, 1, atol=1e-4)

    def read(*_, n_features):  # what takes two seconds is not done again
        assert n_features == documents.n_features
        return documents

    monkeypatch.setattr(rcv1v2, "read_libsvm", read)
    stories, targets = load("rcv1", data=folder)
    assert len(stories) == 20_000
    # "the 2nd, 3rd, 4th, and 5th most frequent categories", CCAT being the first
    first, *others = stories.most_frequent(5)
    assert first == "CCAT"
    assert set(others) == set(targets)
