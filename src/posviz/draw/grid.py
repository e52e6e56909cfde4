"""The grid of heatmaps: one panel per head, query down, key right, each with its colour bar."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
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
    return Sheet().draw(stack, look)


class Sheet:
    """Draws one figure after another on the same canvas: of figures laid out alike, axes and ticks are made once.

    A figure is good until the next one is drawn.
    """

    def __init__(self) -> None:
        self._figure: Figure | None = None
        self._like: tuple[object, ...] | None = None  # what figures must have in common with it

    def draw(self, stack: HeadStack, look: Look) -> Figure:
        """The figure of a stack, the same as on a new sheet."""
        from matplotlib.colors import Normalize

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
        cmap, spans = colour_map(look), norms(stack, look)
        like = (layout, bool(title), footer, stack.values.shape, stack.cell, stack.seq_len, stack.key_len)
        linear = [norm for norm in spans if type(norm) is Normalize]  # other scales change more of a bar than its range
        figure, self._figure = self._figure, None  # not to be used again if this goes wrong
        with style.paper_style():
            if figure is not None and like == self._like and len(linear) == heads:
                for index, norm in enumerate(linear):
                    show(figure.axes[index], index, stack, cmap, norm)
                    show_range(figure.axes[heads + index], cmap, norm)
            else:
                figure = _new_grid(layout, stack, cmap, spans, footer)
            if title:
                _write_title(figure, layout, title)
        self._figure, self._like = figure, like if len(linear) == heads else None
        return figure


def _new_grid(
    layout: Layout, stack: HeadStack, cmap: Colormap, spans: Sequence[Normalize | None], footer: str
) -> Figure:
    """All panels, then a bar for each that has values, and the line below them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=layout.inches(), dpi=layout.dpi, facecolor=style.BLANK)
    for index, norm in enumerate(spans):
        draw_panel(figure, layout, index, stack, cmap, norm)
    for index, norm in enumerate(spans):
        if norm is not None:
            draw_bar(figure, layout, layout.bars[index], cmap, norm)
    for axes in figure.axes:  # which have no labels, so matplotlib need not measure all ticks to find them a place
        axes.xaxis.set_label_coords(0.5, 0)
        axes.yaxis.set_label_coords(0, 0.5)
    if footer:
        figure.text(0.5, layout.below / layout.height, footer, ha="center", va="center", fontsize=style.FOOTER_SIZE)
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
    """A panel of its own with all that stays when other heads are shown in it."""
    axes = _framed(figure, layout, layout.panels[index])
    rows, columns = stack.values.shape[1:]
    down, right = rows * stack.cell, columns * stack.cell
    axes.imshow(
        np.zeros((rows, columns, 4), np.uint8),
        extent=(-0.5, right - 0.5, down - 0.5, -0.5),
        aspect="auto",
        interpolation="none",  # in PDF and SVG one image of one pixel per cell
        zorder=ABOVE,
    )
    _label_positions(axes, stack)
    show(axes, index, stack, cmap, norm)


def show(axes: Axes, index: int, stack: HeadStack, cmap: Colormap, norm: Normalize | None) -> None:
    """Show one of a stack's heads in a panel."""
    values = stack.values[index]
    axes.set_title(f"Head {stack.heads[index]}", y=1.0)  # where it would be, too, if matplotlib looked for ticks there
    # Coloured here rather than by matplotlib, which would resample the values first and round them on the way.
    axes.images[0].set_data(cmap(norm(values) if norm is not None else np.full(values.shape, np.nan), bytes=True))
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
        np.zeros((cmap.N, 1, 4), np.uint8),
        extent=(0, 1, 0, 1),
        transform=bar.transAxes,
        aspect="auto",
        interpolation="none",
        zorder=ABOVE,
    )
    spread_like(norm, bar)
    show_range(bar, cmap, norm)
    bar.set_xticks([])
    bar.yaxis.tick_right()
    bar.yaxis.get_offset_text().set(x=0, ha="left")  # a common power of ten stands above the bar, not the heatmap,
    bar.yaxis.OFFSETTEXTPAD = round(style.LABEL_SIZE)  # and clear of a label at the bar's upper end


def show_range(bar: Axes, cmap: Colormap, norm: Normalize) -> None:
    """Let a colour bar span another range of values on the same scale, in other colours."""
    bar.images[0].set_data(cmap(np.linspace(1, 0, cmap.N), bytes=True)[:, None])
    bar.set_ylim(norm.vmin, norm.vmax)


def _title_lines(title: str | None, heads: int) -> list[str]:
    """The title, broken where the figure ends."""
    if not title:
        return []
    width = grid_shape(heads)[1] * style.TILE * 72 / (style.TITLE_SIZE * style.CHARACTER_WIDTH)
    return [line for part in title.splitlines() for line in textwrap.wrap(part, int(width))]


def _write_title(figure: Figure, layout: Layout, title: list[str]) -> None:
    """The title, or another one in its place."""
    middle = (style.TITLE_ABOVE + len(title) * style.TITLE_LINE / 2) * layout.dpi
    text = figure.suptitle("\n".join(title), y=1 - middle / layout.height, va="center", fontsize=style.TITLE_SIZE)
    text.set_parse_math(False)  # a file name may hold a dollar
