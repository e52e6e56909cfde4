"""T5's buckets, against transformers' own code."""

from __future__ import annotations

import formulas
import numpy as np
import pytest
import torch
from transformers.models.t5.modeling_t5 import T5Attention

from posviz import methods
from posviz.methods.base import Block
from posviz.methods.t5 import bucket

DISTANCES = np.arange(-3000, 3001)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize(("buckets", "furthest"), [(32, 128), (32, 256), (64, 128), (16, 100), (8, 20), (320, 800)])
def test_buckets_are_those_of_transformers(buckets: int, furthest: int, bidirectional: bool) -> None:
    key_minus_query = torch.from_numpy(-DISTANCES)
    wanted = T5Attention._relative_position_bucket(key_minus_query, bidirectional, buckets, furthest)
    np.testing.assert_array_equal(bucket(DISTANCES, buckets, furthest, bidirectional), wanted.numpy())


def test_buckets_by_the_definition() -> None:
    found = bucket(np.arange(3000), 32, 128, False)
    assert found.tolist() == [formulas.t5_bucket(d) for d in range(3000)]
    assert found[:16].tolist() == list(range(16))
    assert found[127] == found[128] == found[2999] == 31


@pytest.mark.parametrize("bidirectional", [False, True])
def test_the_bias_is_what_a_t5_layer_adds(bidirectional: bool) -> None:
    from transformers import T5Config

    config = T5Config(d_model=24, d_kv=2, num_heads=12, is_decoder=not bidirectional)
    layer = T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
    table = torch.randn(32, 12, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        layer.relative_attention_bias.weight.copy_(table)
        wanted = layer.compute_bias(300, 300)[0].numpy()
    block = Block(np.arange(300)[:, None], np.arange(300)[None, :], np)
    made = methods.get("t5")(12, bidirectional=bidirectional)
    np.testing.assert_array_equal(made.bias({"relative_attention_bias.weight": table.numpy()}, block), wanted)


def test_a_table_of_another_size_has_its_own_buckets() -> None:
    table = np.arange(16 * 12, dtype=np.float32).reshape(16, 12)
    block = Block(np.arange(200)[:, None], np.arange(200)[None, :], np)
    found = methods.get("t5")(12, max_distance=64).bias({"relative_attention_bias.weight": table}, block)
    wanted = [table[formulas.t5_bucket(199 - j, 16, 64), 3] for j in range(200)]
    assert found[3, 199].tolist() == wanted
