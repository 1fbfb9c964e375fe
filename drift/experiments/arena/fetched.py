"""Streams that are fetched over the network, by libraries that keep what they have fetched."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

from drift.errors import UnavailableError, needing
from drift.experiments.river_models import river
from drift.streams import read_stream
from drift.streams.stream import Stream

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["covertype", "of_openml", "of_river", "sms"]


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
    with _sklearn("covertype", "covertype") as datasets:
        bunch = datasets.fetch_covtype()  # which checks the SHA-256 that scikit-learn has of it
    pairs = zip(bunch.data[:rows].tolist(), bunch.target[:rows].tolist(), strict=True)
    return Stream([(dict(zip(bunch.feature_names, x, strict=True)), y) for x, y in pairs])


def of_openml(name: str, number: int, rows: int | None = None) -> Stream:
    """Take a data set of openml.org in the order of its file, through scikit-learn.

    Parameters
    ----------
    name
        What to call it.
    number
        Its ``data_id`` at openml.org, which stands for one version.
    rows
        So many at most.

    Raises
    ------
    MissingExtraError
        scikit-learn or pandas is not installed.
    UnavailableError
        It is not in scikit-learn's folder and cannot be fetched, or is not the file whose MD5
        openml.org gives.
    """
    with _sklearn(name, "openml") as datasets, needing("pandas", "compare"):
        # Its other parser, pandas, takes categories that are digits for numbers, and fails on them.
        bunch = datasets.fetch_openml(data_id=number, as_frame=True, parser="liac-arff")
    [target] = bunch.target_names
    return read_stream(bunch.frame, target, rows=rows, name=name)


@contextmanager
def _sklearn(name: str, folder: str) -> Iterator[Any]:
    """Give `sklearn.datasets`, and say what to do where it cannot fetch or check a data set."""
    with needing("scikit-learn", "data"):
        from sklearn import datasets  # noqa: PLC0415 - optional
    try:
        yield datasets
    except (OSError, ValueError) as error:  # ValueError: another checksum, or no such data set
        raise UnavailableError(
            f"{name} cannot be fetched ({error}): copy the folder {folder} of a machine where "
            f"scikit-learn has fetched it into {datasets.get_data_home()}, or have "
            "SCIKIT_LEARN_DATA name the folder that has it"
        ) from error
