"""`posviz render` as a person types it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reading import assert_cells_are_the_values, pixels
from small_models import config_of, model_of, saved

import posviz as library

Run = Callable[..., Any]
SCRIPT = Path(sys.executable).with_name("posviz")
FIGURE_12 = json.loads((Path(__file__).parents[1] / "data" / "paper_figures.json").read_text())["figures"]["12"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checkpoints of a few methods."""
    made = tmp_path_factory.mktemp("models")
    for method in ("kerple", "cable", "rope"):
        saved(model_of(config_of(method)), made / f"{method}.safetensors")
    return made


def words_of(pdf: Path) -> list[tuple[float, float, str]]:
    """Left edge, middle height and text of each word, as pdftotext reads the page; in inches from the upper left."""
    page = subprocess.run(["pdftotext", "-bbox", pdf, "-"], capture_output=True, text=True, check=True).stdout
    number = r'="(-?[\d.]+)"'
    word = re.compile(rf"<word xMin{number} yMin{number} xMax{number} yMax{number}>([^<]*)</word>")
    return [
        (float(left) / 72, (float(top) + float(bottom)) / 144, text.replace("\N{MINUS SIGN}", "-"))
        for left, top, _, bottom, text in word.findall(page)
    ]


def test_alibi_is_the_papers_figure_12(tmp_path: Path) -> None:
    """A page of 4 x 3 tiles of four inches; right of the heatmap in a tile stand the labels of its colour bar."""
    ran = subprocess.run(
        [SCRIPT, "render", "--method", "alibi", "--n-head", "12", "--seq-len", "512", "--out", "f.pdf"],
        capture_output=True, text=True, cwd=tmp_path, check=True,
    )  # fmt: skip
    assert (ran.stdout, ran.stderr) == ("f.pdf\n", "")
    words = words_of(tmp_path / "f.pdf")
    for head in range(1, 13):
        row, column = divmod(head - 1, 3)
        tile = [
            (x - 4 * column, y, w)
            for x, y, w in words
            if 4 * column <= x < 4 * (column + 1) and row * 4 <= y < row * 4 + 4
        ]
        labels = [word for x, _, word in sorted(tile, key=lambda at: at[1]) if x > 3.3]
        assert labels == FIGURE_12["colorbar"][str(head)], f"head {head}"
        around = Counter(word for x, _, word in tile if x <= 3.3)
        assert around == Counter(["Head", str(head), *2 * ["0", "100", "200", "300", "400", "500"]])


def test_one_drawing_in_several_files(folder: Path, tmp_path: Path, posviz: Run) -> None:
    names = [tmp_path / "deep" / f"f{suffix}" for suffix in (".png", ".pdf", ".svg")]
    ran = posviz(
        "render", "--ckpt", folder / "cable.safetensors", "--seq-len", 60, *(w for n in names for w in ("-o", n))
    )
    assert (ran.code, ran.out.split(), ran.err) == (0, list(map(str, names)), "")
    assert [name.read_bytes()[:4] for name in names] == [b"\x89PNG", b"%PDF", b"<?xm"]
    assert_cells_are_the_values(names[0], library.capture(folder / "cable.safetensors", seq_len=60))
    svg = names[2].read_text()
    assert "Head 12</text>" in svg  # text as text
    assert svg.count("<image") == 24  # a heatmap and a bar for each head, nothing drawn cell by cell


def test_left_out_names_are_made_up_and_printed(
    folder: Path, tmp_path: Path, posviz: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert (
        posviz("render", "--ckpt", folder / "kerple.safetensors", "--seq-len", 20).out == "figures/kerple-layer2.png\n"
    )
    ran = posviz("render", "--ckpt", folder / "rope.safetensors", "--seq-len", 20, "--layer", 1, "--heads", "2")
    assert ran.out == "figures/rope-layer1.png\n"
    assert sorted(p.name for p in (tmp_path / "figures").iterdir()) == ["kerple-layer2.png", "rope-layer1.png"]


def test_options_reach_the_picture(folder: Path, tmp_path: Path, posviz: Run) -> None:
    ckpt = folder / "cable.safetensors"
    seen: dict[str, np.ndarray] = {}
    for name, words in {
        "plain": [],
        "layer": ["--layer", 1],
        "seed": ["--seed", 3],
        "text": ["--text", "To be, or not to be, that is the question: whether 'tis nobler"],
        "random": ["--random-tokens"],
        "scores": ["--quantity", "scores"],
        "bare": ["--no-mask"],
        "cmap": ["--cmap", "magma"],
        "diverging": ["--diverging"],
        "log": ["--log"],
        "shared": ["--scale", "shared"],
        "unscaled": ["--quantity", "scores", "--no-scale-scores"],
    }.items():
        out = tmp_path / f"{name}.png"
        assert posviz("render", "--ckpt", ckpt, "--seq-len", 24, "--heads", "1,2", "--out", out, *words).code == 0, name
        seen[name] = pixels(out)
    assert len({picture.tobytes() for picture in seen.values()}) == len(seen)
    assert posviz("render", "--ckpt", ckpt, "--seq-len", 24, "--title", "A title", "-o", tmp_path / "t.pdf").code == 0
    assert [word for _, _, word in words_of(tmp_path / "t.pdf")][:2] == ["A", "title"]
    assert (
        posviz("render", "--ckpt", ckpt, "--seq-len", 24, "--dpi", 300, "--heads", "1", "-o", tmp_path / "d.png").code
        == 0
    )
    assert pixels(tmp_path / "d.png").shape[0] >= 4 * 300


def test_notes_go_to_stderr(folder: Path, tmp_path: Path, posviz: Run) -> None:
    ran = posviz(
        "render", "--ckpt", folder / "kerple.safetensors", "--seq-len", 600, "--heads", 1, "-o", tmp_path / "f.png"
    )
    assert ran.code == 0
    assert ran.out == f"{tmp_path}/f.png\n"
    assert ran.err.startswith("posviz: note: 600 positions are beyond the 512 it was trained with")


LOADED = """
import sys
sys.argv = ["posviz", *sys.argv[1:]]
from posviz.cli import main
try:
    main()
except SystemExit as stop:
    assert not stop.code, stop.code
assert "matplotlib" in sys.modules
print("torch" in sys.modules, "transformers" in sys.modules)
"""


def alone(*words: object) -> list[str]:
    """The words in a process of its own; the last line says whether torch and transformers were imported."""
    ran = subprocess.run([sys.executable, "-c", LOADED, *map(str, words)], capture_output=True, text=True, check=True)
    return ran.stdout.splitlines()


def test_a_stored_capture_needs_no_torch_and_no_checkpoint(folder: Path, tmp_path: Path, posviz: Run) -> None:
    ckpt = saved(model_of(config_of("cable")), tmp_path / "m.safetensors")
    direct, again = tmp_path / "direct.png", tmp_path / "again.png"
    assert posviz("capture", "--ckpt", ckpt, "--seq-len", 100, "--out", tmp_path / "x.npz").code == 0
    assert posviz("render", "--ckpt", ckpt, "--seq-len", 100, "--out", direct).code == 0
    ckpt.unlink()
    assert alone("render", "--from", tmp_path / "x.npz", "--out", again) == [str(again), "False False"]
    np.testing.assert_array_equal(pixels(again), pixels(direct))


def test_a_bias_without_tokens_needs_no_torch(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "f.png"
    said = alone("render", "--ckpt", folder / "kerple.safetensors", "--heads", 1, "--seq-len", 50, "--out", out)
    assert said == [str(out), "False False"]
