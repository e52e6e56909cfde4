"""The least that any program could do for scores: import, map the weights, eleven layers by SDPA, scores, draw."""

import json
import sys

import numpy as np
import torch
from drawn import draw
from torch.nn.functional import gelu, layer_norm, linear, scaled_dot_product_attention

HEADS = 12

path, out = sys.argv[1:]
with open(path, "rb") as file:
    length = int.from_bytes(file.read(8), "little")
    header = json.loads(file.read(length))
mapped = torch.from_numpy(np.memmap(path, np.uint8, mode="c", offset=8 + length))


def tensor(name: str) -> torch.Tensor:
    entry = header[f"transformer.{name}"]
    begin, end = entry["data_offsets"]
    return mapped[begin:end].view(torch.float32).view(entry["shape"])


def project(x: torch.Tensor, name: str) -> torch.Tensor:
    return linear(x, tensor(f"{name}.weight"), tensor(f"{name}.bias"))


def normed(x: torch.Tensor, name: str) -> torch.Tensor:
    return layer_norm(x, x.shape[-1:], tensor(f"{name}.weight"), tensor(f"{name}.bias"))


def split(x: torch.Tensor, layer: int) -> list[torch.Tensor]:
    parts = project(normed(x, f"h.{layer}.ln_1"), f"h.{layer}.attn.c_attn").chunk(3, dim=-1)
    return [part.unflatten(-1, (HEADS, -1)).transpose(0, 1) for part in parts]


with torch.inference_mode():
    ids = torch.randint(0, 50304, (512,), generator=torch.Generator().manual_seed(0))
    x = tensor("wte.weight")[ids]
    for layer in range(11):
        y = scaled_dot_product_attention(*split(x, layer), is_causal=True)
        x = x + project(y.transpose(0, 1).flatten(1), f"h.{layer}.attn.c_proj")
        hidden = gelu(project(normed(x, f"h.{layer}.ln_2"), f"h.{layer}.mlp.c_fc"), approximate="tanh")
        x = x + project(hidden, f"h.{layer}.mlp.c_proj")
    q, k, _ = split(x, 11)
    scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
draw(scores.numpy(), out)
