"""The tracker's trees: boosted ones over a window of kept rows, of which one is always fitted anew.

The most recently kept rows say what has changed, and rules on few features among many that say
nothing are what trees find. A row is kept if it was predicted badly, else at times, and then weighs
more. Every few examples the oldest tree is fitted to what the others leave. If the newest rows are
predicted far worse than the older ones, these are dropped.

Missing values are NaN and go left. A value's code is the number of edges below it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from drift.models._tracker import tables as c
from drift.models._tracker.names import STEP, mix
from drift.models._tracker.reference_scales import resized

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from drift.models._tracker.reference_scales import Point

    Array = NDArray[Any]

__all__ = ["ContextTrees", "Trees", "add_trees", "new_forests"]

_DRAWS, _KEPT, _RENEW, _RENEWING, _SINCE, _N_TREES, _NEXT = range(len(c.FOREST))
#: Arrays by row of the window, and the axis that counts them.
_WINDOW = dict.fromkeys(("codes", "labels", "weights", "missed"), 0) | {"places": 1, "scores": 1}
_NODES = c.LEAVES - 1


class _Forest:
    """The arrays of a member in a state, by their names without the member's."""

    def __init__(self, s: Any, prefix: str) -> None:
        vars(self).update(state=s, prefix=f"{prefix}tree_")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.state, self.prefix + name)

    def __setattr__(self, name: str, array: Array) -> None:
        setattr(self.state, self.prefix + name, array)

    def __getitem__(self, count: int) -> int:
        return int(self.forest[0, count])

    def __setitem__(self, count: int, value: int) -> None:
        self.forest[0, count] = value

    def draw(self) -> int:
        """Draw 64 bits."""
        self[_DRAWS] = (self[_DRAWS] + STEP) % 2**64
        return mix(self[_DRAWS])


def new_forests(s: Any, seed: int) -> None:
    """Set the counts of members that have learnt nothing."""
    for k, prefix in enumerate(("", "context_") if s.plan.trees and not s.sparse else (), 1):
        forest = _Forest(s, prefix)
        forest[_DRAWS], forest[_RENEW] = mix((seed + k) % 2**64), c.FEWEST


def add_trees(s: Any) -> None:
    """Make room for the trees of more than two classes, of which the next ones are new."""
    for prefix in ("", "context_") if s.plan.trees and not s.sparse else ():
        forest = _Forest(s, prefix)
        for name, axis in {"places": 0, "features": 0, "thresholds": 0, "leaves": 1}.items():
            setattr(forest, name, resized(getattr(forest, name), c.MANY_TREES, axis))
        forest[_NEXT] = forest[_N_TREES]


class Trees:
    """Trees over the features."""

    weights: ClassVar[dict[str, Any]] = {"tree_leaves": ..., "tree_scores": ...}
    prefix, columns, row = "", "columns", "tree_row"

    @classmethod
    def scores(cls, s: Any, point: Point) -> Array:
        """Sums of the leaves that the example is in."""
        row, scores = getattr(point, cls.row), np.zeros((len(s.linear), 1))
        if row is None:
            return scores
        forest = _Forest(s, cls.prefix)
        sums = np.zeros(len(scores), np.float32)
        for tree, leaf in enumerate(places_of(forest, row)):
            sums += forest.leaves[:, tree, leaf]
        scores[:, 0] = sums
        return scores

    @classmethod
    def learn(cls, s: Any, point: Point, step: Any) -> None:
        """Keep the example, perhaps; fit the oldest tree, if it is time."""
        forest, row = _Forest(s, cls.prefix), getattr(point, cls.row)
        if not s.sparse:
            grow(forest, step.sizes[cls.columns])
        if row is None:
            return
        missed = 1.0 - float(step.probabilities[step.number, 0])
        chance = min(max(c.KEPT * missed, c.LEAST_KEPT), 1.0)
        if chance >= 1.0 or (forest.draw() >> 11) * 2.0**-53 < chance:
            weight = min(max(step.weight, c.LEAST_TREE_WEIGHT), c.MOST_TREE_WEIGHT)
            keep(forest, row, step, missed, weight / chance)
        if last := forest[_RENEWING]:
            forest[_RENEWING] = max(last - c.RENEWED, 0)
            for column in range(forest[_RENEWING], last):
                renew(forest, column)
        forest[_SINCE] += 1
        if forest[_KEPT] >= c.FEWEST and forest[_SINCE] * len(forest.places) >= len(forest.labels):
            forest[_SINCE] = 0
            fit(forest)


class ContextTrees(Trees):
    """Trees over the features and their context."""

    weights: ClassVar[dict[str, Any]] = {"context_tree_leaves": ..., "context_tree_scores": ...}
    prefix, columns, row = "context_", "context_columns", "context_tree_row"


