"""Stacks made ready to be seen together: with few enough cells, and over one range of colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from posviz.stack import HeadStack


def coarser(stack: HeadStack, most_cells: int) -> HeadStack:
    """The stack reduced to at most so many cells a side, as it was reduced before, or by the mean.

    Colours still span the extremes of the whole matrix. A cell on the mask's edge is the mean of its own cells'
    means, not of its positions.
    """
    heads, rows, columns = stack.values.shape
    factor = -(-max(rows, columns) // most_cells)
    if factor == 1:
        return stack
    how = str(stack.meta.get("reduce", "mean"))
    padding = ((0, 0), (0, -rows % factor), (0, -columns % factor))
    padded = np.pad(stack.values, padding, constant_values=np.nan)
    tiles = padded.reshape(heads, padded.shape[1] // factor, factor, padded.shape[2] // factor, factor)
    known = {**stack.meta, "seq_len": stack.seq_len, "key_len": stack.key_len, "reduce": how}
    return replace(stack, values=_reduced(tiles, how), cell=stack.cell * factor, ranges=stack.limits(), meta=known)


def over_one_range(stacks: Sequence[HeadStack], log: bool) -> list[HeadStack]:
    """The stacks with each head's colours spanning its values in all of them."""
    limits = np.stack([stack.limits() for stack in stacks])
    low, high = np.fmin.reduce(limits[..., 0]), np.fmax.reduce(limits[..., 1])
    if log:
        # A logarithmic scale begins at the least value above zero, which must not be each stack's own.
        above = [np.where(stack.values > 0, stack.values, np.inf).min(axis=(1, 2)) for stack in stacks]
        least = np.min(above, axis=0)
        low = np.where((low == 0) & np.isfinite(least), least, low)
    ranges = np.stack([low, high], axis=1).astype(np.float32)
    return [replace(stack, ranges=ranges) for stack in stacks]


def _reduced(tiles: np.ndarray, how: str) -> np.ndarray:
    """`[head, row, down, column, right]` to one number per tile, NaN where a tile is blank."""
    seen = np.isfinite(tiles)
    count = seen.sum(axis=(2, 4))
    if how == "mean":
        found = np.where(seen, tiles, 0).sum(axis=(2, 4), dtype=np.float64) / np.maximum(count, 1)
    else:
        high = np.where(seen, tiles, -np.inf).max(axis=(2, 4))
        low = np.where(seen, tiles, np.inf).min(axis=(2, 4))
        found = {"max": high, "min": low, "absmax": np.where(-low > high, low, high)}[how]
    return np.where(count > 0, found, np.nan).astype(np.float32)
