"""Time of predict_one + learn_one per example, through the dict API, beside peers and the floor.

Every contender learns the first part of a stream, until the budgets are full; then copies of it
predict and learn the last part, in turns, several times.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Literal

from river import evaluate, metrics

from benchmarks import peers
from benchmarks.data import Missing, Stream, adults, digits, stories
from benchmarks.timing import (
    Contender,
    figure,
    mistakes,
    on_examples,
    prequential,
    progress,
    take_turns,
)
from benchmarks.twins import check
from drift.kernels import RBF, Linear, Polynomial
from drift.models import LBP, RBP, SPA, Forgetron, Perceptron

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.scenarios import Settings
    from drift.kernels import Kernel

BUDGETS = (100, 300, 1000, 2000)
#: Rows that are timed in a round.
TIMED = {"rcv1": 4_000, "newswire": 4_000, "a9a": 4_000, "mnist": 2_000}
#: Rows that peers learn first which take a millisecond or more, and rows that they are timed on.
SLOW_LEARNT, SLOW_TIMED = 300, 20
PREFIX = 1500


def kernels(gamma: float, *, raw: bool = False) -> dict[str, Kernel | None]:
    """The three kernels by their contenders' names, on rows of unit norm except for a raw RBF."""
    rows: Literal["rows"] = "rows"
    rbf = RBF(gamma) if raw else RBF(gamma, rows)
    return {"poly4": Polynomial(normalize=rows), "linear": Linear(rows), "rbf": rbf}


def models(
    chosen: dict[str, Kernel | None], budgets: tuple[int, ...]
) -> dict[str, Callable[[], Any]]:
    """What makes each of drift's contenders, by name."""
    made: dict[str, Callable[[], Any]] = {}
    for label, k in chosen.items():
        made[f"Perceptron {label}"] = lambda k=k: Perceptron(kernel=k)
        made[f"SPA {label}"] = lambda k=k: SPA(kernel=k)
        for b in budgets:
            made[f"RBP {label} B={b}"] = lambda k=k, b=b: RBP(b, kernel=k, seed=1)
            made[f"LBP {label} B={b}"] = lambda k=k, b=b: LBP(b, kernel=k)
            made[f"Forgetron {label} B={b}"] = lambda k=k, b=b: Forgetron(b, kernel=k)
    return made


def rcv1(settings: Settings) -> dict[str, Any]:
    """Stories of 77 words, which are of unit norm: the default kernel is that of such rows."""
    stream = stories(settings.pick(20_000, 5_000))
    return measure(settings, stream, kernels(2.0) | {"poly4": None}, BUDGETS)


def a9a(settings: Settings) -> dict[str, Any]:
    """Persons of 14 features out of 123; the kernel is that of Orabona, Keshet and Caputo."""
    stream = adults(settings.pick(32_561, 6_000))
    return measure(settings, stream, kernels(0.04, raw=True), BUDGETS)


def mnist(settings: Settings) -> dict[str, Any]:
    """Images of 150 pixels out of 784."""
    stream = digits(settings.pick(60_000, 6_000))
    return measure(settings, stream, kernels(1.0), (*BUDGETS, 5000))


def measure(
    settings: Settings, stream: Stream, chosen: dict[str, Kernel | None], budgets: tuple[int, ...]
) -> dict[str, Any]:
    """Every contender on one stream."""
    makers = models(chosen, budgets)
    checked = check(stream.part(0, settings.pick(PREFIX, 500)), makers)
    split = len(stream) - settings.pick(TIMED[stream.name], 1_000)
    learnt, timed = stream.part(0, split), list(stream.part(split))
    ready = learnt_models(peers.LINEAR | makers, learnt)
    most = ready["SPA poly4"].n_supports  # SPA has no budget: RBP gets as large a one
    ready |= learnt_models(
        {"RBP poly4 B=as SPA": lambda: RBP(most, chosen["poly4"], seed=1)}, learnt
    )
    contenders = {name: on_examples(model, timed) for name, model in ready.items()}
    for b in budgets:
        contenders[f"floor B={b}"] = peers.floor(ready[f"RBP poly4 B={b}"], timed)
    slow, skipped = slow_peers(stream, split, chosen["rbf"])
    times = take_turns(contenders | slow, settings.pick(7, 3), f"{stream.name}: rounds")
    errors = {
        name: mistakes(copy.deepcopy(model), timed) / len(timed) for name, model in ready.items()
    }
    return {
        "stream": {"name": stream.name, "learnt": split, "timed": len(timed)},
        "checked": checked,
        "skipped": skipped,
        "table": [_row(name, times, ready.get(name), errors.get(name)) for name in times],
        "figures": _figures(times, ready, budgets),
    }


def learnt_models(makers: dict[str, Callable[[], Any]], learnt: Stream) -> dict[str, Any]:
    """Every contender after the first part of the stream.

    Where the names are the columns' numbers drift learns the matrix, which is the same to the last
    bit; River's linear models, whose time does not depend on it, learn the last 5,000 rows.
    """
    ready: dict[str, Any] = {}
    as_matrix = learnt.names[0] == 0
    examples = list(learnt.part(max(0, len(learnt) - 5_000)) if as_matrix else learnt)
    for name, make in progress(makers.items(), "learning"):
        ready[name] = make()
        if as_matrix and name not in peers.LINEAR:
            ready[name].learn_many(learnt.X, learnt.y)
        else:
            prequential(ready[name], examples)
    return ready


