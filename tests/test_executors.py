"""Where a batch runs: here or in processes, which may die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import wait
from pathlib import Path

import jobs
import pytest
from processes_cases import LONG, until

from posviz import executors, processes
from posviz.errors import PosvizError
from posviz.executors import Here, helpful, place
from posviz.processes import Processes


def test_here_runs_at_once_and_keeps_errors_for_the_asker() -> None:
    with place(1, 10) as here:
        assert here.width == 1
        assert here.executor.submit(jobs.process_id).result() == os.getpid()
        failed = here.executor.submit(jobs.fail, "because")
        assert str(failed.exception()) == "because"


def test_processes_do_jobs_elsewhere_and_hand_back_what_came_of_them() -> None:
    with place(2, 10) as two:
        assert two.width == 2
        assert two.folder is not None
        (two.folder / "left").touch()
        pool = two.executor
        assert list(pool.map(jobs.double, [1, 2, 3])) == [2, 4, 6]
        assert pool.submit(jobs.process_id).result() != os.getpid()
        with pytest.raises(ValueError, match="because"):
            pool.submit(jobs.fail, "because").result()
        with pytest.raises(RuntimeError, match="StubbornError: no way"):
            pool.submit(jobs.fail_stubbornly).result()
        with pytest.raises(Exception, match="pickle"):
            pool.submit(jobs.unsendable).result()
        with pytest.raises(Exception, match="pickle"):
            pool.submit(lambda: None).result()
        assert pool.submit(jobs.double, 21).result() == 42
    assert not two.folder.exists()
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(jobs.double, 1)


def test_processes_share_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    with Processes(1, threads=3) as pool:
        assert pool.submit(jobs.environment, "OMP_NUM_THREADS").result() == "3"


def test_a_process_that_dies_takes_no_other_job_with_it(tmp_path: Path) -> None:
    with Processes(2) as pool:
        dying = pool.submit(jobs.die)
        others = [pool.submit(jobs.double, n) for n in range(5)]
        assert [future.result(timeout=LONG) for future in others] == [0, 2, 4, 6, 8]
        with pytest.raises(PosvizError) as caught:
            dying.result(timeout=LONG)
        died = "its process died twice (killed by SIGKILL), the second time with no other beside it"
        assert str(caught.value) == f"{died}; is there enough memory?"
        assert pool.submit(jobs.double, 4).result(timeout=LONG) == 8


def test_a_job_whose_process_died_is_done_again_and_alone(tmp_path: Path) -> None:
    folder = tmp_path / "at-work"
    folder.mkdir()
    with Processes(2) as pool:
        again = pool.submit(jobs.die_the_first_time, folder, 0.3)
        beside = [pool.submit(jobs.work, folder, f"other-{n}", 0.3) for n in range(6)]
        assert again.result(timeout=LONG) == []
        assert all("again" not in future.result(timeout=LONG) for future in beside)


def test_jobs_run_beside_each_other(tmp_path: Path) -> None:
    with Processes(2) as pool:
        assert list(pool.map(jobs.double, [1, 2])) == [2, 4]  # both have started
        pair = [pool.submit(jobs.work, tmp_path, name, 0.5) for name in ("one", "two")]
        assert "two" in pair[0].result() or "one" in pair[1].result()


def test_an_error_ends_the_jobs_under_way_at_once(tmp_path: Path) -> None:
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt), Processes(1) as pool:  # noqa: PT012
        running = pool.submit(jobs.tell_and_sleep, tmp_path / "told", 3600)
        waiting = pool.submit(jobs.double, 1)
        while not (tmp_path / "told").exists():
            time.sleep(0.01)
        raise KeyboardInterrupt
    assert time.monotonic() - begun < LONG
    assert waiting.cancelled()
    assert running.exception() is not None
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "told").read_text()), 0)


def test_jobs_that_have_not_begun_can_be_cancelled(tmp_path: Path) -> None:
    with Processes(1) as pool:
        first = pool.submit(jobs.work, tmp_path, "first", 0.2)
        second = pool.submit(jobs.work, tmp_path, "second", 0.2)
        assert second.cancel()
        wait([first, second], timeout=LONG)
        assert first.result() == []


def test_processes_do_not_outlive_the_one_that_started_them(tmp_path: Path) -> None:
    told = tmp_path / "told"
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom pathlib import Path\n"
        "if __name__ == '__main__':\n"
        f"    sys.path.insert(0, {str(Path(jobs.__file__).parent)!r})\n"
        "    import jobs\n    from posviz.processes import Processes\n"
        f"    Processes(1).submit(jobs.tell_and_sleep, Path({str(told)!r}), 0.5).result()\n"
        "    import time; time.sleep(3600)\n"
    )
    parent = subprocess.Popen([sys.executable, str(script)], text=True)
    until(told.exists, parent)
    child = int(told.read_text())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    begun = time.monotonic()
    while _runs(child):
        assert time.monotonic() - begun < LONG
        time.sleep(0.02)


def _runs(pid: int) -> bool:
    """Whether a process is there and not merely waiting to be buried by whoever has inherited it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_as_many_processes_as_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "cores", lambda: 8)
    assert [helpful(figures) for figures in (1, 2, 3, 4, 7, 20, 100)] == [1, 1, 2, 2, 4, 8, 8]
    monkeypatch.setattr(executors, "cores", lambda: 128)
    assert helpful(1000) == 16
    monkeypatch.setattr(executors, "cores", lambda: 1)
    assert helpful(100) == 1
    with place(None, 100) as here:
        assert isinstance(here.executor, Here)


def test_no_more_processes_than_figures() -> None:
    with place(5, 2) as two:
        assert two.width == 2
    with place(5, 1) as here:
        assert isinstance(here.executor, Here)


def test_processes_that_cannot_be_started_are_an_error_not_a_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(self: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(processes._Worker, "start", cannot)
    with Processes(2) as pool:
        assert "Resource" in str(pool.submit(jobs.double, 1).exception(timeout=LONG))


def test_what_is_refused() -> None:
    with pytest.raises(PosvizError, match="--jobs is 0; expected 1 or more"), place(0, 3):
        pass
    with pytest.raises(PosvizError, match="a cluster has its own number of workers"), place(2, 3, "tcp://x:1"):
        pass
