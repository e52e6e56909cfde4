"""One head's figure: pixels of both heatmaps, the curves' data, the tokens."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from figure_reading import causal_stack, cells_of, colours, panels, pixels_of
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from posviz.draw.curves import token_label
from posviz.draw.head import draw_head
from posviz.draw.look import Look
from posviz.errors import OutputError
from posviz.stack import HeadStack
from posviz.stats import head_stats, profile

TOKENS = ("The", " cat", "\n", "$", "Ġdog", "\t", "中", "a_very_long_token_indeed")


def one_head(length: int = 48, **fields: object) -> HeadStack:
    return replace(causal_stack(3, length, quantity="bias").select([2]), **fields)


def drawn(stack: HeadStack, look: Look = Look(), window: tuple[int, int] | None = None) -> Figure:  # noqa: B008
    return draw_head(stack, head_stats(stack)[0], look, window)


def titled(figure: Figure, title: str) -> Axes:
    (found,) = [axes for axes in figure.axes if axes.get_title() == title]
    return found


@pytest.mark.parametrize("length", [7, 48, 100, 512, 700])
def test_every_cell_has_the_colour_of_its_value(length: int):
    stack = one_head(length)
    figure = drawn(stack)
    found = cells_of(pixels_of(figure), titled(figure, "Head 2"), length, length)
    assert np.array_equal(found, colours(stack.values[0], Normalize(*stack.limits()[0])))


def test_the_window_shows_its_own_cells_in_its_own_range():
    stack = one_head(48)
    figure = drawn(stack, window=(20, 31))
    part = stack.values[0, 20:31, 20:31]
    axes = titled(figure, "Positions 20 to 30")
    found = cells_of(pixels_of(figure), axes, 11, 11)
    assert np.array_equal(found, colours(part, Normalize(np.nanmin(part), np.nanmax(part))))
    assert (axes.get_xlim(), axes.get_ylim()) == ((19.5, 30.5), (30.5, 19.5))


def test_the_window_is_outlined_in_the_whole():
    figure = drawn(one_head(48), window=(20, 31))
    (line,) = titled(figure, "Head 2").lines
    assert sorted(set(line.get_xdata())) == [19.5, 30.5]
    assert sorted(set(line.get_ydata())) == [19.5, 30.5]


def test_tokens_name_the_window_with_blanks_made_visible():
    stack = one_head(8, tokens=TOKENS)
    axes = titled(drawn(stack, window=(0, 8)), "Positions 0 to 7")
    shown = ["The", "␣cat", "↵", "$", "␣dog", "→", "□", "a_very_long…"]
    for axis in (axes.xaxis, axes.yaxis):
        assert [label.get_text() for label in axis.get_ticklabels()] == shown
        assert list(axis.get_ticklocs()) == list(range(8))


def test_labels_of_a_wide_window_do_not_touch():
    stack = one_head(200, tokens=tuple(f"t{n}" for n in range(200)))
    figure = drawn(stack, window=(10, 190))
    figure.draw_without_rendering()
    labels = titled(figure, "Positions 10 to 189").yaxis.get_ticklabels()
    boxes = [label.get_window_extent() for label in labels]
    assert 20 < len(labels) < 180
    assert all(lower.y1 <= upper.y0 + 1 for upper, lower in pairwise(boxes))
    assert labels[1].get_text() == f"t{round(labels[1].get_position()[1])}"


def test_the_profile_is_drawn_with_its_band_and_its_best_law():
    stack = one_head(48)
    axes = titled(drawn(stack), "Over distance")
    over = profile(stack)
    assert np.array_equal(axes.lines[0].get_ydata(), over.median[0])
    band = axes.collections[0].get_paths()[0].vertices
    assert band[:, 1].min() == pytest.approx(over.low[0].min())
    assert band[:, 1].max() == pytest.approx(over.high[0].max())
    assert [text.get_text() for text in axes.get_legend().get_texts()][:2] == ["5% to 95% of queries", "median"]
    assert np.allclose(axes.lines[1].get_ydata(), head_stats(stack)[0].fit.curve(over.distance))


def test_rows_are_some_queries_with_the_last():
    stack = one_head(48, tokens=tuple("x" * 48))
    axes = titled(drawn(stack), "Some queries over their keys")
    assert [line.get_label() for line in axes.lines] == [f"query {n}  x" for n in (11, 23, 35, 47)]
    assert np.array_equal(axes.lines[-1].get_ydata(), stack.values[0, 47], equal_nan=True)


def test_a_reduced_stack_is_drawn_from_its_means_and_says_so():
    whole = causal_stack(1, 16, quantity="bias")
    mean = np.linspace(0, -1, 64, dtype=np.float32)[None]
    stack = replace(whole, cell=4, profile=mean, meta={"seq_len": 64, "key_len": 64, "quantity": "bias"})
    figure = drawn(stack)
    assert [text.get_text() for text in figure.texts] == ["each cell is the mean of 4 x 4 positions"]
    assert np.array_equal(titled(figure, "Over distance").lines[0].get_ydata(), mean[0])
    assert titled(figure, "Some queries over their keys").lines[-1].get_label() == "queries 60 to 63"


def test_cross_attention_says_why_it_has_no_profile():
    figure = drawn(HeadStack(np.zeros((1, 5, 7)), (1,), meta={"seq_len": 5, "key_len": 7}))
    (text,) = titled(figure, "Over distance").texts
    assert "there is no distance between them" in text.get_text().replace("\n", " ")


def test_title_and_numbers_stand_above():
    figure = drawn(one_head(), Look(title="Costs $5 and $6"))
    assert figure.get_suptitle() == "Costs $5 and $6"
    (line,) = (text.get_text() for text in figure.texts if text.get_text() != figure.get_suptitle())
    names = [word for word in line.split() if word[0].isalpha()]
    assert names == ["uniformity", "reach50", "reach90", "entropy", "sink", "previous"]


def test_every_text_is_inside_the_figure():
    stack = one_head(60, tokens=tuple("incomprehensibly" for _ in range(60)))
    figure = drawn(stack, Look(title="A title"), (10, 50))
    figure.draw_without_rendering()
    width, height = figure.bbox.size
    for axes in figure.axes:
        box = axes.get_tightbbox()
        assert box.x0 >= 0, axes.get_title()
        assert box.y0 >= 0, axes.get_title()
        assert box.x1 <= width, axes.get_title()
        assert box.y1 <= height, axes.get_title()
    inner = [axes.get_tightbbox() for axes in panels(figure)]
    assert not any(a.overlaps(b) for n, a in enumerate(inner) for b in inner[n + 1 :])


@pytest.mark.parametrize("window", [(30, 30), (40, 20), (-1, 5), (0, 49)])
def test_a_window_outside_is_refused(window: tuple[int, int]):
    with pytest.raises(OutputError, match=r"the window .* does not lie in the 48 positions; expected START:END"):
        drawn(one_head(48), window=window)


def test_a_window_into_a_reduced_stack_is_refused():
    with pytest.raises(OutputError, match="cells are 2 x 2 positions"):
        drawn(one_head(48, cell=2, meta={"seq_len": 96, "key_len": 96}), window=(0, 4))


def test_several_heads_are_refused():
    stack = causal_stack(2, 8)
    with pytest.raises(OutputError, match="a stack of 2 heads; expected the one to look at"):
        draw_head(stack, head_stats(stack)[0], Look())


def test_a_token_without_a_glyph_is_a_box_and_no_warning(recwarn: pytest.WarningsRecorder):
    pixels_of(drawn(one_head(8, tokens=TOKENS), window=(0, 8)))
    assert token_label("語") == "□"
    assert [str(warning.message) for warning in recwarn if "Glyph" in str(warning.message)] == []
