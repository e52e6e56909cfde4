"""What would mislead is said in notes, and what cannot be done is said in one line."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_transformers import ASKED, BASE, FAMILIES, IDS, TOKENS, Family, save

from posviz.errors import CaptureError, CheckpointError, MethodError, SequenceError
from posviz.models.huggingface import open_model, verify
from posviz.models.huggingface.interface import Call


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return save(ASKED["llama"], tmp_path_factory.mktemp("llama"))


def notes(name, folder, layer=-1):
    model = open_model(str(save(FAMILIES[name], folder)), stack=FAMILIES[name].stack)
    return " | ".join(model.capture(IDS, layer % model.n_layers).notes)


@pytest.mark.parametrize("name", ["smollm3", "llama4", "cohere2"])
def test_a_layer_without_position_names_the_nearest_with(name, tmp_path):
    assert "layer 4 carries no position; the nearest layer with RoPE is layer 3" in notes(name, tmp_path)


@pytest.mark.parametrize(
    ("name", "layer", "said"),
    [
        ("mistral", 1, "the last query sees 7 of 24 keys"),
        ("gemma2", 0, "the last query sees 9 of 24 keys"),
        ("gemma2", 1, "capped softly at 2"),
        ("gpt_oss", 1, "attention sink"),
        ("gpt2", 1, "added to the token embeddings, and nothing in attention"),
        ("marian", 1, "added to the token embeddings, and nothing in attention"),
        ("mpnet", 1, "also added to the token embeddings"),
        ("t5", 1, "the decoder's self-attention is drawn; --stack encoder or cross"),
        ("t5 cross", 1, "given the same tokens"),
        ("t5 cross", 1, "layer 2 carries no position: its scores are content alone"),
    ],
)
def test_notes(name, layer, said, tmp_path):
    assert said in notes(name, tmp_path, layer)


def test_an_ordinary_layer_has_nothing_to_say(llama):
    assert open_model(str(llama)).capture(IDS, 1).notes == ()


def test_half_precision_is_said_and_can_be_changed(tmp_path):
    model = save(ASKED["llama"], tmp_path)
    half = {name: tensor.bfloat16() for name, tensor in load_file(model / "model.safetensors").items()}
    save_file(half, model / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "dtype": "bfloat16"}))
    assert "bfloat16" in " ".join(open_model(str(model)).notes)
    fine = open_model(str(model), dtype="float32")
    assert fine.notes == ()
    assert fine.capture(IDS, 0).q.dtype == torch.float32


@pytest.mark.parametrize(("name", "why"), [("llama", "turns queries and keys"), ("bert", "to its token embeddings")])
def test_a_bias_that_is_not_there_is_explained(name, why, tmp_path):
    seen = open_model(str(save(FAMILIES[name], tmp_path))).capture(IDS, 0)
    with pytest.raises(MethodError, match=why):
        seen.rows("bias", 0, 1)


def test_facts(llama):
    model = open_model(str(llama))
    assert (model.name, model.n_layers, model.n_heads) == (llama.name, 2, 4)
    assert (model.vocab_size, model.context, model.position_table, model.stack) == (100, 64, None, None)
    assert model.method_of(1) == "rope"
    assert model.capture(IDS, 0).title == "RoPE"


def test_the_weights_can_be_asked_for(llama):
    seen = open_model(str(llama)).capture(IDS, 1)
    np.testing.assert_allclose(seen.weights(), seen.rows("attention", 0, TOKENS), atol=1e-6)


@pytest.mark.parametrize(
    ("wrong", "said"), [({"causal": False}, True), ({"scale": 0.1}, True), ({"cap": 1.0}, True), ({}, False)]
)
def test_a_wrong_reading_of_the_call_is_found_out(llama, monkeypatch, wrong, said):
    read = Call.seen
    monkeypatch.setattr(Call, "seen", lambda call: replace(read(call), **wrong))
    model = open_model(str(llama))
    assert (verify(model, IDS, [1])[0][1] > 1e-3) == said
    warned = any("differs from the model's own" in note for note in model.capture(IDS, 1).notes)
    assert warned == (said and "causal" not in wrong)  # the last row of a causal mask hides nothing


def test_a_hybrid_model_names_the_layers_that_attend(tmp_path):
    config = {**BASE, "num_key_value_heads": 2, "layer_types": ["conv", "full_attention"]}
    model = open_model(str(save(Family("lfm2", "rope", config), tmp_path)))
    assert model.capture(IDS, 1).method == "rope"
    with pytest.raises(CaptureError, match=r"layer 1 of .* attends in no way we see; layers with attention are: 2"):
        model.capture(IDS, 0)


def test_sparse_attention_is_refused(tmp_path):
    family = Family("longformer", "learned", {**BASE, "attention_window": 4})
    model = open_model(str(save(family, tmp_path)))
    with pytest.raises(CaptureError, match="in pieces"):
        model.capture(IDS, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stack": "encoder"}, "not an encoder-decoder model"),
        ({"stack": "encodr"}, "unknown stack 'encodr'; did you mean 'encoder'"),
        ({"dtype": "float31"}, "unknown dtype 'float31'; did you mean 'float32'"),
    ],
)
def test_wrong_options(llama, options, message):
    with pytest.raises(CheckpointError, match=message):
        open_model(str(llama), **options)


def test_a_model_that_takes_no_tokens(tmp_path):
    config = {**BASE, "image_size": 8, "patch_size": 4}
    with pytest.raises(CheckpointError, match="takes pixel_values, not tokens"):
        open_model(str(save(Family("vit", "learned", config), tmp_path)))


def one_line(caught) -> str:
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_missing_folder_and_an_unknown_id(tmp_path):
    for source in (str(tmp_path / "nothing"), "no-such-owner/no-such-model"):
        with pytest.raises(CheckpointError, match="cannot be opened as a transformers model") as caught:
            open_model(source)
        assert source in one_line(caught)


def test_tensors_that_are_not_there_are_not_made_up(tmp_path):
    folder = save(ASKED["llama"], tmp_path)
    weights = load_file(folder / "model.safetensors")
    del weights["layers.1.self_attn.q_proj.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match=r"lacks 1 of its model's tensors, such as layers\.1\.self_attn\.q_proj"):
        open_model(str(folder))


def test_a_truncated_file(tmp_path):
    folder = save(ASKED["llama"], tmp_path)
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(CheckpointError, match="cannot be opened") as caught:
        open_model(str(folder))
    one_line(caught)


def test_broken_weights(tmp_path):
    folder = save(ASKED["llama"], tmp_path)
    weights = load_file(folder / "model.safetensors")
    weights["layers.0.self_attn.q_proj.weight"].fill_(float("nan"))
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CaptureError, match="not finite"):
        open_model(str(folder)).capture(IDS, 0)


def test_code_in_a_folder_is_not_run_unasked(tmp_path):
    (tmp_path / "mine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    config = {"model_type": "mine", "auto_map": {"AutoConfig": "mine.Config", "AutoModel": "mine.Model"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match="only if you say --trust-remote-code") as caught:
        open_model(str(tmp_path))
    one_line(caught)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("ids", [[3, 100], [-1, 3]])
def test_ids_outside_the_vocabulary(llama, ids):
    with pytest.raises(SequenceError, match=r"is not in .*'s vocabulary of 100"):
        open_model(str(llama)).capture(np.array(ids), 0)


def test_layers_that_are_not_there(llama):
    with pytest.raises(CaptureError, match="has no layer 3; it has layers 1 to 2"):
        open_model(str(llama)).capture(IDS, 2)


@pytest.mark.parametrize("name", ["gpt2", "roberta", "gptj", "codegen"])
def test_more_tokens_than_positions(name, tmp_path):
    model = open_model(str(save(FAMILIES[name], tmp_path)))
    with pytest.raises(SequenceError, match="65 tokens"):
        model.capture(np.full(65, 7), 0)
