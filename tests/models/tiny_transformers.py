"""Tiny transformers models with seeded weights: what each family is called, how it is made, how it is recognised."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModel
from transformers.utils import logging

TOKENS = 24
VOCABULARY = 100
IDS = np.random.default_rng(7).integers(5, VOCABULARY, TOKENS)

BASE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 64,
}
ENDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
DECODER = {**BASE, **ENDS, "num_key_value_heads": 2}  # grouped keys
GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": VOCABULARY, "n_positions": 64, "n_inner": 48}
T5 = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_decoder_layers": 3, "num_heads": 4, "vocab_size": 100}
BART = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 64,
    **ENDS,
    "decoder_start_token_id": 0,
}
MLA = {
    **BASE,
    "num_key_value_heads": 4,
    "kv_lora_rank": 8,
    "q_lora_rank": 12,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 8,
    "n_routed_experts": 2,
    "num_experts_per_tok": 1,
    "n_group": 1,
    "topk_group": 1,
    "moe_intermediate_size": 16,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
}
EXPERTS = {"num_local_experts": 2, "num_experts_per_tok": 1}
FOUR = {"num_hidden_layers": 4}
ALBERT = {**BASE, "embedding_size": 16}
LOCAL = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 9}

GLOBAL_FIRST = {"layer_types": ["full_attention", "sliding_attention"]}


@dataclass(frozen=True)
class Family:
    """A model type, its configuration, and the method that each layer should be recognised as."""

    kind: str
    methods: tuple[str, ...] | str
    config: dict[str, Any] = field(default_factory=dict)
    stack: str | None = None

    def expected(self, layers: int) -> list[str]:
        return [self.methods] * layers if isinstance(self.methods, str) else list(self.methods)


def rope(kind: str, *parts: dict[str, Any], **options: Any) -> Family:
    config = {key: value for part in parts or (DECODER,) for key, value in part.items()}
    return Family(kind, "rope", {**config, **options})


def absolute(kind: str, *parts: dict[str, Any], **options: Any) -> Family:
    config = {key: value for part in parts or (BASE,) for key, value in part.items()}
    return Family(kind, "learned", {**config, **options})


SCALED = {
    "linear": {"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0},
    "llama3": {
        "rope_type": "llama3",
        "factor": 8.0,
        "rope_theta": 5000.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32,
    },
    "yarn": {"rope_type": "yarn", "factor": 2.0, "rope_theta": 10000.0, "original_max_position_embeddings": 32},
}
PARTIAL = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}
DEBERTA = {**BASE, "relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_buckets": 8}
NOPE = ("rope", "rope", "rope", "none")

ASKED = {
    "llama": rope("llama"),
    "llama linear": rope("llama", rope_parameters=SCALED["linear"]),
    "llama llama3": rope("llama", rope_parameters=SCALED["llama3"]),
    "llama yarn": rope("llama", rope_parameters=SCALED["yarn"]),
    "mistral": rope("mistral", sliding_window=7),
    "qwen2": rope("qwen2"),
    "qwen3": rope("qwen3", head_dim=16),
    "gemma2": rope("gemma2", DECODER, LOCAL, head_dim=8, attn_logit_softcapping=2.0, query_pre_attn_scalar=5),
    "gpt_neox": rope("gpt_neox", BASE, num_attention_heads=2),  # a quarter of each head is turned
    "gptj": rope("gptj", GPT2, rotary_dim=4),
    "phi": rope("phi", BASE, ENDS, rope_parameters=PARTIAL),
    "gpt_oss": rope("gpt_oss", DECODER, LOCAL, EXPERTS, head_dim=8, rope_parameters=SCALED["yarn"]),
    "bloom": Family("bloom", "alibi", {"hidden_size": 36, "n_layer": 2, "n_head": 6, "vocab_size": VOCABULARY}),
    "mpt": Family(
        "mpt",
        "alibi",
        {"d_model": 36, "n_layers": 2, "n_heads": 6, "expansion_ratio": 2, "max_seq_len": 64, "vocab_size": VOCABULARY},
    ),
    "falcon": rope("falcon", BASE, alibi=False),
    "falcon alibi": Family(
        "falcon", "alibi", {**BASE, "alibi": True, "multi_query": False, "new_decoder_architecture": False}
    ),
    "t5": Family("t5", "t5", T5),
    "t5 encoder": Family("t5", "t5", T5, "encoder"),
    "t5 cross": Family("t5", "none", T5, "cross"),
    "umt5": Family("umt5", "t5", T5),
    "mpnet": Family("mpnet", "bias", BASE),
    "deberta_v2": Family("deberta-v2", "bias", {**DEBERTA, "share_att_key": True, "norm_rel_ebd": "layer_norm"}),
    "gpt2": absolute("gpt2", GPT2),
    "bert": absolute("bert"),
    "modernbert": rope(
        "modernbert",
        BASE,
        ENDS,
        GLOBAL_FIRST,
        local_attention=8,
        global_attn_every_n_layers=2,
        cls_token_id=1,
        sep_token_id=2,
    ),
    "roformer": rope("roformer", ALBERT, embedding_size=32),
}

MORE = {
    "smollm3": Family("smollm3", NOPE, {**DECODER, **FOUR, "no_rope_layer_interval": 4}),
    "llama4": Family(
        "llama4_text",
        NOPE,
        {**DECODER, **FOUR, **EXPERTS, "head_dim": 8, "intermediate_size_mlp": 48, "attention_chunk_size": 16},
    ),
    "cohere": rope("cohere", rope_parameters={"rope_type": "default", "rope_theta": 3000.0}),
    "cohere2": Family("cohere2", NOPE, {**DECODER, **FOUR, "sliding_window": 9}),
    "exaone4": Family("exaone4", NOPE, {**DECODER, **FOUR, "sliding_window": 9, "sliding_window_pattern": 4}),
    "gemma3": rope("gemma3_text", DECODER, LOCAL, head_dim=8, query_pre_attn_scalar=5),
    "olmo2": rope("olmo2"),
    "phi3": rope("phi3"),
    "granite": rope("granite", attention_multiplier=0.3),
    "starcoder2": rope("starcoder2", sliding_window=9),
    "stablelm": rope("stablelm", rope_parameters=PARTIAL),
    "mixtral": rope("mixtral", DECODER, EXPERTS),
    "deepseek_v2": rope("deepseek_v2", MLA),
    "deepseek_v3": rope("deepseek_v3", MLA),
    "glm4": rope("glm4", head_dim=8),
    "esm": rope("esm", BASE, position_embedding_type="rotary", pad_token_id=1, mask_token_id=2),
    "codegen": rope("codegen", GPT2, rotary_dim=4, n_ctx=64),
    "opt": absolute("opt", BASE, ENDS, ffn_dim=48, word_embed_proj_dim=32),
    "gpt_bigcode": absolute("gpt_bigcode", GPT2),
    "gpt_neo": absolute(
        "gpt_neo", BASE, num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]], window_size=9
    ),
    "xglm": absolute(
        "xglm", {**ENDS, "d_model": 32, "ffn_dim": 48, "num_layers": 2}, attention_heads=4, vocab_size=100
    ),
    "distilbert": absolute("distilbert", BASE, dim=32, n_layers=2, n_heads=4, hidden_dim=48),
    "roberta": absolute("roberta", pad_token_id=1),
    "electra": absolute("electra", ALBERT),
    "albert": absolute("albert", ALBERT),
    "bart": absolute("bart", BART),
    "marian": absolute("marian", BART),
    "mt5": Family("mt5", "t5", T5),
    "deberta": Family("deberta", "bias", DEBERTA),
    "xlnet": Family("xlnet", "bias", {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48, "vocab_size": 100}),
}

FAMILIES = {**ASKED, **MORE}


def build(family: Family) -> Any:
    """The model in memory, with weights large enough that every part of it matters."""
    logging.set_verbosity_error()
    try:
        config = AutoConfig.for_model(family.kind, **family.config)
    except ValueError as error:
        pytest.skip(f"transformers knows no {family.kind}: {error}")
    torch.manual_seed(0)
    model = AutoModel.from_config(config)
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:  # a table of sines is not to be touched
            norm = parameter.ndim == 1 and name.endswith("weight")
            torch.nn.init.normal_(parameter, mean=1.0 if norm else 0.0, std=0.3)
    return model.eval()


def save(family: Family, folder: Path) -> Path:
    logging.disable_progress_bar()
    build(family).save_pretrained(folder)
    return folder
