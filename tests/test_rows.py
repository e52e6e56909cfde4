"""Row blocks folded into a stack: every reduction on matrices that are known, whole or in pieces."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from posviz import rows
from posviz.errors import PosvizError
from posviz.rows import Folding, fold

REDUCTIONS = {
    "mean": np.mean,
    "max": np.max,
    "min": np.min,
    "absmax": lambda cell: cell[np.argmax(np.abs(cell))],
}


class Known:
    """A matrix per head that is already there; it notes which rows it was asked for."""

    def __init__(self, values: np.ndarray, visible: np.ndarray | None = None) -> None:
        self.values = values.astype(np.float32)
        self.n_head, self.seq_len, self.key_len = values.shape
        self.seen = np.tri(self.seq_len, self.key_len, dtype=bool) if visible is None else visible
        self.asked: list[tuple[int, int]] = []

    def rows(self, quantity: str, start: int, stop: int) -> np.ndarray:
        assert quantity == "scores"
        self.asked.append((start, stop))
        return self.values[:, start:stop]

    def visible(self, start: int, stop: int) -> np.ndarray:
        return self.seen[..., start:stop, :]


def random(heads: int, queries: int, keys: int | None = None) -> np.ndarray:
    return np.random.default_rng(7).normal(size=(heads, queries, keys or queries)).astype(np.float32)


def by_hand(values: np.ndarray, visible: np.ndarray, cell: int, how: str) -> np.ndarray:
    """Cell after cell, over whatever is visible in it."""
    heads, queries, keys = values.shape
    visible = np.broadcast_to(visible, values.shape)
    out = np.full((heads, -(-queries // cell), -(-keys // cell)), np.nan)
    for head, row, column in np.ndindex(*out.shape):
        at = (head, slice(row * cell, (row + 1) * cell), slice(column * cell, (column + 1) * cell))
        seen = values[at][visible[at]].astype(np.float64)
        if seen.size:
            out[head, row, column] = REDUCTIONS[how](seen)
    return out


def test_a_short_sequence_is_kept_whole() -> None:
    source = Known(random(3, 20))
    stack = fold(source, "scores", Folding(most_cells=20))
    assert stack.cell == 1
    assert stack.ranges is None
    assert "reduce" not in stack.meta
    np.testing.assert_array_equal(stack.values, np.where(source.seen, source.values, np.nan))
    assert (stack.meta["seq_len"], stack.meta["key_len"], stack.meta["n_heads"]) == (20, 20, 3)


@pytest.mark.parametrize("how", REDUCTIONS)
@pytest.mark.parametrize(("length", "most", "cell"), [(20, 10, 2), (21, 10, 3), (23, 8, 3), (40, 39, 2), (50, 1, 50)])
def test_cells_hold_what_they_stand_for(length: int, most: int, cell: int, how: str) -> None:
    source = Known(random(2, length))
    stack = fold(source, "scores", Folding(most_cells=most, reduce=how))
    assert stack.cell == cell
    assert max(stack.values.shape[1:]) <= most
    assert stack.meta["reduce"] == how
    assert stack.seq_len == stack.key_len == length
    np.testing.assert_allclose(stack.values, by_hand(source.values, source.seen, cell, how), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("how", REDUCTIONS)
@pytest.mark.parametrize("rows_at_once", [1, 3, 10, 40])
def test_pieces_give_what_the_whole_gives(how: str, rows_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Known(random(4, 101))
    whole = fold(source, "scores", Folding(most_cells=30, reduce=how, profile=True))
    assert source.asked == [(0, 101)]
    source.asked.clear()
    monkeypatch.setattr(rows, "BLOCK_BYTES", 4 * 4 * 101 * rows_at_once)
    pieces = fold(source, "scores", Folding(most_cells=30, reduce=how, profile=True))
    assert len(source.asked) > 1
    assert [stop for _, stop in source.asked] == [*[start for start, _ in source.asked][1:], 101]
    assert all(start % whole.cell == 0 for start, _ in source.asked)  # no cell is cut in two
    np.testing.assert_allclose(pieces.values, whole.values, rtol=1e-6)
    np.testing.assert_array_equal(pieces.ranges, whole.ranges)
    np.testing.assert_allclose(pieces.profile, whole.profile, rtol=1e-6)
    monkeypatch.undo()
    unreduced = fold(source, "scores")
    np.testing.assert_allclose(
        pieces.values, by_hand(unreduced.values, ~np.isnan(unreduced.values), 4, how), rtol=1e-6, atol=1e-7
    )


def test_a_spike_survives_absmax_and_the_range_whatever_the_reduction() -> None:
    values = np.zeros((1, 1000, 1000))
    values[0, 700, 123] = -50
    values[0, 900, 10] = 3
    for how, shown in [("absmax", -50), ("min", -50), ("max", 0), ("mean", -50 / 100)]:
        stack = fold(Known(values), "scores", Folding(most_cells=100, reduce=how))
        assert stack.values[0, 70, 12] == pytest.approx(shown)
        np.testing.assert_array_equal(stack.ranges, [[-50, 3]])
        np.testing.assert_array_equal(stack.limits(), [[-50, 3]])


def test_absmax_keeps_the_sign_and_prefers_neither() -> None:
    values = np.array([[[-2, 1], [1, 1]], [[2, -1], [-1, -1]]])
    stack = fold(Known(values), "scores", Folding(mask=False, most_cells=1, reduce="absmax"))
    assert stack.values.ravel().tolist() == [-2, 2]


def test_the_masked_future_counts_nowhere() -> None:
    values = np.where(np.tri(12, dtype=bool), 1.0, 1e9)[None]
    stack = fold(Known(values), "scores", Folding(most_cells=6, profile=True))
    past = np.tri(6, dtype=bool)
    np.testing.assert_array_equal(stack.values[0], np.where(past, 1.0, np.nan))
    np.testing.assert_array_equal(stack.ranges, [[1, 1]])
    np.testing.assert_array_equal(stack.profile, np.ones((1, 12)))
    bare = fold(Known(values), "scores", Folding(most_cells=6, mask=False))
    assert np.isfinite(bare.values).all()
    assert bare.ranges[0, 1] == 1e9


def test_the_profile_is_the_mean_at_each_distance() -> None:
    source = Known(random(3, 50))
    stack = fold(source, "scores", Folding(most_cells=9, profile=True))
    for distance in range(50):
        along = np.diagonal(source.values.astype(np.float64), -distance, axis1=1, axis2=2)
        np.testing.assert_allclose(stack.profile[:, distance], along.mean(axis=1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("queries", "keys"), [(40, 25), (25, 40)])
def test_the_profile_of_other_keys_than_queries_counts_positions_too(queries: int, keys: int) -> None:
    source = Known(random(1, queries, keys))
    stack = fold(source, "scores", Folding(most_cells=9, profile=True))
    assert stack.values.shape == (1, -(-queries // 5), -(-keys // 5))
    for distance in range(queries):
        along = [source.values[0, i, i - distance] for i in range(queries) if 0 <= i - distance < keys]
        assert stack.profile[0, distance] == pytest.approx(np.mean(along), abs=1e-6)


@pytest.mark.parametrize("most", [12, 5])
def test_heads_may_look_at_different_keys(most: int) -> None:
    """As where some heads have a sliding window; the last head sees nothing at all."""
    source = Known(random(3, 12))
    near = np.tri(12, dtype=bool) & ~np.tri(12, k=-4, dtype=bool)
    source.seen = np.stack([np.tri(12, dtype=bool), near, np.zeros((12, 12), dtype=bool)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        every = fold(source, "scores", Folding(most_cells=most))
        some = fold(source, "scores", Folding(most_cells=most), heads=[2, 1])
    np.testing.assert_allclose(every.values, by_hand(source.values, source.seen, every.cell, "mean"), rtol=1e-5)
    np.testing.assert_array_equal(some.values, every.values[[1, 0]])
    np.testing.assert_array_equal(some.limits(), every.limits()[[1, 0]])
    assert np.isnan(every.limits()[2]).all()
    shared = Known(source.values, source.seen[:1])  # one mask with a head axis, for all heads
    np.testing.assert_array_equal(
        fold(shared, "scores", heads=[3]).values[0], np.where(source.seen[0], source.values[2], np.nan)
    )


@pytest.mark.parametrize("most", [30, 7])
def test_some_heads_in_the_order_that_was_asked_for(most: int) -> None:
    source = Known(random(5, 30))
    every = fold(source, "scores", Folding(most_cells=most, profile=True))
    some = fold(source, "scores", Folding(most_cells=most, profile=True), heads=[4, 1])
    assert some.heads == (4, 1)
    assert some.meta["n_heads"] == 5
    np.testing.assert_array_equal(some.values, every.values[[3, 0]])
    np.testing.assert_array_equal(some.limits(), every.limits()[[3, 0]])
    for wrong in (0, 6, -1):
        with pytest.raises(PosvizError, match=f"there is no head {wrong}; the layer has heads 1 to 5"):
            fold(source, "scores", heads=[1, wrong])


def test_tokens_and_facts_go_along() -> None:
    stack = fold(Known(random(1, 3)), "scores", token_ids=np.array([5, 6, 7]), tokens=["a", "b", "c"], meta={"x": 1})
    assert stack.tokens == ("a", "b", "c")
    assert stack.token_ids.tolist() == [5, 6, 7]
    assert stack.meta["x"] == 1


def test_an_unknown_reduction_is_refused() -> None:
    with pytest.raises(PosvizError, match="unknown reduction 'median'"):
        Folding(reduce="median")


@pytest.mark.parametrize(("start", "stop", "keys"), [(0, 5, 5), (3, 4, 9), (2, 6, 4)])
def test_the_causal_mask(start: int, stop: int, keys: int) -> None:
    wanted = [[j <= i for j in range(keys)] for i in range(start, stop)]
    assert rows.causal(start, stop, keys).tolist() == wanted
