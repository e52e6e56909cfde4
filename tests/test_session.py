"""From a checkpoint on disk to the numbers that are drawn: right, shared where possible, no more read than needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import formulas
import numpy as np
import pytest
import torch
from closeness import assert_near
from safetensors.torch import load_file, save_file
from small_models import config_of, forward, model_of, saved

from posviz import __version__, methods
from posviz.checkpoint import Checkpoint
from posviz.errors import CheckpointError, PosvizError
from posviz.models import own
from posviz.options import CaptureRequest
from posviz.session import Session
from posviz.stack import HeadStack

PLAIN = [name for name in methods.names() if not methods.get(name).token_dependent]
ADDITIVE = [name for name in methods.names() if methods.get(name).additive]


def taken(path: Path, **options: Any) -> HeadStack:
    request = CaptureRequest(ckpt=str(path), **options)
    return Session([request]).stack(request)


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A checkpoint of each method, all of three layers."""
    folder = tmp_path_factory.mktemp("models")
    return {m: saved(model_of(config_of(m, n_layer=3)), folder / f"{m}.safetensors") for m in methods.names()}


@pytest.mark.parametrize("method", methods.names())
def test_what_is_drawn_is_the_formula_of_what_the_layer_was_given(method: str, paths: dict[str, Path]) -> None:
    """512 positions of the sample text, the final layer, no option at all: the command's own default."""
    stack = taken(paths[method])
    drawn = "bias" if method in ADDITIVE else "scores"
    assert stack.meta["quantity"] == drawn
    assert stack.values.shape == (12, 512, 512)
    model = model_of(config_of(method, n_layer=3))
    ids = stack.token_ids if stack.token_ids is not None else np.arange(512) % 256
    passed = forward(model, ids, layer=2)
    q, k, _ = formulas.projections(passed.x, passed.weights, 12)
    if method == "rope":
        q, k = formulas.rope(q), formulas.rope(k)
    content = formulas.product(q, k, 0.5)  # heads of 4 numbers
    own_tensors = {n.removeprefix("pos."): t for n, t in passed.weights.items() if n.startswith("pos.")}
    wanted = formulas.bias(method, own_tensors, 12, passed.x, content) if drawn == "bias" else content
    assert_near(stack.values, wanted)


@pytest.mark.parametrize("method", ADDITIVE)
def test_the_bias_alone_is_the_bias_of_a_run(method: str, paths: dict[str, Path]) -> None:
    """Read from the file by numpy, or added by the model in torch: the same numbers."""
    seen = {q: taken(paths[method], quantity=q, seq_len=100, layer=2).values for q in ("bias", "scores", "content")}
    assert_near(seen["bias"], seen["scores"].astype(np.float64) - seen["content"])
    attention = taken(paths[method], quantity="attention", seq_len=100, layer=2).values
    assert_near(attention, formulas.softmax(seen["content"].astype(np.float64) + seen["bias"]))


