"""PNG: the figure as matplotlib rasters it, the recipe in a text chunk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from posviz.errors import OutputError
from posviz.outputs import recipes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_PIXELS = 250_000_000  # a gigabyte of them in memory
COMPRESSION = 3  # of 9; the size of 6 in about two thirds of its time


def write(figure: Figure, path: Path, recipe: Mapping[str, Any]) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    wide, high = (int(side) for side in figure.bbox.size)
    if wide * high > MOST_PIXELS or max(wide, high) >= 2**16:
        raise OutputError(
            f"a picture of {wide} x {high} pixels is too large for a PNG; "
            "draw fewer heads, a lower resolution or a reduced stack, or a PDF"
        )
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    # Agg's buffer is RGBA; the figure is opaque, and a quarter less is compressed without its alpha.
    picture = Image.frombuffer("RGBA", (wide, high), canvas.buffer_rgba(), "raw", "RGBA", 0, 1).convert("RGB")
    chunks = PngInfo()
    chunks.add_text("Software", recipes.CREATOR)
    if title := figure.get_suptitle():
        chunks.add_itxt("Title", title.replace("\n", " "))
    chunks.add_text(recipes.KEY, recipes.to_text(recipe))
    picture.save(path, "PNG", pnginfo=chunks, dpi=(figure.dpi, figure.dpi), compress_level=COMPRESSION)


def read(path: Path) -> str | None:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path, formats=["PNG"]) as picture:
            found = picture.info.get(recipes.KEY)
    except (UnidentifiedImageError, SyntaxError, ValueError) as error:
        raise OutputError(f"{path} is no PNG picture, or a broken one; expected a figure that posviz made") from error
    return str(found) if found else None
