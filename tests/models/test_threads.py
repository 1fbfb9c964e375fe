"""A model used from several threads is right or raises RuntimeError; it never corrupts."""

import copy
import pickle
import random
import sys
import threading

import numpy as np
import pytest

from drift.kernels import Linear, Polynomial
from drift.models import (
    CKS,
    LBP,
    MIRA,
    MRBP,
    RBP,
    RBSOP,
    SOP,
    Averaged,
    Forgetron,
    OneVsRest,
    PassiveAggressive,
    Perceptron,
    Projectron,
    ProjectronPlusPlus,
    StructuredProjectron,
    VotedPerceptron,
)
from drift.models._base import guard
from drift.models._base.guard import IN_USE
from drift.models._store import built
from drift.models._template.binary import KernelClassifier
from drift.models._template.two_or_more import TwoOrMore
from tests.models.oracles_structured import tagging_argmax, tagging_kernel
from tests.models.streams import random_stream
from tests.models.threads import in_thread

pytestmark = pytest.mark.usefixtures("tolerance")  # on each store


class Yielding:
    """A kernel that lets other threads in while it is computed."""

    def __init__(self, inside):
        self.inside = inside

    def __call__(self, dot, a, b):
        self.inside()
        return dot


@pytest.fixture(autouse=True)
def _switch_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


class Late(guard.Guard):
    """The plain guard, before whose lock another thread's update ends."""

    def run(self, method, *args):
        self.end_the_other()
        return super().run(method, *args)


def test_an_update_is_whole_where_another_ends_just_before_its_lock():
    """Whether it is nested must be asked under the lock."""
    late, part = Late(), guard.Part()
    part.values, end, begun = [1.0], threading.Event(), threading.Event()

    def other():
        guard.Guard.run(late, late._outermost, part, lambda: begun.set() or end.wait(60))

    thread = threading.Thread(target=other)
    late.end_the_other = lambda: end.set() or thread.join()
    thread.start()
    begun.wait(60)

    def change():
        part.values[0] = 2.0
        raise KeyError

    with pytest.raises(KeyError):
        late.update(part, change)
    assert part.values == [1.0]
    assert late.update(part, lambda: 3.0) == 3.0


def test_many_parts_join_an_update_once_each():
    """By identity: to compare them one by one would take the square of their number."""
    compared = []

    @guard.undoes_itself
    class Own:
        def __init__(self):
            self.value = 0.0

        def __eq__(self, other):
            compared.append(other)
            return self is other

        def __hash__(self):
            compared.append(self)
            return 0

        def rollback_copy(self):
            return dict(vars(self))

        def start(self):
            self.n_starts = getattr(self, "n_starts", 0) + 1
            self.before = self.value

        def undo(self):
            self.value = self.before

    shared, whole = guard.Part(), guard.Part()
    shared.total = 0.0
    whole.parts = [guard.Part() for _ in range(300)]
    for part in whole.parts:
        part.own, part.same, part.shared = Own(), None, shared
        part.same = part.own

    def change():
        for part in whole.parts:
            part.own.value = 1.0
        shared.total = 1.0
        raise KeyError

    with pytest.raises(KeyError):
        built.Guard().update(whole, change)
    assert shared.total == 0.0
    assert {part.own.value for part in whole.parts} == {0.0}
    assert {getattr(part.own, "n_starts", 1) for part in whole.parts} == {1}
    assert not compared


