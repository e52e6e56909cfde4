"""What one layer's attention sees on one batch, by row block: the model attends with it, figures are cut from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from posviz.methods.base import Block, PositionalMethod

Scores = Float[Tensor, "batch head row key"]
BLOCK_BYTES, LEAST_ROWS = 2 * 2**20, 8  # of scores at a time: what the caches hold is several times faster


@dataclass
class AttentionView:
    """Queries and keys before any rotation, and the positional method with its parameters."""

    method: PositionalMethod
    parameters: Mapping[str, Tensor]
    x: Float[Tensor, "batch position width"]  # the layer's normed input
    q: Float[Tensor, "batch head position dim"]
    k: Float[Tensor, "batch head position dim"]
    scale: float

    def __post_init__(self) -> None:
        # Positions are computed in float32 at least: a bias of hundreds has no room for its digits in bfloat16.
        self.parameters = {name: _exact(p) for name, p in self.parameters.items()}
        self.state = self.method.prepare(self.parameters, _exact(self.x))
        self.rotated = not self.method.additive
        self.q_seen = self.method.rotate(self.q) if self.rotated else self.q
        self.k_seen = self.method.rotate(self.k) if self.rotated else self.k

    @property
    def length(self) -> int:
        return self.q.shape[-2]

    def content(self, start: int, stop: int, keys: int | None = None) -> Scores:
        """Scaled q.k, before rotation or bias; like the others, for all keys or for the first `keys`."""
        return self._product(self.q, self.k, start, stop, keys)

    def bias(self, start: int, stop: int, keys: int | None = None) -> Scores:
        """What is added to the content score."""
        content = self.content(start, stop, keys) if self.method.reads_content else None
        bias = self.method.bias(self.parameters, self._block(start, stop, keys, content))
        return bias if bias.ndim == 4 else bias[None]

    def scores(self, start: int, stop: int, keys: int | None = None) -> Scores:
        """What goes into the softmax, before the mask."""
        if not self.method.additive:
            return self._product(self.q_seen, self.k_seen, start, stop, keys)
        content = self.content(start, stop, keys)
        return content + self.method.bias(self.parameters, self._block(start, stop, keys, content))

    def attention(self, start: int, stop: int, keys: int | None = None) -> Scores:
        """The weights after mask and softmax; each row sums to 1."""
        shape = (stop - start, self.length if keys is None else keys)
        future = torch.ones(shape, dtype=torch.bool, device=self.q.device).triu(start + 1)
        return self.scores(start, stop, keys).masked_fill(future, float("-inf")).softmax(dim=-1)

    def gathered(self, v: Float[Tensor, "batch head position dim"]) -> Float[Tensor, "batch head position dim"]:
        """What every query makes of the values, a block of rows at a time, each without the keys that it cannot see."""
        batch, heads, length, _ = v.shape
        rows = max(LEAST_ROWS, BLOCK_BYTES // (4 * batch * heads * length))
        # Written into one tensor: a small result kept from each block would nail down the memory that blocks leave.
        found = torch.empty_like(v)
        for start in range(0, length, rows):
            stop = min(start + rows, length)
            keys = min(stop + self.method.reads_ahead, length)
            found[..., start:stop, :] = self.attention(start, stop, keys).to(v) @ v[..., :keys, :]
        return found

    def _product(self, q: Tensor, k: Tensor, start: int, stop: int, keys: int | None) -> Scores:
        return (q[..., start:stop, :] * self.scale) @ k[..., :keys, :].transpose(-1, -2)

    def _block(self, start: int, stop: int, keys: int | None, content: Tensor | None) -> Block:
        i = torch.arange(start, stop, device=self.q.device)[:, None]
        j = torch.arange(self.length if keys is None else keys, device=self.q.device)[None, :]
        return Block(i, j, torch, content, self.state)


def _exact(t: Tensor) -> Tensor:
    return t.to(torch.promote_types(t.dtype, torch.float32))
