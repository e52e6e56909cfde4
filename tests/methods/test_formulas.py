"""Every bias that does not depend on tokens: the formula recomputed in float64, for numpy and torch, whole and cut."""

from __future__ import annotations

from typing import Any

import formulas
import numpy as np
import pytest
import torch
from closeness import assert_near

from posviz import methods
from posviz.methods.base import Block

HEADS = 12
PLAIN = ["alibi", "t5", "kerple", "kerple-power", "fire"]
LENGTHS = [1, 2, 200, 700]  # FIRE's normaliser starts to grow with the query beyond 512


def parameters(method: str, seed: int = 5) -> dict[str, np.ndarray]:
    """What training might leave: moved away from the start, some below the clamps."""
    generator = torch.Generator().manual_seed(seed)
    start = methods.get(method)(HEADS).initial(generator)
    moved = {n: t if n == "init_L" else t + 0.3 * torch.randn(t.shape, generator=generator) for n, t in start.items()}
    return {name: t.numpy() for name, t in moved.items()}


def bias(method: str, p: dict[str, np.ndarray], length: int, xp: Any, start: int = 0, stop: int | None = None) -> Any:
    """The rows from `start` to `stop` as posviz computes them, future included."""
    i, j = xp.arange(start, length if stop is None else stop)[:, None], xp.arange(length)[None, :]
    values = p if xp is np else {name: torch.from_numpy(v) for name, v in p.items()}
    return np.asarray(methods.get(method)(HEADS).bias(values, Block(i, j, xp)))


def past(values: np.ndarray) -> np.ndarray:
    return np.where(np.tri(*values.shape[1:], dtype=bool), values, np.nan)


@pytest.mark.parametrize("xp", [np, torch], ids=["numpy", "torch"])
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("method", PLAIN)
def test_the_bias_is_the_formula(method: str, length: int, xp: Any) -> None:
    p = parameters(method)
    found = bias(method, p, length, xp)
    wide = {name: v.astype(np.float64) for name, v in p.items()}
    wanted = formulas.bias(method, wide, HEADS, np.zeros((length, 1)), np.zeros(0))
    assert found.dtype == np.float32
    if length == 1 and method in ("alibi", "kerple", "kerple-power"):
        np.testing.assert_array_equal(found, 0)
    else:
        assert_near(past(found), wanted)


@pytest.mark.parametrize("xp", [np, torch], ids=["numpy", "torch"])
@pytest.mark.parametrize("method", PLAIN)
def test_a_block_of_rows_is_cut_from_the_whole(method: str, xp: Any) -> None:
    p = parameters(method)
    whole = bias(method, p, 600, xp)
    assert np.isfinite(whole).all()  # the future too, which --no-mask draws
    for start, stop in [(0, 1), (0, 600), (17, 18), (100, 301), (505, 520), (599, 600)]:
        assert_near(bias(method, p, 600, xp, start, stop), whole[:, start:stop], 1e-6)


@pytest.mark.parametrize("method", PLAIN)
def test_numpy_and_torch_agree_in_the_future_too(method: str) -> None:
    p = parameters(method)
    assert_near(bias(method, p, 90, np), bias(method, p, 90, torch), 1e-6)


@pytest.mark.parametrize("method", [name for name in methods.names() if methods.get(name).spec])
def test_the_start_of_training_has_the_shapes_that_a_checkpoint_is_checked_for(method: str) -> None:
    made = methods.get(method)(HEADS, 48)
    start = {name: tuple(t.shape) for name, t in made.initial(torch.Generator().manual_seed(0)).items()}
    made.check(start, "a layer")
    assert made.required() <= set(start)


def test_alibi_grows_into_the_future_and_the_others_look_both_ways() -> None:
    """What --no-mask draws there: the formula with a negative distance, or the size of it where there is no other."""
    d = np.arange(50)[:, None] - np.arange(50)[None, :]
    np.testing.assert_allclose(bias("alibi", {}, 50, np)[0], -(2 ** (-8 / 12)) * d, rtol=1e-6)
    for method in ("kerple", "kerple-power"):
        found = bias(method, parameters(method), 50, np)
        np.testing.assert_array_equal(found, found.transpose(0, 2, 1))
    table = parameters("t5")["relative_attention_bias.weight"]
    future = bias("t5", {"relative_attention_bias.weight": table}, 50, np)[:, ~np.tri(50, dtype=bool)]
    np.testing.assert_array_equal(future, np.tile(table[0][:, None], 50 * 49 // 2))


@pytest.mark.parametrize("method", PLAIN)
def test_gradients_reach_every_trained_parameter(method: str) -> None:
    made = methods.get(method)(HEADS)
    p = {name: t.requires_grad_() for name, t in made.initial(torch.Generator().manual_seed(3)).items()}
    i, j = torch.arange(40)[:, None], torch.arange(40)[None, :]
    trained = [name for name in p if name not in made.buffers]
    if not trained:
        return
    # A weight of its own for every value: a sum over symmetric values could be zero by chance.
    made.bias(p, Block(i, j, torch)).mul(torch.rand(12, 40, 40)).tril().sum().backward()
    for name in trained:
        assert torch.isfinite(p[name].grad).all(), name
        assert p[name].grad.abs().max() > 0, name
