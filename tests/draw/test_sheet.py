"""Figures drawn one after another on a sheet are those drawn each on its own, byte for byte."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from posviz import outputs
from posviz.draw import grid
from posviz.draw.grid import Sheet, draw_grid, reduction_note
from posviz.draw.look import Look
from posviz.stack import HeadStack

T = 24


def noise(seed: int, heads: int = 4, scale: float = 1.0, meta: dict[str, object] | None = None) -> HeadStack:
    values = (scale * np.random.default_rng(seed).normal(size=(heads, T, T))).astype(np.float32)
    values[:, ~np.tri(T, dtype=bool)] = np.nan
    return HeadStack(values, tuple(range(1, heads + 1)), meta=meta or {})


def without(stack: HeadStack, head: int) -> HeadStack:
    values = stack.values.copy()
    values[head] = np.nan
    return HeadStack(values, stack.heads)


LONG = HeadStack(noise(8, heads=3).values, (1, 2, 3), meta={"seq_len": 8 * T, "reduce": "max"}, cell=8)
IN_TURN = [
    (noise(0), Look()),
    (noise(1, scale=1e-7), Look()),  # a power of ten above the bars, and others than before
    (noise(2, scale=3e5), Look()),
    (noise(3).select([4, 2, 3, 1]), Look(cmap="magma")),
    (noise(3), Look(cmap="twilight")),  # a map of 510 colours
    (noise(4), Look(diverging=True)),
    (noise(4), Look(log=True)),  # another scale of the bars
    (noise(4), Look()),
    (without(noise(5), 2), Look()),  # a panel without a bar
    (noise(5), Look(scale="shared")),
    (noise(5), Look(title="One")),  # taller
    (noise(6), Look(title="Two $x$")),
    (noise(6, heads=3), Look(title="Two $x$")),
    (noise(6, heads=3, meta={"seq_len": T}), Look()),
    (HeadStack(noise(7, heads=3).values, (1, 2, 3), meta={"seq_len": 8 * T, "reduce": "max"}, cell=8), Look()),
    (LONG, Look()),
    (HeadStack(noise(8, heads=3).values, (1, 2, 3), meta={"seq_len": 8 * T, "reduce": "min"}, cell=8), Look()),
    (noise(9, heads=3), Look(dpi=300)),
    (LONG, Look(title=reduction_note(LONG))),  # the same words above and below
    (LONG, Look(title="Other words")),
]


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_a_used_sheet_draws_as_a_new_one(suffix: str, tmp_path: Path) -> None:
    sheet = Sheet()
    for number, (stack, look) in enumerate(IN_TURN):
        used = outputs.save_all(stack, look, [tmp_path / f"used.{suffix}"], {}, sheet)[0].read_bytes()
        new = outputs.save_all(stack, look, [tmp_path / f"new.{suffix}"], {})[0].read_bytes()
        assert used == new, number


def test_axes_are_kept_where_figures_are_alike() -> None:
    sheet = Sheet()
    first = sheet.draw(*IN_TURN[0]).axes
    assert sheet.draw(*IN_TURN[1]).axes == first
    assert sheet.draw(*IN_TURN[6]).axes != first


def test_a_figure_that_went_wrong_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sheet = Sheet()
    before = sheet.draw(*IN_TURN[0])
    with monkeypatch.context() as patch:
        patch.setattr(grid, "show_range", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            sheet.draw(*IN_TURN[1])
    assert sheet.draw(*IN_TURN[1]) is not before


def test_a_figure_for_somebody_is_theirs() -> None:
    assert draw_grid(*IN_TURN[0]) is not draw_grid(*IN_TURN[0])


def test_panels_come_first() -> None:
    labels = [axes.get_label() for axes in draw_grid(*IN_TURN[0]).axes]
    assert labels == [""] * 4 + ["<colorbar>"] * 4
