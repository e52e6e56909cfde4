"""Every example of the README is run, in its order, in a folder that holds the files it names."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from small_models import config_of, model_of, saved

from posviz.checkpoint import save_checkpoint

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
MODULE = """
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.slope = nn.Linear(16, 48), nn.Parameter(torch.rand(4))

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, 4, 4)).permute(2, 0, 3, 1, 4)
        d = torch.arange(x.shape[1])[:, None] - torch.arange(x.shape[1])
        scores = q @ k.transpose(-1, -2) / 2 - self.slope[:, None, None] * d
        return x + (scores.masked_fill(d < 0, float("-inf")).softmax(-1) @ v).transpose(1, 2).flatten(2)

def build():
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(256, 16), Attention(), Attention())
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def commands() -> list[str]:
    return [line for block in blocks("sh") for line in block.splitlines() if line.startswith("posviz ")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the examples speak of."""
    found = tmp_path_factory.mktemp("readme")
    rope = model_of(config_of("rope"))
    saved(rope, found / "model.safetensors")
    bare = {name: t for name, t in rope.state_dict().items() if name != "lm_head.weight"}
    torch.save(bare, found / "bare-rope.pt")
    (found / "text.txt").write_text("All happy families are alike; each unhappy family is unhappy alone. " * 60)
    (found / "paper.toml").write_text(blocks("toml")[0])
    (found / "mymodel.py").write_text(MODULE)
    (found / "run").mkdir()
    for step in (10, 20):
        model = model_of(config_of("kerple", n_layer=1), seed=step)
        save_checkpoint(model.state_dict(), model.config, found / "run" / f"{step}.safetensors", {})
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"vocab_size": 256}
    llama = transformers.LlamaConfig(
        **sizes, hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4
    )
    bloom = transformers.BloomConfig(**sizes, hidden_size=32, n_layer=2, n_head=4)
    t5 = transformers.T5Config(**sizes, d_model=32, d_kv=8, d_ff=32, num_layers=2, num_heads=4)
    for name, config in {"llama": llama, "bloom": bloom, "t5": t5}.items():
        transformers.AutoModel.from_config(config).save_pretrained(found / f"{name}-folder")
    return found


def test_the_readme_has_examples() -> None:
    assert len(commands()) > 30
    assert README.startswith("![")  # the picture comes first


def test_every_command_of_the_readme_runs(
    folder: Path, monkeypatch: pytest.MonkeyPatch, posviz: Callable[..., Any]
) -> None:
    monkeypatch.chdir(folder)
    sys.path.insert(0, str(folder))
    try:
        import mymodel

        torch.save(mymodel.build().state_dict(), folder / "weights.pt")
    finally:
        sys.path.remove(str(folder))
    for line in commands():
        words = shlex.split(line, comments=True)[1:]
        if words[0] == "train":  # the real thing takes minutes
            words += ["--steps", "2", "--layers", "1", "--width", "24", "--context", "32", "--batch", "2"]
        if words[0] == "batch":
            words += ["--jobs", "1"]
        ran = posviz(*words)
        assert ran.code == 0, f"{line}\n{ran.err}"
        for path in re.findall(r"^(\S+\.(?:png|pdf|svg|html|npz|gif))$", ran.out, flags=re.MULTILINE):
            assert (folder / path).stat().st_size > 0, line


def test_every_python_example_runs(folder: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(folder)}
    for block in blocks("python"):
        ran = subprocess.run([sys.executable, "-c", block], cwd=folder, env=env, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr


def test_every_picture_and_file_that_is_linked_is_there() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert len(links) > 10
    for link in links:
        assert (ROOT / link).exists(), link
