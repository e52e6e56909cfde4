"""`info`: what headers tell, without torch and without reading a tensor."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
from checkpoint_layouts import config_of, sharded_folder, state_dict, state_of

from posviz.checkpoint import describe, open_checkpoint, save_checkpoint
from posviz.models.gpt import GPT

GIGABYTE = 2**30


def test_our_own_file_tells_everything(tmp_path: Path) -> None:
    config = config_of("fire", tokenizer="bytes")
    path = save_checkpoint(state_of(config), config, tmp_path / "c.safetensors", {"validation_loss": 1.25})
    told = describe(open_checkpoint(path))
    assert json.loads(json.dumps(told)) == told
    assert {key: told[key] for key in ("format", "method", "layers", "heads", "width", "context", "vocabulary")} == {
        "format": "posviz", "method": "fire", "layers": 2, "heads": 3, "width": 12, "context": 32, "vocabulary": 64,
    }  # fmt: skip
    # FIRE's init_L is a buffer, stored like a parameter in each of the two layers.
    assert told["parameters"] == sum(p.numel() for p in GPT(config).parameters()) + 2
    assert told["dtype"] == "F32"
    assert told["size"] == path.stat().st_size
    assert told["tokenizer"] == "bytes"
    assert told["notes"] == {"validation_loss": 1.25}


def test_what_is_not_known_is_none_and_why_is_told(tmp_path: Path) -> None:
    config = config_of("alibi")
    told = describe(open_checkpoint(state_dict(state_of(config), config, tmp_path)))
    assert told["method"] is None
    assert "--method" in told["why"]
    assert (told["heads"], told["tokenizer"]) == (None, None)
    assert (told["width"], told["vocabulary"]) == (12, 64)


def test_what_must_still_be_said_is_listed(tmp_path: Path) -> None:
    config = config_of("kerple")
    told = describe(open_checkpoint(state_dict(state_of(config), config, tmp_path)))
    assert told["method"] == "kerple"
    assert told["missing"] == ["--scale-scores or --no-scale-scores"]


def test_a_folder_tells_its_types_and_its_tokenizer(tmp_path: Path) -> None:
    config = config_of("t5")
    state = {n: t.half() if n.endswith("c_fc.weight") else t.bfloat16() for n, t in state_of(config).items()}
    path = sharded_folder(state, config, tmp_path)
    assert describe(open_checkpoint(path))["tokenizer"] is None
    (path / "tokenizer.json").write_text("{}")
    told = describe(open_checkpoint(path))
    assert told["tokenizer"] == "in the folder"
    assert set(told["dtype"].split(", ")) == {"BF16", "F16"}
    assert told["size"] == sum(file.stat().st_size for file in path.glob("*.safetensors"))


def test_a_transformers_folder_tells_its_config(tmp_path: Path) -> None:
    torch.save({"model.layers.0.self_attn.q_proj.weight": torch.ones(8, 8)}, tmp_path / "pytorch_model.bin")
    sizes = {"num_attention_heads": 2, "hidden_size": 8, "vocab_size": 99, "max_position_embeddings": 77}
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", **sizes}))
    told = describe(open_checkpoint(tmp_path))
    assert told["format"] == "transformers folder"
    assert "llama" in told["why"]
    assert [told[key] for key in ("heads", "width", "vocabulary", "context", "layers")] == [2, 8, 99, 77, 1]


def huge_file(path: Path) -> None:
    """A valid file of 40 GB, of which the disk holds only the header."""
    rows = 10 * GIGABYTE // 1024
    header, end = {}, 0
    shapes = {"transformer.wte.weight": [rows, 1024], "transformer.h.0.attn.bias_p": [8, 1, 1]}
    for name, shape in {**shapes, "transformer.h.0.attn.bias_a": [8, 1, 1]}.items():
        begin, end = end, end + 4 * shape[0] * (shape[1] * (shape[2] if len(shape) > 2 else 1))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + end)


PEAK = """
import pathlib, re
def peak():  # kilobytes; getrusage would count the process that started this one
    status = pathlib.Path("/proc/self/status")
    return int(re.search(r"VmHWM:\\s+(\\d+)", status.read_text())[1]) if status.exists() else 0
"""


def in_a_fresh_process(program: str, path: Path) -> Any:
    """What a program prints as JSON; it finds the path in sys.argv[1]."""
    command = [sys.executable, "-c", PEAK + program, str(path)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_a_huge_file_is_described_without_torch_and_without_reading_it(tmp_path: Path) -> None:
    huge_file(tmp_path / "huge.safetensors")
    program = """
import json, sys
from posviz.checkpoint import describe, open_checkpoint
told = describe(open_checkpoint(sys.argv[1]))
print(json.dumps([told, sorted({"torch", "transformers", "matplotlib"} & set(sys.modules)), peak()]))
"""
    told, heavy, kilobytes = in_a_fresh_process(program, tmp_path / "huge.safetensors")
    assert heavy == []
    assert kilobytes < 100_000
    assert (told["method"], told["heads"], told["width"]) == ("kerple", 8, 1024)
    assert told["parameters"] == 10 * GIGABYTE + 16


def test_a_bias_is_read_from_a_huge_file_without_torch(tmp_path: Path) -> None:
    huge_file(tmp_path / "huge.safetensors")
    program = """
import json, sys
from posviz.checkpoint import open_checkpoint, resolve
found = resolve(open_checkpoint(sys.argv[1])).parameters(0)
print(json.dumps([found["bias_p"].shape, "torch" in sys.modules, peak()]))
"""
    shape, heavy, kilobytes = in_a_fresh_process(program, tmp_path / "huge.safetensors")
    assert shape == [8, 1, 1]
    assert not heavy
    assert kilobytes < 100_000