@pytest.mark.parametrize("method", PLAIN)
def test_a_bias_without_tokens_reads_its_own_tensors_only(
    method: str, paths: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    monkeypatch.setattr(Checkpoint, "torch", lambda *_: pytest.fail("a tensor of the model was loaded"))
    plain = Checkpoint.read
    monkeypatch.setattr(Checkpoint, "read", lambda self, name: read.append(name) or plain(self, name))
    stack = taken(paths[method], layer=2)
    assert stack.token_ids is None
    assert stack.tokens == ()
    assert sorted(read) == sorted(
        f"transformer.h.1.attn.pos.{suffix}" for suffix in methods.get(method).spec if suffix != "slopes"
    )


def broken(path: Path, folder: Path, **changes: Any) -> Path:
    """The checkpoint with some tensors replaced, or left out where that is None; `__` stands for a dot."""
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        metadata = file.metadata()
    state = load_file(path) | {name.replace("__", "."): t for name, t in changes.items()}
    save_file({n: t for n, t in state.items() if t is not None}, folder / "broken.safetensors", metadata)
    return folder / "broken.safetensors"


def test_damage_matters_only_where_it_is_read(paths: dict[str, Path], tmp_path: Path) -> None:
    nan = torch.full((144, 48), float("nan"))
    path = broken(paths["kerple"], tmp_path, transformer__h__0__attn__c_attn__weight=nan)
    np.testing.assert_array_equal(taken(path).values, taken(paths["kerple"]).values)
    with pytest.raises(CheckpointError, match=r"h\.0\.attn\.c_attn\.weight holds 6912 NaN or infinite values of 6912"):
        taken(path, quantity="scores")
    path = broken(paths["cable"], tmp_path, transformer__h__2__attn__c_attn__weight=nan)
    assert taken(path, layer=2, seq_len=20).values.shape == (12, 20, 20)


def test_weights_that_overflow_are_refused(paths: dict[str, Path], tmp_path: Path) -> None:
    huge = torch.full((12, 48), 1e38)
    path = broken(paths["cable"], tmp_path, transformer__h__2__attn__pos__h_attn__weight=huge)
    with pytest.raises(PosvizError, match=r"the bias of layer 3 of broken\.safetensors is not finite"):
        taken(path, seq_len=60)


@pytest.mark.parametrize("method", ["dapev2-kerple", "rope"])
def test_requests_that_share_a_model_share_one_run(
    method: str, paths: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[list[int]] = []
    plain = own.run
    monkeypatch.setattr(own, "run", lambda model, ids, layers: runs.append(list(layers)) or plain(model, ids, layers))
    asked = [
        CaptureRequest(ckpt=str(paths[method]), seq_len=60, layer=layer, quantity=quantity, heads=heads, mask=mask)
        for layer, quantity, heads, mask in [
            (1, "scores", None, True), (-1, "attention", None, True), (3, "content", "2-3", False),
        ]
    ]  # fmt: skip
    session = Session(asked)
    together = [session.stack(request) for request in asked]
    assert runs == [[0, 2]]
    for request, stack in zip(asked, together, strict=True):
        alone = Session([request]).stack(request)
        np.testing.assert_array_equal(stack.values, alone.values)
        assert stack.meta == alone.meta
        assert stack.heads == alone.heads


def test_other_tokens_are_another_run(paths: dict[str, Path]) -> None:
    a, b = (CaptureRequest(ckpt=str(paths["cable"]), seq_len=50, seed=seed) for seed in (0, 1))
    session = Session([a, b])
    first, second = session.stack(a), session.stack(b)
    assert not np.array_equal(first.token_ids, second.token_ids)
    assert not np.array_equal(first.values, second.values, equal_nan=True)


def test_a_neighbours_wrong_layer_is_its_own_error(paths: dict[str, Path]) -> None:
    right, wrong = (CaptureRequest(ckpt=str(paths["cable"]), seq_len=20, layer=layer) for layer in (2, 9))
    session = Session([wrong, right])
    assert session.stack(right).meta["layer"] == 2
    with pytest.raises(CheckpointError, match=r"there is no layer 9; the model has layers 1 to 3 \(or -3 to -1"):
        session.stack(wrong)


@pytest.mark.parametrize("method", ["kerple", "rope"])
def test_layers_count_from_one_or_from_the_end(method: str, paths: dict[str, Path]) -> None:
    seen = {layer: taken(paths[method], layer=layer, seq_len=40) for layer in (1, 2, 3, -1, -2, -3)}
    assert {layer: stack.meta["layer"] for layer, stack in seen.items()} == {1: 1, 2: 2, 3: 3, -1: 3, -2: 2, -3: 1}
    for ahead, behind in ((1, -3), (2, -2), (3, -1)):
        np.testing.assert_array_equal(seen[ahead].values, seen[behind].values)
    assert not np.array_equal(seen[1].values, seen[2].values, equal_nan=True)
    for layer in (0, 4, -4):
        with pytest.raises(CheckpointError, match=f"there is no layer {layer};"):
            taken(paths[method], layer=layer, seq_len=40)


@pytest.mark.parametrize("method", ["t5", "dapev2-alibi"])
def test_heads_are_picked_and_the_future_is_blank_unless_asked_for(method: str, paths: dict[str, Path]) -> None:
    every, some = taken(paths[method], seq_len=30), taken(paths[method], seq_len=30, heads="7,2-3")
    assert some.heads == (7, 2, 3)
    np.testing.assert_array_equal(some.values, every.values[[6, 1, 2]])
    assert (np.isnan(every.values) == ~np.tri(30, dtype=bool)).all()
    bare = taken(paths[method], seq_len=30, mask=False)
    assert np.isfinite(bare.values).all()
    np.testing.assert_array_equal(bare.values[:, np.tri(30, dtype=bool)], every.values[:, np.tri(30, dtype=bool)])


@pytest.mark.parametrize("method", ["kerple", "cable"])
def test_a_stack_says_where_it_came_from(method: str, paths: dict[str, Path]) -> None:
    import hashlib

    stack = taken(paths[method], seq_len=64, seed=5, layer=2)
    meta = dict(stack.meta)
    assert meta.pop("token_ids_sha256") == (
        None if method == "kerple" else hashlib.sha256(stack.token_ids.astype("<i8").tobytes()).hexdigest()
    )
    assert meta == {
        "posviz_version": __version__,
        "method": method,
        "title": methods.get(method).title,
        "quantity": "bias",
        "layer": 2,
        "n_layers": 3,
        "n_heads": 12,
        "seq_len": 64,
        "key_len": 64,
        "context": 512,
        "seed": 5,
        "source": f"{method}.safetensors",
        "sha256": hashlib.sha256(paths[method].read_bytes()).hexdigest(),
        "notes": [],
        "options": {"ckpt": str(paths[method]), "seq-len": 64, "seed": 5, "layer": 2},
    }


@pytest.mark.parametrize("method", ["kerple", "cable"])
def test_more_positions_than_in_training_are_noted(method: str, paths: dict[str, Path]) -> None:
    assert taken(paths[method], seq_len=512).meta["notes"] == []
    notes = taken(paths[method], seq_len=513).meta["notes"]
    assert len(notes) == 1
    assert "513 positions are" in notes[0]
    assert "extrapolation" in notes[0]


def test_a_long_sequence_is_reduced_and_keeps_its_extremes(paths: dict[str, Path]) -> None:
    long = taken(paths["kerple"], seq_len=2050, reduce="min", heads="5")
    assert long.cell == 3  # 2050 positions in at most 1024 cells
    assert long.values.shape == (1, 684, 684)
    p = {
        n.rpartition(".")[2]: t[4].double().numpy()
        for n, t in load_file(paths["kerple"]).items()
        if "h.2.attn.pos" in n
    }
    last = formulas.kerple(p, 1, 2050)[0, 2049, 0]
    np.testing.assert_allclose(long.ranges, [[last, 0]], rtol=1e-5)
    np.testing.assert_allclose(long.values[0, 683, 0], last, rtol=1e-5)