def slow_peers(stream: Stream, split: int, rbf: Any) -> tuple[dict[str, Contender], dict[str, str]]:
    """Peers with states that are not copied: they continue learning from round to round."""
    before, rows = stream.part(split - SLOW_LEARNT, split), stream.part(split)
    examples = list(rows.part(0, 1_000))
    result: dict[str, Contender] = {}
    skipped: dict[str, str] = {}

    def enter(name: str, count: int, make: Callable[[], Callable[[], object]]) -> None:
        try:
            timed = make()
        except Missing as missing:
            skipped[name] = str(missing)
        else:
            result[name] = Contender(lambda: timed, count)

    def river() -> Callable[[], object]:
        model = peers.river_sampler(rbf.gamma)
        prequential(model, list(before.part(0, 50)))
        return lambda: prequential(model, examples[:SLOW_TIMED])

    def vowpal(name: str, count: int) -> Callable[[], object]:
        peer = peers.VowpalWabbit(peers.VW[name])
        peer.run(list(before))
        return lambda: peer.run(examples[:count])

    def scikit(sampler: str, size: int, count: int) -> Callable[[], object]:
        peer = peers.ScikitLearn(sampler, rbf.gamma, before)
        peer.run(peers.blocks(before, 100))
        pieces = peers.blocks(rows.part(0, count), size)
        return lambda: peer.run(pieces)

    enter("River RBFSampler(100) + LogisticRegression", SLOW_TIMED, river)
    enter("VW linear", 1_000, lambda: vowpal("VW linear", 1_000))
    enter("VW --ksvm", SLOW_TIMED, lambda: vowpal("VW --ksvm", SLOW_TIMED))
    for sampler in ("RBFSampler", "Nystroem"):
        name = f"scikit-learn {sampler}(300) + SGDClassifier"
        enter(f"{name}, one by one", 100, lambda s=sampler: scikit(s, 1, 100))  # type: ignore[misc]
        enter(f"{name}, blocks of 100", 1_000, lambda s=sampler: scikit(s, 100, 1_000))  # type: ignore[misc]
    return result, skipped


def _row(name: str, times: Any, model: Any, error: float | None) -> dict[str, Any]:
    size = getattr(model, "_raw_memory_usage", None)
    budget = name.rpartition("B=")[2] if "B=" in name else "1000"
    beside = f"floor B={budget}" if f"floor B={budget}" in times else "floor B=1000"
    return {
        "contender": name,
        "us": times.microseconds(name),
        "x floor": times.ratio(name, beside)["median"],
        "LR / it": times.ratio(peers.REFERENCE, name)["median"],
        "error": error,
        "supports": getattr(model, "n_supports", None),
        "MB": None if size is None else size / 1e6,
    }


def _figures(times: Any, ready: dict[str, Any], budgets: tuple[int, ...]) -> dict[str, Any]:
    figures = {}
    for name in ready:
        figures[f"{peers.REFERENCE} / {name}"] = times.ratio(peers.REFERENCE, name)
        budget = name.rpartition("B=")[2]
        if f"floor B={budget}" in times:
            figures[f"{name} / floor B={budget}"] = times.ratio(name, f"floor B={budget}")
    for b in budgets:
        for rival in ("LBP", "Forgetron"):
            pair = f"{rival} poly4 B={b}", f"RBP poly4 B={b}"
            figures[" / ".join(pair)] = times.ratio(*pair)
    figures["SPA poly4 / RBP poly4 B=as SPA"] = times.ratio("SPA poly4", "RBP poly4 B=as SPA")
    size = ready["RBP poly4 B=2000"]._raw_memory_usage / 1e6
    figures["megabytes of RBP poly4 B=2000"] = figure([size])
    return figures


def progressive(settings: Settings) -> dict[str, Any]:
    """River's own loop, `iter_progressive_val_score`, on the same stories."""
    stream = stories(settings.pick(20_000, 5_000))
    makers = {f"RBP poly4 B={b}": lambda b=b: RBP(b, seed=1) for b in (100, 1000, 2000)}
    checked = check(stream.part(0, settings.pick(PREFIX, 500)), makers)
    split = len(stream) - settings.pick(4_000, 1_000)
    ready = learnt_models(peers.LINEAR | makers, stream.part(0, split))
    timed = list(stream.part(split))

    def start(model: Any) -> Callable[[], object]:
        copied, metric = copy.deepcopy(model), metrics.Accuracy()
        steps = evaluate.iter_progressive_val_score(timed, copied, metric, step=1_000)
        return lambda: list(steps)

    contenders = {
        name: Contender(lambda model=model: start(model), len(timed))  # type: ignore[misc]
        for name, model in ready.items()
    }
    times = take_turns(contenders, settings.pick(9, 3), "rcv1-progressive: rounds")
    names = [f"{peers.REFERENCE} / {name}" for name in ready]
    return {
        "stream": {"name": stream.name, "learnt": split, "timed": len(timed)},
        "checked": checked,
        "table": [
            {
                "contender": name,
                "us": times.microseconds(name),
                "LR / it": times.ratio(peers.REFERENCE, name)["median"],
            }
            for name in times
        ],
        "figures": {key: times.ratio(*key.split(" / ")) for key in names},
    }
