"""What the state of a tracker must be, for compiled code to stay within its memory."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from drift._checks import weight_of
from drift.errors import DriftError
from drift.models._store.check import distinct
from drift.models._store.class_labels import check_class
from drift.models._tracker.plan import BIAS, MAPS, MOST, N_GATES, N_LINEAR, N_SPLINES
from drift.models._tracker.scaling import DENSE_NAMES, values_of
from drift.models._tracker.slots import NUMBER_BITS, SLOTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from drift.models._tracker.plan import Plan

__all__ = ["check_tracker", "late_weights", "of_older"]

_MOST = 2**31 - 1
_NUMBERS = ("squares", "norms", "total", "log_loss", "mistakes", "mean_loss", "mean_of")
_COUNTS = ("n_examples", "n_values", "n_learnt")


#: By what the rounding of weights may leave their sum above 1.
_ROUNDING = 1e-6


def _check(holds: Any, problem: str) -> None:
    if not holds:
        raise ValueError(f"the state of a tracker is inconsistent: {problem}")


def of_older(state: dict[str, Any]) -> dict[str, Any]:
    """Add what older versions had not: splines, a map or the last, how many examples had a name.

    To them the bias counted as a feature that is 1 in sparse rows, too.
    """
    if "behind" in state:
        return state | {name: of_older(state[name]) for name in ("core", "behind")}
    rows = len(state["linear"])
    splines = np.zeros((rows, 1, 2 * N_SPLINES), np.float32)
    maps = np.ravel(state.get("maps", 1.0))
    maps = np.pad(maps, (0, max(len(MAPS) - maps.size, 0)))
    present, common = np.zeros(len(state["names"])), np.zeros(0, np.int64)
    added = {"splines": splines, "present": present, "common": common}
    if "lags" not in state:
        norms = state["norms"] - (1.0 - BIAS[state["sparse"]] ** 2) * state["n_examples"]
        state = state | {"lags": np.zeros(2), "norms": max(norms, 0.0)}
    return added | state | {"maps": maps}


def _check_shares(weights: NDArray[np.float64], problem: str) -> None:
    """Refuse what are no weights of a mixture, which sum to 1, or less once some are put aside."""
    _check(((weights >= 0.0) & (weights <= 1.0 + _ROUNDING)).all(), problem)
    sums = weights.sum(axis=-1)
    _check(((sums > 0.0) & (sums <= 1.0 + _ROUNDING)).all(), problem)


def check_tracker(plan: Plan, state: dict[str, Any]) -> None:
    """Refuse, with ValueError, what a tracker cannot be built from.

    Parameters
    ----------
    plan
        Its parameters.
    state
        What `TrackerCore.state` returns; the store in it is checked by itself.
    """
    classes, names = state["classes"], state["names"]
    _check(type(classes) is list and len(set(classes)) == len(classes), "classes")
    _check(type(names) is list and len(set(names)) == len(names) <= DENSE_NAMES, "names")
    _check(type(state["sparse"]) is bool and type(state["auto"]) is bool, "the kind of scale")
    _check(not (state["sparse"] and names), "names of sparse rows")
    for name in _NUMBERS:
        _check(type(state[name]) is float and math.isfinite(state[name]), name)
    for name in _COUNTS:
        _check(type(state[name]) is int and 0 <= state[name] < 2**63, name)
    _check(type(state["draws"]) is int and 0 <= state["draws"] < 2**64, "the seed")
    _check(state["mean_of"] > 0.0 and state["norms"] >= 0.0 and state["squares"] >= 0.0, "sums")
    rows = len(classes) + 1 if len(classes) > 2 else 1
    used, slots = len(state["store"]["sizes"]), SLOTS if state["sparse"] else len(names)
    n_scored = plan.n_members - N_GATES
    pairs = plan.has_surfaces(len(names), np.size(state["splines"]) // (2 * N_SPLINES * rows))
    n_scaled = np.size(state["common"]) if state["sparse"] else len(names)
    shapes = {
        "coefficients": (np.float32, (plan.n_experts, rows, used)),
        "linear": (np.float32, (rows, 1 + slots, N_LINEAR + 2)),
        "splines": (np.float32, (rows, 1 + plan.n_knots(len(names), pairs=pairs), 2 * N_SPLINES)),
        "factors": (np.float64, (plan.n_experts,)),
        "gates": (np.float64, (N_GATES, n_scored)),
        "covariance": (np.float64, (n_scored, n_scored)),
        "mean": (np.float64, (n_scaled,)),
        "variance": (np.float64, (n_scaled,)),
        "present": (np.float64, (len(names),)),
        "common": (np.int64, (n_scaled if state["sparse"] else 0,)),
        "trust": (np.float64, (2,)),
        "lags": (np.float64, (2,)),
        "maps": (np.float64, (len(MAPS),)),
    }
    for name in ("weights", "majority", "errors", "losses", "path", "switches"):
        shapes[name] = np.float64, (plan.n_members,)
    for name, (kind, shape) in shapes.items():
        array = state[name]
        good = isinstance(array, np.ndarray) and array.dtype == kind and array.shape == shape
        # The path to a member that was put aside is infinite.
        most = math.inf if name == "path" else np.finfo(float).max
        _check(good and ((array > -math.inf) & (array <= most)).all(), name)
    for name in ("weights", "majority", "trust", "maps"):
        _check_shares(state[name], name)
    _check((state["factors"] > 0.0).all(), "factors")
    _check((state["variance"] >= 0.0).all(), "variance")
    common = state["common"]
    _check((np.diff(common, prepend=-1, append=2**NUMBER_BITS) > 0).all(), "what is standardised")
    most = 2**NUMBER_BITS if state["sparse"] else len(names)
    numbers = [number for number in state["store"]["names"] if number is not None]
    distinct(numbers, most)
    free = state["store"]["free_slots"]
    live = set(range(used)) - distinct(free, used)
    _check(distinct(state["order"], _MOST) == live and len(live) <= plan.budget, "the supports")
    _check(not state["coefficients"][:, :, free].any(), "coefficients of no support")


def late_weights(plan: Plan, delay: int, state: dict[str, Any]) -> NDArray[np.float64]:
    """Return the weights of the members and the whole in the state of a tracker with a delay.

    Parameters
    ----------
    plan, delay
        Its parameters.
    state
        What `LateCore.state` returns; refused where the two cores in it do not belong together.
    """
    n, behind = (state[core]["n_learnt"] for core in ("core", "behind"))
    _check(type(state["pending"]) is list, "its examples")
    _check(behind == max(n - delay, 0) and len(state["pending"]) == n - behind, "its delay")
    weights = np.array([state["votes"], state["weights"]], np.float64)
    _check(weights.shape == (2, plan.n_members + 1), "its trust")
    _check_shares(weights, "its trust")
    _check_pending(state["pending"])
    return weights


def _check_pending(examples: list[Any]) -> None:
    """Refuse examples that could not be learnt once their time comes."""
    for example in examples:
        _check(type(example) in {list, tuple} and len(example) == 3, "an example")
        x, y, w = example
        try:
            check_class(y)
            good = type(x) is dict and values_of(x) == x and 0.0 < weight_of(w) <= MOST
        except DriftError as problem:
            raise ValueError(f"the state of a tracker is inconsistent: {problem}") from None
        _check(good, "an example")
