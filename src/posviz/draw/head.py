"""One head under the microscope: its heatmap, its profile over distance, some rows, and a window with its tokens."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from posviz.draw import style
from posviz.draw.colours import colour_map, norms
from posviz.draw.curves import (
    BAND_ALPHA,
    COLOURS,
    LINE,
    MARK,
    QUIET,
    THIN,
    curve_axes,
    label_tokens,
    ordered_colours,
    token_label,
)
from posviz.draw.grid import draw_bar, draw_panel, reduction_note
from posviz.draw.head_plan import CURVES, plan_head
from posviz.draw.layout import Layout
from posviz.draw.look import Look
from posviz.errors import OutputError, PosvizError
from posviz.stack import HeadStack
from posviz.stats import HeadStats, profile
from posviz.stats.table import describe_fit, format_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN_ROWS, FEW_KEYS = 4, 200  # of more keys, scores go up and down so much that wide lines cover each other
FACTS = ("uniformity", "reach50", "reach90", "entropy", "sink", "previous")
TOKEN_SIZE = 7.0  # points
Window = tuple[int, int]


def draw_head(stack: HeadStack, stats: HeadStats, look: Look, window: Window | None = None) -> Figure:
    """The figure of a stack of one head; `window` is the first position, and the one after the last, to show large.

    Its `dpi` is the resolution at which every cell of both heatmaps is a whole number of pixels.
    """
    from matplotlib.figure import Figure

    if len(stack.heads) != 1:
        raise OutputError(f"a stack of {len(stack.heads)} heads; expected the one to look at: choose it by --head")
    part = None if window is None else cut(stack, window)
    side = None if part is None else part.values.shape[1]
    rows, columns = stack.values.shape[1:]
    plan = plan_head(rows, columns, side, look.dpi or style.DPI, bool(look.title))
    with style.paper_style():
        figure = Figure(figsize=plan.layout.inches(), dpi=plan.layout.dpi, facecolor=style.BLANK)
        heat = _draw_heat(figure, plan.layout, 0, stack, look)
        _draw_profile(curve_axes(figure, plan.layout, plan.profile), stack, stats)
        _draw_rows(curve_axes(figure, plan.layout, plan.rows), stack, 0)
        if window is not None and part is not None and plan.window_rows is not None:
            _outline(heat, window)
            _name_positions(_draw_heat(figure, plan.layout, 1, part, look), part, window, plan.layout)
            beside = curve_axes(figure, plan.layout, plan.window_rows)
            _draw_rows(beside, part, window[0])
            beside.set_title("Some queries of the window")
            if part.tokens:
                label_tokens(beside.xaxis, part.tokens, window[0], CURVES, TOKEN_SIZE)
                beside.tick_params(axis="x", rotation=90)
        _write_above(figure, plan.layout, stack, stats, look)
    return figure


def cut(stack: HeadStack, window: Window) -> HeadStack:
    """The queries and keys of a window, as a stack of their own."""
    start, stop = window
    length = min(stack.seq_len, stack.key_len)
    if stack.cell > 1:
        raise OutputError(
            f"a window into a stack whose cells are {stack.cell} x {stack.cell} positions; "
            "expected one that shows every position: take a shorter sequence"
        )
    if not 0 <= start < stop <= length:
        raise OutputError(
            f"the window {start}:{stop} does not lie in the {length} positions; "
            f"expected START:END with 0 <= START < END <= {length}"
        )
    values = stack.values[:, start:stop, start:stop]
    tokens = stack.tokens[start:stop] if len(stack.tokens) >= stop else ()
    meta = {**stack.meta, "seq_len": stop - start, "key_len": stop - start}
    return replace(stack, values=values, tokens=tokens, token_ids=None, meta=meta, ranges=None, profile=None)


def _draw_heat(figure: Figure, layout: Layout, index: int, stack: HeadStack, look: Look) -> Axes:
    cmap, norm = colour_map(look), norms(stack, look)[0]
    only = replace(layout, panels=layout.panels[index:], bars=layout.bars[index:])
    draw_panel(figure, only, 0, stack, cmap, norm)
    axes = figure.axes[-1]
    axes.set_xlabel("key")
    axes.set_ylabel("query")
    if norm is not None:
        draw_bar(figure, layout, layout.bars[index], cmap, norm)
    return axes


def _outline(axes: Axes, window: Window) -> None:
    """Show in the whole heatmap where the window is."""
    start, stop = window
    sides = ([start, stop, stop, start, start], [start, start, stop, stop, start])
    axes.plot(*(np.array(side) - 0.5 for side in sides), color=MARK, linewidth=THIN, zorder=12)


def _name_positions(axes: Axes, part: HeadStack, window: Window, layout: Layout) -> None:
    """Give the window's axes the positions of the whole, or the tokens that stand there."""
    start, stop = window
    axes.images[0].set_extent((start - 0.5, stop - 0.5, stop - 0.5, start - 0.5))
    axes.set_title(f"Positions {start} to {stop - 1}")
    inches = layout.panels[1][2] / layout.dpi
    for axis in (axes.xaxis, axes.yaxis):
        if part.tokens:
            label_tokens(axis, part.tokens, start, inches, TOKEN_SIZE)
        else:
            every = -(-len(range(start, stop)) // style.MOST_TICKS)
            axis.set_ticks(range(start, stop, every))
    if part.tokens:
        axes.tick_params(axis="x", rotation=90)
        axes.tick_params(length=2)


def _draw_profile(axes: Axes, stack: HeadStack, stats: HeadStats) -> None:
    axes.set_title("Over distance")
    try:
        over = profile(stack)
    except PosvizError as error:
        axes.axis("off")
        axes.text(0.5, 0.5, textwrap.fill(str(error), 60), transform=axes.transAxes, ha="center", va="center")
        return
    if over.low is not None and over.high is not None:
        span = "5% to 95% of queries"
        axes.fill_between(
            over.distance, over.low[0], over.high[0], color=COLOURS[0], alpha=BAND_ALPHA, lw=0, label=span
        )
    name = "mean" if over.median is None else "median"
    axes.plot(over.distance, over.centre[0], color=COLOURS[0], linewidth=LINE, label=name)
    if stats.fit is not None:
        label = describe_fit(stats.fit.to_json())
        axes.plot(over.distance, stats.fit.curve(over.distance), "--", color=COLOURS[1], linewidth=THIN, label=label)
    axes.set_xlabel("distance from key to query")
    axes.set_ylabel(str(stack.meta.get("quantity", "value")))
    axes.legend(frameon=False, fontsize=style.FOOTER_SIZE)


def _draw_rows(axes: Axes, stack: HeadStack, start: int) -> None:
    """Some queries' rows as curves over the keys, evenly spread and with the last."""
    rows, columns = stack.values.shape[1:]
    keys = start + np.arange(columns) * stack.cell + (stack.cell - 1) / 2
    chosen = sorted({max(0, rows * part // SHOWN_ROWS - 1) for part in range(1, SHOWN_ROWS + 1)})
    for row, colour in zip(chosen, ordered_colours(len(chosen)), strict=True):
        first, last = start + row * stack.cell, start + min((row + 1) * stack.cell, stack.seq_len) - 1
        name = f"query {first}" if first == last else f"queries {first} to {last}"
        if row < len(stack.tokens) and stack.cell == 1:
            name += f"  {token_label(stack.tokens[row])}"
        width = LINE if columns <= FEW_KEYS else THIN
        (line,) = axes.plot(keys, stack.values[0, row], color=colour, linewidth=width, label=name)
        if np.isfinite(stack.values[0, row]).sum() == 1:  # a line through one point is not seen
            line.set_marker(".")
    axes.set_title("Some queries over their keys")
    axes.set_xlim(start - 0.5, start + columns * stack.cell - 0.5)
    axes.set_xlabel("key")
    axes.set_ylabel(str(stack.meta.get("quantity", "value")))
    for text in axes.legend(frameon=False, fontsize=style.FOOTER_SIZE).get_texts():
        text.set_parse_math(False)


def _write_above(figure: Figure, layout: Layout, stack: HeadStack, stats: HeadStats, look: Look) -> None:
    """The title, and below it the head's numbers in a line."""
    left = layout.panels[0][0] / layout.width
    if look.title:
        y = 1 - 0.32 * layout.dpi / layout.height
        title = figure.suptitle(look.title, x=left, y=y, ha="left", va="center", fontsize=style.TITLE_SIZE)
        title.set_parse_math(False)
    numbers = ((name, getattr(stats, name)) for name in FACTS)
    facts = [f"{name} {format_number(value, name)}" for name, value in numbers if value is not None]
    line = "     ".join([*facts, *filter(None, [reduction_note(stack)])])
    y = 1 - (layout.above + 0.3 * layout.dpi) / layout.height
    figure.text(left, y, line, ha="left", va="center", color=QUIET, fontsize=style.LABEL_SIZE)
