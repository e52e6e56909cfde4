"""A stack with fewer cells, for figures whose panels are small."""

from __future__ import annotations

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
