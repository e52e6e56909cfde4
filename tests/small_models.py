"""Small models of every method with weights that would show a mix-up, and what their layers are given."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from posviz.checkpoint import save_checkpoint
from posviz.config import ModelConfig
from posviz.models.gpt import GPT


def config_of(method: str, **changes: object) -> ModelConfig:
    """Twelve heads, as in the paper, but narrow."""
    sizes = {"n_layer": 2, "n_head": 12, "n_embd": 48, "vocab_size": 256, "block_size": 512, "tokenizer": "bytes"}
    return ModelConfig(**{"method": method, **sizes, **changes})


def model_of(config: ModelConfig, seed: int = 1) -> GPT:
    """A seeded model; sharper than GPT-2's start, so that its scores are far from zero, and no value is round."""
    model = GPT(config, seed=seed).eval()
    generator = torch.Generator().manual_seed(seed + 100)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name == "transformer.wte.weight" or name.endswith("c_attn.weight"):
                parameter.mul_(10)
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=generator))
    return model.requires_grad_(False)


def saved(model: GPT, path: Path) -> Path:
    """The model as one of our own checkpoints."""
    return save_checkpoint(model.state_dict(), model.config, path, {})


@dataclass(frozen=True)
class Passed:
    """What went into a layer's attention and what came out of it in a forward pass of the whole model, in float64."""

    x: np.ndarray  # [position, width]
    y: np.ndarray
    weights: dict[str, np.ndarray]  # the attention's own, by their names in it


def forward(model: GPT, ids: np.ndarray, layer: int) -> Passed:
    """Run the whole model, output head included, and keep what passed through the attention of one layer (from 0)."""
    kept: list[tuple[torch.Tensor, torch.Tensor]] = []
    attention = model.layer(layer).attn
    handle = attention.register_forward_hook(lambda _, inputs, output: kept.append((inputs[0], output)))
    try:
        with torch.no_grad():
            model(torch.from_numpy(ids)[None])
    finally:
        handle.remove()
    x, y = (t[0].double().numpy() for t in kept[0])
    return Passed(x, y, {name: t.double().numpy() for name, t in attention.state_dict().items()})
