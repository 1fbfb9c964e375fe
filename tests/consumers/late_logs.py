"""Logs of features and labels: late, early, twice, of nothing, and none."""

import json
import random

JOIN = {"max_age": 20, "grace": 2, "pending": 40, "pending_bytes": 3000}


def logs(n=60, seed=0):
    """Two logs of (time, value): labels late, early, twice, of nothing, and no labels."""
    rng = random.Random(seed)
    features, labels = [], []
    for t in range(n):
        time = 1000 * t
        x = {f"w{(7 * t + k * k + seed) % 23}": 1.0 + k for k in range(5)}
        name = rng.choice([t, f"é{t}", t - t % 7])
        value = json.dumps({"features": x, "id": name}, ensure_ascii=False).encode()
        features.append((time, value if t % 11 else b"{"))
        delay = rng.choice([-1500, 0, 300, 4000, 15_000, 30_000])
        label = {"id": rng.choice([name] * 9 + ["nobody's"]), "label": sum(map(len, x)) % 2 == 0}
        if t % 5 == 0:
            label["weight"] = 0.5
        at = time + delay + rng.randrange(900)
        labels += [(at, json.dumps(label).encode())] * rng.choice([0, 1, 1, 1, 1, 2])
        if t % 13 == 0:
            labels.append((time, b'{"label": true}'))
    return features, sorted(labels, key=lambda one: one[0] + rng.randrange(3000))
