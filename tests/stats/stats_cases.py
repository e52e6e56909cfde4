"""Stacks whose numbers are known beforehand."""

from __future__ import annotations

from typing import Any

import numpy as np

from posviz import rows
from posviz.stack import HeadStack


def distances(length: int) -> np.ndarray:
    return np.arange(length)[:, None] - np.arange(length)


def causal(values: np.ndarray, **fields: Any) -> HeadStack:
    """`[head, query, key]` as a decoder sees it."""
    masked = np.where(distances(values.shape[1]) >= 0, values, np.nan).astype(np.float32)
    return HeadStack(masked, tuple(range(1, len(values) + 1)), **fields)


def alibi(slopes: np.ndarray, length: int) -> HeadStack:
    values = -np.asarray(slopes, dtype=np.float32)[:, None, None] * distances(length).astype(np.float32)
    return causal(values, meta={"layer": 2, "method": "alibi", "quantity": "bias"})


def noisy(heads: int, length: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(heads, length, length)).astype(np.float32)


class Source:
    """Row blocks of a matrix that is already there."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values
        self.n_head, self.seq_len, self.key_len = values.shape

    def rows(self, quantity: str, start: int, stop: int) -> np.ndarray:
        return self.values[:, start:stop]

    def visible(self, start: int, stop: int) -> np.ndarray:
        return rows.causal(start, stop, self.key_len)
