"""KERPLE: what a checkpoint may hold below the clamps, and the edges of the power."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from posviz import methods
from posviz.methods.base import Block


def row(method: str, p: float, a: float, length: int = 600) -> np.ndarray:
    """The bias of one head at distances 0, 1, 2, ..."""
    stored = {"bias_p": np.float32([[[p]]]), "bias_a": np.float32([[[a]]])}
    block = Block(np.arange(length - 1, length)[:, None], np.arange(length)[None, :], np)
    return methods.get(method)(1).bias(stored, block)[0, 0, ::-1]


@pytest.mark.parametrize("stored", [0.009, 0.0, -3.0])
def test_small_values_are_raised_to_a_hundredth(stored: float) -> None:
    np.testing.assert_array_equal(row("kerple", stored, 1.5), row("kerple", 0.01, 1.5))
    np.testing.assert_array_equal(row("kerple", 1.5, stored), row("kerple", 1.5, 0.01))
    assert row("kerple", stored, 1.5)[599] == pytest.approx(-0.01 * math.log(1 + 1.5 * 599), rel=1e-6)
    assert row("kerple", 1.5, stored)[599] == pytest.approx(-1.5 * math.log(1 + 0.01 * 599), rel=1e-6)


@pytest.mark.parametrize(("stored", "used"), [(-1.0, 0.01), (0.005, 0.01), (2.0, 2.0), (2.5, 2.0), (7.0, 2.0)])
def test_a_power_stays_between_a_hundredth_and_two(stored: float, used: float) -> None:
    found = row("kerple-power", stored, 0.7)
    np.testing.assert_array_equal(found, row("kerple-power", used, 0.7))
    assert found[0] == 0
    assert found[1] == pytest.approx(-0.7)
    assert found[599] == pytest.approx(-0.7 * 599**used, rel=1e-5)


def test_a_power_of_two_is_a_parabola_and_its_scale_has_a_floor() -> None:
    np.testing.assert_allclose(row("kerple-power", 2, -1), -0.01 * np.arange(600) ** 2.0, rtol=1e-5)


def test_the_power_can_be_trained_at_distance_zero() -> None:
    p = {"bias_p": torch.full((1, 1, 1), 0.5, requires_grad=True), "bias_a": torch.ones(1, 1, 1, requires_grad=True)}
    block = Block(torch.arange(4)[:, None], torch.arange(4)[None, :], torch)
    methods.get("kerple-power")(1).bias(p, block).sum().backward()
    wanted = -2 * sum(n * math.sqrt(d) * math.log(d) for d, n in ((1, 3), (2, 2), (3, 1)))
    assert p["bias_p"].grad.item() == pytest.approx(wanted, rel=1e-5)
    assert math.isfinite(p["bias_a"].grad.item())
