"""Models that are not our own, through the command line: transformers folders and a user's module."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from commands import refused

Run = Callable[..., Any]
MODULE = """
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(16, 48)
        self.slope = nn.Parameter(torch.rand(4))

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, 4, 4)).permute(2, 0, 3, 1, 4)
        d = torch.arange(x.shape[1])[:, None] - torch.arange(x.shape[1])
        scores = q @ k.transpose(-1, -2) / 2 - self.slope[:, None, None] * d
        weights = scores.masked_fill(d < 0, float("-inf")).softmax(-1)
        return x + (weights @ v).transpose(1, 2).flatten(2)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(256, 16)
        self.layers = nn.Sequential(Attention(), Attention(), Attention())

    def forward(self, ids):
        return self.layers(self.table(ids))

def build():
    torch.manual_seed(0)
    return Model()

def broken():
    return nn.Embedding(256, 16)
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    name = f"mine_{abs(hash(str(tmp_path)))}"  # modules stay imported between tests
    (tmp_path / f"{name}.py").write_text(textwrap.dedent(MODULE))
    monkeypatch.chdir(tmp_path)
    return Path(name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    found = tmp_path_factory.mktemp("transformers")
    sizes = {"vocab_size": 256, "hidden_size": 32}
    llama = transformers.LlamaConfig(**sizes, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4)
    transformers.AutoModel.from_config(llama).save_pretrained(found / "llama")
    bloom = transformers.BloomConfig(**sizes, n_layer=2, n_head=4)
    transformers.AutoModel.from_config(bloom).save_pretrained(found / "bloom")
    return found


def test_half_precision_is_named_where_it_is_too_coarse_to_verify(folder: Path, tmp_path: Path, posviz: Run) -> None:
    words = ("capture", "--ckpt", folder / "llama", "--seq-len", 40, "--verify", "--out", tmp_path / "x.npz")
    refused(posviz(*words, "--dtype", "bfloat16"), "expected at most 0.0001", "runs in bfloat16", "--dtype float32")
    assert posviz(*words, "--dtype", "float32").code == 0


def test_a_folder_is_drawn_by_its_own_code_and_verified(folder: Path, tmp_path: Path, posviz: Run) -> None:
    out = tmp_path / "x.npz"
    ran = posviz("capture", "--ckpt", folder / "llama", "--seq-len", 40, "--verify", "--out", out)
    assert ran.code == 0, ran.err
    assert "verified: softmax of layer 2's scores" in ran.err
    with np.load(out) as data:
        assert data["values"].shape == (4, 40, 40)
        assert '"method": "rope"' in str(data["meta"])
        assert '"quantity": "scores"' in str(data["meta"])


def test_stripes_are_drawn_relative_unless_raw(folder: Path, tmp_path: Path, posviz: Run) -> None:
    slopes = 2.0 ** (-8 * np.arange(1, 5) / 4)
    keys = np.arange(24)
    for words, expected in (([], -(keys[:, None] - keys)), (["--raw"], np.broadcast_to(keys, (24, 24)))):
        out = tmp_path / "x.npz"
        ran = posviz("capture", "--ckpt", folder / "bloom", "--seq-len", 24, "--no-mask", *words, "--out", out)
        assert ran.code == 0, ran.err
        with np.load(out) as data:
            np.testing.assert_allclose(data["values"], slopes[:, None, None] * expected, rtol=1e-5, atol=1e-6)


def test_a_wrong_method_or_quantity_is_one_line(folder: Path, tmp_path: Path, posviz: Run) -> None:
    words = ["render", "--ckpt", folder / "llama", "--seq-len", 24, "--out", tmp_path / "x.png"]
    refused(posviz(*words, "--method", "alibi"), "layer 2 of llama is of RoPE (rope), not of alibi")
    refused(posviz(*words, "--quantity", "bias"), "RoPE adds no bias")
    refused(posviz(*words, "--layer", 3), "there is no layer 3; the model has layers 1 to 2")


def test_a_hub_id_that_cannot_be_had_is_one_line(tmp_path: Path, posviz: Run) -> None:
    ran = posviz("render", "--ckpt", "nobody/nothing-like-it", "--out", tmp_path / "x.png")
    refused(ran, "nobody/nothing-like-it")


def test_our_own_models_are_verified_against_torchs_attention(tmp_path: Path, posviz: Run) -> None:
    from small_models import config_of, model_of, saved

    for method in ("rope", "dapev2-kerple", "cable"):
        path = saved(model_of(config_of(method)), tmp_path / f"{method}.safetensors")
        ran = posviz("render", "--ckpt", path, "--seq-len", 40, "--verify", "--out", tmp_path / "x.png")
        assert "verified: layer 2's attention and torch's own differ by at most" in ran.err
    refused(
        posviz("render", "--method", "alibi", "--n-head", 4, "--verify", "--out", tmp_path / "x.png"), "verify against"
    )


def test_a_module_of_ones_own_is_built_loaded_and_drawn(mine: Path, tmp_path: Path, posviz: Run) -> None:
    slopes = torch.tensor([0.5, 1.0, 2.0, 4.0])
    import importlib
    import sys

    sys.path.insert(0, str(tmp_path))
    try:
        model = importlib.import_module(str(mine)).build()
    finally:
        sys.path.remove(str(tmp_path))
    model.layers[1].slope.data = slopes
    torch.save(model.state_dict(), tmp_path / "w.pt")
    ran = posviz(
        "capture", "--model", f"{mine}:build", "--ckpt", "w.pt", "--layer", 2, "--quantity", "bias", "--seq-len", 30,
        "--out", "x.npz",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    d = np.arange(30)[:, None] - np.arange(30)
    with np.load(tmp_path / "x.npz") as data:
        np.testing.assert_allclose(data["values"][:, d >= 0], -slopes.numpy()[:, None] * d[d >= 0], atol=1e-4)


def test_what_is_wrong_with_a_module_is_one_line(mine: Path, posviz: Run) -> None:
    words = ["render", "--out", "x.png", "--seq-len", 30, "--model"]
    refused(posviz(*words, f"{mine}:bild"), "did you mean 'build'?")
    refused(posviz(*words, "nowhere_at_all:build"), "nowhere_at_all cannot be imported")
    refused(posviz(*words, f"{mine}:broken"), "no attention was seen", "looked for")
    refused(posviz(*words, f"{mine}:build", "--layer", 4), "there is no layer 4; the model has layers 1 to 3")
    refused(posviz(*words, f"{mine}:build", "--method", "rope"), "--method names one of posviz's own methods")
    refused(posviz(*words, f"{mine}:build", "--ckpt", "no.pt"), "no.pt")


def test_what_only_transformers_models_know_is_refused_elsewhere(mine: Path, tmp_path: Path, posviz: Run) -> None:
    from small_models import config_of, model_of, saved

    own = saved(model_of(config_of("kerple")), tmp_path / "own.safetensors")
    for model in (["--ckpt", own], ["--method", "alibi", "--n-head", 4], ["--model", f"{mine}:build"]):
        for words in (["--stack", "encoder"], ["--raw"], ["--revision", "main"], ["--device-map", "auto"]):
            ran = posviz("render", *model, *words, "--out", tmp_path / "x.png")
            refused(ran, f"{words[0]} is for transformers models")
