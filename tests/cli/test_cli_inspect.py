"""`posviz inspect` as a user runs it: numbers with known answers, JSON, ranking, the figure of one head."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import refused
from PIL import Image
from safetensors.numpy import load_file
from small_models import config_of, model_of, saved

Run = Callable[..., Any]
KEYS = {
    "head", "layer", "method", "quantity", "min", "max", "mean", "uniformity", "reach50", "reach90", "entropy", "sink",
    "previous", "fit",
}  # what scripts rely on  # fmt: skip


@pytest.fixture(scope="module")
def kerple(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(model_of(config_of("kerple")), tmp_path_factory.mktemp("inspect") / "kerple.safetensors")


@pytest.fixture(scope="module")
def rope(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(model_of(config_of("rope")), tmp_path_factory.mktemp("inspect") / "rope.safetensors")


def test_alibi_slopes_are_recovered_from_values_alone(posviz: Run) -> None:
    ran = posviz("inspect", "--method", "alibi", "--n-head", 12, "--json")
    for head, row in enumerate(json.loads(ran.out), start=1):
        assert row["fit"]["best"] == "linear"
        assert row["fit"]["linear"]["slope"] == pytest.approx(2 ** (-8 * head / 12), abs=1e-6)
        assert row["uniformity"] == pytest.approx(1, abs=1e-9)


def test_kerples_p_and_a_are_recovered_from_values_alone(kerple: Path, posviz: Run) -> None:
    stored = load_file(kerple)
    p = np.maximum(stored["transformer.h.1.attn.pos.bias_p"].ravel(), 0.01)
    a = np.maximum(stored["transformer.h.1.attn.pos.bias_a"].ravel(), 0.01)
    for head, row in enumerate(json.loads(posviz("inspect", "--ckpt", kerple, "--json").out)):
        assert row["fit"]["log"]["p"] == pytest.approx(p[head], rel=1e-3)
        assert row["fit"]["log"]["a"] == pytest.approx(a[head], rel=1e-3)


def test_one_head_is_one_object_and_several_are_a_list(kerple: Path, posviz: Run) -> None:
    one = json.loads(posviz("inspect", "--ckpt", kerple, "--head", 3, "--json").out)
    assert set(one) >= KEYS
    assert (one["head"], one["layer"], one["method"], one["quantity"]) == (3, 2, "kerple", "bias")
    several = json.loads(posviz("inspect", "--ckpt", kerple, "--head", "2,5", "--json").out)
    assert [row["head"] for row in several] == [2, 5]


def test_all_layers_are_ranked_by_a_number(kerple: Path, posviz: Run) -> None:
    rows = json.loads(posviz("inspect", "--ckpt", kerple, "--layer", "all", "--sort", "reach", "--json").out)
    assert {row["layer"] for row in rows} == {1, 2}
    assert len(rows) == 24
    reach = [row["reach50"] for row in rows]
    assert reach == sorted(reach, reverse=True)


def test_scores_are_split_into_content_and_position(rope: Path, kerple: Path, posviz: Run) -> None:
    for path in (rope, kerple):
        row = json.loads(
            posviz("inspect", "--ckpt", path, "--head", 1, "--quantity", "scores", "--seq-len", 64, "--json").out
        )
        assert row["content"] + row["position"] == pytest.approx(1, abs=1e-9)


def test_the_figure_of_a_head_carries_its_recipe(rope: Path, tmp_path: Path, posviz: Run) -> None:
    out = tmp_path / "head3.png"
    ran = posviz("inspect", "--ckpt", rope, "--head", 3, "--seq-len", 96, "--window", "20:40", "--out", out)
    assert ran.code == 0
    assert ran.out.splitlines()[-1] == str(out)
    with Image.open(out) as picture:
        assert min(picture.size) > 500
    assert posviz("recipe", out, "--check").out == f"{out}: the same, drawn again by posviz 0.1.0\n"


def test_a_stored_capture_can_be_inspected(kerple: Path, tmp_path: Path, posviz: Run) -> None:
    stored = tmp_path / "x.npz"
    assert posviz("capture", "--ckpt", kerple, "--seq-len", 64, "--out", stored).code == 0
    direct = json.loads(posviz("inspect", "--ckpt", kerple, "--seq-len", 64, "--json").out)
    assert json.loads(posviz("inspect", "--from", stored, "--json").out) == direct


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--head", 0], "there is no head 0; the stack has heads 1 to 12"),
        (["--head", 13], "there is no head 13"),
        (["--layer", "last"], "layer 'last'; expected a number from 1"),
        (["--sort", "reech"], "unknown number 'reech'; did you mean 'reach"),
        (["--head", 1, "--window", "9:9", "--out", "x.png"], "window '9:9'; expected two positions"),
        (["--window", "1:9"], "a figure or a window is of one head; say which with --head"),
        (
            ["--head", 1, "--window", "500:600", "--out", "x.png"],
            "the window 500:600 does not lie in the 512 positions",
        ),
    ],
)
def test_bad_input_is_one_line(
    words: list[Any], said: str, kerple: Path, tmp_path: Path, posviz: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = posviz("inspect", "--ckpt", kerple, *words)
    assert ran.code == 1
    assert said in ran.err.splitlines()[-1]
    assert len(ran.err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_the_same_layer_everywhere_has_no_all(posviz: Run) -> None:
    refused(posviz("inspect", "--method", "alibi", "--n-head", 4, "--layer", "all"), "the same in every layer")
