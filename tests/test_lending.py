"""What one process lends, another has: the same numbers, and no file left when it is done with them."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from posviz.lending import Lent, borrowed, lend
from posviz.stack import HeadStack


def a_stack(heads: int = 3) -> HeadStack:
    values = np.random.default_rng(0).normal(size=(heads, 17, 17)).astype(np.float32)
    values[:, 0, 1] = np.nan
    return HeadStack(values, tuple(range(1, heads + 1)), token_ids=np.arange(17), tokens=("é",) * 17, meta={"a": [1]})


def test_a_stack_comes_back_whole(tmp_path: Path) -> None:
    stack = a_stack()
    lent = lend([stack, stack.select([2])], tmp_path)
    sent = pickle.dumps(lent)
    assert len(sent) < stack.values.nbytes / 2  # only what is small goes through a pipe
    with borrowed(pickle.loads(sent)) as (found, part):
        np.testing.assert_array_equal(found.values, stack.values)
        np.testing.assert_array_equal(found.token_ids, stack.token_ids)
        np.testing.assert_array_equal(part.values, stack.values[1:2])
        assert (found.heads, found.tokens, found.meta) == (stack.heads, stack.tokens, stack.meta)
        assert found.values.flags.aligned
        found.values[0, 0, 0] = 5  # of this process alone
        with borrowed(lent) as (again, _):
            np.testing.assert_array_equal(again.values, stack.values)
    assert not list(tmp_path.iterdir())


def test_it_can_be_borrowed_again_after_a_process_died(tmp_path: Path) -> None:
    lent = lend(a_stack(), tmp_path)
    dying = borrowed(lent)
    dying.__enter__()  # and never leaves it
    with borrowed(lent) as stack:
        np.testing.assert_array_equal(stack.values, a_stack().values)


def test_what_fails_with_it_leaves_no_file(tmp_path: Path) -> None:
    lent = lend(a_stack(), tmp_path)
    with pytest.raises(ZeroDivisionError), borrowed(lent):
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())


def test_no_heads_and_no_arrays_at_all(tmp_path: Path) -> None:
    for thing in (np.zeros((0, 3)), "text"):
        with borrowed(lend(thing, tmp_path)) as found:
            assert np.array_equal(found, thing)
    assert not list(tmp_path.iterdir())


def test_without_room_it_is_handed_over_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stack = a_stack()
    assert lend(stack, None) is stack
    assert lend(stack, tmp_path / "not there") is stack

    class Full:
        def raw(self) -> bytes:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(pickle, "dumps", lambda *_, buffer_callback, **__: buffer_callback(Full()) or b"")
    assert lend(stack, tmp_path) is stack
    assert not list(tmp_path.iterdir())
    with borrowed(stack) as found:
        assert found is stack


def test_lent_things_say_where_their_arrays_are(tmp_path: Path) -> None:
    lent = lend(a_stack(), tmp_path)
    assert isinstance(lent, Lent)
    assert lent.file.parent == tmp_path
    assert all(part.start % 64 == 0 for part in lent.parts)
