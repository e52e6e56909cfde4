"""The registry: names, recognition by a layer's own parameters, and checks of their shapes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from posviz import methods
from posviz.errors import CheckpointError, MethodError
from posviz.methods.base import Block

ELEVEN = [
    "alibi", "t5", "kerple", "kerple-power", "fire", "dapev2-kerple", "dapev2-alibi", "dapev2-fire", "cable", "rope",
    "none",
]  # fmt: skip


def shapes_of(method: str) -> dict[str, tuple[int, ...]]:
    start = methods.get(method)(12, 48).initial(torch.Generator().manual_seed(0))
    return {name: tuple(t.shape) for name, t in start.items()}


def test_every_method_is_there_under_its_own_name() -> None:
    assert methods.names() == ELEVEN
    for name in methods.names():
        found = methods.get(name)
        assert found.name == name
        assert found.title
        assert found.drawn
        assert found.reference


@pytest.mark.parametrize(("wrong", "near"), [("kerpel", "kerple"), ("ALiBi", "alibi"), ("RoPE", "rope")])
def test_a_misspelt_name_gets_a_suggestion_and_the_list(wrong: str, near: str) -> None:
    with pytest.raises(MethodError) as raised:
        methods.get(wrong)
    message = str(raised.value)
    assert f"unknown method {wrong!r}; did you mean {near!r}?" in message
    assert all(name in message for name in ELEVEN)


@pytest.mark.parametrize("method", ["t5", "kerple", "fire", "dapev2-kerple", "dapev2-alibi", "dapev2-fire", "cable"])
def test_a_layer_is_recognised_as_one_method(method: str) -> None:
    found = methods.recognise(shapes_of(method), {})
    assert [hit.method for hit in found] == [method]
    assert found[0].n_head == 12
    assert "the layer holds" in found[0].why


def test_what_has_no_name_of_its_own_is_not_recognised() -> None:
    assert methods.recognise(shapes_of("kerple-power"), {}) == methods.recognise(shapes_of("kerple"), {})
    assert methods.recognise({"c_attn.weight": (144, 48)}, {}) == []


def test_slopes_frequencies_and_a_table_of_positions_tell() -> None:
    found = {
        "alibi": methods.recognise({"slopes": (12, 1, 1)}, {}),
        "rope": methods.recognise({"rotary_emb.inv_freq": (2,)}, {}),
        "none": methods.recognise({}, {"learned_positions": True}),
    }
    for method, hits in found.items():
        assert [hit.method for hit in hits] == [method]
    assert found["alibi"][0].n_head == 12
    assert found["rope"][0].n_head is None


@pytest.mark.parametrize("method", [name for name in ELEVEN if name not in ("alibi", "rope", "none")])
def test_a_missing_parameter_is_named(method: str) -> None:
    made, shapes = methods.get(method)(12, 48), shapes_of(method)
    for suffix in made.required():
        rest = {name: shape for name, shape in shapes.items() if name != suffix}
        with pytest.raises(CheckpointError, match=f"layer 2 of x has no {suffix}, which {method} needs"):
            made.check(rest, "layer 2 of x")


@pytest.mark.parametrize(
    ("method", "suffix", "shape", "wanted"),
    [
        ("kerple", "bias_p", (8, 1, 1), "[12, 1, 1]"),
        ("kerple", "bias_a", (12, 2, 1), "[12, 1, 1]"),
        ("t5", "relative_attention_bias.weight", (32, 8), "[bucket, 12]"),
        ("t5", "relative_attention_bias.weight", (12,), "[bucket, 12]"),
        ("fire", "mlp.2.weight", (12, 16), "[12, 32]"),
        ("cable", "h_attn.weight", (12, 50), "[12, 48]"),
        ("dapev2-kerple", "mlp2.2.weight", (12, 32, 3, 1), "[12, 32, 1, 3]"),
    ],
)
def test_a_wrong_shape_is_named_with_the_right_one(
    method: str, suffix: str, shape: tuple[int, ...], wanted: str
) -> None:
    with pytest.raises(CheckpointError) as raised:
        methods.get(method)(12, 48).check(shapes_of(method) | {suffix: shape}, "layer 1 of x")
    assert str(raised.value) == f"layer 1 of x: {suffix} has shape {list(shape)}, expected {wanted} for {method}"


@pytest.mark.parametrize("method", ["rope", "none"])
def test_no_bias_is_an_error_that_says_what_to_ask_for(method: str) -> None:
    block = Block(np.arange(3)[:, None], np.arange(3)[None, :], np)
    with pytest.raises(MethodError, match="adds no bias to the scores; ask for 'scores', 'content' or 'attention'"):
        methods.get(method)(2).bias({}, block)


def test_an_option_that_a_method_does_not_have_is_refused() -> None:
    with pytest.raises(MethodError, match="kerple has no option 'base'; it has: none"):
        methods.get("kerple")(12, base=3)
