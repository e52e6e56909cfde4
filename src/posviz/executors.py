"""Where a batch runs: in this process, in processes of this machine, or on a Dask cluster. All are Executors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any

from posviz.errors import PosvizError

CONNECT_SECONDS = 5  # a scheduler that is there answers at once


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
def executor(jobs: int | None, figures: int, scheduler: str | None = None) -> Iterator[tuple[Executor, int]]:
    """An executor for so many figures, and how many jobs it runs at a time.

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
    count = jobs or helpful(figures)
    if count == 1:
        yield Here(), 1
        return
    from posviz.processes import Processes

    with Processes(count, threads=max(1, cores() // count)) as pool:
        yield pool, count


def helpful(figures: int) -> int:
    """As many processes as make so many figures quicker: none starts for fewer than two figures."""
    return max(1, min(cores(), figures // 2))


def cores() -> int:
    """The cores that this process may use, which a container or a cluster's queue may have limited."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def _dask(address: str) -> Iterator[tuple[Executor, int]]:
    try:
        import distributed
    except ImportError:
        raise PosvizError("--scheduler needs Dask; install it with: pip install 'posviz[cluster]'") from None
    try:
        client: Any = distributed.Client(address, timeout=CONNECT_SECONDS)  # type: ignore[no-untyped-call]
    except (OSError, TimeoutError, ValueError) as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise PosvizError(
            f"no Dask scheduler answers at {address} ({why}); expected something like tcp://HOST:8786"
        ) from None
    try:
        yield client.get_executor(pure=False), max(1, sum(client.nthreads().values()))
    finally:
        client.close()
