"""Row blocks and what they are folded into, so that a long sequence costs a block and a picture, not head x T x T."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from posviz.errors import PosvizError, unknown_name
from posviz.stack import HeadStack

QUANTITIES = ("bias", "scores", "content", "attention")
REDUCTIONS = ("mean", "max", "min", "absmax")
MOST_CELLS = 1024  # a longer sequence is reduced to at most this many cells a side
BLOCK_BYTES = 64 * 2**20


class RowSource(Protocol):
    """One layer of one model on one sequence: any quantity of it, some rows at a time."""

    @property
    def n_head(self) -> int: ...

    @property
    def seq_len(self) -> int:
        """Query positions."""
        ...

    @property
    def key_len(self) -> int:
        """Key positions; other than `seq_len` in cross-attention only."""
        ...

    def rows(self, quantity: str, start: int, stop: int) -> np.ndarray:
        """`quantity` for the queries from `start` to `stop`: float32 `[head, row, key]`, before the mask."""
        ...

    def visible(self, start: int, stop: int) -> np.ndarray:
        """Which keys these queries may look at: bool `[row, key]`, or `[head, row, key]` where heads differ."""
        ...


@dataclass(frozen=True)
class Folding:
    """How row blocks become a stack."""

    mask: bool = True  # NaN where a query may not look
    reduce: str = "mean"  # what a cell of a long sequence shows
    most_cells: int = MOST_CELLS
    profile: bool = False  # also keep the mean over every distance of a reduced stack

    def __post_init__(self) -> None:
        if self.reduce not in REDUCTIONS:
            raise PosvizError(unknown_name("reduction", self.reduce, REDUCTIONS))


def causal(start: int, stop: int, keys: int) -> np.ndarray:
    """The mask of a decoder: no query looks past itself."""
    return np.arange(keys)[None, :] <= np.arange(start, stop)[:, None]


def fold(
    source: RowSource,
    quantity: str,
    folding: Folding | None = None,
    *,
    heads: Sequence[int] | None = None,
    token_ids: np.ndarray | None = None,
    tokens: Sequence[str] = (),
    meta: Mapping[str, Any] | None = None,
) -> HeadStack:
    """The stack of one quantity; `heads` (from 1) picks some of them."""
    folding = folding or Folding()
    chosen = tuple(heads) if heads is not None else tuple(range(1, source.n_head + 1))
    for head in chosen:
        if not 1 <= head <= source.n_head:
            raise PosvizError(f"there is no head {head}; the layer has heads 1 to {source.n_head}")
    longest = max(source.seq_len, source.key_len)
    cell = -(-longest // folding.most_cells)
    known = {**(meta or {}), "seq_len": source.seq_len, "key_len": source.key_len, "n_heads": source.n_head}
    if cell > 1:
        known["reduce"] = folding.reduce
    fields: dict[str, Any] = (
        _reduced(source, quantity, folding, chosen, cell)
        if cell > 1
        else {"values": _whole(source, quantity, folding, chosen)}
    )
    return HeadStack(heads=chosen, token_ids=token_ids, tokens=tuple(tokens), meta=known, cell=cell, **fields)


def _blocks(
    source: RowSource, quantity: str, folding: Folding, heads: Sequence[int], cell: int
) -> Iterator[tuple[int, np.ndarray]]:
    """Blocks of rows, masked, each a whole number of cells high."""
    rows = BLOCK_BYTES // (4 * source.n_head * source.key_len) // cell * cell
    rows = max(rows, cell)
    index = [head - 1 for head in heads]
    every = index == list(range(source.n_head))
    for start in range(0, source.seq_len, rows):
        stop = min(start + rows, source.seq_len)
        block = source.rows(quantity, start, stop)
        if not every:
            block = block[index]
        if folding.mask:
            visible = source.visible(start, stop)
            if visible.ndim == 3 and not every and visible.shape[0] > 1:
                visible = visible[index]
            block = np.where(visible, block, np.float32(np.nan))
        yield start, block


def _whole(source: RowSource, quantity: str, folding: Folding, heads: Sequence[int]) -> np.ndarray:
    values = np.empty((len(heads), source.seq_len, source.key_len), dtype=np.float32)
    for start, block in _blocks(source, quantity, folding, heads, 1):
        values[:, start : start + block.shape[1]] = block
    return values


def _reduced(
    source: RowSource, quantity: str, folding: Folding, heads: Sequence[int], cell: int
) -> dict[str, np.ndarray]:
    shape = (-(-source.seq_len // cell), -(-source.key_len // cell))
    values = np.empty((len(heads), *shape), dtype=np.float32)
    low = np.full(len(heads), np.inf, dtype=np.float32)
    high = -low
    total = np.zeros((len(heads), source.seq_len)) if folding.profile else None
    count = np.zeros((len(heads), source.seq_len)) if folding.profile else None
    for start, block in _blocks(source, quantity, folding, heads, cell):
        at = start // cell
        reduced = _reduce(block, cell, folding.reduce)
        values[:, at : at + reduced.shape[1]] = reduced
        low = np.fmin(low, np.nanmin(block, axis=(1, 2), initial=np.inf))
        high = np.fmax(high, np.nanmax(block, axis=(1, 2), initial=-np.inf))
        if total is not None and count is not None:
            _add_profile(block, start, total, count)
    ranges = np.stack([low, high], axis=1).astype(np.float32)
    found: dict[str, np.ndarray] = {"values": values, "ranges": np.where(np.isfinite(ranges), ranges, np.nan)}
    if total is not None and count is not None:
        found["profile"] = np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0).astype(np.float32)
    return found


def _reduce(block: np.ndarray, cell: int, how: str) -> np.ndarray:
    """`[head, row, key]` to one number per cell, over what is not NaN; NaN where nothing is."""
    heads, rows, keys = block.shape
    bottom, right = -rows % cell, -keys % cell
    if bottom or right:
        block = np.pad(block, ((0, 0), (0, bottom), (0, right)), constant_values=np.nan)
    tiles = block.reshape(heads, block.shape[1] // cell, cell, block.shape[2] // cell, cell)
    seen = ~np.isnan(tiles)
    empty = ~seen.any(axis=(2, 4))
    if how == "mean":
        total = np.where(seen, tiles, 0).sum(axis=(2, 4), dtype=np.float64)
        result = total / np.maximum(seen.sum(axis=(2, 4)), 1)
    else:
        high = np.where(seen, tiles, -np.inf).max(axis=(2, 4))
        low = np.where(seen, tiles, np.inf).min(axis=(2, 4))
        result = {"max": high, "min": low, "absmax": np.where(np.abs(low) > np.abs(high), low, high)}[how]
    return np.where(empty, np.nan, result).astype(np.float32)


def _add_profile(block: np.ndarray, start: int, total: np.ndarray, count: np.ndarray) -> None:
    """Add a block's visible past to the sum and the number of values at each distance."""
    for row in range(block.shape[1]):
        last = min(start + row, block.shape[2] - 1)  # there may be fewer keys than queries
        past = block[:, row, last::-1]
        seen = ~np.isnan(past)
        at = slice(start + row - last, start + row + 1)
        total[:, at] += np.where(seen, past, 0)
        count[:, at] += seen
