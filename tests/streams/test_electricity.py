import lzma

import pytest

from drift.errors import DataError
from drift.streams import load, read_elec

HEADER = b"period,nswprice,nswdemand,vicprice,vicdemand,transfer,class\n"
ROWS = b"0.0,0.056,0.439,0.003,0.42,0.41,1\n0.02,0.051,0.415,0.0,0.42,0.41,0\n"


def test_rows_are_in_the_order_of_the_file(tmp_path):
    (tmp_path / "elec.csv.xz").write_bytes(lzma.compress(HEADER + ROWS))
    documents = read_elec(tmp_path)
    first, second = documents
    assert first[0] == {
        "nswprice": 0.056,
        "nswdemand": 0.439,
        "vicprice": 0.003,
        "vicdemand": 0.42,
        "transfer": 0.41,
    }
    assert (first[1], second[1]) == ({"1"}, {"0"})
    assert second[0]["period"] == 0.02
    assert "vicprice" not in second[0]
    assert documents.name == "elec"
    assert len(load("elec", tmp_path, 1)[0]) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (HEADER, "line 1: expected the line period,.* and then rows"),
        (b"a,b\n" + ROWS, "line 1: expected the line period,"),
        (HEADER + ROWS + b"0.1,0.2,1\n", "line 4: expected six numbers and the class"),
        (HEADER + ROWS.replace(b",1\n", b",2\n"), "line 2: expected six numbers and the class"),
        (HEADER + ROWS.replace(b"0.439", b"nan"), "line 2: expected six numbers"),
        (HEADER + ROWS.replace(b"0.051", b"UP"), "line 3: expected six numbers"),
        (HEADER + ROWS.replace(b"0.051", b"0_51"), "line 3: expected six numbers"),
        (HEADER + ROWS[:-1], "has no newline"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, content, message):
    (tmp_path / "elec.csv").write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_elec(tmp_path)


def test_the_real_set(drift_data):
    documents = read_elec(drift_data("elec"))
    assert documents.rows.shape == (45_312, 6)
    assert documents.has("1").sum() == 19_237  # UP; DOWN are 26,075
    assert 0.0 <= documents.rows.data.min() <= documents.rows.data.max() == 1.0
