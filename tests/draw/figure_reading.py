"""Reading a drawn figure back: what its pixels and labels say."""

from __future__ import annotations

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from posviz.stack import HeadStack


def causal_stack(heads: int, queries: int, keys: int | None = None, seed: int = 0, **meta: object) -> HeadStack:
    """Seeded random values, a range of its own for each head, NaN in the future."""
    keys = keys or queries
    values = np.random.default_rng(seed).normal(size=(heads, queries, keys)).astype(np.float32)
    values *= np.arange(1, heads + 1, dtype=np.float32)[:, None, None]
    values[:, ~np.tri(queries, keys, dtype=bool)] = np.nan
    return HeadStack(values, tuple(range(1, heads + 1)), meta={"seq_len": queries, "key_len": keys, **meta})


def panels(figure: Figure) -> list[Axes]:
    return [axes for axes in figure.axes if axes.get_label() != "<colorbar>"]


def bars(figure: Figure) -> list[Axes]:
    return [axes for axes in figure.axes if axes.get_label() == "<colorbar>"]


def cells_of(pixels: np.ndarray, axes: Axes, rows: int, columns: int) -> np.ndarray:
    """The colour of each cell of a panel, uint8 [row, column, 3]; fails unless each is one colour in whole pixels."""
    box = axes.get_window_extent()
    edges = np.array([box.x0, box.x1, len(pixels) - box.y1, len(pixels) - box.y0])
    left, right, top, bottom = np.round(edges).astype(int)
    assert np.abs(edges - [left, right, top, bottom]).max() < 1e-4
    assert (right - left) % columns == 0
    assert (bottom - top) % rows == 0
    high, wide = (bottom - top) // rows, (right - left) // columns
    assert min(high, wide) >= 1
    cells = pixels[top:bottom, left:right, :3].reshape(rows, high, columns, wide, 3)
    first = cells[:, :1, :, :1]
    assert (cells == first).all()
    return first[:, 0, :, 0]


def bar_labels(figure: Figure) -> list[list[str]]:
    """Each colour bar's visible labels from top to bottom, with plain minus signs."""
    figure.draw_without_rendering()
    return [_visible_labels(bar) for bar in bars(figure)]


def _visible_labels(bar: Axes) -> list[str]:
    low, high = sorted(bar.get_ylim())
    hair = 1e-9 * (high - low)
    seen = [
        (tick.get_loc(), tick.label2.get_text())
        for tick in bar.yaxis.get_major_ticks()
        if tick.label2.get_visible() and low - hair <= tick.get_loc() <= high + hair
    ]
    return [text.replace("\N{MINUS SIGN}", "-") for _, text in sorted(seen, reverse=True)]


def pixels_of(figure: Figure) -> np.ndarray:
    """The figure as matplotlib rasters it at its own resolution, uint8 [row, column, 3]."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3]


def colours(values: np.ndarray, norm: Normalize, cmap: str = "viridis") -> np.ndarray:
    """What cells should look like: the colour map of the values, white where there is none."""
    wanted = colormaps[cmap](norm(np.nan_to_num(values)), bytes=True)[..., :3].copy()
    wanted[np.isnan(values)] = 255
    return wanted
