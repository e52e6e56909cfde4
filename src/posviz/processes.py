"""Processes of this machine as an Executor that outlives the death of any of them.

The standard library's pool gives up all its jobs when one process dies, does not say whose it was, and can wait for
ever if that happened in the middle of a large result. Here every process has a pipe and a thread of its own.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from posviz.errors import PosvizError
from posviz.startup import be_brisk

Job = Callable[[], Any]
IDLE_SECONDS = 0.1  # without a job: then a new process has time to get ready for one
_spawn = multiprocessing.get_context("spawn")  # a fork would copy torch's threads in an unknown state


class Processes(Executor):
    """So many processes, each with so many threads for its numbers. A job whose process dies is tried once more."""

    def __init__(self, count: int, threads: int = 1) -> None:
        self._queue: queue.SimpleQueue[tuple[Job, Future[Any]] | None] = queue.SimpleQueue()
        self._closing = False
        self._room = _Room()
        self._workers = [_Worker(threads) for _ in range(count)]
        self._keepers = [threading.Thread(target=self._keep, args=(worker,), daemon=True) for worker in self._workers]
        for keeper in self._keepers:
            keeper.start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        if self._closing:
            raise RuntimeError("no jobs are taken after shutdown")
        future: Future[Any] = Future()
        self._queue.put((partial(fn, *args, **kwargs), future))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more jobs; with `cancel_futures`, also end those under way, at once."""
        self._closing = True
        if cancel_futures:
            while not self._queue.empty():
                task = self._queue.get()
                if task is not None:
                    task[1].cancel()
            for worker in self._workers:
                worker.kill()
        for _ in self._keepers:
            self._queue.put(None)
        if wait:
            for keeper in self._keepers:
                keeper.join()

    def __exit__(self, kind: Any, *_: Any) -> None:
        self.shutdown(cancel_futures=kind is not None)

    def _keep(self, worker: _Worker) -> None:
        """Give one process its jobs, in a thread of this process."""
        if hasattr(signal, "pthread_sigmask"):  # what we start inherits this: Ctrl-C is for this process alone
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        with suppress(OSError):  # who cannot be started now is started for a job, which then says why not
            worker.start()
        while (task := self._queue.get()) is not None:
            job, future = task
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(self._do(worker, job))
            except BaseException as error:
                future.set_exception(error)
        worker.end()

    def _do(self, worker: _Worker, job: Job) -> Any:
        """A process that died was most likely killed for its memory, so the second time the job runs alone."""
        for alone in (False, True):
            with self._room.taken(alone):
                try:
                    return worker.do(job)
                except _Died as death:
                    worker.end()
                    if worker.killed:
                        raise
                    code = death.code
        raise PosvizError(
            f"its process died twice ({_cause(code)}), the second time with no other beside it; is there enough memory?"
        )


class _Died(Exception):  # noqa: N818  (what happened, not what was done wrong)
    def __init__(self, code: int | None) -> None:
        super().__init__(_cause(code))
        self.code = code


def _cause(code: int | None) -> str:
    if code is not None and code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"exit code {code}"


class _Worker:
    """One process, started again when it is needed after its death, and our end of its pipe."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self.killed = False
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None

    def do(self, job: Job) -> Any:
        """What the job returns or raises; `_Died` if the process dies of it."""
        message = pickle.dumps(job, protocol=5)  # a job that cannot be sent is no reason to start a process
        process, pipe = self.start()
        if self.killed:
            process.kill()
        try:
            pipe.send_bytes(message)
            fine, outcome = pickle.loads(pipe.recv_bytes())
        except (EOFError, OSError):
            process.join()
            raise _Died(process.exitcode) from None
        if not fine:
            raise outcome
        return outcome

    def start(self) -> tuple[BaseProcess, Connection]:
        if self._process is None or self._pipe is None:
            self._pipe, theirs = _spawn.Pipe()
            # A daemon ends with us even where nobody calls `shutdown`.
            process = _spawn.Process(target=_work, args=(theirs, self._threads), daemon=True)
            process.start()
            theirs.close()  # or its death would not end the pipe
            self._process = process
        return self._process, self._pipe

    def end(self) -> None:
        """Let go of the process: it ends when its pipe does."""
        if self._pipe is not None and self._process is not None:
            self._pipe.close()
            self._process.join()
        self._process = self._pipe = None

    def kill(self) -> None:
        """End the process at once, and any that is started later; called by another thread than the keeper's."""
        self.killed = True
        process = self._process
        if process is not None:
            process.kill()


class _Room:
    """Jobs that may run beside others, and jobs that must not."""

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._running = 0
        self._wanted_alone = 0

    @contextmanager
    def taken(self, alone: bool) -> Iterator[None]:
        with self._change:
            self._wanted_alone += alone
            self._change.wait_for(lambda: self._running == 0 if alone else not self._wanted_alone)
            self._running += 1
        try:
            yield
        finally:
            with self._change:
                self._running -= 1
                self._wanted_alone -= alone
                self._change.notify_all()


def _work(pipe: Connection, threads: int) -> None:
    """A process's life: jobs come in, outcomes go out, until the pipe is closed or the other side is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    be_brisk()
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))  # before torch is imported
    if not pipe.poll(IDLE_SECONDS):
        _get_ready()
    while True:
        try:
            message = pipe.recv_bytes()
            pipe.send_bytes(_answer(message))
        except (EOFError, OSError):
            return


def _get_ready() -> None:
    """Import what every figure needs, while another process runs the model that there will be figures of."""
    for name in ("matplotlib.figure", "matplotlib.backends.backend_agg", "posviz.draw.grid", "posviz.outputs.png"):
        import_module(name)


def _answer(message: bytes) -> bytes:
    """A job's outcome as it goes through the pipe: whether it went well, and what it returned or raised."""
    try:
        return pickle.dumps((True, pickle.loads(message)()), protocol=5)
    except Exception as error:
        try:
            return pickle.dumps((False, error))
        except Exception:
            return pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))
