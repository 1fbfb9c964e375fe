"""The members of a tracker's list as a table that prints itself."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from drift.models._tracker.tables import FAMILIES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drift.models._tracker.plan import Plan

__all__ = ["Expert", "Experts", "experts_of"]


class Expert(NamedTuple):
    """A member of the list, whose scores a tracker's gates weigh.

    Parameters
    ----------
    kernel
        Its kernel over the supports; else what it is called, as a linear model or splines.
    rate
        Its learning rate over the supports, else 0.
    forgetting
        Share of its coefficients there that an insertion takes from it.
    weight
        What its score is multiplied by now: the mean of the gates' weights, each gate by its share
        of the calibration. It may be below 0, and they need not sum to 1.
    error
        Share of the examples that it would have predicted wrongly before they were learnt.
    log_loss
        Mean of minus the logarithm of the probability that it gave their labels.
    """

    kernel: str
    rate: float
    forgetting: float
    weight: float
    error: float
    log_loss: float


class Experts(tuple[Expert, ...]):
    """The members of the list: named tuples, and a table where they are printed or shown.

    Examples
    --------
    >>> curves = Expert("slow splines", 0, 0, -0.25, 0, 0)
    >>> Experts([Expert("RBF(2)", 0.5, 0.04, 0.75, 0.125, 0.3), curves])
    kernel                    rate  forgetting   weight  error in %  log loss
    RBF(2)                     0.5      0.0400    0.750        12.5     0.300
    slow splines                 -           -   -0.250         0.0     0.000
    """

    __slots__ = ()

    _HEADS = ("kernel", "rate", "forgetting", "weight", "error in %", "log loss")

    def _cells(self) -> list[tuple[str, ...]]:
        return [
            (
                expert.kernel,
                f"{expert.rate:.4g}" if expert.rate else "-",
                f"{expert.forgetting:.4f}" if expert.forgetting else "-",
                f"{expert.weight:.3f}",
                f"{100 * expert.error:.1f}",
                f"{expert.log_loss:.3f}",
            )
            for expert in self
        ]

    def __repr__(self) -> str:
        line = "{:<22.22}  {:>6}  {:>10}  {:>7}  {:>10}  {:>8}".format
        return "\n".join(line(*cells) for cells in (self._HEADS, *self._cells()))

    def _repr_html_(self) -> str:
        heads = "".join(f"<th>{head}</th>" for head in self._HEADS)
        rows = "".join(
            f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
            for cells in self._cells()
        )
        return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"


def experts_of(plan: Plan, record: Mapping[str, Any]) -> Experts:
    """Members of a tracker with these parameters, which has this record.

    Parameters
    ----------
    plan
        Its parameters.
    record
        What `TrackerCore.record` returns.

    Returns
    -------
    Experts
        In the order in which members are numbered.
    """
    heads = [
        (f"RBF({width:g})" if width else "linear", rate, lost)
        for width in plan.kernels
        for rate, lost in zip(plan.rates, plan.lost, strict=True)
    ]
    heads += [(name, 0.0, 0.0) for names in FAMILIES.values() for name in names]
    gates, total = record["gates"], record["total"] or 1.0
    weights = record["maps"].reshape(len(gates), -1).sum(axis=1) @ gates
    columns = zip(heads, weights, record["errors"], record["losses"], strict=True)
    return Experts(
        Expert(*head, float(weight), float(errors) / total, float(losses) / total)
        for head, weight, errors, losses in columns
    )
