"""A render request in, figures on disk out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from posviz.errors import PosvizError
from posviz.options import CaptureRequest, LookRequest, RenderRequest, parse_lengths
from posviz.recipe import recipe_of
from posviz.stack import HeadStack

if TYPE_CHECKING:
    from posviz.draw.grid import Sheet
    from posviz.draw.look import Look
    from posviz.session import Session


def stacks_of(request: RenderRequest, session: Session | None = None) -> list[HeadStack]:
    """What is to be drawn: a stored capture, or a new one; one stack for each length that is asked for."""
    look_of(request)  # a typing error in it should not cost a run
    if request.from_file is not None:
        return [_stored(request, request.from_file)]
    from posviz.session import Session

    asked = captures_of(request)
    session = session or Session(asked)
    return [session.stack(each) for each in asked]


def captures_of(request: RenderRequest) -> list[CaptureRequest]:
    """What must be captured for a figure: one capture, or one for each length that is asked for."""
    if request.from_file is not None:
        return []
    asked = capture_part(request)
    if request.extrapolate is None:
        return [asked]
    return [replace(asked, seq_len=length) for length in parse_lengths(request.extrapolate)]


def write(request: RenderRequest, stacks: Sequence[HeadStack], sheet: Sheet | None = None) -> list[Path]:
    """Draw the stacks into every file that the request names; a sheet makes several figures quicker."""
    import matplotlib.figure  # noqa: F401  (the recipe waits for the checkpoint's hash, which is being worked out)

    from posviz import outputs

    look = look_of(request)
    recipe = recipe_of("render", request, stacks[0])
    paths = paths_of(request, stacks[0])
    if request.extrapolate is None:
        return outputs.save_all(stacks[0], look, paths, recipe, sheet)
    from posviz.draw.extrapolate import draw_extrapolation

    trained = stacks[0].meta.get("context")
    if not isinstance(trained, int):
        raise PosvizError("the model does not say the length it was trained with; give block_size in a --config file")
    figure = draw_extrapolation(stacks, trained, look)
    return [outputs.save_figure(figure, path, recipe) for path in paths]


def look_of(request: LookRequest) -> Look:
    """The part of a request that decides how it looks."""
    from posviz.draw.look import Look

    return Look(**{f.name: getattr(request, f.name) for f in fields(LookRequest)})


def paths_of(request: RenderRequest, stack: HeadStack) -> list[Path]:
    """Where the figure goes; `figures/METHOD-layerN.png` under the current folder if nothing was said."""
    if request.out:
        return list(request.out)
    asked = stack.meta.get("options", {}).get("quantity")  # now, or when it was captured
    kind = f"-{asked}" if asked else ""
    return [Path("figures") / f"{stack.meta.get('method', 'heads')}-layer{stack.meta.get('layer', 1)}{kind}.png"]


def capture_part(request: CaptureRequest) -> CaptureRequest:
    """The part of a request that decides the numbers."""
    return CaptureRequest(**{f.name: getattr(request, f.name) for f in fields(CaptureRequest)})


def _stored(request: RenderRequest, path: Path) -> HeadStack:
    given = [f.name for f in fields(CaptureRequest) if f.name != "heads" and getattr(request, f.name) != f.default]
    given += ["extrapolate"] if request.extrapolate is not None else []
    if given:
        names = ", ".join("--" + name.replace("_", "-") for name in given)
        raise PosvizError(f"{names} cannot change a stored capture; leave out --from, or capture again")
    from posviz.outputs.arrays import load_stack

    stack = load_stack(path)
    heads = request.head_numbers()
    return stack if heads is None else stack.select(heads)
