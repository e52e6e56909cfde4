"""Running our own GPT up to the layers that are asked for, and no further."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from posviz.checkpoint import Checkpoint, load_state
from posviz.config import ModelConfig
from posviz.errors import PosvizError
from posviz.models.attention import AttentionView
from posviz.models.gpt import GPT, Attention
from posviz.models.running import settings
from posviz.options import CaptureRequest
from posviz.rows import causal


class _Reached(Exception):  # noqa: N818  (a signal, not an error)
    """The last layer that was asked for has been seen; nothing after it need run."""


class ViewRows:
    """A row source over one layer's attention."""

    def __init__(self, view: AttentionView) -> None:
        self.view = view
        self.n_head = view.q.shape[1]
        self.seq_len = self.key_len = view.length

    def rows(self, quantity: str, start: int, stop: int) -> np.ndarray:
        return self._rows(quantity, start, stop, self.key_len)

    def past(self, quantity: str, start: int, stop: int) -> np.ndarray:
        needed = min(stop + self.view.method.reads_ahead, self.key_len)
        return self._rows(quantity, start, stop, needed)[:, :, :stop]

    @torch.no_grad()
    def _rows(self, quantity: str, start: int, stop: int, keys: int) -> np.ndarray:
        block: Tensor = getattr(self.view, quantity)(start, stop, keys)[0]
        return block.to("cpu", torch.float32).numpy()

    def visible(self, start: int, stop: int) -> np.ndarray:
        return causal(start, stop, self.key_len)


@torch.no_grad()
def run(model: GPT, ids: np.ndarray, layers: Collection[int]) -> dict[int, ViewRows]:
    """What the attention of each of these layers (from 0) sees on one sequence, in one pass."""
    seen: dict[int, ViewRows] = {}
    handles = []

    def watch(index: int, attention: nn.Module) -> None:
        def hook(_: nn.Module, inputs: tuple[Any, ...]) -> None:
            seen[index] = ViewRows(model.layer(index).attn.view(inputs[0]))
            if len(seen) == len(set(layers)):
                raise _Reached

        handles.append(attention.register_forward_pre_hook(hook))

    for index in layers:
        watch(index, model.layer(index).attn)
    device = model.transformer.wte.weight.device
    try:
        model.transformer(torch.from_numpy(np.ascontiguousarray(ids, dtype=np.int64))[None].to(device))
    except _Reached:
        pass
    finally:
        for handle in handles:
            handle.remove()
    return seen


def see(
    checkpoint: Checkpoint, config: ModelConfig, ids: np.ndarray, layers: Collection[int], request: CaptureRequest
) -> dict[int, tuple[ViewRows, tuple[str, ...]]]:
    """The rows of each of these layers (from 0) of a checkpoint, and what should be said of them."""
    device, dtype = settings(request)
    needed = max(layers) + 1
    state = load_state(checkpoint, config, needed, ids)
    model = GPT.from_state(
        replace(config, n_layer=needed), {name: tensor.to(device, dtype) for name, tensor in state.items()}
    )
    found = run(model, ids, layers)
    return {
        layer: (rows, (verified(model.layer(layer).attn, rows.view, layer),) if request.verify else ())
        for layer, rows in found.items()
    }


TOLERANCE = 1e-4  # and at least a few of the last digits of the type that is computed in


@torch.no_grad()
def verified(attention: Attention, view: AttentionView, layer: int) -> str:
    """What torch's own attention makes of the same queries, keys and bias, against what our scores make."""
    _, _, v = attention.project(view.x)
    length = view.length
    ours = view.attention(0, length).to(v) @ v
    hidden = torch.ones(length, length, dtype=torch.bool, device=v.device).triu(1)
    added = torch.zeros(length, length, device=v.device, dtype=v.dtype).masked_fill(hidden, float("-inf"))
    if view.method.additive:
        added = added + view.bias(0, length).to(v)
    theirs = scaled_dot_product_attention(view.q_seen, view.k_seen, v, attn_mask=added, scale=view.scale)
    difference = (ours - theirs).abs().max().item()
    most = max(TOLERANCE, 16 * torch.finfo(v.dtype).eps)
    if not difference <= most:
        raise PosvizError(f"layer {layer + 1}: our attention and torch's differ by {difference:.1e}; expected {most:g}")
    return f"verified: layer {layer + 1}'s attention and torch's own differ by at most {difference:.1e}"
