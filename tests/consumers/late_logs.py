"""Logs of features and labels: late, early, twice, of nothing, and none."""

import json
import random

from drift.consumers.records import Message, Position

__all__ = ["JOIN", "SILENCE", "logs", "messages"]

JOIN = {"max_age": 20, "grace": 2, "pending": 40, "pending_bytes": 3000}
#: Settings with which features without a label are learnt as false.
SILENCE = JOIN | {"silence": False, "after": 8, "correct_for": 15, "pending": 12}


def logs(n=60, seed=0, partitions=(2, 3)):
    """Logs of (time, value) by topic and partition; ids do not say in which partition they are."""
    rng = random.Random(seed)
    made = {
        (topic, p): [] for topic, count in zip("fl", partitions, strict=True) for p in range(count)
    }
    labels = []
    for t in range(n):
        time = 1000 * (t + 1)
        x = {f"w{(7 * t + k * k + seed) % 23}": 1.0 + k for k in range(5)}
        name = rng.choice([t, f"é{t}", t - t % 7])
        value = json.dumps({"features": x, "id": name}, ensure_ascii=False).encode()
        made["f", rng.randrange(partitions[0])].append((time, value if t % 11 else b"{"))
        label = {"id": rng.choice([name] * 9 + ["nobody's"]), "label": sum(map(len, x)) % 2 == 0}
        if t % 5 == 0:
            label["weight"] = 0.5
        for _ in range(rng.choice([0, 1, 1, 1, 1, 2])):
            delay = rng.choice([-1500, 0, 300, 4000, 9000, 15_000, 30_000]) + rng.randrange(900)
            labels.append((max(1, time + delay), json.dumps(label).encode()))
        if t % 13 == 0:
            labels.append((time, b'{"label": true}'))
    # Times that go back by seconds, as those of producers do.
    for one in sorted(labels, key=lambda one: one[0] + rng.randrange(3000)):
        made["l", rng.randrange(partitions[1])].append(one)
    return made


def messages(made):
    """The logs as messages."""
    return {
        place: [
            Message(Position(*place, offset), None, value, (), time)
            for offset, (time, value) in enumerate(log)
        ]
        for place, log in made.items()
    }
