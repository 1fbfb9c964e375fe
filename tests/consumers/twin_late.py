"""Labels that come later, from the words of docs/kafka_labels.md: by lists, record after record."""

from collections import Counter, defaultdict

from drift.consumers.json_codec import JsonCodec
from drift.errors import MessageError
from drift.models._state.codec import encode
from tests.consumers.twin_order import times

__all__ = ["Lists", "Twin", "learn"]


class Lists:
    """Which features and labels wait, in the order in which they came.

    Features are whatever has a `time` and a `size`, labels whatever has a `time` and a `label`.
    """

    def __init__(self, options):
        self.options = options
        self.waiting, self.silent, self.early, self.done = [], [], [], []
        self.counts = Counter()
        self.at = -1  # the time of the last features

    def features(self, name, features):
        """Features come: return the label that waited for them."""
        for one in self.early:
            if one[0] == name:
                self.early.remove(one)
                self.done.append((name, features.time))
                self.counts["learnt"] += 1
                return one[1]
        if name in [known for known, _ in self.waiting + self.silent + self.done]:
            self.counts["repeated"] += 1
            return None
        self.waiting.append((name, features))
        while (
            len(self.waiting + self.silent) > self.options.pending
            or self.size > self.options.pending_bytes
        ):
            if self.silent:
                self.silent.pop(0)
            else:
                self.waiting.pop(0)
                self.counts["evicted"] += 1
        return None

    @property
    def size(self):
        return sum(one.size for _, one in self.waiting + self.silent)

    @property
    def early_size(self):
        messages = [label.message for _, label in self.early]
        headers = [part or b"" for one in messages for header in one.headers for part in header]
        parts = [part or b"" for one in messages for part in (one.key, one.value)] + headers
        return sum(len(part) for part in parts)

    def label(self, name, label):
        """A label comes: return what becomes of it, and the features that it is of."""
        for rows, outcome in ((self.waiting, "learnt"), (self.silent, "corrected")):
            for one in rows:
                if one[0] == name:
                    rows.remove(one)
                    self.done.append((name, label.time))
                    if outcome == "corrected" and label.label == self.options.silence:
                        self.counts["confirmed"] += 1
                        return "confirmed", None
                    self.counts[outcome] += 1
                    return outcome, one[1]
        if name in [known for known, _ in self.done + self.early]:
            self.counts["duplicate"] += 1
            return "duplicate", None
        self.early.append((name, label))
        return "early", None

    def orphans(self, time=None):
        """Labels that are given up: at features of a time, or None as a label came."""
        self.at = self.at if time is None else time
        results = []
        while self.early and (
            self.early[0][1].time + 1000 * self.options.grace < self.at
            or len(self.early) > self.options.pending
            or self.early_size > self.options.pending_bytes
        ):
            results.append(self.early.pop(0)[1])
            self.counts["orphan"] += 1
        return results

    def ages(self, time):
        """What a label of this time makes too old: return what is learnt by its silence."""
        options, result = self.options, []
        patience = 1000 * (options.max_age if options.after is None else options.after)
        while self.waiting and self.waiting[0][1].time + patience < time:
            name, one = self.waiting.pop(0)
            if options.silence is None:
                self.counts["expired"] += 1
            else:
                self.counts["silent"] += 1
                self.silent.append((name, one))
                result.append(one)
        known = 1000 * options.max_age
        if options.after is not None:
            known = max(known, 1000 * options.correct_for)
            patience += 1000 * options.correct_for
            while self.silent and self.silent[0][1].time + patience < time:
                self.silent.pop(0)
        while self.done and (
            len(self.done) > options.pending
            or sum(len(name.encode()) if isinstance(name, str) else 8 for name, _ in self.done)
            > options.pending_bytes
            or self.done[0][1] + known < time
        ):
            self.done.pop(0)
        return result

    def drop(self, place, offsets):
        """Forget the features and labels of a partition at some offsets."""
        for rows in (self.silent, self.waiting, self.early):
            for one in [one for one in rows if _is_at(one[1], place, offsets)]:
                rows.remove(one)
                self.counts["evicted"] += rows is self.waiting


def _is_at(one, place, offsets):
    """Whether features or a label come from a partition, at one of some offsets."""
    if hasattr(one, "place"):  # of `drift.consumers.waiting`
        return one.place == place and one.offset in offsets
    *own, offset = one.message.position
    return tuple(own) == place and offset in offsets


