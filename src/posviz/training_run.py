"""One run of the trainer as a person sees it: progress, Ctrl-C, snapshots, resuming."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from posviz import methods
from posviz.corpus import Corpus
from posviz.errors import PosvizError, unknown_name
from posviz.leftovers import sweep
from posviz.models.running import DTYPES
from posviz.outputs.atomic import probe
from posviz.train import Plan, Progress, Trainer

SAFE_EVERY = 100  # steps between two savings of what a resumed run needs


def options_for(method: str, **offered: Any) -> tuple[tuple[str, Any], ...]:
    """Those of the offered options that the method has."""
    known = methods.get(method).options
    return tuple((name, value) for name, value in offered.items() if name in known)


class TrainingRun:
    """Trains into `out`; what is needed to go on lies beside it, in `OUT.resume`, until the run is finished."""

    def __init__(
        self,
        plan: Plan,
        files: Sequence[Path],
        out: Path,
        *,
        dtype: str = "float32",
        snapshot_every: int = 0,
        threads: int | None = None,
    ) -> None:
        if out.suffix != ".safetensors":
            raise PosvizError(f"{out} does not end in .safetensors, which is how a checkpoint is written")
        if dtype not in DTYPES:
            raise PosvizError(unknown_name("save-dtype", dtype, DTYPES))
        if snapshot_every < 0:
            raise PosvizError(f"--snapshot-every is {snapshot_every}; expected 1 or more, or 0 for none")
        if threads is not None and threads < 1:
            raise PosvizError(f"--threads is {threads}; expected 1 or more")
        probe(out)
        if threads is not None:
            torch.set_num_threads(threads)
        self.out, self.dtype, self.snapshot_every = out, DTYPES[dtype], snapshot_every
        self.state = out.with_name(out.name + ".resume")
        self.trainer = Trainer(plan, Corpus(files, plan.context))
        self.notes: dict[str, Any] = {}  # what the header says of the training, once it is saved

    def go(self, *, resume: bool = False) -> int | None:
        """Train until done or stopped, and save; the signal that stopped it, None if it is finished."""
        self._begin(resume)
        with stopping() as stopped:  # saving, too: Ctrl-C there should not lose what is about to be saved
            with progress(self.trainer) as report:
                self.trainer.run(report, lambda: stopped() is not None, self._after_step)
            finished = self.trainer.step == self.trainer.plan.steps
            if not finished:
                self.trainer.save_state(self.state)
            self.notes = self.trainer.save(self.out, self.dtype)
            if finished:
                self.state.unlink(missing_ok=True)
            return None if finished else stopped()

    def _begin(self, resume: bool) -> None:
        sweep([self.out, self.state])  # of a run that was killed
        there = self.state.exists()
        if resume and not there:
            raise PosvizError(f"{self.state} is not there, so there is nothing to resume; leave out --resume")
        if there and not resume:
            raise PosvizError(f"{self.state} is of a run that was interrupted; go on with --resume, or delete it")
        if resume:
            self.trainer.load_state(self.state)

    def _after_step(self) -> None:
        step = self.trainer.step
        if step % SAFE_EVERY == 0 and step < self.trainer.plan.steps:
            self.trainer.save_state(self.state)
        if self.snapshot_every and step % self.snapshot_every == 0:
            self.trainer.save(self.out.with_name(f"{self.out.stem}-step{step:06d}.safetensors"), self.dtype)


@contextmanager
def stopping() -> Iterator[Callable[[], int | None]]:
    """Ctrl-C (or SIGTERM) ends the run after the step at hand; a second one ends it at once."""
    asked: int | None = None

    def ask(number: int, _: Any) -> None:
        nonlocal asked
        if asked is not None:
            raise KeyboardInterrupt
        asked = number

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def progress(trainer: Trainer) -> Iterator[Callable[[Progress], None]]:
    """A bar on a terminal, a line now and then elsewhere; on stderr in either case."""
    plan = trainer.plan
    if not sys.stderr.isatty():
        every = max(1, plan.steps // 20)

        def line(p: Progress) -> None:
            if p.step % every == 0 or p.step == p.steps:
                print(f"step {p.step}/{p.steps}  {_facts(p)}", file=sys.stderr, flush=True)

        yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn(plan.method), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[facts]}"))
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=plan.steps, completed=trainer.step, facts="")
        yield lambda p: bar.update(task, completed=p.step, facts=_facts(p))


def _facts(p: Progress) -> str:
    minutes, seconds = divmod(round(p.seconds_left), 60)
    return f"loss {p.loss:.3f}  {p.tokens_per_second:,.0f} tokens/s  {minutes}:{seconds:02d} left"
