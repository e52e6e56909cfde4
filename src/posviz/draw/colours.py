"""From values to colours: the range that a head's colours span, and how values are spread over it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from posviz.draw import style
from posviz.draw.look import Look
from posviz.stack import HeadStack

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap, Normalize


def colour_map(look: Look) -> Colormap:
    """The colour map, with masked cells blank."""
    from matplotlib import colormaps

    return colormaps[look.cmap_name].with_extremes(bad=style.BLANK)


def norms(stack: HeadStack, look: Look) -> list[Normalize | None]:
    """How each head's values become shares of the colour map; None for a head that has no value."""
    limits = stack.limits().astype(float)
    some = np.isfinite(limits).all(axis=1)
    positive = _least_positive(stack) if look.log else np.full(len(limits), np.nan)
    if look.scale == "shared" and some.any():
        limits[:] = limits[some, 0].min(), limits[some, 1].max()
        positive[:] = np.min(positive, initial=np.inf, where=~np.isnan(positive))
    return [
        _norm(float(low), float(high), float(least), look) if has else None
        for (low, high), least, has in zip(limits, positive, some, strict=True)
    ]


def _least_positive(stack: HeadStack) -> np.ndarray:
    """The least value above zero of each head, infinite where there is none."""
    above = np.where(stack.values > 0, stack.values, np.inf)
    return above.min(axis=(1, 2)).astype(float)


def _norm(low: float, high: float, positive: float, look: Look) -> Normalize:
    from matplotlib.colors import LogNorm, Normalize, SymLogNorm

    if look.log and not look.diverging and low >= 0 and high > 0:
        bottom = max(low if low > 0 else min(positive, high), high * 10.0**-style.LOG_DECADES)
        bottom, high = _apart(bottom, high)
        return LogNorm(bottom, high, clip=True)  # clipped, or a weight of 0 would look masked
    if look.diverging:
        low, high = -max(abs(low), abs(high)), max(abs(low), abs(high))
    low, high = _apart(low, high)
    if look.log:
        return SymLogNorm(style.LINEAR_SHARE * max(abs(low), abs(high)), vmin=low, vmax=high, base=10)
    return Normalize(low, high)


def _apart(low: float, high: float) -> tuple[float, float]:
    """A range that is not empty: a head of one value alone still has a colour and a bar."""
    if high - low > 1e-12 * max(abs(low), abs(high)):
        return low, high
    room = 0.1 * abs(high) or 0.1
    return low - room, high + room


def spread_like(norm: Normalize, bar: Axes) -> None:
    """Give a colour bar the norm's scale, so that matplotlib's own ticks for it fall on the right colours."""
    from matplotlib.colors import LogNorm, SymLogNorm

    if isinstance(norm, LogNorm):
        bar.set_yscale("log")
    elif isinstance(norm, SymLogNorm):
        bar.set_yscale("symlog", linthresh=norm.linthresh, base=10)
