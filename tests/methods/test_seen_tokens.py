"""The methods that look at tokens, against loops: CABLE's walk, DAPE V2's convolutions."""

from __future__ import annotations

import formulas
import numpy as np
import pytest
import torch
from closeness import assert_near

from posviz import methods
from posviz.methods.base import Block

HEADS, WIDTH = 5, 20
DAPE = ["dapev2-kerple", "dapev2-alibi", "dapev2-fire"]


def past(values: torch.Tensor) -> np.ndarray:
    return np.where(np.tri(*values.shape[-2:], dtype=bool), values[0].numpy(), np.nan)


def parameters(method: str, heads: int = HEADS) -> tuple[dict[str, torch.Tensor], dict[str, np.ndarray]]:
    """Moved away from the start, as torch has them and as float64."""
    generator = torch.Generator().manual_seed(11)
    start = methods.get(method)(heads, WIDTH).initial(generator)
    p = {n: t if n == "init_L" else t + 0.2 * torch.randn(t.shape, generator=generator) for n, t in start.items()}
    return p, {name: t.double().numpy() for name, t in p.items()}


def block(length: int, start: int = 0, stop: int | None = None, **seen: torch.Tensor | None) -> Block:
    i = torch.arange(start, length if stop is None else stop)[:, None]
    return Block(i, torch.arange(length)[None, :], torch, **seen)


@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("length", [1, 2, 150])
def test_cable_walks_from_key_to_query(length: int, with_bias: bool) -> None:
    p, wide = parameters("cable")
    if not with_bias:
        del p["h_attn.bias"], wide["h_attn.bias"]
    x = torch.randn(1, length, WIDTH, generator=torch.Generator().manual_seed(0))
    made = methods.get("cable")(HEADS, WIDTH)
    found = made.bias(p, block(length, state=made.prepare(p, x)))
    wanted = formulas.cable(wide, HEADS, x[0].double().numpy())
    if length > 1:
        assert_near(past(found), wanted)
    else:
        np.testing.assert_array_equal(past(found), wanted)


def test_cable_only_falls_and_is_cut_from_the_whole() -> None:
    p, _ = parameters("cable")
    made = methods.get("cable")(HEADS, WIDTH)
    state = made.prepare(p, torch.randn(2, 90, WIDTH, generator=torch.Generator().manual_seed(1)))
    whole = made.bias(p, block(90, state=state))
    assert whole.shape == (2, HEADS, 90, 90)
    assert (whole[:, :, 1:] < whole[:, :, :-1]).all()  # every token farther on makes every key less visible
    for start, stop in [(0, 1), (40, 77), (89, 90)]:
        torch.testing.assert_close(made.bias(p, block(90, start, stop, state=state)), whole[:, :, start:stop])


def test_cable_sums_in_float32_when_the_model_computes_in_bfloat16() -> None:
    p, _ = parameters("cable")
    made = methods.get("cable")(HEADS, WIDTH)
    short = {name: t.bfloat16() for name, t in p.items()}
    x = torch.randn(1, 2000, WIDTH, generator=torch.Generator().manual_seed(1)).bfloat16()
    state = made.prepare(short, x)
    assert state.dtype == torch.float32
    exact = made.prepare({n: t.double() for n, t in short.items()}, x.double())
    # bfloat16 has three digits: the steps are off by as much, but their errors do not pile up with the distance.
    assert (state - exact).abs().max() < 2e-3 * exact.abs().max()


@pytest.mark.parametrize("method", DAPE)
@pytest.mark.parametrize("length", [1, 2, 3, 70])
def test_dape_convolves_along_keys(method: str, length: int) -> None:
    p, wide = parameters(method)
    content = torch.randn(1, HEADS, length, length, generator=torch.Generator().manual_seed(4))
    found = methods.get(method)(HEADS, WIDTH).bias(p, block(length, content=content))
    wrapped = method.removeprefix("dapev2-")
    exact = content[0].double().numpy()
    plain = formulas.bias(wrapped, wide, HEADS, np.zeros((length, 1)), np.zeros(0))
    assert_near(past(found), formulas.dape(wide, plain, exact))


def test_dape_by_single_numbers() -> None:
    """Two heads and four queries, with nothing but sums of single products."""
    p, wide = parameters("dapev2-alibi", 2)
    content = torch.randn(1, 2, 4, 4, generator=torch.Generator().manual_seed(4))
    found = methods.get("dapev2-alibi")(2).bias(p, block(4, content=content))[0]
    a = content[0].double().numpy()
    slope = [2.0**-4, 2.0**-8]

    def entry(channel: int, i: int, j: int) -> float:
        if not 0 <= j <= i:
            return 0.0
        return float(a[channel, i, j]) if channel < 2 else -slope[channel - 2] * (i - j)

    def hidden(unit: int, i: int, j: int) -> float:
        if not 0 <= j < 4:  # padding, which is not what the first convolution would give there
            return 0.0
        total = float(wide["mlp2.0.bias"][unit])
        for channel in range(4):
            for tap in (-1, 0, 1):
                total += wide["mlp2.0.weight"][unit, channel, 0, tap + 1] * entry(channel, i, j + tap)
        return total if total > 0 else 0.01 * total

    for head in range(2):
        for i in range(4):
            for j in range(i + 1):
                total = -slope[head] * (i - j) + float(wide["mlp2.2.bias"][head])
                for unit in range(32):
                    for tap in (-1, 0, 1):
                        total += wide["mlp2.2.weight"][head, unit, 0, tap + 1] * hidden(unit, i, j + tap)
                assert found[head, i, j].item() == pytest.approx(total, abs=1e-5)


@pytest.mark.parametrize("method", DAPE)
def test_dape_of_some_rows_needs_no_others(method: str) -> None:
    p, _ = parameters(method)
    content = torch.randn(1, HEADS, 560, 560, generator=torch.Generator().manual_seed(4))
    made = methods.get(method)(HEADS, WIDTH)
    whole = made.bias(p, block(560, content=content))
    for start, stop in [(0, 1), (100, 140), (505, 530)]:
        part = made.bias(p, block(560, start, stop, content=content[:, :, start:stop]))
        torch.testing.assert_close(part, whole[:, :, start:stop])


@pytest.mark.parametrize("method", DAPE)
def test_dape_cannot_see_the_future(method: str) -> None:
    p, _ = parameters(method)
    content = torch.randn(1, HEADS, 30, 30, generator=torch.Generator().manual_seed(4))
    other = torch.where(torch.ones(30, 30).tril() > 0, content, 1e6)
    made = methods.get(method)(HEADS, WIDTH)
    np.testing.assert_array_equal(
        past(made.bias(p, block(30, content=content))), past(made.bias(p, block(30, content=other)))
    )
