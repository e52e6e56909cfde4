"""Captures held against the model's own attention weights, which only its eager attention gives away."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from posviz.errors import CaptureError

if TYPE_CHECKING:
    from posviz.models.huggingface.model import HFModel

OUTPUT = {None: "attentions", "encoder": "attentions", "decoder": "decoder_attentions", "cross": "cross_attentions"}


def verify(model: HFModel, ids: np.ndarray, layers: Collection[int]) -> list[tuple[int, float]]:
    """For each layer (from 0) the largest difference between the softmax of our scores and the model's own weights."""
    captures = model.captures(ids, layers)
    own = own_attention(model, ids, layers)
    found = []
    for layer, seen in captures.items():
        found.append((layer, float(np.abs(seen.rows("attention", 0, seen.seq_len) - own[layer]).max())))
    return found


@torch.inference_mode()
def own_attention(model: HFModel, ids: np.ndarray, layers: Collection[int]) -> dict[int, np.ndarray]:
    """The model's own attention weights `[head, query, key]` of these layers, in eager mode."""
    with _eager(model.model):
        output = model.run(model.tokens(ids), output_attentions=True)
    given = getattr(output, OUTPUT[model.stack], None) or ()
    whole = len(given) == model.n_layers
    weights = dict(zip(range(model.n_layers) if whole else model.layers.with_attention(), given, strict=False))
    if any(weights.get(layer) is None for layer in layers):
        raise CaptureError(f"{model.name} gives no attention weights of its own to compare with")
    return {layer: weights[layer][0].float().cpu().numpy() for layer in layers}


@contextmanager
def _eager(model: Any) -> Iterator[None]:
    found = {id(module.config): module.config for module in model.modules() if hasattr(module, "config")}
    before = [(config, config._attn_implementation) for config in found.values()]
    for config, _ in before:
        config._attn_implementation = "eager"
    try:
        yield
    finally:
        for config, implementation in before:
            config._attn_implementation = implementation
