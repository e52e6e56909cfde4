"""`posviz batch`: all the figures of a paper."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posviz.cli import app

if TYPE_CHECKING:
    from posviz.batch import Result
    from posviz.manifest import Figure


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
    out_dir: Annotated[Path, typer.Option(help="Without a manifest: where figures go.", metavar="FOLDER")] = Path(
        "figures"
    ),
    scheduler: Annotated[
        str | None, typer.Option(help="Run on a Dask cluster, such as tcp://HOST:8786.", metavar="ADDRESS")
    ] = None,
) -> None:
    """Draw many figures; what is up to date is left alone.

    Without a manifest it draws the set of the CABLE paper: Figures 11 to 15, with KERPLE and CABLE beside them, from
    the bundled checkpoints or from --ckpt-dir.
    """
    figures = _figures(manifest, ckpt_dir, out_dir, only or [])
    if dry_run:
        _say_plan(figures, force)
        return
    from posviz.batch import draw_batch
    from posviz.executors import executor

    with executor(jobs, len(figures), scheduler) as pool, _progress(len(figures)) as report:
        results = draw_batch(figures, pool, report, force=force, keep_going=keep_going)
    if captions:
        from posviz.captions import write_captions

        for result in results:
            if result.status != "failed":
                write_captions(result.name, [Path(path) for path in result.paths])
    _table(results)
    if any(result.status in ("failed", "not tried") for result in results):
        raise typer.Exit(1)


def _figures(manifest: Path | None, ckpt_dir: Path | None, out_dir: Path, only: list[str]) -> list[Figure]:
    from fnmatch import fnmatchcase

    from posviz.errors import ManifestError
    from posviz.manifest import read_manifest

    if manifest is None:
        from posviz.paper import paper_set

        figures = paper_set(out_dir, ckpt_dir)
    elif ckpt_dir is not None:
        raise typer.BadParameter("--ckpt-dir goes without a manifest, which names its own checkpoints")
    else:
        figures = read_manifest(manifest)
    for pattern in only:
        if not any(fnmatchcase(figure.name, pattern) for figure in figures):
            names = ", ".join(figure.name for figure in figures)
            raise ManifestError(f"--only {pattern!r} matches none of the figures: {names}")
    return [f for f in figures if not only or any(fnmatchcase(f.name, pattern) for pattern in only)]


def _say_plan(figures: list[Figure], force: bool) -> None:
    from posviz.batch import up_to_date

    for figure in figures:
        state = "would draw" if force or not up_to_date(figure) else "up to date"
        print(f"{state:<11} {figure.name:<28} {', '.join(map(str, figure.request.out))}")


@contextmanager
def _progress(total: int) -> Iterator[Any]:
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

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total)
        yield lambda result: bar.update(task, advance=1, description=f"{result.status}: {result.name}")


def _table(results: list[Result]) -> None:
    width = max((len(result.name) for result in results), default=0)
    for result in results:
        print(f"{result.status:<10} {result.name:<{width}}  {result.why or ', '.join(result.paths)}")
    count = {
        status: sum(r.status == status for r in results) for status in ("done", "up to date", "failed", "not tried")
    }
    print(", ".join(f"{number} {status}" for status, number in count.items() if number or status != "not tried"))
