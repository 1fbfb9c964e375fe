"""Labels of classes: which can name one, and which are refused."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from drift._values import is_missing
from drift.errors import LabelError, naming_row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from drift.types import Label

__all__ = ["NO_LABEL", "check_class", "check_classes"]

#: Stands for the label of an example of weight 0, which is neither checked nor learnt.
NO_LABEL: Any = object()


def _refuse_real(y: Any) -> None:
    """Refuse a label with a fraction, which is the target of a regression.

    >>> _refuse_real(1.0)
    >>> _refuse_real(1.5)
    Traceback (most recent call last):
    drift.errors.LabelError: label 1.5 is a real number, and drift classifies: make a class of it,
    as y > 0 is, or use one of River's regressors
    """
    if type(y) is str or not isinstance(y, Real) or isinstance(y, Integral):
        return
    if not float(y).is_integer():
        raise LabelError(
            f"label {y!r:.80} is a real number, and drift classifies: make a class of it, as y > 0 "
            "is, or use one of River's regressors"
        )


def check_class(y: Label) -> None:
    """Refuse a label that cannot name a class.

    Examples
    --------
    >>> check_class(["news"])
    Traceback (most recent call last):
    drift.errors.LabelError: label ['news'] is a list, which is unhashable: use a string or a tuple
    """
    try:
        hash(y)
    except TypeError:
        raise LabelError(
            f"label {y!r:.80} is a {type(y).__name__}, which is unhashable: use a string or a tuple"
        ) from None
    if is_missing(y):
        raise LabelError(f"label {y!r} is missing: leave out examples without a label")
    _refuse_real(y)


def check_classes(labels: Sequence[Label]) -> None:
    """Refuse a batch in which a label cannot name a class."""
    if {*map(type, labels)} <= {bool, int, str}:
        return
    i = 0
    with naming_row(lambda: i):
        for i, label in enumerate(labels):  # noqa: B007 - the error's row
            if label is not NO_LABEL:
                check_class(label)
