"""Which GELU a checkpoint's MLPs use: it decides every token-dependent figure, and no tensor tells it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from checkpoint_layouts import config_of, ours, state_of

from posviz.checkpoint import Overrides, open_checkpoint, resolve
from posviz.errors import CheckpointError
from posviz.models.gpt import MLP


def nanogpt(folder: Path) -> Path:
    config = config_of("none", tokenizer=None)
    sizes = ("n_layer", "n_head", "n_embd", "block_size", "vocab_size", "bias")
    args = {name: getattr(config, name) for name in sizes}
    torch.save({"model": state_of(config), "model_args": args}, folder / "ckpt.pt")
    return folder / "ckpt.pt"


def test_nanogpt_is_run_with_the_exact_gelu(tmp_path: Path) -> None:
    assert resolve(open_checkpoint(nanogpt(tmp_path))).model_config().gelu == "exact"


def test_our_own_files_are_run_with_gpt2s(tmp_path: Path) -> None:
    config = config_of("kerple")
    assert resolve(open_checkpoint(ours(state_of(config), config, tmp_path))).model_config().gelu == "tanh"


def test_a_configuration_can_say_it_and_nonsense_is_refused(tmp_path: Path) -> None:
    checkpoint = open_checkpoint(nanogpt(tmp_path))
    assert resolve(checkpoint, Overrides(config={"gelu": "tanh"})).model_config().gelu == "tanh"
    with pytest.raises(CheckpointError, match="gelu is 'relu'; expected exact or tanh"):
        resolve(checkpoint, Overrides(config={"gelu": "relu"}))


@pytest.mark.parametrize(("gelu", "module"), [("exact", torch.nn.GELU()), ("tanh", torch.nn.GELU("tanh"))])
def test_the_mlp_computes_what_the_name_says(gelu: str, module: torch.nn.Module) -> None:
    mlp = MLP(config_of("kerple", gelu=gelu))
    generator = torch.Generator().manual_seed(0)
    for parameter in mlp.parameters():  # a module alone is not initialised: the model is, as a whole
        torch.nn.init.normal_(parameter, generator=generator)
    x = 3 * torch.randn(5, 12, generator=generator)
    torch.testing.assert_close(mlp(x), mlp.c_proj(module(mlp.c_fc(x))), rtol=0, atol=0)


def test_a_convolution_of_the_wrong_width_is_named(tmp_path: Path) -> None:
    config = config_of("dapev2-kerple")
    state = state_of(config)
    name = "transformer.h.1.attn.pos.mlp2.0.weight"
    state[name] = state[name][:, :4].contiguous()
    resolved = resolve(open_checkpoint(ours(state, config, tmp_path)))
    with pytest.raises(CheckpointError, match=r"layer 2 .*mlp2\.0\.weight has shape \[32, 4, 1, 3\], expected"):
        resolved.located(1)
