"""Several stacks head by head: their profiles over distance, the difference of two, and a training run's steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from posviz.draw import style
from posviz.draw.curves import LINE, THIN, ordered_colours, several_colours
from posviz.draw.grid import draw_grid
from posviz.draw.layout import Layout, grid_shape
from posviz.draw.look import Look
from posviz.draw.multiples import TILE_WIDTH, small_multiples, strip_above
from posviz.errors import OutputError
from posviz.stack import HeadStack
from posviz.stats import profile
from posviz.stats.table import numbered

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEGEND_LINE, STEPS = 0.25, 0.7  # inches above the panels: for a line of the legend, for the bar of steps
BAR_SHARE, BAR_HEIGHT = 0.5, 0.14  # the bar of steps: of the figure's width, and inches
LEGEND_AROUND = 6  # characters beside a label in the legend: its line and room
MOST_BANDS = 3  # with more curves in a panel their bands hide each other


def draw_profiles(stacks: Sequence[HeadStack], labels: Sequence[str], look: Look = Look()) -> Figure:  # noqa: B008
    """One panel per head, one curve per stack: the median over queries, and the 5-95% band of up to three."""
    require_same_heads(stacks, labels)
    quantity = _common_quantity(stacks)
    names = (
        list(labels) if quantity else [f"{n} ({s.meta.get('quantity')})" for n, s in zip(labels, stacks, strict=True)]
    )
    columns = _fitting(names, grid_shape(len(stacks[0].heads))[1] * TILE_WIDTH, LEGEND_AROUND)
    above = 0.15 + LEGEND_LINE * -(-len(names) // columns)
    with style.paper_style():
        figure, layout = small_multiples(
            [profile(stack) for stack in stacks],
            several_colours(len(stacks)),
            look,
            above=above,
            bands=len(stacks) <= MOST_BANDS,
            width=LINE,
            quantity=quantity or "value",
        )
        at = (0.5, layout.fraction(strip_above(layout, above))[1])
        curves = figure.axes[0].lines
        legend = figure.legend(curves, names, loc="lower center", bbox_to_anchor=at, ncols=columns, frameon=False)
        for text in legend.get_texts():
            text.set_parse_math(False)
    return figure


def draw_steps(
    stacks: Sequence[HeadStack],
    steps: Sequence[int],
    labels: Sequence[str] | None = None,
    look: Look = Look(),  # noqa: B008 - a Look is frozen
) -> Figure:
    """How each head's profile moves over a training run: one curve per step, from dark to light.

    `labels` name the steps, where their numbers do not.
    """
    names = list(labels) if labels is not None else [str(step) for step in steps]
    require_same_heads(stacks, names)
    order = sorted(range(len(steps)), key=lambda n: steps[n])
    colours = ordered_colours(len(stacks))
    with style.paper_style():
        figure, layout = small_multiples(
            [profile(stacks[n]) for n in order],
            colours,
            look,
            above=STEPS,
            bands=False,
            width=THIN,
            quantity=_common_quantity(stacks) or "value",
        )
        _draw_step_bar(figure, layout, colours, [names[n] for n in order])
    return figure


def difference(a: HeadStack, b: HeadStack) -> HeadStack:
    """The first stack minus the second, cell by cell."""
    require_same_heads([a, b], ["the first", "the second"])
    if (a.seq_len, a.key_len, a.values.shape) != (b.seq_len, b.key_len, b.values.shape):
        raise OutputError(
            f"lengths differ: the first has {a.seq_len} positions, the second {b.seq_len}; "
            "expected the same number in both: set it with --seq-len"
        )
    if a.meta.get("quantity") != b.meta.get("quantity"):
        raise OutputError(
            f"the first shows {a.meta.get('quantity')}, the second {b.meta.get('quantity')}; "
            "expected one quantity to subtract: set it with --quantity"
        )
    if a.cell > 1 and {a.meta.get("reduce", "mean"), b.meta.get("reduce", "mean")} != {"mean"}:
        raise OutputError(
            f"each cell is the extreme of {a.cell} x {a.cell} positions, which cannot be subtracted; "
            "expected means: use --reduce mean"
        )
    return replace(a, values=a.values - b.values, ranges=None, profile=None)


def draw_difference(a: HeadStack, b: HeadStack, look: Look = Look()) -> Figure:  # noqa: B008
    """The grid of the first stack minus the second, zero in the middle colour."""
    return draw_grid(difference(a, b), replace(look, diverging=True))


def require_same_heads(stacks: Sequence[HeadStack], labels: Sequence[str]) -> None:
    """Raise unless there is something to compare, each stack has its label, and all have the same heads."""
    if not stacks or len(stacks) != len(labels):
        raise OutputError(f"{len(stacks)} stacks and {len(labels)} labels; expected at least one, and a label for each")
    if len({stack.heads for stack in stacks}) > 1:
        found = ", ".join(f"{label} has {numbered(stack.heads)}" for label, stack in zip(labels, stacks, strict=True))
        raise OutputError(f"heads differ: {found}; expected the same heads everywhere: choose common ones with --heads")


def _common_quantity(stacks: Sequence[HeadStack]) -> str | None:
    found = {str(stack.meta.get("quantity", "value")) for stack in stacks}
    return found.pop() if len(found) == 1 else None


def _fitting(names: Sequence[str], inches: float, around: int) -> int:
    """How many names fit beside each other, each with room for so many more characters."""
    longest = (max(len(name) for name in names) + around) * style.LABEL_SIZE * style.CHARACTER_WIDTH / 72
    return max(1, min(len(names), int(inches / longest)))


def _draw_step_bar(figure: Figure, layout: Layout, colours: Sequence[str], names: Sequence[str]) -> None:
    """The steps' colours in a row above the panels, named from below."""
    from matplotlib.colors import to_rgb

    left, top, width, _ = strip_above(layout, STEPS)
    box = (
        left + round(width * (1 - BAR_SHARE) / 2),
        top + round(0.28 * layout.dpi),
        round(width * BAR_SHARE),
        round(BAR_HEIGHT * layout.dpi),
    )
    bar = figure.add_axes(layout.fraction(box), label="<steps>")
    bar.imshow([[to_rgb(colour) for colour in colours]], aspect="auto", interpolation="none")
    room = _fitting(names, box[2] / layout.dpi, 2)
    shown = range(0, len(names), -(-len(names) // room))
    bar.set_xticks(list(shown), [names[n] for n in shown])
    bar.set_yticks([])
    bar.set_title("training step", fontsize=style.LABEL_SIZE, pad=3)
