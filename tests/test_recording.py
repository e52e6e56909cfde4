"""Recording attention in modules written in different ways, against scores computed another way in NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from own_modules import BLOCKS, HEADS, WIDTH, Attention, Flattened, Manual, Model, NanoFlash, NanoSlow, T
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

import posviz
from posviz.errors import CaptureError, MethodError

FUTURE = np.triu(np.ones((T, T), bool), 1)


@pytest.fixture(autouse=True)
def _steady():
    torch.manual_seed(0)
    torch.set_num_threads(1)


def recorded(kind, layer=-1, batch=1):
    model = Model(kind)
    with posviz.record(model, layer) as rec:
        model(torch.randn(batch, T, WIDTH))
    return model, rec


def masked(x: np.ndarray) -> np.ndarray:
    return np.where(FUTURE, np.nan, x)


@pytest.mark.parametrize("kind", [NanoFlash, NanoSlow])
@pytest.mark.parametrize("batch", [1, 3])
def test_a_nanogpt_like_module(kind, batch):
    model, rec = recorded(kind, batch=batch)
    stack = rec.stack()
    expected = model.blocks[-1]["attn"].product() / math.sqrt(WIDTH // HEADS)
    np.testing.assert_allclose(stack.values, masked(expected), atol=1e-5)
    assert stack.heads == (1, 2, 3, 4)
    assert stack.meta["layer"] == stack.meta["n_layers"] == BLOCKS
    assert ["batch of 3" in note for note in stack.meta["notes"]] == ([True] if batch == 3 else [])


@pytest.mark.parametrize("batch", [1, 2])
def test_a_softmax_written_by_hand(batch):
    model, rec = recorded(Manual, batch=batch)
    attention = model.blocks[-1]["attn"]
    table = attention.table.detach().numpy()
    content = attention.product()
    np.testing.assert_allclose(rec.stack("content").values, masked(content), atol=1e-5)
    np.testing.assert_allclose(rec.stack("bias").values, masked(table), atol=1e-6)
    scores = 3 * np.tanh(content / 3) + table
    np.testing.assert_allclose(rec.stack("scores").values, masked(scores), atol=1e-5)
    weights = np.exp(np.where(FUTURE, -np.inf, scores))
    weights /= weights.sum(-1, keepdims=True)
    np.testing.assert_allclose(rec.stack("attention").values, masked(weights), atol=1e-6)


@pytest.mark.parametrize("batch", [1, 2])
def test_batch_and_heads_in_one_axis(batch):
    model, rec = recorded(Flattened, batch=batch)
    bias = 2 * np.linspace(0.1, 1, HEADS)[:, None, None] * np.arange(T) * np.ones((T, 1))
    np.testing.assert_allclose(rec.stack("bias").values, masked(bias), atol=1e-5)
    scores = 0.25 * model.blocks[-1]["attn"].product() + bias
    np.testing.assert_allclose(rec.stack("scores").values, masked(scores), atol=1e-5)


@pytest.mark.parametrize("fast", [True, False])
def test_multihead_attention_and_its_fast_path(fast):
    attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True).eval()
    x, mask = torch.randn(2, T, WIDTH), torch.from_numpy(FUTURE)
    with torch.set_grad_enabled(not fast), posviz.record(attention) as rec:
        attention(x, x, x, attn_mask=mask, need_weights=False)
    _, weights = attention(x, x, x, attn_mask=mask, average_attn_weights=False)
    np.testing.assert_allclose(np.nan_to_num(rec.stack("attention").values), weights[0].detach().numpy(), atol=1e-6)
    both = x[0].numpy() @ attention.in_proj_weight.detach().numpy().T + attention.in_proj_bias.detach().numpy()
    q, k = (both[:, part * WIDTH : (part + 1) * WIDTH].reshape(T, HEADS, -1) for part in (0, 1))
    expected = np.einsum("ihd,jhd->hij", q, k) / math.sqrt(WIDTH // HEADS)
    np.testing.assert_allclose(rec.stack().values, masked(expected), atol=1e-5)


def test_a_torch_encoder_is_seen_though_its_fast_path_hides_attention():
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2).eval()
    with torch.no_grad(), posviz.record(encoder, 1) as rec:
        encoder(torch.randn(1, T, WIDTH))
    assert rec.n_layers == 2
    assert np.isfinite(rec.stack("attention").values).all()


def test_layers_by_number_and_by_name_agree():
    torch.manual_seed(1)
    model = Model(NanoSlow)
    x = torch.randn(1, T, WIDTH)
    found = {}
    for layer in (2, -2, "blocks.1.attn", "blocks.1"):
        with posviz.record(model, layer) as rec:
            model(x)
        found[layer] = rec.stack().values
    expected = masked(model.blocks[1]["attn"].product() / 2)
    for values in found.values():
        np.testing.assert_allclose(values, expected, atol=1e-5)


def test_the_newest_forward_pass_is_kept():
    model = Model(NanoSlow)
    with posviz.record(model) as rec:
        model(torch.randn(1, T, WIDTH))
        first = rec.stack().values
        model(torch.randn(1, T, WIDTH))
    assert rec.n_layers == BLOCKS
    assert not np.allclose(first, rec.stack().values, equal_nan=True)
    np.testing.assert_allclose(rec.stack().values, masked(model.blocks[-1]["attn"].product() / 2), atol=1e-5)


def test_grouped_keys_are_repeated_for_their_heads():
    class Grouped(nn.Module):
        def forward(self, q, k):
            return scaled_dot_product_attention(q, k, k, enable_gqa=True, scale=1.0)

    q, k = torch.randn(1, 4, T, 8), torch.randn(1, 2, T, 8)
    model = Grouped()
    with posviz.record(model) as rec:
        model(q, k)
    expected = np.einsum("hid,hjd->hij", q[0].numpy(), np.repeat(k[0].numpy(), 2, axis=0))
    np.testing.assert_allclose(rec.stack().values, expected, atol=1e-5)


def test_an_unfollowed_way_still_gives_the_softmax_input():
    class Odd(Attention):
        def attend(self, q, k, v):
            scores = torch.relu(q @ k.mT) - 1e9 * (1 - self.bias)
            return scores.softmax(-1) @ v

    model, rec = recorded(Odd)
    expected = np.maximum(model.blocks[-1]["attn"].product(), 0)
    np.testing.assert_allclose(rec.stack().values, masked(expected), atol=1e-5)
    assert any("could not be followed" in note for note in rec.stack().meta["notes"])
    with pytest.raises(MethodError, match="only the softmax"):
        rec.stack("content")


def test_einsum_with_an_ellipsis():
    class Dotted(Attention):
        def attend(self, q, k, v):
            return (torch.einsum("... i d, ... j d -> ... i j", q, k) * 0.5).softmax(-1) @ v

    model, rec = recorded(Dotted, batch=2)
    np.testing.assert_allclose(rec.stack("content").values, model.blocks[-1]["attn"].product() / 2, atol=1e-5)


def test_a_sink_beside_the_keys():
    class Sunk(Attention):
        def attend(self, q, k, v):
            scores = (q @ k.mT * 0.5).masked_fill(self.bias == 0, float("-inf"))
            sinks = torch.arange(HEADS).view(1, -1, 1, 1).float().expand(len(q), -1, T, -1)
            both = torch.cat([scores, sinks], dim=-1)
            both = both - both.max(dim=-1, keepdim=True).values
            return both.softmax(-1)[..., :-1] @ v

    model, rec = recorded(Sunk, batch=2)
    scores = model.blocks[-1]["attn"].product() / 2
    np.testing.assert_allclose(rec.stack().values, masked(scores), atol=1e-5)
    weights = np.exp(np.where(FUTURE, -np.inf, scores))
    weights /= weights.sum(-1, keepdims=True) + np.exp(np.arange(HEADS))[:, None, None]
    np.testing.assert_allclose(rec.stack("attention").values, masked(weights), atol=1e-6)


def test_queries_before_heads():
    class Shared(Attention):
        def attend(self, q, k, v):
            k, v = k[:, 0], v[:, 0]
            scores = q.transpose(1, 2).reshape(len(q), T * HEADS, -1) @ k.mT
            weights = scores.view(-1, T, HEADS, T).softmax(-1)
            return (weights.view(-1, T * HEADS, T) @ v).view(-1, T, HEADS, v.shape[-1]).transpose(1, 2)

    model, rec = recorded(Shared)
    attention = model.blocks[-1]["attn"]
    q, k, _ = attention.heads(attention.x)
    np.testing.assert_allclose(rec.stack().values, (q[0] @ k[0, 0].mT).detach().numpy(), atol=1e-5)


def test_no_bias_is_said():
    _, rec = recorded(NanoFlash)
    with pytest.raises(MethodError, match="adds no bias"):
        rec.stack("bias")


def test_a_module_without_attention_says_what_was_found():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Softmax(dim=-1))
    with posviz.record(model) as rec:
        model(torch.randn(2, 4))
    with pytest.raises(
        CaptureError, match=r"no attention was seen in Sequential; looked for .*softmax of shape \[2, 4\]"
    ):
        rec.stack()


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (4, "made 3 attention calls, but none number 4"),
        (-4, "none number -4"),
        ("blocks.1.attn.c_proj", "none inside blocks.1.attn.c_proj"),
    ],
)
def test_a_layer_that_is_not_there(layer, message):
    _, rec = recorded(NanoSlow, layer)
    with pytest.raises(CaptureError, match=message):
        rec.stack()


def test_bad_arguments():
    model = Model(NanoSlow)
    with pytest.raises(CaptureError, match="layer is 0"):
        posviz.record(model, 0)
    with pytest.raises(CaptureError, match=r"no module 'blocks.1.att'.*blocks.1.attn"):
        posviz.record(model, "blocks.1.att")
    with pytest.raises(CaptureError, match=r"expected a torch\.nn\.Module"):
        posviz.record("model")
    with posviz.record(model) as rec:
        pass
    with pytest.raises(CaptureError, match="was not run"):
        rec.stack()


def test_nothing_stays_behind():
    model, _ = recorded(NanoSlow)
    assert not any(m._forward_pre_hooks or m._forward_hooks for m in model.modules())
