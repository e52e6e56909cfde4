"""In a raster every cell is a whole number of pixels and has exactly the colour of its value."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from figure_reading import causal_stack, cells_of, colours, panels, pixels_of
from matplotlib.colors import LogNorm, Normalize, SymLogNorm
from PIL import Image

from posviz import outputs
from posviz.draw.grid import draw_grid
from posviz.draw.look import Look
from posviz.stack import HeadStack


def own_range(values: np.ndarray) -> Normalize:
    return Normalize(np.nanmin(values), np.nanmax(values))


def test_every_cell_of_twelve_heads_reads_back_from_the_png(tmp_path: Path) -> None:
    stack = causal_stack(12, 512)
    figure = draw_grid(stack)
    with Image.open(outputs.save_figure(figure, tmp_path / "fig.png", {})) as picture:
        assert picture.size == tuple(round(side * figure.dpi) for side in (12, 16))
        pixels = np.asarray(picture)
    for axes, values in zip(panels(figure), stack.values, strict=True):
        cells = cells_of(pixels, axes, 512, 512)
        np.testing.assert_array_equal(cells, colours(values, own_range(values)))
        assert (cells[np.triu_indices(512, 1)] == 255).all()  # the future is blank


@pytest.mark.parametrize(
    ("heads", "queries", "keys", "dpi"),
    [
        (3, 100, None, None),
        (4, 77, None, None),
        (1, 1000, None, None),
        (2, 1024, None, None),
        (5, 33, None, 301.5),
        (2, 512, 100, None),  # cross-attention, far from square
        (2, 70, 111, None),
        (2, 2, 3, 96),
    ],
)
def test_cells_are_whole_pixels_at_any_size(heads: int, queries: int, keys: int | None, dpi: float | None) -> None:
    stack = causal_stack(heads, queries, keys)
    figure = draw_grid(stack, Look(dpi=dpi))
    assert figure.dpi >= (dpi or 0)
    pixels = pixels_of(figure)
    assert pixels.shape[1::-1] == pytest.approx(figure.get_size_inches() * figure.dpi)
    for axes, values in zip(panels(figure), stack.values, strict=True):
        np.testing.assert_array_equal(cells_of(pixels, axes, *values.shape), colours(values, own_range(values)))


def test_shared_scale_gives_equal_values_equal_colours() -> None:
    stack = causal_stack(3, 40)
    figure = draw_grid(stack, Look(scale="shared"))
    pixels, norm = pixels_of(figure), own_range(stack.values)
    for axes, values in zip(panels(figure), stack.values, strict=True):
        np.testing.assert_array_equal(cells_of(pixels, axes, 40, 40), colours(values, norm))


def test_diverging_puts_zero_in_the_middle() -> None:
    values = np.array([[[0, 1, 2], [-0.5, -4, 0], [3, 0, 0]]], dtype=np.float32)
    figure = draw_grid(HeadStack(values, (1,)), Look(diverging=True))
    cells = cells_of(pixels_of(figure), panels(figure)[0], 3, 3)
    np.testing.assert_array_equal(cells, colours(values[0], Normalize(-4, 4), "RdBu_r"))
    assert np.ptp(cells[0, 0].astype(int)) <= 2  # zero is grey


def test_log_of_weights_spans_decades_and_draws_zero() -> None:
    values = np.array([[[1, np.nan, np.nan], [1e-4, 0, np.nan], [0.5, 0.5, 0]]], dtype=np.float32)
    figure = draw_grid(HeadStack(values, (1,)), Look(log=True))
    cells = cells_of(pixels_of(figure), panels(figure)[0], 3, 3)
    wanted = colours(np.where(values[0] == 0, np.float32(1e-4), values[0]), LogNorm(np.float32(1e-4), 1))
    np.testing.assert_array_equal(cells, wanted)


def test_log_of_signed_values_is_linear_near_zero() -> None:
    stack = causal_stack(1, 30)
    low, high = float(np.nanmin(stack.values)), float(np.nanmax(stack.values))
    figure = draw_grid(stack, Look(log=True))
    norm = SymLogNorm(0.01 * max(-low, high), vmin=low, vmax=high, base=10)
    np.testing.assert_array_equal(
        cells_of(pixels_of(figure), panels(figure)[0], 30, 30), colours(stack.values[0], norm)
    )


def test_a_chosen_colour_map_is_used() -> None:
    stack = causal_stack(1, 20)
    figure = draw_grid(stack, Look(cmap="magma"))
    wanted = colours(stack.values[0], own_range(stack.values), "magma")
    np.testing.assert_array_equal(cells_of(pixels_of(figure), panels(figure)[0], 20, 20), wanted)


def test_a_reduced_stack_keeps_the_colours_of_the_whole_range() -> None:
    values = np.array([[[1, np.nan, np.nan], [2, 3, np.nan], [4, 5, 6]]], dtype=np.float32)
    ranges = np.array([[0, 10]], dtype=np.float32)
    stack = HeadStack(values, (1,), meta={"seq_len": 47, "reduce": "mean"}, cell=16, ranges=ranges)
    figure = draw_grid(stack)
    cells = cells_of(pixels_of(figure), panels(figure)[0], 3, 3)
    np.testing.assert_array_equal(cells, colours(values[0], Normalize(0, 10)))
