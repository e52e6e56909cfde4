"""Bad input is one line on stderr and an exit code, never a traceback; and what was there before stays there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import refused
from hostile import Hostile
from small_models import config_of, model_of, saved

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def kerple(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve layers of twelve heads."""
    return saved(model_of(config_of("kerple", n_layer=12)), tmp_path_factory.mktemp("m") / "kerple.safetensors")


@pytest.fixture(scope="module")
def rope(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(model_of(config_of("rope")), tmp_path_factory.mktemp("m") / "rope.safetensors")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A figure of an earlier day."""
    path = tmp_path / "old.png"
    path.write_bytes(b"drawn yesterday")
    return path


@pytest.mark.parametrize("command", ["render", "capture"])
@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--method", "kerpel"], ["unknown method 'kerpel'; did you mean 'kerple'?"]),
        (["--heads", "0"], ["there is no head 0; the layer has heads 1 to 12"]),
        (["--heads", "13"], ["there is no head 13; the layer has heads 1 to 12"]),
        (["--heads", "1-13"], ["there is no head 13"]),
        (["--heads", "-13"], ["heads '-13'", "expected something like 1-4,7"]),
        (["--layer", "0"], ["there is no layer 0; the model has layers 1 to 12 (or -12 to -1, from the end)"]),
        (["--layer", "13"], ["there is no layer 13;"]),
        (["--layer", "-13"], ["there is no layer -13;"]),
        (["--quantity", "biass"], ["unknown quantity 'biass'; did you mean 'bias'?"]),
        (["--seq-len", "0"], ["seq-len is 0; expected 1 or more"]),
        (["--seq-len", "-4"], ["seq-len is -4"]),
        (["--n-head", "8"], ["--n-head is 8, but", "is of 12 heads"]),
        (["--rope-base", "5"], ["--rope-base means nothing for kerple"]),
        (["--method", "cable"], ["has no h_attn.weight, which cable needs", "is --method right?"]),
        (["--reduce", "mode"], ["unknown reduction 'mode'"]),
        (["--config", "missing.json"], ["missing.json cannot be read: No such file or directory"]),
        (["--quantity", "scores", "--text-file", "missing.txt"], ["missing.txt cannot be read: No such file"]),
        (["--quantity", "scores", "--text", "short"], ["--text has 5 tokens, and 512 are needed; use --seq-len 5"]),
        (["--quantity", "scores", "--text", ""], ["--text is empty"]),
        (["--quantity", "scores", "--text", "a", "--random-tokens"], ["--text and --random-tokens were given"]),
        (["--quantity", "scores", "--tokens", "missing.npy"], ["missing.npy cannot be read"]),
        (["--quantity", "scores", "--tokenizer", "./none"], ["there is no tokenizer './none'"]),
        (["--quantity", "scores", "--dtype", "int8"], ["unknown dtype 'int8'"]),
        (["--quantity", "scores", "--device", "tpu"], ["unknown device 'tpu'"]),
        (["--quantity", "scores", "--threads", "0"], ["threads is 0; expected 1 or more"]),
        (["--quantity", "scores", "--seed", "-1"], ["--seed is -1; expected 0 or more"]),
    ],
    ids=lambda value: "_".join(value) if isinstance(value, list) else value,
)
def test_wrong_values(
    command: str, words: list[str], parts: list[str], kerple: Path, tmp_path: Path, posviz: Run
) -> None:
    out = tmp_path / ("f.png" if command == "render" else "f.npz")
    out.write_bytes(b"drawn yesterday")
    refused(posviz(command, "--ckpt", kerple, "--out", out, *words), *parts)
    assert out.read_bytes() == b"drawn yesterday"
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--scale", "all"], ["unknown scale 'all'"]),
        (["--cmap", "viridiss"], ["unknown colour map 'viridiss'; did you mean 'viridis'?"]),
        (["--dpi", "0"], ["a resolution of 0.0 dots per inch; expected a number above 0"]),
        (["--dpi", "nan"], ["a resolution of nan"]),
        (["--extrapolate", "9,3"], ["lengths '9,3'; expected growing numbers"]),
    ],
    ids=lambda value: "_".join(value),
)
def test_wrong_looks(
    words: list[str], parts: list[str], out: Path, posviz: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found before anything is opened or run."""
    monkeypatch.setattr("posviz.session.Session", lambda *_: pytest.fail("a model was opened"))
    refused(posviz("render", "--ckpt", "some.pt", "--out", out, *words), *parts)
    assert out.read_bytes() == b"drawn yesterday"


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["rendr"], ["No such command 'rendr'", "Did you mean 'render'?", "see posviz --help"]),
        (["render", "--seqlen", "3"], ["No such option: --seqlen", "see posviz render --help"]),
        (["render", "--seq-len", "many"], ["Invalid value for '--seq-len'"]),
        (["render", "--out"], ["'--out' requires an argument"]),
        (["render", "stray"], ["unexpected extra argument"]),
        (["capture", "--method", "kerple"], ["Missing option '--out'"]),
        (["info"], ["Missing option '--ckpt'"]),
        (["train"], ["Missing option"]),
        (["--nonsense"], ["No such option: --nonsense"]),
    ],
    ids=lambda value: "_".join(value),
)
def test_wrong_usage(words: list[str], parts: list[str], posviz: Run) -> None:
    refused(posviz(*words), *parts, code=2)


