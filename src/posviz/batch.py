"""Many figures: each model opened and run once, what is up to date left alone, the rest drawn by any executor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from posviz.errors import PosvizError
from posviz.manifest import Figure
from posviz.options import RenderRequest
from posviz.stack import HeadStack


@dataclass(frozen=True)
class Result:
    """What became of one figure: `done`, `up to date` or `failed`."""

    name: str
    status: str
    why: str = ""
    paths: tuple[str, ...] = ()


class Batch:
    """A batch under way: what is pending, and what became of each figure."""

    def __init__(self, executor: Executor, report: Callable[[Result], None]) -> None:
        self.executor, self.report = executor, report
        self.results: dict[str, Result] = {}
        self.pending: dict[Future[Any], list[Figure]] = {}

    def finish(self, result: Result) -> None:
        self.results[result.name] = result
        self.report(result)

    def submit(self, figures: list[Figure], job: Callable[..., Any], *args: Any) -> None:
        try:
            self.pending[self.executor.submit(job, *args)] = figures
        except RuntimeError as error:  # the pool broke down, most likely for want of memory
            for figure in figures:
                self.finish(Result(figure.name, "failed", reason(error)))

    def take(self, future: Future[Any]) -> None:
        """One job is done: a group was captured, and is now drawn figure by figure; or a figure was drawn."""
        figures = self.pending.pop(future)
        error = future.exception()
        if error is not None:
            for figure in figures:
                self.finish(Result(figure.name, "failed", reason(error)))
            return
        outcome = future.result()
        if isinstance(outcome, Result):
            self.finish(outcome)
            return
        for figure, stacks in zip(figures, outcome, strict=True):
            if isinstance(stacks, str):
                self.finish(Result(figure.name, "failed", stacks))
            else:
                self.submit([figure], draw_one, figure, stacks)

    def give_up(self) -> None:
        """Leave out everything that has not begun."""
        for future, figures in list(self.pending.items()):
            if future.cancel():
                del self.pending[future]
                for figure in figures:
                    self.finish(Result(figure.name, "not tried", "a figure before it failed"))


def draw_batch(
    figures: Sequence[Figure],
    executor: Executor,
    report: Callable[[Result], None],
    *,
    force: bool = False,
    keep_going: bool = True,
) -> list[Result]:
    """Draw every figure that is not up to date; one that fails does not stop the others unless asked to."""
    batch = Batch(executor, report)
    stale = []
    for figure in figures:
        if not force and up_to_date(figure):
            batch.finish(Result(figure.name, "up to date", paths=tuple(map(str, figure.request.out))))
        else:
            stale.append(figure)
    for group in groups(stale):
        batch.submit(group, capture_group, [figure.request for figure in group])
    while batch.pending:
        done, _ = wait(batch.pending, return_when=FIRST_COMPLETED)
        for future in done:
            batch.take(future)
        if not keep_going and any(result.status == "failed" for result in batch.results.values()):
            batch.give_up()
    return [batch.results[figure.name] for figure in figures]


def groups(figures: Iterable[Figure]) -> list[list[Figure]]:
    """Figures that can share one run of one model, together."""
    from posviz.render import capture_part
    from posviz.session import run_key

    found: dict[Any, list[Figure]] = {}
    for figure in figures:
        request = figure.request
        key = request.from_file or request.extrapolate or run_key(capture_part(request))
        found.setdefault(key if request.extrapolate is None else figure.name, []).append(figure)
    return list(found.values())


def capture_group(requests: Sequence[RenderRequest]) -> list[Any]:
    """The stacks of requests that share a run; a reason, as text, for each that cannot be had."""
    from posviz.render import capture_part, stacks_of
    from posviz.session import Session

    session = Session([capture_part(request) for request in requests if request.from_file is None])
    found: list[Any] = []
    for request in requests:
        try:
            found.append(stacks_of(request, session))
        except Exception as error:  # one figure's trouble is its own
            found.append(reason(error))
    return found


def draw_one(figure: Figure, stacks: Sequence[HeadStack]) -> Result:
    """Draw and write one figure."""
    from posviz.render import write

    try:
        paths = write(figure.request, stacks)
    except Exception as error:  # one figure's trouble is its own
        return Result(figure.name, "failed", reason(error))
    return Result(figure.name, "done", paths=tuple(map(str, paths)))


def up_to_date(figure: Figure) -> bool:
    """Whether every file of the figure is there and was made from the same inputs."""
    from posviz.outputs import read_recipe
    from posviz.recipe import inputs_digest

    try:
        if not all(Path(path).exists() for path in figure.request.out):
            return False
        wanted = inputs_digest(figure.request)
        return all(read_recipe(path).get("inputs") == wanted for path in figure.request.out)
    except PosvizError:
        return False  # drawing it again says what is wrong


def reason(error: BaseException) -> str:
    if isinstance(error, PosvizError):
        return " ".join(str(error).split())
    return f"{type(error).__name__}: {' '.join(str(error).split()) or 'no message'}"
