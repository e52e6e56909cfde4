"""Which positional method a layer uses, told by what its attention does, and what a reader should know about it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from posviz import methods
from posviz.models.seen import SeenAttention

TITLES = {"bias": "relative bias", "learned": "absolute positions"}
POSITION_TABLE = re.compile(r"(^|\.)(wpe|tokens_positions|(position|pos)s?_(embed\w*|emb)|embed_(position|pos)s?)$")
ENOUGH = 64  # rows that tell one method from another


def title(method: str) -> str:
    """As figures and captions print it."""
    return TITLES[method] if method in TITLES else methods.get(method).title


def position_table(model: nn.Module) -> str | None:
    """The name of a table of absolute positions, beyond whose end there is nothing to look up."""
    tables = (name for name, module in model.named_modules() if isinstance(module, nn.Embedding))
    return next((name for name in tables if POSITION_TABLE.search(name)), None)


def same_everywhere(states: Tensor, axis: int) -> bool:
    """Whether a repeated token is the same at every position along `axis`."""
    return bool((states - states.narrow(axis, 0, 1)).abs().max() <= 1e-5 * states.abs().max())


def method_of(seen: SeenAttention, config: Any, added: bool) -> str:
    """The method of a call whose rotation, if any, has been taken out; `added`: positions are in the embeddings."""
    if seen.plain_q is not None:
        return "rope"
    if seen.biases:
        if is_linear(seen):
            return "alibi"
        return "t5" if hasattr(config, "relative_attention_max_distance") else "bias"
    return "learned" if added else "none"


def is_linear(seen: SeenAttention) -> bool:
    """Whether every head's bias, relative to the query's own place, is a slope times the distance."""
    stop, keys = min(ENOUGH, seen.seq_len), seen.key_len
    if keys < 3:
        return False
    bias = seen.rows("bias", 0, stop).astype(np.float64)
    visible = np.broadcast_to(seen.visible(0, stop), bias.shape)
    row = np.arange(stop)
    bias = bias - bias[:, row, row][:, :, None]
    distance = np.abs(row[:, None] - np.arange(keys)[None, :])
    known = visible & np.isfinite(bias)
    slopes = np.where(known, bias * distance, 0).sum((1, 2)) / np.where(known, distance**2, 0).sum((1, 2))
    error = np.where(known, np.abs(bias - slopes[:, None, None] * distance), 0).max((1, 2))
    spread = np.where(known, np.abs(bias), 0).max((1, 2))
    return bool((spread > 0).any() and (error <= 0.02 * spread).all())  # half precision rounds slopes to 1 in 256


def as_stripes(seen: SeenAttention) -> None:
    """Keep a bias that is the same row for every query as that one row, also where a mask hid parts of it."""
    seen.biases = tuple(_one_row(bias) for bias in seen.biases)


def _one_row(bias: Tensor) -> Tensor:
    if bias.shape[1] == 1 or bool(bias[:, -1].isnan().any()):
        return bias
    last = bias[:, -1:]
    return last if bool(((bias == last) | bias.isnan()).all()) else bias


def striped(seen: SeenAttention) -> bool:
    return any(bias.shape[1] == 1 for bias in seen.biases)


def added_twice(seen: SeenAttention) -> bool:
    """Whether the same bias is added in two places."""
    if len(seen.biases) < 2:
        return False
    first, second = seen.biases[:2]
    return first.shape == second.shape and torch.allclose(first, second, rtol=1e-2, atol=0, equal_nan=True)


def reach(seen: SeenAttention) -> int | None:
    """How many keys the last query sees, if that is not all of them: a window, or a chunk of the sequence."""
    last = seen.seq_len - 1
    count = int(np.asarray(seen.visible(last, last + 1)).sum(axis=-1).max())
    return count if count < seen.key_len else None
