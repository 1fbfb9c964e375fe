"""A learner with a shadow, messages for both, and a plain loop over them."""

import json

from drift.consumers.json_codec import JsonCodec
from drift.consumers.learner import Learner
from drift.consumers.metrics import Metrics
from drift.consumers.options import WorkerOptions
from drift.consumers.records import Message, Position
from drift.consumers.shadow import Shadow
from drift.models import LBP
from drift.models._state.codec import encode

CONFIGURATION = {"model": "LBP", "model.budget": 2, "shadow": "LBP", "shadow.budget": 30}
AT = 8.0


def money(pairs):
    """What a bettor has of 1 who stakes it pair by pair; True is a pair that the second wins."""
    pots, idle = [[0.05] * 10], 0.5
    for seen, wins in enumerate(pairs, 1):
        for pot in pots:
            for k in range(10):
                stake = pot[k] / 2 ** (k + 1)
                pot[k] += stake if wins else -stake
        if seen in {64, 128, 256, 512, 1024}:
            j = len(pots)
            pots.append([0.05 / (j * (j + 1))] * 10)
            idle -= sum(pots[-1])
    return idle + sum(map(sum, pots))


def options(**more):
    return WorkerOptions(**{"topic": "t", "group": "g", "predictions": "out", **more})


def learner(model=None, shadow=None, **more):
    given = options(**more)
    one = Learner(model or LBP(2), JsonCodec(), Metrics.of(given), given)
    one.shadow, one.configuration = Shadow(shadow or LBP(30)), dict(CONFIGURATION)
    return one


def messages(n=240):
    """Messages of a target that a small budget cannot keep; each seventh has no label."""
    for t in range(n):
        features = {f"w{(7 * t + k * k) % 23}": 1.0 + k for k in range(5)}
        body = {"features": features} | (
            {"label": sum(map(len, features)) % 2 == 0} if t % 7 else {}
        )
        value = b"{" if t % 50 == 3 else json.dumps(body).encode()
        yield Message(Position("t", 0, t), None, value, timestamp=1000 * (t + 1))


def loop(log, at=None, by_hand=(), model=None, shadow=None):
    """A plain loop over a log: what is sent, both models, pairs of the last shadow, promotions."""
    model, shadow = model or LBP(2), shadow or LBP(30)
    sent, pairs, promotions = [], [], []
    for message in log:
        if message.position.offset in by_hand:
            model, shadow, pairs = shadow, model, []
            promotions.append(message.position.offset)
        try:
            body = json.loads(message.value)
        except ValueError:
            continue
        x, y = body["features"], body.get("label")
        first, second = model.predict_one(x), shadow.predict_one(x)
        sent.append(first)
        if y is None:
            continue
        model.learn_one(x, y)
        shadow.learn_one(x, y)
        if (first == y) != (second == y):
            pairs.append(second == y)
            if at and second == y and money(pairs) >= at:
                model, shadow, pairs = shadow, model, []
                promotions.append(message.position.offset + 1)
    return sent, encode(model), encode(shadow), pairs, promotions


def conf(model, shadow=None):
    """The configuration of models that differ in their budget."""
    shadows = {} if shadow is None else {"shadow": "LBP", "shadow.budget": shadow}
    return {"topic": "t", "model": "LBP", "model.budget": model, **shadows}
