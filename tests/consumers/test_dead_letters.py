"""Dead letters keep the message whole, say why, and can be turned back."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift.consumers.dead_letters import _HEADERS, dead_letter, original, shortened
from drift.consumers.messages import Message, Outgoing, Position
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
headers = st.lists(st.tuples(st.text(st.characters(exclude_categories=["Cs"])), st.binary()))
records = st.builds(
    Message,
    st.builds(Position, st.text("abc._-é"), st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1)),
    byte_strings,
    byte_strings,
    headers,
    st.none() | st.integers(-1, 2**63 - 1),
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
    for value in (None, b""):
        letter = dead_letter(MESSAGE._replace(key=value, value=value), ValueError(), "dead")
        assert (letter.key, letter.value) == (value, value)


def test_null_headers_become_empty():
    letter = dead_letter(MESSAGE._replace(headers=[("a", None)]), ValueError(), "dead")
    assert letter.headers[0] == ("a", b"")


def test_letters_are_halved_until_they_are_taken_and_are_not_sent_again_then():
    letter = dead_letter(MESSAGE._replace(value=b"x" * 99), ValueError(), "dead")
    own = letter.headers[: -len(_HEADERS)]
    assert own
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
