"""The terminal's picture, read back from its escape codes."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
from matplotlib import colormaps

from posviz.draw.preview import VIRIDIS, preview
from posviz.errors import OutputError

Pixel = tuple[int, int, int] | None


def read_back(text: str) -> list[list[Pixel]]:
    """Two rows of pixels from every line; None where the terminal's own ground is left."""
    rows: list[list[Pixel]] = []
    for line in text.split("\n"):
        front: Pixel = None
        ground: Pixel = None
        upper: list[Pixel] = []
        lower: list[Pixel] = []
        for code, character in re.findall(r"\x1b\[([\d;]*)m|(.)", line):
            if character:
                upper.append(front if character == "▀" else ground)
                lower.append(front if character == "▄" else ground)
            elif code == "0":
                front = ground = None
            elif code.startswith("38;2;"):
                front = tuple(map(int, code.split(";")[2:]))  # type: ignore[assignment]
            else:
                ground = tuple(map(int, code.split(";")[2:]))  # type: ignore[assignment]
        assert (front, ground) == (None, None), "a line must not colour what follows it"
        rows += [upper, lower]
    return rows


def test_each_pixel_has_the_colour_of_its_value():
    values = np.linspace(0, 1, 36).reshape(6, 6)
    found = np.array(read_back(preview(values, 6)))
    wanted = colormaps["viridis"](values, bytes=True)[..., :3].astype(int)
    assert np.abs(found - wanted).max() <= 8  # mixed from seventeen


def test_the_future_is_blank():
    values = np.where(np.tri(7, dtype=bool), 1.0, np.nan)
    rows = read_back(preview(values, 7))
    assert len(rows) == 8
    for query in range(7):
        seen = [pixel is not None for pixel in rows[query]]
        assert seen[: query + 1] == [True] * (query + 1)
        assert not any(seen[query + 1 :])
    assert not any(rows[7])


def test_a_large_matrix_is_averaged_over_what_is_seen():
    values = np.full((64, 64), np.nan)
    values[:32, :32], values[32:, :32], values[40, 50] = 0, 4, 8
    rows = read_back(preview(values, 2))
    ends = tuple(VIRIDIS[0]), tuple(VIRIDIS[8]), tuple(VIRIDIS[-1])
    assert rows[0] == [ends[0], None]
    assert rows[1] == [ends[1], ends[2]]


@pytest.mark.parametrize(
    ("shape", "width", "expected"), [((512, 512), 64, (64, 64)), ((5, 5), 64, (6, 5)), ((8, 32), 16, (4, 16))]
)
def test_size(shape: tuple[int, int], width: int, expected: tuple[int, int]):
    rows = read_back(preview(np.ones(shape), width))
    assert (len(rows), max(map(len, rows))) == expected


def test_nothing_to_see_is_blank_and_a_constant_is_not():
    assert not any(any(row) for row in read_back(preview(np.full((4, 4), np.nan))))
    assert {pixel for row in read_back(preview(np.full((4, 4), 7.0))) for pixel in row} == {tuple(VIRIDIS[8])}


def test_no_matplotlib_is_needed():
    code = "import sys, numpy, posviz.draw.preview as p; p.preview(numpy.eye(4)); print('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_bad_shapes_are_refused():
    with pytest.raises(OutputError, match=r"a preview of shape \(2, 3, 3\)"):
        preview(np.zeros((2, 3, 3)))
    with pytest.raises(OutputError, match="0 characters wide"):
        preview(np.zeros((3, 3)), 0)
