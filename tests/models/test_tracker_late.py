"""Tickets: with late labels, in any order or missing, gates learn from the scores at prediction."""

import copy
import pickle
import random
from collections import deque
from functools import cache
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import evaluate, metrics
from river.preprocessing import StandardScaler

from drift.models import Threshold, Tracker, compiled, tracker
from drift.models._state.codec import decode, encode
from drift.models._tracker import tables
from drift.models._tracker import tickets as ticket_module
from drift.models._tracker.names import hash_of
from drift.models._tracker.reference_core import TrackerCore
from drift.models._tracker.tickets import Tickets
from tests.models.oracles import near
from tests.models.streams import random_stream
from tests.models.tracker_cores import outputs, same_slots, same_state
from tests.models.tracker_streams import ALL


def events(stream, delay, seed=None):
    """Examples to be predicted, and labels that come so many later; with a seed in any order.

    Then one in ten labels never comes, and one example in ten is predicted twice.
    """
    rng, waiting = random.Random(seed), deque()
    for x, y in stream:
        yield x, None
        if seed is not None and rng.random() < 0.1:
            yield x, None
        if seed is None or rng.random() < 0.9:
            waiting.append((x, y))
        while len(waiting) > delay:
            if seed is not None:
                waiting.rotate(rng.randrange(len(waiting)))
            yield waiting.popleft()
    yield from waiting


def follow(model, stream):
    """Probabilities of what is predicted."""
    shown = []
    for x, y in stream:
        if y is None:
            shown.append(model.predict_proba_one(x))
        else:
            model.learn_one(x, y)
    return shown


# --- the cores ----------------------------------------------------------------------------------


@pytest.mark.covering(1)
@pytest.mark.skipif(not compiled, reason="there is one core")
@pytest.mark.parametrize(("delay", "seed"), [(0, None), (7, None), (40, None), (7, 1), (40, 2)])
@pytest.mark.parametrize(
    "stream", ["drifting", "late classes", "growing", "gaps", "text", "jumps", "degenerate"]
)
def test_the_cores_agree(stream, delay, seed):
    core = Tracker(6, seed=9, late=True, trees=seed == 1)._core
    cores = core, TrackerCore(core.plan, "auto", 9)
    steps = list(events(islice(ALL[stream](), 110), delay, seed))
    for t, (x, y) in enumerate(steps):
        if y is None:
            (_, chances), (_, theirs) = (outputs(core, x) for core in cores)
            assert near(dict(enumerate(chances)), dict(enumerate(theirs)), 1e-5), f"step {t}"
            continue
        for core in cores:
            core.learn(x, y, 1.0)
        if not same_slots(cores):
            assert t >= 0.9 * len(steps)
            return
    same_state(cores)
    first, other = (core.state()["tickets"] for core in cores)
    for name in ("keys", "numbers", "sizes"):
        assert first[name].tolist() == other[name].tolist()
    assert first["stride"] == other["stride"]
    assert first["n_predicted"] == other["n_predicted"]


# --- what a ticket is ---------------------------------------------------------------------------


@cache
def learnt_by(core, n, late):  # noqa: ARG001 - a cache for each core
    model = Tracker(5, late=late)
    for x, y in random_stream(n):
        model.learn_one(x, y)
    return pickle.dumps(model)


def learnt(n=30, *, late=True):
    return pickle.loads(learnt_by(tracker.TrackerCore, n, late))


@pytest.mark.usefixtures("core")
def test_a_prediction_changes_nothing_unless_labels_are_late():
    x = {"f1": 0.5, "f7": 0.1}
    for late in (False, True):
        model = learnt(late=late)
        before = pickle.dumps(model)
        model.predict_one(x)
        model.predict_proba_one(x)
        assert (pickle.dumps(model) == before) != late


@pytest.mark.usefixtures("core")
def test_predictions_in_a_row_are_one_ticket_and_later_another():
    model, x = learnt(), {"f1": 0.5, "f7": 0.1}
    model.predict_proba_one(x)
    model.predict_one(dict(reversed(x.items())))
    model.predict_proba_many([x])
    assert len(model._core.tickets) == 1
    model.predict_one({"f1": 0.25})
    model.predict_one(x)
    assert len(model._core.tickets) == 3
    for left in (2, 1, 1):
        model.learn_one(x, True)
        assert len(model._core.tickets) == left
    model.learn_one({"f1": 0.25, "absent": None}, False)
    assert not len(model._core.tickets)


