"""FIRE: a small network over the distance as a fraction of the query's position."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posviz.methods.base import Array, Block, PositionalMethod

WIDTH = 32  # hidden units, as in the original code
TINY = 1e-6


class Fire(PositionalMethod):
    name = "fire"
    title = "FIRE"
    drawn = "MLP(psi(d) / psi(max(i, L)))[h], psi(x) = log(1 + |c x|)"
    reference = "Li et al. 2024, arXiv:2310.04418"
    spec = {
        "c": (),
        "L_multiplier": (),
        "init_L": (),
        "mlp.0.weight": ("hidden", 1),
        "mlp.0.bias": ("hidden",),
        "mlp.2.weight": ("head", "hidden"),
        "mlp.2.bias": ("head",),
    }
    optional = frozenset({"init_L"})
    buffers = frozenset({"init_L"})
    options = {"init_L": 512.0}  # where training starts; a checkpoint that stores its own is taken at its word

    def initial(self, generator: Any) -> dict[str, Array]:
        import torch

        def uniform(*shape: int, fan_in: int) -> Array:
            return (2 * torch.rand(*shape, generator=generator) - 1) * fan_in**-0.5

        return {
            "c": torch.tensor(0.1),
            "L_multiplier": torch.tensor(1.0),
            "init_L": torch.tensor(float(self.option["init_L"])),
            "mlp.0.weight": uniform(WIDTH, 1, fan_in=1),
            "mlp.0.bias": uniform(WIDTH, fan_in=1),
            "mlp.2.weight": uniform(self.n_head, WIDTH, fan_in=WIDTH),
            "mlp.2.bias": uniform(self.n_head, fan_in=WIDTH),
        }

    def bias(self, p: Mapping[str, Array], block: Block) -> Array:
        xp = block.xp

        def psi(x: Array) -> Array:
            return xp.log(1 + xp.abs(p["c"] * x))

        threshold = xp.abs(p["L_multiplier"] * p.get("init_L", self.option["init_L"]))
        i = block.floats(block.i)
        longest = xp.where(i > threshold, i, threshold)
        fraction = psi(block.floats(block.d)) / (psi(longest) + TINY)  # [row, key]
        # Pairs go last, hidden units first: several times faster, and heads come out where they belong.
        hidden = xp.clip(p["mlp.0.weight"] * fraction.reshape(1, -1) + p["mlp.0.bias"][:, None], 0, None)
        out = p["mlp.2.weight"] @ hidden + p["mlp.2.bias"][:, None]
        return out.reshape(-1, *fraction.shape)
