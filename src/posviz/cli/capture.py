"""`posviz capture`: the numbers behind a figure."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from posviz.cli import app
from posviz.cli._options import takes
from posviz.cli._say import note, wrote
from posviz.options import CaptureRequest


@app.command("capture")
@takes(CaptureRequest)
def capture(
    request: CaptureRequest,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write: .npz or .safetensors.")],
) -> None:
    """Store the numbers behind a figure.

    The file holds values [head, query, key], the heads, the tokens, and where it all came from; `posviz render
    --from` draws it again without checkpoint or torch.
    """
    from posviz.outputs import ARRAYS, can_write
    from posviz.outputs.arrays import save_stack
    from posviz.session import Session

    can_write(out, ARRAYS)
    stack = Session([request]).stack(request)
    note(stack, request)
    wrote([save_stack(stack, out)])
