"""Added biases: what is captured equals each family's formula, written again here from its paper."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_transformers import FAMILIES, IDS, TOKENS, save

from posviz.models.huggingface import open_model

QUERY, KEY = np.arange(TOKENS)[:, None], np.arange(TOKENS)[None, :]
SIX_SLOPES = 2.0 ** -np.array([2, 4, 6, 8, 1, 3])  # those of 4 heads, then every other one of 8
FOUR_SLOPES = 2.0 ** -np.array([2, 4, 6, 8])


def opened(name, folder):
    return open_model(str(save(FAMILIES[name], folder)), stack=FAMILIES[name].stack)


def tables(model):
    return {name: value.detach().numpy() for name, value in model.model.named_parameters()}


@pytest.mark.parametrize("name", ["bloom", "mpt"])
def test_stripes_are_drawn_relative_to_the_query(name, tmp_path):
    model = opened(name, tmp_path)
    for seen in model.captures(IDS, range(model.n_layers)).values():
        expected = -SIX_SLOPES[:, None, None] * (QUERY - KEY)
        np.testing.assert_allclose(seen.rows("bias", 0, TOKENS), expected, atol=1e-5)
        assert any("b[i,j] - b[i,i]" in note for note in seen.notes)


@pytest.mark.parametrize(("name", "place"), [("bloom", KEY), ("mpt", KEY - (TOKENS - 1))])
def test_raw_shows_the_stripes_as_stored(name, place, tmp_path):
    seen = opened(name, tmp_path).capture(IDS, 1, raw=True)
    expected = SIX_SLOPES[:, None, None] * np.broadcast_to(place, (TOKENS, TOKENS))
    np.testing.assert_allclose(seen.rows("bias", 0, TOKENS), expected, atol=1e-5)
    assert any("as stored" in note for note in seen.notes)


def test_falcon_adds_its_bias_twice_in_eager_mode_and_this_is_said(tmp_path):
    seen = opened("falcon alibi", tmp_path).capture(IDS, 1)
    once = -FOUR_SLOPES[:, None, None] * (QUERY - KEY) / np.sqrt(8)
    np.testing.assert_allclose(seen.rows("bias", 0, TOKENS), 2 * once, atol=1e-4)
    assert any("twice" in note for note in seen.notes)


def t5_bucket(distance: np.ndarray, both_ways: bool, buckets: int = 32, farthest: int = 128) -> np.ndarray:
    """Of `distance` = query - key: exact up to half of the buckets, then by the logarithm."""
    offset = 0
    if both_ways:
        buckets //= 2
        offset, distance = buckets * (distance < 0), np.abs(distance)
    distance = np.maximum(distance, 0)
    exact = buckets // 2
    far = exact + np.floor(
        np.log(np.maximum(distance, 1) / exact) / np.log(farthest / exact) * (buckets - exact) + 1e-6
    ).astype(int)
    return offset + np.where(distance < exact, distance, np.minimum(far, buckets - 1))


@pytest.mark.parametrize("name", ["t5", "t5 encoder"])
def test_t5_shares_the_table_of_its_first_block(name, tmp_path):
    model = opened(name, tmp_path)
    half = FAMILIES[name].stack or "decoder"
    table = tables(model)[f"{half}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"]
    expected = table[t5_bucket(QUERY - KEY, half == "encoder")].transpose(2, 0, 1)
    for seen in model.captures(IDS, range(model.n_layers)).values():
        visible = seen.visible(0, TOKENS)
        assert visible.all() == (half == "encoder")
        np.testing.assert_allclose(seen.rows("bias", 0, TOKENS)[:, visible], expected[:, visible], atol=1e-6)
        assert seen.scale == 1.0


def test_umt5_has_a_table_in_every_layer(tmp_path):
    model = opened("umt5", tmp_path)
    visible = np.broadcast_to(QUERY >= KEY, (TOKENS, TOKENS))
    for layer, seen in model.captures(IDS, range(model.n_layers)).items():
        table = tables(model)[f"decoder.block.{layer}.layer.0.SelfAttention.relative_attention_bias.weight"]
        expected = table[t5_bucket(QUERY - KEY, False)].transpose(2, 0, 1)
        np.testing.assert_allclose(seen.rows("bias", 0, TOKENS)[:, visible], expected[:, visible], atol=1e-6)


def test_mpnet(tmp_path):
    model = opened("mpnet", tmp_path)
    expected = tables(model)["encoder.relative_attention_bias.weight"][t5_bucket(QUERY - KEY, True)].transpose(2, 0, 1)
    for seen in model.captures(IDS, range(model.n_layers)).values():
        np.testing.assert_allclose(seen.rows("bias", 0, TOKENS), expected, atol=1e-5)


def deberta_bucket(distance: np.ndarray, buckets: int = 8, farthest: int = 64) -> np.ndarray:
    middle = buckets // 2
    far = np.ceil(
        np.log(np.maximum(np.abs(distance), middle) / middle) / np.log((farthest - 1) / middle) * (middle - 1)
    )
    return np.where(np.abs(distance) <= middle, distance, np.sign(distance) * (far + middle)).astype(int)


def test_deberta_adds_content_to_position_and_position_to_content(tmp_path):
    model = opened("deberta_v2", tmp_path)
    weights, span = tables(model), 8
    rel = weights["encoder.rel_embeddings.weight"][: 2 * span]
    rel = (rel - rel.mean(-1, keepdims=True)) / np.sqrt(rel.var(-1, keepdims=True) + 1e-7)
    rel = rel * weights["encoder.LayerNorm.weight"] + weights["encoder.LayerNorm.bias"]
    at = np.clip(deberta_bucket(QUERY - KEY) + span, 0, 2 * span - 1)
    for layer, seen in model.captures(IDS, range(model.n_layers)).items():
        place = f"encoder.layer.{layer}.attention.self"
        of_query, of_key = (
            (rel @ weights[f"{place}.{kind}_proj.weight"].T + weights[f"{place}.{kind}_proj.bias"]).reshape(-1, 4, 8)
            for kind in ("query", "key")
        )
        q, k = seen.q.numpy(), seen.k.numpy() * np.sqrt(24)  # the model divides its keys by the scale
        to_position = np.einsum("hid,phd->hip", q, of_key)[:, QUERY, at]
        to_content = np.einsum("hjd,phd->hjp", k, of_query)[:, KEY, at]
        expected = (to_position + to_content) / np.sqrt(3 * 8)
        np.testing.assert_allclose(seen.rows("bias", 0, TOKENS), expected, atol=1e-4)
