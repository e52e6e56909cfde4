"""Our GPT: its attention adds exactly the formulas, and the rest of it is GPT-2."""

from __future__ import annotations

import math
from typing import Any

import formulas
import numpy as np
import pytest
import torch
from closeness import assert_near
from small_models import config_of, forward, model_of

from posviz import methods
from posviz.models import attention
from posviz.models.attention import AttentionView
from posviz.models.gpt import GPT

LENGTH = 530  # beyond FIRE's threshold of 512
HEADS = 12
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in methods.names()),
    ("alibi", {"method_options": {"slopes": "interleaved"}}),
    ("dapev2-alibi", {"method_options": {"slopes": "interleaved"}}),
    ("rope", {"method_options": {"pairing": "neighbours", "base": 500.0}}),
    ("rope", {"method_options": {"rotary_dim": 2}}),
    ("cable", {"scale_scores": False}),
    ("kerple", {"bias": False, "norm_bias": False}),
    ("none", {"learned_positions": True, "block_size": 600}),
]
IDS = np.random.default_rng(0).integers(256, size=LENGTH)


def named(variant: Any) -> str:
    return variant if isinstance(variant, str) else "-".join(map(str, variant)) or "plain"


def scores_of(model: GPT, x: np.ndarray, weights: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The scores and the values of a layer from its normed input, by the formulas alone."""
    config = model.config
    q, k, v = formulas.projections(x, weights, HEADS)
    scale = 1 / math.sqrt(config.head_dim) if config.scale_scores else 1.0
    options = dict(config.method_options)
    if config.method == "rope":
        return formulas.product(formulas.rope(q, **options), formulas.rope(k, **options), scale), v
    content = formulas.product(q, k, scale)
    if config.method == "none":
        return content, v
    own = {name.removeprefix("pos."): t for name, t in weights.items() if name.startswith("pos.")}
    return content + formulas.bias(config.method, own, HEADS, x, content, **options), v


@pytest.mark.parametrize(("method", "changes"), VARIANTS, ids=named)
def test_a_forward_pass_attends_with_the_formula(method: str, changes: dict[str, Any]) -> None:
    """Everything between the norm and the residual stream, in float64 and another way."""
    model = model_of(config_of(method, **changes))
    passed = forward(model, IDS, layer=1)
    scores, v = scores_of(model, passed.x, passed.weights)
    assert np.nanmax(scores[:, 100]) - np.nanmin(scores[:, 100]) > 0.5  # sharp enough that a wrong score would show
    mixed = np.einsum("hij,hjd->ihd", np.nan_to_num(formulas.softmax(scores)), v).reshape(LENGTH, -1)
    wanted = mixed @ passed.weights["c_proj.weight"].T + passed.weights.get("c_proj.bias", 0)
    assert_near(passed.y, wanted)


@pytest.mark.parametrize("method", methods.names())
def test_row_blocks_without_gradients_give_what_training_sees(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(config_of(method))
    ids = torch.from_numpy(IDS[:120])[None]
    blocks = []
    plain = AttentionView.attention
    monkeypatch.setattr(AttentionView, "attention", lambda *said: blocks.append(said[1:3]) or plain(*said))
    monkeypatch.setattr(attention, "BLOCK_BYTES", 50 * 4 * HEADS * 120)
    with torch.enable_grad():
        whole = model(ids)
    assert set(blocks) <= {(0, 120)}
    blocks.clear()
    with torch.no_grad():
        torch.testing.assert_close(model(ids), whole, rtol=1e-5, atol=1e-5 * whole.abs().max().item())
    assert set(blocks) == ({(0, 50), (50, 100), (100, 120)} if methods.get(method).additive else set())


@pytest.mark.parametrize("method", methods.names())
def test_no_token_sees_the_future_or_another_sequence(method: str) -> None:
    model = model_of(config_of(method))
    ids = torch.from_numpy(np.stack([IDS[:60], IDS[60:120]]))
    changed = ids.clone()
    changed[:, 40:] = 255 - changed[:, 40:]
    with torch.no_grad():
        both = model(ids)
        assert both.shape == (2, 60, 256)
        torch.testing.assert_close(model(changed)[:, :40], both[:, :40], rtol=1e-5, atol=1e-4)
        assert (model(changed)[:, 40:] - both[:, 40:]).abs().max() > 0.1
        for one in (0, 1):
            torch.testing.assert_close(model(ids[one : one + 1])[0], both[one], rtol=1e-5, atol=1e-4)


def test_the_rest_is_gpt2() -> None:
    """With a learned table of positions and none in the attention, transformers' own GPT-2 gives the same logits."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = config_of("none", learned_positions=True, block_size=64)
    ours = model_of(config)
    sizes = {"n_layer": 2, "n_head": HEADS, "n_embd": 48, "vocab_size": 256, "n_positions": 64}
    theirs = GPT2LMHeadModel(GPT2Config(**sizes, attn_implementation="eager")).eval()
    linear = ("c_attn.weight", "c_proj.weight", "c_fc.weight")  # which theirs stores the other way round
    state = {name: t.T if name.endswith(linear) else t for name, t in ours.state_dict().items()}
    lacking = theirs.load_state_dict(state, strict=False)
    assert not lacking.unexpected_keys
    assert not lacking.missing_keys
    ids = torch.from_numpy(IDS[:64])[None]
    with torch.no_grad():
        torch.testing.assert_close(ours(ids), theirs(ids).logits, rtol=1e-4, atol=1e-4)


def test_the_loss_is_the_mean_surprise_of_the_next_token() -> None:
    model = model_of(config_of("kerple"))
    ids = torch.from_numpy(IDS[:42].reshape(2, 21))
    with torch.no_grad():
        logits = model(ids[:, :-1]).double().numpy()
        found = model.loss(ids).item()
    surprise = [
        np.log(np.exp(logits[b, t]).sum()) - logits[b, t, int(ids[b, t + 1])] for b in range(2) for t in range(20)
    ]
    assert found == pytest.approx(np.mean(surprise), rel=1e-5)


def test_it_starts_as_gpt2_does_and_from_its_seed() -> None:
    config = config_of("cable", n_layer=8, n_embd=96)
    a, b, other = (GPT(config, seed=seed).state_dict() for seed in (4, 4, 5))
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert not torch.equal(a["transformer.wte.weight"], other["transformer.wte.weight"])
    assert not torch.equal(a["transformer.h.0.attn.pos.h_attn.weight"], other["transformer.h.0.attn.pos.h_attn.weight"])
    assert a["transformer.h.3.attn.c_attn.weight"].std().item() == pytest.approx(0.02, rel=0.05)
    assert a["transformer.h.3.mlp.c_proj.weight"].std().item() == pytest.approx(0.02 / math.sqrt(16), rel=0.05)
    assert not a["transformer.h.3.mlp.c_fc.bias"].any()
    assert (a["transformer.h.3.ln_1.weight"] == 1).all()


def test_the_output_head_is_the_embedding_table() -> None:
    model = GPT(config_of("alibi"))
    assert model.lm_head.weight is model.transformer.wte.weight


@pytest.mark.parametrize("method", methods.names())
def test_a_state_is_taken_over_without_copies(method: str) -> None:
    model = model_of(config_of(method))
    state = {name: t for name, t in model.state_dict().items() if name != "lm_head.weight"}
    again = GPT.from_state(model.config, state)
    held = again.state_dict()
    for name, tensor in state.items():
        assert held[name].data_ptr() == tensor.data_ptr(), name
    ids = torch.from_numpy(IDS[:30])[None]
    with torch.no_grad():
        assert torch.equal(again.transformer(ids), model.transformer(ids))


def test_buffers_are_not_trained() -> None:
    trained = {name for name, _ in GPT(config_of("fire")).named_parameters()}
    held = set(GPT(config_of("fire")).state_dict())
    assert "transformer.h.0.attn.pos.init_L" in held - trained
    assert "transformer.h.0.attn.pos.L_multiplier" in trained
