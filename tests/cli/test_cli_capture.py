"""`posviz capture`, `posviz info` and `posviz methods`: what they leave and what they say."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_models import config_of, model_of, saved

import posviz as library
from posviz import __version__, methods
from posviz.sequence import sample_text

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("models")
    for method in ("kerple", "rope"):
        saved(model_of(config_of(method, n_layer=3)), made / f"{method}.safetensors")
    return made


def test_what_a_capture_holds(folder: Path, tmp_path: Path, posviz: Run) -> None:
    ckpt, out = folder / "rope.safetensors", tmp_path / "deep" / "x.npz"
    ran = posviz(
        "capture", "--ckpt", ckpt, "--seq-len", 70, "--layer", 2, "--seed", 4, "--heads", "3,5-6", "--out", out
    )
    assert (ran.code, ran.out, ran.err) == (0, f"{out}\n", "")
    with np.load(out, allow_pickle=False) as stored:
        assert sorted(stored.files) == ["cell", "heads", "meta", "token_ids", "tokens", "values"]
        values, heads, ids, tokens = (stored[name] for name in ("values", "heads", "token_ids", "tokens"))
        meta = json.loads(str(stored["meta"]))
    assert values.dtype == np.float32
    assert values.shape == (3, 70, 70)
    np.testing.assert_array_equal(np.isnan(values), np.broadcast_to(~np.tri(70, dtype=bool), (3, 70, 70)))
    assert heads.tolist() == [3, 5, 6]
    assert ids.shape == tokens.shape == (70,)
    window = bytes(ids.tolist()).decode()
    assert window in sample_text()
    assert "".join(tokens).replace("\\n", "\n") == window
    expected = {
        "posviz_version": __version__, "method": "rope", "quantity": "scores", "layer": 2, "n_layers": 3,
        "n_heads": 12, "seq_len": 70, "seed": 4, "source": "rope.safetensors",
        "sha256": hashlib.sha256(ckpt.read_bytes()).hexdigest(),
    }  # fmt: skip
    assert {name: meta[name] for name in expected} == expected


def test_a_bias_without_tokens_has_none(folder: Path, tmp_path: Path, posviz: Run) -> None:
    assert posviz("capture", "--ckpt", folder / "kerple.safetensors", "--out", tmp_path / "x.npz").code == 0
    with np.load(tmp_path / "x.npz") as stored:
        assert stored["values"].shape == (12, 512, 512)
        assert stored["token_ids"].shape == stored["tokens"].shape == (0,)


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_the_same_from_the_command_line_and_from_python(suffix: str, folder: Path, tmp_path: Path, posviz: Run) -> None:
    words = ["--ckpt", folder / "rope.safetensors", "--quantity", "attention", "--seq-len", 40, "--no-mask"]
    assert posviz("capture", *words, "--out", tmp_path / f"x{suffix}").code == 0
    stored = library.load(tmp_path / f"x{suffix}")
    direct = library.capture(folder / "rope.safetensors", quantity="attention", seq_len=40, mask=False)
    np.testing.assert_array_equal(stored.values, direct.values)
    np.testing.assert_array_equal(stored.token_ids, direct.token_ids)
    assert (stored.tokens, stored.heads, dict(stored.meta)) == (direct.tokens, direct.heads, dict(direct.meta))
    np.testing.assert_allclose(np.tril(stored.values).sum(axis=-1), 1, rtol=1e-5)


def test_tokens_from_files_are_those_that_are_run(folder: Path, tmp_path: Path, posviz: Run) -> None:
    ids = np.random.default_rng(1).integers(256, size=50)
    np.save(tmp_path / "t.npy", ids.astype(np.uint16))
    ids.astype("<u2").tofile(tmp_path / "t.bin")
    (tmp_path / "t.json").write_text(json.dumps(ids.tolist()))
    seen = []
    for name in ("t.npy", "t.bin", "t.json"):
        words = ["--tokens", tmp_path / name, "--seq-len", 50, "--out", tmp_path / "x.npz"]
        assert posviz("capture", "--ckpt", folder / "rope.safetensors", *words).code == 0
        seen.append(library.load(tmp_path / "x.npz"))
        np.testing.assert_array_equal(seen[-1].token_ids, ids)
    assert all(np.array_equal(stack.values, seen[0].values, equal_nan=True) for stack in seen)


# -- info and methods -------------------------------------------------------------------------------------------------


def test_info_tells_what_a_checkpoint_is(folder: Path, posviz: Run) -> None:
    facts = json.loads(posviz("info", "--ckpt", folder / "kerple.safetensors", "--json").out)
    model = model_of(config_of("kerple", n_layer=3))
    expected = {
        "format": "posviz", "method": "kerple", "layers": 3, "heads": 12, "width": 48, "context": 512,
        "vocabulary": 256, "dtype": "F32", "tokenizer": "bytes",
        "parameters": sum(p.numel() for p in model.parameters()),
    }  # fmt: skip
    assert {name: facts[name] for name in expected} == expected
    said = posviz("info", "--ckpt", folder / "kerple.safetensors").out
    for word in ("posviz", "kerple", "12", "512", "bytes"):
        assert word in said


def test_info_says_what_must_be_asked_for(tmp_path: Path, posviz: Run) -> None:
    torch.save(model_of(config_of("rope")).state_dict(), tmp_path / "m.pt")
    ran = posviz("info", "--ckpt", tmp_path / "m.pt")
    assert ran.code == 0
    assert "no positional method is recognised" in ran.out
    ran = posviz("render", "--ckpt", tmp_path / "m.pt", "--method", "rope", "--out", tmp_path / "f.png")
    for option in ("--n-head", "--rope-pairing halves|neighbours", "--scale-scores or --no-scale-scores"):
        assert option in ran.error


def test_methods_are_listed(posviz: Run) -> None:
    rows = json.loads(posviz("methods", "--json").out)
    assert [row["method"] for row in rows] == methods.names()
    for row in rows:
        found = methods.get(row["method"])
        assert row["token_dependent"] == found.token_dependent
        assert (row["drawn"], row["reference"]) == (found.drawn, found.reference)
    lines = posviz("methods").out.splitlines()
    assert [line.split()[0] for line in lines] == ["method", *methods.names()]
    assert next(line for line in lines if line.startswith("fire")).count(" no ") == 1
    assert " yes " in next(line for line in lines if line.startswith("cable"))
