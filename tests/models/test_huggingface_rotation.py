"""RoPE: queries and keys before rotation, turned by a rotation written here in NumPy, give the captured scores."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tiny_transformers import FAMILIES, IDS, SCALED, TOKENS, save

from posviz.models.huggingface import open_model


def frequencies(dim: int, base: float = 10000.0) -> np.ndarray:
    return base ** (-np.arange(0, dim, 2) / dim)


def llama3(dim: int) -> np.ndarray:
    """Long waves are slowed down by the factor, short ones kept, those between blended."""
    p = SCALED["llama3"]
    plain = frequencies(dim, p["rope_theta"])
    waves = p["original_max_position_embeddings"] * plain / (2 * math.pi)
    share = np.clip((waves - p["low_freq_factor"]) / (p["high_freq_factor"] - p["low_freq_factor"]), 0, 1)
    return share * plain + (1 - share) * plain / p["factor"]


def yarn(dim: int) -> np.ndarray:
    """As llama3, but the blend is linear over the pairs between those that turn 32 times and once."""
    p = SCALED["yarn"]
    plain = frequencies(dim, p["rope_theta"])

    def pair(turns: float) -> float:
        return dim * math.log(p["original_max_position_embeddings"] / (turns * 2 * math.pi)) / (2 * math.log(10000.0))

    low, high = max(math.floor(pair(32)), 0), min(math.ceil(pair(1)), dim - 1)
    slowed = np.clip((np.arange(dim // 2) - low) / max(high - low, 1e-3), 0, 1)
    return plain * (1 - slowed) + plain / p["factor"] * slowed


def turned(x: np.ndarray, angles: np.ndarray, pairing: str) -> np.ndarray:
    """`x` [head, position, dim] with its first numbers turned in pairs, as complex numbers are."""
    rotary = 2 * angles.shape[-1]
    part = x[..., :rotary]
    if pairing == "halves":
        z = part[..., : rotary // 2] + 1j * part[..., rotary // 2 :]
    else:
        z = part[..., 0::2] + 1j * part[..., 1::2]
    z = z * np.exp(1j * angles)
    if pairing == "halves":
        part = np.concatenate([z.real, z.imag], axis=-1)
    else:
        part = np.stack([z.real, z.imag], axis=-1).reshape(part.shape)
    return np.concatenate([part, x[..., rotary:]], axis=-1)


# family: frequencies in the last layer, pairing
CASES = {
    "llama": (frequencies(8), "halves"),
    "llama linear": (frequencies(8) / 4, "halves"),
    "llama llama3": (llama3(8), "halves"),
    "llama yarn": (yarn(8), "halves"),
    "mistral": (frequencies(8), "halves"),
    "qwen2": (frequencies(8), "halves"),
    "qwen3": (frequencies(16), "halves"),
    "gemma2": (frequencies(8), "halves"),
    "gpt_neox": (frequencies(4), "halves"),
    "phi": (frequencies(4), "halves"),
    "stablelm": (frequencies(4), "halves"),
    "gpt_oss": (yarn(8), "halves"),
    "falcon": (frequencies(8), "halves"),
    "gptj": (frequencies(4), "neighbours"),
    "codegen": (frequencies(4), "neighbours"),
    "roformer": (frequencies(8), "neighbours"),
    "cohere": (frequencies(8, 3000.0), "neighbours"),
    "modernbert": (None, "halves"),
    "gemma3": (None, "halves"),
}
BASES = {"modernbert": (160000.0, 10000.0), "gemma3": (10000.0, 1000000.0)}  # of the first layer and of the second


@pytest.mark.parametrize("name", CASES)
def test_content_turned_in_numpy_is_the_scores(name, tmp_path):
    model = open_model(str(save(FAMILIES[name], tmp_path)))
    same, pairing = CASES[name]
    for layer, seen in model.captures(IDS, range(model.n_layers)).items():
        each = frequencies(8, BASES[name][layer]) if same is None else same
        angles = np.arange(TOKENS)[:, None] * each
        q, k = (turned(x.numpy().astype(np.float64), angles, pairing) for x in (seen.plain_q, seen.plain_k))
        scores = seen.scale * np.einsum("hid,hjd->hij", q, np.repeat(k, len(q) // len(k), axis=0))
        if name == "gemma2":
            scores = 2.0 * np.tanh(scores / 2.0)
        np.testing.assert_allclose(seen.rows("scores", 0, TOKENS), scores, atol=2e-4)
        content = seen.scale * np.einsum(
            "hid,hjd->hij", seen.plain_q.numpy(), np.repeat(seen.plain_k.numpy(), len(q) // len(k), axis=0)
        )
        np.testing.assert_allclose(seen.rows("content", 0, TOKENS), content, atol=1e-4)


def test_plain_queries_are_the_projection_of_the_layers_input(tmp_path):
    """Not only consistent with the rotation: they are what the layer computes before it."""
    model = open_model(str(save(FAMILIES["llama"], tmp_path)))
    seen = model.capture(IDS, 0)
    weights = {name: value.detach().numpy() for name, value in model.model.named_parameters()}
    x = weights["embed_tokens.weight"][IDS]
    x = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * weights["layers.0.input_layernorm.weight"]
    q = (x @ weights["layers.0.self_attn.q_proj.weight"].T).reshape(TOKENS, 4, 8).transpose(1, 0, 2)
    np.testing.assert_allclose(seen.plain_q.numpy(), q, atol=1e-4)
