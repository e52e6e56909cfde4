"""CABLE: each token adds its own step, and the bias is the sum of the steps between key and query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posviz.methods.base import Array, Block, PositionalMethod


class Cable(PositionalMethod):
    name = "cable"
    title = "CABLE"
    drawn = "b_i - b_j, b = cumsum(-softplus(W x))"
    reference = "Veisi et al. 2025 (EMNLP)"
    token_dependent = True
    spec = {"h_attn.weight": ("head", "width"), "h_attn.bias": ("head",)}
    optional = frozenset({"h_attn.bias"})

    def initial(self, generator: Any) -> dict[str, Array]:
        import torch

        weight = 0.02 * torch.randn(self.n_head, self.n_embd, generator=generator)
        return {"h_attn.weight": weight, "h_attn.bias": torch.zeros(self.n_head)}

    def prepare(self, p: Mapping[str, Array], x: Array) -> Array:
        import torch
        from torch.nn.functional import linear, softplus

        raw = linear(x, p["h_attn.weight"], p.get("h_attn.bias"))  # [batch, position, head]
        exact = raw.to(torch.promote_types(raw.dtype, torch.float32))  # a sum of hundreds of steps outgrows bfloat16
        return -softplus(exact).cumsum(dim=1).transpose(1, 2)

    def bias(self, p: Mapping[str, Array], block: Block) -> Array:
        assert block.state is not None
        return block.state[..., block.i] - block.state[..., block.j]
