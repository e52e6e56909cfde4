"""A batch on a real Dask cluster, whose workers may be killed."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from batch_cases import checkpoint, manifest, pictures, twenty, whole
from conftest import Ran
from processes_cases import LONG, start, until

from posviz import executors

pytest.importorskip("distributed")
Posviz = Callable[..., Ran]


class Cluster:
    """A scheduler and workers without nannies: a worker that dies stays dead."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, folder / "scheduler.json"
        self.processes: list[subprocess.Popen[bytes]] = []
        self.scheduler = self._start("scheduler", "--port", "0", "--host", "127.0.0.1")
        self._until(self.file.exists)
        self.address = str(json.loads(self.file.read_text())["address"])

    def add_worker(self) -> subprocess.Popen[bytes]:
        return self._start("worker", "--no-nanny", "--nthreads", "1")

    def _start(self, kind: str, *words: str) -> subprocess.Popen[bytes]:
        said = (self.folder / f"{kind}-{len(self.processes)}.log").open("wb")
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", "--scheduler-file", str(self.file)]
        # Another current folder than the batch's: paths must not depend on it.
        process = subprocess.Popen(
            [*command, "--no-dashboard", *words], cwd=self.folder, stdout=said, stderr=subprocess.STDOUT
        )
        self.processes.append(process)
        return process

    def wait_for_workers(self, count: int) -> None:
        from distributed import Client

        with Client(self.address) as client:
            client.wait_for_workers(count, timeout=LONG)

    def _until(self, there: Callable[[], bool]) -> None:
        begun = time.monotonic()
        while not there():
            assert time.monotonic() - begun < LONG
            time.sleep(0.02)

    def close(self) -> None:
        for process in reversed(self.processes):
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    running = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        yield running
    finally:
        running.close()


def test_a_worker_is_killed_and_every_figure_is_still_made(cluster: Cluster, tmp_path: Path) -> None:
    workers = [cluster.add_worker() for _ in range(2)]
    cluster.wait_for_workers(2)
    path, out = twenty(tmp_path), tmp_path / "out"
    process = start("batch", path.name, "--scheduler", cluster.address, cwd=tmp_path)
    until(lambda: len(pictures(out)) >= 3, process)
    os.kill(workers[0].pid, signal.SIGKILL)
    assert len(pictures(out)) < 20  # it is in the middle
    said, told = process.communicate(timeout=LONG)
    assert process.returncode == 0, told
    assert said.splitlines()[-1] == "20 done, 0 up to date, 0 failed"
    assert len(told.splitlines()) == 20, told
    assert len(list(out.iterdir())) == 20
    assert all(whole(file) for file in out.iterdir())
    again = start("batch", path.name, "--scheduler", "tcp://127.0.0.1:1", cwd=tmp_path)
    assert "0 done, 20 up to date" in again.communicate(timeout=LONG)[0]  # nobody is asked when nothing is to be done


def test_a_failing_figure_is_told(cluster: Cluster, tmp_path: Path) -> None:
    cluster.add_worker()
    cluster.wait_for_workers(1)
    checkpoint(tmp_path / "rope.safetensors", "rope")
    path = manifest(tmp_path, [{"name": "wrong", "ckpt": "rope.safetensors", "layer": 9}])
    process = start("batch", path, "--scheduler", cluster.address)
    said, told = process.communicate(timeout=LONG)
    assert process.returncode == 1
    assert "failed     wrong  there is no layer 9; the model has layers 1 to 2" in said
    assert told.splitlines() == ["[1/1] failed: wrong"]


def test_a_scheduler_that_goes_away_is_not_waited_for(cluster: Cluster, tmp_path: Path) -> None:
    cluster.add_worker()
    cluster.wait_for_workers(1)
    path = twenty(tmp_path)
    process = start("batch", path, "--scheduler", cluster.address)
    until(lambda: len(pictures(tmp_path / "out")) >= 2, process)
    for each in cluster.processes:
        each.kill()
    said, told = process.communicate(timeout=LONG)
    assert process.returncode == 1
    assert len(told.splitlines()) == 20, told
    assert f"the Dask scheduler at {cluster.address} is gone" in said
    assert re.search(r"^[1-9]\d* done, 0 up to date, [1-9]\d* failed$", said.splitlines()[-1])
    assert all(whole(file) for file in pictures(tmp_path / "out"))


def test_no_scheduler_answers(posviz: Posviz, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "CONNECT_SECONDS", 1)
    checkpoint(tmp_path / "t5.safetensors", "t5")
    path = manifest(tmp_path, [{"name": "a", "ckpt": "t5.safetensors"}])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    for wrong in (address, "tcp://no.such.host.invalid:8786", "nonsense", "tcp://127.0.0.1", "http://127.0.0.1:80"):
        error = posviz("batch", path, "--scheduler", wrong).error
        assert error.startswith(f"no Dask scheduler answers at {wrong} (")
        assert error.endswith("; expected something like tcp://HOST:8786")


def test_something_else_answers(tmp_path: Path) -> None:
    """The address of Dask's web page is the likeliest mistake; Dask's own client waits for ever there."""
    checkpoint(tmp_path / "t5.safetensors", "t5")
    path = manifest(tmp_path, [{"name": "a", "ckpt": "t5.safetensors"}])
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        process = start("batch", path, "--scheduler", address)
        assert process.wait(timeout=LONG) == 1
    assert process.stderr is not None
    (line,) = process.stderr.read().splitlines()
    assert line.startswith(f"posviz: no Dask scheduler answers at {address} (something else seems to)")


def test_without_dask_it_says_what_to_install(posviz: Posviz, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint(tmp_path / "t5.safetensors", "t5")
    path = manifest(tmp_path, [{"name": "a", "ckpt": "t5.safetensors"}])
    monkeypatch.setitem(sys.modules, "distributed", None)
    refused = posviz("batch", path, "--scheduler", "tcp://127.0.0.1:8786")
    assert refused.error == "--scheduler needs Dask; install it with: pip install 'posviz[cluster]'"
