"""Dead letters keep the message whole, say why, and can be turned back."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift.consumers.dead_letters import _HEADERS, dead_letter, original, shortened
from drift.consumers.records import Message, Outgoing, Position
from drift.consumers.replay import Replay
from drift.errors import MessageError

MESSAGE = Message(Position("news", 3, 41), b"k", b"\x00\xff", [("a", b"1"), ("a", b"2")], 1_700)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_a_dead_letter_says_all_there_is_to_know():
    error = MessageError("label", "is absent: send one")
    letter = dead_letter(MESSAGE, error, "dead", time=NOON)
    assert (letter.topic, letter.key, letter.value) == ("dead", b"k", b"\x00\xff")
    assert letter.headers == [
        ("a", b"1"),
        ("a", b"2"),
        ("drift.error", b"label is absent: send one"),
        ("drift.error.class", b"MessageError"),
        ("drift.topic", b"news"),
        ("drift.partition", b"3"),
        ("drift.offset", b"41"),
        ("drift.timestamp", b"1700"),
        ("drift.time", b"2026-03-01T12:00:00.000000+00:00"),
    ]


def test_times_are_in_utc():
    there = NOON.astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert dead_letter(MESSAGE, ValueError(), "dead", time=there).headers[-1][1] == (
        b"2026-03-01T12:00:00.000000+00:00"
    )
    before = datetime.now(UTC)
    at = datetime.fromisoformat(dead_letter(MESSAGE, ValueError(), "d").headers[-1][1].decode())
    assert before <= at <= datetime.now(UTC)


def test_errors_of_any_length_and_content_fit():
    error = RuntimeError("bad\r\nX-Header: 1\x00 \ud800 é" * 100_000)
    text = dict(dead_letter(MESSAGE, error, "dead").headers)["drift.error"].decode()
    assert text.startswith("bad X-Header: 1 ")
    assert text.endswith("...")
    assert len(text) == 300


byte_strings = st.none() | st.binary()
headers = st.lists(st.tuples(st.text(st.characters(exclude_categories=["Cs"])), byte_strings))
records = st.builds(
    Message,
    st.builds(Position, st.text("abc._-é"), st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1)),
    byte_strings,
    byte_strings,
    headers,
    st.none() | st.integers(-1, 2**63 - 1),
    st.just(-1),  # a letter has no room for the leader epoch, nor for whose clock it was
    st.just(False),
)


@given(records, st.text())
def test_the_original_comes_back(message, text):
    letter = dead_letter(message, ValueError(text), "dead")
    assert original(letter) == message
    read_back = Message(Position("dead", 0, 5), letter.key, letter.value, letter.headers, 9)
    assert original(read_back) == message


def test_a_dead_letter_of_a_dead_letter_gives_the_first_one_back():
    first = dead_letter(MESSAGE, ValueError("one"), "dead")
    read_back = Message(Position("dead", 0, 5), first.key, first.value, first.headers, 9)
    second = dead_letter(read_back, ValueError("two"), "deader")
    assert original(second) == read_back
    assert original(original(second)) == MESSAGE


def test_tombstones_stay_null_and_empty_values_empty():
    for key, value in ((b"k", None), (None, b""), (b"", None), (b"", b"")):
        letter = dead_letter(MESSAGE._replace(key=key, value=value), ValueError(), "dead")
        assert (letter.key, letter.value) == (key, value)
        assert letter.headers[-1][0] == "drift.time"


def test_a_tombstone_without_a_key_can_be_sent_and_comes_back_as_one():
    message = MESSAGE._replace(key=None, value=None)
    letter = dead_letter(message, ValueError(), "dead")
    assert (letter.key, letter.value) == (None, b"")
    assert letter.headers[-1] == ("drift.null", b"1")
    assert original(letter) == message


def test_letters_are_halved_until_they_are_taken_and_are_not_sent_again_then():
    letter = dead_letter(MESSAGE._replace(value=b"x" * 99), ValueError(), "dead")
    headers = letter.headers[: -len(_HEADERS)]
    assert headers
    sizes = []
    while (shorter := shortened(letter)) is not None:
        letter = shorter
        sizes.append(len(letter.value))
        assert letter.headers[-1] == ("drift.cut", b"99")
        with pytest.raises(MessageError, match="value was cut off, it had 99 bytes"):
            original(letter)
    assert sizes == [49, 24, 12, 6, 3, 1, 0, 0]
    assert (letter.key, [name for name, _ in letter.headers[:-1]]) == (None, list(_HEADERS))
    assert shortened(Outgoing("predictions", b"k", b"{}", [])) is None


def test_other_records_are_no_dead_letters():
    with pytest.raises(MessageError, match="are no dead letter's"):
        original(MESSAGE)
    letter = dead_letter(MESSAGE, ValueError(), "dead")
    with pytest.raises(MessageError, match="are no dead letter's"):
        original(letter._replace(headers=[*letter.headers, ("later", b"")]))
    broken = [(n, b"x" if n == "drift.offset" else v) for n, v in letter.headers]
    with pytest.raises(MessageError, match="hold no partition, offset or timestamp"):
        original(letter._replace(headers=broken))


# --- replay ------------------------------------------------------------------------------------


class Log:
    """A topic in memory, as `Reader` shows one."""

    def __init__(self, topic, partitions=2):
        self.topic = topic
        self.partitions = list(range(partitions))
        self.messages = {number: [] for number in self.partitions}
        self.started = {}

    def add(self, partition, key=None, value=b"", headers=()):
        position = Position(self.topic, partition, len(self.messages[partition]))
        self.messages[partition].append(Message(position, key, value, headers, 5))
        return self.messages[partition][-1]

    def ends(self):
        return {number: len(messages) for number, messages in self.messages.items()}

    def read(self, ends, beginnings=None):
        self.started = dict.fromkeys(ends, 0) | dict(beginnings or {})
        for number, end in ends.items():
            yield from self.messages[number][self.started[number] : end]


@pytest.fixture
def topic():
    """Eight messages in each of two partitions."""
    log = Log("news")
    for number in range(8):
        for partition in log.partitions:
            log.add(partition, b"k%d" % number, b"v%d" % number, [("a", b"1"), ("a", None)])
    return log


@pytest.fixture
def dead():
    return Log("dead")


def bury(dead, message, text="no", made=lambda letter: letter):
    letter = made(dead_letter(message, ValueError(text), "dead"))
    dead.add(letter.partition % len(dead.partitions), letter.key, letter.value, letter.headers)


def replay(dead, topic, count=None, **options):
    """Send what is to be sent, or the first of it; return where it stood, and the `Replay`."""
    result = Replay(dead, topic, **options)
    sent = []
    for _, (name, key, value, headers, partition) in list(result)[:count]:
        assert name == topic.topic
        topic.add(partition, key, value, headers)
        sent.append(dict(headers)["drift.replayed"].decode())
    return sent, result


def test_a_message_goes_back_once_with_all_that_it_had(topic, dead):
    for number in (3, 5, 3):
        bury(dead, topic.messages[1][number])
    sent, actual = replay(dead, topic)
    assert sent == ["news:1:3", "news:1:5"]
    assert (actual.before, actual.twice) == (0, 1)
    again = topic.messages[1][8]
    assert again[1:4] == (
        b"k3",
        b"v3",
        [
            *(("a", b"1"), ("a", None), ("drift.replayed", b"news:1:3")),
            ("drift.replayed.timestamp", b"5"),
        ],
    )
    assert topic.ends() == {0: 8, 1: 10}


def test_a_replay_that_was_interrupted_sends_the_rest_and_the_next_one_nothing(topic, dead):
    for number in range(2, 6):
        bury(dead, topic.messages[number % 2][number])
    first, _ = replay(dead, topic, count=1)
    rest, actual = replay(dead, topic)
    assert sorted(first + rest) == ["news:0:2", "news:0:4", "news:1:3", "news:1:5"]
    assert actual.before == 1
    assert topic.started == {0: 3, 1: 4}  # what stood before the letters is not read
    nothing, actual = replay(dead, topic)
    assert (nothing, actual.before) == ([], 4)


def test_what_is_refused_again_goes_back_again_and_only_that(topic, dead):
    bury(dead, topic.messages[0][1])
    replay(dead, topic)
    bury(dead, topic.messages[0][8])
    sent, actual = replay(dead, topic)
    assert (sent, actual.before) == (["news:0:8"], 1)
    assert replay(dead, topic)[0] == []


def test_what_cannot_be_sent_is_left_out_and_named(topic, dead):
    bury(dead, topic.messages[0][0], made=shortened)
    bury(dead, MESSAGE._replace(position=Position("news", 0, 1), key=None, value=None))
    bury(dead, topic.messages[0][2]._replace(position=Position("news", 8, 2)))
    dead.add(0, b"k", b"no letter")
    bury(dead, topic.messages[0][3])
    lines = []
    assert replay(dead, topic, warn=lines.append)[0] == ["news:0:3"]
    assert [line.partition(" is left out: ")[2].split(":")[0] for line in lines] == [
        "value was cut off, it had 2 bytes",
        "value is null, and so is the key",
        "partition 8 of news is gone",
        "headers are no dead letter's",
    ]


def test_letters_are_chosen_by_their_error_and_their_topic(topic, dead):
    bury(dead, topic.messages[0][0], "label is 'b', not one of 'a'")
    bury(dead, topic.messages[0][1], "value is no JSON")
    bury(dead, topic.messages[0][2]._replace(position=Position("other", 0, 2)), "label is 'c'")
    sent, actual = replay(dead, topic, error="label is")
    assert (sent, actual.others) == (["news:0:0"], 1)


def test_a_topic_that_was_made_anew_is_searched_from_its_beginning(topic, dead):
    bury(dead, topic.messages[0][4]._replace(position=Position("news", 0, 400)))
    assert replay(dead, topic)[0] == ["news:0:400"]
    assert replay(dead, topic)[0] == []
    assert topic.started == {0: 0}


def test_no_letters_are_no_search(topic, dead):
    assert replay(dead, topic)[0] == []
    assert topic.started == {}
