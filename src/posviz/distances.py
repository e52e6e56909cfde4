"""The cells of a matrix that depends on distance alone: from one row of numbers, whatever the length.

A cell `row`, `column` holds distances around `(row - column) * cell`, so all full cells along a diagonal are equal, and
a distance occurs in it as often as the cell has pairs of that distance. Only the last row and column may be smaller.
"""

from __future__ import annotations

import numpy as np


def reduce_by_distance(values: np.ndarray, cell: int, how: str, mask: bool) -> dict[str, np.ndarray]:
    """What a stack of `values` [head, distance] is made of; distances go from `-(T - 1)` to `T - 1`."""
    heads, length = values.shape[0], (values.shape[1] + 1) // 2
    last = length - (length - 1) // cell * cell  # positions of the last cell
    cells = -(-length // cell)
    picture = np.empty((heads, cells, cells), dtype=np.float32)
    if cells > 1:
        full = _diagonals(values, length, cell, cell, cell, how, mask)
        picture[:, :-1, :-1] = _spread(full[:, 1:-1], cells - 1)
        picture[:, -1, :-1] = _diagonals(values, length, cell, last, cell, how, mask)[:, cells:][:, ::-1]
        picture[:, :-1, -1] = _diagonals(values, length, cell, cell, last, how, mask)[:, : cells - 1]
    picture[:, -1, -1] = _diagonals(values, length, cell, last, last, how, mask)[:, cells - 1]
    seen = values[:, length - 1 :] if mask else values
    return {
        "values": picture,
        "ranges": np.stack([seen.min(axis=1), seen.max(axis=1)], axis=1),
        "profile": values[:, length - 1 :],
    }


def _diagonals(values: np.ndarray, length: int, cell: int, rows: int, keys: int, how: str, mask: bool) -> np.ndarray:
    """The value of a cell of `rows` x `keys` positions on each diagonal of cells, `[head, row - column]`."""
    cells = -(-length // cell)
    # A cell's first query and last key are `keys - 1` nearer to each other than the cells; beyond the ends is nothing.
    wide = np.full((values.shape[0], values.shape[1] + 2 * cell), np.nan)
    wide[:, cell:-cell] = values
    if mask:
        wide[:, : cell + length - 1] = np.nan
    first = cell + (length - 1) - (cells - 1) * cell - (keys - 1)
    windows = np.lib.stride_tricks.sliding_window_view(wide[:, first:], rows + keys - 1, axis=1)[:, ::cell]
    windows = windows[:, : 2 * cells - 1]
    seen = ~np.isnan(windows)
    apart = np.arange(-(keys - 1), rows)
    often = np.minimum(rows, keys + apart) - np.maximum(0, apart)  # pairs of the cell that are so far apart
    if how == "mean":
        found = np.where(seen, windows, 0) @ often / np.maximum(seen @ often, 1)
    else:
        greatest = np.where(seen, windows, -np.inf).max(axis=2)
        least = np.where(seen, windows, np.inf).min(axis=2)
        found = {"max": greatest, "min": least, "absmax": np.where(-least > greatest, least, greatest)}[how]
    return np.where(seen.any(axis=2), found, np.nan)


def _spread(diagonals: np.ndarray, cells: int) -> np.ndarray:
    """The matrix `[head, row, column]` of what each diagonal holds, `[head, row - column]`."""
    at = np.arange(cells)[:, None] - np.arange(cells)[None, :] + cells - 1
    return diagonals[:, at]
