"""FIRE: Toeplitz up to its threshold, and no longer beyond."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from posviz import methods
from posviz.methods.base import Block


def trained(**changes: float) -> dict[str, np.ndarray]:
    start = methods.get("fire")(4).initial(torch.Generator().manual_seed(2))
    return {name: t.numpy() for name, t in start.items()} | {name: np.float32(v) for name, v in changes.items()}


def bias(p: dict[str, np.ndarray], length: int) -> np.ndarray:
    return methods.get("fire")(4).bias(p, Block(np.arange(length)[:, None], np.arange(length)[None, :], np))


def along(values: np.ndarray, distance: int) -> Any:
    """All values at one distance, by query."""
    return np.diagonal(values, -distance, axis1=1, axis2=2)


def test_only_beyond_the_threshold_does_the_query_matter() -> None:
    found = along(bias(trained(), 800), 100)  # of the queries 100 to 799
    np.testing.assert_allclose(found[:, : 512 - 100 + 1], found[:, :1] + np.zeros(413), rtol=1e-6)
    assert (np.abs(np.diff(found[:, 512 - 100 :], axis=1)).max(axis=1) > 0).all()


@pytest.mark.parametrize(("multiplier", "stored", "threshold"), [(0.25, 512, 128), (-0.25, 512, 128), (1.0, 64, 64)])
def test_the_threshold_is_the_size_of_the_product(multiplier: float, stored: float, threshold: int) -> None:
    p = trained(L_multiplier=multiplier, init_L=stored)
    found = along(bias(p, 200), 20)
    assert np.ptp(found[:, : threshold - 20 + 1], axis=1).max() < 1e-6
    assert np.ptp(found[:, threshold - 20 :], axis=1).min() > 1e-4


def test_a_file_may_leave_out_the_length_of_512() -> None:
    p = trained()
    without = {name: v for name, v in p.items() if name != "init_L"}
    np.testing.assert_array_equal(bias(without, 530), bias(p, 530))


def test_the_sign_of_c_does_not_matter() -> None:
    np.testing.assert_array_equal(bias(trained(c=-0.3), 40), bias(trained(c=0.3), 40))