def examples(rng, *, sparse):
    """An example of few values, so that some come again; at times with a name that is new."""
    if sparse:
        return {f"n{rng.randrange(400)}": 1.0 for _ in range(5)}
    x = {name: rng.choice([0.0, 1.0, 2.5]) for name in "ab"}
    if rng.random() < 0.1:
        x[f"new{rng.randrange(9)}"] = rng.random()
    return x


@pytest.mark.usefixtures("core")
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(s, marks=pytest.mark.slow) for s in (2, 3))])
def test_who_only_looks_changes_nothing_of_what_comes(seed):
    rng = random.Random(seed)
    sparse = seed % 2 == 1
    model, looked_at = Tracker(8, late=True), Tracker(8, late=True)
    waiting = []
    for _ in range(60):
        again = waiting and rng.random() < 0.5
        x = waiting[-1] if again else examples(rng, sparse=sparse)
        for _ in range(rng.choice([0, 0, 1, 2])):
            asked = examples(rng, sparse=sparse)
            before = encode(looked_at) if rng.random() < 0.1 else None
            output = looked_at.answer_one(asked, ticket=False)
            assert output == looked_at.answer_one(dict(asked), ticket=False)
            if before is not None:
                assert encode(looked_at) == before
                encode(model)  # what is stored ends the row
            with pytest.raises(TypeError):
                looked_at.answer_one({"a": "text"}, ticket=False)
        if rng.random() < 0.6 or not waiting:
            assert model.answer_one(x) == looked_at.answer_one(x)
            waiting.append(x)
        else:
            x, y = waiting.pop(rng.choice([0, -1])), rng.random() < 0.5
            model.learn_one(dict(x), y)
            looked_at.learn_one(dict(x), y)
    assert encode(model) == encode(looked_at)


@pytest.mark.usefixtures("core")
def test_a_prediction_without_a_ticket_equals_the_one_with_it():
    model = learnt()
    x = {"f1": 0.5, "f7": 0.1}
    assert model.answer_one(x, ticket=False) == model.answer_one(x)
    assert len(model._core.tickets) == 1


@pytest.mark.usefixtures("core")
def test_an_example_without_a_ticket_teaches_the_members_alone():
    model, x = learnt(), {"f1": 0.5, "f7": 0.1}
    model.predict_one(x)
    before = model._core.arrays()
    model.learn_one({"f2": 0.5, "f5": 0.3}, True)
    after = model._core.arrays()
    for name in ("gates", "covariances", "maps", "errors", "losses", "means"):
        assert after[name].tolist() == before[name].tolist()
    assert after["linear"].tolist() != before["linear"].tolist()
    model.learn_one(x, True)
    assert model._core.arrays()["gates"].tolist() != before["gates"].tolist()


@pytest.mark.usefixtures("core")
def test_an_example_enters_the_running_means_once_and_when_it_is_predicted():
    model, rows = Tracker(5, late=True), [{"a": float(t % 5)} for t in range(30)]
    model.learn_one(rows[0], 0)
    for x in rows[1:]:
        model.predict_one(x)
        model.predict_one(x)
    seen = model._core.arrays()["means"]
    for t, x in enumerate(rows[1:]):
        model.learn_one(x, t % 2)
    assert model._core.arrays()["means"].tolist() == seen.tolist()
    expected = np.zeros((3, 2))
    for x in rows:
        expected += (np.array([x["a"], 1.0]) - expected) / np.array([[8.0], [32.0], [128.0]])
    assert seen[0] == pytest.approx(expected)


@pytest.mark.usefixtures("core")
@pytest.mark.parametrize("weight", [None, 1.0, 0.5, 0])
@pytest.mark.parametrize("late", [False, True])
def test_what_is_predicted_and_learnt_at_once_leaves_no_ticket(late, weight):
    one, other, x = learnt(late=late), learnt(late=late), {"f1": 0.5, "f7": 0.1}
    given = {} if weight is None else {"w": weight}
    for model in (one, other):
        model.predict_one(x)
        model.predict_one({"f2": 0.25})
    output = pickle.loads(pickle.dumps(one)).predict_one(x)
    assert one.predict_learn_one(x, not output, **given) == output
    other.learn_one(x, not output, **given)
    assert pickle.dumps(one) == pickle.dumps(other)
    assert not late or len(one._core.tickets) == 1 + (weight == 0)


