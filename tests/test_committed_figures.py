"""The committed figures are what the code makes: the same pixels, the same labels."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from posviz import bundled
from posviz.manifest import read_manifest

FIGURES = Path(__file__).parent.parent / "figures"
NAMES = {figure.name: str(figure.request.method) for figure in read_manifest(FIGURES / "figures.toml")}


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The manifest's figures, drawn once more."""
    from posviz.batch import draw_batch
    from posviz.executors import place

    folder = tmp_path_factory.mktemp("figures")
    shutil.copy(FIGURES / "figures.toml", folder)
    figures = read_manifest(folder / "figures.toml")
    results = draw_batch(figures, lambda count: place(1, count), lambda result: None)
    assert [result.status for result in results] == ["done"] * 7
    return folder


def pixels(path: Path) -> np.ndarray:
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB")).astype(int)


def test_the_set_is_the_papers_with_kerple_and_cable() -> None:
    assert sorted(NAMES.values()) == bundled.names()
    numbers = {"dapev2-kerple": 11, "alibi": 12, "fire": 13, "t5": 14, "rope": 15}
    assert {m: int(n.split("-")[1]) for n, m in NAMES.items() if n.startswith("figure")} == numbers


@pytest.mark.parametrize("name", NAMES)
def test_the_committed_pixels_are_made_again(name: str, again: Path) -> None:
    committed, made = pixels(FIGURES / f"{name}.png"), pixels(again / f"{name}.png")
    assert committed.shape == made.shape
    difference = np.abs(committed - made).max(axis=-1)
    if NAMES[name] in ("alibi", "t5"):  # one multiplication, or a look into a table: the same on every machine
        assert difference.max() == 0
        return
    # Another processor or number of threads sums a product in another order or has another logarithm, and a value on
    # the edge between two of the colour map's 256 steps falls to the other side. So: few pixels, and none further
    # than a neighbouring step.
    assert (difference > 0).mean() < 1e-3
    assert difference.max() <= 6


@pytest.mark.parametrize("name", NAMES)
def test_the_committed_labels_are_made_again(name: str, again: Path) -> None:
    if shutil.which("pdftotext") is None and os.environ.get("CI") != "true":
        pytest.skip("pdftotext is not installed")
    texts = [
        subprocess.run(["pdftotext", "-layout", path, "-"], capture_output=True, text=True, check=True).stdout
        for path in (FIGURES / f"{name}.pdf", again / f"{name}.pdf")
    ]
    assert texts[0] == texts[1]
    assert all(f"Head {head}" in texts[0] for head in range(1, 13))


def test_nothing_is_drawn_that_is_up_to_date(posviz: Callable[..., Any]) -> None:
    ran = posviz("batch", FIGURES / "figures.toml", "--dry-run")
    assert [line[:10] for line in ran.out.splitlines()[:7]] == ["up to date"] * 7
