"""Naive twin of the Tracker: numpy, float64, dicts; it shares no code with drift."""

import math
from collections import Counter

import numpy as np
from oracles_tracker_parts import (
    GOLDEN,
    Linear,
    SecondOrderGate,
    dot,
    first,
    hashed,
    kernel,
    mix,
    splined,
)

LINEAR = [("sgd", (0.3, 0.8)), ("sgd", (3.0, 8.0)), ("adagrad", 0.25), ("kalman", 0.003)]
SPLINES = [("spline", 1e-4), ("spline", 0.01)]
GATES = [0.1]
SURPRISE, CLIP, VOTE, DRAWN, NAMES = 0.25, 1e-3, 0.2, 16, 4096
PAIRED = 16
MAPS = [(slope, floor) for slope in (1, 2, 4) for floor in (0.0, 0.1, 0.2, 0.4)]


def scaled(v, m, s, r, n):
    """A value by the mean and variance of those up to the n-th, and these."""
    e = v - m
    if n > 10 and s > 0.0:
        e = min(max(e, -5 * math.sqrt(s)), 5 * math.sqrt(s))
    m, s = m + r * e, (1 - r) * (s + r * e**2)
    z = min(max((v - m) / math.sqrt(s), -3.0), 3.0) if math.sqrt(s) > 1e-12 * abs(m) else 0.0
    return z, m, s if s > 1e-200 else 0.0


