"""`posviz compare` as a user runs it: two models, stored captures, methods, and the steps of a training run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import refused
from PIL import Image
from small_models import config_of, model_of, saved

from posviz.checkpoint import save_checkpoint

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("compare")
    found = {
        name: saved(model_of(config_of(name)), folder / f"{name}.safetensors") for name in ("kerple", "t5", "rope")
    }
    found["narrow"] = saved(model_of(config_of("kerple", n_head=4)), folder / "narrow.safetensors")
    return found


def test_two_models_give_profiles_a_difference_and_a_table(
    models: dict[str, Path], tmp_path: Path, posviz: Run
) -> None:
    out = tmp_path / "two.png"
    ran = posviz("compare", models["kerple"], models["t5"], "--seq-len", 48, "--out", out)
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[-2:] == [str(out), str(tmp_path / "two-difference.png")]
    assert "uniformity" in ran.out
    assert "kerple" in ran.out
    for path in (out, tmp_path / "two-difference.png"):
        assert "the same" in posviz("recipe", path, "--check").out


def test_bias_and_scores_are_compared_but_not_subtracted(models: dict[str, Path], tmp_path: Path, posviz: Run) -> None:
    out = tmp_path / "mixed.pdf"
    ran = posviz("compare", models["kerple"], models["rope"], "--seq-len", 48, "--out", out)
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[-1] == str(out)
    assert [path.name for path in tmp_path.iterdir()] == ["mixed.pdf"]


def test_captures_and_checkpoints_say_the_same_numbers(models: dict[str, Path], tmp_path: Path, posviz: Run) -> None:
    stored = tmp_path / "stored.npz"
    posviz("capture", "--ckpt", models["kerple"], "--seq-len", 48, "--out", stored)
    ran = posviz("compare", stored, models["kerple"], "--seq-len", 48, "--out", tmp_path / "x.png", "--json")
    data = json.loads(ran.out[: ran.out.rindex("}") + 1])
    assert list(data) == ["stored", "kerple"]
    assert data["stored"] == data["kerple"]


def test_a_training_run_is_ordered_by_its_steps(tmp_path: Path, posviz: Run) -> None:
    run = tmp_path / "run"
    run.mkdir()
    for step, seed in ((300, 1), (100, 2), (200, 3)):  # names and steps disagree on purpose: the header decides
        model = model_of(config_of("kerple", n_layer=1), seed=seed)
        notes = {"training": {"steps": step}}
        save_checkpoint(model.state_dict(), model.config, run / f"c{seed}.safetensors", notes)
    still, moving = tmp_path / "steps.png", tmp_path / "run.gif"
    ran = posviz("compare", "--steps", run, "--seq-len", 48, "--out", still, "--out", moving)
    assert ran.code == 0, ran.err
    header = next(line for line in ran.out.splitlines() if "c1" in line)
    assert header.index("c2") < header.index("c3") < header.index("c1")
    with Image.open(moving) as picture:
        assert picture.n_frames == 3
    assert "the same" in posviz("recipe", moving, "--check").out
    assert "the same" in posviz("recipe", still, "--check").out


def test_bad_input_is_one_line(models: dict[str, Path], tmp_path: Path, posviz: Run) -> None:
    out = ["--out", tmp_path / "x.png"]
    refused(posviz("compare", models["kerple"], *out), "give two or more things to compare", code=2)
    refused(posviz("compare", models["kerple"], models["narrow"], *out), "expected the same heads")
    refused(posviz("compare", models["kerple"], "kerpel", *out), "did you mean 'kerple'?")
    refused(posviz("compare", models["kerple"], tmp_path / "no.npz", *out), "no.npz")
    refused(posviz("compare", "--steps", tmp_path / "nowhere", *out), "is no folder")
    empty = tmp_path / "empty"
    empty.mkdir()
    refused(posviz("compare", "--steps", empty, *out), "holds 0 checkpoints; expected at least two steps")
    refused(posviz("compare", models["kerple"], models["t5"], "--out", tmp_path / "x.gif"), "unknown kind of file")
    assert not (tmp_path / "x.png").exists()
