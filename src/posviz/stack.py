"""HeadStack: one matrix per head, and what is known about it. The only thing that leaves the torch side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from posviz.errors import PosvizError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from posviz.stats import HeadStats


@dataclass(frozen=True, repr=False)
class HeadStack:
    """What each head of one layer sees: `values[head, query, key]`, NaN where a query may not look.

    A stack of a long sequence is reduced: each cell stands for `cell` x `cell` positions. `ranges` then still holds
    the least and greatest value of the unreduced matrix of each head, and `profile` its mean over every distance.
    """

    values: np.ndarray  # float32 [head, query, key]
    heads: tuple[int, ...]  # numbered from 1
    token_ids: np.ndarray | None = None  # int64 [position]; None where no sequence was run
    tokens: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    cell: int = 1
    ranges: np.ndarray | None = None  # float32 [head, 2]
    profile: np.ndarray | None = None  # float32 [head, distance], NaN where no pair has that distance

    def __post_init__(self) -> None:
        if self.values.ndim != 3:
            raise PosvizError(f"a stack has shape {self.values.shape}; expected three axes: head, query, key")
        if self.values.dtype != np.float32:
            object.__setattr__(self, "values", self.values.astype(np.float32))
        if len(self.heads) != self.values.shape[0]:
            raise PosvizError(f"{len(self.heads)} head numbers for {self.values.shape[0]} matrices; expected one each")
        if self.cell < 1:
            raise PosvizError(f"a cell of {self.cell} positions; expected 1 or more")

    @property
    def seq_len(self) -> int:
        """The number of query positions, before any reduction."""
        return int(self.meta.get("seq_len", self.values.shape[1] * self.cell))

    @property
    def key_len(self) -> int:
        """The number of key positions, before any reduction; differs from `seq_len` in cross-attention only."""
        return int(self.meta.get("key_len", self.meta.get("seq_len", self.values.shape[2] * self.cell)))

    def limits(self) -> np.ndarray:
        """The least and greatest finite value of each head, `[head, 2]`; NaN for a head without any."""
        if self.ranges is not None:
            return self.ranges
        flat = self.values.reshape(len(self.heads), -1)
        ends = np.stack([np.fmin.reduce(flat, axis=1), np.fmax.reduce(flat, axis=1)], axis=1)  # NaN is passed over
        if not np.isinf(ends).any():
            return ends
        finite = np.isfinite(flat)
        low = np.where(finite, flat, np.inf).min(axis=1)
        high = np.where(finite, flat, -np.inf).max(axis=1)
        none = ~finite.any(axis=1)
        return np.where(none[:, None], np.nan, np.stack([low, high], axis=1)).astype(np.float32)

    # -- for notebooks and scripts -------------------------------------------------------------------------------

    def head(self, number: int) -> HeadStack:
        """The stack of one head, numbered from 1."""
        return self.select([number])

    def draw(self, **look: Any) -> Figure:
        """The grid of heatmaps; takes `scale`, `cmap`, `diverging`, `log`, `dpi` and `title`."""
        from posviz.draw.grid import draw_grid
        from posviz.draw.look import Look

        return draw_grid(self, Look(**look))

    def save(self, path: str | Path, **look: Any) -> Path:
        """A figure (.png, .pdf, .svg, .html) or the numbers themselves (.npz, .safetensors), by suffix."""
        from posviz import outputs
        from posviz.draw.look import Look
        from posviz.outputs.arrays import save_stack
        from posviz.recipe import recipe_of_stack

        path = Path(path)
        if path.suffix in outputs.ARRAYS:
            return save_stack(self, path)
        return outputs.save(self, Look(**look), path, recipe_of_stack(self, look))

    def stats(self) -> list[HeadStats]:
        """What can be said of each head in numbers."""
        from posviz.stats import head_stats

        return head_stats(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        what = " ".join(str(self.meta[key]) for key in ("method", "quantity") if key in self.meta) or "values"
        return f"<HeadStack: {what}, {len(self.heads)} heads, {self.seq_len} x {self.key_len} positions>"

    def _repr_png_(self) -> bytes:
        import io

        buffer = io.BytesIO()
        figure = self.draw()
        figure.savefig(buffer, format="png", dpi=figure.dpi)
        return buffer.getvalue()

    def select(self, heads: Iterable[int]) -> HeadStack:
        """The stack of these heads (numbered from 1), in this order."""
        wanted = tuple(heads)
        for head in wanted:
            if head not in self.heads:
                first, last = min(self.heads, default=1), max(self.heads, default=0)
                every = sorted(self.heads) == list(range(first, last + 1))
                have = f"heads {first} to {last}" if every else f"only heads {', '.join(map(str, self.heads))}"
                raise PosvizError(f"there is no head {head}; the stack has {have}")
        index = [self.heads.index(head) for head in wanted]
        return replace(
            self,
            values=self.values[index],
            heads=wanted,
            ranges=None if self.ranges is None else self.ranges[index],
            profile=None if self.profile is None else self.profile[index],
        )
