"""`posviz compare`: methods, checkpoints or training steps side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from posviz.cli import app
from posviz.cli._options import takes
from posviz.cli._say import wrote
from posviz.options import CompareRequest

if TYPE_CHECKING:
    from posviz.comparison import Side
    from posviz.stack import HeadStack

OWN = {
    "ckpt",
    "method",
    "model",
    "scale",
    "log",
    "raw",
    "mask",
}  # what is compared says these, or they mean nothing here


@app.command("compare")
@takes(CompareRequest, without=OWN)
def compare(
    request: CompareRequest,
    sources: Annotated[
        list[str] | None, typer.Argument(help="Two or more checkpoints, captures (.npz) or methods.", metavar="A B ...")
    ] = None,
    steps: Annotated[
        Path | None, typer.Option(help="Instead: a folder with the checkpoints of a training run.", metavar="FOLDER")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare models head by head.

    Draws every head's profile over distance, one line per model, and for two models of the same quantity also their
    difference; prints their numbers side by side. With --steps, shows how each head moves in training (a .gif
    animates it).
    """
    from posviz.outputs import ANIMATIONS, FIGURES, can_write

    if (steps is None) == (len(sources or []) < 2):
        raise typer.BadParameter("give two or more things to compare, or --steps FOLDER")
    for path in request.out:
        can_write(path, (*FIGURES, *ANIMATIONS) if steps else FIGURES)
    from posviz.comparison import open_sides, steps_in

    if steps is not None:
        run = steps_in(steps.expanduser())
        sides = open_sides([str(path) for _, path in run], request)
        paths = _draw_steps(request, sides, [step for step, _ in run], steps)
    else:
        sides = open_sides(sources or [], request)
        paths = _draw(request, sides, sources or [])
    _numbers(sides, as_json)
    wrote(paths)


def _numbers(sides: list[Side], as_json: bool) -> None:
    import json

    from posviz.stats import format_comparison, head_stats

    rows = [(side.label, [stats.to_json() for stats in head_stats(side.stack)]) for side in sides]
    print(json.dumps(dict(rows), indent=2, allow_nan=False) if as_json else format_comparison(rows))


def _draw(request: CompareRequest, sides: list[Side], sources: list[str]) -> list[Path]:
    from posviz.comparison import default_out, plain_sources
    from posviz.draw.compare import draw_difference, draw_profiles
    from posviz.outputs import save_figure
    from posviz.recipe import recipe_of

    stacks = [side.stack for side in sides]
    figures = {"": draw_profiles(stacks, [side.label for side in sides], _look(request))}
    if len(sides) == 2 and _alike(stacks[0], stacks[1]):
        figures["-difference"] = draw_difference(stacks[0], stacks[1], _look(request))
    recipe = recipe_of("compare", request, stacks[0], arguments=plain_sources(sources))
    return [
        save_figure(figure, path.with_name(path.stem + part + path.suffix), recipe | {"part": part})
        for path in request.out or [default_out(sources)]
        for part, figure in figures.items()
    ]


def _alike(a: HeadStack, b: HeadStack) -> bool:
    """Whether two stacks can be subtracted: the same quantity of the same positions."""
    return a.meta.get("quantity") == b.meta.get("quantity") and a.values.shape == b.values.shape and a.cell == b.cell


def _draw_steps(request: CompareRequest, sides: list[Side], steps: list[int], folder: Path) -> list[Path]:
    from posviz.draw.animate import save_animation
    from posviz.draw.compare import draw_steps
    from posviz.options import plain_path
    from posviz.outputs import save_figure
    from posviz.recipe import recipe_of

    stacks, labels = [side.stack for side in sides], [f"step {step:,}" for step in steps]
    recipe = recipe_of("compare", request, stacks[0], {"steps": plain_path(folder)})
    written = []
    for path in request.out or [Path("figures") / f"steps-{folder.resolve().name}.png"]:
        if path.suffix == ".gif":
            written.append(save_animation(stacks, labels, _look(request), path, recipe))
        else:
            written.append(save_figure(draw_steps(stacks, steps, labels, _look(request)), path, recipe))
    return written


def _look(request: CompareRequest):  # type: ignore[no-untyped-def]  # its type would import matplotlib's
    from dataclasses import fields

    from posviz.draw.look import Look
    from posviz.options import LookRequest

    return Look(**{f.name: getattr(request, f.name) for f in fields(LookRequest)})
