"""PNG files of our own making, read by somebody else's reader."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from posviz.outputs.png_file import ROWS, write_png


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (ROWS, 2), (ROWS + 1, 301), (3 * ROWS - 1, 64)])
@pytest.mark.parametrize("flat", [True, False])  # one colour compresses to almost nothing, noise to nothing less
def test_pixels_come_back(shape: tuple[int, int], flat: bool, tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (*shape, 4), dtype=np.uint8)
    if flat:
        pixels[:] = pixels[0, 0]
    write_png(tmp_path / "a.png", pixels, 100, {})
    with Image.open(tmp_path / "a.png") as picture:
        picture.verify()  # every checksum
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.mode == "RGB"
        assert np.array_equal(np.asarray(picture), pixels[..., :3])


def test_a_part_of_a_picture_needs_no_copy(tmp_path: Path) -> None:
    whole = np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)
    write_png(tmp_path / "a.png", whole[3:30:2, 5:50], 100, {})
    with Image.open(tmp_path / "a.png") as picture:
        assert np.array_equal(np.asarray(picture), whole[3:30:2, 5:50])


def test_texts_and_resolution(tmp_path: Path) -> None:
    texts = {"Software": "posviz", "Title": "größe 語", "empty": "", "long": "x" * 100_000}
    write_png(tmp_path / "a.png", np.zeros((2, 2, 3), np.uint8), 185, texts)
    with Image.open(tmp_path / "a.png") as picture:
        assert {key: str(picture.text[key]) for key in texts} == texts
        assert picture.info["dpi"] == pytest.approx((185, 185), abs=0.02)