@pytest.mark.usefixtures("core")
def test_a_label_of_weight_0_leaves_the_ticket():
    model, x = learnt(), {"f1": 0.5}
    model.predict_one(x)
    before = pickle.dumps(model)
    model.learn_one(x, True, 0)
    assert pickle.dumps(model) == before


@pytest.mark.usefixtures("core")
def test_a_label_that_is_refused_leaves_the_ticket(monkeypatch):
    model, x = learnt(), {"f1": 0.5}
    model.predict_one(x)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="label"):
        model.learn_one(x, None)
    monkeypatch.setattr("drift.models._tracker.room.memory", lambda: 0)
    with pytest.raises(ValueError, match="no memory"):
        model.learn_one(x, "a third class")
    assert pickle.dumps(model) == before


@pytest.mark.usefixtures("core")
def test_batches_are_noted_and_learnt_as_rows_are():
    X = np.array([[0.5, 1.0, 0.0], [0.25, 0.0, 2.0], [1.0, 1.0, 1.0]])
    one, many = Tracker(5, late=True), Tracker(5, late=True)
    for x in X:
        one.predict_one(dict(enumerate(x.tolist())))
    many.predict_many(X)
    assert pickle.dumps(one) == pickle.dumps(many)
    for x, y in zip(X, "aba", strict=True):
        one.learn_one(dict(enumerate(x.tolist())), y)
    many.learn_many(X, list("aba"))
    assert pickle.dumps(one) == pickle.dumps(many)
    assert not len(many._core.tickets)


# --- tickets by name ----------------------------------------------------------------------------


@pytest.mark.usefixtures("core")
def test_a_named_ticket_does_what_one_found_by_content_does():
    by_content, by_name = Tracker(5, late=True), Tracker(5, late=True)
    names = iter(["a", 7, ("a", 7), 2.5, *range(100, 200)])
    named = {}
    for x, y in events(islice(ALL["drifting"](), 40), 7, seed=3):
        key = str(x)
        if y is None:
            named[key] = named.get(key) or next(names)
            outputs_of = [by_content.answer_one(x), by_name.answer_one(x, named[key])]
            assert outputs_of[0] == outputs_of[1]
        else:
            by_content.learn_one(x, y, 0.5)
            by_name.learn_one(x, y, 0.5, ticket=named[key])
    states = [model._core.state() for model in (by_content, by_name)]
    assert len({str(sorted(state["tickets"]["numbers"].tolist())) for state in states}) == 1
    for state in states:
        del state["tickets"]["keys"]
    assert pickle.dumps(states[0]) == pickle.dumps(states[1])


@pytest.mark.usefixtures("core")
def test_a_named_ticket_is_found_although_the_features_have_changed():
    seen, changed, late = learnt(), learnt(), {"f1": 2.5, "f3": 1.0}
    for model in (seen, changed):
        assert model.predict_one({"f1": 0.5}, ticket="a") == model.predict_one({"f1": 0.5})
    seen.learn_one({"f1": 0.5}, True, ticket="a")
    changed.learn_one(late, True, ticket="a")
    one, other = seen._core.arrays(), changed._core.arrays()
    for name in ("maps", "errors", "losses"):  # which learn from the ticket's scores alone
        assert one[name].tolist() == other[name].tolist()
    assert one["linear"].tolist() != other["linear"].tolist()
    assert len(changed._core.tickets) == 1  # of the second prediction, which has no name


@pytest.mark.usefixtures("core")
def test_equal_examples_have_a_ticket_by_name():
    model, x = learnt(), {"f1": 0.5}
    for name in (1, "1", (1,), 2):
        model.predict_proba_one(x, ticket=name)
        model.predict_one(x, ticket=name)  # again in a row: the same ticket
    tickets = model._core.tickets
    for count, name, left in ((3, "1", 1), (2, 2.0, 1), (2, 2, (1,)), (1, np.int64(1), (1,))):
        model.learn_one(x, True, ticket=name)
        assert (len(tickets), tickets.find(hash_of(left)) is not None) == (count, True)


@pytest.mark.usefixtures("core")
def test_false_leaves_no_ticket_and_takes_none():
    model, x = learnt(), {"f1": 0.5}
    before = pickle.dumps(model)
    assert model.predict_one(x, ticket=False) == (model.predict_proba_one(x, False)[True] > 0.5)
    assert pickle.dumps(model) == before
    model.predict_one(x)
    waiting = model._core.arrays()
    model.learn_one(x, True, ticket=False)
    assert len(model._core.tickets) == 1
    assert model._core.arrays()["gates"].tolist() == waiting["gates"].tolist()


