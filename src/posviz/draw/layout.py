"""Where everything in a grid of heatmaps goes, in whole pixels; plain arithmetic.

Every cell of a heatmap covers the same whole number of pixels, with its edges between pixels, so that the stripes of
a bias neither beat with the raster nor blend. The resolution is chosen for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import count

from posviz.draw import style
from posviz.errors import OutputError

Box = tuple[int, int, int, int]  # left, top, width, height in pixels; top from the figure's upper edge


@dataclass(frozen=True)
class Layout:
    """The pixels of one figure."""

    dpi: int
    width: int
    height: int
    panels: tuple[Box, ...]
    bars: tuple[Box, ...]
    above: int = 0  # what a title takes
    below: int = 0  # what a line below the panels takes

    def inches(self) -> tuple[float, float]:
        """The figure's size, such that its product with the resolution is not a hair below the whole pixels."""
        return _inches(self.width, self.dpi), _inches(self.height, self.dpi)

    def fraction(self, box: Box) -> tuple[float, float, float, float]:
        """A box as matplotlib wants it: left, bottom, width, height as shares of the figure.

        It is a millionth of a pixel smaller on each side: matplotlib rounds an image up to whole pixels, and a
        rounding error above a whole number would make it a pixel wider.
        """
        left, top, width, height = box
        hair = 1e-6
        return (
            (left + hair) / self.width,
            (self.height - top - height + hair) / self.height,
            (width - 2 * hair) / self.width,
            (height - 2 * hair) / self.height,
        )


def lay_out(heads: int, rows: int, columns: int, dpi: float | None, above: float = 0, below: float = 0) -> Layout:
    """The layout for so many heads of `rows` x `columns` cells; `above` and `below` are extra inches."""
    if not (heads and rows and columns):
        raise OutputError(f"nothing to draw: {heads} heads of {rows} x {columns} cells")
    found, per_cell = resolution(max(rows, columns), dpi or style.DPI)
    wide, high = panel_size(rows, columns, per_cell)
    around = round(style.TILE * found) - max(wide, high)  # pixels of a tile that are not heatmap, on either axis
    grid_rows, grid_columns = grid_shape(heads)
    extra_above, extra_below = round(above * found), round(below * found)
    panels, bars = [], []
    for index in range(heads):
        row, column = divmod(index, grid_columns)
        left = column * (wide + around) + round(style.LEFT * found)
        top = extra_above + row * (high + around) + round(style.TOP * found)
        panels.append((left, top, wide, high))
        bars.append((left + wide + round(style.BAR_GAP * found), top, round(style.BAR_WIDTH * found), high))
    return Layout(
        dpi=found,
        width=grid_columns * (wide + around),
        height=grid_rows * (high + around) + extra_above + extra_below,
        panels=tuple(panels),
        bars=tuple(bars),
        above=extra_above,
        below=extra_below,
    )


def resolution(cells: int, least: float) -> tuple[int, int]:
    """The next resolution from `least` on at which `cells` cells make a panel, and the pixels of a cell's side."""
    dpi = math.ceil(least)
    while True:
        per_cell = math.floor(style.PANEL_MOST * dpi / cells)
        if per_cell and per_cell * cells >= style.PANEL_LEAST * dpi:
            return dpi, per_cell
        dpi = max(dpi + 1, math.ceil(cells * (per_cell + 1) / style.PANEL_MOST))


def panel_size(rows: int, columns: int, per_cell: int) -> tuple[int, int]:
    """Width and height of a heatmap in pixels. Cells are square unless one axis is less than half of the other."""
    longest = max(rows, columns)
    return columns * per_cell * (longest // columns), rows * per_cell * (longest // rows)


def grid_shape(heads: int) -> tuple[int, int]:
    """Rows and columns: upright like a page, full if that makes it at most twice as high as wide."""
    if heads <= 3:
        return 1, heads
    root = math.isqrt(heads)
    full = next(columns for columns in range(root, 0, -1) if heads % columns == 0)
    columns = full if heads <= 2 * full * full else root
    return -(-heads // columns), columns


def tick_positions(length: int) -> list[int]:
    """Round positions along an axis from 0, at most `MOST_TICKS`: every 100 for 512 positions."""
    steps = (factor * 10**power for power in count() for factor in (1, 2, 5))
    return list(range(0, length, next(step for step in steps if length <= step * style.MOST_TICKS)))


def _inches(pixels: int, dpi: int) -> float:
    inches = pixels / dpi
    return inches if int(inches * dpi) == pixels else math.nextafter(inches, math.inf)
