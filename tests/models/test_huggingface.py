"""Every family: the softmax of what is captured is the model's own attention, layer by layer."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_transformers import FAMILIES, IDS, TOKENS, save
from transformers import AutoModel

from posviz.errors import MethodError
from posviz.models.huggingface import open_model, verify
from posviz.rows import fold

TOLERANCE = 1e-5


@pytest.fixture(scope="module", params=FAMILIES)
def family(request):
    return FAMILIES[request.param]


@pytest.fixture(scope="module")
def folder(family, tmp_path_factory):
    return save(family, tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def model(family, folder):
    return open_model(str(folder), stack=family.stack)


def test_the_softmax_of_the_scores_is_the_models_own_attention(family, folder, model):
    ids = torch.from_numpy(IDS)[None]
    eager = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    inputs = {"input_ids": ids, "decoder_input_ids": ids} if eager.config.is_encoder_decoder else {"input_ids": ids}
    with torch.no_grad():
        output = eager(**inputs, output_attentions=True)
    halves = {"encoder": "encoder_attentions", "cross": "cross_attentions"}
    name = halves.get(family.stack, "decoder_attentions" if eager.config.is_encoder_decoder else "attentions")
    own = getattr(output, name)
    assert len(own) == model.n_layers
    for layer, seen in model.captures(IDS, range(model.n_layers)).items():
        np.testing.assert_allclose(seen.rows("attention", 0, TOKENS), own[layer][0].numpy(), atol=TOLERANCE)
        hidden = own[layer][0].numpy()[:, ~seen.visible(0, TOKENS)] if seen.visible(0, 1).ndim == 2 else np.zeros(1)
        assert hidden.size == 0 or hidden.max() == 0


def test_verify_finds_no_difference(model):
    differences = verify(model, IDS, range(model.n_layers))
    assert [layer for layer, _ in differences] == list(range(model.n_layers))
    assert max(difference for _, difference in differences) <= TOLERANCE


def test_each_layer_is_recognised_and_its_quantities_agree(family, model):
    captures = model.captures(IDS, range(model.n_layers))
    assert [seen.method for seen in captures.values()] == family.expected(model.n_layers)
    for seen in captures.values():
        assert (seen.n_head, seen.seq_len, seen.key_len) == (model.n_heads, TOKENS, TOKENS)
        assert not any(note.startswith("warning: attention") for note in seen.notes)
        content, scores = seen.rows("content", 0, TOKENS), seen.rows("scores", 0, TOKENS)
        if seen.additive:
            visible = seen.visible(0, TOKENS)
            total = content + seen.rows("bias", 0, TOKENS)
            np.testing.assert_allclose(np.where(visible, scores, 0), np.where(visible, total, 0), atol=1e-5)
        else:
            with pytest.raises(MethodError):
                seen.rows("bias", 0, TOKENS)
        if seen.method == "rope":  # a token's own score is not turned
            capped = content if seen.cap is None else seen.cap * np.tanh(content / seen.cap)
            own = np.arange(TOKENS)
            np.testing.assert_allclose(scores[:, own, own], capped[:, own, own], rtol=1e-4, atol=1e-4)
            assert not np.allclose(scores, capped, atol=1e-3)


def test_blocks_of_rows_are_the_rows_of_the_whole(model):
    seen = model.capture(IDS, 0)
    for quantity in ("scores", "content", "attention", *(("bias",) if seen.additive else ())):
        whole = seen.rows(quantity, 0, TOKENS)
        parts = [seen.rows(quantity, start, min(start + 7, TOKENS)) for start in range(0, TOKENS, 7)]
        np.testing.assert_allclose(np.concatenate(parts, axis=1), whole, atol=1e-5)
    seen_parts = [seen.visible(start, start + 1) for start in range(TOKENS)]
    np.testing.assert_array_equal(np.concatenate(seen_parts, axis=-2), seen.visible(0, TOKENS))


def test_a_stack_is_made_of_it(model):
    stack = fold(model.capture(IDS, model.n_layers - 1), "attention")
    assert stack.values.shape == (model.n_heads, TOKENS, TOKENS)
    assert np.nanmax(stack.values) <= 1.0 + 1e-5
