"""The same records on a Dask and on a Ray cluster, of two workers each on this machine."""

import importlib
import sys
from collections import Counter

import numpy as np
import pytest
from click.testing import CliRunner

from drift.cli import app
from drift.errors import MissingExtraError, ParameterError
from drift.experiments import Problem, RunFolder, run_all, track
from drift.experiments.reproduction import ModelSpec, run_of

#: Nothing listens at the discard port.
NOBODY = "127.0.0.1:9"


@pytest.fixture
def trials(documents):
    problem = Problem(documents, "a", documents.head(60))
    return [
        run_of(ModelSpec("RBP", {"budget": b}), problem, i, seed=i)
        for b in (5, 20)
        for i in range(3)
    ]


def timeless(records):
    """Records without what differs from run to run."""
    times = ("seconds", "test_seconds")
    states = [
        [{k: v for k, v in state.items() if k not in times} for state in record["by_epoch"]]
        for record in records
    ]
    kept = [{k: v for k, v in record.items() if k not in times} for record in records]
    return [record | {"by_epoch": by} for record, by in zip(kept, states, strict=True)]


@pytest.fixture
def dask_address():
    """One whose workers are threads, reached by TCP like processes, which take seconds to start."""
    distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
    two = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    two |= {"processes": False, "protocol": "tcp"}
    with distributed.LocalCluster(**two) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def ray_address():
    pytest.importorskip("ray", reason="the extra ray is not installed")
    cluster_utils = importlib.import_module("ray.cluster_utils")
    head = {"num_cpus": 2, "include_dashboard": False}
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args=head)
    yield cluster.address
    cluster.shutdown()


def test_dask_gives_the_same_records_and_is_sent_the_data_once(trials, dask_address, monkeypatch):
    distributed = sys.modules["distributed"]
    sent = Counter()
    scatter = distributed.Client.scatter

    def spy(self, data, *arguments, **settings):
        sent[id(data)] += isinstance(data, np.ndarray)
        return scatter(self, data, *arguments, **settings)

    monkeypatch.setattr(distributed.Client, "scatter", spy)
    records = run_all(trials, backend="dask", address=dask_address)
    assert timeless(records) == timeless(run_all(trials, jobs=1))
    assert sum(sent.values()) > 0
    assert set(sent.values()) == {1}


@pytest.mark.slow  # it takes half a minute to start
def test_ray_gives_the_same_records_and_is_sent_the_data_once(trials, ray_address, monkeypatch):
    ray = sys.modules["ray"]
    sent = Counter()
    put = ray.put

    def spy(value, **settings):
        sent[id(value)] += isinstance(value, np.ndarray)
        return put(value, **settings)

    monkeypatch.setattr(ray, "put", spy)
    records = run_all(trials, backend="ray", address=ray_address)
    assert timeless(records) == timeless(run_all(trials, jobs=1))
    assert sum(sent.values()) > 0
    assert max(sent.values()) == 1
    assert not ray.is_initialized()


@pytest.mark.slow  # a cluster of processes, as above
def test_dask_without_an_address_is_a_cluster_of_this_machine(tmp_path):
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    arguments = ["track", "--rows", "160", "--shifts", "1", "--models", "LBP", "--budgets", "10"]
    arguments += ["--backend", "dask", "--jobs", "2", "--output", str(tmp_path)]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0, shown.stderr
    alone = track(rows=160, shifts=[1], models=["LBP"], budgets=[10], jobs=1)
    (row,) = alone.rows("table")
    assert f"{row['error']:.2f} ± {row['error_std']:.2f}" in shown.stdout


def test_nothing_is_started_for_nothing(tmp_path, trials, monkeypatch):
    folder = RunFolder(tmp_path)
    done = run_all(trials, folder=folder, jobs=1)
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert run_all(trials, folder=folder, backend="dask") == done


@pytest.mark.parametrize(("backend", "package"), [("dask", "distributed"), ("ray", "ray")])
def test_a_missing_extra_is_named(trials, monkeypatch, backend, package):
    monkeypatch.setitem(sys.modules, package, None)
    message = rf'{package} is not installed: pip install "\.\[{backend}\]"'
    with pytest.raises(MissingExtraError, match=message):
        run_all(trials, backend=backend)


def test_a_scheduler_that_does_not_answer(trials, monkeypatch):
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    monkeypatch.setattr("drift.experiments.cluster._PATIENCE", 0.2)
    message = f"no Dask scheduler answers at 'tcp://{NOBODY}'.* after 0.2 s"
    with pytest.raises(ParameterError, match=message):
        run_all(trials, backend="dask", address=f"tcp://{NOBODY}")


def test_a_scheduler_without_workers(trials, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
    monkeypatch.setattr("drift.experiments.cluster._PATIENCE", 0.2)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0") as cluster,
        pytest.raises(ParameterError, match="has no worker: start one, dask worker tcp://"),
    ):
        run_all(trials, backend="dask", address=cluster.scheduler_address)


@pytest.mark.parametrize("address", [NOBODY, f"ray://{NOBODY}"])
def test_a_ray_cluster_that_does_not_answer(trials, address):
    pytest.importorskip("ray", reason="the extra ray is not installed")
    with pytest.raises(ParameterError, match=f"no Ray cluster answers at '{address}'"):
        run_all(trials, backend="ray", address=address)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--backend", "spark"], "error: --backend cannot be 'spark': choose among loky"),
        (["--address", NOBODY], "error: backend loky runs on this machine and has no use for"),
    ],
)
@pytest.mark.parametrize("command", [["track"], ["reproduce", "projectron-synthetic"]])
def test_what_cannot_be_a_backend_is_refused(command, options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = CliRunner().invoke(app, [*command, "--rows", "100", *options])
    assert shown.exit_code == 2
    assert shown.stderr.startswith(message)
