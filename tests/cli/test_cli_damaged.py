"""Checkpoints that are damaged, hostile or none: one line that names the file, and nothing of theirs runs."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import refused
from hostile import Hostile
from safetensors.torch import load_file, save_file
from small_models import config_of, model_of, saved

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def kerple(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(model_of(config_of("kerple", n_layer=12)), tmp_path_factory.mktemp("m") / "kerple.safetensors")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A figure of an earlier day."""
    path = tmp_path / "old.png"
    path.write_bytes(b"drawn yesterday")
    return path


def changed(path: Path, folder: Path, name: str, tensor: torch.Tensor | None) -> Path:
    """The checkpoint with one tensor replaced, or left out."""
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        metadata = file.metadata()
    state = {n: t for n, t in (load_file(path) | {name: tensor}).items() if t is not None}
    save_file(state, folder / "changed.safetensors", metadata)
    return folder / "changed.safetensors"


def test_a_truncated_file(kerple: Path, tmp_path: Path, out: Path, posviz: Run) -> None:
    whole = kerple.read_bytes()
    for share in (0.9, 0.5, 0.001):
        cut = tmp_path / "cut.safetensors"
        cut.write_bytes(whole[: int(share * len(whole))])
        for command in ("render", "info"):
            ran = posviz(command, "--ckpt", cut, *(["--out", out] if command == "render" else []))
            refused(ran, f"{cut} is cut short", "copy or download it again")
    assert out.read_bytes() == b"drawn yesterday"


def test_a_missing_tensor(kerple: Path, tmp_path: Path, out: Path, posviz: Run) -> None:
    ckpt = changed(kerple, tmp_path, "transformer.h.11.attn.pos.bias_a", None)
    refused(posviz("render", "--ckpt", ckpt, "--out", out), "layer 12 of changed.safetensors has no bias_a")
    ckpt = changed(kerple, tmp_path, "transformer.h.3.mlp.c_fc.bias", None)
    ran = posviz("render", "--ckpt", ckpt, "--quantity", "scores", "--out", out)
    refused(ran, "has no tensor transformer.h.3.mlp.c_fc.bias; expected one of shape [192]")


def test_a_wrong_shape(kerple: Path, tmp_path: Path, out: Path, posviz: Run) -> None:
    ckpt = changed(kerple, tmp_path, "transformer.h.11.attn.pos.bias_p", torch.ones(8, 1, 1))
    refused(posviz("render", "--ckpt", ckpt, "--out", out), "bias_p has shape [8, 1, 1], expected [12, 1, 1]")
    ckpt = changed(kerple, tmp_path, "transformer.h.3.ln_1.weight", torch.ones(50))
    ran = posviz("render", "--ckpt", ckpt, "--quantity", "scores", "--out", out)
    refused(ran, "transformer.h.3.ln_1.weight has shape [50], expected [48]")


def test_nan_weights(kerple: Path, tmp_path: Path, out: Path, posviz: Run) -> None:
    values = torch.ones(12, 1, 1)
    values[4] = float("nan")
    ckpt = changed(kerple, tmp_path, "transformer.h.11.attn.pos.bias_p", values)
    ran = posviz("render", "--ckpt", ckpt, "--out", out)
    refused(ran, "h.11.attn.pos.bias_p holds 1 NaN or infinite values of 12")
    assert out.read_bytes() == b"drawn yesterday"


@pytest.mark.parametrize("kind", ["torch", "pickle", "inside", "named .safetensors"])
def test_a_hostile_pickle_runs_nothing(kind: str, tmp_path: Path, out: Path, posviz: Run) -> None:
    mark = tmp_path / "it-ran"
    ckpt = tmp_path / ("m.safetensors" if kind == "named .safetensors" else "m.pt")
    if kind == "torch":
        torch.save(Hostile(mark), ckpt)
    elif kind == "inside":
        torch.save({"model": {"transformer.wte.weight": torch.ones(2, 2)}, "config": Hostile(mark)}, ckpt)
    else:
        ckpt.write_bytes(pickle.dumps(Hostile(mark)))
    for command in ("render", "capture", "info"):
        written = [] if command == "info" else ["--out", out if command == "render" else tmp_path / "x.npz"]
        refused(posviz(command, "--ckpt", ckpt, *written), str(ckpt))
    assert not mark.exists()
    assert out.read_bytes() == b"drawn yesterday"
    pickle.loads(pickle.dumps(Hostile(mark)))  # the trap itself does work
    assert mark.exists()


@pytest.mark.parametrize("content", [b"", b"hello, I am no checkpoint", b"\x89PNG\r\n", b"<html>", b"\x00" * 100])
def test_a_file_that_is_no_checkpoint(content: bytes, tmp_path: Path, posviz: Run) -> None:
    for name in ("m.safetensors", "m.pt", "m.bin"):
        (tmp_path / name).write_bytes(content)
        refused(posviz("render", "--ckpt", tmp_path / name, "--out", tmp_path / "f.png"), name)
        refused(posviz("info", "--ckpt", tmp_path / name), name)


def test_a_path_that_is_not_there(tmp_path: Path, posviz: Run) -> None:
    refused(posviz("render", "--ckpt", tmp_path / "gone.pt"), "there is no checkpoint at", "gone.pt")
    refused(posviz("info", "--ckpt", tmp_path), "is a folder without weights")


@pytest.mark.parametrize("protocol", [2, 4])
def test_a_process_of_its_own_says_one_line_too(protocol: int, tmp_path: Path) -> None:
    """Where libraries may warn on stderr, which a test's own process would swallow."""
    ckpt = tmp_path / "m.pt"
    ckpt.write_bytes(pickle.dumps(Hostile(tmp_path / "it-ran"), protocol=protocol))
    words = [Path(sys.executable).with_name("posviz"), "render", "--ckpt", ckpt, "--out", tmp_path / "f.png"]
    ran = subprocess.run(words, capture_output=True, text=True, env=os.environ, check=False)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.count("\n") == 1
    assert ran.stderr.startswith(f"posviz: {ckpt} ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.pt"]