class Tracker:
    """`look(x)` leaves in attributes what is known of an example before its label.

    `doubtful` says whether a decision was so close that float32 could turn it, and all after it.
    """

    def __init__(
        self,
        budget,
        *,
        kernels=(0, 0.25, 2, 16),
        rates=(0.5, 6),
        forgetting=None,
        share=1e-3,
        scale="auto",
        decide="vote",
        seed=0,
        splines=True,
        pairs=True,
    ):
        self.budget, self.share, self.scale, self.decide = budget, share, scale, decide
        self.state = seed % 2**64
        self.pairs = pairs
        self.linear_rules = LINEAR + SPLINES if splines else LINEAR
        self.widths = kernels
        self.experts = [
            (k, r, min(f, 0.9))
            for k in kernels
            for r in rates
            for f in (
                (0.05 / budget, 0.75 / (r * math.sqrt(budget)))
                if forgetting is None
                else [f / budget for f in forgetting]
            )
        ]
        self.classes, self.looked, self.doubtful = [], None, False
        self.sparse = scale == "sparse"
        self.means, self.spreads, self.sum_z = {}, {}, 0.0
        self.nonzero = self.n = 0
        self.had, self.n_sparse = Counter(), 0
        self.common = {}  # mean and variance, where rows are sparse
        self.forget_rows()
        self.n_members = len(self.experts) + len(self.linear)
        self.losses, self.aside = (
            [],
            [],
        )  # a row for each example; before which splines were put aside
        n = self.n_members + len(GATES) + 1
        self.gates = np.full((len(GATES) + 1, self.n_members), 1 / self.n_members)
        self.filter = SecondOrderGate(self.n_members)
        self.weights, self.votes, self.last = np.full(n, 1 / n), np.full(n, 1 / n), np.full(2, 0.5)
        self.leave_out_splines()
        self.maps = np.array([1 / 2] + [1 / 24] * 12)
        self.errors = np.zeros(n)
        self.log_loss = self.mistakes = self.total = 0.0
        self.mean_loss, self.mean_count = 0.7, 1.0

    def forget_rows(self):
        """Begin without supports and weights of features."""
        self.supports, self.squares = [], np.zeros(0)  # the oldest first
        rows = 1 if len(self.classes) < 3 else len(self.classes) + 1
        self.alpha = np.zeros((len(self.experts), rows, 0))
        self.linear = [Linear(*of, rows, sparse=self.sparse) for of in self.linear_rules]
        self.sum_squares = self.n_squares = 0
        #: Nats, of the slower and the faster by gradient descent, and how often they were too many.
        self.behind, self.caught_up = [0.0, 0.0], [0, 0]

    def leave_out_splines(self):
        """Sparse rows have no splines, whose scores stay 0; of their weight the share is left."""
        if self.sparse:
            splines = slice(len(self.experts) + len(LINEAR), self.n_members)
            self.weights[splines], self.votes[splines] = self.share / len(self.weights), 0.0
            self.aside.append(len(self.losses))

    # --- features ---

    def read(self, x):
        """Take an example as `self.x`, and its features for the linear models as `self.phi`.

        Those of the splines are `self.knots`, and `self.near` what they are before division.
        """
        x = {name: float(v) for name, v in x.items() if v == v and v != 0}
        self.values = x
        if not self.sparse:
            self.x = self.phi = self.standardised(x)
            self.square = dot(self.x, self.x)
            return
        x = self.with_common(x)
        norm = math.sqrt(dot(x, x))  # 0, as of an empty row, where the squares are no numbers
        self.x, self.phi = {name: v / norm for name, v in x.items()} if norm else {}, {}
        self.knots = self.near = {}
        self.square = float(norm > 0)
        for name, v in self.x.items():
            slot = hashed(name) >> 50
            self.phi[slot] = self.phi.get(slot, 0.0) + v

    def with_common(self, x):
        """Standardise what is so although rows are sparse."""
        self.new_common, r = {}, max(1e-3, 1 / (self.n_sparse + 9))
        for name, (m, s) in self.common.items():
            z, *self.new_common[name] = scaled(x.get(name, m), m, s, r, self.n_sparse + 9)
            if name in x:
                x = x | {name: z}
        return x

    def standardised(self, x):
        n = self.n + 1
        r = max(1e-3, 1 / n)
        new = sorted(x.keys() - self.means.keys(), key=lambda name: (type(name).__name__, name))
        self.new_means, self.new_spreads = {}, {}
        z = {}
        for name in [*self.means, *new][:NAMES]:
            m, s = self.means.get(name, 0.0), self.spreads.get(name, 0.0)
            z[name], m, s = scaled(x.get(name, 0.0), m, s, r, n)
            self.new_means[name], self.new_spreads[name] = m, s
        ends = len(self.means) <= PAIRED < len(z) and len(x) > PAIRED
        self.new_pairs = self.pairs and not ends
        first = dict(list(z.items())[:256])
        rare = {k for k in first if self.new_means[k] ** 2 < 0.500000001 * self.new_spreads[k]}
        present = {k for k in first if k in x or k not in rare}
        self.knots, self.near = splined(first, present, self.new_pairs * PAIRED)
        self.new_sum = self.sum_z + dot(z, z)
        size = math.sqrt(self.new_sum / n + 1e-9)
        return {name: float(np.float32(v / size)) for name, v in z.items()}

    def keep_scale(self):
        """Keep what an example says of the scale; return whether rows are sparse from now on."""
        self.looked = None
        self.n += 1
        if self.sparse:
            self.common = self.new_common
            self.n_sparse += 1
            return False
        self.means, self.spreads, self.sum_z = self.new_means, self.new_spreads, self.new_sum
        self.pairs = self.new_pairs
        self.nonzero += len(self.values)
        self.had.update(self.values.keys())
        d = len(self.means | self.values)
        thin = d > 256 and 4 * self.nonzero < d * self.n and (d > 1024 or self.nonzero < 3 * d)
        self.sparse = self.scale == "auto" and (d >= NAMES or thin)
        if self.sparse:
            self.forget_rows()
            self.leave_out_splines()
            if self.n >= 8:
                many = {name for name in self.means if 2 * self.had[name] >= self.n}
                self.common = {name: (self.means[name], self.spreads[name]) for name in many}
        return self.sparse

    def compare(self, x, square, others, squares):
        """Inner products and squared distances, 0 where rounding would leave no more."""
        dots = np.array([dot(x, s) for s in others])
        distances = square + squares - 2 * dots
        return dots, np.where(distances <= 1e-6 * (square + squares), 0.0, distances)

    # --- before the label ---

    def look(self, x):
        if x is self.looked:
            return
        self.looked = x
        self.read(x)
        compared = self.compare(self.x, self.square, self.supports, self.squares)
        rows = {k: kernel(k, *compared) for k in self.widths}
        scores = [a @ rows[k] for a, (k, _, _) in zip(self.alpha, self.experts, strict=True)]
        scores += [model.scores(x) for model, x, _ in self.linear_models()]
        scores = np.array(scores)
        above = np.maximum(abs(scores) - 5, 0)  # counts a quarter
        self.seen = np.sign(scores) * (abs(scores) - 0.75 * above)
        self.scores = np.array([*scores, *(self.gates @ self.seen)])
        self.measure()
        self.mixed = self.weights @ self.p
        self.known = max(len(self.classes), 1)
        self.choices = np.array([self.choice(f) for f in self.scores])
        sizes = [
            abs(a) @ abs(rows[k]) for a, (k, _, _) in zip(self.alpha, self.experts, strict=True)
        ]
        sizes += [model.sizes(x) for model, x, _ in self.linear_models()]
        sizes += [*(abs(self.gates) @ np.minimum(sizes, 6.0))]
        self.doubt_choices(np.max(sizes, axis=1, keepdims=True))
        ballots = [self.votes[self.choices == k].sum() for k in range(self.known)]
        self.candidates = np.array([first(self.mixed[: self.known], 1e-6), first(ballots, 1e-9)])
        vote = self.decide == "vote" and self.last[1] > self.last[0] + 1e-9
        self.prediction = self.candidates[int(vote)]

    def linear_models(self):
        """Models that are linear, what of the example each is linear in, and how near that is."""
        parts = [(self.phi, {})] * len(LINEAR) + [(self.knots, self.near)] * len(SPLINES)
        return [(model, *part) for model, part in zip(self.linear, parts, strict=False)]

    def measure(self):
        """Probabilities of all members from their scores."""
        if self.scores.shape[1] == 1:
            up = 1 / (1 + np.exp(-np.clip(self.scores, -30.0, 30.0)))
            self.raw = np.hstack([1 - up, up])
        else:
            powers = np.exp(self.scores - self.scores.max(axis=1, keepdims=True))
            self.raw = powers / powers.sum(axis=1, keepdims=True)
        n = self.raw.shape[1]
        clip = min(CLIP, 1 / (2 * n))
        self.p = clip + (1 - n * clip) * self.raw

    def choice(self, scores):
        rivals = [0.0, scores[0]] if len(scores) == 1 else scores
        return first(rivals[: self.known], 1e-6)

    def doubt_choices(self, sizes):
        """Doubt choices where a class before the best one is not surely within the tolerance."""
        rivals = self.scores if self.scores.shape[1] > 1 else np.pad(self.scores, ((0, 0), (1, 0)))
        rivals = rivals[:, : self.known]
        before = np.arange(self.known) < rivals.argmax(axis=1, keepdims=True)
        gaps = rivals.max(axis=1, keepdims=True) - rivals
        self.doubtful |= bool(np.any(before & (abs(gaps - 1e-6) < 1e-6 * sizes)))

    def predict(self, x):
        self.look(x)
        return self.classes[self.prediction] if self.classes else None

    def proba(self, x):
        self.look(x)
        return dict(zip(self.classes, self.maps @ self.mapped(), strict=True))

    def mapped(self):
        """Probabilities of the classes met under each map."""
        powers = [self.mixed[: len(self.classes)] ** slope for slope, _ in MAPS]
        n = max(len(self.classes), 1)
        maps = [
            (1 - f) * power / power.sum() + f / n
            for power, (_, f) in zip(powers, MAPS, strict=True)
        ]
        top = max(self.mixed[: len(self.classes)], default=0.5)
        steep = self.mixed[: len(self.classes)] ** (max(math.log(top / (1 - top)), 1) / 2.5)
        return [*maps, steep / steep.sum()]

    # --- with it ---

    def learn(self, x, y, w=1.0):
        if w == 0.0:
            return
        self.look(x)
        k = self.classes.index(y) if y in self.classes else len(self.classes)
        self.last_gate = self.gates[-1].copy()
        loss = self.judge(k, w)
        if k == len(self.classes):
            self.meet(y)
        n_scores, first_linear = self.alpha.shape[1], len(self.experts)
        residuals = self.residuals(k)[:, -n_scores:]
        chances = self.raw[:, -n_scores:]
        self.sum_squares += self.square + (0.04 if self.sparse else 1.0)
        self.n_squares += 1
        for e, (model, phi, near) in enumerate(self.linear_models(), first_linear):
            mean_square = self.sum_squares / self.n_squares
            if not self.sparse or phi is self.phi:
                model.learn(phi, w, residuals[e], chances[e], mean_square, near=near)
        turns = self.keep_scale()
        if self.sparse and not turns:
            self.catch_up()
        surprise = w * loss / (self.mean_loss / self.mean_count)
        self.doubtful |= abs(surprise - SURPRISE) < 1e-5
        if surprise > SURPRISE and not turns:
            self.insert(w * residuals)

    def catch_up(self):
        """Where an expert fell behind, it goes on from the next faster one's weights, or none."""
        losses, first = self.losses[-1][1], len(self.experts)
        slow, fast = self.linear[:2]
        patience = max(15.0, len(slow.rows) * (1 + 2**14) / 1000)
        ahead = [losses[first + 1], losses[-1]]
        for k, other in enumerate(ahead):
            self.behind[k] = max(0.0, self.behind[k] + losses[first + k] - other)
            self.doubtful |= abs(self.behind[k] - patience) < 1e-3
            if self.behind[k] > patience:
                self.behind[k] = 0.0
                self.caught_up[k] += 1
                if k == 0:
                    slow.rows = [dict(row) for row in fast.rows]
                else:
                    fast.rows = [{} for _ in fast.rows]

    def residuals(self, k):
        """Minus the gradient of the log loss in the scores, before the probabilities' clipping."""
        return (np.arange(self.raw.shape[1]) == k) - self.raw

    def judge(self, k, w):
        """Charge every member, and the mixture, whose loss is returned."""
        known = k < len(self.mixed)  # else a third class, which no score stood for
        losses = -np.log(self.p[:, k] if known else np.full(len(self.p), CLIP))
        loss = -math.log(self.mixed[k] if known else CLIP)
        factors = np.exp(-w * losses) if known else None
        if known:
            self.turn_gates(k, w)
            self.weights = self.shared(self.weights * factors)
        if k < len(self.classes) > 1:
            maps = self.maps * np.array(self.mapped())[:, k] ** w
            self.maps = (1 - 3e-4) * maps / maps.sum() + 3e-4 / len(maps)
        self.votes = self.shared(self.votes * np.exp(-VOTE * w * (self.choices != k)))
        self.last = self.shared(self.last * np.exp(-VOTE * w * (self.candidates != k)))
        self.losses.append((known, w * losses))
        self.errors += w * (self.choices != k)
        self.mistakes += w * (self.prediction != k)
        self.log_loss += w * loss
        self.total += w
        self.mean_loss = 0.999 * self.mean_loss + w * loss
        self.mean_count = 0.999 * self.mean_count + 1.0
        return loss

    def turn_gates(self, k, w):
        rows = self.alpha.shape[1]
        residuals = self.residuals(k)[self.n_members : -1, -rows:]
        rates = w / self.n_members * np.array(GATES)
        self.gates[:-1] += rates[:, np.newaxis] * (residuals @ self.seen.T)
        if rows == 1:
            z = self.seen[:, 0] * (1 if k else -1)
        else:
            rivals = [r for r in range(rows - 1) if r != k]
            rival = max(rivals, key=self.scores[-1].__getitem__)
            z = self.seen[:, k] - self.seen[:, rival]
        self.gates[-1] += self.filter.step(self.gates[-1], w, z)

    def shared(self, weights):
        return (1 - self.share) * weights / weights.sum() + self.share / len(weights)

    def meet(self, y):
        """Let a class join: from the third on it takes the spare row, a copy of which stays."""
        self.classes.append(y)
        if len(self.classes) < 3:
            return
        if len(self.classes) == 3:
            for name in ("alpha", "scores"):
                row = getattr(self, name)
                halves = [-row / 2, row / 2, np.zeros_like(row)]
                setattr(self, name, np.concatenate(halves, axis=1))
            for model in self.linear:
                model.split()
        self.alpha = np.concatenate([self.alpha, self.alpha[:, -1:]], axis=1)
        self.scores = np.concatenate([self.scores, self.scores[:, -1:]], axis=1)
        for model in self.linear:
            model.meet()
        self.measure()

    def insert(self, residuals):
        if len(self.supports) == self.budget:
            self.evict()
        self.supports.append(self.x)
        self.squares = np.append(self.squares, self.square)
        new = np.zeros((*self.alpha.shape[:2], 1))
        for e, (width, rate, lost) in enumerate(self.experts):
            self.alpha[e] *= 1 - lost
            new[e, :, 0] = rate * residuals[e] / (max(self.square, 1e-6) if width == 0 else 1.0)
        self.alpha = np.concatenate([self.alpha, new], axis=2)

    def evict(self):
        """Project the cheapest of those drawn onto its two nearest, in every expert."""
        i = min([self.draw() for _ in range(DRAWN)], key=self.cost)
        to = self.compare(self.supports[i], self.squares[i], self.supports, self.squares)
        near = [] if self.budget < 3 else [self.nearest(i, to[1], {i})]
        if near:
            near.append(self.nearest(i, to[1], {i, *near}))
            s, sq = [self.supports[j] for j in near], self.squares[near]
            among = np.array([self.compare(s[j], sq[j], s, sq) for j in (0, 1)])
            for a, (width, _, _) in zip(self.alpha, self.experts, strict=True):
                gram = kernel(width, among[:, 0], among[:, 1])
                gram = gram + np.diag(0.001 * gram.diagonal() + 1e-4)
                own = kernel(width, to[0][near], to[1][near])
                a[:, near] += np.outer(a[:, i], np.linalg.solve(gram, own))
        del self.supports[i]
        self.squares = np.delete(self.squares, i)
        self.alpha = np.delete(self.alpha, i, axis=2)

    def nearest(self, i, distances, out):
        """The oldest of the supports that are nearest to number i, within rounding."""
        rest = [j for j in range(self.budget) if j not in out]
        sums = np.maximum(self.squares[rest] + self.squares[i], 1e-9)
        gaps = (distances[rest] - distances[rest].min()) / sums
        self.doubtful |= bool(np.any(abs(gaps - 1e-6) < 5e-7))
        return rest[first(-gaps, 1e-6)]

    def draw(self):
        self.state = (self.state + GOLDEN) % 2**64
        return (mix(self.state) >> 32) * self.budget >> 32

    def cost(self, i):
        norms = [math.sqrt(self.squares[i]) if k == 0 else 1.0 for k, _, _ in self.experts]
        parts = self.alpha[:, :, i] * np.array(norms)[:, np.newaxis]
        lost = self.weights[: len(norms)] @ np.abs(parts).sum(axis=1)
        for own in np.split(np.arange(len(norms)), len(self.widths)):  # a gate sees a kernel's sum
            lost += self.weights[-1] * np.abs(self.last_gate[own] @ parts[own]).sum()
        return float(lost)

    # --- what is guaranteed ---

    def bound(self):
        """min over m of L(best sequence of members with m switches) and its price; and that m.

        An example of a third class, which no score stood for, moves no weight: nobody can switch.
        """
        n, s = len(self.weights), self.share
        best = np.zeros((1, n))  # by switches: loss of the best sequence that ends in each member
        free = 0  # examples before which a switch was possible
        splines = slice(len(self.experts) + len(LINEAR), self.n_members)
        for t, (known, losses) in enumerate(self.losses):
            if t in self.aside:  # whoever followed them has no weight left
                best[:, splines] = math.inf
            if known and t:
                free += 1
                go = best.min(axis=1, keepdims=True) + np.zeros(n)
                never = np.full((1, n), math.inf)
                best = np.minimum(np.vstack([best, never]), np.vstack([never, go]))
            best = best + losses
        m = np.arange(len(best))
        switch = math.log(n / s) if s else math.inf
        price = math.log(n) - (free - m) * math.log(1 - s + s / n)
        price[1:] += m[1:] * switch
        bounds = best.min(axis=1) + price
        return bounds.min(), int(bounds.argmin())
