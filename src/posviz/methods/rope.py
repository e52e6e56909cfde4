"""RoPE: queries and keys are turned by an angle that grows with their position, so their product sees the distance."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from posviz.errors import MethodError
from posviz.methods.base import Array, Found, PositionalMethod


class Rope(PositionalMethod):
    name = "rope"
    title = "RoPE"
    drawn = "the scores: rotated q.k, scaled; there is no bias"
    reference = "Su et al. 2021, arXiv:2104.09864"
    token_dependent = True
    additive = False
    options = {"pairing": "halves", "base": 10000.0, "rotary_dim": None}  # rotary_dim None: the whole head
    choices = {"pairing": ("halves", "neighbours")}

    @classmethod
    def recognise(cls, shapes: Mapping[str, tuple[int, ...]], config: Mapping[str, Any]) -> Found | None:
        seen = [suffix for suffix in shapes if suffix.endswith("inv_freq")]
        return Found(cls.name, f"the layer holds {seen[0]}") if seen else None

    def __init__(self, n_head: int, n_embd: int = 0, **options: Any) -> None:
        super().__init__(n_head, n_embd, **options)
        if not 0 < self.option["base"] < math.inf:
            raise MethodError(f"the base of rope is {self.option['base']}; expected a number above 0, such as 10000")

    def rotate(self, x: Array) -> Array:
        import torch

        length, dim = x.shape[-2:]
        turned = dim if self.option["rotary_dim"] is None else self.option["rotary_dim"]
        if turned % 2 or not 2 <= turned <= dim:
            raise MethodError(f"rotary_dim is {turned}; expected an even number up to the head's {dim}")
        # Angles in float64: at position 16384 a float32 product is off by a thousandth of a turn.
        rate = float(self.option["base"]) ** (-torch.arange(0, turned, 2, dtype=torch.float64) / turned)
        angle = torch.arange(length, dtype=torch.float64)[:, None] * rate
        cos, sin = angle.cos().to(x), angle.sin().to(x)
        part, rest = x[..., :turned], x[..., turned:]
        if self.option["pairing"] == "halves":
            a, b = part.chunk(2, dim=-1)
            out = torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)
        else:
            a, b = part[..., 0::2], part[..., 1::2]
            out = torch.stack([a * cos - b * sin, b * cos + a * sin], dim=-1).flatten(-2)
        return torch.cat([out, rest], dim=-1)
