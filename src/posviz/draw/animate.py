"""The grid over a training run as an animated GIF, every frame in the same colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from posviz.draw.colours import colour_map
from posviz.draw.compare import require_same_heads
from posviz.draw.grid import Sheet
from posviz.draw.look import Look
from posviz.draw.prepare import coarser, over_one_range
from posviz.errors import OutputError
from posviz.outputs import ANIMATIONS, can_write, gif
from posviz.stack import HeadStack

if TYPE_CHECKING:
    from PIL.Image import Image

MOST_CELLS, DPI = 256, 90  # half of a figure's: a GIF is looked at on a screen, and large ones do not load
SECONDS, LAST_SECONDS = 0.5, 2.0  # how long a frame stands, and the last
GREYS = 40  # of a GIF's 256 colours: text and frames; the others are the colour map's


def save_animation(
    stacks: Sequence[HeadStack], labels: Sequence[str], look: Look, path: Path, recipe: Mapping[str, Any]
) -> Path:
    """Write the grids of the stacks, in their order and each under its label, as one GIF with its recipe inside."""
    path = can_write(Path(path), ANIMATIONS)
    require_same_heads(stacks, labels)
    lengths = sorted({stack.seq_len for stack in stacks})
    if len(lengths) > 1:
        raise OutputError(f"frames of {' and '.join(map(str, lengths))} positions; expected one length for all of them")
    palette = _palette(look)
    small = [coarser(stack, MOST_CELLS) for stack in over_one_range(stacks, look.log)]
    sheet = Sheet()
    frames = [_frame(sheet, stack, label, look, palette) for stack, label in zip(small, labels, strict=True)]
    durations = [round(1000 * SECONDS)] * (len(frames) - 1) + [round(1000 * LAST_SECONDS)]
    return gif.write(frames, durations, path, recipe)


def _frame(sheet: Sheet, stack: HeadStack, label: str, look: Look, palette: Image) -> Image:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    title = f"{look.title}\n{label}" if look.title else label
    canvas: Any = FigureCanvasAgg(sheet.draw(stack, replace(look, title=title, dpi=look.dpi or DPI)))
    canvas.draw()
    picture = Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3])
    return picture.quantize(palette=palette, dither=Image.Dither.NONE)


def _palette(look: Look) -> Image:
    """One set of colours for all frames, so that a value has the same in each."""
    from PIL import Image

    colours = colour_map(look)(np.linspace(0, 1, 256 - GREYS), bytes=True)[:, :3]
    greys = np.repeat(np.linspace(0, 255, GREYS).round().astype(np.uint8)[:, None], 3, axis=1)
    palette = Image.new("P", (1, 1))
    palette.putpalette(np.concatenate([colours, greys]).tobytes())
    return palette
