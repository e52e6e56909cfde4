"""Which method a checkpoint is of, and what must be asked for because nothing says it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from checkpoint_layouts import State, config_of, nanogpt, said_of, state_dict, state_of

from posviz.checkpoint import Checkpoint, Overrides, load_state, open_checkpoint, resolve, save_checkpoint
from posviz.errors import CheckpointError, MethodError


def bare(method: str, folder: Path, **changes: Any) -> Checkpoint:
    """A plain state dict, which says least."""
    config = config_of(method, **changes)
    return open_checkpoint(state_dict(state_of(config), config, folder))


def refusal(checkpoint: Checkpoint, overrides: Overrides | None = None) -> str:
    with pytest.raises(CheckpointError) as caught:
        resolve(checkpoint, overrides)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_bias_without_tokens_asks_for_nothing_that_it_does_not_need(tmp_path: Path) -> None:
    resolved = resolve(bare("kerple", tmp_path))
    assert resolved.config.n_head == 3
    assert resolved.positional().n_head == 3
    with pytest.raises(CheckpointError, match="--scale-scores or --no-scale-scores"):
        resolved.model_config()
    assert resolve(bare("kerple", tmp_path), Overrides(scale_scores=False)).model_config().scale_scores is False


def test_everything_missing_is_asked_for_at_once(tmp_path: Path) -> None:
    resolved = resolve(bare("rope", tmp_path), Overrides(method="rope"))
    with pytest.raises(CheckpointError) as caught:
        resolved.model_config()
    for flag in ("--n-head", "--rope-pairing halves|neighbours", "--scale-scores", "--config FILE.json"):
        assert flag in str(caught.value)


def test_a_config_file_answers_as_options_do(tmp_path: Path) -> None:
    said = {"method": "rope", "num_attention_heads": 3, "rope_pairing": "neighbours", "scale_scores": True}
    found = resolve(bare("rope", tmp_path), Overrides(config={**said, "rope_theta": 500.0})).model_config()
    assert found.n_head == 3
    assert found.method_options == {"pairing": "neighbours", "base": 500.0}


@pytest.mark.parametrize(("heads", "asked"), [(3, True), (4, False)])
def test_slopes_are_asked_for_only_where_the_conventions_differ(heads: int, asked: bool, tmp_path: Path) -> None:
    resolved = resolve(bare("alibi", tmp_path, n_head=heads), Overrides(method="alibi", n_head=heads))
    assert any("--alibi-slopes" in flag for flag in resolved.missing) is asked


def test_stored_slopes_settle_the_convention_and_the_heads(tmp_path: Path) -> None:
    state = state_of(config_of("alibi"))
    for layer in (0, 1):
        state[f"transformer.h.{layer}.attn.slopes"] = torch.tensor([0.5, 0.25, 0.125]).reshape(1, 3, 1, 1)
    torch.save(state, tmp_path / "s.pt")
    resolved = resolve(open_checkpoint(tmp_path / "s.pt"))
    assert resolved.method == "alibi"
    assert resolved.positional().n_head == 3
    np.testing.assert_array_equal(resolved.parameters(1)["slopes"], [0.5, 0.25, 0.125])


def test_nanogpt_is_scaled_and_brings_its_heads(tmp_path: Path) -> None:
    config = config_of("none")
    found = resolve(open_checkpoint(nanogpt(state_of(config), config, tmp_path))).model_config()
    assert (found.n_head, found.scale_scores, found.block_size) == (3, True, 32)


def test_nothing_recognised_lists_what_was_seen(tmp_path: Path) -> None:
    message = refusal(bare("alibi", tmp_path))
    assert "attn.c_attn.weight" in message
    assert "--method" in message


def test_a_named_method_is_checked_against_what_is_there(tmp_path: Path) -> None:
    checkpoint = bare("kerple", tmp_path)
    message = refusal(checkpoint, Overrides(method="t5"))
    assert "relative_attention_bias.weight" in message
    assert "attn.pos.bias_p" in message
    message = refusal(checkpoint, Overrides(method="alibi", n_head=3))
    assert "is of kerple" in message
    with pytest.raises(MethodError, match="did you mean 'kerple'"):
        resolve(checkpoint, Overrides(method="kerpel"))


def test_the_power_kernel_and_the_wrapped_part_can_be_named(tmp_path: Path) -> None:
    resolved = resolve(bare("kerple", tmp_path), Overrides(method="kerple-power"))
    assert resolved.method == "kerple-power"
    assert any("kerple" in note for note in resolved.notes)
    resolved = resolve(bare("dapev2-kerple", tmp_path), Overrides(method="kerple"))
    assert any("dapev2-kerple" in note for note in resolved.notes)


def test_a_configuration_that_names_another_method_is_found_out(tmp_path: Path) -> None:
    config = config_of("alibi")
    path = save_checkpoint(state_of(config), config_of("kerple"), tmp_path / "c.safetensors", {})
    assert "bias_p" in refusal(open_checkpoint(path))
    path = save_checkpoint(state_of(config), config, tmp_path / "c.safetensors", {})
    assert "its configuration says so" in refusal(open_checkpoint(path), Overrides(method="rope"))


def test_what_is_said_against_our_own_file_is_noted(tmp_path: Path) -> None:
    config = config_of("alibi")
    checkpoint = open_checkpoint(save_checkpoint(state_of(config), config, tmp_path / "c.safetensors", {}))
    assert resolve(checkpoint, Overrides(alibi_slopes="geometric")).notes == ()
    resolved = resolve(checkpoint, Overrides(alibi_slopes="interleaved"))
    assert resolved.positional().option["slopes"] == "interleaved"
    assert resolved.notes == ("--alibi-slopes interleaved replaces the checkpoint's own geometric",)


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (Overrides(n_head=4), "--n-head is 4, but .* is of 3 heads"),
        (Overrides(n_head=0), "expected 1 or more"),
        (Overrides(config={"n_head": 6}), "says n_head 6, but the shape of the kerple parameters says 3"),
        (Overrides(config={"n_head": "3"}), "n_head is '3'; expected a whole number"),
        (Overrides(config={"n_layer": 5}), "says n_layer 5, but the tensors' names says 2"),
        (Overrides(config={"n_embd": 24}), r"says n_embd 24, but transformer\.wte\.weight says 12"),
        (Overrides(rope_base=500.0), "--rope-base means nothing for kerple"),
        (Overrides(config={"scale_scores": "yes"}), "expected true or false"),
    ],
)
def test_contradictions_are_named(overrides: Overrides, says: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=says):
        resolve(bare("kerple", tmp_path), overrides)


def test_two_attentions_with_the_same_parameter_are_both_named(tmp_path: Path) -> None:
    state = state_of(config_of("kerple"))
    extra = {n.replace("attn.pos", "cross_attn"): t for n, t in state.items() if ".pos." in n}
    torch.save({**state, **extra}, tmp_path / "s.pt")
    assert "cross_attn.bias_p" in refusal(open_checkpoint(tmp_path / "s.pt"))


def test_two_methods_in_one_layer_ask_for_a_choice(tmp_path: Path) -> None:
    state = state_of(config_of("kerple"))
    state["transformer.h.0.attn.relative_attention_bias.weight"] = torch.zeros(32, 3)
    torch.save(state, tmp_path / "s.pt")
    message = refusal(open_checkpoint(tmp_path / "s.pt"))
    assert "kerple because" in message
    assert "t5 because" in message
    assert "--method" in message


def t5_with_one_table(state: State) -> State:
    return {n: t for n, t in state.items() if n != "transformer.h.1.attn.pos.relative_attention_bias.weight"}


def test_t5_lends_its_first_table_to_every_layer(tmp_path: Path) -> None:
    config = config_of("t5")
    state = t5_with_one_table(state_of(config))
    torch.save(state, tmp_path / "s.pt")
    checkpoint = open_checkpoint(tmp_path / "s.pt")
    resolved = resolve(checkpoint, said_of(config))
    table = "relative_attention_bias.weight"
    assert "in the first layer only" in resolved.why
    expected = state[f"transformer.h.0.attn.pos.{table}"]
    np.testing.assert_array_equal(resolved.parameters(1)[table], expected.numpy())
    loaded = load_state(checkpoint, resolved.model_config(), 2)
    assert torch.equal(loaded[f"transformer.h.1.attn.pos.{table}"], expected)


def test_no_other_method_lends_its_parameters(tmp_path: Path) -> None:
    state = {n: t for n, t in state_of(config_of("kerple")).items() if "h.1.attn.pos" not in n}
    torch.save(state, tmp_path / "s.pt")
    resolved = resolve(open_checkpoint(tmp_path / "s.pt"))
    assert resolved.parameters(0)
    with pytest.raises(CheckpointError, match=r"layer 2 of s\.pt has no bias_p"):
        resolved.parameters(1)


def test_transformers_folders_are_left_to_transformers(tmp_path: Path) -> None:
    state = {
        f"transformer.{n}": t
        for n, t in {"wte.weight": torch.ones(9, 4), "h.0.attn.c_attn.weight": torch.ones(4, 12)}.items()
    }
    torch.save(state, tmp_path / "pytorch_model.bin")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2", "n_head": 2}))
    checkpoint = open_checkpoint(tmp_path)
    assert checkpoint.is_transformers
    assert "gpt2" in refusal(checkpoint)
    (tmp_path / "config.json").write_text(json.dumps({"n_head": 2}))
    assert not open_checkpoint(tmp_path).is_transformers


def test_a_transformers_config_beside_our_own_parameters_is_ours(tmp_path: Path) -> None:
    torch.save(state_of(config_of("kerple")), tmp_path / "pytorch_model.bin")
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["GPT2LMHeadModel"], "n_head": 3}))
    assert resolve(open_checkpoint(tmp_path)).method == "kerple"


def test_gpt2_as_transformers_stores_it_is_not_taken_for_nanogpt(tmp_path: Path) -> None:
    config = config_of("kerple")
    state = state_of(config)
    flipped = {n: t.T.contiguous() if n.endswith("c_attn.weight") else t for n, t in state.items()}
    torch.save(flipped, tmp_path / "s.pt")
    resolved = resolve(open_checkpoint(tmp_path / "s.pt"), said_of(config))
    with pytest.raises(CheckpointError, match=r"as transformers stores it.*\[12, 36\].*folder"):
        resolved.model_config()


def test_what_is_no_gpt2_can_still_show_its_bias(tmp_path: Path) -> None:
    names = ("bias_p", "bias_a")
    torch.save({f"layers.{n}.attention.{p}": torch.rand(4, 1, 1) for n in (2, 3) for p in names}, tmp_path / "s.pt")
    resolved = resolve(open_checkpoint(tmp_path / "s.pt"), Overrides(scale_scores=True))
    assert resolved.positional().n_head == 4
    assert set(resolved.parameters(1)) == set(names)
    with pytest.raises(CheckpointError, match=r"no transformer\.wte\.weight"):
        resolved.model_config()
