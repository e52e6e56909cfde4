"""Many figures: each model opened and run once, what is up to date left alone, the rest drawn by any executor."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from posviz.errors import PosvizError
from posviz.executors import Place
from posviz.leftovers import sweep
from posviz.lending import Lent, borrowed, lend
from posviz.manifest import Figure
from posviz.options import RenderRequest
from posviz.stack import HeadStack

if TYPE_CHECKING:
    from posviz.draw.grid import Sheet

Report = Callable[["Result"], None]
Job = partial[list[Any]]  # a result, or stacks still to be drawn, for each of its figures
OpenPlace = Callable[[int], AbstractContextManager[Place]]  # where so many figures are drawn

HANDED_OVER = 256 * 2**20  # bytes of stacks that a group leaves to others to draw; what is beyond it draws itself
GIVEN_UP = "another figure failed"
LOOK_AFTER = 2.0  # seconds without news after which the place may be lost
_drawing = threading.Lock()  # matplotlib's style belongs to the process, and a cluster's workers may be threads


@dataclass(frozen=True)
class Result:
    """What became of one figure: `done`, `up to date`, `failed` or `not tried`."""

    name: str
    status: str
    why: str = ""
    paths: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()


def draw_batch(
    figures: Sequence[Figure],
    open_place: OpenPlace,
    report: Report,
    *,
    force: bool = False,
    keep_going: bool = True,
) -> list[Result]:
    """Draw every figure that is not up to date; one that fails does not stop the others unless asked to."""
    results: dict[str, Result] = {}

    def finish(result: Result) -> None:
        results[result.name] = result
        report(result)

    stale = []
    for figure in figures:
        sweep(figure.request.out)  # of a run that was killed
        if not force and up_to_date(figure):
            finish(Result(figure.name, "up to date", paths=figure.request.out))
        else:
            stale.append(figure)
    if stale:
        try:
            with open_place(len(stale)) as place:
                Batch(place, finish, keep_going).run(groups(stale))
        finally:
            sweep(path for figure in stale for path in figure.request.out)  # of processes that were killed
    return [results[figure.name] for figure in figures]


class Batch:
    """A batch under way. Only so much is handed out at a time as the place can work on: stacks are large."""

    def __init__(self, place: Place, finish: Report, keep_going: bool) -> None:
        self.place, self.finish, self.keep_going = place, finish, keep_going
        self.failed = False
        self.waiting: deque[tuple[list[Figure], Job]] = deque()
        self.pending: dict[Future[Any], list[Figure]] = {}

    def run(self, groups: Iterable[list[Figure]]) -> None:
        for group in groups:
            job = partial(capture_group, [anchored(figure) for figure in group], self.place.folder)
            self.waiting.append((group, job))
        while self.waiting or self.pending:
            while self.waiting and len(self.pending) < self.place.width:
                figures, job = self.waiting.popleft()
                self.pending[self.place.executor.submit(job.func, *job.args)] = figures
            done, _ = wait(self.pending, timeout=LOOK_AFTER, return_when=FIRST_COMPLETED)
            for future in done:
                self.take(self.pending.pop(future), future)
            if self.failed and not self.keep_going:
                self.drop([future for future in self.pending if future.cancel()], "not tried", GIVEN_UP)
            if lost := self.place.lost():
                self.drop(list(self.pending), "failed", lost)

    def take(self, figures: list[Figure], future: Future[Any]) -> None:
        """A job is over: for each of its figures there is a result, or stacks that are still to be drawn."""
        try:
            outcomes = future.result()
        except CancelledError:
            why = self.place.lost() or "the job was given up by where it ran"
            outcomes = [Result(figure.name, "failed", why) for figure in figures]
        except Exception as error:
            outcomes = [Result(figure.name, "failed", reason(error)) for figure in figures]
        to_draw: list[tuple[list[Figure], Job]] = []
        for figure, outcome in zip(figures, outcomes, strict=True):
            if isinstance(outcome, Result):
                self.failed |= outcome.status == "failed"
                self.finish(replace(outcome, paths=figure.request.out))
            elif self.failed and not self.keep_going:
                self.finish(Result(figure.name, "not tried", GIVEN_UP, figure.request.out))
            else:
                to_draw.append(([figure], partial(draw, anchored(figure), outcome)))
        self.waiting.extendleft(reversed(to_draw))  # before other models are run: their stacks take room

    def drop(self, futures: list[Future[Any]], state: str, why: str) -> None:
        """Leave out these jobs, and all that were not handed out yet."""
        groups = [*map(self.pending.pop, futures), *(figures for figures, _ in self.waiting)]
        left = [figure for group in groups for figure in group]
        self.waiting.clear()
        for figure in left:
            self.finish(Result(figure.name, state, why, figure.request.out))


def groups(figures: Iterable[Figure]) -> list[list[Figure]]:
    """Figures of one model, together."""
    from posviz.session import model_key

    found: dict[Any, list[Figure]] = {}
    for number, figure in enumerate(figures):
        stored = figure.request.from_file is not None
        found.setdefault(number if stored else model_key(figure.request), []).append(figure)
    return list(found.values())


def anchored(figure: Figure) -> Figure:
    """The figure with every path absolute: the process that draws it may have another current folder."""
    request = figure.request
    said: dict[str, Any] = {"out": tuple(path.absolute() for path in request.out)}
    for name in ("config", "text_file", "tokens", "from_file"):
        value = getattr(request, name)
        said[name] = value and value.expanduser().absolute()
    for name in ("ckpt", "tokenizer"):  # a path, or a name on the hub
        value = getattr(request, name)
        if value is not None and Path(value).expanduser().exists():
            said[name] = str(Path(value).expanduser().absolute())
    return replace(figure, request=replace(request, **said))


# -- what runs where the executor puts it ------------------------------------------------------------------------------


def capture_group(figures: Sequence[Figure], folder: Path | None = None) -> list[Any]:
    """For each figure of one model its stacks, to be drawn by whoever is free, or else the result at once.

    Stacks are left in the folder, if there is one that all can reach.
    """
    from posviz.render import captures_of, stacks_of
    from posviz.session import Session

    session = Session([capture for figure in figures for capture in captures_of(figure.request)])
    room = HANDED_OVER
    found: list[Any] = []
    for figure in figures:
        try:
            stacks = stacks_of(figure.request, session)
        except Exception as error:  # one figure's trouble is its own
            found.append(Result(figure.name, "failed", reason(error)))
            continue
        room -= sum(stack.values.nbytes for stack in stacks)
        here = room < 0 or len(figures) == 1  # nobody else is waiting for it
        found += draw(figure, stacks) if here else [lend(stacks, folder)]
    return found


def draw(figure: Figure, given: Sequence[HeadStack] | Lent) -> list[Result]:
    """Draw and write one figure."""
    from posviz.render import write

    try:
        with borrowed(given) as stacks, _drawing:
            write(figure.request, stacks, _sheet())
            return [Result(figure.name, "done", notes=tuple(stacks[-1].meta.get("notes", ())))]
    except Exception as error:  # one figure's trouble is its own
        return [Result(figure.name, "failed", reason(error))]


@cache
def _sheet() -> Sheet:
    """The sheet that this process draws on."""
    from posviz.draw.grid import Sheet

    return Sheet()


def up_to_date(figure: Figure) -> bool:
    """Whether every file of the figure is there and was made from the same inputs."""
    from posviz.inputs import inputs_digest
    from posviz.outputs import read_recipe

    request: RenderRequest = figure.request
    try:
        if not all(path.exists() for path in request.out):
            return False
        wanted = inputs_digest(request)
        return all(read_recipe(path).get("inputs") == wanted for path in request.out)
    except (PosvizError, OSError):
        return False  # drawing it again says what is wrong


def reason(error: BaseException) -> str:
    """Why, in one line."""
    message = " ".join(str(error).split())
    if isinstance(error, PosvizError):
        return message
    return f"{type(error).__name__}: {message or 'no message'}"
