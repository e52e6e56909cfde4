"""What figures with curves have in common: colours, axes, and tokens as labels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from posviz.draw import style
from posviz.draw.layout import Box, Layout

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Told apart by every kind of colour vision (Okabe and Ito's set), the darker ones first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
LINE, THIN = 1.4, 0.9  # points
BAND_ALPHA = 0.2
RULE = "#d9d9d9"
QUIET = "#555555"
MARK = "#D55E00"  # lines over a heatmap: seen on every colour of the map and on blank
SEQUENCE_CMAP, SEQUENCE_SPAN = "viridis", (0.05, 0.88)  # of the map; its last yellow is lost on white
LONGEST_TOKEN = 12  # characters of a label

# How blanks look in labels; also those that stand for them in the vocabularies of GPT-2 and SentencePiece.
VISIBLE = str.maketrans({" ": "␣", "\n": "↵", "\t": "→", "\r": "↤", "Ġ": "␣", "Ċ": "↵", "ĉ": "→", "▁": "␣"})


def several_colours(count: int) -> list[str]:
    """Colours for curves that have no order."""
    return list(COLOURS[:count]) if count <= len(COLOURS) else ordered_colours(count)


def ordered_colours(count: int) -> list[str]:
    """Colours for curves in an order, from dark to light."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return [to_hex(colour) for colour in colormaps[SEQUENCE_CMAP](np.linspace(*SEQUENCE_SPAN, count))]


def curve_axes(figure: Figure, layout: Layout, box: Box) -> Axes:
    """Axes for curves: open to the right and above, with quiet rules behind."""
    axes = figure.add_axes(layout.fraction(box))
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(True, color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.margins(x=0.01)
    return axes


def inch_box(dpi: int, left: float, top: float, width: float, height: float) -> Box:
    """A box given in inches, in whole pixels."""
    return round(left * dpi), round(top * dpi), round(width * dpi), round(height * dpi)


def token_label(token: str) -> str:
    """A token as a label: blanks made visible, what the font lacks as a box, and not too long."""
    shown = "".join(character if ord(character) in _glyphs() else "□" for character in token.translate(VISIBLE))
    return shown if len(shown) <= LONGEST_TOKEN else shown[: LONGEST_TOKEN - 1] + "…"


@cache
def _glyphs() -> frozenset[int]:
    from matplotlib.font_manager import findfont
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(findfont(style.SETTINGS["font.family"][0])).get_charmap())


def label_tokens(axis: object, tokens: Sequence[str], start: int, inches: float, size: float) -> None:
    """Name the positions from `start` on by their tokens; where they would touch, only every other, third ..."""
    every = int(np.ceil(len(tokens) * size * 1.15 / 72 / inches))
    positions = range(start, start + len(tokens), every)
    axis.set_ticks(list(positions), [token_label(tokens[at - start]) for at in positions], fontsize=size)  # type: ignore[attr-defined]
    for label in axis.get_ticklabels():  # type: ignore[attr-defined]
        label.set_parse_math(False)  # a dollar is a token
