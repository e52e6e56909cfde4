"""A figure knows where it came from: its recipe is printed, parsed back, and drawn again to the same pixels."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import refused
from PIL import Image
from small_models import config_of, model_of, saved

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def cable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(model_of(config_of("cable")), tmp_path_factory.mktemp("recipe") / "cable.safetensors")


@pytest.mark.parametrize("suffix", [".png", ".pdf", ".svg", ".html"])
def test_every_kind_of_figure_is_drawn_again(suffix: str, cable: Path, tmp_path: Path, posviz: Run) -> None:
    out = tmp_path / f"fig{suffix}"
    assert posviz("render", "--ckpt", cable, "--seq-len", 40, "--heads", "1-3", "--seed", 3, "--out", out).code == 0
    assert posviz("recipe", out, "--check").out == f"{out}: the same, drawn again by posviz 0.1.0\n"


def test_the_printed_command_draws_the_same_pixels(cable: Path, tmp_path: Path, posviz: Run) -> None:
    first, second = tmp_path / "a.png", tmp_path / "b.png"
    posviz("render", "--ckpt", cable, "--seq-len", 40, "--cmap", "magma", "--no-mask", "--title", "A B", "--out", first)
    line = posviz("recipe", first).out.splitlines()[1]
    assert posviz(*shlex.split(line)[1:], "--out", second).code == 0
    with Image.open(first) as a, Image.open(second) as b:
        assert a.tobytes() == b.tobytes()


def test_the_printed_table_is_a_manifest_entry(cable: Path, tmp_path: Path, posviz: Run) -> None:
    first = tmp_path / "a.png"
    posviz("render", "--ckpt", cable, "--seq-len", 40, "--diverging", "--out", first)
    table = posviz("recipe", first).out.partition("[[figure]]")[2]
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "m.toml").write_text("[[figure]]" + table)
    assert posviz("batch", folder / "m.toml", "--jobs", 1).code == 0
    with Image.open(first) as a, Image.open(folder / "a.png") as b:
        assert a.tobytes() == b.tobytes()


def test_a_batchs_figure_moved_elsewhere_is_reproduced(cable: Path, tmp_path: Path, posviz: Run) -> None:
    project = tmp_path / "project"
    project.mkdir()
    shutil.copy(cable, project / "model.safetensors")
    (project / "m.toml").write_text('[[figure]]\nname = "fig"\nckpt = "model.safetensors"\nseq-len = 40\n')
    assert posviz("batch", project / "m.toml", "--jobs", 1).code == 0
    moved = tmp_path / "paper" / "moved.png"
    moved.parent.mkdir()
    (project / "fig.png").rename(moved)
    assert "the same" in posviz("recipe", moved, "--check").out


def test_a_changed_or_missing_checkpoint_is_said(cable: Path, tmp_path: Path, posviz: Run) -> None:
    mine, out = tmp_path / "mine.safetensors", tmp_path / "fig.png"
    shutil.copy(cable, mine)
    posviz("render", "--ckpt", mine, "--seq-len", 40, "--out", out)
    saved(model_of(config_of("cable"), seed=9), mine)
    refused(posviz("recipe", out, "--check"), "mine.safetensors has changed since")
    mine.unlink()
    refused(posviz("recipe", out, "--check"), "no longer at", "say where it lies with --ckpt")
    assert "the same" in posviz("recipe", out, "--check", "--ckpt", cable).out


def test_changed_pixels_are_found(cable: Path, tmp_path: Path, posviz: Run) -> None:
    out = tmp_path / "fig.png"
    posviz("render", "--ckpt", cable, "--seq-len", 40, "--heads", "1", "--out", out)
    with Image.open(out) as picture:
        picture.load()
        from PIL.PngImagePlugin import PngInfo

        info = PngInfo()
        info.add_text("posviz", picture.text["posviz"])
        picture.putpixel((5, 5), (255, 0, 0, 255) if picture.mode == "RGBA" else (255, 0, 0))
        picture.save(out, pnginfo=info)
    ran = posviz("recipe", out, "--check")
    assert ran.code == 1
    assert "1 of " in ran.out
    assert "pixels differ" in ran.out


def test_a_figure_without_a_recipe_is_one_line(tmp_path: Path, posviz: Run) -> None:
    Image.new("RGB", (4, 4)).save(tmp_path / "plain.png")
    refused(posviz("recipe", tmp_path / "plain.png"), "carries no recipe")
    refused(posviz("recipe", tmp_path / "gone.png"), "gone.png")
    refused(posviz("recipe", tmp_path / "x.txt"), "unknown kind of file")


def test_the_home_folder_is_not_named(
    cable: Path, tmp_path: Path, posviz: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    shutil.copy(cable, tmp_path / "mine.safetensors")
    out = tmp_path / "fig.png"
    posviz("render", "--ckpt", tmp_path / "mine.safetensors", "--seq-len", 40, "--out", out)
    assert str(tmp_path) not in posviz("recipe", out, "--json").out
    assert "the same" in posviz("recipe", out, "--check").out
