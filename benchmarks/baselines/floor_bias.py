"""The floor without a forward pass: torch is imported as such scripts do, one small tensor is read, and drawn."""

import json
import sys

import numpy as np
import torch
from drawn import draw

path, out = sys.argv[1:]
with open(path, "rb") as file:
    length = int.from_bytes(file.read(8), "little")
    header = json.loads(file.read(length))
mapped = torch.from_numpy(np.memmap(path, np.uint8, mode="c", offset=8 + length))


def tensor(suffix: str) -> torch.Tensor:
    begin, end = next(entry["data_offsets"] for name, entry in header.items() if name.endswith(f"h.11.{suffix}"))
    return mapped[begin:end].view(torch.float32).view(-1, 1, 1)


away = torch.arange(512.0)[:, None] - torch.arange(512.0)[None, :]
bias = -tensor("attn.pos.bias_p") * torch.log(1 + tensor("attn.pos.bias_a") * away.abs())
draw(bias.numpy(), out)
