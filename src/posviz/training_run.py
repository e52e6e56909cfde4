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
        probe(out)
        if threads is not None:
            torch.set_num_threads(threads)
        self.out, self.dtype, self.snapshot_every = out, DTYPES[dtype], snapshot_every
        self.state = out.with_name(out.name + ".resume")
        self.trainer = Trainer(plan, Corpus(files, plan.context))

    def go(self, *, resume: bool = False) -> bool:
        """Train until done or stopped, and save; whether it was finished."""
        if resume:
            if not self.state.exists():
                raise PosvizError(f"{self.state} is not there, so there is nothing to resume; leave out --resume")
            self.trainer.load_state(self.state)
        with stopping() as stopped, progress(self.trainer.plan) as report:
            self.trainer.run(report, stopped, self._after_step)
        finished = self.trainer.step == self.trainer.plan.steps
        if not finished:
            self.trainer.save_state(self.state)
        self.trainer.save(self.out, self.dtype)
        if finished:
            self.state.unlink(missing_ok=True)
        return finished

    def _after_step(self) -> None:
        step = self.trainer.step
        if step % SAFE_EVERY == 0 and step < self.trainer.plan.steps:
            self.trainer.save_state(self.state)
        if self.snapshot_every and step % self.snapshot_every == 0:
            self.trainer.save(self.out.with_name(f"{self.out.stem}-step{step:06d}.safetensors"), self.dtype)


@contextmanager
def stopping() -> Iterator[Callable[[], bool]]:
    """Ctrl-C (or SIGTERM) ends the run after the step at hand; a second one ends it at once."""
    asked = False

    def ask(number: int, _: Any) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def progress(plan: Plan) -> Iterator[Callable[[Progress], None]]:
    """A bar on a terminal, a line now and then elsewhere; on stderr in either case."""
    if not sys.stderr.isatty():
        every = max(1, plan.steps // 20)

        def line(p: Progress) -> None:
            if p.step % every == 0 or p.step == p.steps:
                print(f"step {p.step}/{p.steps}  {_facts(p)}  {p.seconds_left:.0f} s left", file=sys.stderr, flush=True)

        yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn(plan.method), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[facts]}"))
    with Bar(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=plan.steps, facts="")
        yield lambda p: bar.update(task, completed=p.step, facts=_facts(p))


def _facts(p: Progress) -> str:
    return f"loss {p.loss:.3f}  {p.tokens_per_second:,.0f} tokens/s"
