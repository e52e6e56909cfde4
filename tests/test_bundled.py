"""The checkpoints that ship with posviz: small, whole, and trained to know something."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reading import assert_cells_are_the_values

import posviz as library
from posviz import bundled, methods
from posviz.checkpoint import describe, open_checkpoint
from posviz.errors import MethodError


@pytest.mark.parametrize("method", bundled.names())
def test_a_bundled_checkpoint_is_what_it_says(method: str) -> None:
    path = bundled.path(method)
    facts = describe(open_checkpoint(path))
    assert method in methods.names()
    assert (facts["method"], facts["heads"], facts["context"], facts["tokenizer"]) == (method, 12, 512, "bytes")
    assert path.stat().st_size < 4_000_000


@pytest.mark.parametrize("method", bundled.names())
def test_a_bundled_checkpoint_has_learned(method: str) -> None:
    """It predicts far better than one who knows only how frequent each byte is."""
    training = open_checkpoint(bundled.path(method)).config["notes"]["training"]
    assert training["steps"] == training["planned_steps"]
    assert 2.5 < training["unigram_loss"] < 4  # English text, in nats
    assert training["validation_loss"] < 0.75 * training["unigram_loss"]


@pytest.mark.parametrize("method", bundled.names())
def test_a_bundled_checkpoint_renders(method: str, posviz: Callable[..., Any], tmp_path: Path) -> None:
    ran = posviz("render", "--method", method, "--seq-len", 128, "--out", tmp_path / "f.png")
    assert (ran.code, ran.out) == (0, f"{tmp_path}/f.png\n")
    assert ran.err == f"posviz: using the bundled checkpoint {method}.safetensors\n"
    stack = library.capture(method=method, seq_len=128)
    assert stack.values.shape == (12, 128, 128)
    assert np.ptp(stack.limits(), axis=1).min() > 0
    assert_cells_are_the_values(tmp_path / "f.png", stack)


def test_what_is_not_bundled_is_named() -> None:
    with pytest.raises(MethodError, match="no checkpoint of nothing is bundled; give one with --ckpt"):
        bundled.path("nothing")
    with pytest.raises(MethodError, match="neither --ckpt nor --method was given"):
        bundled.path(None)
