"""ALiBi's two conventions of slopes, against what was published and what BLOOM's code computes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from posviz import methods
from posviz.errors import MethodError
from posviz.methods.alibi import slopes
from posviz.methods.base import Block

# For eight heads the ALiBi paper prints 1/2, 1/4, ..., 1/256; its code fills up to twelve with every other of sixteen.
PUBLISHED_8 = [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]
INTERLEAVED_12 = [*PUBLISHED_8, 2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5]


@pytest.mark.parametrize("convention", ["geometric", "interleaved"])
def test_powers_of_two_are_as_published(convention: str) -> None:
    assert slopes(8, convention) == PUBLISHED_8
    assert slopes(16, convention) == pytest.approx([2 ** (-h / 2) for h in range(1, 17)])
    assert slopes(1, convention) == [2**-8]


def test_twelve_heads_interleaved() -> None:
    found = slopes(12, "interleaved")
    assert found == pytest.approx(INTERLEAVED_12, rel=1e-12)
    assert found[8:] == pytest.approx([0.70710678, 0.35355339, 0.1767767, 0.08838835], abs=1e-8)
    assert found != sorted(found, reverse=True)


def test_twelve_heads_geometric() -> None:
    found = slopes(12, "geometric")
    assert found == pytest.approx([math.exp(-8 * h / 12 * math.log(2)) for h in range(1, 13)])
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("heads", [1, 2, 3, 6, 12, 14, 20, 25, 40, 71, 112])
def test_interleaved_is_what_bloom_computes(heads: int) -> None:
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    stripes = build_alibi_tensor(torch.ones(1, 2, dtype=torch.long), heads, torch.float32)
    np.testing.assert_allclose(slopes(heads, "interleaved"), stripes[:, 0, 1].numpy(), rtol=1e-5)


def test_stored_slopes_win() -> None:
    stored = np.linspace(0.5, 0.1, 12, dtype=np.float32)
    block = Block(np.arange(9)[:, None], np.arange(9)[None, :], np)
    for shape in [(12,), (12, 1, 1), (1, 12, 1, 1)]:
        found = methods.get("alibi")(12, slopes="interleaved").bias({"slopes": stored.reshape(shape)}, block)
        np.testing.assert_allclose(found[:, 8, 0], -8 * stored, rtol=1e-6)


@pytest.mark.parametrize("method", ["alibi", "dapev2-alibi"])
def test_an_unknown_convention_is_refused(method: str) -> None:
    with pytest.raises(MethodError, match=f"slopes 'flat' of {method}: expected geometric or interleaved"):
        methods.get(method)(12, slopes="flat")
