"""Blocks of rows folded into the cells of a picture, the extremes of each head, and its mean over every distance."""

from __future__ import annotations

import numpy as np


class Cells:
    """A reduced stack under way. Blocks come in any order, each a whole number of cells high but for the last."""

    def __init__(self, heads: int, queries: int, keys: int, cell: int, how: str, profile: bool) -> None:
        self.cell, self.how = cell, how
        self.values = np.full((heads, -(-queries // cell), -(-keys // cell)), np.nan, dtype=np.float32)
        self.low = np.full(heads, np.inf, dtype=np.float32)
        self.high = -self.low
        self.total = np.zeros((heads, queries)) if profile else None
        self.count = np.zeros((heads, queries)) if profile else None

    def add(self, start: int, block: np.ndarray, visible: np.ndarray | None) -> None:
        """Fold in the rows from `start` on, `[head, row, key]`; keys that are left out are seen by none of them."""
        clear = _clear_keys(visible, block.shape[2]) // self.cell * self.cell
        high = block.shape[1] // self.cell * self.cell
        if not self._add_clear(start, block[:, :high, :clear]):
            high = clear = 0
        self._add_mixed(start, clear, _blanked(block, visible, slice(0, high), slice(clear, None)))
        self._add_mixed(start + high, 0, _blanked(block, visible, slice(high, None), slice(None)))
        if self.total is not None and self.count is not None:
            _add_profile(_blanked(block, visible, slice(None), slice(None)), start, self.total, self.count)

    def fields(self) -> dict[str, np.ndarray]:
        """What a stack is made of."""
        ranges = np.stack([self.low, self.high], axis=1)
        found = {"values": self.values, "ranges": np.where(np.isfinite(ranges), ranges, np.float32(np.nan))}
        if self.total is not None and self.count is not None:
            mean = np.divide(self.total, self.count, out=np.full_like(self.total, np.nan), where=self.count > 0)
            found["profile"] = mean.astype(np.float32)
        return found

    def _add_clear(self, start: int, block: np.ndarray) -> bool:
        """Whole cells of which everything is visible: nearly all of a long sequence. Nothing is done about a NaN."""
        if not block.size:
            return True
        low, high = block.min(axis=(1, 2)), block.max(axis=(1, 2))
        if np.isnan(low).any():
            return False
        heads, rows, keys = block.shape
        rows_apart = block.reshape(heads, rows // self.cell, self.cell, keys)
        shape = (heads, rows // self.cell, keys // self.cell, self.cell)
        # Down first: that adds whole rows to each other, and leaves little to be done across.
        if self.how == "mean":
            found = rows_apart.sum(axis=2, dtype=np.float64).reshape(shape).sum(axis=3) / self.cell**2
        else:
            greatest = rows_apart.max(axis=2).reshape(shape).max(axis=3) if self.how != "min" else None
            least = rows_apart.min(axis=2).reshape(shape).min(axis=3) if self.how != "max" else None
            found = _extreme(least, greatest)
        self._put(start, 0, found, low, high)
        return True

    def _add_mixed(self, start: int, key: int, block: np.ndarray) -> None:
        """Cells that may be cut off by the mask or the end of the sequence; NaN is what is not seen."""
        if not block.size:
            return
        heads, rows, keys = block.shape
        padded = np.pad(block, ((0, 0), (0, -rows % self.cell), (0, -keys % self.cell)), constant_values=np.nan)
        tiles = padded.reshape(heads, padded.shape[1] // self.cell, self.cell, padded.shape[2] // self.cell, self.cell)
        seen = ~np.isnan(tiles)
        count = seen.sum(axis=(2, 4))
        greatest = np.where(seen, tiles, -np.inf).max(axis=(2, 4))
        least = np.where(seen, tiles, np.inf).min(axis=(2, 4))
        if self.how == "mean":
            found = np.where(seen, tiles, 0).sum(axis=(2, 4), dtype=np.float64) / np.maximum(count, 1)
        else:
            found = _extreme(least if self.how != "max" else None, greatest if self.how != "min" else None)
        found = np.where(count > 0, found, np.nan)
        self._put(start, key, found, least.min(axis=(1, 2)), greatest.max(axis=(1, 2)))

    def _put(self, start: int, key: int, found: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
        row, column = start // self.cell, key // self.cell
        self.values[:, row : row + found.shape[1], column : column + found.shape[2]] = found
        self.low, self.high = np.minimum(self.low, low), np.maximum(self.high, high)


def _clear_keys(visible: np.ndarray | None, keys: int) -> int:
    """How many keys from the first on are seen by all rows."""
    if visible is None:
        return keys
    seen = visible.reshape(-1, visible.shape[-1])[:, :keys].all(axis=0)
    return keys if seen.all() else int(np.argmin(seen))


def _blanked(block: np.ndarray, visible: np.ndarray | None, rows: slice, keys: slice) -> np.ndarray:
    """A part of a block with NaN where it is not visible."""
    part = block[:, rows, keys]
    if visible is None:
        return part
    return np.where(visible[..., : block.shape[2]][..., rows, keys], part, np.float32(np.nan))


def _extreme(least: np.ndarray | None, greatest: np.ndarray | None) -> np.ndarray:
    """The one that is asked for, or of both the one farther from zero."""
    if least is None or greatest is None:
        found = greatest if least is None else least
        assert found is not None
        return found
    return np.where(-least > greatest, least, greatest)


def _add_profile(block: np.ndarray, start: int, total: np.ndarray, count: np.ndarray) -> None:
    """Add a block's visible past to the sum and the number of values at each distance."""
    for row in range(block.shape[1]):
        last = min(start + row, block.shape[2] - 1)  # there may be fewer keys than queries
        past = block[:, row, last::-1]
        seen = ~np.isnan(past)
        at = slice(start + row - last, start + row + 1)
        total[:, at] += np.where(seen, past, 0)
        count[:, at] += seen
