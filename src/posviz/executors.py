"""Where a batch runs: in this process, in processes of this machine, or on a Dask cluster."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

from posviz.errors import PosvizError


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
def executor(jobs: int | None, figures: int, scheduler: str | None = None) -> Iterator[Executor]:
    """An executor for so many figures; `jobs` None means as many processes as help."""
    if scheduler is not None:
        with _dask(scheduler) as cluster:
            yield cluster
        return
    if jobs is not None and jobs < 1:
        raise PosvizError(f"jobs is {jobs}; expected 1 or more")
    # Starting a process costs about as much as drawing two figures.
    count = jobs if jobs is not None else min(os.cpu_count() or 1, max(1, figures // 2))
    if count == 1:
        yield Here()
        return
    threads = max(1, (os.cpu_count() or 1) // count)
    pool = ProcessPoolExecutor(
        count, mp_context=multiprocessing.get_context("spawn"), initializer=_begin, initargs=(threads,)
    )
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _begin(threads: int) -> None:
    """Share the cores between the processes, before torch is imported."""
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))


@contextmanager
def _dask(address: str) -> Iterator[Executor]:
    try:
        import distributed
    except ImportError:
        raise PosvizError("--scheduler needs Dask; install it with: pip install 'posviz[cluster]'") from None
    try:
        client: Any = distributed.Client(address, timeout="10s")  # type: ignore[no-untyped-call]
    except (OSError, TimeoutError, ValueError) as error:
        raise PosvizError(
            f"no Dask scheduler answers at {address} ({error}); expected something like tcp://HOST:8786"
        ) from None
    try:
        yield client.get_executor(retries=3, pure=False)
    finally:
        client.close()
