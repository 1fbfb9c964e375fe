"""Labels that come later, from the words of docs/operations.md: by lists, over the whole logs."""

import json
from collections import Counter

from drift.consumers.codec import JsonCodec
from drift.errors import MessageError


def records(log):
    """Offset, time and value of each record of a log, in their order."""
    return [(r.offset, r.timestamp, r.value) for r in log]


def decoded(log, decode):
    """The log with its examples; None for what cannot be read."""
    for offset, time, value in log:
        try:
            yield offset, time, value, decode(value)
        except MessageError:
            yield offset, time, value, None


class Twin:
    """What becomes of two logs.

    `learnt_by` has, after each label, the number of examples that had been learnt.
    """

    def __init__(self, features, labels, options, given_up=()):
        codec = JsonCodec()
        self.features = list(decoded(features, codec.decode))
        self.options, self.given_up = options, set(given_up)
        self.kept = []  # [offset, time, id, value or None], as they came
        self.counts, self.orphans, self.refused = Counter(), [], []
        self.learnt, self.learnt_by = [], []
        self.read, self.at = 0, -1
        now = -1
        self.labels_end = 0
        for offset, time, value, example in decoded(labels, codec.decode_label):
            now = max(now, time)
            for one in [one for one in self.kept if one[1] < now - 1000 * options.max_age]:
                self.kept.remove(one)
                self.counts["expired"] += one[3] is not None
            if example is not None and not self.wait(offset, time, example.id):
                return
            self.labels_end = offset + 1
            self.finish(offset, value, example)
            self.learnt_by.append((offset + 1, len(self.learnt)))

    def wait(self, offset, time, name):
        """Read features until they have an id, or their log is beyond the label's grace."""
        while name not in [one[2] for one in self.kept]:
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
        if example.id in [one[2] for one in self.kept]:
            self.counts["repeated"] += 1
            return
        self.kept.append([offset, self.at, example.id, value])
        options = self.options
        while len(self.kept) > options.pending or (
            sum(len(one[3] or b"") for one in self.kept) > options.pending_bytes
        ):
            self.counts["evicted"] += self.kept.pop(0)[3] is not None

    def finish(self, offset, value, example):
        if example is None:
            self.counts["refused"] += 1
            self.refused.append((offset, value))
            return
        [found] = [one for one in self.kept if one[2] == example.id] or [None]
        if found is None:
            self.counts["orphan"] += 1
            self.orphans.append((offset, value))
        elif found[3] is None:
            self.counts["duplicate"] += 1
        else:
            self.counts["learnt"] += 1
            x = JsonCodec().decode(found[3]).features
            self.learnt.append((x, example.label, example.weight))
            found[3] = None

    def models(self, model, after):
        """Yield a number of `after` with the model that has learnt the labels before it."""
        done = 0
        for offset in sorted(after):
            upto = max([0, *(count for end, count in self.learnt_by if end <= offset)])
            for x, y, w in self.learnt[done:upto]:
                learn(model, x, y, w)
            done = max(done, upto)
            yield offset, model

    def model(self, model):
        """Return a model after all."""
        for one in self.learnt:
            learn(model, *one)
        return model

    def assert_joined(self, state):
        """Compare with the state of a join, as a checkpoint has it."""
        assert {k: n for k, n in state["counts"].items() if n} == dict(+self.counts)
        assert [
            (offset, time, name, _value(kept)) for name, offset, time, kept, _ in state["kept"]
        ] == [tuple(one) for one in self.kept]
        assert state["offsets"][1] == self.labels_end


def _value(kept):
    return kept if kept is None else kept.encode("latin-1")


def learn(model, x, y, w):
    model.learn_one(x, y) if w is None else model.learn_one(x, y, w=w)


def bodies(records):
    """The predictions of a topic by key."""
    found = {}
    for record in records:
        found.setdefault(record.key.decode(), []).append(json.loads(record.value))
    return found
