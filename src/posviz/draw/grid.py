"""The grid of heatmaps: one panel per head, query down, key right, each with its colour bar."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import numpy as np

from posviz.draw import style
from posviz.draw.colours import colour_map, norms, spread_like
from posviz.draw.layout import Box, Layout, grid_shape, lay_out, tick_positions
from posviz.draw.look import Look
from posviz.stack import HeadStack

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap, Normalize
    from matplotlib.figure import Figure

REDUCED_TO = {"mean": "mean", "max": "greatest", "min": "least", "absmax": "value farthest from zero"}
ABOVE = 10  # an image covers frame and ticks, which would otherwise cover half of the outermost cells
REDUCED_TO_WHAT = "each cell is the {what} of {cell} x {cell} positions"


def draw_grid(stack: HeadStack, look: Look = Look()) -> Figure:  # noqa: B008 - a Look is frozen
    """The figure of a stack. Its `dpi` is the resolution at which every cell is a whole number of pixels."""
    from matplotlib.figure import Figure

    heads, rows, columns = stack.values.shape
    title, footer = _title_lines(look.title, heads), reduction_note(stack)
    layout = lay_out(
        heads,
        rows,
        columns,
        look.dpi,
        above=style.TITLE_ABOVE + len(title) * style.TITLE_LINE if title else 0,
        below=style.FOOTER if footer else 0,
    )
    cmap = colour_map(look)
    with style.paper_style():
        figure = Figure(figsize=layout.inches(), dpi=layout.dpi, facecolor=style.BLANK)
        for index, norm in enumerate(norms(stack, look)):
            draw_panel(figure, layout, index, stack, cmap, norm)
            if norm is not None:
                draw_bar(figure, layout, layout.bars[index], cmap, norm)
        for axes in figure.axes:  # which have no labels, so matplotlib need not measure all ticks to find them a place
            axes.xaxis.set_label_coords(0.5, 0)
            axes.yaxis.set_label_coords(0, 0.5)
        _write_around(figure, layout, title, footer)
    return figure


def reduction_note(stack: HeadStack) -> str:
    """How a stack of a long sequence was reduced; empty for one that was not."""
    if stack.cell == 1:
        return ""
    how = str(stack.meta.get("reduce", "mean"))
    return REDUCED_TO_WHAT.format(what=REDUCED_TO.get(how, how), cell=stack.cell)


def draw_panel(
    figure: Figure, layout: Layout, index: int, stack: HeadStack, cmap: Colormap, norm: Normalize | None
) -> None:
    axes = _framed(figure, layout, layout.panels[index])
    values = stack.values[index]
    axes.set_title(f"Head {stack.heads[index]}", y=1.0)  # where it would be, too, if matplotlib looked for ticks there
    # Coloured here rather than by matplotlib, which would resample the values first and round them on the way.
    colours = cmap(norm(values) if norm is not None else np.full(values.shape, np.nan), bytes=True)
    down, right = values.shape[0] * stack.cell, values.shape[1] * stack.cell
    axes.imshow(
        colours,
        extent=(-0.5, right - 0.5, down - 0.5, -0.5),
        aspect="auto",
        interpolation="none",  # in PDF and SVG one image of one pixel per cell
        zorder=ABOVE,
    )
    _label_positions(axes, stack)
    if norm is None:
        axes.text(0.5, 0.5, "no values", transform=axes.transAxes, ha="center", va="center", zorder=ABOVE)


def _framed(figure: Figure, layout: Layout, box: Box, label: str = "") -> Axes:
    """Axes with a frame of whole pixels around them: the inner half of its line is under the image."""
    axes = figure.add_axes(layout.fraction(box), label=label)
    axes.spines[:].set_visible(False)
    pixels = max(1, round(style.FRAME_WIDTH * layout.dpi / 72))
    axes.patch.set(edgecolor="black", linewidth=2 * pixels * 72 / layout.dpi, snap=False)
    return axes


def _label_positions(axes: Axes, stack: HeadStack) -> None:
    for axis, length in ((axes.xaxis, stack.key_len), (axes.yaxis, stack.seq_len)):
        positions = tick_positions(length)
        short = length >= style.FROM_THOUSANDS and all(position % 1000 == 0 for position in positions)
        axis.set_ticks(positions, [f"{p // 1000}k" if short and p else str(p) for p in positions])


def draw_bar(figure: Figure, layout: Layout, box: Box, cmap: Colormap, norm: Normalize) -> None:
    """A colour bar whose ticks and labels are those that matplotlib chooses for the range of values."""
    bar = _framed(figure, layout, box, label="<colorbar>")
    bar.imshow(
        cmap(np.linspace(1, 0, cmap.N), bytes=True)[:, None],
        extent=(0, 1, 0, 1),
        transform=bar.transAxes,
        aspect="auto",
        interpolation="none",
        zorder=ABOVE,
    )
    spread_like(norm, bar)
    bar.set_ylim(norm.vmin, norm.vmax)
    bar.set_xticks([])
    bar.yaxis.tick_right()
    bar.yaxis.get_offset_text().set(x=0, ha="left")  # a common power of ten stands above the bar, not the heatmap,
    bar.yaxis.OFFSETTEXTPAD = round(style.LABEL_SIZE)  # and clear of a label at the bar's upper end


def _title_lines(title: str | None, heads: int) -> list[str]:
    """The title, broken where the figure ends."""
    if not title:
        return []
    width = grid_shape(heads)[1] * style.TILE * 72 / (style.TITLE_SIZE * style.CHARACTER_WIDTH)
    return [line for part in title.splitlines() for line in textwrap.wrap(part, int(width))]


def _write_around(figure: Figure, layout: Layout, title: list[str], footer: str) -> None:
    if title:
        middle = (style.TITLE_ABOVE + len(title) * style.TITLE_LINE / 2) * layout.dpi
        text = figure.suptitle("\n".join(title), y=1 - middle / layout.height, va="center", fontsize=style.TITLE_SIZE)
        text.set_parse_math(False)  # a file name may hold a dollar
    if footer:
        figure.text(0.5, layout.below / layout.height, footer, ha="center", va="center", fontsize=style.FOOTER_SIZE)
