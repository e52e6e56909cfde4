"""torch.nn.MultiheadAttention: one function call that projects and attends, so its inside is computed again here."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from posviz.errors import CaptureError
from posviz.models.chain import Chain


def from_multi_head(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    *rest: Any,
    key_padding_mask: Tensor | None = None,
    attn_mask: Tensor | None = None,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    **unused: Any,
) -> Chain:
    """The scores of `torch.nn.functional.multi_head_attention_forward`; its inputs are `[position, batch, width]`."""
    if bias_k is not None or add_zero_attn:
        raise CaptureError("a MultiheadAttention with add_bias_kv or add_zero_attn cannot be recorded: it adds keys")
    if query.ndim == 2:
        query, key = query[:, None], key[:, None]
    if in_proj_weight is not None:
        q_proj_weight, k_proj_weight, _ = in_proj_weight.chunk(3)
    assert q_proj_weight is not None
    assert k_proj_weight is not None
    q_bias, k_bias = (None, None) if in_proj_bias is None else in_proj_bias.chunk(3)[:2]
    q = _heads(linear(query, q_proj_weight, q_bias), num_heads)
    k = _heads(linear(key, k_proj_weight, k_bias), num_heads)
    chain = Chain.product(q, k, q.shape[:2]).times(q.shape[-1] ** -0.5)
    assert chain is not None
    if attn_mask is not None:
        by_head = attn_mask.reshape(*q.shape[:2], *attn_mask.shape[1:]) if attn_mask.ndim == 3 else attn_mask
        chain = _masked(chain, by_head)
    if key_padding_mask is not None:
        chain = _masked(chain, key_padding_mask.reshape(-1, 1, 1, k.shape[-2]))
    return chain


def _masked(chain: Chain, mask: Tensor) -> Chain:
    """True hides, as this module has it; a float mask is added."""
    new = chain.without(mask, float("-inf")) if mask.dtype == torch.bool else chain.plus(mask)
    if new is None:
        raise CaptureError(
            f"a mask of shape {tuple(mask.shape)} does not fit on scores of {chain.lead} batch and heads"
        )
    return new


def _heads(x: Tensor, heads: int) -> Tensor:
    """`[position, batch, width]` to `[batch, head, position, dim]`."""
    return x.reshape(*x.shape[:2], heads, -1).permute(1, 2, 0, 3)
