"""The same heads at growing lengths, with the training context marked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from posviz.draw import style
from posviz.draw.colours import colour_map, norms
from posviz.draw.compare import require_same_heads
from posviz.draw.curves import MARK, THIN
from posviz.draw.grid import REDUCED_TO, draw_bar, draw_panel
from posviz.draw.layout import Box, Layout, panel_size
from posviz.draw.look import Look
from posviz.draw.prepare import coarser, over_one_range
from posviz.errors import OutputError
from posviz.stack import HeadStack

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_CELLS = 512  # a side; longer sequences are reduced, their panels are small
PANELS_ACROSS = 6  # at most, where that leaves every head's lengths beside each other

# Inches.
PANEL_LEAST, PANEL_MOST = 1.75, 1.95  # the longer side of the longest sequence's heatmap
LEFT, TOP, BOTTOM = 0.45, 0.35, 0.35  # around a heatmap
BAR_GAP, BAR_WIDTH, BAR_LABELS = 0.08, 0.12, 0.6
TITLE, FOOTER = 0.5, 0.35
TICK_SIZE, TITLE_SIZE = 7.0, 9.0  # points


def draw_extrapolation(stacks: Sequence[HeadStack], trained: int, look: Look = Look()) -> Figure:  # noqa: B008
    """Each head's heatmaps from the shortest sequence to the longest, in colours over one range.

    Lines mark `trained`, the context that the model was trained with. Every cell is a whole number of pixels.
    """
    from matplotlib.figure import Figure

    require_same_heads(stacks, [f"length {stack.seq_len}" for stack in stacks])
    if trained < 1:
        raise OutputError(f"a training context of {trained} positions; expected 1 or more")
    ordered = sorted(stacks, key=lambda stack: stack.seq_len)
    small = [coarser(stack, MOST_CELLS) for stack in over_one_range(ordered, look.log)]
    layout = _lay_out(small, look)
    cmap = colour_map(look)
    with style.paper_style():
        figure = Figure(figsize=layout.inches(), dpi=layout.dpi, facecolor=style.BLANK)
        for n, stack in enumerate(small):
            of_length = _part(layout, n, len(small))
            for index, norm in enumerate(norms(stack, look)):
                draw_panel(figure, of_length, index, stack, cmap, norm)
                _mark(figure, stack, index, trained)
                if norm is not None and n == len(small) - 1:
                    draw_bar(figure, layout, layout.bars[index], cmap, norm)
                    figure.axes[-1].tick_params(labelsize=TICK_SIZE)
        _write_around(figure, layout, small, trained, look)
    return figure


def _lay_out(stacks: Sequence[HeadStack], look: Look) -> Layout:
    """A row of heatmaps per head with one colour bar, as many heads beside each other as fit; panels by length."""
    dpi = _resolution(max(max(stack.values.shape[1:]) for stack in stacks), look.dpi or style.DPI)

    def pixels(inches: float) -> int:
        return round(inches * dpi)

    slot = math.floor(PANEL_MOST * dpi)
    heads, lengths = len(stacks[0].heads), len(stacks)
    across = max(1, min(PANELS_ACROSS // lengths, heads // 2))
    tile = slot + pixels(LEFT)
    group_width = lengths * tile + pixels(BAR_GAP + BAR_WIDTH + BAR_LABELS)
    row_height = slot + pixels(TOP + BOTTOM)
    start = pixels(TITLE if look.title else 0)
    panels: list[Box] = []
    for n, stack in enumerate(stacks):
        rows, columns = stack.values.shape[1:]
        per_cell = slot // max(rows, columns)
        wide, high = panel_size(rows, columns, per_cell)
        for index in range(heads):
            row, group = divmod(index, across)
            left = group * group_width + n * tile + pixels(LEFT)
            panels.append((left, start + row * row_height + pixels(TOP), wide, high))
    bars = [(x + w + pixels(BAR_GAP), y, pixels(BAR_WIDTH), h) for x, y, w, h in panels[-heads:]]
    height = start + -(-heads // across) * row_height + pixels(FOOTER)
    return Layout(dpi, across * group_width, height, tuple(panels), tuple(bars), above=start, below=pixels(FOOTER))


def _resolution(cells: int, least: float) -> int:
    """The next resolution at which so many cells make a heatmap of the right size."""
    dpi = math.ceil(least)
    while math.floor(PANEL_MOST * dpi) // cells * cells < PANEL_LEAST * dpi:
        dpi += 1
    return dpi


def _part(layout: Layout, n: int, lengths: int) -> Layout:
    """The layout of one length alone."""
    heads = len(layout.panels) // lengths
    return replace(layout, panels=layout.panels[n * heads : (n + 1) * heads])


def _mark(figure: Figure, stack: HeadStack, index: int, trained: int) -> None:
    """Name the panel just drawn, and mark the training context where it ends inside."""
    axes = figure.axes[-1]
    axes.set_title(f"Head {stack.heads[index]}, {stack.seq_len}", fontsize=TITLE_SIZE)
    axes.tick_params(labelsize=TICK_SIZE)
    if trained < stack.key_len:
        axes.axvline(trained - 0.5, color=MARK, linewidth=THIN, zorder=12)
    if trained < stack.seq_len:
        axes.axhline(trained - 0.5, color=MARK, linewidth=THIN, zorder=12)


def _write_around(figure: Figure, layout: Layout, stacks: Sequence[HeadStack], trained: int, look: Look) -> None:
    if look.title:
        y = 1 - 0.55 * layout.above / layout.height
        figure.suptitle(look.title, y=y, va="center", fontsize=style.TITLE_SIZE).set_parse_math(False)
    longest = max(max(stack.seq_len, stack.key_len) for stack in stacks)
    notes = [f"lines: the training context of {trained} positions" if trained < longest else ""]
    reduced = [stack for stack in stacks if stack.cell > 1]
    if reduced:
        how = str(reduced[0].meta.get("reduce", "mean"))
        cells = ", ".join(f"{stack.cell} x {stack.cell} at {stack.seq_len}" for stack in reduced)
        notes.append(f"a cell is the {REDUCED_TO.get(how, how)} of several positions: {cells}")
    y = 0.5 * layout.below / layout.height
    figure.text(0.5, y, "; ".join(filter(None, notes)), ha="center", va="center", fontsize=style.FOOTER_SIZE)
