"""A run as a GIF: its frames, its one scale of colours, its recipe."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from figure_reading import causal_stack
from PIL import Image

from posviz.draw.animate import save_animation
from posviz.draw.look import Look
from posviz.draw.prepare import over_one_range
from posviz.errors import OutputError

BASE = causal_stack(2, 12)


def frames(path: Path) -> list[np.ndarray]:
    with Image.open(path) as picture:
        found = []
        for n in range(picture.n_frames):
            picture.seek(n)
            found.append(np.asarray(picture.convert("RGB")))
        return found


def constant(value: float):
    return replace(BASE, values=np.where(np.isnan(BASE.values), np.nan, value))


def test_a_frame_for_each_step_and_the_recipe_inside(tmp_path: Path):
    path = save_animation([BASE, constant(1), constant(3)], ["0", "1", "2"], Look(), tmp_path / "run.gif", {"seed": 7})
    assert len(frames(path)) == 3
    with Image.open(path) as picture:
        assert json.loads(picture.info["comment"]) == {"posviz": {"seed": 7}}
        assert picture.info["loop"] == 0


def test_a_value_has_the_same_colour_in_every_frame(tmp_path: Path):
    stacks = [constant(0), constant(5), constant(10), constant(5)]
    path = save_animation(stacks, list("abca"), Look(), tmp_path / "run.gif", {})
    shown = frames(path)
    assert np.array_equal(shown[1][200:], shown[3][200:])  # below the title, which is another
    least, greatest = (
        [int((np.abs(frame.astype(int) - colour).sum(axis=2) < 12).sum()) for frame in shown]
        for colour in ((68, 1, 84), (253, 231, 36))  # the two ends of the map, which are in every bar
    )
    assert least[0] > 10 * max(least[1:])
    assert greatest[2] > 10 * max(greatest[0], greatest[1], greatest[3])


def test_one_range_spans_all_frames_and_a_logarithm_starts_at_one_place():
    low, high = causal_stack(2, 8, seed=1), causal_stack(2, 8, seed=2)
    ranges = [stack.limits() for stack in over_one_range([low, high], log=False)]
    assert np.array_equal(ranges[0], ranges[1])
    assert ranges[0][1, 0] == min(low.limits()[1, 0], high.limits()[1, 0])
    weights = [replace(low, values=np.abs(low.values) * (low.values > 0)), replace(low, values=np.abs(low.values))]
    first, second = over_one_range(weights, log=True)
    assert first.limits()[0, 0] == second.limits()[0, 0] == np.nanmin(np.abs(low.values[0]))


def test_the_same_call_makes_the_same_bytes(tmp_path: Path):
    stacks, paths = [BASE, constant(1)], [tmp_path / "1.gif", tmp_path / "2.gif"]
    first, second = (save_animation(stacks, ["a", "b"], Look(title="t"), path, {}) for path in paths)
    assert first.read_bytes() == second.read_bytes()


def test_a_failure_leaves_the_old_file(tmp_path: Path):
    path = tmp_path / "run.gif"
    path.write_bytes(b"old")
    with pytest.raises(OutputError, match="a recipe holds a set"):
        save_animation([BASE], ["a"], Look(), path, {"bad": {1}})
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_bad_input_is_refused_before_anything_is_drawn(tmp_path: Path):
    with pytest.raises(OutputError, match=r"unknown kind of file '.mp4'"):
        save_animation([BASE], ["a"], Look(), tmp_path / "run.mp4", {})
    with pytest.raises(OutputError, match="frames of 12 and 16 positions"):
        save_animation([BASE, causal_stack(2, 16)], ["a", "b"], Look(), tmp_path / "run.gif", {})
    with pytest.raises(OutputError, match="heads differ"):
        save_animation([BASE, BASE.select([1])], ["a", "b"], Look(), tmp_path / "run.gif", {})
