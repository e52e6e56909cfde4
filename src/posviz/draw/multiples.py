"""Small multiples: one panel of curves over distance per head."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from posviz.draw import style
from posviz.draw.curves import BAND_ALPHA, QUIET, curve_axes
from posviz.draw.layout import Box, Layout, grid_shape
from posviz.draw.look import Look
from posviz.stats import Profile

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Inches: one panel and what surrounds it.
TILE_WIDTH, TILE_HEIGHT = 4.0, 2.6
LEFT, TOP, RIGHT, BOTTOM = 0.75, 0.35, 0.15, 0.45
TITLE, LAST = 0.45, 0.35  # above all for a title; below all for what the curves are


def small_multiples(
    profiles: Sequence[Profile],
    colours: Sequence[str],
    look: Look,
    *,
    above: float,
    bands: bool,
    width: float,
    quantity: str,
) -> tuple[Figure, Layout]:
    """The figure with a panel per head and a curve per profile, and its layout; `above` is inches left free on top."""
    from matplotlib.figure import Figure

    heads = profiles[0].heads
    layout = _lay_out(len(heads), look, above)
    figure = Figure(figsize=layout.inches(), dpi=layout.dpi, facecolor=style.BLANK)
    columns = grid_shape(len(heads))[1]
    for index, head in enumerate(heads):
        axes = curve_axes(figure, layout, layout.panels[index])
        axes.set_title(f"Head {head}")
        for over, colour in zip(profiles, colours, strict=True):
            _draw_curve(axes, over, index, colour, width, bands)
        if index % columns == 0:
            axes.set_ylabel(quantity)
        if index + columns >= len(heads):
            axes.set_xlabel("distance from key to query")
    if look.scale == "shared":
        _share_range(figure.axes)
    if look.title:
        y = 1 - 0.6 * TITLE * layout.dpi / layout.height
        figure.suptitle(look.title, y=y, va="center", fontsize=style.TITLE_SIZE).set_parse_math(False)
    _say_what_is_drawn(figure, layout, profiles, bands)
    return figure, layout


def _say_what_is_drawn(figure: Figure, layout: Layout, profiles: Sequence[Profile], bands: bool) -> None:
    centres = {"mean" if over.median is None else "median" for over in profiles}
    line = f"curves: {' or '.join(sorted(centres))} over queries"
    if bands and "median" in centres:
        line += "; bands: 5% to 95% of them"
    y = 0.4 * layout.below / layout.height
    figure.text(0.5, y, line, ha="center", va="center", fontsize=style.FOOTER_SIZE, color=QUIET)


def strip_above(layout: Layout, inches: float) -> Box:
    """The strip that was left free on top, below the title and as wide as the figure."""
    high = round(inches * layout.dpi)
    return 0, layout.above - high, layout.width, high


def _lay_out(heads: int, look: Look, above: float) -> Layout:
    dpi = math.ceil(look.dpi or style.DPI)
    rows, columns = grid_shape(heads)

    def pixels(inches: float) -> int:
        return round(inches * dpi)

    start = pixels(above + TITLE * bool(look.title))
    panels = []
    for index in range(heads):
        row, column = divmod(index, columns)
        corner = column * pixels(TILE_WIDTH) + pixels(LEFT), start + row * pixels(TILE_HEIGHT) + pixels(TOP)
        panels.append((*corner, pixels(TILE_WIDTH - LEFT - RIGHT), pixels(TILE_HEIGHT - TOP - BOTTOM)))
    height = start + rows * pixels(TILE_HEIGHT) + pixels(LAST)
    return Layout(dpi, columns * pixels(TILE_WIDTH), height, tuple(panels), (), above=start, below=pixels(LAST))


def _draw_curve(axes: Axes, over: Profile, index: int, colour: str, width: float, bands: bool) -> None:
    if bands and over.low is not None and over.high is not None:
        axes.fill_between(over.distance, over.low[index], over.high[index], color=colour, alpha=BAND_ALPHA, lw=0)
    axes.plot(over.distance, over.centre[index], color=colour, linewidth=width)


def _share_range(panels: Sequence[Axes]) -> None:
    low, high = np.array([axes.get_ylim() for axes in panels]).T
    for axes in panels:
        axes.set_ylim(low.min(), high.max())
