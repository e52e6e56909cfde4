"""T5's relative bias: distances fall into buckets, each bucket has a learned number per head."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from posviz.methods.base import Array, DistanceMethod


def bucket(d: np.ndarray, buckets: int, furthest: int, bidirectional: bool) -> np.ndarray:
    """The bucket of each distance: exact ones first, then log-spaced up to `furthest`, then the last.

    The logarithm is taken in float32 because trained models took it so; near a bucket's edge that decides.
    """
    d = d.astype(np.int64)
    if bidirectional:
        buckets //= 2
        offset = np.where(d < 0, buckets, 0)
        d = np.abs(d)
    else:
        offset = np.zeros_like(d)
        d = np.maximum(d, 0)
    exact = buckets // 2
    ratio = np.log(np.maximum(d, 1).astype(np.float32) / np.float32(exact)) / np.float32(math.log(furthest / exact))
    spaced = exact + (ratio * np.float32(buckets - exact)).astype(np.int64)
    return offset + np.where(d < exact, d, np.minimum(spaced, buckets - 1))


class T5Bias(DistanceMethod):
    name = "t5"
    title = "T5 bias"
    drawn = "table[bucket(d), h]"
    reference = "Raffel et al. 2020, arXiv:1910.10683"
    spec = {"relative_attention_bias.weight": ("bucket", "head")}
    lent = True  # T5 itself has one table, in its first block; UMT5 has one in each
    options = {"max_distance": 128, "bidirectional": False}

    def initial(self, generator: Any) -> dict[str, Array]:
        import torch

        return {"relative_attention_bias.weight": 0.02 * torch.randn(32, self.n_head, generator=generator)}

    def of_distance(self, p: Mapping[str, Array], d: Array, xp: Any) -> Array:
        table = p["relative_attention_bias.weight"]
        host = np.asarray(d.cpu() if hasattr(d, "cpu") else d)
        index = bucket(host, table.shape[0], self.option["max_distance"], self.option["bidirectional"])
        return table.T[:, xp.asarray(index)]
