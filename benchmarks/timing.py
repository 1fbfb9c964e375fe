"""Contenders that take turns: medians, spread, and ratios within a round."""

from __future__ import annotations

import copy
import gc
import random
import statistics
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import track

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    Figure = dict[str, float]
    Example = tuple[dict[Any, float], Any]


def progress(items: Iterable[Any], label: str) -> Iterable[Any]:
    """Show how far a loop has come, on a terminal."""
    console = Console(stderr=True)
    return track(
        list(items), label, transient=True, console=console, disable=not console.is_terminal
    )


def mistakes(model: Any, examples: Iterable[Example]) -> int:
    """Predict each example, then learn it; return how many predictions are wrong."""
    predict, learn = model.predict_one, model.learn_one
    wrong = 0
    for x, y in examples:
        wrong += predict(x) != y
        learn(x, y)
    return wrong


def probabilities(
    model: Any, examples: Iterable[Example]
) -> Iterator[tuple[Any, Any, dict[Any, float]]]:
    """Yield each label, its prediction and its probabilities, then learn the example."""
    for x, y in examples:
        yield y, model.predict_one(x), model.predict_proba_one(x)
        model.learn_one(x, y)


class Timed(NamedTuple):
    """What is timed, and over how many examples.

    `start` does what must not be timed, such as copying a model, and returns what is.
    """

    start: Callable[[], Callable[[], object]]
    count: int


def on_copies(model: Any, run: Callable[[Any], object], count: int) -> Timed:
    """Time what is done with a model, each time with a fresh copy of it."""

    def start() -> Callable[[], object]:
        copied = copy.deepcopy(model)
        return lambda: run(copied)

    return Timed(start, count)


def on_examples(model: Any, examples: Sequence[Example]) -> Timed:
    """Time a model that predicts and learns examples, each time with a fresh copy of it."""
    return on_copies(model, lambda one: mistakes(one, examples), len(examples))


def filled(model: Any, examples: Iterable[Example], size: int) -> Iterator[Example]:
    """Learn under random labels until a model has so many supports; return what is left over."""
    rng, rest = random.Random(0), iter(examples)
    while model.n_supports < size:
        x, _ = next(rest, (None, None))
        if x is None:
            name = type(model).__name__
            raise SystemExit(f"after all examples {name} holds {model.n_supports}, not {size}")
        model.learn_one(x, rng.random() < 0.5)
    return rest


def steps(model: Any, examples: Iterable[Example]) -> tuple[float, float]:
    """Microseconds of a prediction, and of learning its opposite: medians over the examples."""
    predict, learn, clock = model.predict_one, model.learn_one, time.perf_counter
    predictions, updates = [], []

    def run() -> None:
        for x, _ in examples:
            start = clock()
            predicted = predict(x)
            middle = clock()
            learn(x, not predicted)
            updates.append(clock() - middle)
            predictions.append(middle - start)

    seconds(run)
    return 1e6 * statistics.median(predictions), 1e6 * statistics.median(updates)


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Slope of the logarithms: 1 is proportional, 0 does not grow."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def seconds(function: Callable[[], object]) -> float:
    """Processor time of one call, garbage collected before and not during it.

    Everything here runs in one thread, so on an idle machine that is the wall time; on cores that
    are shared with others it leaves out the time that they were given.
    """
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        function()
        return time.process_time() - start
    finally:
        gc.enable()


def figure(values: Sequence[float]) -> Figure:
    """Median and spread of a figure."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


class Times(dict[str, list[float]]):
    """Microseconds per example of each contender, in every round."""

    def microseconds(self, name: str) -> Figure:
        """Median and spread over the rounds."""
        return figure(self[name])

    def ratio(self, above: str, below: str) -> Figure:
        """Median and spread of the ratios within each round."""
        return figure([a / b for a, b in zip(self[above], self[below], strict=True)])


def take_turns(contenders: Mapping[str, Timed], rounds: int, label: str) -> Times:
    """Time every contender once a round, forwards and backwards in turn."""
    times = Times({name: [] for name in contenders})
    for _, name in progress(turns(contenders, rounds), label):
        contender = contenders[name]
        times[name].append(1e6 * seconds(contender.start()) / contender.count)
    return times


def turns(names: Iterable[str], rounds: int) -> list[tuple[int, str]]:
    """Round and name of each turn.

    Examples
    --------
    >>> from benchmarks.timing import turns
    >>> turns("ab", 2)
    [(0, 'a'), (0, 'b'), (1, 'b'), (1, 'a')]
    """
    names = list(names)
    return [(k, name) for k in range(rounds) for name in order_of(k, names)]


def order_of(k: int, names: list[str]) -> list[str]:
    """Order of the contenders in round `k`."""
    return names[::-1] if k % 2 else names
