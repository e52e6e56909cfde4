"""What a transformers model's config.json says of its positional method, without loading the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ROTARY = ("rope_parameters", "rope_theta", "rope_scaling", "rotary_pct", "rotary_dim", "rotary_emb_base")
TABLES = ("n_positions", "max_position_embeddings")


def method_in(config: Mapping[str, Any]) -> tuple[str | None, str]:
    """The method, and why; None where the configuration alone does not tell. A render looks at the model itself."""
    text = config.get("text_config")
    if isinstance(text, Mapping):
        return method_in(text)
    kind = str(config.get("model_type", "of unknown type"))
    inner = config.get("attn_config")
    slopes = config.get("alibi", inner.get("alibi") if isinstance(inner, Mapping) else None)
    if slopes or kind == "bloom":
        return "alibi", f"its configuration ({kind}) says so"
    if "relative_attention_num_buckets" in config:
        return "t5", f"its configuration ({kind}) has relative_attention_num_buckets"
    for name in ROTARY:
        if config.get(name) is not None:
            return "rope", f"its configuration ({kind}) has {name}"
    for name in TABLES:
        if config.get(name) is not None:
            return "learned", f"its configuration ({kind}) has {name} and nothing about relative positions"
    return None, f"its configuration ({kind}) says nothing about positions; render looks at the model itself"
