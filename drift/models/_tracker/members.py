"""The tracker's members as a table that prints itself."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drift.models._tracker.plan import Plan

__all__ = ["Member", "Members", "members_of"]


class Member(NamedTuple):
    """A member of a tracker.

    Parameters
    ----------
    kernel
        Kernel of a kernel member, else the member's name.
    rate
        Learning rate of a kernel member, else 0.
    forgetting
        Share of the coefficients that an insertion removes, else 0.
    weight
        Current weight of its score: the mean of the gates' weights, each gate by its weight in the
        calibration. It may be negative, and weights need not sum to 1.
    error
        Its error so far, predicting each example before learning it.
    log_loss
        Its mean log loss so far, in nats.
    """

    kernel: str
    rate: float
    forgetting: float
    weight: float
    error: float
    log_loss: float


class Members(tuple[Member, ...]):
    """The members of a tracker: named tuples that print as a table.

    Examples
    --------
    >>> curves = Member("splines", 0, 0, -0.25, 0, 0)
    >>> Members([Member("RBF(2)", 0.5, 0.04, 0.75, 0.125, 0.3), curves])
    kernel                    rate  forgetting   weight  error in %  log loss
    RBF(2)                     0.5      0.0400    0.750        12.5     0.300
    splines                      -           -   -0.250         0.0     0.000
    """

    __slots__ = ()

    _HEADS = ("kernel", "rate", "forgetting", "weight", "error in %", "log loss")

    def _cells(self) -> list[tuple[str, ...]]:
        return [
            (
                member.kernel,
                f"{member.rate:.4g}" if member.rate else "-",
                f"{member.forgetting:.4f}" if member.forgetting else "-",
                f"{member.weight:.3f}",
                f"{100 * member.error:.1f}",
                f"{member.log_loss:.3f}",
            )
            for member in self
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


def members_of(plan: Plan, record: Mapping[str, Any]) -> Members:
    """Return the members of a tracker.

    Parameters
    ----------
    plan
        Its parameters.
    record
        What `TrackerCore.record` returns.

    Returns
    -------
    Members
        In the order of their numbers.
    """
    heads = [
        (f"RBF({width:g})" if width else "linear", rate, forgetting)
        for width in plan.kernels
        for rate, forgetting in zip(plan.rates, plan.forgetting, strict=True)
    ]
    heads += [(name, 0.0, 0.0) for names in plan.families.values() for name in names]
    gates, total = record["gates"], record["total"] or 1.0
    weights = record["maps"].reshape(len(gates), -1).sum(axis=1) @ gates
    columns = zip(heads, weights, record["errors"], record["losses"], strict=True)
    return Members(
        Member(*head, float(weight), float(errors) / total, float(losses) / total)
        for head, weight, errors, losses in columns
    )