def places_of(forest: _Forest, row: Array) -> Array:
    """Return the leaf of each tree that a row is in."""
    trees = np.arange(forest[_N_TREES])
    nodes = np.zeros(len(trees), int)
    for _ in range(c.DEPTH):
        columns = forest.features[trees, nodes]
        right = columns >= 0
        right[right] = row[columns[right]] > forest.thresholds[trees, nodes][right]
        nodes = 2 * nodes + 1 + right
    leaves: Array = nodes - _NODES
    return leaves


# --- the window ----------------------------------------------------------------------------------


def grow(forest: _Forest, columns: int) -> None:
    """Add columns, of which nothing is known."""
    forest.codes = resized(forest.codes, columns, 1)
    for name in ("sample", "edges", "n_edges", "gains"):
        setattr(forest, name, resized(getattr(forest, name), columns, 0))


def keep(forest: _Forest, row: Array, step: Any, missed: float, weight: float) -> None:
    """Append an example to the window, and renew all edges at times."""
    most = c.window_of(forest.state.plan.budget)
    places = np.zeros(len(forest.places), np.uint8)
    places[: forest[_N_TREES]] = places_of(forest, row)
    codes = [code_of(forest, j, v) for j, v in enumerate(row)]
    new = {"codes": codes, "labels": step.number, "weights": weight, "missed": missed}
    new |= {"places": places, "scores": step.scores[:, 0]}
    for name, axis in _WINDOW.items():
        old = getattr(forest, name)
        one = np.expand_dims(np.array(new[name], old.dtype), axis)
        rows = np.concatenate([old, one], axis)
        setattr(forest, name, rows[..., -most:] if axis else rows[-most:])
    forest.sample[:, forest[_KEPT] % c.SAMPLE] = np.where(np.isnan(row), c.COLUMN_MISSING, row)
    forest[_KEPT] += 1
    kept = forest[_KEPT]
    if kept != forest[_RENEW]:
        return
    forest[_RENEW] += min(kept, most // 2)
    if kept > c.FEWEST:  # some columns at each of the next examples
        forest[_RENEWING] = len(row)
        return
    for column in range(len(row)):
        renew(forest, column)
        kept_values = forest.sample[column, :kept]
        forest.codes[:, column] = [code_of(forest, column, v) for v in kept_values]


def code_of(forest: _Forest, column: int, value: float) -> int:
    """Return the number of a column's edges below a value; 0 for a missing one."""
    if math.isnan(value) or value >= c.COLUMN_MISSING:
        return 0
    return int(np.searchsorted(forest.edges[column, : forest.n_edges[column]], value))


def renew(forest: _Forest, column: int) -> None:
    """Put edges between the values of the sample, all or by quantiles, and recode the window.

    An old code stands for the middle of its two edges; 0 stays 0, also for missing values.
    """
    sample = forest.sample[column, : min(forest[_KEPT], c.SAMPLE)]
    values = np.unique(sample[sample < c.COLUMN_MISSING])
    n, old = len(values), forest.edges[column, : forest.n_edges[column]].copy()
    below = np.arange(n - 1) if n <= c.BINS else np.arange(1, c.BINS) * (n - 1) // c.BINS
    half = np.float32(0.5)
    edges = np.unique(half * (values[below] + values[below + 1])) if n > 1 else np.zeros(0)
    forest.edges[column], forest.n_edges[column] = 0.0, len(edges)
    forest.edges[column, : len(edges)] = edges
    if len(old):
        middles = [*(half * (old[:-1] + old[1:])), np.nextafter(old[-1], np.float32(math.inf))]
        codes = np.array([0, *(code_of(forest, column, v) for v in middles)], np.uint8)
        forest.codes[:, column] = codes[forest.codes[:, column]]


def forget(forest: _Forest) -> None:
    """Keep only the newest 32, 64, ... rows if these are predicted far worse than older ones."""
    w, u, n = forest.weights.astype(float), forest.missed.astype(float), len(forest.labels)
    variance = max((w @ u**2) / w.sum() - ((w @ u) / w.sum()) ** 2, c.LEAST_VARIANCE)
    most, best, a = c.WORSE, 0, c.FEWEST
    while a <= n // 2:
        newer = w[-a:] @ u[-a:] / w[-a:].sum()
        older = w[:-a] @ u[:-a] / w[:-a].sum()
        z = (newer - older) / math.sqrt(variance * (1.0 / a + 1.0 / (n - a)))
        if z > most:
            most, best = z, a
        a *= 2
    for name, axis in _WINDOW.items() if best else ():
        rows = getattr(forest, name)
        setattr(forest, name, rows[..., -best:] if axis else rows[-best:])


# --- a fit ---------------------------------------------------------------------------------------


def fit(forest: _Forest) -> None:
    """Fit the oldest tree anew, to what the others leave.

    Gradients and curvatures are rounded to multiples of a unit, so that their sums are exact.
    """
    forget(forest)
    tree, labels, weights = forest[_NEXT], forest.labels, forest.weights.astype(float)
    if tree < forest[_N_TREES]:
        forest.scores = forest.scores - forest.leaves[:, tree, forest.places[tree]]
    p = probabilities_of(forest.scores)
    if len(p) == 1:
        true = labels[np.newaxis] == 1
        g, h = (true - p)[0], (p * (1.0 - p))[0]
    else:  # of the scores' sum with random signs
        true = labels == np.arange(len(p))[:, np.newaxis]
        signs = np.array([1.0 if forest.draw() >> 63 else -1.0 for _ in p])
        mean = sum(sign * row for sign, row in zip(signs, p, strict=True))
        g, h = signs[labels] - mean, 1.0 - mean**2
    g, h = (np.rint(weights * c.UNIT * v).astype(np.int64) for v in (g, h))
    forest.features[tree], forest.thresholds[tree] = -1, 0.0
    columns, rows = choose_columns(forest), np.arange(len(labels))
    split(forest, columns, rows, (g, h), 0)
    leaf = forest.places[tree]
    for r, (is_true, chances) in enumerate(zip(true, p, strict=True)):
        top = np.bincount(leaf, weights * (is_true - chances), c.LEAVES)
        bottom = np.bincount(leaf, weights * chances * (1.0 - chances), c.LEAVES) + c.RIDGE
        leaves = c.SHRINKAGE * (top / bottom).clip(-c.LEAF_LIMIT, c.LEAF_LIMIT)
        forest.leaves[r, tree] = leaves
    forest.scores = forest.scores + forest.leaves[:, tree, leaf]
    forest[_N_TREES] = max(forest[_N_TREES], tree + 1)
    forest[_NEXT] = (tree + 1) % len(forest.places)


def probabilities_of(scores: Array) -> Array:
    """Return probabilities of the second class, or of each row's; of float32, as they are kept."""
    exact = scores.astype(float)
    if len(scores) == 1:
        p = 1.0 / (1.0 + np.exp(-exact))
    else:
        powers = np.exp(exact - exact.max(axis=0)).astype(np.float32).astype(float)
        p = powers / sum(powers)
    rounded: Array = p.astype(np.float32).astype(float)
    return rounded


def choose_columns(forest: _Forest) -> list[int]:
    """Choose columns: half of them those of the largest gains so far, the others at random."""
    d = len(forest.gains)
    columns, n = list(range(d)), min(d, c.CHOSEN)
    for k in range(n if n < d else 0):
        if k < n // 2:
            chosen = max(range(k, d), key=lambda i: (forest.gains[columns[i]], -i))
        else:
            chosen = k + ((forest.draw() >> 32) * (d - k) >> 32)
        columns[k], columns[chosen] = columns[chosen], columns[k]
    forest.gains[columns[:n]] *= c.FADE
    return columns[:n]


def split(
    forest: _Forest, columns: list[int], rows: Array, sums: tuple[Array, Array], node: int
) -> None:
    """Split the rows in a node by the best column and code, and so on; or put all into a leaf."""
    if node >= _NODES:
        forest.places[forest[_NEXT], rows] = node - _NODES
        return
    best = best_split(forest, columns, rows, sums) if len(rows) else None
    if best is None:
        split(forest, [], rows, sums, 2 * node + 1)
        return
    column, code = best
    tree = forest[_NEXT]
    forest.features[tree, node] = column
    forest.thresholds[tree, node] = forest.edges[column, code]
    right = forest.codes[rows, column] > code
    split(forest, columns, rows[~right], sums, 2 * node + 1)
    split(forest, columns, rows[right], sums, 2 * node + 2)


def best_split(
    forest: _Forest, columns: list[int], rows: Array, sums: tuple[Array, Array]
) -> tuple[int, int] | None:
    """Return the column and code of the largest gain, the first of equals; None without any."""
    g, h = (v[rows] for v in sums)
    total_g, total_h = g.sum() / c.UNIT, h.sum() / c.UNIT
    if total_h < 2.0 * c.RIDGE:
        return None
    most, best = 1e-6, None
    for column in columns:
        codes, n = forest.codes[rows, column], int(forest.n_edges[column])
        if not n:
            continue
        left_g, left_h = (np.bincount(codes, v, n + 1).cumsum()[:n] / c.UNIT for v in (g, h))
        right_g, right_h = total_g - left_g, total_h - left_h
        gain = left_g**2 / (left_h + c.RIDGE) + right_g**2 / (right_h + c.RIDGE)
        gain -= total_g**2 / (total_h + c.RIDGE)
        gain[(left_h < c.RIDGE) | (right_h < c.RIDGE)] = 0.0
        if gain.max() > most:
            most, best = gain.max(), (column, int(gain.argmax()))
    if best is not None:
        forest.gains[best[0]] += most
    return best