class Nameless:
    def __repr__(self):
        raise ZeroDivisionError


@pytest.mark.usefixtures("core")
def test_a_name_that_raises_changes_nothing():
    model, x = learnt(), {"f1": 0.5}
    model.predict_one(x)
    before = pickle.dumps(model)
    expected = [model.predict_proba_one({"f1": a}, ticket=False) for a in (0.5, 0.25)]
    for act in (model.predict_one, model.predict_proba_one, model.answer_one):
        with pytest.raises(ZeroDivisionError):
            act({"f1": 0.25}, ticket=Nameless())
    with pytest.raises(ZeroDivisionError):
        model.learn_one({"f1": 0.25}, True, ticket=Nameless())
    assert pickle.dumps(model) == before
    assert [model.predict_proba_one({"f1": a}, ticket=False) for a in (0.5, 0.25)] == expected


@pytest.mark.skipif(not compiled, reason="there is one core")
@pytest.mark.parametrize("seed", range(4))
def test_the_cores_agree_on_names(seed):
    rng = random.Random(seed)
    core = Tracker(6, seed=9, late=True, trees=False)._core
    cores = core, TrackerCore(core.plan, "auto", 9)
    for t in range(120):
        x = examples(rng, sparse=seed == 3)
        ticket = rng.choice([True, False, 0, 1, 2, "a"])
        if rng.random() < 0.6:
            for _ in range(rng.randrange(1, 3)):
                (_, one), (_, other) = (
                    one.peek(x) if ticket is False else (one.read(x, ticket), one.score())[1]
                    for one in cores
                )
                assert near(dict(enumerate(one)), dict(enumerate(other)), 1e-5), f"step {t}"
        else:
            y = rng.random() < 0.3
            for one in cores:
                one.learn(x, y, 1.0, ticket)
        assert same_slots(cores)
    first, other = (core.state()["tickets"] for core in cores)
    assert first["keys"].tolist() == other["keys"].tolist()
    assert first["numbers"].tolist() == other["numbers"].tolist()


def scaled(n):
    """Examples, and a pipeline that changes their features until the label comes."""
    model = StandardScaler() | Tracker(3, late=True, kernels=(0,), trees=False)
    return model, [({"a": float(t % 7)}, t % 2 == 0) for t in range(n)]


@pytest.mark.usefixtures("core")
def test_labels_that_find_no_ticket_are_warned_of(monkeypatch):
    monkeypatch.setattr(ticket_module, "_MISSED", 40)
    model, stream = scaled(60)
    with pytest.warns(RuntimeWarning, match="the same ticket") as caught:
        evaluate.progressive_val_score(stream, model, metrics.Accuracy(), delay=5)
    assert len(caught) == 1
    model, stream = scaled(60)
    named = [(x, y, {"ticket": i}) for i, (x, y) in enumerate(stream)]
    evaluate.progressive_val_score(named, model, metrics.Accuracy(), delay=5)
    assert not len(model["Tracker"]._core.tickets)


@pytest.mark.usefixtures("core")
def test_labels_of_tickets_that_went_with_the_scale_are_not_warned_of(monkeypatch):
    monkeypatch.setattr(ticket_module, "_MISSED", 20)
    model = Tracker(3, late=True, kernels=(0,))
    follow(model, events(islice(ALL["text"](), 100), 50))
    assert model._core.sparse


@pytest.mark.usefixtures("core")
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_pipeline_passes_tickets_on(wrapped):
    plain, stream = scaled(30)
    model = Threshold(plain) if wrapped else plain
    for i, (x, _) in enumerate(stream):
        model.predict_one(x, ticket=i)
        model.predict_proba_one(x, ticket=i)
        if i >= 4:
            model.learn_one(*stream[i - 4], ticket=i - 4)
    assert len(plain["Tracker"]._core.tickets) == 4


# --- copies, and what is stored -----------------------------------------------------------------


