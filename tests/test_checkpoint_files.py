"""Files that are damaged, hostile, foreign or simply not there, and the types that numbers come in."""

from __future__ import annotations

import argparse
import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from checkpoint_layouts import config_of, sharded_folder, state_of
from safetensors.torch import save_file

from posviz.checkpoint import load_state, open_checkpoint, resolve, save_checkpoint
from posviz.errors import CheckpointError, OutputError


def refusal(action: Callable[[], Any]) -> str:
    """The message of the error, which must be a single line."""
    with pytest.raises(CheckpointError) as caught:
        action()
    message = str(caught.value)
    assert "\n" not in message
    return message


class Hostile:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.target}",)


@pytest.mark.parametrize("zipped", [True, False])
def test_a_hostile_pickle_runs_nothing(zipped: bool, tmp_path: Path) -> None:
    proof = tmp_path / "executed"
    torch.save({"w": torch.ones(2), "x": Hostile(proof)}, tmp_path / "h.pt", _use_new_zipfile_serialization=zipped)
    message = refusal(lambda: open_checkpoint(tmp_path / "h.pt"))
    assert "system" in message
    assert "state_dict()" in message
    assert not proof.exists()
    torch.load(tmp_path / "h.pt", weights_only=False)  # the trap is a real one
    assert proof.exists()


def test_a_harmless_object_is_refused_by_name(tmp_path: Path) -> None:
    torch.save({"model": {"w": torch.ones(2)}, "args": argparse.Namespace(lr=1)}, tmp_path / "a.pt")
    assert "argparse.Namespace" in refusal(lambda: open_checkpoint(tmp_path / "a.pt"))


@pytest.mark.parametrize("kind", ["safetensors", "pt", "old"])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.99])
def test_a_truncated_file_gives_one_line(kind: str, share: float, tmp_path: Path) -> None:
    config = config_of("kerple")
    path = tmp_path / f"c.{kind}"
    if kind == "safetensors":
        save_checkpoint(state_of(config), config, path, {})
    else:
        torch.save(state_of(config), path, _use_new_zipfile_serialization=kind == "pt")
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    message = refusal(lambda: open_checkpoint(path))
    assert str(path) in message
    assert "cut short" in message or "damaged" in message


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty"),
        (b"\x89PNG\r\n\x1a\n" + bytes(64), "PNG"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n", "git lfs pull"),
        (b"<!doctype html><html></html>", "web page"),
        (b"GGUF" + bytes(64), "GGUF"),
    ],
)
@pytest.mark.parametrize("suffix", [".safetensors", ".pt", ".bin"])
def test_what_is_no_checkpoint_is_called_by_its_name(content: bytes, says: str, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"model{suffix}"
    path.write_bytes(content)
    assert says in refusal(lambda: open_checkpoint(path))


def test_a_file_is_known_by_its_content_not_its_suffix(tmp_path: Path) -> None:
    save_file({"h.0.a.w": torch.ones(2)}, tmp_path / "weights.bin")
    assert open_checkpoint(tmp_path / "weights.bin").format == "safetensors"
    torch.save({"h.0.a.w": torch.ones(2)}, tmp_path / "weights.safetensors")
    assert "torch.save" in refusal(lambda: open_checkpoint(tmp_path / "weights.safetensors"))


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 12]},
        {"dtype": "F32", "shape": [-4], "data_offsets": [0, 16]},
        {"dtype": "F32", "shape": [4]},
        {"dtype": "F32", "shape": "four", "data_offsets": [0, 16]},
        [],
    ],
)
def test_a_header_that_contradicts_itself_is_damage(entry: Any, tmp_path: Path) -> None:
    header = json.dumps({"w": entry}).encode()
    (tmp_path / "c.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(16))
    assert "damaged" in refusal(lambda: open_checkpoint(tmp_path / "c.safetensors"))


def test_nothing_there_and_nothing_inside(tmp_path: Path) -> None:
    assert "no checkpoint at" in refusal(lambda: open_checkpoint(tmp_path / "gone.pt"))
    (tmp_path / "empty").mkdir()
    assert "without weights" in refusal(lambda: open_checkpoint(tmp_path / "empty"))
    torch.save({"epoch": 3, "lr": 0.1}, tmp_path / "no.pt")
    assert "epoch, lr" in refusal(lambda: open_checkpoint(tmp_path / "no.pt"))
    save_file({}, tmp_path / "no.safetensors")
    assert "no tensors" in refusal(lambda: open_checkpoint(tmp_path / "no.safetensors"))


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    config = config_of("kerple")
    path = sharded_folder(state_of(config), config, tmp_path)
    (path / "model-00002-of-00002.safetensors").unlink()
    assert "model-00002-of-00002.safetensors" in refusal(lambda: open_checkpoint(path))


def test_an_index_may_not_lead_out_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"w": "../other.safetensors"}}))
    assert "same folder" in refusal(lambda: open_checkpoint(tmp_path))


