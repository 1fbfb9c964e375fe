"""Models of keys as a worker has them, beside a plain dict of what each has learnt."""

from functools import cache

from drift.consumers.checkpoints.checkpoint import Checkpoint
from drift.consumers.checkpoints.keyed_store import ModelStore
from drift.consumers.keyed_models import KeyedModels
from drift.models import LBP
from drift.models._state.codec import encode

KEY = ("t", 0)


def example(number):
    return {f"w{number % 5}": 1.0, f"v{number % 3}": 2.0}, number % 2 == 0


@cache
def learnt(numbers):
    """The bytes of a model that has learnt these examples."""
    model = LBP(budget=3)
    for number in numbers:
        model.learn_one(*example(number))
    return encode(model)


class Claimed:
    """What a worker does with models, and beside it a plain dict of what each has learnt."""

    def __init__(self, folder, most, expected):
        self.folder, self.expected = folder, expected
        self.epoch, checkpoint = folder.claim(KEY)
        lineage = () if checkpoint is None else checkpoint.models
        self.store = ModelStore(folder.folder(KEY), self.epoch, lineage, secret=folder.secret)
        self.models = KeyedModels(self.store, most, allow_pickle=folder.allow_pickle)
        self.twin = {} if checkpoint is None else dict(expected[checkpoint.id])

    def learn(self, key, number):
        model = self.models.get(key) or LBP(budget=3)
        numbers = self.twin.get(key, ())
        assert encode(model) == learnt(numbers)
        model.learn_one(*example(number))
        self.twin[key] = (*numbers, number)
        self.models.changed(key, model, time=number)
        self.models.evict()
        assert len(self.models) <= self.models.most

    def prepare(self):
        checkpoint, was = Checkpoint(LBP(budget=3), {KEY: 0}, self.epoch), dict(self.twin)
        write = self.folder.prepare(KEY, checkpoint, keyed=self.models.prepare())

        def written():
            checkpoint = write()
            self.expected[checkpoint.id] = was
            return checkpoint

        return written

    def check(self):
        for key, numbers in self.twin.items():
            assert encode(self.models.get(key)) == learnt(numbers)
            self.models.evict()
        assert self.models.get("nobody") is None
