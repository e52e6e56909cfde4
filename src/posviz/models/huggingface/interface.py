"""Our own attention function inside transformers: it tells of every call, then runs it without a whole matrix."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import sdpa_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from posviz.errors import CaptureError
from posviz.models.seen import SeenAttention, split_mask

NAME = "posviz"
BLOCK_BYTES = 64 * 2**20  # scores held at once in a layer that is not asked for
BEYOND_SDPA = ("softcap", "s_aux", "position_bias")  # what torch's own function cannot do, or not in every version


@dataclass(frozen=True)
class Call:
    """What a model hands to its attention function; the names of the options are the same in every model."""

    module: nn.Module
    query: Tensor  # [batch, head, position, dim], after any rotation
    key: Tensor  # [batch, group, position, dim]
    value: Tensor
    mask: Tensor | None
    options: dict[str, Any]

    def seen(self) -> SeenAttention:
        """The call on the first sample."""
        scaling, causal = self.options.get("scaling"), self.options.get("is_causal")
        causal = getattr(self.module, "is_causal", True) if causal is None else causal
        bias = self.options.get("position_bias")
        biases, mask = [] if bias is None or not bool(bias.any()) else [bias[0]], self.mask
        if mask is not None:
            mask = mask[0]
            if mask.dtype != torch.bool:
                added, hidden = split_mask(mask)
                biases += [] if added is None else [added]
                mask = None if hidden is None else ~hidden
        return SeenAttention(
            q=self.query[0],
            k=self.key[0],
            scale=self.query.shape[-1] ** -0.5 if scaling is None else scaling,
            cap=self.options.get("softcap"),
            biases=tuple(biases),
            mask=mask,
            causal=bool(causal) and self.mask is None and self.query.shape[2] > 1,
            sinks=self.options.get("s_aux"),
        )

    def own_rows(self, seen: SeenAttention, start: int, stop: int) -> tuple[Tensor, Tensor] | None:
        """The model's own eager attention on some rows, output and weights; None where it has no such function."""
        eager = getattr(sys.modules[type(self.module).__module__], "eager_attention_forward", None)
        if eager is None:
            return None
        options = dict(self.options)
        if (bias := options.get("position_bias")) is not None and bias.shape[-2] > 1:
            options["position_bias"] = bias[..., start:stop, :]
        mask = self._mask_rows(seen, start, stop)
        return eager(self.module, self.query[:, :, start:stop], self.key, self.value, mask, **options)

    def _mask_rows(self, seen: SeenAttention, start: int, stop: int) -> Tensor:
        """The mask of some rows in the form that eager functions add."""
        if self.mask is not None and self.mask.dtype != torch.bool:
            return self.mask if self.mask.shape[-2] == 1 else self.mask[..., start:stop, :]
        hidden, dtype = ~seen.looked_at(start, stop)[None], self.query.dtype
        return torch.zeros_like(hidden, dtype=dtype).masked_fill(hidden, torch.finfo(dtype).min)


Report = Callable[[SeenAttention, "Call | None"], None]
_reports: list[Report] = []  # who is listening; the innermost is told


@contextmanager
def listening(report: Report) -> Iterator[None]:
    """`report` is told of every attention call in the block, before it is computed."""
    _reports.append(report)
    try:
        yield
    finally:
        _reports.pop()


def register() -> None:
    """Make `attn_implementation="posviz"` known. Without the second line masks would silently vanish."""
    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, sdpa_mask)


def attend(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
) -> tuple[Tensor, None]:
    """What transformers calls in every attention layer of a model that was loaded under our name."""
    if attention_mask is not None:  # some are made for one key more, and cut by their model's own eager function
        attention_mask = attention_mask[..., : key.shape[2]]
    call = Call(module, query, key, value, attention_mask, options)
    if _reports:
        _reports[-1](call.seen(), call)
    if any(options.get(name) is not None for name in BEYOND_SDPA):
        return _in_blocks(call), None
    return ALL_ATTENTION_FUNCTIONS["sdpa"](module, query, key, value, attention_mask, **options)


def _in_blocks(call: Call) -> Tensor:
    """The model's own eager function some rows at a time, so that no layer's whole matrix is ever there."""
    seen, length = call.seen(), call.query.shape[2]
    rows = max(1, BLOCK_BYTES // (4 * call.query.shape[1] * call.key.shape[2]))
    outputs = []
    for start in range(0, length, rows):
        own = call.own_rows(seen, start, min(start + rows, length))
        if own is None:
            extras = ", ".join(name for name in BEYOND_SDPA if call.options.get(name) is not None)
            raise CaptureError(f"{type(call.module).__name__} uses {extras} and has no eager function to run it with")
        outputs.append(own[0])
    return torch.cat(outputs, dim=1)
