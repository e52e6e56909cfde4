"""The weights that our GPT needs to run up to a layer's scores, under our GPT's names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from posviz import methods
from posviz.checkpoint.facts import root
from posviz.checkpoint.opened import Checkpoint
from posviz.checkpoint.parameters import locate
from posviz.checkpoint.store import Shape
from posviz.config import ModelConfig
from posviz.errors import CheckpointError

if TYPE_CHECKING:
    import torch


def load_state(
    checkpoint: Checkpoint, config: ModelConfig, layers: int | None = None, token_ids: np.ndarray | None = None
) -> dict[str, torch.Tensor]:
    """Tensors in their stored type, mapped from the file, checked for shape and for NaN.

    With `layers`, what is needed to reach the scores of that layer (from 1): no output norm, and of the last layer
    neither its output projection nor its MLP. With `token_ids`, only these rows of the embedding table are looked at.
    """
    state: dict[str, torch.Tensor] = {}
    for ours, shape in _expected(config, layers):
        name = ours if root(checkpoint) else ours.removeprefix("transformer.")
        rows = token_ids if ours == "transformer.wte.weight" else None
        state[ours] = _checked(checkpoint, name, shape, rows)
    positional = methods.get(config.method)(config.n_head, config.n_embd, **config.method_options)
    for layer in range(layers or config.n_layer):
        located = locate(checkpoint, layer, type(positional))
        positional.check(located.shapes, f"layer {layer + 1} of {checkpoint.name}")
        for suffix, name in located.names.items():
            shape = located.shapes[suffix]
            found = _checked(checkpoint, name, checkpoint.tensors[name].shape, None)
            state[f"transformer.h.{layer}.attn.pos.{suffix}"] = found.reshape(shape)
    return state


def _expected(config: ModelConfig, layers: int | None) -> Iterator[tuple[str, Shape]]:
    """Our GPT's names with their shapes, the positional method's left out."""
    width = config.n_embd
    yield "transformer.wte.weight", (config.vocab_size, width)
    if config.learned_positions:
        yield "transformer.wpe.weight", (config.block_size, width)
    for layer in range(layers or config.n_layer):
        begin = f"transformer.h.{layer}"
        yield from _norm(f"{begin}.ln_1", config)
        yield from _linear(f"{begin}.attn.c_attn", width, 3 * width, config)
        if layer + 1 == layers:
            return
        yield from _linear(f"{begin}.attn.c_proj", width, width, config)
        yield from _norm(f"{begin}.ln_2", config)
        yield from _linear(f"{begin}.mlp.c_fc", width, 4 * width, config)
        yield from _linear(f"{begin}.mlp.c_proj", 4 * width, width, config)
    yield from _norm("transformer.ln_f", config)


def _norm(name: str, config: ModelConfig) -> Iterator[tuple[str, Shape]]:
    yield f"{name}.weight", (config.n_embd,)
    if config.norm_bias:
        yield f"{name}.bias", (config.n_embd,)


def _linear(name: str, wide_in: int, wide_out: int, config: ModelConfig) -> Iterator[tuple[str, Shape]]:
    yield f"{name}.weight", (wide_out, wide_in)
    if config.bias:
        yield f"{name}.bias", (wide_out,)


def _checked(checkpoint: Checkpoint, name: str, shape: Shape, rows: np.ndarray | None) -> torch.Tensor:
    """One tensor of this shape, without NaN in these rows (or at all)."""
    import torch

    if name not in checkpoint.tensors:
        raise CheckpointError(f"{checkpoint.path} has no tensor {name}; expected one of shape {list(shape)}")
    found = checkpoint.tensors[name].shape
    if found != shape:
        raise CheckpointError(f"{checkpoint.path}: {name} has shape {list(found)}, expected {list(shape)}")
    values = checkpoint.torch(name)
    looked_at = values if rows is None else values[torch.from_numpy(np.unique(rows))]
    # A sum is NaN or infinite if anything in it is, and costs one pass; only then are the culprits counted.
    if not torch.isfinite(looked_at.sum(dtype=torch.float32)):
        bad = int((~torch.isfinite(looked_at)).sum())
        if bad:
            raise CheckpointError(
                f"{checkpoint.path}: {name} holds {bad} NaN or infinite values of {looked_at.numel()}; the training "
                "went wrong or the file is damaged"
            )
    return values