def share_out(work, examples):
    """Have three threads work on every third example each."""
    threads = [threading.Thread(target=work, args=(examples[k::3],)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize(
    "make",
    [Perceptron, lambda: RBP(20, seed=1), lambda: LBP(20), lambda: Forgetron(20)],
    ids=["Perceptron", "RBP", "LBP", "Forgetron"],
)
def test_threads_that_learn_at_once_leave_a_sound_model(make):
    model, examples = make(), list(random_stream(300))
    learnt, refused, others = [], [], []

    def work(part):
        for x, y in part:
            try:
                model.predict_one(x)
                model.learn_one(x, y)
                learnt.append(1)
            except RuntimeError as error:
                refused.append(str(error))
            except BaseException as error:  # noqa: BLE001
                others.append(error)

    share_out(work, examples)
    assert not others
    assert set(refused) <= {IN_USE}
    assert len(learnt) + len(refused) == len(examples)
    assert model.n_updates == model.n_mistakes <= len(examples)
    supports = model.supports
    assert (
        len(supports) == model.n_supports == min(model.n_updates, getattr(model, "budget", 10**9))
    )
    twin = copy.deepcopy(model)
    for x, y in examples[:50]:
        assert model.decision_function_one(x) == twin.decision_function_one(x)
        model.learn_one(x, y)
        twin.learn_one(x, y)
    assert model.supports == twin.supports


def test_another_thread_is_kept_out_of_an_update():
    model = Perceptron(Polynomial(2))
    update, errors = model._update, []

    def slow(x, sign, score):
        errors.append(in_thread(lambda: model.predict_one({"a": 1.0})))
        errors.append(in_thread(lambda: model.learn_one({"a": 1.0}, True)))
        errors.append(in_thread(lambda: copy.deepcopy(model)))
        update(x, sign, score)

    model._update = slow
    model.learn_one({"b": 2.0}, True)
    assert [str(error) for error in errors] == [IN_USE] * 3
    assert in_thread(lambda: model.predict_one({"a": 1.0})) is None
    assert model.supports == [({"b": 2.0}, 1.0)]


def test_an_update_that_fails_lets_others_in_again():
    model = Perceptron()
    model._update = lambda x, sign, score: 1 / 0
    with pytest.raises(ZeroDivisionError):
        model.learn_one({"a": 1.0}, True)
    assert in_thread(lambda: model.predict_one({"a": 1.0})) is None


@pytest.mark.parametrize("way", ["predict", "one", "many"])
def test_a_kernel_that_uses_the_model_gets_an_error(way):
    def inside():
        if not errors:
            errors.append(None)
            errors[0] = in_thread(lambda: model.decision_function_one({0: 5.0}))

    errors = [None]
    model = Perceptron(Yielding(inside))
    model.learn_one({0: 1.0}, True)
    errors.clear()
    scores = {
        "predict": lambda: model.predict_one({0: 3.0}),
        "one": lambda: model.decision_function_one({0: 3.0}),
        "many": lambda: model.decision_function_many(np.array([[3.0]])),
    }
    try:
        score = scores[way]()
    except RuntimeError as error:
        errors.append(error)
    else:
        assert score == {"predict": True}.get(way, 3.0)
    assert [str(error) for error in errors if error] == [IN_USE]  # one of the two, not both
    assert model.decision_function_one({0: 3.0}) == 3.0


#: Models whose predictions or updates take several calls into a store, or that have none.
MODELS = {
    "VotedPerceptron": VotedPerceptron,
    "PassiveAggressive": PassiveAggressive,
    "SOP": SOP,
    "RBSOP": lambda: RBSOP(10, seed=1),
    "CKS": lambda: CKS(10),
    "Projectron": Projectron,
    "ProjectronPlusPlus": ProjectronPlusPlus,
    "MIRA": lambda: MIRA(budget=10, cache="fixed"),
    "MRBP": lambda: MRBP(10, seed=1),
    "OneVsRest-shared": lambda: OneVsRest(RBP(10, seed=1)),
    "OneVsRest-apart": lambda: OneVsRest(SOP()),
    "OneVsRest-Averaged": lambda: OneVsRest(Averaged(SOP())),
    "Averaged": lambda: Averaged(PassiveAggressive()),
    "Averaged-MIRA": lambda: Averaged(MIRA()),
    "Structured": lambda: StructuredProjectron(tagging_kernel, tagging_argmax),
}
SEVERAL = ["PassiveAggressive", "ProjectronPlusPlus", "MIRA", "MRBP", "Averaged", "Averaged-MIRA"]
CASES = [(name, 2) for name in MODELS if name != "Structured"]
CASES += [(name, 3) for name in [*SEVERAL, *(name for name in MODELS if "OneVsRest" in name)]]


def examples_of(name, classes, n=150):
    rng = random.Random(1)
    if name == "Structured":
        for _ in range(n // 5):
            y = tuple(rng.choice("abc") for _ in range(3))
            yield tuple((float(label == "a"), rng.random()) for label in y), y
        return
    for k, (x, y) in enumerate(random_stream(n)):
        yield x, y if classes == 2 else "none" if k % 3 else f"{y}"


def notes_changes_alone(model, classes):
    """Whether other examples are learnt by a call into the store, and nothing else."""
    several = isinstance(model, VotedPerceptron) or (isinstance(model, TwoOrMore) and classes > 2)
    return isinstance(model, KernelClassifier) and not several


def note_what_is_learnt(model, classes):
    """List of the examples that a model learns, or that change its hypothesis, in their order.

    Noted by a hook that runs while other threads are kept out.
    """
    hook = "_predict_learn"
    if isinstance(model, StructuredProjectron):
        hook = "_rival"
    elif isinstance(model, Averaged):
        hook = "_learn_and_calibrate"
    elif notes_changes_alone(model, classes):
        hook = "_should_update"
    learn, learnt = getattr(model, hook), []

    def noted(*arguments):
        y = arguments[1] > 0.0 if hook == "_should_update" else arguments[-1]
        learnt.append((arguments[0], y))
        return learn(*arguments)

    setattr(model, hook, noted)
    return learnt


def outputs(model, x, classes):
    """All that can be asked about an example."""
    if isinstance(model, StructuredProjectron):
        y = model.predict_one(x)
        return y, model.decision_function_one(x, y)
    shown = model.predict_one(x), model.decision_function_one(x)
    return shown if notes_changes_alone(model, classes) else (*shown, model.predict_proba_one(x))


@pytest.mark.covering(1)
@pytest.mark.parametrize(("name", "classes"), [*CASES, ("Structured", 3)])
def test_threads_leave_what_one_thread_would_have_learnt_in_that_order(name, classes):
    model, examples = MODELS[name](), list(examples_of(name, classes))
    learnt, refused, others = note_what_is_learnt(model, classes), [], []

    def attempt(action):
        try:
            action()
        except RuntimeError as error:
            refused.append(str(error))
        except BaseException as error:  # noqa: BLE001
            others.append(error)

    def work(part):
        for x, y in part:
            attempt(lambda x=x: outputs(model, x, classes))
            attempt(lambda x=x, y=y: model.learn_one(x, y))
            attempt(lambda: model.n_supports)

    share_out(work, examples)
    assert not others
    assert set(refused) <= {IN_USE}
    assert learnt
    twin = MODELS[name]()
    for x, y in learnt:
        twin.learn_one(x, y)
    assert (model.n_mistakes, model.n_supports) == (twin.n_mistakes, twin.n_supports)
    for x, y in examples[:20]:
        assert outputs(model, x, classes) == outputs(twin, x, classes)
        model.learn_one(x, y)
        twin.learn_one(x, y)


@pytest.mark.parametrize("name", ["MIRA", "OneVsRest-apart", "Averaged", "Structured"])
def test_the_second_thread_gets_an_error(name):
    model, (x, y) = MODELS[name](), next(examples_of(name, 3))
    guard, errors = model._guard, []
    guard.acquire()
    errors.append(in_thread(lambda: outputs(model, x, 3)))
    errors.append(in_thread(lambda: model.learn_one(x, y)))
    if name != "Structured":
        errors.append(in_thread(lambda: model.learn_many([x], [y])))
        errors.append(in_thread(lambda: model.predict_many([x])))
        errors.append(in_thread(lambda: model.predict_proba_many([x])))
        errors.append(in_thread(lambda: model.decision_function_many([x])))
    guard.release()
    assert {str(error) for error in errors} == {IN_USE}
    assert in_thread(lambda: model.learn_one(x, y)) is None


def test_a_batch_is_learnt_without_others_in_between():
    model, errors = Perceptron(Linear()), []
    update = model._update

    def slow(x, sign, score):
        update(x, sign, score)
        model._guard.release()  # as if there were none between two rows
        errors.append(in_thread(lambda: model.learn_one({5: 1.0}, False)))
        model._guard.acquire()

    model._update = slow
    model.learn_many(np.eye(3), [True, True, True])
    assert [str(error) for error in errors] == [IN_USE] * 3
    assert len(model.supports) == 3


def test_a_guard_is_no_part_of_the_state():
    model = OneVsRest(SOP())
    before = pickle.dumps(model)
    model.predict_one({"a": 1.0})
    assert pickle.dumps(model) == before


def test_the_models_of_several_classes_under_threads():
    model, examples = OneVsRest(RBP(10, seed=1)), list(random_stream(90))
    for k, (x, _) in enumerate(examples[:9]):
        model.learn_one(x, k % 3)
    errors = []

    def work(part):
        for x, y in part:
            try:
                model.learn_one(x, int(y))
            except RuntimeError as error:
                errors.append(str(error))

    threads = [threading.Thread(target=work, args=(examples[k::2],)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(errors) <= {IN_USE}
    assert all(len(binary.supports) <= 10 for binary in model.models.values())


def test_another_thread_is_kept_out_between_rows_that_are_skipped():
    X = np.random.default_rng(1).normal(size=(60, 4))
    y = [int(k) for k in X.argmax(axis=1)]
    model = OneVsRest(Perceptron())
    model.learn_many(X[:30], y[:30])
    learn, errors = model._predict_learn, []

    def slow(x, label):
        errors.append(in_thread(lambda: model.learn_one({0: 1.0}, "new")))
        return learn(x, label)

    supports = model.n_supports
    model._predict_learn = slow
    model.learn_many(X[30:], y[30:])
    del model._predict_learn
    assert errors
    assert {str(error) for error in errors} == {IN_USE}
    assert "new" not in model.models
    assert model.n_supports > supports
    assert in_thread(lambda: model.learn_one({0: 1.0}, "new")) is None
