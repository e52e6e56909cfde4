"""`posviz batch`: all the figures of a paper."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from posviz.cli import app
from posviz.cli._interrupt import interruptible

if TYPE_CHECKING:
    from posviz.batch import Result
    from posviz.manifest import Figure

STATES = ("done", "up to date", "failed", "not tried")


@app.command("batch")
def batch(
    manifest: Annotated[Path | None, typer.Argument(help="TOML file with [defaults] and [[figure]] tables.")] = None,
    jobs: Annotated[int | None, typer.Option(help="Processes. Left out: as many as help.", metavar="N")] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Names to draw, such as 'rope-*'; may repeat.", metavar="TEXT")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Draw what is up to date, too.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be drawn.")] = False,
    keep_going: Annotated[bool, typer.Option(help="After a failure, draw the others.", show_default=False)] = True,
    captions: Annotated[bool, typer.Option("--captions", help="Write a caption and LaTeX beside each figure.")] = False,
    ckpt_dir: Annotated[
        Path | None, typer.Option(help="Without a manifest: folder of checkpoints to draw.", metavar="FOLDER")
    ] = None,
    out_dir: Annotated[
        Path | None, typer.Option(help="Without a manifest: where figures go.  [default: figures]", metavar="FOLDER")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Run on a Dask cluster, such as tcp://HOST:8786.", metavar="ADDRESS")
    ] = None,
) -> None:
    """Draw many figures; what is up to date is left alone.

    Without a manifest it draws the set of the CABLE paper: Figures 11 to 15, with KERPLE and CABLE beside them, from
    the bundled checkpoints or from --ckpt-dir.
    """
    figures = _only(_figures(manifest, ckpt_dir, out_dir), only or [])
    if dry_run:
        _say_plan(figures, force)
        return
    results = _draw(figures, jobs, scheduler, force, keep_going)
    if captions:
        results = _with_captions(results)
    _table(results)
    if any(result.status in ("failed", "not tried") for result in results):
        raise typer.Exit(1)


def _draw(
    figures: list[Figure], jobs: int | None, scheduler: str | None, force: bool, keep_going: bool
) -> list[Result]:
    from posviz.batch import draw_batch
    from posviz.executors import place

    finished = 0
    try:
        with _progress(len(figures)) as show, interruptible() as interrupt:

            def report(result: Result) -> None:
                nonlocal finished
                with interrupt.held():  # or the count would not be that of the lines
                    finished += 1
                    show(result)

            return draw_batch(
                figures, lambda count: place(jobs, count, scheduler), report, force=force, keep_going=keep_going
            )
    except KeyboardInterrupt:
        pass
    done = f"stopped after {finished} of {len(figures)} figures"
    typer.echo(f"posviz: {done}; the same command draws the others", err=True)
    raise typer.Exit(130)


def _figures(manifest: Path | None, ckpt_dir: Path | None, out_dir: Path | None) -> list[Figure]:
    if manifest is None:
        from posviz.paper import paper_set

        figures, notes = paper_set(out_dir or Path("figures"), ckpt_dir)
        for note in notes:
            print(f"posviz: note: {note}", file=sys.stderr)
        return figures
    for name, given in (("--ckpt-dir", ckpt_dir), ("--out-dir", out_dir)):
        if given is not None:
            raise typer.BadParameter(f"{name} goes without a manifest, which names its own files")
    from posviz.manifest import read_manifest

    return read_manifest(manifest)


def _only(figures: list[Figure], patterns: list[str]) -> list[Figure]:
    from fnmatch import fnmatchcase

    from posviz.errors import ManifestError

    for pattern in patterns:
        if not any(fnmatchcase(figure.name, pattern) for figure in figures):
            names = ", ".join(figure.name for figure in figures)
            raise ManifestError(f"--only {pattern!r} matches none of the figures: {names}")
    return [f for f in figures if not patterns or any(fnmatchcase(f.name, pattern) for pattern in patterns)]


def _say_plan(figures: list[Figure], force: bool) -> None:
    from posviz.batch import up_to_date

    fresh = {figure.name for figure in figures if not force and up_to_date(figure)}
    width = max(len(figure.name) for figure in figures)
    for figure in figures:
        state = "up to date" if figure.name in fresh else "would draw"
        print(f"{state} {figure.name:<{width}}  {', '.join(map(str, figure.request.out))}")
    print(f"{len(figures) - len(fresh)} to draw, {len(fresh)} up to date")


@contextmanager
def _progress(total: int) -> Iterator[Callable[[Result], None]]:
    """A bar on a terminal, a line per figure elsewhere; on stderr in either case."""
    if not sys.stderr.isatty():
        count = 0

        def line(result: Result) -> None:
            nonlocal count
            count += 1
            print(f"[{count}/{total}] {result.status}: {result.name}", file=sys.stderr, flush=True)

        yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total)
        yield lambda result: bar.update(task, advance=1, description=f"{result.status}: {result.name}")


def _with_captions(results: Sequence[Result]) -> list[Result]:
    """The results after captions were written; a caption that cannot be is a failure of its figure."""
    from dataclasses import replace

    from posviz.captions import write_captions
    from posviz.errors import PosvizError

    after = []
    for result in results:
        try:
            if result.status in ("done", "up to date"):
                write_captions(result.name, result.paths)
            after.append(result)
        except PosvizError as error:
            after.append(replace(result, status="failed", why=f"its caption: {error}"))
    return after


def _table(results: Sequence[Result]) -> None:
    """Every figure and what became of it on stdout; what is worth knowing about one on stderr."""
    for result in results:
        for note in result.notes:
            print(f"posviz: note: {result.name}: {note}", file=sys.stderr)
    width = max(len(result.name) for result in results)
    for result in results:
        print(f"{result.status:<10} {result.name:<{width}}  {result.why or ', '.join(map(str, result.paths))}")
    count = {state: sum(result.status == state for result in results) for state in STATES}
    print(", ".join(f"{number} {state}" for state, number in count.items() if number or state != "not tried"))
