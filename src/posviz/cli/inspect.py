"""`posviz inspect`: one head taken apart, or all heads ranked."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from posviz.cli import app
from posviz.cli._options import takes
from posviz.cli._say import note, wrote
from posviz.options import InspectRequest

if TYPE_CHECKING:
    from pathlib import Path

    from posviz.inspection import Inspected


@app.command("inspect")
@takes(InspectRequest, without={"layer", "scale", "heads", "mask"})
def inspect(
    request: InspectRequest,
    head: Annotated[
        str | None, typer.Option(help="A head, or some such as 1-4,7. Left out: all.", metavar="TEXT")
    ] = None,
    layer: Annotated[str, typer.Option(help="Layer from 1, negative from the end, or all.", metavar="TEXT")] = "-1",
    sort: Annotated[str | None, typer.Option(help="Rank by this number, greatest first.", metavar="TEXT")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    preview: Annotated[bool, typer.Option(help="Show a small picture on a terminal.", show_default=False)] = True,
) -> None:
    """Take one head apart, or rank all heads by a number.

    Numbers: min, max, mean, uniformity, reach50, reach90, entropy, sink, previous, and the best fit over distance.
    """
    from dataclasses import replace

    from posviz.errors import PosvizError
    from posviz.inspection import inspect as look
    from posviz.outputs import can_write
    from posviz.stats import format_table
    from posviz.stats.table import ranked

    request = replace(request, heads=head)
    for path in request.out:
        can_write(path)
    if (request.out or request.window) and len(request.head_numbers() or ()) != 1:
        raise PosvizError("a figure or a window is of one head; say which with --head")
    found = look(request, layer)
    note(found[0].stack, request)
    rows: Sequence[Mapping[str, object]] = [row for each in found for row in each.rows]
    if sort is not None:
        rows = ranked(rows, sort)
    if as_json:
        _print_json(rows)
    else:
        print(format_table(rows))
        if preview and len(rows) == 1 and sys.stdout.isatty():
            _preview(found[0])
    if request.out:
        wrote(_draw(request, found[0], layer))


def _print_json(rows: Sequence[Mapping[str, object]]) -> None:
    import json

    print(json.dumps(rows[0] if len(rows) == 1 else rows, indent=2, allow_nan=False))


def _preview(one: Inspected) -> None:
    from posviz.draw.preview import preview

    print(preview(one.stack.values[0]))


def _draw(request: InspectRequest, one: Inspected, layer: str) -> list[Path]:
    from dataclasses import fields, replace

    from posviz.draw.head import draw_head
    from posviz.draw.look import Look
    from posviz.options import LookRequest, parse_window
    from posviz.outputs import save_figure
    from posviz.recipe import recipe_of

    look = Look(**{f.name: getattr(request, f.name) for f in fields(LookRequest)})
    window = None if request.window is None else parse_window(request.window)
    figure = draw_head(one.stack, one.stats[0], look, window)
    said = {"head": request.heads, "layer": layer}
    recipe = recipe_of("inspect", replace(request, heads=None), one.stack, said)
    return [save_figure(figure, path, recipe) for path in request.out]
