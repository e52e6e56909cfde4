"""Row blocks and what they are folded into, so that a long sequence costs a block and a picture, not head x T x T."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from posviz.cells import Cells
from posviz.distances import reduce_by_distance
from posviz.errors import PosvizError, unknown_name
from posviz.stack import HeadStack

QUANTITIES = ("bias", "scores", "content", "attention")
REDUCTIONS = ("mean", "max", "min", "absmax")
MOST_CELLS = 1024  # a longer sequence is reduced to at most this many cells a side
BLOCK_BYTES = 8 * 2**20  # what the caches hold is folded several times faster than what they do not


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


@runtime_checkable
class CausalSource(RowSource, Protocol):
    """A source that can leave out the keys after the last query of a block, which no query of it sees."""

    def past(self, quantity: str, start: int, stop: int) -> np.ndarray:
        """As `rows`, for the first `stop` keys only."""
        ...


@runtime_checkable
class DistanceSource(RowSource, Protocol):
    """A source with one number per head and distance, under a causal mask."""

    def by_distance(self) -> np.ndarray:
        """Float32 `[head, distance]`, distances from `-(seq_len - 1)`, the farthest future, to `seq_len - 1`."""
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
) -> Iterator[tuple[int, np.ndarray, np.ndarray | None]]:
    """Blocks of rows, each a whole number of cells high, and what of them is visible."""
    rows = BLOCK_BYTES // (4 * source.n_head * source.key_len) // cell * cell
    rows = max(rows, cell)
    index = [head - 1 for head in heads]
    every = index == list(range(source.n_head))
    take = source.past if folding.mask and isinstance(source, CausalSource) else source.rows
    for start in range(0, source.seq_len, rows):
        stop = min(start + rows, source.seq_len)
        block = take(quantity, start, stop)
        visible = source.visible(start, stop)[..., : block.shape[2]] if folding.mask else None
        if not every:
            block = block[index]
            if visible is not None and visible.ndim == 3 and visible.shape[0] > 1:
                visible = visible[index]
        yield start, block, visible


def _whole(source: RowSource, quantity: str, folding: Folding, heads: Sequence[int]) -> np.ndarray:
    values = np.full((len(heads), source.seq_len, source.key_len), np.nan, dtype=np.float32)
    for start, block, visible in _blocks(source, quantity, folding, heads, 1):
        place = values[:, start : start + block.shape[1], : block.shape[2]]
        np.copyto(place, block, where=True if visible is None else visible)
    return values


def _reduced(
    source: RowSource, quantity: str, folding: Folding, heads: Sequence[int], cell: int
) -> dict[str, np.ndarray]:
    if isinstance(source, DistanceSource):
        fields = reduce_by_distance(
            source.by_distance()[[head - 1 for head in heads]], cell, folding.reduce, folding.mask
        )
        return {name: field for name, field in fields.items() if folding.profile or name != "profile"}
    cells = Cells(len(heads), source.seq_len, source.key_len, cell, folding.reduce, folding.profile)
    for start, block, visible in _blocks(source, quantity, folding, heads, cell):
        cells.add(start, block, visible)
    return cells.fields()
