"""Figures as files: found by suffix, the same bytes every time, the recipe inside."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from posviz import __version__, outputs
from posviz.draw.look import Look
from posviz.errors import OutputError
from posviz.stack import HeadStack

RECIPE: dict[str, Any] = {
    "command": ["posviz", "render", "--title", "a (b) \\ \"c\" <d> & 'e' é 語 \n f"],
    "seed": np.int64(3),
    "checkpoint": {"name": Path("x.pt"), "sha256": "00ff", "of": [1, 2.5, None, True]},
}
READ_BACK = {**RECIPE, "seed": 3, "checkpoint": {**RECIPE["checkpoint"], "name": "x.pt"}}
SUFFIXES = ["png", "pdf", "svg"]


@pytest.fixture(scope="module")
def stack() -> HeadStack:
    values = np.random.default_rng(0).normal(size=(2, 24, 24)).astype(np.float32)
    values[:, ~np.tri(24, dtype=bool)] = np.nan
    return HeadStack(values, (1, 2), meta={"seq_len": 24})


@pytest.mark.parametrize("suffix", [*SUFFIXES, "PNG"])
def test_the_recipe_reads_back(stack: HeadStack, suffix: str, tmp_path: Path) -> None:
    path = outputs.save(stack, Look(title="Größe (1)"), tmp_path / f"fig.{suffix}", RECIPE)
    assert outputs.read_recipe(path) == READ_BACK


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_same_call_makes_the_same_bytes(stack: HeadStack, suffix: str, tmp_path: Path) -> None:
    first = outputs.save(stack, Look(), tmp_path / f"a.{suffix}", RECIPE).read_bytes()
    code = (
        "import sys, pathlib, numpy as np; from posviz import outputs; from posviz.draw.look import Look;"
        "from posviz.outputs.arrays import load_stack; folder = pathlib.Path(sys.argv[1]);"
        f"outputs.save(load_stack(folder / 's.npz'), Look(), folder / 'b.{suffix}', outputs.read_recipe(sys.argv[2]))"
    )
    from posviz.outputs.arrays import save_stack

    save_stack(stack, tmp_path / "s.npz")
    subprocess.run([sys.executable, "-c", code, tmp_path, tmp_path / f"a.{suffix}"], check=True)
    assert (tmp_path / f"b.{suffix}").read_bytes() == first


def test_several_files_are_one_drawing(stack: HeadStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from posviz.draw import grid

    drawn = []
    draw = grid.Sheet.draw
    monkeypatch.setattr(grid.Sheet, "draw", lambda *given: drawn.append(1) or draw(*given))
    paths = [tmp_path / f"fig.{suffix}" for suffix in (*SUFFIXES, "png")]
    assert outputs.save_all(stack, Look(), paths, {}) == paths
    assert drawn == [1]
    alone = outputs.save(stack, Look(), tmp_path / "alone.png", {})
    assert alone.read_bytes() == paths[0].read_bytes()  # being written as PDF and SVG has not changed it


def test_png_says_its_resolution_and_maker(stack: HeadStack, tmp_path: Path) -> None:
    with Image.open(outputs.save(stack, Look(title="Hello"), tmp_path / "fig.png", {})) as picture:
        assert picture.mode == "RGB"
        assert picture.info["dpi"] == pytest.approx((185, 185), abs=0.02)
        assert picture.info["Software"] == f"posviz {__version__}"
        assert picture.info["Title"] == "Hello"


def test_pdf_keeps_text_and_one_image_per_heatmap(stack: HeadStack, tmp_path: Path) -> None:
    path = outputs.save(stack, Look(title="Two heads"), tmp_path / "fig.pdf", {})
    text = subprocess.run(["pdftotext", path, "-"], capture_output=True, text=True, check=True).stdout
    assert {"Head 1", "Head 2", "Two heads"} <= set(text.splitlines())
    listing = subprocess.run(["pdfimages", "-list", path], capture_output=True, text=True, check=True).stdout
    sizes = [line.split()[3:5] for line in listing.splitlines()[2:] if line.split()[2] == "image"]
    assert sizes.count(["24", "24"]) == 2
    fonts = subprocess.run(["pdffonts", path], capture_output=True, text=True, check=True).stdout
    assert "Type 3" not in fonts
    info = subprocess.run(["pdfinfo", path], capture_output=True, text=True, check=True).stdout
    assert re.search(r"^Title: +Two heads$", info, re.MULTILINE)
    assert re.search(rf"^Creator: +posviz {re.escape(__version__)}$", info, re.MULTILINE)
    assert "CreationDate" not in info


def test_svg_keeps_text_and_one_image_per_heatmap(stack: HeadStack, tmp_path: Path) -> None:
    content = outputs.save(stack, Look(), tmp_path / "fig.svg", {}).read_text()
    assert re.search(r"<text[^>]*>Head 1</text>", content)
    assert len(re.findall("<image ", content)) == 4  # two heatmaps and their bars
    assert "dc:date" not in content


def test_any_figure_can_be_saved(tmp_path: Path) -> None:
    figure = Figure(figsize=(2, 2))
    figure.add_subplot().plot([1, 2])
    for suffix in SUFFIXES:
        assert outputs.read_recipe(outputs.save_figure(figure, tmp_path / f"x.{suffix}", {"a": 1})) == {"a": 1}


def test_too_large_a_picture_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"^a picture of 200000 x 400 pixels is too large"):
        outputs.save_figure(Figure(figsize=(2000, 4), dpi=100), tmp_path / "x.png", {})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["fig.jpeg", "fig"])
def test_an_unknown_suffix_lists_the_known(stack: HeadStack, name: str, tmp_path: Path) -> None:
    for attempt in (
        lambda path: outputs.can_write(path),
        lambda path: outputs.save(stack, Look(), path, {}),
        lambda path: outputs.save_figure(Figure(), path, {}),
        lambda path: outputs.read_recipe(path),
    ):
        with pytest.raises(OutputError, match=r"unknown kind of file .*\.pdf, \.png"):
            attempt(tmp_path / name)


def test_can_write_takes_other_kinds_when_asked(tmp_path: Path) -> None:
    assert outputs.can_write(tmp_path / "deep" / "x.svg") == tmp_path / "deep" / "x.svg"
    assert outputs.can_write(tmp_path / "x.npz", outputs.ARRAYS)
    with pytest.raises(OutputError, match="unknown kind of file"):
        outputs.can_write(tmp_path / "x.npz")


def test_no_file_is_written_when_one_cannot_be(stack: HeadStack, tmp_path: Path) -> None:
    (tmp_path / "b.pdf").mkdir()
    with pytest.raises(OutputError, match=r"b\.pdf: it is a folder"):
        outputs.save_all(stack, Look(), [tmp_path / "a.png", tmp_path / "b.pdf"], {})
    assert not (tmp_path / "a.png").exists()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_figure_without_a_recipe_is_told(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"plain.{suffix}"
    Figure(figsize=(1, 1)).savefig(path)
    with pytest.raises(OutputError, match=r"^.*plain\.... carries no recipe; [^\n]*$"):
        outputs.read_recipe(path)


@pytest.mark.parametrize("suffix", [*SUFFIXES, "npz", "safetensors"])
@pytest.mark.parametrize("content", [b"", b"something else\n" * 9])
def test_a_broken_or_missing_figure_is_one_line(suffix: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"x.{suffix}"
    with pytest.raises(OutputError, match=r"^cannot read .*: there is no such file$"):
        outputs.read_recipe(path)
    path.write_bytes(content)
    with pytest.raises(OutputError, match=r"^[^\n]*x\.[^\n]+$"):
        outputs.read_recipe(path)


def test_a_recipe_that_is_no_json_is_refused_by_name(stack: HeadStack, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="a recipe holds a set"):
        outputs.save(stack, Look(), tmp_path / "x.png", {"heads": {1, 2}})
    assert not list(tmp_path.iterdir())
