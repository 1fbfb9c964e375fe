"""The scenarios by their permanent names, with what each measures and how long it takes."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple


class Settings(NamedTuple):
    """How much is measured."""

    quick: bool

    def pick(self, full: Any, quick: Any) -> Any:
        """Return one of two sizes."""
        return quick if self.quick else full


class Scenario(NamedTuple):
    """A scenario: the function that runs it, and about how long it takes on two cores."""

    function: str
    about: str
    seconds: int
    long: bool = False

    def run(self, settings: Settings) -> dict[str, Any]:
        """Run it; the modules load late, as what they import depends on the scenario."""
        module, _, name = self.function.partition(".")
        result: dict[str, Any] = getattr(import_module(f"{__name__}.{module}"), name)(settings)
        return result


#: A scenario that is `long` runs where it is named only.
SCENARIOS = {
    "rcv1-dicts": Scenario("dicts.rcv1", "predict + learn dicts: stories, 77 words", 90),
    "a9a-dicts": Scenario("dicts.a9a", "predict + learn dicts: persons, 14 features", 70),
    "mnist-dicts": Scenario("dicts.mnist", "predict + learn dicts: images, 150 pixels", 200),
    "rcv1-progressive": Scenario("dicts.progressive", "through iter_progressive_val_score", 15),
    "parts": Scenario("parts.parts", "where the time of an example goes", 40),
    "rcv1-arrays": Scenario("arrays.rcv1", "predict_learn_many: CSR, dicts, numpy", 20),
    "mnist-arrays": Scenario("arrays.mnist", "predict_learn_many: CSR, dense, dicts, numpy", 40),
    "dense-arrays": Scenario("arrays.dense", "rows without zeros, against sgemm", 50),
    "batches": Scenario("batches.whole", "batches of 1,000 rows against the loop", 120),
    "short-batches": Scenario("batches.short", "calls of 1, 10 and 100 rows", 30),
    "alternatives": Scenario("alternatives.alternatives", "River's models by the Tracker", 60),
    "second-order": Scenario("matrices.second_order", "updates against their BLAS calls", 15),
    "rcv1-error-time": Scenario("error_time.fast", "error and time of every model and peer", 150),
    "rcv1-error-time-slow": Scenario("error_time.slow", "that of peers above 1 ms", 900, long=True),
    "growth-budget": Scenario("growth.budget", "time and memory, B = 50 to 20,000", 35),
    "growth-nonzeros": Scenario("growth.nonzeros", "time and memory, rows of 5 to 1,000", 35),
    "growth-names": Scenario("growth.names", "memory up to 10^7 names seen", 35),
    "growth-length": Scenario("growth.length", "time and memory up to 5,000,000 examples", 60),
    "growth-supports": Scenario("supports.supports", "every model, exponents", 240, long=True),
    "float32": Scenario("float32.float32", "what float32 changes on RCV1", 60, long=True),
    "large-file": Scenario("large_file.large_file", "compare on 328 MB", 900, long=True),
    "start-up": Scenario("startup.start_up", "first prediction, checkpoint, installed size", 30),
}
