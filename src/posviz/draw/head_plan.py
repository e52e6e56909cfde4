"""Where the parts of a single head's figure go, in whole pixels; plain arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass

from posviz.draw import style
from posviz.draw.layout import Box, Layout, panel_size

# Inches.
HEAT_LEAST, HEAT_MOST = 5.2, 5.8  # the heatmap's longer side; room to choose a resolution that suits its cells
ROW_LEAST = 4.5  # the height of a row of panels, however flat the heatmap is
LEFT, LEFT_OF_TOKENS = 0.75, 1.25
TITLE, TOP, BOTTOM = 0.4, 0.85, 0.6  # the facts stand in the top
BESIDE = 1.55  # from the heatmap to the curves: colour bar, its labels, the curves' labels
BETWEEN = 0.85  # between two curves
CURVES, RIGHT = 4.8, 0.25
ABOVE_WINDOW, BELOW_WINDOW = 1.0, 1.15  # tokens stand upright below the window


@dataclass(frozen=True)
class Plan:
    """The figure's pixels: the heatmap and perhaps the window as panels, and the curves beside them."""

    layout: Layout
    profile: Box
    rows: Box
    window_rows: Box | None


def plan_head(rows: int, columns: int, window: int | None, least_dpi: float, titled: bool) -> Plan:
    """The plan for a matrix of `rows` x `columns` cells and a window of so many positions a side."""
    dpi, per_cell = whole_pixels(max(rows, columns), least_dpi)
    wide, high = panel_size(rows, columns, per_cell)

    def pixels(inches: float) -> int:
        return round(inches * dpi)

    heat_width = max(wide, high)  # so that the curves stand at one place for every shape
    height = max(high, pixels(ROW_LEAST))
    left, top = pixels(LEFT if window is None else LEFT_OF_TOKENS), pixels(TOP + TITLE * titled)
    beside = left + heat_width + pixels(BESIDE)
    curve = (height - pixels(BETWEEN)) // 2
    panels: list[Box] = [(left, top, wide, high)]
    window_rows, bottom = None, top + height + pixels(BOTTOM)
    if window is not None:
        side = heat_width // window * window
        below = top + height + pixels(ABOVE_WINDOW)
        panels.append((left, below, side, side))
        window_rows = (beside, below, pixels(CURVES), side)
        bottom = below + side + pixels(BELOW_WINDOW)
    bars = [(x + w + pixels(style.BAR_GAP), y, pixels(style.BAR_WIDTH), h) for x, y, w, h in panels]
    width = beside + pixels(CURVES + RIGHT)
    layout = Layout(dpi, width, bottom, tuple(panels), tuple(bars), above=pixels(TITLE * titled), below=0)
    lower = (beside, top + height - curve, pixels(CURVES), curve)
    return Plan(layout, (beside, top, pixels(CURVES), curve), lower, window_rows)


def whole_pixels(cells: int, least_dpi: float) -> tuple[int, int]:
    """The next resolution at which so many cells make a large heatmap, and the pixels of a cell's side."""
    dpi = math.ceil(least_dpi)
    while True:
        per_cell = math.floor(HEAT_MOST * dpi / cells)
        if per_cell * cells >= HEAT_LEAST * dpi:
            return dpi, per_cell
        dpi = max(dpi + 1, math.ceil(cells * (per_cell + 1) / HEAT_MOST))
