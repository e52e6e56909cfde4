"""The same model means the same, however it was saved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from checkpoint_layouts import LAYOUTS, bare_names, config_of, said_of, state_of

from posviz import methods
from posviz.checkpoint import Overrides, load_state, open_checkpoint, resolve, save_checkpoint
from posviz.models.gpt import GPT


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("method", methods.names())
def test_every_layout_resolves_alike_and_gives_identical_tensors(method: str, layout: str, tmp_path: Path) -> None:
    config = config_of(method)
    state = state_of(config)
    write, kind = LAYOUTS[layout]
    checkpoint = open_checkpoint(write(state, config, tmp_path))
    assert checkpoint.format == ("CABLE" if method == "cable" and layout == "cable's names" else kind)
    resolved = resolve(checkpoint, said_of(config))
    found = resolved.model_config()
    assert resolved.method == method
    for name in ("n_layer", "n_head", "n_embd", "vocab_size", "bias", "norm_bias", "scale_scores", "learned_positions"):
        assert getattr(found, name) == getattr(config, name), name
    loaded = load_state(checkpoint, found)
    assert set(loaded) == set(state) - {"lm_head.weight"}
    for name, tensor in loaded.items():
        assert torch.equal(tensor, state[name]), name
    for layer in (0, 1):
        for suffix, values in resolved.parameters(layer).items():
            np.testing.assert_array_equal(values, state[f"transformer.h.{layer}.attn.pos.{suffix}"].numpy())


@pytest.mark.parametrize("method", ["t5", "kerple", "fire", "dapev2-kerple", "dapev2-fire", "cable", "none"])
@pytest.mark.parametrize("layout", ["bare safetensors", "nanogpt", "cable's names"])
def test_a_method_with_parameters_is_recognised_without_being_named(method: str, layout: str, tmp_path: Path) -> None:
    config = config_of(method)
    checkpoint = open_checkpoint(LAYOUTS[layout][0](state_of(config), config, tmp_path))
    resolved = resolve(checkpoint, Overrides())
    assert resolved.method == method
    assert resolved.why


def test_only_what_a_layer_needs_is_loaded(tmp_path: Path) -> None:
    config = config_of("cable", n_layer=3)
    checkpoint = open_checkpoint(save_checkpoint(state_of(config), config, tmp_path / "c.safetensors", {}))
    loaded = load_state(checkpoint, config, 2)
    first = {name for name in loaded if name.startswith("transformer.h.0.")}
    last = {name.removeprefix("transformer.h.1.") for name in loaded if name.startswith("transformer.h.1.")}
    assert {name for name in loaded if not name.startswith("transformer.h.")} == {"transformer.wte.weight"}
    assert "transformer.h.0.mlp.c_proj.weight" in first
    assert last == {
        "ln_1.weight", "ln_1.bias", "attn.c_attn.weight", "attn.c_attn.bias",
        "attn.pos.h_attn.weight", "attn.pos.h_attn.bias",
    }  # fmt: skip
    assert not any(name.startswith("transformer.h.2.") for name in loaded)


def test_a_loaded_model_computes_what_the_saved_one_did(tmp_path: Path) -> None:
    config = config_of("dapev2-kerple")
    state = state_of(config)
    model = GPT(config)
    model.load_state_dict(state)
    checkpoint = open_checkpoint(save_checkpoint(state, config, tmp_path / "c.safetensors", {}))
    again = GPT(config, seed=9)
    again.load_state_dict({**load_state(checkpoint, config), "lm_head.weight": state["lm_head.weight"]})
    ids = torch.arange(20)[None] % 64
    with torch.no_grad():
        assert torch.equal(model(ids), again(ids))


def test_our_own_file_says_everything_and_keeps_its_notes(tmp_path: Path) -> None:
    config = config_of("rope", scale_scores=False, tokenizer="bytes", method_options={"pairing": "neighbours"})
    path = save_checkpoint(state_of(config), config, tmp_path / "deep" / "c.safetensors", {"training": {"loss": 1.5}})
    checkpoint = open_checkpoint(path)
    assert resolve(checkpoint).model_config() == config
    assert checkpoint.config["notes"] == {"training": {"loss": 1.5}}
    assert checkpoint.tokenizer == "bytes"
    assert "lm_head.weight" not in checkpoint.tensors
    assert [p.name for p in path.parent.iterdir()] == ["c.safetensors"]


def test_the_same_model_makes_the_same_bytes(tmp_path: Path) -> None:
    config = config_of("kerple")
    a, b = (save_checkpoint(state_of(config), config, tmp_path / f"{n}.safetensors", {"n": 1}) for n in "ab")
    assert a.read_bytes() == b.read_bytes()
    assert open_checkpoint(a).sha256() == open_checkpoint(b).sha256()


def test_tied_weights_count_once(tmp_path: Path) -> None:
    config = config_of("alibi")
    state = state_of(config)
    torch.save(state, tmp_path / "s.pt")
    expected = sum(p.numel() for p in GPT(config).parameters())
    assert open_checkpoint(tmp_path / "s.pt").n_parameters == expected


def test_a_wpe_table_and_missing_biases_are_seen(tmp_path: Path) -> None:
    config = config_of("none", bias=False, norm_bias=False, block_size=40)
    torch.save(state_of(config), tmp_path / "s.pt")
    found = resolve(open_checkpoint(tmp_path / "s.pt"), said_of(config)).model_config()
    assert (found.bias, found.norm_bias, found.learned_positions, found.block_size) == (False, False, True, 40)


def test_cables_own_checkpoint_runs_unscaled_and_says_so(tmp_path: Path) -> None:
    config = config_of("cable")
    torch.save(bare_names(state_of(config)), tmp_path / "model_00100.pt")
    checkpoint = open_checkpoint(tmp_path / "model_00100.pt")
    resolved = resolve(checkpoint)
    assert checkpoint.format == "CABLE"
    assert resolved.model_config().scale_scores is False
    assert resolved.missing == ()
    assert any("sqrt(head size)" in note for note in resolved.notes)
    assert resolve(checkpoint, Overrides(scale_scores=True)).model_config().scale_scores is True
