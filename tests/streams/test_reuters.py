import gzip
import hashlib
import math

import pytest

from drift.errors import DataError
from drift.streams import read_reuters21578

STORY = """<REUTERS TOPICS="YES" NEWID="{newid}">
<DATE>{date}</DATE>
<TOPICS>{topics}</TOPICS>
<PLACES><D>usa</D></PLACES>
<UNKNOWN>&#5;&#5;C T</UNKNOWN>
<TEXT>&#2;
{text}
</TEXT>
</REUTERS>
"""


def story(newid, text, date="26-FEB-1987 15:01:01.79", topics=()):
    marked = "".join(f"<D>{topic}</D>" for topic in topics)
    return STORY.format(newid=newid, text=text, date=date, topics=marked)


@pytest.fixture
def folder(tmp_path):
    """Return a function that writes the 22 files: stories in the first, fillers in the others."""

    def write(*stories, filler="filler"):
        for number in range(22):
            text = "".join(stories) if number == 0 else story(900 + number, filler)
            content = f'<!DOCTYPE lewis SYSTEM "lewis.dtd">\n{text}'.encode("latin-1")
            (tmp_path / f"reut2-{number:03}.sgm").write_bytes(content)
        return tmp_path

    return write


def read(folder):
    """Stories of the first file only: fillers have no topics and one word."""
    return [(x, topics) for x, topics in read_reuters21578(folder) if set(x) != {"filler"}]


def test_title_and_body_without_date_line_author_and_control_characters(folder):
    text = (
        "<TITLE>BAHIA &lt;COCOA> Caf\xe9</TITLE>\n<AUTHOR>By Jane Doe</AUTHOR>"
        "<DATELINE>SALVADOR, Feb 26 - </DATELINE><BODY>Prices up 5.5 a tonne.\n&#3;</BODY>"
    )
    ((features, topics),) = read(folder(story(1, text, topics=["cocoa", "crude"])))
    assert list(features) == ["bahia", "cocoa", "caf", "prices", "up", "tonne"]
    assert topics == {"cocoa", "crude"}


def test_stories_without_markup_without_topics_and_without_text(folder):
    stories = read(folder(story(1, "plain text"), story(2, "5 &#3;", topics=["dropped"])))
    assert [(set(x), topics) for x, topics in stories] == [({"plain", "text"}, set())]


def test_order_of_time(folder):
    stories = [
        story(1, "late", "1-APR-1987 09:00:00.00"),
        story(2, "broken", "31-MAR-1987 605:12:19.12"),
        story(3, "early", " 26-FEB-1987 15:01:01.79&#9;&#9;C T"),
        story(4, "noon", "9-MAR-1987  12:00:00.00"),
        story(6, "tie six", "10-MAR-1987 12:00:00.00"),
        story(5, "tie five", "10-MAR-1987 12:00:00.00    # date added as guesswork"),
    ]
    words = [list(x)[-1] for x, _ in read(folder(*stories))]
    # The broken one comes right after story 1, whose date it takes.
    assert words == ["early", "noon", "five", "six", "late", "broken"]


def test_a_story_whose_date_nobody_knows_comes_first(folder):
    stories = [story(1, "one", "someday"), story(2, "two", "26-XYZ-1987 15:01:01.79")]
    assert [list(x) for x, _ in read(folder(*stories))] == [["one"], ["two"]]


def test_weights_by_hand(folder):
    stories = [story(1, "oil oil oil gas"), story(2, "gas tax"), story(3, "oil gas tax tax")]
    first, second, third = (x for x, _ in read(folder(*stories)))

    def unit(**weights):
        norm = math.hypot(*weights.values())
        return pytest.approx({word: weight / norm for word, weight in weights.items()})

    # idf is 1 + log((1 + t) / (1 + df)) with t stories before, df of them with the word.
    assert first == unit(oil=1 + math.log(3), gas=1)
    assert second == unit(gas=1 + math.log(2 / 2), tax=1 + math.log(2 / 1))
    idf = 1 + math.log(3 / 2)
    assert third == unit(oil=idf, gas=1 + math.log(3 / 3), tax=(1 + math.log(2)) * idf)


def test_weights_do_not_look_ahead(folder):
    stories = [story(newid, text) for newid, text in enumerate(["a1 oil gas", "gas", "tax oil"])]
    before = read(folder(*stories[:2]))
    assert read(folder(*stories))[:2] == before


def test_compressed_files_and_their_fingerprint(folder):
    path = folder(story(1, "oil")) / "reut2-000.sgm"
    path.with_name("reut2-000.sgm.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    documents = read_reuters21578(path.parent)
    assert (len(documents), documents.name) == (22, "reuters21578")
    source = b"".join(file.read_bytes() for file in sorted(path.parent.iterdir()))
    assert documents.sha256 == hashlib.sha256(source).hexdigest()


def test_a_missing_file(folder):
    path = folder(story(1, "oil"))
    (path / "reut2-013.sgm").unlink()
    with pytest.raises(
        DataError, match=r"holds no reut2-013\.sgm, plain or compressed \(\.xz, \.gz"
    ):
        read_reuters21578(path)


@pytest.mark.parametrize(
    ("damage", "line", "problem"),
    [
        (lambda text: text[: text.rindex("</TEXT>")], 11, "ends in the middle of a story"),
        (lambda text: text[: text.rindex("</REUTERS>")], 11, "ends in the middle of a story"),
        (lambda text: text.replace("</REUTERS>\n", "", 1), 2, "story 1 is cut short"),
        (lambda text: text.replace("</TEXT>\n", "", 1), 2, "story 1 is cut short"),
        (lambda text: text.replace('NEWID="2"', ""), 11, "no NEWID"),
        (lambda text: text[:-1], 19, "has no newline"),
        (lambda text: text[: text.index("<REUTERS")], None, "no story"),
    ],
)
def test_a_damaged_file(folder, damage, line, problem):
    path = folder(story(1, "oil"), story(2, "gas")) / "reut2-000.sgm"
    path.write_text(damage(path.read_text()))
    with pytest.raises(DataError, match=problem) as caught:
        read_reuters21578(path.parent)
    assert (caught.value.path, caught.value.line) == (path, line)


@pytest.mark.slow
def test_the_real_collection(drift_data):
    documents = read_reuters21578(drift_data("reuters21578"))
    # 21,578 stories, one of them a single number; 120 topics; earn is the most frequent.
    assert documents.topics.shape == (21_577, 120)
    assert documents.most_frequent(2) == ["earn", "acq"]
    assert {"cocoa", "bahia"} <= set(next(documents.features()))
