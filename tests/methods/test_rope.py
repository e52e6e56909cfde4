"""RoPE: turning pairs is multiplying complex numbers, and what remains of it in the scores is the distance."""

from __future__ import annotations

import formulas
import numpy as np
import pytest
import torch
from closeness import assert_near

from posviz import methods
from posviz.errors import MethodError

PAIRINGS = ["halves", "neighbours"]


def random(length: int, dim: int = 16, seed: int = 0) -> torch.Tensor:
    return torch.randn(1, 3, length, dim, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("rotary_dim", [None, 16, 6, 2])
@pytest.mark.parametrize("base", [10000.0, 500000.0, 10.0])
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_pairs_turn_as_complex_numbers(pairing: str, base: float, rotary_dim: int | None) -> None:
    made = methods.get("rope")(3, pairing=pairing, base=base, rotary_dim=rotary_dim)
    x = random(700)
    found = made.rotate(x)[0].numpy()
    assert found.dtype == np.float32
    assert_near(found, formulas.rope(x[0].double().numpy(), pairing, base, rotary_dim))
    if rotary_dim and rotary_dim < 16:
        np.testing.assert_array_equal(found[..., rotary_dim:], x[0, ..., rotary_dim:].numpy())


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_the_scores_depend_on_the_distance_alone(pairing: str) -> None:
    """The same query and the same key at every position: each diagonal of their scores has one value."""
    one_q, one_k = random(1, seed=1), random(1, seed=2)
    made = methods.get("rope")(3, pairing=pairing)
    q, k = (made.rotate(one.expand(1, 3, 300, 16)) for one in (one_q, one_k))
    scores = (q @ k.transpose(-1, -2))[0].numpy()
    for distance in (0, 1, 50, 299):
        along = np.diagonal(scores, -distance, axis1=1, axis2=2)
        assert np.ptp(along, axis=1).max() < 1e-5 * np.abs(scores).max()
    assert np.ptp(scores[0, 299]) > 0.1
    torch.testing.assert_close(q.norm(dim=-1), one_q.norm(dim=-1).expand(1, 3, 300))  # turning keeps the length


def test_halves_are_those_of_llama_and_neighbours_those_of_gpt_j() -> None:
    from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb as gptj
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb as llama

    x = random(40)
    angle = torch.arange(40.0)[:, None] * 10000.0 ** (-torch.arange(0, 16, 2) / 16)
    both = torch.cat([angle, angle], dim=-1)[None]
    torch.testing.assert_close(methods.get("rope")(3).rotate(x), llama(x, x, both.cos(), both.sin())[0])
    seen = gptj(x.transpose(1, 2), angle.sin()[None], angle.cos()[None]).transpose(1, 2)
    torch.testing.assert_close(methods.get("rope")(3, pairing="neighbours").rotate(x), seen)


def test_far_positions_keep_their_angle() -> None:
    """Position 16384 turns the first pair by 2607.6 times a full turn; what is left of it must still be right."""
    x = torch.zeros(1, 1, 16385, 4)
    x[..., 0] = 1
    last = methods.get("rope")(1).rotate(x)[0, 0, -1]
    assert last[0].item() == pytest.approx(np.cos(np.float64(16384)), abs=1e-6)
    assert last[2].item() == pytest.approx(np.sin(np.float64(16384)), abs=1e-6)


@pytest.mark.parametrize("turned", [3, 18, 17, 0, -2])
def test_a_part_that_cannot_be_turned_is_refused(turned: int) -> None:
    with pytest.raises(MethodError, match=f"rotary_dim is {turned}; expected an even number up to the head's 16"):
        methods.get("rope")(3, rotary_dim=turned).rotate(random(5))


@pytest.mark.parametrize("base", [0.0, -5.0, float("nan"), float("inf")])
def test_a_base_that_turns_nothing_is_refused(base: float) -> None:
    with pytest.raises(MethodError, match=f"the base of rope is {base}; expected a number above 0"):
        methods.get("rope")(3, base=base)


def test_an_unknown_pairing_is_refused() -> None:
    with pytest.raises(MethodError, match="pairing 'odd' of rope: expected halves or neighbours"):
        methods.get("rope")(3, pairing="odd")