@pytest.mark.compiled
@pytest.mark.parametrize("stream", ["drifting", "late classes", "growing", "text"])
def test_copies_continue_bit_for_bit_from_within_the_delay(stream):
    steps = list(events(islice(ALL[stream](), 100), 12, seed=3))
    one = Tracker(6, seed=9, late=True)
    follow(one, steps[:120])
    copies = [
        pickle.loads(pickle.dumps(one)),
        copy.deepcopy(one),
        one.clone(include_attributes=True),
        decode(encode(one)),
    ]
    expected = follow(one, steps[120:])
    for other in copies:
        assert follow(other, steps[120:]) == expected
        assert encode(other) == encode(one)


STORED = {
    "pickled": lambda model: pickle.loads(pickle.dumps(model)),
    "copied": copy.deepcopy,
    "cloned": lambda model: model.clone(include_attributes=True),
    "in a checkpoint": lambda model: decode(encode(model)),
    "gone on with": lambda model: (encode(model), model)[1],
}
#: Few examples, so that equal ones wait; one has a name that the others have not.
FEW = [{"a": 0.5, "b": 1.0}, {"a": -1.0}, {"a": 0.5, "b": 2.0}, {"a": 0.5, "c": 1.0}]
STEPS = st.tuples(
    st.sampled_from(["predict", "predict", "ask again", "learn", "learn", "at once", "refused"]),
    st.integers(0, len(FEW) - 1),
    st.booleans(),
    st.sampled_from([None, None, *STORED]),
)


