"""Only what is asked for is computed and kept: where the run ends, what is never whole, how much memory it takes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_transformers import ASKED, BASE, DECODER, FAMILIES, IDS, TOKENS, Family, save
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import LlamaConfig, LlamaForCausalLM

from posviz.errors import CheckpointError
from posviz.models.huggingface import loading, open_model


class Matrices(TorchDispatchMode):
    """Counts results that hold a whole score matrix of every head."""

    def __init__(self, heads: int, length: int) -> None:
        super().__init__()
        self.heads, self.length, self.count = heads, length, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.shape[-2:] == (self.length, self.length):
            self.count += result.numel() >= self.heads * self.length**2
        return result


@pytest.mark.parametrize("name", ["llama", "mistral", "qwen3", "gemma3", "falcon", "gpt2", "bert", "modernbert"])
def test_no_layers_matrix_is_ever_whole(name, tmp_path):
    family = FAMILIES[name]
    model = open_model(str(save(family, tmp_path)))
    with Matrices(model.n_heads, TOKENS) as seen:
        model.capture(IDS, model.n_layers - 1)
    assert seen.count == 0


@pytest.mark.parametrize("name", ["gemma2", "gpt_oss", "t5"])
def test_what_sdpa_cannot_do_is_done_in_blocks(name, tmp_path, monkeypatch):
    model = open_model(str(save(FAMILIES[name], tmp_path)))
    whole = model.capture(IDS, model.n_layers - 1).rows("scores", 0, TOKENS)
    monkeypatch.setattr("posviz.models.huggingface.interface.BLOCK_BYTES", 4 * 4 * TOKENS * 5)
    np.testing.assert_allclose(model.capture(IDS, model.n_layers - 1).rows("scores", 0, TOKENS), whole, atol=1e-5)


@pytest.mark.parametrize("name", ["smollm3", "bloom", "t5"])
def test_the_run_ends_at_the_asked_layer(name, tmp_path):
    model = open_model(str(save(FAMILIES[name], tmp_path)))
    ran = []
    for index, layer in enumerate(model.layers.modules):
        layer.register_forward_hook(lambda *_, index=index: ran.append(index))
    model.adds_positions  # noqa: B018 - asked once for a model, by a run of its own on a few tokens
    ran.clear()
    model.capture(IDS, 1)
    assert ran == [0]


def test_several_layers_share_one_run(tmp_path):
    model = open_model(str(save(FAMILIES["smollm3"], tmp_path)))
    runs = []
    model.model.register_forward_pre_hook(lambda *_: runs.append(1))
    captures = model.captures(IDS, [2, 0])
    assert len(runs) == 1
    for layer, seen in captures.items():
        alone = model.capture(IDS, layer).rows("scores", 0, TOKENS)
        np.testing.assert_array_equal(seen.rows("scores", 0, TOKENS), alone)


def test_a_language_model_is_opened_without_its_head(tmp_path):
    LlamaForCausalLM(LlamaConfig(**DECODER)).save_pretrained(tmp_path)
    model = open_model(str(tmp_path))
    assert not any("lm_head" in name for name, _ in model.model.named_parameters())
    assert model.capture(IDS, 1).method == "rope"


def test_hooks_and_listeners_are_gone_afterwards(tmp_path):
    model = open_model(str(save(ASKED["llama"], tmp_path)))
    model.capture(IDS, 0)
    assert not any(m._forward_pre_hooks or m._forward_hooks for m in model.model.modules())
    with torch.no_grad():
        whole = model.model(torch.from_numpy(IDS)[None]).last_hidden_state
    assert whole.shape == (1, TOKENS, 32)


@pytest.mark.parametrize("name", ["llama", "bloom"])
def test_layers_on_disk_give_the_same(name, tmp_path):
    pytest.importorskip("accelerate")
    folder = str(save(FAMILIES[name], tmp_path))
    plain = open_model(folder)
    layers = next(n for n, m in plain.model.named_modules() if m is plain.layers.modules)
    others = [n for n, _ in plain.model.named_children() if n != layers]
    placed = {**dict.fromkeys(others, "cpu"), f"{layers}.0": "disk", f"{layers}.1": "disk"}
    offloaded = open_model(folder, device_map=placed)
    assert any(p.is_meta for p in offloaded.model.parameters())
    for layer in (0, 1):
        expected = plain.capture(IDS, layer)
        seen = offloaded.capture(IDS, layer)
        assert seen.method == expected.method
        for quantity in ("scores", "content"):
            values, wanted = (x.rows(quantity, 0, TOKENS) for x in (seen, expected))
            np.testing.assert_allclose(values, wanted, atol=1e-5)


def test_a_device_map_without_accelerate_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(loading.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(CheckpointError, match=r"needs the package accelerate; .*posviz\[offload\]"):
        open_model(str(save(ASKED["llama"], tmp_path)), device_map="auto")


WATCHED = """
import sys
import numpy as np
from posviz.models.huggingface import open_model
from posviz.rows import fold
seen = open_model(sys.argv[1]).capture(np.arange(512), 3)
fold(seen, "scores")
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of a process is read from /proc")
def test_memory_is_that_of_the_weights_and_little_more(tmp_path):
    wide = {"hidden_size": 768, "intermediate_size": 2048, "num_attention_heads": 12, "num_key_value_heads": 12}
    config = {**BASE, **wide, "num_hidden_layers": 4, "vocab_size": 20000, "max_position_embeddings": 512}
    save(Family("llama", "rope", config), tmp_path)
    weights = (tmp_path / "model.safetensors").stat().st_size
    done = subprocess.run([sys.executable, "-c", WATCHED, tmp_path], capture_output=True, text=True, check=True)
    assert weights > 150 * 2**20
    assert int(done.stdout) * 1024 <= 1.3 * weights + 500e6
