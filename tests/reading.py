"""Reading a PNG of the grid back with nothing but the layout's arithmetic."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from figure_reading import colours
from matplotlib.colors import Normalize
from PIL import Image

from posviz.draw.layout import lay_out
from posviz.stack import HeadStack


def pixels(path: Path) -> np.ndarray:
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB"))


def assert_cells_are_the_values(path: Path, stack: HeadStack) -> None:
    """Every pixel of every cell of every head has the colour of its value, and white where it may not look."""
    heads, rows, columns = stack.values.shape
    layout = lay_out(heads, rows, columns, None)
    picture = pixels(path)
    assert picture.shape[:2] == (layout.height, layout.width)
    for values, (left, top, width, height) in zip(stack.values, layout.panels, strict=True):
        cells = picture[top : top + height, left : left + width].reshape(rows, height // rows, columns, -1, 3)
        wanted = colours(values, Normalize(np.nanmin(values), np.nanmax(values)))
        assert (cells == wanted[:, None, :, None]).all()
