"""Streams beside the arena's list, which River and scikit-learn fetch once."""

from __future__ import annotations

from typing import Any
from zipfile import BadZipFile

from drift.errors import UnavailableError, needing
from drift.experiments.river_models import river
from drift.streams.stream import Stream

__all__ = ["covertype", "of_river", "sms"]


def of_river(name: str, rows: int, **parameters: Any) -> Stream:
    """Take the first rows of one of River's remote data sets.

    Parameters
    ----------
    name
        Of its class in `river.datasets`. River keeps its file in a folder of this name in the one
        that the environment variable RIVER_DATA names, else in ``~/river_data``, and fetches it
        where that has none of the right size.
    rows
        So many at most.
    **parameters
        Of the class.

    Raises
    ------
    UnavailableError
        It is not there and cannot be fetched.
    """
    data = river(f"datasets.{name}", **parameters)
    try:
        return Stream.of(data, name).head(rows)  # read to its end, where River closes the file
    # RuntimeError: what came has another size than the file that River knows.
    except (OSError, RuntimeError, BadZipFile) as error:
        raise UnavailableError(
            f"{name} cannot be fetched ({error}): put what is at {data.url} into "
            f"{data.path.parent}, unpacked, as {data.path.name} of {data.size:,} bytes, or have "
            "RIVER_DATA name the folder that has it"
        ) from error


def sms(rows: int) -> Stream:
    """Take River's collection of SMS, spam or not, as counts of words."""
    words = river("feature_extraction.BagOfWords", on="body")
    stream = of_river("SMSSpam", rows)
    return Stream([(dict(words.transform_one(x)), y) for x, y in stream])


def covertype(rows: int) -> Stream:
    """Take the first rows of scikit-learn's covertype: 54 features of forests, seven classes.

    Raises
    ------
    MissingExtraError
        scikit-learn is not installed.
    UnavailableError
        It is not in scikit-learn's folder and cannot be fetched.
    """
    with needing("scikit-learn", "data"):
        from sklearn.datasets import fetch_covtype, get_data_home  # noqa: PLC0415 - optional
    try:
        found = fetch_covtype()
    except OSError as error:
        raise UnavailableError(
            f"covertype cannot be fetched ({error}): copy the folder covertype of a machine where "
            f"scikit-learn has fetched it into {get_data_home()}, or have SCIKIT_LEARN_DATA name "
            "the folder that has it"
        ) from error
    pairs = zip(found.data[:rows].tolist(), found.target[:rows].tolist(), strict=True)
    return Stream([(dict(zip(found.feature_names, x, strict=True)), y) for x, y in pairs])
