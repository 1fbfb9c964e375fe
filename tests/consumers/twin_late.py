"""Labels that come later, from the words of docs/kafka_labels.md: by lists, over the whole logs."""

import json
import math
from collections import Counter, defaultdict, deque

from drift.consumers.codec import JsonCodec
from drift.errors import MessageError


def decoded(log, decode):
    """The log with its examples; None for what cannot be read."""
    for offset, time, value in log:
        try:
            yield offset, time, value, decode(value)
        except MessageError:
            yield offset, time, value, None


class Twin:
    """What becomes of two logs.

    `learnt_by` has, after each label, the number of examples that had been learnt. `headers` are
    the bytes of those of features by offset.
    """

    def __init__(self, features, labels, options, given_up=(), *, codec=None, headers=None):
        self.codec = codec or JsonCodec()
        self.features = list(decoded(features, self.codec.decode))
        self.options, self.given_up = options, set(given_up)
        self.kept = {}  # [offset, time, value or None] by id, as they came
        self.headers = headers or {}
        self.size = 0  # of all values and their headers
        self.counts, self.orphans, self.refused = Counter(), [], []
        self.learnt, self.learnt_by = [], []
        self.read, self.at = 0, -1
        now = -1
        self.labels_end = 0
        for offset, time, value, example in decoded(labels, self.codec.decode_label):
            now = max(now, time)
            # Times in the order of offsets never fall.
            while self.kept and self.oldest()[1] < now - 1000 * options.max_age:
                self.drop("expired")
            if example is not None and not self.wait(offset, time, example.id):
                return
            self.labels_end = offset + 1
            self.finish(offset, value, example)
            self.learnt_by.append((offset + 1, len(self.learnt)))

    def oldest(self):
        return next(iter(self.kept.values()))

    def drop(self, why):
        offset, _, value = self.kept.pop(next(iter(self.kept)))
        self.size -= 0 if value is None else self.size_of(offset, value)
        self.counts[why] += value is not None

    def size_of(self, offset, value):
        return len(value) + self.headers.get(offset, 0)

    def wait(self, offset, time, name):
        """Read features until they have an id, or their log is beyond the label's grace."""
        while name not in self.kept:
            if self.at > time + 1000 * self.options.grace:
                return True
            if (offset, self.features[self.read - 1][0] + 1 if self.read else 0) in self.given_up:
                return True
            if self.read == len(self.features):
                return False
            self.take(*self.features[self.read])
            self.read += 1
        return True

    def take(self, offset, time, value, example):
        self.at = max(self.at, time)
        if example is None or example.id is None:
            return
        if example.id in self.kept:
            self.counts["repeated"] += 1
            return
        self.kept[example.id] = [offset, self.at, value]
        self.size += self.size_of(offset, value)
        while len(self.kept) > self.options.pending or self.size > self.options.pending_bytes:
            self.drop("evicted")

    def finish(self, offset, value, example):
        if example is None:
            self.counts["refused"] += 1
            self.refused.append((offset, value))
            return
        found = self.kept.get(example.id)
        if found is None:
            self.counts["orphan"] += 1
            self.orphans.append((offset, value))
        elif found[2] is None:
            self.counts["duplicate"] += 1
        else:
            self.counts["learnt"] += 1
            x = self.codec.decode(found[2]).features
            self.learnt.append((x, example.label, example.weight))
            self.size -= self.size_of(found[0], found[2])
            found[2] = None

    def models(self, model, after):
        """Yield a number of `after` with the model that has learnt the labels before it."""
        done = upto = 0
        marks = deque(self.learnt_by)
        for offset in sorted(after):
            while marks and marks[0][0] <= offset:
                upto = marks.popleft()[1]
            for x, y, w in self.learnt[done:upto]:
                learn(model, x, y, w)
            done = max(done, upto)
            yield offset, model

    def model(self, model):
        """Return a model after all."""
        for one in self.learnt:
            learn(model, *one)
        return model

    def followed(self, model, predictions):
        """Return a model that notes what it predicts, after all; of each offset the last counts.

        `predictions` are offsets and the `labels_learnt` of what was sent, in the order of that.
        """
        made = defaultdict(list)
        for offset, after in dict(predictions).items():
            made[after].append(offset)
        xs = {offset: example.features for offset, _, _, example in self.features if example}
        for after, one in self.models(model, {*made, math.inf}):
            for offset in sorted(made[after]):
                one.predict_one(xs[offset])
        return model

    def assert_joined(self, state):
        """Compare with the state of a join, as a checkpoint has it."""
        assert {k: n for k, n in state["counts"].items() if n} == dict(+self.counts)
        assert [
            (name, offset, time, kept and _text(kept).encode("latin-1"))
            for name, offset, time, kept, _ in state["kept"]
        ] == [(name, *one) for name, one in self.kept.items()]
        assert state["offsets"][1] == self.labels_end


def _text(kept):
    return kept if isinstance(kept, str) else kept[0]  # beside it are headers


def learn(model, x, y, w):
    model.learn_one(x, y) if w is None else model.learn_one(x, y, w=w)


def bodies(records):
    """The predictions of a topic by key."""
    found = {}
    for record in records:
        found.setdefault(record.key.decode(), []).append(json.loads(record.value))
    return found
