"""A batch on other executors: what is sent, how much at a time, and what happens when they fail."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from batch_cases import HereWithContext, checkpoint, figure, of, project_in, whole

from posviz import batch, render
from posviz.batch import Result, anchored, draw_batch, up_to_date
from posviz.executors import Here, Place
from posviz.options import RenderRequest


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return project_in(tmp_path / "project")


def test_no_executor_is_opened_when_nothing_is_to_be_drawn(project: Path) -> None:
    here = HereWithContext()
    for _ in range(2):
        draw_batch([of(project)], here, lambda _: None)
    assert here.asked == [1]


def test_jobs_and_what_they_return_can_be_sent_and_name_absolute_paths(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    sent: list[Any] = []

    class Elsewhere(Executor):
        """Another machine: everything goes through pickles, and the current folder is not ours."""

        def submit(self, fn: Any, /, *args: Any, **_: Any) -> Future[Any]:
            there, arguments = pickle.loads(pickle.dumps((fn, args)))
            sent.append(arguments[0])
            future: Future[Any] = Future()
            monkeypatch.chdir("/")
            future.set_result(pickle.loads(pickle.dumps(there(*arguments))))
            monkeypatch.chdir(project)
            return future

    @contextmanager
    def elsewhere(_: int) -> Iterator[Place]:
        yield Place(Elsewhere(), 4)

    figures = [
        figure(f"f{n}", f"f{n}.png", ckpt="cable.safetensors", text_file=Path("words.txt"), layer=n) for n in (1, 2)
    ]
    results = draw_batch(figures, elsewhere, lambda _: None)
    assert [(result.status, result.paths) for result in results] == [("done", (Path(f"f{n}.png"),)) for n in (1, 2)]
    assert all(whole(project / f"f{n}.png") for n in (1, 2))
    first = sent[0][0].request
    assert (first.ckpt, first.text_file) == (str(project / "cable.safetensors"), project / "words.txt")
    assert first.out == (project / "f1.png",)
    assert all(up_to_date(each) for each in figures)


def test_names_on_the_hub_are_not_made_paths() -> None:
    sent = anchored(figure("f", "f.png", ckpt="owner/model", tokenizer="bytes")).request
    assert (sent.ckpt, sent.tokenizer) == ("owner/model", "bytes")


def test_a_group_beyond_the_bound_draws_for_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rope = str(checkpoint(tmp_path / "rope.safetensors", "rope"))
    one = 2 * 16 * 16 * 4  # bytes of a stack
    monkeypatch.setattr(batch, "HANDED_OVER", 2 * one)
    group = [figure(f"f{n}", tmp_path / f"{n}.png", ckpt=rope, title=str(n)) for n in range(4)]
    found = batch.capture_group(group)
    assert [isinstance(outcome, Result) for outcome in found] == [False, False, True, True]
    assert sorted(path.name for path in tmp_path.glob("*.png")) == ["2.png", "3.png"]


def test_stacks_left_in_a_folder_are_drawn_and_gone(tmp_path: Path) -> None:
    path, folder = str(checkpoint(tmp_path / "cable.safetensors", "cable")), tmp_path / "left"
    folder.mkdir()
    most = 0

    class Watching(Here):
        def submit(self, *job: Any, **options: Any) -> Future[Any]:
            nonlocal most
            most = max(most, len(list(folder.iterdir())))
            assert len(pickle.dumps(job)) < 10_000  # no numbers
            return super().submit(*job, **options)

    @contextmanager
    def with_folder(_: int) -> Iterator[Place]:
        yield Place(Watching(), 2, folder)

    figures = [figure(f"l{n}", tmp_path / f"{n}.png", ckpt=path, layer=n) for n in (1, 2)]
    assert {result.status for result in draw_batch(figures, with_folder, lambda _: None)} == {"done"}
    assert most == 2
    assert not list(folder.iterdir())
    for each in figures:
        alone = figure("alone", tmp_path / "alone.png", ckpt=path, layer=each.request.layer).request
        render.write(alone, render.stacks_of(alone))
        assert (tmp_path / "alone.png").read_bytes() == each.request.out[0].read_bytes()


def test_only_so_much_is_under_way_at_a_time(tmp_path: Path) -> None:
    most = 0

    class Watching(ThreadPoolExecutor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            nonlocal most
            if fn is batch.capture_group:
                futures.append(super().submit(fn, *args, **kwargs))
                most = max(most, sum(not future.done() for future in futures))
                return futures[-1]
            return super().submit(fn, *args, **kwargs)

    @contextmanager
    def watching(_: int) -> Iterator[Place]:
        with Watching(8) as pool:
            yield Place(pool, 2)

    futures: list[Future[Any]] = []
    figures = [
        figure(f"f{n}", tmp_path / f"{n}.png", ckpt=str(checkpoint(tmp_path / f"{n}.safetensors", "t5", seed=n)))
        for n in range(6)
    ]
    assert {result.status for result in draw_batch(figures, watching, lambda _: None)} == {"done"}
    assert most <= 2


def test_threads_of_one_process_draw_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster's workers may run several jobs in one process, and matplotlib's style is the process's."""
    at_work: list[str] = []
    most = 0

    def write(request: RenderRequest, *_: object) -> None:
        nonlocal most
        at_work.append(request.ckpt or "")
        most = max(most, len(at_work))
        time.sleep(0.02)
        at_work.remove(request.ckpt or "")

    monkeypatch.setattr(render, "write", write)

    @contextmanager
    def threads(_: int) -> Iterator[Place]:
        with ThreadPoolExecutor(4) as pool:
            yield Place(pool, 4)

    paths = [str(checkpoint(tmp_path / f"{n}.safetensors", "t5", seed=n)) for n in range(4)]
    figures = [figure(f"f{n}", tmp_path / f"{n}.png", ckpt=path) for n, path in enumerate(paths)]
    assert {result.status for result in draw_batch(figures, threads, lambda _: None)} == {"done"}
    assert most == 1


def test_an_executor_that_gives_up_loses_only_what_it_had(tmp_path: Path) -> None:
    class Unreliable(Executor):
        def submit(self, fn: Any, /, *args: Any, **_: Any) -> Future[Any]:
            future: Future[Any] = Future()
            name = args[0][0].name
            if name == "cancelled":
                future.cancel()
                future.set_running_or_notify_cancel()
            elif name == "lost":
                future.set_exception(ConnectionError("the line is dead"))
            else:
                future.set_result(fn(*args))
            return future

    @contextmanager
    def unreliable(_: int) -> Iterator[Place]:
        yield Place(Unreliable(), 2)

    figures = [
        figure(name, tmp_path / f"{name}.png", ckpt=str(checkpoint(tmp_path / f"{name}.safetensors", "t5")))
        for name in ("cancelled", "fine", "lost")
    ]
    results = draw_batch(figures, unreliable, lambda _: None)
    assert [(result.status, result.why) for result in results] == [
        ("failed", "the job was given up by where it ran"),
        ("done", ""),
        ("failed", "ConnectionError: the line is dead"),
    ]
