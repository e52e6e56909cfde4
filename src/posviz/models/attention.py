"""What one layer's attention sees on one batch, by row block: the model attends with it, figures are cut from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from posviz.methods.base import Block, PositionalMethod

Scores = Float[Tensor, "batch head row key"]


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

    def _product(self, q: Tensor, k: Tensor, start: int, stop: int) -> Scores:
        return (q[..., start:stop, :] * self.scale) @ k.transpose(-1, -2)

    def _block(self, start: int, stop: int, content: Tensor | None) -> Block:
        i = torch.arange(start, stop, device=self.q.device)[:, None]
        j = torch.arange(self.length, device=self.q.device)[None, :]
        return Block(i, j, torch, content, self.state)

    def content(self, start: int, stop: int) -> Scores:
        """Scaled q.k, before rotation or bias."""
        return self._product(self.q, self.k, start, stop)

    def bias(self, start: int, stop: int) -> Scores:
        """What is added to the content score."""
        content = self.content(start, stop) if self.method.token_dependent else None
        bias = self.method.bias(self.parameters, self._block(start, stop, content))
        return bias if bias.ndim == 4 else bias[None]

    def scores(self, start: int, stop: int) -> Scores:
        """What goes into the softmax, before the mask."""
        if not self.method.additive:
            return self._product(self.q_seen, self.k_seen, start, stop)
        content = self.content(start, stop)
        return content + self.method.bias(self.parameters, self._block(start, stop, content))

    def attention(self, start: int, stop: int) -> Scores:
        """The weights after mask and softmax; each row sums to 1."""
        future = torch.ones(stop - start, self.length, dtype=torch.bool, device=self.q.device).triu(start + 1)
        return self.scores(start, stop).masked_fill(future, float("-inf")).softmax(dim=-1)


def _exact(t: Tensor) -> Tensor:
    return t.to(torch.promote_types(t.dtype, torch.float32))
