"""Names whose own code empties the dict that is read, or asks the model meanwhile.

Each script runs in its own process, with memory that is overwritten as soon as it is free.
What is read from there ends that process, and not the tests.
"""

import os
import subprocess
import sys
import textwrap

import pytest

from drift.models import compiled

pytestmark = pytest.mark.skipif(not compiled, reason="the plain core borrows nothing")

BEGINNING = """
    import itertools, sys
    from drift.errors import DriftError
    from drift.models import RBP, Tracker

    def texts(n=30):
        return ["".join(["name ", str(j)]) for j in range(n)]  # other objects each time

    class Name:
        def __init__(self, text):
            self.text = text
        def __hash__(self):
            return hash(self.text)
        def __repr__(self):
            return str(self.text)
        def __eq__(self, other):
            act()
            return other is self or other == self.text

    def nothing():
        pass

    act = nothing

    def begin(*case):
        global act
        act = nothing
        print(*case, file=sys.stderr)  # which it was, if the process ends

    def knows_odd_names(model):
        for y in (True, False, True):
            model.learn_one({Name(text): float(y) for text in texts()}, y)
        return model
"""

MODELS = ["Tracker(5, scale='dense')", "Tracker(5, scale='sparse')", "RBP(5)"]
CALLS = ["model.predict_one(x)", "model.learn_one(x, True)"]


def run(script):
    code = textwrap.dedent(BEGINNING) + textwrap.dedent(script)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONMALLOC": "debug"} | os.environ,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-2000:]}"


def test_a_name_that_empties_the_dict_does_no_harm():
    """Plain names and large numbers, equal to odd names that the model knows."""
    run(f"""
    for make, call in itertools.product({MODELS}, {CALLS}):
        begin(make, call)
        model = knows_odd_names(eval(make))
        for _ in range(20):
            x = {{text: 10 ** (70 + j) for j, text in enumerate(texts())}}
            act = x.clear
            try:
                eval(call)
            except DriftError:
                pass
            assert not x or "sparse" in make  # of sparse rows no names are kept
    """)


def test_what_a_name_asks_of_the_model_meanwhile_is_refused():
    """Else it would learn a row of thousands of names, and turn to others what is half read."""
    run("""
    def ask():
        for call in (
            lambda: model.learn_one(dict.fromkeys(range(5000), 1.0), True),
            lambda: model.predict_one({"other": 1.0}),
            lambda: model.predict_many([{"other": 1.0}]),
        ):
            try:
                call()
            except RuntimeError as error:
                errors.append(str(error))
    for scale, name in itertools.product(["dense", "sparse"], [Name("name 3"), "name 3"]):
        begin(scale, name)
        model = knows_odd_names(Tracker(5, scale=scale))
        errors, act = [], ask
        x = {"a": 1.0, name: 2.0, Name("b"): 1.0, Name("b" * 8): 1.0}
        before = model._core.n_learnt
        chances = model.predict_proba_one(x)
        model.learn_one(x, True)
        act = nothing
        assert model.predict_proba_one(x) != chances
        assert model._core.n_learnt == before + 1
        assert all("in use" in message for message in errors)
        assert errors or scale == "sparse"
    """)


def test_a_column_of_an_array_may_be_the_name_of_something_odd():
    run("""
    import numpy as np
    model = Tracker(5, scale="dense")
    for y in (True, False):
        model.learn_one({Name(3): 1.0, Name(2): 2.0}, y)
    errors = []
    def act():
        try:
            model.learn_one(dict.fromkeys(range(10, 500), 1.0), True)
        except RuntimeError as error:
            errors.append(str(error))
    model.learn_many(np.ones((3, 5)), [True, False, True])
    assert errors and all("in use" in message for message in errors)
    """)


def test_a_mapping_may_create_its_names_lazily():
    run("""
    class Made(dict):
        def items(self):
            return [(text, 1.0) for text in texts(40)]
    for model in (RBP(5), Tracker(5)):
        model.learn_one({"other": 1.0}, True)
        model.learn_one(Made(), False)
        support = model.supports[-1]
        assert set(texts(40)) <= set(support if isinstance(support, dict) else support[0])
    """)
