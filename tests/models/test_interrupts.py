"""An update that is ended in the middle leaves the model as before the example, or as after it.

Whole to the last bit: states are compared as pickles. An exception is raised at every line that is
run, at every call of the kernel, by every allocation, and by a signal at any moment.
"""

import copy
import hashlib
import os
import pickle
import signal
import sys
import traceback
import warnings
from collections import OrderedDict, defaultdict, deque
from functools import partial
from operator import methodcaller
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import drift.models
from drift.errors import FeatureError
from drift.models import LBP, Averaged, Forgetron, OneVsRest, PassiveAggressive, Tracker
from drift.models._base.guard import Part
from drift.models._store import built
from tests.models.cases import CASES as BINARY
from tests.models.cases import canonical
from tests.models.cases_multiclass import CASES as MULTICLASS
from tests.models.streams import random_stream

pytestmark = [
    pytest.mark.usefixtures("tolerance"),
    pytest.mark.parametrize("tolerance", ["compiled-float32", "plain"], indirect=True),
]

BUDGET = 5
BINARY_MODELS = {name: partial(case.model, B=BUDGET) for name, case in BINARY.items()}
WRAPPED = {
    f"{wrapper.__name__}({name})": lambda k, make=make, wrapper=wrapper: wrapper(make(k))
    for wrapper in (OneVsRest, Averaged)
    for name, make in BINARY_MODELS.items()
}
WRAPPED["OneVsRest(Averaged)"] = lambda k: OneVsRest(Averaged(LBP(BUDGET, kernel=k)))
TRACKERS = {
    "Tracker, classes": lambda _: Tracker(BUDGET, trees=True),
    "Tracker-sparse, classes": lambda _: Tracker(BUDGET, scale="sparse"),
}
CLASSES = {f"{name}, classes": make for name, (make, _) in MULTICLASS.items()}
MODELS = BINARY_MODELS | WRAPPED | CLASSES | TRACKERS
#: What the fast suite has of them: every way of learning, every part that is not in `SupportSet`.
FAST = [
    *("RBP", "Forgetron", "VotedPerceptron", "RBSOP", "ALMA2-projected", "CKS", "ROMMA-noise"),
    *("ProjectronPlusPlus", "OneVsRest(LBP)", "OneVsRest(SOP)", "Averaged(RBP)"),
    *("OneVsRest(Averaged)", "MIRA-fixed, classes", "ProjectronPlusPlus, classes"),
    *("OneVsRest(PassiveAggressive-budget)", "PassiveAggressive-budget, classes"),
    *TRACKERS,
]
SOURCES = str(Path(drift.models.__file__).parent)
#: Between its lines the interpreter handles no signal; a tracer would raise where none can.
HANDLING = str(Path(SOURCES) / "_base" / "guard.py")


ALL = [
    *((name, 7) for name in FAST),
    *(pytest.param(name, 10**6, marks=pytest.mark.slow) for name in MODELS),
]


class Failing:
    """A kernel that raises at the k-th call of any of its copies."""

    normalize = False
    calls, at = 0, -1

    def __call__(self, dot, a, b):
        Failing.calls += 1
        if Failing.calls == Failing.at:
            raise KeyboardInterrupt
        return (1.0 + dot) ** 2


def examples(name):
    """Some thirty examples to start with, and a few to be interrupted."""
    stream = list(random_stream(45, signed=True))
    if name in BINARY or name.startswith("Averaged"):
        return stream[:30], stream[30:]
    classes = [(x, ("yes" if y else "no") if i % 3 else "else") for i, (x, y) in enumerate(stream)]
    more = dict.fromkeys("abcdefghijklmnop", 1.0)
    return classes[:30], [*classes[30:], (stream[0][0] | more, "new")]


def learnt(name, kernel=None):
    model, (begin, rest) = MODELS[name](kernel), examples(name)
    for x, y in begin:
        model.learn_one(x, y)
    return model, rest


def copier(model):
    """A function that returns copies of a model as it is; deepcopy takes many times as long."""
    return partial(pickle.loads, pickle.dumps(model))


def content(model):
    """Digest of a model's state."""
    return hashlib.sha256(canonical(model)).hexdigest()


