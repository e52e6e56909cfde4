"""Where a batch runs: in this process, in processes of this machine, or on a Dask cluster. All are Executors."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from concurrent.futures import TimeoutError as FutureTimeoutError  # another class before Python 3.11
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from posviz.awaited import meanwhile
from posviz.errors import PosvizError

FEW_THREADS = 4  # of each process: so many more than cores cost a batch of many models 3%, and save one model 7%
CONNECT_SECONDS = 5  # a scheduler that is there answers at once
MOST_PROCESSES = 16  # unless more are asked for: each holds libraries and a model of its own in memory
CLUSTER_WIDTH = 16  # jobs for a cluster to hold, at least: it may grow when it sees them


@dataclass(frozen=True)
class Place:
    """Somewhere to run jobs."""

    executor: Executor
    width: int  # how many jobs it works on at a time
    folder: Path | None = None  # where all its processes can leave something for each other
    lost: Callable[[], str | None] = lambda: None  # why it will never answer, if so


class Here(Executor):
    """Runs each job at once, in this process: for a single job, and for debugging."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@contextmanager
def place(jobs: int | None, figures: int, scheduler: str | None = None) -> Iterator[Place]:
    """Where so many figures are drawn.

    `jobs` is the number of processes, None as many as help; `scheduler` the address of a Dask cluster instead.
    """
    if jobs is not None and jobs < 1:
        raise PosvizError(f"--jobs is {jobs}; expected 1 or more")
    if scheduler is not None:
        if jobs is not None:
            raise PosvizError("--jobs and --scheduler were given; a cluster has its own number of workers")
        with _dask(scheduler) as cluster:
            yield cluster
        return
    count = min(jobs or helpful(figures), figures)
    if count == 1:
        yield Place(Here(), 1)
        return
    from posviz.processes import Processes

    # One process often runs a model while the others wait for its figures; threads that wait do not spin.
    threads = max(cores() // count, min(cores(), FEW_THREADS))
    with (
        tempfile.TemporaryDirectory(prefix="posviz-", ignore_cleanup_errors=True) as folder,
        Processes(count, threads) as pool,
    ):
        yield Place(pool, count, Path(folder))


def helpful(figures: int) -> int:
    """As many processes as make so many figures quicker: starting one costs about as much as drawing a figure."""
    return max(1, min(cores(), (figures + 1) // 2, MOST_PROCESSES))


def cores() -> int:
    """The cores that this process may use, which a container or a cluster's queue may have limited."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def _dask(address: str) -> Iterator[Place]:
    try:
        client = _connect(address).result(timeout=CONNECT_SECONDS + 2)
    except (OSError, TimeoutError, FutureTimeoutError, ValueError) as error:
        why = " ".join(str(error).split()) or "something else seems to"
        raise PosvizError(
            f"no Dask scheduler answers at {address} ({why}); expected something like tcp://HOST:8786"
        ) from None
    gone = f"the Dask scheduler at {address} is gone"
    width = max(CLUSTER_WIDTH, sum(client.nthreads().values()))
    with _quiet():
        try:
            executor = client.get_executor(pure=False)
            yield Place(executor, width, lost=lambda: None if client.status == "running" else gone)
        finally:
            client.close(timeout=1)


def _connect(address: str) -> Future[Any]:
    """A client, in time: Dask itself waits for ever for what is no scheduler, its own web page for one."""
    try:
        import distributed
    except ImportError:
        raise PosvizError("--scheduler needs Dask; install it with: pip install 'posviz[cluster]'") from None
    return meanwhile(lambda: distributed.Client(address, timeout=CONNECT_SECONDS))  # type: ignore[no-untyped-call]


@contextmanager
def _quiet() -> Iterator[None]:
    """What Dask has to say goes to its own logs: that stacks are large, and what it tries when a connection breaks."""
    import dask

    names = [name for name in logging.root.manager.loggerDict if name.startswith(("distributed", "asyncio", "tornado"))]
    speaking = [logger for logger in map(logging.getLogger, names) if not logger.disabled]
    for logger in speaking:
        logger.disabled = True
    try:
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GiB"}):
            yield
    finally:
        for logger in speaking:
            logger.disabled = False
