"""HeadStack: one shape, checked; what is known of it goes along."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import posviz
from posviz.errors import PosvizError
from posviz.stack import HeadStack


def reduced() -> HeadStack:
    return HeadStack(
        np.arange(12.0).reshape(3, 2, 2),
        (2, 5, 9),
        meta={"seq_len": 7, "method": "rope", "quantity": "scores"},
        cell=4,
        ranges=np.array([[0, 1], [2, 3], [4, 5]], dtype=np.float32),
        profile=np.arange(21, dtype=np.float32).reshape(3, 7),
    )


def test_values_are_float32() -> None:
    assert HeadStack(np.zeros((1, 2, 2), dtype=np.float64), (1,)).values.dtype == np.float32
    kept = np.zeros((1, 2, 2), dtype=np.float32)
    assert HeadStack(kept, (1,)).values is kept


@pytest.mark.parametrize(
    ("shape", "heads", "cell", "message"),
    [
        ((2, 2), (1, 2), 1, "a stack has shape (2, 2); expected three axes: head, query, key"),
        ((1, 2, 2, 2), (1,), 1, "expected three axes"),
        ((2, 3, 3), (1,), 1, "1 head numbers for 2 matrices; expected one each"),
        ((1, 3, 3), (1,), 0, "a cell of 0 positions; expected 1 or more"),
    ],
)
def test_another_shape_is_refused(shape: tuple[int, ...], heads: tuple[int, ...], cell: int, message: str) -> None:
    with pytest.raises(PosvizError) as raised:
        HeadStack(np.zeros(shape), heads, cell=cell)
    assert message in str(raised.value)


def test_lengths_are_those_before_any_reduction() -> None:
    assert (reduced().seq_len, reduced().key_len) == (7, 7)
    plain = HeadStack(np.zeros((1, 5, 3)), (1,))
    assert (plain.seq_len, plain.key_len) == (5, 3)
    assert HeadStack(np.zeros((1, 5, 3)), (1,), cell=2).seq_len == 10
    assert HeadStack(np.zeros((1, 5, 3)), (1,), meta={"seq_len": 5, "key_len": 3}).key_len == 3


def test_limits_are_of_what_is_finite() -> None:
    values = np.array([[[1, np.nan], [-2, np.inf]], [[np.nan, np.nan], [np.nan, np.nan]]])
    np.testing.assert_array_equal(HeadStack(values, (1, 2)).limits(), [[-2, 1], [np.nan, np.nan]])
    np.testing.assert_array_equal(reduced().limits(), [[0, 1], [2, 3], [4, 5]])


def test_heads_are_picked_with_all_that_belongs_to_them() -> None:
    some = reduced().select([9, 2])
    assert some.heads == (9, 2)
    np.testing.assert_array_equal(some.values, reduced().values[[2, 0]])
    np.testing.assert_array_equal(some.ranges, [[4, 5], [0, 1]])
    np.testing.assert_array_equal(some.profile, reduced().profile[[2, 0]])
    assert some.meta == reduced().meta
    assert reduced().head(5).heads == (5,)
    for wrong in (1, 10):
        with pytest.raises(PosvizError, match=f"there is no head {wrong}; the stack has only heads 2, 5, 9"):
            reduced().select([2, wrong])
    with pytest.raises(PosvizError, match="there is no head 3; the stack has heads 1 to 2"):
        HeadStack(np.zeros((2, 1, 1)), (1, 2)).select([3])


def test_it_is_an_array_and_says_what_it_is() -> None:
    stack = HeadStack(np.ones((2, 3, 3)), (1, 2), meta={"method": "kerple", "quantity": "bias"})
    assert np.asarray(stack).shape == (2, 3, 3)
    assert repr(stack) == "<HeadStack: kerple bias, 2 heads, 3 x 3 positions>"


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_it_is_stored_and_read_back(suffix: str, tmp_path: Path) -> None:
    path = reduced().save(tmp_path / f"s{suffix}")
    again = posviz.load(path)
    np.testing.assert_array_equal(again.values, reduced().values)
    np.testing.assert_array_equal(again.ranges, reduced().ranges)
    assert (again.heads, again.cell, dict(again.meta)) == ((2, 5, 9), 4, dict(reduced().meta))
