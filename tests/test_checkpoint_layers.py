"""Names: prefixes that come off, layers that are found, and parameters known by the end of their names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from posviz.checkpoint import Checkpoint, open_checkpoint
from posviz.checkpoint.layers import Layers, strip
from posviz.errors import CheckpointError


def opened(folder: Path, *names: str) -> Checkpoint:
    """A checkpoint of these tensors, the n-th of them of n numbers."""
    torch.save({name: torch.full((n + 1,), float(n)) for n, name in enumerate(names)}, folder / "c.pt")
    return open_checkpoint(folder / "c.pt")


@pytest.mark.parametrize(
    "prefix", ["", "_orig_mod.", "module.", "model.", "module._orig_mod.", "_orig_mod.module.model."]
)
def test_prefixes_come_off_however_stacked(prefix: str) -> None:
    names = ["transformer.wte.weight", "transformer.h.0.attn.c_attn.weight", "lm_head.weight"]
    assert strip(prefix + name for name in names) == {name: prefix + name for name in names}


def test_a_prefix_that_a_few_names_lack_comes_off_the_others() -> None:
    names = [f"model.layers.{n}.self_attn.q_proj.weight" for n in range(4)]
    assert list(strip([*names, "lm_head.weight"])) == [*(n.removeprefix("model.") for n in names), "lm_head.weight"]


def test_a_prefix_stays_where_it_means_something() -> None:
    half = ["model.a.w", "model.b.w", "other.a.w", "other.b.w"]
    assert list(strip(half)) == half
    clash = ["model.a.w", "model.b.w", "model.c.w", "a.w"]
    assert list(strip(clash)) == clash


def test_a_compiled_block_inside_a_name_is_uncovered() -> None:
    names = ["transformer.wte.weight", "transformer.h.0._orig_mod.attn.bias_p"]
    assert list(strip(names))[1] == "transformer.h.0.attn.bias_p"


def test_layers_are_counted_in_the_order_of_their_numbers() -> None:
    names = [f"sequential.{n}.attention.dense.weight" for n in (12, 2, 3)]
    layers = Layers([*names, "input.0.weight", "input.2.weight", "norm.weight"])
    assert layers.numbers == [2, 3, 12]
    assert layers.names(2) == {"sequential.12.attention.dense.weight": "attention.dense.weight"}


def test_a_parameter_is_found_at_any_depth(tmp_path: Path) -> None:
    checkpoint = opened(
        tmp_path,
        "transformer.h.0.attn.bias_p",
        "transformer.h.1.attn.kerple.bias_p",
        "transformer.h.1.attn.fire.mlp.0.weight",
        "transformer.h.1.mlp.c_fc.weight",
        "transformer.h.1.attn.fire.c",
        "transformer.h.1.attn.magic.abc",
    )
    assert checkpoint.layers() == [0, 1]
    assert checkpoint.layer_shapes(0)["bias_p"] == (1,)
    assert checkpoint.layer_name(1, "bias_p") == "transformer.h.1.attn.kerple.bias_p"
    assert checkpoint.layer_shapes(1)["mlp.0.weight"] == (3,)
    assert checkpoint.layer_name(1, "c") == "transformer.h.1.attn.fire.c"
    np.testing.assert_array_equal(checkpoint.layer_tensor(1, "bias_p"), [1.0, 1.0])
    assert "lp.0.weight" not in checkpoint.layer_shapes(1)
    assert "bc" not in checkpoint.layer_shapes(1)


def test_a_blocks_own_mlp_is_not_the_attentions(tmp_path: Path) -> None:
    checkpoint = opened(tmp_path, "h.0.mlp.0.weight", "h.0.attn.fire.mlp.0.weight", "h.0.mlp.2.weight")
    assert checkpoint.layer_name(0, "mlp.0.weight") == "h.0.attn.fire.mlp.0.weight"
    assert checkpoint.layer_name(0, "mlp.2.weight") == "h.0.mlp.2.weight"


def test_two_candidates_are_both_named_and_only_when_asked_for(tmp_path: Path) -> None:
    checkpoint = opened(tmp_path, "h.0.self_attn.bias_p", "h.0.cross_attn.bias_p", "h.0.self_attn.bias_a")
    shapes = checkpoint.layer_shapes(0)
    assert shapes["bias_a"] == (3,)
    assert shapes["self_attn.bias_p"] == (1,)
    with pytest.raises(CheckpointError, match=r"h\.0\.self_attn\.bias_p or h\.0\.cross_attn\.bias_p"):
        shapes["bias_p"]
    with pytest.raises(CheckpointError, match="bias_p"):
        checkpoint.layer_tensor(0, "bias_p")


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    checkpoint = opened(tmp_path, "h.0.attn.bias_p", "h.1.attn.bias_p")
    with pytest.raises(CheckpointError, match="no layer 3; the checkpoint has layers 1 to 2"):
        checkpoint.layer_shapes(2)
    with pytest.raises(CheckpointError, match=r"layer 1 of c\.pt has no tensor bias_a"):
        checkpoint.layer_tensor(0, "bias_a")
    with pytest.raises(CheckpointError, match="has no tensor nothing"):
        checkpoint.read("nothing")
