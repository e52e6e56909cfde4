"""Growing lengths: every cell, one range of colours, and the training context marked."""

from __future__ import annotations

import numpy as np
import pytest
from figure_reading import bars, causal_stack, cells_of, colours, panels, pixels_of
from matplotlib.colors import Normalize

from posviz.draw.extrapolate import draw_extrapolation
from posviz.draw.look import Look
from posviz.draw.prepare import coarser
from posviz.errors import OutputError
from posviz.stack import HeadStack


def limits(stacks: list[HeadStack], head: int) -> Normalize:
    both = np.array([stack.limits()[head] for stack in stacks])
    return Normalize(both[:, 0].min(), both[:, 1].max())


def test_every_length_of_a_head_is_drawn_over_one_range():
    stacks = [causal_stack(4, length, seed=length) for length in (16, 32, 64)]
    figure = draw_extrapolation(stacks, 64)  # no longer than trained, so that no line crosses the cells
    pixels = pixels_of(figure)
    named = {axes.get_title(): axes for axes in panels(figure)}
    assert len(named) == 12
    for stack in stacks:
        for head in range(4):
            length = stack.seq_len
            found = cells_of(pixels, named[f"Head {head + 1}, {length}"], length, length)
            assert np.array_equal(found, colours(stack.values[head], limits(stacks, head)))
    assert len(bars(figure)) == 4
    assert bars(figure)[2].get_ylim() == (limits(stacks, 2).vmin, limits(stacks, 2).vmax)


def test_lines_mark_the_training_context_where_it_ends_inside():
    stacks = [causal_stack(1, length) for length in (64, 16, 32)]
    figure = draw_extrapolation(stacks, 20)
    lines = {
        axes.get_title(): [(list(x.get_xdata()), list(x.get_ydata())) for x in axes.lines] for axes in panels(figure)
    }
    assert list(lines) == ["Head 1, 16", "Head 1, 32", "Head 1, 64"]
    assert lines["Head 1, 16"] == []
    assert lines["Head 1, 32"] == lines["Head 1, 64"] == [([19.5, 19.5], [0, 1]), ([0, 1], [19.5, 19.5])]
    assert figure.texts[-1].get_text() == "lines: the training context of 20 positions"


def test_long_sequences_are_reduced_and_say_so():
    short = causal_stack(1, 256)
    meta = {"seq_len": 2048, "key_len": 2048, "reduce": "absmax"}
    reduced = HeadStack(np.zeros((1, 1024, 1024)), (1,), cell=2, ranges=np.array([[-9.0, 9.0]]), meta=meta)
    figure = draw_extrapolation([short, reduced], 256, Look(title="Longer"))
    long = panels(figure)[1]
    assert (long.get_xlim(), long.get_ylim()) == ((-0.5, 2047.5), (2047.5, -0.5))
    assert long.lines[0].get_xdata()[0] == 255.5
    assert "the value farthest from zero of several positions: 4 x 4 at 2048" in figure.texts[-1].get_text()
    assert bars(figure)[0].get_ylim() == (-9, 9)


@pytest.mark.parametrize(("heads", "lengths"), [(1, 2), (3, 3), (6, 3), (5, 4), (2, 7)])
def test_nothing_overlaps_or_leaves_the_figure(heads: int, lengths: int):
    stacks = [causal_stack(heads, 16 * (n + 1)) for n in range(lengths)]
    figure = draw_extrapolation(stacks, 16, Look(title="A title"))
    figure.draw_without_rendering()
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    for box in boxes:
        assert min(box.x0, box.y0) >= 0
        assert box.x1 <= figure.bbox.width
        assert box.y1 <= figure.bbox.height
    assert not any(one.overlaps(other) for n, one in enumerate(boxes) for other in boxes[n + 1 :])


def test_a_stack_becomes_coarser_as_it_was_reduced_before():
    values = np.arange(36, dtype=np.float32).reshape(1, 6, 6)
    values[0, 0, :3] = np.nan
    means = coarser(HeadStack(values, (1,)), 2)
    assert (means.cell, means.seq_len, means.values.shape) == (3, 6, (1, 2, 2))
    assert means.values[0, 0, 0] == pytest.approx(np.mean([6, 7, 8, 12, 13, 14]))
    assert means.limits()[0].tolist() == [3, 35]
    most = coarser(HeadStack(-values, (1,), cell=2, meta={"reduce": "absmax"}), 2)
    assert most.values[0].tolist() == [[-14, -17], [-32, -35]]
    assert most.cell == 6


def test_what_does_not_divide_is_kept():
    found = coarser(HeadStack(np.ones((1, 5, 5)), (1,)), 2)
    assert found.values.tolist() == [[[1, 1], [1, 1]]]
    assert found.seq_len == 5


def test_unequal_heads_and_no_context_are_refused():
    with pytest.raises(OutputError, match="heads differ: length 16 has heads 1, 2, length 32 has heads 1 to 3"):
        draw_extrapolation([causal_stack(2, 16), causal_stack(3, 32)], 16)
    with pytest.raises(OutputError, match="a training context of 0 positions"):
        draw_extrapolation([causal_stack(1, 16)], 0)
