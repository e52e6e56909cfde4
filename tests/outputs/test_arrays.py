"""Stacks as arrays: what is written reads back, and nothing else is believed."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from posviz import outputs
from posviz.errors import OutputError
from posviz.outputs.arrays import load_stack, save_stack
from posviz.stack import HeadStack

META = {"posviz_version": "0", "method": "kerple", "seq_len": 8, "layer": np.int64(2), "source": Path("a/b.pt")}


@pytest.fixture
def stack() -> HeadStack:
    values = np.random.default_rng(0).normal(size=(2, 8, 8)).astype(np.float32)
    values[:, ~np.tri(8, dtype=bool)] = np.nan
    tokens = ("a", " the", "語", "\ud83d", "", "\n", "x" * 40, "é")
    return HeadStack(values, (3, 7), np.arange(8, dtype=np.int64) * 1000, tokens, META)


@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_a_stack_reads_back(stack: HeadStack, suffix: str, tmp_path: Path) -> None:
    found = load_stack(save_stack(stack, tmp_path / "deep" / f"x.{suffix}"))
    np.testing.assert_array_equal(found.values, stack.values)
    assert found.values.dtype == np.float32
    assert found.heads == (3, 7)
    assert found.token_ids is not None
    np.testing.assert_array_equal(found.token_ids, stack.token_ids)
    assert found.tokens == stack.tokens
    assert found.meta == {**META, "layer": 2, "source": "a/b.pt"}
    assert found.cell == 1
    assert found.ranges is None
    assert found.profile is None
    assert outputs.read_recipe(tmp_path / "deep" / f"x.{suffix}") == found.meta


@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_a_reduced_stack_without_tokens_reads_back(stack: HeadStack, suffix: str, tmp_path: Path) -> None:
    ranges = np.array([[-9, 9], [-1, 1]], dtype=np.float32)
    profile = np.random.default_rng(1).normal(size=(2, 32)).astype(np.float32)
    reduced = replace(stack, token_ids=None, tokens=(), cell=4, ranges=ranges, profile=profile)
    found = load_stack(save_stack(reduced, tmp_path / f"x.{suffix}"))
    assert found.cell == 4
    assert found.token_ids is None
    assert found.tokens == ()
    np.testing.assert_array_equal(found.limits(), ranges)
    assert found.profile is not None
    np.testing.assert_array_equal(found.profile, profile)


def test_npz_holds_plain_arrays_under_the_promised_names(stack: HeadStack, tmp_path: Path) -> None:
    with np.load(save_stack(stack, tmp_path / "x.npz"), allow_pickle=False) as stored:
        assert {"values", "heads", "token_ids", "tokens", "meta"} <= set(stored.files)
        assert stored["values"].dtype == np.float32
        assert stored["tokens"].dtype.kind == "U"
        assert json.loads(str(stored["meta"]))["method"] == "kerple"


@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_the_same_stack_makes_the_same_bytes(stack: HeadStack, suffix: str, tmp_path: Path) -> None:
    first, second = (save_stack(stack, tmp_path / f"{name}.{suffix}").read_bytes() for name in "ab")
    assert first == second


def test_a_nul_in_a_token_is_shown_by_its_sign(stack: HeadStack, tmp_path: Path) -> None:
    found = load_stack(save_stack(replace(stack, tokens=("\0",) * 8), tmp_path / "x.npz"))
    assert found.tokens == ("\u2400",) * 8


def test_a_foreign_file_is_told_what_it_lacks(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", values=np.zeros((1, 2, 2)))
    with pytest.raises(OutputError, match=r"x\.npz has no heads, meta; expected a file made by posviz capture"):
        load_stack(tmp_path / "x.npz")


def test_pickled_objects_are_never_loaded(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", values=np.array([{}], dtype=object), heads=np.array([1]), meta=np.array("{}"))
    with pytest.raises(OutputError, match=r"is no \.npz file of plain arrays"):
        load_stack(tmp_path / "x.npz")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"values": np.zeros((2, 2), dtype=np.float32)}, "three axes"),
        ({"values": np.zeros((1, 2, 2), dtype=np.int32)}, "its values are int32, expected float32"),
        ({"heads": np.array([1, 2])}, "2 head numbers for 1 matrices"),
        ({"heads": np.array(1)}, "does not hold a stack"),
        ({"meta": np.array("{")}, "does not hold a stack"),
        ({"meta": np.array("[1]")}, "its meta is a list"),
    ],
)
def test_a_wrong_array_is_named(wrong: dict[str, np.ndarray], says: str, tmp_path: Path) -> None:
    right = {"values": np.zeros((1, 2, 2), dtype=np.float32), "heads": np.array([1]), "meta": np.array("{}")}
    np.savez(tmp_path / "x.npz", **{**right, **wrong})
    with pytest.raises(OutputError, match=rf"^[^\n]*x\.npz [^\n]*{says}[^\n]*$"):
        load_stack(tmp_path / "x.npz")


@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_a_truncated_file_is_one_line(stack: HeadStack, suffix: str, tmp_path: Path) -> None:
    path = save_stack(stack, tmp_path / f"x.{suffix}")
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(OutputError, match=r"^[^\n]*or a broken one[^\n]*$"):
        load_stack(path)


def test_a_missing_file_and_a_wrong_suffix_are_told(tmp_path: Path) -> None:
    for suffix in ("npz", "safetensors"):
        with pytest.raises(OutputError, match=r"^cannot read .*: there is no such file$"):
            load_stack(tmp_path / f"nothing.{suffix}")
    with pytest.raises(OutputError, match=r"unknown kind of array file '\.npy'; did you mean '\.npz'\?"):
        load_stack(tmp_path / "x.npy")


def test_loading_needs_no_torch(stack: HeadStack, tmp_path: Path) -> None:
    paths = [save_stack(stack, tmp_path / f"x.{suffix}") for suffix in ("npz", "safetensors")]
    code = (
        "import sys; from posviz.outputs.arrays import load_stack; [load_stack(path) for path in sys.argv[1:]];"
        "assert not {'torch', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, *paths], check=True)