def check_whole(model, learn, run, most):
    """Check that what is interrupted is as before or as after; return the model as after.

    `run` learns, raises KeyboardInterrupt at the k-th place, and returns the number of places, of
    which at most so many are tried.
    """
    copied = copier(model)
    after = copied()
    n_places = run(after, learn, -1)
    assert n_places
    states = [content(copied()), content(after)]
    reached = set()
    for at in range(1, n_places + 1, -(-n_places // most)):
        one = copied()
        run(one, learn, at)
        which = states.index(content(one))
        reached.add(which)
        if which == 0 and at % 5 == 0:  # and it continues as if nothing had happened
            run(one, learn, at + 1)  # is undone, too, or comes after the update
            if states.index(content(one)) == 0:
                learn(one)
            assert content(one) == states[1]
    assert 0 in reached
    return after


def at_lines(model, learn, at):
    """Raise at a line that is run in drift's models."""
    lines = 0

    def local(frame, event, _):
        nonlocal lines
        if event == "line" and frame.f_code.co_filename != HANDLING:
            lines += 1
            if lines == at:
                raise KeyboardInterrupt
        return local

    def trace(frame, _event, _argument):
        return local if frame.f_code.co_filename.startswith(SOURCES) else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        learn(model)
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return lines


def at_calls(model, learn, at):
    """Raise at a call of the kernel."""
    Failing.calls, Failing.at = 0, at
    try:
        learn(model)
    except KeyboardInterrupt:
        pass
    finally:
        Failing.at = -1
    return Failing.calls


@pytest.mark.covering(2)
@pytest.mark.parametrize("places", [at_lines, at_calls])
@pytest.mark.parametrize(("name", "most"), ALL)
def test_an_example_that_is_interrupted_is_learnt_or_not(name, most, places):
    if name in TRACKERS and places is at_calls:
        pytest.skip("it calls no kernel")
    model, rest = learnt(name, Failing() if places is at_calls else None)
    for x, y in rest[:2] + rest[-1:]:
        model = check_whole(model, partial(type(model).learn_one, x=x, y=y), places, most)


@pytest.mark.parametrize(
    "learn",
    [methodcaller("learn_one", {0: 2.0}, 1), methodcaller("learn_many", np.array([[2.0]]), [1])],
    ids=["one", "many"],
)
def test_an_example_of_a_new_kind_of_label_is_learnt_or_not(learn):
    model = LBP(BUDGET)
    model.learn_many(np.array([[1.0]]), [True])
    after = check_whole(model, learn, at_lines, 10**6)
    assert after.n_updates == 1  # it was no mistake
    assert type(after.predict_one({0: 2.0})) is int


def test_an_example_of_the_second_sign_with_a_weight_is_learnt_or_not():
    model = PassiveAggressive()
    model.learn_one({0: 1.0}, False)
    check_whole(model, methodcaller("learn_one", {0: 1.0}, True, w=5.0), at_lines, 10**6)


@pytest.mark.parametrize("name", ["RBP", "PassiveAggressive, classes", "OneVsRest(LBP)"])
@pytest.mark.parametrize("dense", [True, False])
def test_a_batch_that_is_interrupted_is_learnt_up_to_a_row(name, dense):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4)) if dense else sparse.random(50, 40, 0.2, "csr", rng=rng)
    labels = [bool(y) for y in rng.integers(2, size=50)]
    if name not in BINARY:
        labels = [f"{label}" for label in labels]
    model = MODELS[name](Failing())
    model.learn_many(X[:40], labels[:40])
    prefixes = [copy.deepcopy(model)]
    for i in range(40, 50):
        prefixes.append(copy.deepcopy(prefixes[-1]))
        prefixes[-1].learn_many(X[i : i + 1], labels[i : i + 1])
    states, reached = [*map(content, prefixes)], set()
    learn, copied = methodcaller("learn_many", X[40:], labels[40:]), copier(model)
    for places in (at_lines, at_calls):
        n_places = places(copy.deepcopy(model), learn, -1)
        for at in range(1, n_places + 1, -(-n_places // 25)):
            one = copied()
            places(one, learn, at)
            reached.add(states.index(content(one)))
    assert len(reached) > 2


def test_a_kernel_without_a_value_says_how_many_rows_are_learnt():
    def kernel(dot, *_):
        return np.where(np.abs(dot) > 500.0, np.inf, 1.0 + dot)

    model = Forgetron(1, kernel=kernel)
    with pytest.raises(FeatureError) as refused:
        model.learn_many([{"a": 1.0}, {"b": 23.0}, {"c": 1.0}], [True, False, True])
    assert refused.value.rows_learnt == 1
    assert model.n_supports == 1
    assert model.n_mistakes == model.n_updates == 1


def at_moments(model, learn, delay):
    """Raise after some microseconds, wherever that is."""

    learning = True

    def handler(*_):
        if learning:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, delay)
        learn(model)
        learning = False
    except KeyboardInterrupt:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
@pytest.mark.parametrize(
    "name", ["LBP", "RBP", "Forgetron", "Averaged(RBP)", "MRBP, classes", *TRACKERS]
)
@pytest.mark.parametrize("moments", [20, pytest.param(1_000, marks=pytest.mark.slow)])
def test_an_example_that_a_signal_interrupts_is_learnt_or_not(name, moments):
    model, rest = learnt(name)
    copied = copier(model)
    before = content(copied())
    for i in range(moments):
        x, y = rest[i % len(rest)]
        learn = methodcaller("learn_one", x, y)
        after = copied()
        learn(after)
        states = before, content(copier(after)())
        at_moments(model, learn, 1e-6 * (1 + 7 * i % 60))  # it goes on itself, no copy of it
        copied = copier(model)
        before = content(copied())
        assert before in states


def check_alone(check):
    """Run a check in a forked process: without memory, pytest-xdist's threads here would end."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of locks that threads hold
        child = os.fork()
    if child == 0:
        problem = ""
        signal.alarm(300)  # it ends, whatever waits
        try:
            check()
        except BaseException:  # noqa: BLE001 - it is for the test
            problem = traceback.format_exc()
        os.write(writer, problem.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        problem = pipe.read().decode()
    assert os.waitpid(child, 0)[1] == 0
    assert not problem, problem


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@pytest.mark.parametrize("name", ["LBP", "RBSOP", "OneVsRest(LBP)", "MRBP, classes", *TRACKERS])
def test_an_example_that_there_is_no_memory_for_is_learnt_or_not(name, tolerance):
    plain = tolerance == 1e-9
    if plain and name in TRACKERS:
        pytest.skip("without memory numpy's errstate ends the interpreter")
    if plain and sys.version_info >= (3, 12):
        pytest.skip("without memory for a traceback this interpreter never returns from Python")
    testing = pytest.importorskip("_testcapi", reason="an interpreter without its own tests")
    model, rest = learnt(name)
    cases = [(model, *next((x, y) for x, y in rest if model.predict_one(x) != y))]
    if name in TRACKERS:
        few = MODELS[name](None)  # with a third class it has a score for each
        for t in range(30):
            few.learn_one(rest[0][0], t % 2)
        cases += [(model, *rest[-1]), (few, rest[0][0], "third")]

    def check():
        for before, x, y in cases:
            copied = copier(before)
            after = copied()
            after.learn_one(x, y)
            states, reached = [content(copied()), content(after)], set()
            for allocations in range(0, 120, 3):  # that succeed, and none does after them
                one = copied()
                testing.set_nomemory(allocations, 0)
                try:
                    one.learn_one(x, y)
                except (MemoryError, SystemError):  # the latter is what numpy makes of some
                    pass
                finally:
                    testing.remove_mem_hooks()
                reached.add(states.index(content(one)))
            assert 0 in reached or (name in TRACKERS and y != "third")  # which may need none

    check_alone(check)


class Holder(Part):
    def __init__(self, value):
        self.n = 0
        self.value = value

    def change(self):
        self.n += 1


@pytest.mark.parametrize(
    "value", [deque(), bytearray(), defaultdict(int), OrderedDict(), np.zeros(2).view(np.recarray)]
)
def test_a_container_that_no_guard_copies_is_refused_before_it_changes(value):
    part = Holder(value)
    with pytest.raises(TypeError, match=rf"type {type(value).__name__}, .* use a list"):
        built.Guard().update(part, part.change)
    assert part.n == 0
