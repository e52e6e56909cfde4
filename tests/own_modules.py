"""Modules as people write them: the same attention in different words, and its product of queries and keys in NumPy."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention, softmax

T, WIDTH, HEADS, BLOCKS = 12, 16, 4, 3


class Attention(nn.Module):
    """The base of all written-out variants: projections, and the numbers that a test needs."""

    def __init__(self):
        super().__init__()
        self.c_attn = nn.Linear(WIDTH, 3 * WIDTH)
        self.c_proj = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("bias", torch.tril(torch.ones(T, T)).view(1, 1, T, T))

    def heads(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        parts = self.c_attn(x).split(WIDTH, dim=2)
        return tuple(p.view(*x.shape[:2], HEADS, -1).transpose(1, 2) for p in parts)

    def out(self, y: Tensor) -> Tensor:
        return self.c_proj(y.transpose(1, 2).contiguous().flatten(2))

    def forward(self, x: Tensor) -> Tensor:
        self.x = x.detach()
        q, k, v = self.heads(x)
        return self.out(self.attend(q, k, v))

    def product(self) -> np.ndarray:
        """q.k of the first sample, by NumPy from the layer's input."""
        both = self.x[0].numpy() @ self.c_attn.weight.detach().numpy().T + self.c_attn.bias.detach().numpy()
        q, k = (both[:, part * WIDTH : (part + 1) * WIDTH].reshape(T, HEADS, -1) for part in (0, 1))
        return np.einsum("ihd,jhd->hij", q, k)


class NanoFlash(Attention):
    def attend(self, q, k, v):
        return scaled_dot_product_attention(q, k, v, is_causal=True)


class NanoSlow(Attention):
    def attend(self, q, k, v):
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        return softmax(att, dim=-1) @ v


class Manual(Attention):
    """einsum, a bias that is learned, a cap, a float mask, the row maximum subtracted."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(HEADS, T, T))

    def attend(self, q, k, v):
        scores = torch.einsum("bhid,bhjd->bhij", q, k)
        scores = torch.tanh(scores / 3.0) * 3.0
        scores = self.table + scores
        scores += torch.where(self.bias == 0, -1e9, 0.0)
        scores = scores - scores.max(dim=-1, keepdim=True).values
        return torch.softmax(scores, -1) @ v


class Flattened(Attention):
    """Batch and heads in one axis, the bias inside the product, the mask set by index."""

    def attend(self, q, k, v):
        n = q.shape[0] * HEADS
        slopes = torch.linspace(0.1, 1, HEADS).repeat(q.shape[0])[:, None, None]
        alibi = slopes * torch.arange(T)[None, None, :]
        q, k, v = (x.reshape(n, T, -1) for x in (q, k, v))
        scores = torch.baddbmm(alibi, q, k.transpose(1, 2), beta=2.0, alpha=0.25)
        scores[(self.bias[0] == 0).expand(n, T, T)] = float("-inf")
        return (scores.softmax(-1) @ v).view(-1, HEADS, T, v.shape[-1])


class Model(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.blocks = nn.ModuleList(nn.ModuleDict({"attn": kind()}) for _ in range(BLOCKS))

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = x + block["attn"](x)
        return x
