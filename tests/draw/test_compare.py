"""Stacks side by side: the curves' data, labels and colours, and the difference of two."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from figure_reading import bar_labels, causal_stack, cells_of, colours, panels, pixels_of
from matplotlib.colors import Normalize, to_hex
from matplotlib.figure import Figure

from posviz.draw.compare import difference, draw_difference, draw_profiles, draw_steps
from posviz.draw.look import Look
from posviz.errors import OutputError
from posviz.stats import profile

A = causal_stack(4, 24, seed=1, quantity="bias")
B = causal_stack(4, 24, seed=2, quantity="bias")


def legend_of(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def assert_inside(figure: Figure) -> None:
    figure.draw_without_rendering()
    width, height = figure.bbox.size
    boxes = [part.get_tightbbox() for part in (*figure.axes, *figure.legends)]
    for box in boxes:
        assert min(box.x0, box.y0) >= 0
        assert box.x1 <= width
        assert box.y1 <= height
    assert not any(one.overlaps(other) for n, one in enumerate(boxes) for other in boxes[n + 1 :])


def test_a_panel_per_head_and_a_curve_per_stack():
    figure = draw_profiles([A, B], ["one", "two"])
    assert [axes.get_title() for axes in figure.axes] == ["Head 1", "Head 2", "Head 3", "Head 4"]
    assert legend_of(figure) == ["one", "two"]
    for head, axes in enumerate(figure.axes):
        for line, stack in zip(axes.lines, (A, B), strict=True):
            assert np.array_equal(line.get_ydata(), profile(stack).median[head])
    assert len(figure.axes[0].collections) == 2


def test_more_than_three_have_no_bands():
    figure = draw_profiles([A, B, A, B], list("abcd"))
    assert len(figure.axes[0].collections) == 0
    assert figure.texts[-1].get_text() == "curves: median over queries"


def test_stacks_of_other_lengths_keep_their_own_distances():
    longer = causal_stack(4, 40, quantity="bias")
    first, second = draw_profiles([A, longer], ["a", "b"]).axes[0].lines
    assert (first.get_xdata().max(), second.get_xdata().max()) == (23, 39)


def test_different_quantities_are_named():
    scores = replace(B, meta={**B.meta, "quantity": "scores"})
    figure = draw_profiles([A, scores], ["alibi", "rope"])
    assert legend_of(figure) == ["alibi (bias)", "rope (scores)"]
    assert figure.axes[0].get_ylabel() == "value"


def test_a_shared_scale_is_shared():
    figure = draw_profiles([A, B], ["a", "b"], Look(scale="shared"))
    assert len({axes.get_ylim() for axes in figure.axes}) == 1
    assert len({axes.get_ylim() for axes in draw_profiles([A, B], ["a", "b"]).axes}) == 4


@pytest.mark.parametrize("heads", [1, 2, 5, 12])
def test_nothing_overlaps_or_leaves_the_figure(heads: int):
    stacks = [causal_stack(heads, 24, seed=n, quantity="bias") for n in range(5)]
    labels = [f"runs/a-rather-long-name-{n}.safetensors" for n in range(5)]
    assert_inside(draw_profiles(stacks, labels, Look(title="A title")))
    assert_inside(draw_steps(stacks, [0, 10, 100, 1000, 10_000], look=Look(title="A title")))


def test_steps_go_from_dark_to_light_in_their_order():
    figure = draw_steps([A, B], [2000, 100])
    (bar,) = [axes for axes in figure.axes if axes.get_label() == "<steps>"]
    assert [label.get_text() for label in bar.get_xticklabels()] == ["100", "2000"]
    early, late = panels(figure)[0].lines
    assert np.array_equal(early.get_ydata(), profile(B).median[0])
    assert [to_hex(colour) for colour in bar.images[0].get_array()[0]] == [early.get_color(), late.get_color()]
    assert sum(bytes.fromhex(early.get_color()[1:])) < sum(bytes.fromhex(late.get_color()[1:]))


def test_steps_can_be_named_and_many_are_thinned():
    figure = draw_steps([A] * 40, range(40), [f"step {n}" for n in range(40)])
    (bar,) = [axes for axes in figure.axes if axes.get_label() == "<steps>"]
    names = [label.get_text() for label in bar.get_xticklabels()]
    assert names[0] == "step 0"
    assert 2 <= len(names) <= 12


def test_the_difference_is_centred_at_zero_in_every_cell():
    figure = draw_difference(A, B, Look(title="a - b"))
    pixels = pixels_of(figure)
    for head, axes in enumerate(panels(figure)):
        values = A.values[head] - B.values[head]
        most = np.nanmax(np.abs(values))
        wanted = colours(values, Normalize(-most, most), "RdBu_r")
        assert np.array_equal(cells_of(pixels, axes, 24, 24), wanted)
    assert all("0" in [label.strip("0.") or "0" for label in labels] for labels in bar_labels(figure))


def test_the_difference_of_a_stack_with_itself_is_zero():
    assert np.nanmax(np.abs(difference(A, A).values)) == 0
    assert np.array_equal(np.isnan(difference(A, B).values), np.isnan(A.values))


def test_unequal_heads_are_refused():
    fewer = B.select([1, 2])
    line = r"heads differ: a has heads 1 to 4, b has heads 1, 2; expected the same heads .* --heads"
    with pytest.raises(OutputError, match=line):
        draw_profiles([A, fewer], ["a", "b"])
    with pytest.raises(OutputError, match="heads differ: the first has heads 1 to 4"):
        draw_difference(A, fewer)


def test_unequal_lengths_cannot_be_subtracted():
    with pytest.raises(OutputError, match="lengths differ: the first has 24 positions, the second 30"):
        draw_difference(A, causal_stack(4, 30, quantity="bias"))


def test_unequal_quantities_cannot_be_subtracted():
    with pytest.raises(OutputError, match="the first shows bias, the second scores; expected one quantity"):
        draw_difference(A, replace(B, meta={**B.meta, "quantity": "scores"}))


def test_extremes_of_cells_cannot_be_subtracted():
    reduced = replace(A, cell=2, meta={"seq_len": 48, "key_len": 48, "quantity": "bias", "reduce": "absmax"})
    with pytest.raises(OutputError, match="extreme of 2 x 2 positions"):
        draw_difference(reduced, reduced)


def test_a_label_for_each():
    with pytest.raises(OutputError, match="2 stacks and 1 labels"):
        draw_profiles([A, B], ["a"])
    with pytest.raises(OutputError, match="0 stacks"):
        draw_steps([], [])
