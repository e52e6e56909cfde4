"""The look of the paper's figures: every number about it, and the settings of matplotlib that hold while drawing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from posviz.startup import settle

# Inches. Twelve heads are 3 x 4 tiles of 4 inches, a figure of 12 x 16; every other number of heads has the same tiles.
TILE = 4.0
PANEL_LEAST, PANEL_MOST = 2.57, 2.77  # the heatmap's longer side; room to choose a resolution that suits its cells
LEFT = 0.42  # from the tile's edge to the heatmap: tick labels of the query axis
TOP = 0.62  # from the tile's edge to the heatmap: the panel's title
BAR_GAP, BAR_WIDTH = 0.06, 0.12
TITLE_ABOVE, TITLE_LINE = 0.12, 0.28  # what a figure grows by for its title: once, and for each line of it
FOOTER = 0.12  # what it grows by for a line below the panels, and where that line stands; tiles leave more space

DPI = 185  # at least; 512 cells then take 512 pixels in 2.77 inches

# Points.
TITLE_SIZE, PANEL_TITLE_SIZE, LABEL_SIZE, FOOTER_SIZE = 14.0, 11.0, 9.0, 8.0
FRAME_WIDTH = 0.8  # around a heatmap, not on it
TICK_SIZE = 3.0  # also the space between a tick and its label
CHARACTER_WIDTH = 0.62  # of a title's size, on the generous side: where a long title is broken

MOST_TICKS = 6  # on each axis of a heatmap: 0, 100, ..., 500 for 512 positions
FROM_THOUSANDS = 10_000  # axes that reach this far are labelled 5k, 10k, ...

CMAP, DIVERGING_CMAP = "viridis", "RdBu_r"
BLANK = "white"  # where a query may not look
LOG_DECADES = 6  # a logarithmic scale reaches this far below the greatest value; what is less has the last colour
LINEAR_SHARE = 0.01  # of the greatest magnitude: nearer to zero, a signed logarithmic scale is linear

SETTINGS: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],  # comes with matplotlib, so a figure is the same everywhere
    "font.size": LABEL_SIZE,
    "axes.titlesize": PANEL_TITLE_SIZE,
    "axes.titlepad": 5.0,
    # Numbers outside of this range share a power of ten above the bar: their labels would reach the next panel.
    "axes.formatter.limits": (-2, 4),
    "xtick.labelsize": LABEL_SIZE,
    "ytick.labelsize": LABEL_SIZE,
    "xtick.major.size": TICK_SIZE,
    "ytick.major.size": TICK_SIZE,
    "xtick.major.pad": TICK_SIZE,
    "ytick.major.pad": TICK_SIZE,
    "pdf.fonttype": 42,  # text as text, in a font that publishers accept
    "svg.fonttype": "none",
    "svg.hashsalt": "posviz",  # the same figure, the same bytes
}

_NOT_LOOKS = ("backend", "interactive", "toolbar", "webagg", "tk.", "docstring", "animation", "savefig.directory")


@contextmanager
def paper_style() -> Iterator[None]:
    """matplotlib's defaults and `SETTINGS` inside the block, whatever the user's own settings are."""
    import matplotlib

    settle()  # figures come and go; what was imported for them stays
    with matplotlib.rc_context():
        current: Any = matplotlib.rcParams
        defaults: Any = matplotlib.rcParamsDefault
        current.update({key: defaults[key] for key in defaults if not key.startswith(_NOT_LOOKS)} | SETTINGS)
        yield