def test_nothing_to_draw(posviz: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("posviz.bundled.folder", lambda: tmp_path)
    refused(posviz("render"), "neither --ckpt nor --method was given")
    refused(posviz("render", "--method", "fire"), "no checkpoint of fire is bundled; give one with --ckpt")


def test_too_little_memory(posviz: Run, out: Path) -> None:
    ran = posviz("render", "--method", "alibi", "--n-head", 2, "--seq-len", 10**15, "--out", out)
    refused(ran, "there is not enough memory for this; ask for fewer positions (--seq-len)")
    assert out.read_bytes() == b"drawn yesterday"


def test_rope_has_no_bias(rope: Path, out: Path, posviz: Run) -> None:
    ran = posviz("render", "--ckpt", rope, "--quantity", "bias", "--out", out)
    refused(ran, "RoPE adds no bias to the scores; ask for --quantity scores, content or attention")
    assert out.read_bytes() == b"drawn yesterday"


@pytest.mark.parametrize("command", ["render", "capture"])
def test_an_output_that_cannot_be_written(command: str, kerple: Path, tmp_path: Path, posviz: Run) -> None:
    suffix = ".png" if command == "render" else ".npz"
    (tmp_path / "file").touch()
    (tmp_path / f"folder{suffix}").mkdir()
    for name, part in [
        (f"file/f{suffix}", "a part of its folder's path is a file"),
        (f"folder{suffix}", "it is a folder; give the name of a file"),
        ("f.xyz", "unknown kind of file '.xyz'"),
        ("f", "unknown kind of file 'f'"),
    ]:
        refused(posviz(command, "--ckpt", kerple, "--out", tmp_path / name), part)
    refused(posviz(command, "--ckpt", kerple, "--out", f"/proc/f{suffix}"), f"cannot write /proc/f{suffix}")


def test_one_bad_output_of_several_stops_before_the_first(kerple: Path, out: Path, posviz: Run) -> None:
    refused(posviz("render", "--ckpt", kerple, "--out", out, "--out", "/proc/f.pdf"), "cannot write /proc/f.pdf")
    assert out.read_bytes() == b"drawn yesterday"


def test_a_stored_capture_cannot_be_captured_otherwise(kerple: Path, tmp_path: Path, out: Path, posviz: Run) -> None:
    stored = tmp_path / "x.npz"
    assert posviz("capture", "--ckpt", kerple, "--seq-len", 20, "--out", stored).code == 0
    for words in (["--ckpt", kerple], ["--seq-len", 30], ["--layer", 1], ["--quantity", "scores"], ["--no-mask"]):
        ran = posviz("render", "--from", stored, "--out", out, *words)
        refused(ran, "cannot change a stored capture; leave out --from, or capture again")
        assert ran.error.startswith(words[0].replace("--no-", "--"))
    refused(posviz("render", "--from", stored, "--heads", "13", "--out", out), "there is no head 13")
    for content in (b"", b"PK\x03\x04 no zip", stored.read_bytes()[:500]):
        (tmp_path / "bad.npz").write_bytes(content)
        refused(posviz("render", "--from", tmp_path / "bad.npz", "--out", out), "bad.npz")
    np.savez(tmp_path / "other.npz", weights=np.ones(3))
    refused(posviz("render", "--from", tmp_path / "other.npz", "--out", out), "has no values, heads, meta")
    np.savez(tmp_path / "hostile.npz", values=np.array([Hostile(tmp_path / "mark")], dtype=object), heads=1, meta="{}")
    refused(posviz("render", "--from", tmp_path / "hostile.npz", "--out", out), "hostile.npz")
    assert not (tmp_path / "mark").exists()
    assert out.read_bytes() == b"drawn yesterday"


def test_a_configuration_that_is_none(kerple: Path, tmp_path: Path, posviz: Run) -> None:
    config = tmp_path / "c.json"
    for text, part in [
        ("{", "is not JSON"),
        ("[1]", "holds a list; expected an object"),
        ('{"n_head": "x"}', "n_head is 'x'"),
    ]:
        config.write_text(text)
        refused(posviz("render", "--ckpt", kerple, "--config", config, "--out", tmp_path / "f.png"), part)
    config.write_text(json.dumps({"n_head": 4}))
    refused(posviz("render", "--ckpt", kerple, "--config", config, "--out", tmp_path / "f.png"), "n_head 4", "says 12")
