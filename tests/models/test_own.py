"""Running up to the layers that are asked for: what is seen there, and that nothing behind them runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import formulas
import numpy as np
import pytest
import torch
from closeness import assert_near
from small_models import config_of, forward, model_of, saved
from torch import nn

from posviz import methods
from posviz.checkpoint import load_state, open_checkpoint
from posviz.errors import PosvizError
from posviz.models import own
from posviz.models.gpt import GPT
from posviz.options import CaptureRequest
from posviz.rows import fold
from posviz.session import Session

IDS = np.random.default_rng(3).integers(256, size=90)
ADDITIVE = [name for name in methods.names() if methods.get(name).additive]


def whole(rows: own.ViewRows, quantity: str) -> np.ndarray:
    return fold(rows, quantity).values


def refuse(*_: Any) -> None:
    raise AssertionError("this should not have run")


@pytest.mark.parametrize("method", methods.names())
def test_softmax_of_the_scores_is_the_attention(method: str) -> None:
    rows = own.run(model_of(config_of(method)), IDS, [1])[1]
    attention = whole(rows, "attention")
    assert_near(attention, formulas.softmax(whole(rows, "scores").astype(np.float64)))
    np.testing.assert_allclose(np.nansum(attention, axis=-1), 1, rtol=1e-5)


@pytest.mark.parametrize("method", ADDITIVE)
def test_scores_are_content_and_bias(method: str) -> None:
    rows = own.run(model_of(config_of(method)), IDS, [1])[1]
    assert_near(whole(rows, "scores"), whole(rows, "content").astype(np.float64) + whole(rows, "bias"), 1e-6)
    assert np.nanmax(np.abs(whole(rows, "bias"))) > 0.01


def test_without_a_bias_the_content_is_what_rope_has_not_turned_yet() -> None:
    plain = own.run(model_of(config_of("none")), IDS, [0])[0]
    np.testing.assert_array_equal(whole(plain, "scores"), whole(plain, "content"))
    turned = own.run(model_of(config_of("rope")), IDS, [0])[0]
    np.testing.assert_array_equal(whole(turned, "content"), whole(plain, "content"))  # the same weights and tokens
    first = whole(turned, "scores")[:, np.arange(90), np.arange(90)]
    np.testing.assert_allclose(first, whole(turned, "content")[:, np.arange(90), np.arange(90)], atol=1e-4)
    assert np.nanmax(np.abs(whole(turned, "scores") - whole(turned, "content"))) > 0.5


@pytest.mark.parametrize("method", methods.names())
def test_what_is_seen_gives_the_layers_own_output(method: str) -> None:
    """The stored attention, times the values, projected: what the layer really wrote in a forward pass of it all."""
    model = model_of(config_of(method, n_layer=3))
    for layer in (0, 2):
        passed = forward(model, IDS, layer)
        _, _, v = formulas.projections(passed.x, passed.weights, 12)
        weights = np.nan_to_num(whole(own.run(model, IDS, [layer])[layer], "attention")).astype(np.float64)
        mixed = np.einsum("hij,hjd->ihd", weights, v).reshape(90, -1)
        assert_near(passed.y, mixed @ passed.weights["c_proj.weight"].T + passed.weights["c_proj.bias"])


@pytest.mark.parametrize("method", methods.names())
def test_several_layers_of_one_run_are_those_of_single_runs(method: str) -> None:
    model = model_of(config_of(method, n_layer=4))
    together = own.run(model, IDS, [3, 0, 1])
    assert sorted(together) == [0, 1, 3]
    for layer, rows in together.items():
        alone = own.run(model, IDS, [layer])[layer]
        for quantity in ("scores", "content", "attention"):
            np.testing.assert_array_equal(whole(rows, quantity), whole(alone, quantity))


@pytest.mark.parametrize("method", methods.names())
def test_rows_can_be_asked_for_alone(method: str) -> None:
    rows = own.run(model_of(config_of(method)), IDS, [1])[1]
    for quantity in ("scores", "content", "attention") + (("bias",) if method in ADDITIVE else ()):
        every = rows.rows(quantity, 0, 90)
        assert every.shape == (12, 90, 90)
        assert every.dtype == np.float32
        for start, stop in [(0, 1), (30, 61), (89, 90)]:
            assert_near(rows.rows(quantity, start, stop), every[:, start:stop])
    np.testing.assert_array_equal(rows.visible(30, 61), np.tri(90, dtype=bool)[30:61])


def test_nothing_runs_behind_the_last_layer_that_is_asked_for() -> None:
    model = model_of(config_of("kerple", n_layer=4))
    behind: list[nn.Module] = [model.layer(2), model.layer(3), model.transformer.ln_f, model.lm_head]
    behind += [model.layer(1).mlp, model.layer(1).ln_2, model.layer(1).attn.c_proj]
    handles = [module.register_forward_pre_hook(refuse) for module in behind]
    assert sorted(own.run(model, IDS, [0, 1])) == [0, 1]
    for handle in handles:
        handle.remove()
    with torch.no_grad():  # and no hook of ours is left behind
        assert model(torch.from_numpy(IDS)[None]).shape == (1, 90, 256)


@pytest.mark.parametrize("method", ["cable", "dapev2-fire", "rope"])
def test_a_state_without_what_lies_behind_is_enough(method: str, tmp_path: Path) -> None:
    model = model_of(config_of(method, n_layer=3))
    checkpoint = open_checkpoint(saved(model, tmp_path / "m.safetensors"))
    state = load_state(checkpoint, model.config, 2, IDS)
    assert not any(name.startswith(("transformer.h.1.mlp", "transformer.h.2", "transformer.ln_f")) for name in state)
    part = GPT.from_state(config_of(method, n_layer=2), state)
    found, wanted = own.run(part, IDS, [1])[1], own.run(model, IDS, [1])[1]
    np.testing.assert_array_equal(whole(found, "scores"), whole(wanted, "scores"))


@pytest.mark.parametrize("method", methods.names())
def test_verify_asks_torchs_own_attention(method: str, tmp_path: Path) -> None:
    path = saved(model_of(config_of(method)), tmp_path / "m.safetensors")
    request = CaptureRequest(ckpt=str(path), quantity="scores", seq_len=80, verify=True)
    notes = Session([request]).stack(request).meta["notes"]
    assert any(note.startswith("verified: layer 2's attention and torch's own differ by at most") for note in notes)


def test_verify_finds_scores_that_are_not_what_the_model_attends_with(tmp_path: Path, monkeypatch: Any) -> None:
    path = saved(model_of(config_of("alibi")), tmp_path / "m.safetensors")
    right = own.AttentionView.scores
    monkeypatch.setattr(own.AttentionView, "scores", lambda *a: right(*a) * 1.01)
    request = CaptureRequest(ckpt=str(path), quantity="scores", seq_len=80, verify=True)
    with pytest.raises(PosvizError, match="layer 2: our attention and torch's differ by"):
        Session([request]).stack(request)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
@pytest.mark.parametrize("method", methods.names())
def test_it_computes_in_the_type_that_is_asked_for(method: str, dtype: str, tmp_path: Path) -> None:
    """Short types are off by their own three digits, through two layers; the bias itself is computed in float32."""
    path = saved(model_of(config_of(method)), tmp_path / "m.safetensors")
    for quantity in ("scores", "attention") + (("bias",) if method in ADDITIVE else ()):
        plain, other = (
            CaptureRequest(ckpt=str(path), seq_len=80, quantity=quantity, dtype=d, verify=quantity == "scores")
            for d in (None, dtype)
        )
        found, wanted = (Session([r]).stack(r).values for r in (other, plain))
        error = np.nanmax(np.abs(found - wanted)) / np.nanmax(np.abs(wanted))
        assert error < {"bfloat16": 0.1, "float16": 0.01, "float64": 1e-5}[dtype]
        if quantity == "scores" and dtype != "float64":
            assert error > 1e-5  # it was not float32 after all