@pytest.mark.usefixtures("core")
@given(st.lists(STEPS, min_size=5, max_size=40), st.sampled_from([1 << 20, 3000]))
def test_when_a_model_is_stored_changes_nothing_even_among_equal_examples(steps, room):
    models = [Tracker(3, late=True), Tracker(3, late=True)]
    for model in models:
        model._core.tickets.most = room
        for y, x in enumerate(FEW):
            model.learn_one(x, y)
    for kind, k, y, how in steps:
        shown = []
        for model in models:
            if kind == "learn":
                model.learn_one(FEW[k], y)
            elif kind == "at once":
                shown.append(model.predict_learn_one(FEW[k], y, 0 if y else 1))
            elif kind == "refused":
                with pytest.raises(ValueError, match="a"):
                    model.predict_one({"a": float("inf")})
            else:
                shown.append(model.predict_proba_one(FEW[k]))
                if kind == "ask again":
                    shown.append(model.predict_one(FEW[k]))
        assert shown[: len(shown) // 2] == shown[len(shown) // 2 :]
        if how is not None:
            models[1] = STORED[how](models[1])
            models[1]._core.tickets.most = room
    assert encode(models[0]) == encode(models[1])


TICKETS_FORGED = {
    "none": lambda _: None,
    "a part less": lambda own: {k: v for k, v in own.items() if k != "keys"},
    "keys of another type": lambda own: own | {"keys": own["keys"].astype(np.int64)},
    "a key less": lambda own: own | {"keys": own["keys"][1:]},
    "two without a number": lambda own: own | {"numbers": own["numbers"][:-1]},
    "numbers out of order": lambda own: own | {"numbers": own["numbers"][::-1].copy()},
    "a number too large": lambda own: own | {"n_predicted": int(own["numbers"][-1]) - 1},
    "a number twice": lambda own: own | {"numbers": _changed(own["numbers"], 1, own["numbers"][0])},
    "no rows": lambda own: own | {"tickets": _without_rows(own)},
    "bytes behind the last": lambda own: own | {"tickets": np.append(own["tickets"], np.uint8(0))},
    "a size too large": lambda own: own | {"sizes": own["sizes"] + 1},
    "a size below a head": lambda own: own | {"sizes": own["sizes"] * 0},
    "no stride": lambda own: own | {"stride": 0},
    "an age of nan": lambda own: own | {"longest_delay": float("nan")},
    "more rows than there are": lambda own: own | {"tickets": _changed(own["tickets"], 0, 9)},
    "fewer deviations": lambda own: own | {"tickets": _changed(own["tickets"], 4, 0)},
    "scores of nan": lambda own: own | {"tickets": _changed(own["tickets"], slice(8, 12), 255)},
}


def _without_rows(own):
    head = np.array([0, (own["sizes"][0] - 8) // 4], np.int32)
    return _changed(own["tickets"], slice(8), head.view(np.uint8))


def _changed(data, where, value):
    data = data.copy()
    data[where] = value
    return data


@pytest.mark.usefixtures("core")
@pytest.mark.parametrize("forge", TICKETS_FORGED.values(), ids=TICKETS_FORGED)
def test_forged_tickets_are_refused(forge):
    model = learnt()
    for x, _ in random_stream(5):
        model.predict_one(x)
    state = model.__getstate__()
    state["_core"] = state["_core"] | {"tickets": forge(state["_core"]["tickets"])}
    with pytest.raises(ValueError, match=r"inconsistent: .*(tickets|number)"):
        Tracker.__new__(Tracker).__setstate__(state)


# --- room ---------------------------------------------------------------------------------------

OVERHEAD = ticket_module._OVERHEAD
SIZE = 100 + OVERHEAD


def test_when_tickets_are_full_every_second_one_goes():
    tickets = Tickets(10 * SIZE)
    for key in range(11):
        tickets.put(key, bytes(100))
    assert [tickets.find(key) is not None for key in range(11)] == [bool(k % 2) for k in range(11)]
    assert (tickets.size, tickets.stride) == (5 * SIZE, 2)
    tickets.put(11, bytes(100))  # the 12th
    tickets.put(12, bytes(100))
    assert (tickets.find(11) is None, tickets.find(12) is None) == (False, True)


def test_where_it_is_enough_that_old_tickets_go_the_others_stay():
    tickets = Tickets(10 * SIZE)
    tickets.longest_delay = 2.0
    for key in range(11):
        tickets.put(key, bytes(100))
    assert [key for key in range(11) if tickets.find(key)] == [6, 7, 8, 9, 10]
    assert tickets.stride == 1


def test_the_stride_is_halved_once_a_quarter_of_the_room_is_enough():
    tickets = Tickets(16 * SIZE)
    for key in range(17):
        tickets.put(key, bytes(100))
    assert (len(tickets), tickets.stride) == (8, 2)
    for key in range(1, 9, 2):
        tickets.settle(key)
    tickets.put(17, bytes(100))  # five wait: the 18th is even
    assert (len(tickets), tickets.stride) == (5, 2)
    for key in (9, 11):
        tickets.settle(key)
    tickets.put(18, bytes(100))
    tickets.put(19, bytes(100))
    assert (len(tickets), tickets.stride) == (4, 2)
    tickets.settle(13)
    tickets.settle(15)
    tickets.put(20, bytes(100))
    tickets.put(21, bytes(100))
    assert (len(tickets), tickets.stride) == (3, 1)


def waiting(*keys):
    tickets = Tickets()
    for n, key in enumerate(keys, 1):
        tickets.put(key, n.to_bytes(2, "little"))
    return tickets


def test_the_longest_delay_is_the_number_of_predictions_since():
    tickets = waiting(*range(8))
    tickets.settle(0)
    assert tickets.longest_delay == 7.0
    tickets.settle(7)  # a shorter one: it decays
    assert tickets.longest_delay == 7.0 * tables.DELAY_DECAY
    tickets.settle("none")  # perhaps its ticket went too early
    assert tickets.longest_delay == 7.0 * tables.DELAY_DECAY * tables.DELAY_GROWTH
    for _ in range(99):
        tickets.settle("none")
    assert tickets.longest_delay == 8.0  # no ticket is older
    tickets.longest_delay, tickets.stride = 5.0, 2
    tickets.settle("none")  # every second prediction has none
    assert tickets.longest_delay == 5.0


def test_a_label_that_comes_far_too_late_counts_for_twice_the_delay_and_a_few():
    tickets = waiting(*range(1001))
    tickets.settle(990)
    assert tickets.longest_delay == 10.0
    tickets.settle(0)
    assert tickets.longest_delay == 84.0


def test_of_equal_examples_the_one_as_old_as_labels_are_is_served_and_older_ones_go():
    tickets = waiting("a", "b", "a", "a", "a", "c")
    tickets.settle("b")  # it was 4 old
    for age, (served, left) in {2.25: (4, 1), 3.25: (3, 2), 5.25: (1, 3)}.items():
        tickets.longest_delay = age
        copied = tickets.copy()
        assert copied.find("a") == served.to_bytes(2, "little")
        copied.settle("a")
        assert len(copied) == left + 1
        assert copied.longest_delay == age  # several tell no delay
        assert copied.size == len(copied) * (2 + OVERHEAD)


def test_the_nearest_is_served_and_of_two_equally_near_the_older():
    tickets = waiting("a", "b", "a", "c", "a", "d")
    tickets.longest_delay = 2.0
    assert tickets.find("a") == bytes([3, 0])
    tickets.longest_delay = 0.5  # all are older
    assert tickets.find("a") == bytes([5, 0])


def test_a_copy_has_later_tickets_of_its_own():
    tickets = waiting("a", "a", "a")
    tickets.copy().put("a", b"later")
    assert tickets._others["a"] == [(2, bytes([2, 0])), (3, bytes([3, 0]))]


def test_before_the_first_label_the_first_of_equal_examples_is_served():
    tickets = waiting("a", "b", "a", "a")
    assert tickets.find("a") == bytes([1, 0])
    tickets.settle("a")
    assert (tickets.longest_delay, len(tickets)) == (3.0, 3)


@pytest.mark.parametrize("lost", [0.0, 0.01, 0.05, 0.2])
@pytest.mark.parametrize("contents", [2, 12, 10**9])
def test_labels_find_their_own_tickets_although_others_are_lost(contents, lost):
    """Of examples that come again and again; and what waits follows the delay."""
    rng, delay, tickets, log = random.Random(1), 50, Tickets(), []
    for t in range(3_000):
        log.append(rng.randrange(contents))
        tickets.put(log[t], t.to_bytes(2, "little"))
        if t >= delay and rng.random() >= lost:
            assert tickets.find(log[t - delay]) == (t - delay).to_bytes(2, "little")
            tickets.settle(log[t - delay])
        assert len(tickets) <= 4 * delay + 65
    assert tickets.longest_delay == delay


def test_old_tickets_go_at_twice_the_delay():
    tickets = waiting(0)
    for key in range(1, 400):  # one label in two comes, 20 later
        tickets.put(key, bytes(100))
        if key >= 20 and key % 2 == 0:
            tickets.settle(key - 20)
        kept = [k for k in range(1, key + 1, 2) if tickets.find(k) is not None]
        if not tickets.find(1):
            break
    assert kept == [k for k in range(1, key + 1, 2) if k >= key - 40]


def test_a_delay_that_grows_is_followed():
    """Tickets that went too early would else be missed for good."""
    tickets, found = Tickets(), 0
    for t in range(6_000):
        tickets.put(t, bytes(1))
        delay = 10 if t < 1_000 else 500
        if t >= delay:
            found = found + 1 if tickets.find(t - delay) else 0
            tickets.settle(t - delay)
    assert found > 1_000
    assert tickets.longest_delay == 500.0


@given(st.lists(st.integers(0, 5), max_size=60), st.integers(2, 12))
def test_tickets_stay_within_their_bound_and_come_in_their_order(keys, room):
    tickets, put = Tickets(room * SIZE), []
    for t, key in enumerate(keys):
        if key and tickets.find(key):
            assert tickets.find(key) in put
            tickets.settle(key)
        tickets.put(key, t.to_bytes(100, "little"))
        put.append(t.to_bytes(100, "little"))
        assert tickets.size == len(tickets) * SIZE <= tickets.most
    again = Tickets.restored(tickets.state())
    assert {k: repr(v) for k, v in again.state().items()} == {
        k: repr(v) for k, v in tickets.state().items()
    }
    for key in range(6):
        actual = []
        while (ticket := tickets.find(key)) is not None:
            actual.append(ticket)
            tickets.settle(key)
        assert actual == sorted(actual, key=lambda one: int.from_bytes(one, "little"))


# --- what it is for -----------------------------------------------------------------------------


def late_error(*, late, shuffled=False, n=1_500, delay=40):
    """Errors in percent; the label is whether a random walk is above its recent mean."""
    rng = np.random.default_rng(0)
    walk = np.cumsum(rng.normal(size=n)) + 100.0
    mean = np.convolve(walk, np.ones(30) / 30, "full")[:n]
    rows = [
        ({"a": a, "b": b}, bool(a > m))
        for a, b, m in zip(walk, rng.normal(size=n), mean, strict=True)
    ]
    if shuffled:
        random.Random(0).shuffle(rows)
    model, waiting, wrong = Tracker(20, late=late), deque(), 0
    for t, (x, y) in enumerate(rows):
        wrong += t >= 500 and model.predict_one(x) != y
        waiting.append((x, y))
        if len(waiting) > delay:
            model.learn_one(*waiting.popleft())
    return 100 * wrong / (n - 500)


@pytest.mark.compiled
def test_it_pays_where_time_is_in_the_features_and_only_there():
    assert late_error(late=True) < 0.6 * late_error(late=False)
    assert late_error(late=True, shuffled=True) > 25.0