class _Features:
    def __init__(self, message, time, x):
        self.message, self.time, self.x = message, time, x
        self.name = f"{message.position[1]}:{message.position[2]}"
        self.size = len(message.value) + sum(len(n) + len(v or b"") for n, v in message.headers)


class _Label:
    def __init__(self, message, time, example):
        self.message, self.time = message, time
        self.label, self.weight = example.label, example.weight


class Twin:
    """A model, and what becomes of records that are taken in some order.

    Attributes
    ----------
    predictions
        Label and score by position, of all features that could be read.
    dead, orphans
        Positions of what could not be learnt, and of labels that found no features.
    """

    def __init__(self, options, model, codec=None, *, with_scores=True):
        self.options, self.model, self.codec = options, model, codec or JsonCodec()
        self.with_scores = with_scores  # a model may record this call
        self.join = Lists(options)
        self.stamps = defaultdict(list)
        self.offsets = {}
        self.predictions, self.dead, self.orphans = {}, [], []
        self.examples = self.mistakes = self.unlabelled = 0

    def take(self, message):
        """Take the next record; one that was taken is skipped."""
        place = tuple(message.position[:2])
        if message.position.offset < self.offsets.get(place, 0):
            return
        self.offsets[place] = message.position.offset + 1
        self.stamps[place].append(message.timestamp)
        time = times(self.stamps[place], 1000 * self.options.max_jump)[-1]
        if place[0] == self.options.labels:
            for one in self.join.ages(time):
                self.learn(one, self.options.silence, None)
            self.label(message, time)
        else:
            self.orphans += [one.message.position for one in self.join.orphans(time)]
            self.features(message, time)

    def features(self, message, time):
        example = self.read(self.codec.decode, message)
        if example is None:
            return
        one = _Features(message, time, example.features)
        one.predicted = predicted = self.model.predict_one(
            example.features, **self.named(None if example.id is None else one)
        )
        self.predictions[message.position] = (
            predicted,
            self.with_scores and self.model.decision_function_one(example.features),
        )
        self.unlabelled += 1
        if example.id is not None:
            label = self.join.features(example.id, one)
            if label is not None:
                self.learn(one, label.label, label.weight)

    def label(self, message, time):
        example = self.read(self.codec.decode_label, message)
        if example is None:
            return
        label = _Label(message, time, example)
        outcome, result = self.join.label(example.id, label)
        self.orphans += [one.message.position for one in self.join.orphans()]
        if result is not None:
            self.learn(result, label.label, label.weight, is_new=outcome == "learnt")

    def read(self, decode, message):
        try:
            return decode(message.value, message.headers)
        except MessageError:
            self.dead.append(message.position)
            return None

    def learn(self, one, label, weight, *, is_new=True):
        learn(self.model, one.x, label, weight, **self.named(one if is_new else None))
        self.examples += is_new
        self.mistakes += is_new and one.predicted != label

    def named(self, one):
        """The ticket of features, for a Tracker; of None, which no label finds, that none is."""
        late = getattr(self.model, "late", False)
        return {"ticket": one is not None and one.name} if late else {}

    # --- what it is compared with ----------------------------------------------------------------

    def assert_like(self, learner):
        """Compare a learner, all that it is."""
        assert learner.offsets == self.offsets
        assert encode(learner.model) == encode(self.model)
        self.assert_counted(learner.metrics.state())
        join = learner.join
        assert +join.counts == +self.join.counts
        assert [*zip(*join._done.snapshot()(), strict=True)] == self.join.done
        for rows, expected in (
            (join._waiting, self.join.waiting),
            (join._silent, self.join.silent),
        ):
            assert [(name, *one.place, *one[1:4]) for name, one in rows.items()] == [
                (name, *one.message.position, one.time, one.predicted) for name, one in expected
            ]
        assert [(name, one.message.position) for name, one in join._early.items()] == [
            (name, one.message.position) for name, one in self.join.early
        ]
        assert (join.pending, join._bytes) == (len(self.join.waiting), self.join.size)

    def assert_counted(self, metrics):
        """Compare what is counted across restarts."""
        counts = {
            "examples": self.examples,
            "mistakes": self.mistakes,
            "unlabelled": self.unlabelled,
            "dead_letters": len(self.dead),
        }
        assert {name: metrics[name] for name in counts} == counts


def learn(model, x, y, w, **more):
    """Have a model learn an example."""
    model.learn_one(x, y, **more) if w is None else model.learn_one(x, y, w=w, **more)
