"""What stands in and around the panels."""

from __future__ import annotations

import sys
from itertools import combinations
from subprocess import run

import matplotlib
import numpy as np
import pytest
from figure_reading import bar_labels, bars, causal_stack, panels, pixels_of
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from posviz.draw.grid import draw_grid
from posviz.draw.look import Look
from posviz.errors import OutputError
from posviz.stack import HeadStack


def long_stack(seq_len: int, cell: int, reduce: str = "mean") -> HeadStack:
    cells = -(-seq_len // cell)
    ramp = np.arange(cells * cells, dtype=np.float32).reshape(1, cells, cells)
    meta = {"seq_len": seq_len, "key_len": seq_len, "reduce": reduce}
    return HeadStack(ramp, (1,), meta=meta, cell=cell, ranges=np.array([[-1, cells**2]], dtype=np.float32))


def text_boxes(figure: Figure) -> list[tuple[str, Bbox]]:
    """Every visible text of a figure and the pixels that it takes."""
    figure.draw_without_rendering()
    found = []
    for axes in figure.axes:
        found.append((axes.get_title(), axes.title.get_window_extent()))
        for axis in (axes.xaxis, axes.yaxis):
            limits = sorted(axis.get_view_interval())
            found.append((axis.offsetText.get_text(), axis.offsetText.get_window_extent()))
            found += [
                (label.get_text(), label.get_window_extent())
                for tick in axis.get_major_ticks()
                for label in (tick.label1, tick.label2)
                if label.get_visible() and limits[0] <= tick.get_loc() <= limits[1]
            ]
    found += [(text.get_text(), text.get_window_extent()) for text in figure.texts]
    return [(text, box) for text, box in found if text]


def assert_tidy(figure: Figure) -> None:
    """No text leaves the figure, touches another text or covers a panel or a bar."""
    boxes = text_boxes(figure)
    width, height = figure.bbox.size
    for text, box in boxes:
        assert box.x0 >= 0, text
        assert box.y0 >= 0, text
        assert box.x1 <= width, text
        assert box.y1 <= height, text
        for axes in figure.axes:
            assert not box.overlaps(axes.get_window_extent()), text
    for (text, box), (other, beside) in combinations(boxes, 2):
        assert not box.overlaps(beside), (text, other)


@pytest.mark.parametrize(
    ("heads", "rows", "columns"),
    [
        *((1, 1, 1), (2, 1, 2), (3, 1, 3), (4, 2, 2), (5, 3, 2), (6, 3, 2), (7, 4, 2), (8, 4, 2)),
        *((10, 4, 3), (12, 4, 3), (16, 4, 4), (20, 5, 4), (25, 5, 5), (32, 8, 4)),
    ],
)
def test_heads_fill_a_grid_of_equal_panels(heads: int, rows: int, columns: int) -> None:
    figure = draw_grid(causal_stack(heads, 8))
    assert figure.get_size_inches() == pytest.approx((4 * columns, 4 * rows))
    sizes = {tuple(np.round(axes.get_window_extent().size, 3)) for axes in panels(figure)}
    assert len(sizes) == 1
    assert len(panels(figure)) == len(bars(figure)) == heads


def test_selected_heads_keep_their_numbers() -> None:
    figure = draw_grid(causal_stack(12, 8).select([7, 2]))
    assert [axes.get_title() for axes in panels(figure)] == ["Head 7", "Head 2"]


@pytest.mark.parametrize("scale", [-20.1, -1.9, -0.19, -0.019, 0.00042, 7.3e5, -312.0])
@pytest.mark.parametrize("length", [512, 1024])
def test_nothing_collides(scale: float, length: int) -> None:
    """Small stacks that say they stand for long ones: the same labels, quicker."""
    share = np.random.default_rng(0).random((4, 64, 64))
    share[:, 0, :2] = 0, 1
    values = (share * scale).astype(np.float32)
    stack = HeadStack(values, (1, 2, 3, 4), meta={"seq_len": length, "reduce": "mean"}, cell=length // 64)
    assert_tidy(draw_grid(stack, Look(title="A title of some length, which takes more than a line of a figure " * 2)))


def test_a_title_makes_the_figure_higher_and_moves_no_panel() -> None:
    stack = causal_stack(12, 64)
    plain, titled = draw_grid(stack), draw_grid(stack, Look(title="cost: $5 or $6"))
    assert_tidy(titled)
    assert titled.get_suptitle() == "cost: $5 or $6"
    assert titled.get_size_inches()[0] == 12
    assert titled.get_size_inches()[1] > 16
    np.testing.assert_allclose(
        [axes.get_window_extent().extents for axes in panels(plain)],
        [axes.get_window_extent().extents for axes in panels(titled)],
        atol=1e-3,
    )


@pytest.mark.parametrize(
    ("reduce", "says"),
    [("mean", "the mean of"), ("max", "the greatest of"), ("min", "the least of"), ("absmax", "farthest from zero of")],
)
def test_a_reduced_figure_says_so(reduce: str, says: str) -> None:
    figure = draw_grid(long_stack(16384, 16 * 32, reduce))
    assert says in _note(figure)
    assert "512 x 512 positions" in _note(figure)
    assert_tidy(figure)


def _note(figure: Figure) -> str:
    return figure.texts[-1].get_text()


def test_a_whole_figure_says_nothing_below() -> None:
    assert not draw_grid(causal_stack(1, 8)).texts


def test_ticks_of_a_reduced_stack_are_positions() -> None:
    """1000 positions in cells of 16: the last cell reaches beyond the sequence, the ticks do not."""
    axes = panels(draw_grid(long_stack(1000, 16)))[0]
    assert axes.get_xlim() == (-0.5, 63 * 16 - 0.5)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "200", "400", "600", "800"]
    assert list(axes.get_yticks()) == [0, 200, 400, 600, 800]


def test_long_axes_count_in_thousands() -> None:
    axes = panels(draw_grid(long_stack(16384, 512)))[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["0", "5k", "10k", "15k"]


def test_shared_scale_shows_the_same_bar_everywhere() -> None:
    first, *others = bar_labels(draw_grid(causal_stack(4, 64), Look(scale="shared")))
    assert others == [first] * 3


def test_heads_without_range_or_values_are_drawn() -> None:
    values = np.zeros((4, 8, 8), dtype=np.float32)
    values[1] = np.nan
    values[2] = -3.5
    values[3, 0, 0] = np.inf
    for look in (Look(), Look(log=True), Look(diverging=True), Look(scale="shared"), Look(log=True, scale="shared")):
        figure = draw_grid(HeadStack(values, (1, 2, 3, 4)), look)
        assert len(panels(figure)) == 4
        assert len(bars(figure)) == 3
        pixels_of(figure)
    nothing = draw_grid(HeadStack(np.full((1, 4, 4), np.nan, dtype=np.float32), (1,)), Look(scale="shared", log=True))
    assert not bars(nothing)


def test_an_empty_stack_is_refused() -> None:
    with pytest.raises(OutputError, match="nothing to draw: 0 heads"):
        draw_grid(HeadStack(np.zeros((0, 4, 4), dtype=np.float32), ()))


def test_the_users_settings_neither_change_nor_matter() -> None:
    stack = causal_stack(1, 16)
    before = pixels_of(draw_grid(stack))
    with matplotlib.rc_context({"image.origin": "lower", "axes.titlesize": 30, "figure.facecolor": "red"}):
        settings = dict(matplotlib.rcParams)
        figure = draw_grid(stack)
        assert dict(matplotlib.rcParams) == settings
    np.testing.assert_array_equal(pixels_of(figure), before)


def test_drawing_uses_no_pyplot() -> None:
    code = (
        "import sys, numpy as np; from posviz.stack import HeadStack; from posviz.draw.look import Look; Look();"
        "assert 'matplotlib' not in sys.modules;"
        "from posviz.draw.grid import draw_grid; draw_grid(HeadStack(np.ones((1, 4, 4)), (1,)));"
        "assert not {'matplotlib.pyplot', 'torch'} & set(sys.modules)"
    )
    run([sys.executable, "-c", code], check=True)
