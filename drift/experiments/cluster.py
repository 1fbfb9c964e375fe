"""Where runs are computed: on this machine, or on a Dask or a Ray cluster, each through joblib."""

from __future__ import annotations

import logging
import os
import socket
from contextlib import contextmanager, nullcontext, suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs, parallel_config

from drift._checks import check_names
from drift.errors import ParameterError, needing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

__all__ = ["BACKENDS", "backend", "gathered", "refuse"]

#: Names that `backend` takes.
BACKENDS = ("loky", "dask", "ray")
#: Seconds that a cluster is given to answer, and a Dask one to have a worker.
_PATIENCE = 5.0
#: Runs of a round on Ray, for each of its cores.
_ROUND = 4


def gathered(tasks: Iterable[Any], name: str, jobs: int) -> Iterator[Any]:
    """Results of joblib's delayed calls as they come, inside of `backend`.

    Ray's pool gives none before all are there, so it is given a few at a time: they come in rounds.
    """
    if name != "ray":
        yield from Parallel(n_jobs=jobs, return_as="generator_unordered")(tasks)
        return
    waiting = _shipped(tasks)
    with Parallel(n_jobs=jobs) as parallel:  # one pool for all rounds
        while few := list(islice(waiting, _ROUND * effective_n_jobs(jobs))):
            yield from parallel(few)


def _shipped(tasks: Iterable[Any]) -> Iterator[Any]:
    """Calls whose arrays are in Ray's object store, each once, in place of the arrays themselves.

    Ray's pool does so for joblib before 1.5 alone.
    """
    ray = _imported_ray()
    stored: dict[int, Any] = {}
    kept = []  # as long as an array is there, its id is no other's
    for function, arguments, _ in tasks:
        sent = []
        for argument in arguments:
            if isinstance(argument, np.ndarray) and id(argument) not in stored:
                stored[id(argument)] = ray.put(argument)
                kept.append(argument)
            sent.append(stored.get(id(argument), argument))
        yield delayed(_fetching)(function, *sent)


def _fetching(function: Callable[..., Any], *sent: Any) -> Any:
    ray = _imported_ray()
    return function(
        *(ray.get(value) if isinstance(value, ray.ObjectRef) else value for value in sent)
    )


def refuse(name: str, address: str | None) -> None:
    """Raise ParameterError for no backend, or for an address that it has no use for."""
    check_names("no backend", [name], BACKENDS)
    if name == "loky" and address is not None:
        raise ParameterError(
            f"backend loky runs on this machine and has no use for the address {address!r}: "
            "choose dask or ray, or leave the address out"
        )


def backend(name: str, address: str | None, jobs: int) -> AbstractContextManager[None]:
    """Have joblib run on a backend, and leave the cluster afterwards.

    Parameters
    ----------
    name
        One of `BACKENDS`.
    address
        Of the cluster; None: the one that this process is connected to, else one of this machine,
        which is stopped afterwards.
    jobs
        Processes of a cluster of this machine; -1: one for each core.

    Raises
    ------
    MissingExtraError
        The extra of that name is not installed.
    ParameterError
        Nothing answers at the address.
    """
    if name == "loky":
        return nullcontext()
    return _dask(address, jobs) if name == "dask" else _ray(address, jobs)


@contextmanager
def _dask(address: str | None, jobs: int) -> Iterator[None]:
    with needing("distributed", "dask"):
        import distributed  # noqa: PLC0415 - optional
    connected: Any = None
    if address is None:
        with suppress(ValueError):  # this process has no client
            connected = distributed.get_client()
    client = connected or _client(distributed, address, jobs)
    try:
        with parallel_config("dask", client=client):
            yield
    finally:
        if connected is None:
            client.close()
            if address is None:
                client.cluster.close()


def _client(distributed: Any, address: str | None, jobs: int) -> Any:
    if address is None:
        # One thread each, as times are a process's; and a free port, as another call may have 8787.
        cluster = distributed.LocalCluster(
            n_workers=os.cpu_count() if jobs < 0 else jobs,
            threads_per_worker=1,
            dashboard_address=":0",
        )
        return distributed.Client(cluster, set_as_default=False)
    try:
        client = distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise _unreachable("Dask scheduler", address, error) from error
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
    except TimeoutError as error:
        client.close()
        raise ParameterError(
            f"the Dask scheduler at {address!r} has no worker: start one, dask worker {address}"
        ) from error
    return client


def _imported_ray() -> Any:
    with needing("ray", "ray"):
        import ray.util.joblib  # noqa: PLC0415 - optional
    return ray


@contextmanager
def _ray(address: str | None, jobs: int) -> Iterator[None]:
    ray = _imported_ray()
    connected = address is None and ray.is_initialized()
    if not connected:
        _connect(ray, address, jobs)
    ray.util.joblib.register_ray()
    try:
        with parallel_config("ray"):
            yield
    finally:
        if not connected:
            ray.shutdown()


def _connect(ray: Any, address: str | None, jobs: int) -> None:
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.WARNING}
    if address is None:
        ray.init(num_cpus=None if jobs < 0 else jobs, include_dashboard=False, **quiet)
        return
    try:
        _knock(address)
        ray.init(address=address, **quiet)
    except (OSError, ValueError, RuntimeError) as error:
        raise _unreachable("Ray cluster", address, error) from error


def _knock(address: str) -> None:
    """See whether anything listens, before Ray's own client waits for it."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=_PATIENCE).close()


def _unreachable(what: str, address: str, error: Exception) -> ParameterError:
    return ParameterError(
        f"no {what} answers at {address!r} ({type(error).__name__}: {error}): "
        "give the address that it printed when it started"
    )
