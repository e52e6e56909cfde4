"""Choices about a figure, checked when they are made."""

from __future__ import annotations

import math

import pytest

from posviz.draw.look import Look
from posviz.errors import OutputError


def test_the_default_is_the_papers_look() -> None:
    assert Look().cmap_name == "viridis"
    assert Look().scale == "head"


def test_diverging_has_its_own_colour_map_unless_one_is_chosen() -> None:
    assert Look(diverging=True).cmap_name == "RdBu_r"
    assert Look(diverging=True, cmap="PuOr").cmap_name == "PuOr"


def test_a_misspelt_colour_map_is_answered_with_the_nearest() -> None:
    with pytest.raises(OutputError, match=r"unknown colour map 'virdis'; did you mean 'viridis'\? known: .*magma"):
        Look(cmap="virdis")


def test_an_unknown_scale_lists_the_known() -> None:
    with pytest.raises(OutputError, match="unknown scale 'row'; known: head, shared"):
        Look(scale="row")


@pytest.mark.parametrize("dpi", [0, -1, math.nan, math.inf])
def test_a_resolution_is_a_positive_number(dpi: float) -> None:
    with pytest.raises(OutputError, match="expected a number above 0"):
        Look(dpi=dpi)
