"""Long sequences: the streamed result is the full one, nothing holds a whole matrix, and the figure says it all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from closeness import assert_near
from small_models import config_of, model_of
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from posviz import methods, rows
from posviz.bias import DistanceRows, bias_rows
from posviz.draw.grid import draw_grid
from posviz.models import attention, own
from posviz.rows import REDUCTIONS, Folding, RowSource, fold

PLAIN = [name for name in methods.names() if not methods.get(name).token_dependent]
LENGTH, MOST = 107, 30  # cells of 4 positions, the last of 3
EXACT = 1e-6


def source_of(method: str, length: int = LENGTH) -> RowSource:
    """What is drawn of a method without any options: a bias from its parameters, or a run of the model."""
    model = model_of(config_of(method, n_layer=1))
    if method in PLAIN:
        own_values = {name: value.numpy() for name, value in model.layer(0).attn.pos.values().items()}
        return bias_rows(model.layer(0).attn.method, own_values, length)
    ids = np.random.default_rng(5).integers(256, size=length)
    return own.run(model, ids, [0])[0]


def quantity_of(method: str) -> str:
    return "bias" if methods.get(method).additive else "scores"


def reduced(values: np.ndarray, cell: int, how: str) -> np.ndarray:
    """Cell after cell of a whole stack, over what is visible."""
    heads, length, _ = values.shape
    side = -(-length // cell)
    found = np.full((heads, side, side), np.nan)
    for head, row, column in np.ndindex(*found.shape):
        seen = values[head, row * cell : (row + 1) * cell, column * cell : (column + 1) * cell].astype(np.float64)
        seen = seen[~np.isnan(seen)]
        if seen.size:
            farthest = seen[np.argmax(np.abs(seen))]
            found[head, row, column] = {
                "mean": seen.mean(), "max": seen.max(), "min": seen.min(), "absmax": farthest
            }[how]  # fmt: skip
    return found


@pytest.mark.parametrize("how", REDUCTIONS)
@pytest.mark.parametrize("mask", [True, False])
@pytest.mark.parametrize("method", methods.names())
def test_the_streamed_result_is_the_full_one(
    method: str, mask: bool, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    quantity = quantity_of(method)
    source = source_of(method)
    full = fold(source, quantity, Folding(mask=mask)).values
    monkeypatch.setattr(rows, "BLOCK_BYTES", 4 * 12 * LENGTH * 9)  # eight rows at a time
    streamed = fold(source, quantity, Folding(mask=mask, reduce=how, most_cells=MOST, profile=True))
    assert streamed.cell == 4
    assert_near(streamed.values, reduced(full, 4, how), EXACT)
    extremes = np.stack([np.nanmin(full, axis=(1, 2)), np.nanmax(full, axis=(1, 2))], axis=1)
    assert_near(streamed.limits(), extremes, EXACT)
    means = [np.diagonal(full, -d, axis1=1, axis2=2).mean(axis=1, dtype=np.float64) for d in range(LENGTH)]
    assert_near(streamed.profile, np.stack(means, axis=1), EXACT)


@pytest.mark.parametrize("quantity", ["bias", "scores", "content", "attention"])
@pytest.mark.parametrize("method", ["kerple", "dapev2-fire", "cable"])
def test_what_is_cut_off_at_the_query_is_what_the_whole_row_holds(method: str, quantity: str) -> None:
    model = model_of(config_of(method, n_layer=1))
    source = own.run(model, np.random.default_rng(5).integers(256, size=LENGTH), [0])[0]
    for start, stop in ((0, 1), (13, 40), (90, LENGTH)):
        visible = source.visible(start, stop)
        whole = np.where(visible, source.rows(quantity, start, stop), np.nan)
        cut = np.where(visible[:, :stop], source.past(quantity, start, stop), np.nan)
        assert cut.shape == (12, stop - start, stop)
        assert_near(cut, whole[:, :, :stop], EXACT)


@pytest.mark.parametrize("method", PLAIN)
def test_a_bias_in_pieces_is_the_formula_at_once(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from posviz.methods.base import Block

    source = source_of(method)
    i, j = np.arange(LENGTH)[:, None], np.arange(LENGTH)[None, :]
    at_once = source.method.bias(source.parameters, Block(i, j, np))
    monkeypatch.setattr(type(source), "PAIRS", 200)
    assert_near(source.rows("bias", 20, 60), at_once[:, 20:60], EXACT)
    assert_near(source.past("bias", 20, 60), at_once[:, 20:60, :60], EXACT)
    assert isinstance(source, DistanceRows) == (method != "fire")


@pytest.mark.parametrize("how", REDUCTIONS)
def test_16384_positions_of_a_distance_are_the_cells_of_a_block(how: str) -> None:
    """Every cell by the formula of its own 16 x 16 positions, at the corners, on the diagonal and inside."""
    source = source_of("kerple", 16384)
    stack = fold(source, "bias", Folding(reduce=how))
    assert stack.values.shape == (12, 1024, 1024)
    for row, column in ((0, 0), (1023, 0), (1023, 1023), (500, 499), (800, 17), (3, 3)):
        start = 16 * row
        block = np.where(source.visible(start, start + 16), source.rows("bias", start, start + 16), np.nan)
        cell = block[:, :, 16 * column : 16 * (column + 1)]
        wanted = reduced(np.stack([*cell]), 16, how)[:, 0, 0]
        np.testing.assert_allclose(stack.values[:, row, column], wanted, rtol=EXACT)
    assert np.isnan(stack.values[:, 10, 11]).all()


class Spike:
    """16384 positions of nothing but one cell."""

    n_head, seq_len, key_len = 1, 16384, 16384
    at = (12345, 678)

    def rows(self, quantity: str, start: int, stop: int) -> np.ndarray:
        block = np.full((1, stop - start, self.key_len), 0.25, dtype=np.float32)
        if start <= self.at[0] < stop:
            block[0, self.at[0] - start, self.at[1]] = -7.0
        return block

    def visible(self, start: int, stop: int) -> np.ndarray:
        return rows.causal(start, stop, self.key_len)


def test_a_spike_of_one_cell_in_16384_positions_survives_and_is_explained() -> None:
    stack = fold(Spike(), "scores", Folding(reduce="absmax"))
    assert stack.values[0, 12345 // 16, 678 // 16] == -7.0
    assert (stack.values == -7.0).sum() == 1
    assert stack.limits().tolist() == [[-7.0, 0.25]]
    words = [text.get_text() for text in draw_grid(stack).texts]
    assert "each cell is the value farthest from zero of 16 x 16 positions" in words


def test_the_mean_hides_a_spike_but_not_from_the_colours() -> None:
    stack = fold(Spike(), "scores")
    assert stack.values[0, 12345 // 16, 678 // 16] == pytest.approx((255 * 0.25 - 7) / 256)
    assert stack.limits().tolist() == [[-7.0, 0.25]]
    assert "each cell is the mean of 16 x 16 positions" in [text.get_text() for text in draw_grid(stack).texts]


class Largest(TorchDispatchMode):
    """Notes the most numbers that any tensor had that an operation made."""

    numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        made = [t for t in tree_leaves(out) if isinstance(t, torch.Tensor)]
        # A tensor that repeats one row without storing it is as large as that row.
        sizes = [t.untyped_storage().nbytes() // t.element_size() for t in made]
        self.numbers = max([self.numbers, *sizes])
        return out


@pytest.mark.parametrize("method", methods.names())
def test_no_layer_of_a_long_run_holds_a_whole_matrix(method: str) -> None:
    """Neither in the layers before the captured one nor in that one, additive biases included."""
    length = 1500
    model = model_of(config_of(method, n_layer=2))
    ids = np.random.default_rng(5).integers(256, size=length)
    with Largest() as largest:
        source = own.run(model, ids, [1])[1]
        fold(source, quantity_of(method))
        fold(source, "attention")
    assert 0 < largest.numbers < 12 * length**2 / 5
    assert largest.numbers < 32 / 12 * rows.BLOCK_BYTES / 4 * 1.5  # hidden units of a block, and a little room
    assert attention.BLOCK_BYTES <= rows.BLOCK_BYTES


def test_training_does_hold_it() -> None:
    """So that the test above is known to see what it looks for."""
    model = model_of(config_of("kerple", n_layer=1))
    with torch.enable_grad(), Largest() as largest:
        model(torch.zeros(1, 300, dtype=torch.int64))
    assert largest.numbers >= 12 * 300**2
