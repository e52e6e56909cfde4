"""The HTML page as a file."""

from __future__ import annotations

import base64
import re
import zlib
from pathlib import Path

import numpy as np
import pytest

from posviz import outputs
from posviz.draw.look import Look
from posviz.errors import OutputError
from posviz.outputs.page import pack
from posviz.stack import HeadStack


@pytest.fixture
def stack() -> HeadStack:
    values = np.random.default_rng(0).normal(size=(2, 9, 9)).astype(np.float32)
    values[:, ~np.tri(9, dtype=bool)] = np.nan
    return HeadStack(values, (1, 2), meta={"seq_len": 9})


def test_the_recipe_reads_back(stack: HeadStack, tmp_path: Path) -> None:
    recipe = {"command_line": "posviz render --title '</script><!--'", "of": ["é", 1, None]}
    assert outputs.read_recipe(outputs.save(stack, Look(), tmp_path / "x.html", recipe)) == recipe


def test_a_page_without_a_recipe_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.html").write_text("<p>something else</p>")
    with pytest.raises(OutputError, match="carries no recipe"):
        outputs.read_recipe(tmp_path / "x.html")


def test_the_same_call_makes_the_same_bytes(stack: HeadStack, tmp_path: Path) -> None:
    first, second = (outputs.save(stack, Look(), tmp_path / f"{name}.html", {"a": 1}).read_bytes() for name in "ab")
    assert first == second


def test_nothing_is_loaded_from_elsewhere(stack: HeadStack, tmp_path: Path) -> None:
    page = outputs.save(stack, Look(), tmp_path / "x.html", {}).read_text()
    assert not re.search(r"https?://|src=|@import|url\(", page)
    assert "default-src 'none'" in page


def test_values_are_packed_whole_and_without_the_masked_half(stack: HeadStack) -> None:
    content = zlib.decompress(base64.b64decode(pack(stack.values)))
    masked = np.unpackbits(np.frombuffer(content, np.uint8, 21))[: 2 * 81].reshape(2, 9, 9).astype(bool)
    np.testing.assert_array_equal(masked, np.isnan(stack.values))
    planes = np.frombuffer(content, np.uint8, offset=21).reshape(4, -1)
    np.testing.assert_array_equal(np.ascontiguousarray(planes.T).view("<f4").ravel(), stack.values[~masked])


def test_a_page_beside_figures_needs_only_the_one_drawing(stack: HeadStack, tmp_path: Path) -> None:
    paths = [tmp_path / "x.html", tmp_path / "x.png"]
    assert outputs.save_all(stack, Look(), paths, {"a": 1}) == paths
    assert [outputs.read_recipe(path) for path in paths] == [{"a": 1}, {"a": 1}]


def test_any_other_figure_has_no_page(tmp_path: Path) -> None:
    from matplotlib.figure import Figure

    with pytest.raises(OutputError, match=r"unknown kind of file '\.html'; known: \.pdf, \.png, \.svg"):
        outputs.save_figure(Figure(), tmp_path / "x.html", {})


def test_an_empty_stack_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="nothing to draw"):
        outputs.save(HeadStack(np.zeros((0, 2, 2), dtype=np.float32), ()), Look(), tmp_path / "x.html", {})
    assert not list(tmp_path.iterdir())
