"""How the whole suite is run, and fixtures for it."""

import gc
import itertools
import os
import random
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from drift.models import compiled

# `.ci/night` has --hypothesis-profile=night, whose examples are others each time.
# Neither minds how long drawing takes, which tells of what else the machine is doing.
ANY_SPEED = dict(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("drift", **ANY_SPEED, derandomize=True, max_examples=10)
settings.register_profile("night", **ANY_SPEED, max_examples=500, print_blob=True)
settings.load_profile("drift")

# Where a test does not say how many, experiments run in its own process: the others keep the cores
# busy already, and each that joblib starts takes seconds to import what it needs.
os.environ.setdefault("LOKY_MAX_CPU_COUNT", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # of scikit-learn's trees, which wait for each other
# Python keeps what it compiled: else each worker, and each process that a test starts, compiles
# drift and the tests anew, a tenth of all.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect tests without the garbage collector, which takes as long and finds nothing."""
    gc.disable()
    result = yield
    gc.freeze()  # Nor are tests and libraries looked through again while tests run.
    gc.enable()
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """Run folders on all cores, and single files or tests in this process, by default."""
    option = config.option
    chosen = getattr(option, "numprocesses", 0) is not None  # 0: there is no pytest-xdist
    if chosen or option.usepdb or hasattr(config, "workerinput"):
        return
    if all(map(os.path.isdir, config.args)):
        # One more than cores: tests of consumers wait for brokers and for processes. Each further
        # one takes five seconds to collect all tests.
        option.numprocesses = min((os.cpu_count() or 1) + 1, 8)
        if option.dist == "no":
            option.dist = "worksteal"  # whose workers start with a part each, in order


def covering(combinations, strength):
    """Choose combinations that together have all pairs of values that any has (of strength 2)."""
    parts = [set(itertools.combinations(one.items(), strength)) for one in combinations]
    order = random.Random(0).sample(range(len(parts)), len(parts))
    covered = set()
    for wanted in range(max(map(len, parts)), 0, -1):
        for i in order:
            if len(parts[i] - covered) >= wanted:
                covered |= parts[i]
                yield i


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc):
    """Leave to the fast suite, of tests marked `covering`, a sample of combinations.

    Without the extension every model is many times as slow: there a sample has every value once,
    that of any test with parameters.

    The others are slow. Where slow tests are left out, no item is made of them, as each worker
    would make them all, to drop them: they are more than half. pytest has no hook for that.
    """
    result = yield
    mark, calls = metafunc.definition.get_closest_marker("covering"), metafunc._calls
    left_out = {"slow"} if compiled else {"slow", "compiled"}
    own = {one.name for one in metafunc.definition.iter_markers()}
    fast = [one for one in calls if left_out.isdisjoint(own | {m.name for m in one.marks})]
    if fast and (mark or not compiled):
        values = [{k: repr(v) for k, v in one.params.items()} for one in fast]
        fast = [fast[i] for i in covering(values, mark.args[0] if mark and compiled else 1)]
        chosen = set(map(id, fast))
        for one in calls:
            if id(one) not in chosen:
                one.marks.append(pytest.mark.slow.mark)
    if "not slow" in metafunc.config.option.markexpr:
        metafunc._calls = fast or calls[:1]  # one is left: none would be a test without parameters
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Start the longest first, so that the last one to end is short.

    They are notebooks, and tests with a real broker, which share one process and one broker.

    Without the extension, what is marked `compiled` is left to the slow ones.
    """
    for long in ("kafka", "notebooks"):
        items.sort(key=lambda item: item.get_closest_marker(long) is None)
    for item in items:
        if not compiled and item.get_closest_marker("compiled"):
            item.add_marker("slow")


@contextmanager
def _without_rendering():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("matplotlib.figure.Figure.draw_without_rendering", lambda _: None)
        patch.setattr("matplotlib.figure.Figure.savefig", lambda _, path, **__: Path(path).touch())
        yield


@pytest.fixture
def unrendered():
    """Leave empty files of figures, which take longer to render than the rest of a test."""
    with _without_rendering():
        yield


@pytest.fixture
def undrawn():
    """The same without drawing, for experiments whose figures another test draws."""

    def write(folder, name, _):
        path = folder.path / name
        path.parent.mkdir(exist_ok=True)
        for suffix in (".png", ".svg"):
            path.with_suffix(suffix).touch()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("drift.experiments.results.Results.plot", lambda *_: None)
        patch.setattr("drift.experiments.folder.RunFolder.write_figure", write)
        yield


@pytest.fixture(scope="session")
def without_rendering():
    """`unrendered` as a context, for fixtures that several tests share."""
    return _without_rendering


@pytest.fixture(scope="session")
def drift_data():
    """Return a function from a real data set's name to its folder, which skips without."""

    def folder_of(name):
        folder = os.environ.get("DRIFT_DATA")
        if not folder:
            pytest.skip("DRIFT_DATA names no folder of real data sets")
        path = Path(folder, name)
        if not path.is_dir():
            pytest.skip(f"DRIFT_DATA={folder} has no {name}")
        return path

    return folder_of
