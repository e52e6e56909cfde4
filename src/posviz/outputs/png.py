"""PNG: the figure as matplotlib rasters it, the recipe in a text chunk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from posviz.errors import OutputError
from posviz.outputs import recipes
from posviz.outputs.png_file import write_png

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_PIXELS = 250_000_000  # a gigabyte of them in memory


def write(figure: Figure, path: Path, recipe: Mapping[str, Any]) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    wide, high = (int(side) for side in figure.bbox.size)
    if wide * high > MOST_PIXELS or max(wide, high) >= 2**16:
        raise OutputError(
            f"a picture of {wide} x {high} pixels is too large for a PNG; "
            "draw fewer heads, a lower resolution or a reduced stack, or a PDF"
        )
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    texts = {"Software": recipes.CREATOR}
    if title := figure.get_suptitle():
        texts["Title"] = title.replace("\n", " ")
    texts[recipes.KEY] = recipes.to_text(recipe)
    write_png(path, np.asarray(canvas.buffer_rgba()), figure.dpi, texts)


def read(path: Path) -> str | None:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path, formats=["PNG"]) as picture:
            found = picture.info.get(recipes.KEY)
    except (UnidentifiedImageError, SyntaxError, ValueError) as error:
        raise OutputError(f"{path} is no PNG picture, or a broken one; expected a figure that posviz made") from error
    return str(found) if found else None
