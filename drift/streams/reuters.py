"""Reader of Reuters-21578, the newswire collection that anybody can download.

It is raw SGML with dates. Document frequencies count earlier stories only. River's TFIDF does that
too, but weights by tf, where RCV1 uses log tf; this stream imitates RCV1.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from drift.errors import DataError
from drift.streams._convert import indicator
from drift.streams._files import find_one, read_text, sha256_of
from drift.streams.documents import Documents
from drift.streams.texts import MONTHS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from drift.streams._files import PathLike

__all__ = ["read_reuters21578"]

_N_FILES = 22
_STORY = re.compile(r"<REUTERS\b([^>]*)>(.*?)</REUTERS>", re.DOTALL)
_NEWID = re.compile(r'NEWID="(\d{1,9})"')
_DATE = re.compile(r"<DATE>\s*(\d{1,2})-([A-Z]{3})-(\d{4})\s+(\d\d):(\d\d):(\d\d\.\d+)")
_TOPICS = re.compile(r"<TOPICS>(.*?)</TOPICS>", re.DOTALL)
_TOPIC = re.compile(r"<D>(.*?)</D>")
_TEXT = re.compile(r"<TEXT\b[^>]*>(.*)</TEXT>", re.DOTALL)
_BYLINE = re.compile(r"<(AUTHOR|DATELINE|MKNOTE)>.*?</\1>", re.DOTALL)
_TAG = re.compile(r"</?[A-Z]+>")
_TOKEN = re.compile(r"[a-z]{2,}")


class _Story(NamedTuple):
    newid: int
    date: tuple[str, ...] | None
    topics: list[str]
    counts: Counter[str]


def read_reuters21578(folder: PathLike) -> Documents:
    """Stories of Reuters-21578 in the order of time.

    A token is a run of at least two letters a-z in the lower-cased title and body, without date
    line and author; if the text has no markup, in all of it. In story t, from 0, token w has the
    weight ``(1 + log tf) (1 + log((1 + t) / (1 + df)))``. tf is w's count in the story, df the
    number of earlier stories that contain w. Rows are scaled to norm 1.

    Stories are sorted by date, then by NEWID. A malformed date is replaced by the one of the
    previous NEWID. Stories without a token are dropped. Those without topics stay, as negatives
    of every target.

    Parameters
    ----------
    folder
        Holds the 22 files reut2-000.sgm to reut2-021.sgm, plain or compressed.

    Returns
    -------
    Documents
        Features are tokens, in order of first appearance; topics are the codes in TOPICS. The
        `sha256` is that of the 22 files one after the other.

    Raises
    ------
    DataError
        A file that is missing, damaged, or cut in the middle of a story.

    Examples
    --------
    >>> from drift.streams import read_reuters21578
    >>> documents = read_reuters21578("data/reuters21578")  # doctest: +SKIP
    >>> documents.most_frequent(4)  # doctest: +SKIP
    ['earn', 'acq', 'money-fx', 'crude']
    """
    raws: list[bytes] = []
    stories: list[_Story] = []
    for number in range(_N_FILES):
        path = find_one(folder, f"reut2-{number:03}.sgm")
        raw, text = read_text(path)
        raws.append(raw)
        stories += _stories(text.decode("latin-1"), path)
    stories = [story for story in _in_time(stories) if story.counts]
    tokens: dict[str, int] = {}
    topics: dict[str, int] = {}
    members = [[topics.setdefault(t, len(topics)) for t in story.topics] for story in stories]
    columns = [tokens.setdefault(w, len(tokens)) for story in stories for w in story.counts]
    tf = np.array([count for story in stories for count in story.counts.values()], dtype=np.float64)
    indptr = np.cumsum([0, *(len(story.counts) for story in stories)])
    return Documents(
        rows=_tf_idf(tf, np.array(columns), indptr, len(tokens)),
        topics=indicator(members, len(topics)),
        topic_names=tuple(topics),
        feature_names=tuple(tokens),
        name="reuters21578",
        sha256=sha256_of(raws),
    )


def _stories(text: str, path: PathLike) -> list[_Story]:
    stories, end = [], 0
    for match in _STORY.finditer(text):
        attributes, body = match.groups()
        newid, content = _NEWID.search(attributes), _TEXT.search(body)
        line = text.count("\n", 0, match.start()) + 1 if not newid or not content else None
        if newid is None:
            raise DataError(path, line, "the story has no NEWID: fetch the file again")
        if content is None or "<REUTERS" in body:
            line = text.count("\n", 0, match.start()) + 1
            raise DataError(path, line, f"story {newid[1]} is cut short: fetch the file again")
        stories.append(_story(int(newid[1]), body, content[1]))
        end = match.end()
    if text[end:].strip() and (stories or "<REUTERS" in text):
        cut = text.find("<REUTERS", end)
        line = text.count("\n", 0, cut if cut >= 0 else end) + 1
        raise DataError(path, line, "the file ends in the middle of a story: fetch it again")
    if not stories:
        raise DataError(path, None, "no story in it: expected <REUTERS ...> ... </REUTERS>")
    return stories


def _story(newid: int, body: str, content: str) -> _Story:
    date, listed = _DATE.search(body), _TOPICS.search(body)
    words = html.unescape(_TAG.sub(" ", _BYLINE.sub(" ", content))).lower()
    return _Story(
        newid,
        date=_sortable(date) if date else None,
        topics=_TOPIC.findall(listed[1]) if listed else [],
        counts=Counter(_TOKEN.findall(words)),
    )


def _sortable(date: re.Match[str]) -> tuple[str, ...] | None:
    day, month, *rest = date.groups()
    if month.lower() not in MONTHS:
        return None
    year, hour, minute, second = rest
    return year, f"{MONTHS.index(month.lower()):02}", day.zfill(2), hour, minute, second


def _in_time(stories: list[_Story]) -> list[_Story]:
    dated = []
    last: tuple[str, ...] = ()
    for story in sorted(stories, key=lambda story: story.newid):
        last = story.date or last
        dated.append((last, story.newid, story))
    return [story for _, _, story in sorted(dated, key=lambda entry: entry[:2])]


def _tf_idf(
    tf: NDArray[np.float64], columns: NDArray[np.int64], indptr: NDArray[np.int64], n_tokens: int
) -> csr_array:
    """Rows weighted by the document frequencies of earlier rows (see `read_reuters21578`)."""
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    # A token occurs at most once in a row: its earlier rows are its earlier entries, so df is an
    # entry's rank among those of its column.
    by_column = np.argsort(columns, kind="stable")
    starts = np.cumsum(np.bincount(columns, minlength=n_tokens)) - np.bincount(columns)
    df = np.empty_like(columns)
    df[by_column] = np.arange(len(columns)) - starts[columns[by_column]]
    weights = (1 + np.log(tf)) * (1 + np.log((1 + rows) / (1 + df)))
    weights /= np.sqrt(np.bincount(rows, weights**2))[rows]
    return csr_array((weights, columns, indptr), shape=(len(indptr) - 1, n_tokens))
