"""The colour bars of the paper's Figures 11 to 15, label for label."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from figure_reading import bar_labels, bars, panels

from posviz import methods, outputs
from posviz.draw.grid import draw_grid
from posviz.draw.look import Look
from posviz.stack import HeadStack

FIGURES = json.loads((Path(__file__).parents[1] / "data" / "paper_figures.json").read_text())["figures"]
FRACTIONS = (0.5, 0.1, 0.9, 0.3, 0.7)  # of a step, which the values reach beyond the outermost labels


def stack_spanning(ranges: list[tuple[float, float]], size: int = 64) -> HeadStack:
    """Twelve heads whose values span exactly these ranges."""
    ramp = np.linspace(0, 1, size * size, dtype=np.float64).reshape(size, size)
    values = np.stack([low + (high - low) * ramp for low, high in ranges]).astype(np.float32)
    values[:, 0, 1:] = np.nan
    return HeadStack(values, tuple(range(1, len(ranges) + 1)))


def ranges_for(labels: dict[str, list[str]], fraction: float) -> list[tuple[float, float]]:
    found = []
    for head in range(1, 13):
        numbers = [float(label) for label in labels[str(head)]]
        reach = fraction * (numbers[0] - numbers[1])
        found.append((numbers[-1] - reach, numbers[0] + reach))
    return found


def test_the_data_are_sixty_panels() -> None:
    assert sorted(FIGURES) == ["11", "12", "13", "14", "15"]
    assert all(sorted(figure["colorbar"], key=int) == [str(h) for h in range(1, 13)] for figure in FIGURES.values())


@pytest.mark.parametrize("number", sorted(FIGURES))
def test_every_colour_bar_shows_the_labels_of_the_paper(number: str) -> None:
    wanted = FIGURES[number]["colorbar"]
    matched: set[str] = set()
    for fraction in FRACTIONS:
        figure = draw_grid(stack_spanning(ranges_for(wanted, fraction)))
        assert figure.get_size_inches() == pytest.approx((12, 16))
        shown = {str(head): labels for head, labels in enumerate(bar_labels(figure), start=1)}
        matched |= {head for head in wanted if shown[head] == wanted[head]}
        if len(matched) == 12:
            break
    assert sorted(matched, key=int) == [str(head) for head in range(1, 13)]


@pytest.fixture(scope="module")
def alibi() -> HeadStack:
    position = np.arange(512)
    block = methods.Block(position[:, None], position[None, :], np)
    bias = np.asarray(methods.get("alibi")(12).bias({}, block), dtype=np.float32)
    visible = position[None, :] <= position[:, None]
    return HeadStack(np.where(visible, bias, np.float32(np.nan)), tuple(range(1, 13)), meta={"seq_len": 512})


def test_alibi_pdf_reads_back_as_figure_12(alibi: HeadStack, tmp_path: Path) -> None:
    """Words with their places, as pdftotext sees them: each belongs to the panel whose bar it stands beside."""
    figure = draw_grid(alibi)
    path = outputs.save_figure(figure, tmp_path / "f.pdf", {})
    page = subprocess.run(["pdftotext", "-bbox", path, "-"], capture_output=True, text=True, check=True).stdout
    number = r'(-?[\d.]+)"'
    word = re.compile(rf'<word xMin="{number} yMin="{number} xMax="{number} yMax="{number}>([^<]*)</word>')
    words = [(*(float(edge) for edge in m[:4]), m[4].replace("\N{MINUS SIGN}", "-")) for m in word.findall(page)]
    wanted = FIGURES["12"]["colorbar"]
    for head, bar in enumerate(bars(figure), start=1):
        box = bar.get_position()
        right, top, bottom = box.x1 * 12 * 72, (1 - box.y1) * 16 * 72, (1 - box.y0) * 16 * 72
        beside = [w for w in words if right < w[0] < right + 36 and top - 8 < (w[1] + w[3]) / 2 < bottom + 8]
        assert [w[4] for w in sorted(beside, key=lambda w: w[1])] == wanted[str(head)], f"head {head}"
    assert [w[4] for w in words].count("Head") == 12


def test_axes_are_those_of_the_paper(alibi: HeadStack) -> None:
    figure = draw_grid(alibi, Look())
    figure.draw_without_rendering()
    assert [axes.get_title() for axes in panels(figure)] == [f"Head {head}" for head in range(1, 13)]
    for axes, bar in zip(panels(figure), bars(figure), strict=True):
        for axis in (axes.xaxis, axes.yaxis):
            assert [label.get_text() for label in axis.get_ticklabels()] == ["0", "100", "200", "300", "400", "500"]
        assert axes.get_xlim() == (-0.5, 511.5)
        assert axes.get_ylim() == (511.5, -0.5)  # query 0 on top
        panel, beside = axes.get_position(), bar.get_position()
        assert (beside.y0, beside.y1) == pytest.approx((panel.y0, panel.y1))
        assert beside.x0 > panel.x1
    tops = [round(axes.get_position().y1, 6) for axes in panels(figure)]
    assert len(set(tops)) == 4
    assert tops == sorted(tops, reverse=True)
