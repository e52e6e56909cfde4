"""`posviz render`: a checkpoint goes in, the grid of heatmaps comes out."""

from __future__ import annotations

from posviz.cli import app
from posviz.cli._options import takes
from posviz.cli._say import note, wrote
from posviz.options import RenderRequest


@app.command("render")
@takes(RenderRequest)
def render(request: RenderRequest) -> None:
    """Draw the heads of a layer as a grid of heatmaps.

    A heatmap shows what the positional method adds to the scores (or, for RoPE, the scores themselves): queries
    down, keys to the right.
    """
    from posviz import render as library
    from posviz.outputs import can_write

    for path in request.out:
        can_write(path)
    stacks = library.stacks_of(request)
    note(stacks[-1], request)
    wrote(library.write(request, stacks))