def test_a_broken_config_is_named(tmp_path: Path) -> None:
    save_file({"h.0.a.w": torch.ones(2)}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text("{")
    assert "config.json" in refusal(lambda: open_checkpoint(tmp_path))


@pytest.mark.parametrize("kind", ["float64", "float32", "float16", "bfloat16", "int64", "uint8", "bool"])
def test_every_type_reads_as_torch_reads_it(kind: str, tmp_path: Path) -> None:
    values = (100 * torch.randn(7, 5, generator=torch.Generator().manual_seed(1))).to(getattr(torch, kind))
    save_file({"h.0.a.w": values, "h.0.a.odd": torch.ones(3, dtype=torch.uint8)}, tmp_path / "c.safetensors")
    torch.save({"h.0.a.w": values}, tmp_path / "c.pt")
    for path in (tmp_path / "c.safetensors", tmp_path / "c.pt"):
        checkpoint = open_checkpoint(path)
        assert checkpoint.read("h.0.a.w").dtype == np.float32
        np.testing.assert_array_equal(checkpoint.read("h.0.a.w"), values.float().numpy())
        assert checkpoint.torch("h.0.a.w").dtype == values.dtype
        assert torch.equal(checkpoint.torch("h.0.a.w"), values)


def test_numbers_that_do_not_lie_on_their_boundaries_are_read(tmp_path: Path) -> None:
    values = np.arange(4, dtype="<f4")
    header = json.dumps({"h.0.a.w": {"dtype": "F32", "shape": [4], "data_offsets": [1, 17]}}).encode()
    header += b" " * (-len(header) % 8)
    (tmp_path / "c.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + b"\0" + values.tobytes())
    checkpoint = open_checkpoint(tmp_path / "c.safetensors")
    np.testing.assert_array_equal(checkpoint.read("h.0.a.w"), values)
    np.testing.assert_array_equal(checkpoint.torch("h.0.a.w").numpy(), values)


def test_changing_a_mapped_tensor_leaves_the_file_alone(tmp_path: Path) -> None:
    save_file({"h.0.a.w": torch.zeros(3)}, tmp_path / "c.safetensors")
    open_checkpoint(tmp_path / "c.safetensors").torch("h.0.a.w").fill_(5)
    np.testing.assert_array_equal(open_checkpoint(tmp_path / "c.safetensors").read("h.0.a.w"), np.zeros(3))


@pytest.mark.parametrize("suffix", [".safetensors", ".pt"])
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_broken_numbers_are_counted_by_tensor(suffix: str, bad: float, tmp_path: Path) -> None:
    config = config_of("kerple")
    state = state_of(config)
    state["transformer.h.1.attn.pos.bias_p"][:2] = bad
    state["transformer.h.0.mlp.c_fc.weight"][0, :3] = bad
    path = tmp_path / f"c{suffix}"
    if suffix == ".pt":
        torch.save({"model": state, "model_args": {"n_head": 3}}, path)
    else:
        save_checkpoint(state, config, path, {})
    checkpoint = open_checkpoint(path)
    resolved = resolve(checkpoint)
    message = refusal(lambda: resolved.parameters(1))
    assert "transformer.h.1.attn.pos.bias_p holds 2 NaN or infinite" in message
    assert resolved.parameters(0)  # the other layer is whole
    message = refusal(lambda: load_state(checkpoint, resolved.model_config()))
    assert "transformer.h.0.mlp.c_fc.weight holds 3 NaN or infinite" in message
    assert load_state(checkpoint, resolved.model_config(), 1)  # which reaches neither


def test_only_the_rows_that_are_used_must_be_whole(tmp_path: Path) -> None:
    config = config_of("alibi")
    state = state_of(config)
    state["transformer.wte.weight"][40] = float("nan")
    checkpoint = open_checkpoint(save_checkpoint(state, config, tmp_path / "c.safetensors", {}))
    assert load_state(checkpoint, config, 1, np.array([3, 4, 4]))
    assert "wte.weight holds 12 NaN" in refusal(lambda: load_state(checkpoint, config, 1, np.array([3, 40])))


@pytest.mark.parametrize("name", ["transformer.h.0.attn.c_proj.weight", "transformer.h.1.ln_1.bias"])
def test_a_missing_tensor_and_a_wrong_shape_are_named(name: str, tmp_path: Path) -> None:
    config = config_of("fire")
    state = state_of(config)
    missing = {n: t for n, t in state.items() if n != name}
    checkpoint = open_checkpoint(save_checkpoint(missing, config, tmp_path / "m.safetensors", {}))
    assert name in refusal(lambda: load_state(checkpoint, config, 2))
    state[name] = torch.ones(5, 4)
    checkpoint = open_checkpoint(save_checkpoint(state, config, tmp_path / "s.safetensors", {}))
    message = refusal(lambda: load_state(checkpoint, config, 2))
    assert name in message
    assert "[5, 4], expected [12" in message


def test_an_unwritable_place_leaves_nothing_behind(tmp_path: Path) -> None:
    config = config_of("alibi")
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="cannot write"):
        save_checkpoint(state_of(config), config, tmp_path / "file" / "c.safetensors", {})
    (tmp_path / "c.safetensors").mkdir()
    with pytest.raises(OutputError, match="cannot write"):
        save_checkpoint(state_of(config), config, tmp_path / "c.safetensors", {})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c.safetensors", "file"]


def test_a_hash_follows_the_content(tmp_path: Path) -> None:
    config = config_of("kerple")
    path = sharded_folder(state_of(config), config, tmp_path)
    before = open_checkpoint(path).sha256()
    assert open_checkpoint(path).sha256() == before
    (path / "README.md").write_text("of no matter")
    assert open_checkpoint(path).sha256() == before
    (path / "config.json").write_text('{"n_head": 3}')
    assert open_checkpoint(path).sha256() != before
