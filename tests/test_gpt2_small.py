"""Checkpoints of GPT-2 Small's shape in every method: however they were saved, they give the same figure."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from checkpoint_layouts import State, Writer, bare_safetensors, cable_names, nanogpt, ours, said_of, state_dict
from reading import pixels

from posviz import methods
from posviz.checkpoint import open_checkpoint
from posviz.config import ModelConfig
from posviz.models.gpt import GPT
from posviz.options import RenderRequest
from posviz.render import stacks_of, write
from posviz.stack import HeadStack

SMALL = {"n_layer": 12, "n_head": 12, "n_embd": 768, "vocab_size": 50304, "block_size": 1024}
NARROW = {**SMALL, "n_embd": 96}  # the same in all but the width, so that eleven of them take seconds


def config_of(method: str, sizes: dict[str, int]) -> ModelConfig:
    # CABLE's own models do not scale their scores, and a file in its layout is known by that.
    return ModelConfig(method, **sizes, scale_scores=method != "cable", learned_positions=method == "none")


def random_state(config: ModelConfig) -> State:
    """Seeded weights of about the size that training leaves, made without GPT-2's slow initialisation."""
    generator = torch.Generator().manual_seed(12)
    with torch.device("meta"):
        shapes = {name: t.shape for name, t in GPT(config, seed=None).state_dict().items()}
    state = {}
    for name, shape in shapes.items():
        centre = 1.0 if ".ln_" in name and name.endswith("weight") else 0.0
        state[name] = torch.empty(shape).normal_(centre, 0.02, generator=generator)
    state["lm_head.weight"] = state["transformer.wte.weight"]
    return state | positions(config)


def positions(config: ModelConfig) -> State:
    """The positional method's own parameters in every layer."""
    generator = torch.Generator().manual_seed(5)
    method = methods.get(config.method)(config.n_head, config.n_embd)
    return {
        f"transformer.h.{layer}.attn.pos.{suffix}": t
        for layer in range(config.n_layer)
        for suffix, t in method.initial(generator).items()
    }


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ids as CABLE's training data have them."""
    path = tmp_path_factory.mktemp("tokens") / "shard.npy"
    np.save(path, np.random.default_rng(0).integers(50257, size=5000).astype(np.uint16))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Emptied at once: pytest keeps the folders of several runs, which would be gigabytes here."""
    yield tmp_path
    shutil.rmtree(tmp_path)


def request_of(ckpt: Path, config: ModelConfig, tokens: Path, seq_len: int = 128) -> RenderRequest:
    """All that a person can say of the model; what its file says too must agree with it."""
    said = said_of(config)
    return RenderRequest(
        ckpt=str(ckpt), method=said.method, n_head=said.n_head, alibi_slopes=said.alibi_slopes,
        rope_pairing=said.rope_pairing, scale_scores=said.scale_scores, tokens=tokens, seq_len=seq_len,
    )  # fmt: skip


def figure(ckpt: Path, config: ModelConfig, tokens: Path, out: Path, seq_len: int = 128) -> tuple[bytes, HeadStack]:
    """The picture's pixels, and the numbers behind them."""
    request = replace(request_of(ckpt, config, tokens, seq_len), out=(out,))
    stacks = stacks_of(request)
    write(request, stacks)
    return pixels(out).tobytes(), stacks[0]


@pytest.mark.parametrize("method", methods.names())
def test_every_layout_gives_the_same_figure(method: str, tokens: Path, folder: Path) -> None:
    config = config_of(method, NARROW)
    state = random_state(config)
    wanted, stack = figure(ours(state, config, folder), config, tokens, folder / "ours.png")
    assert stack.values.shape == (12, 128, 128)
    assert stack.meta["layer"] == 12
    for layout in (bare_safetensors, state_dict):
        again = stacks_of(request_of(layout(state, config, folder), config, tokens))[0]
        np.testing.assert_array_equal(again.values, stack.values)
    found, _ = figure(cable_names(state, config, folder), config, tokens, folder / "cable.png")
    assert found == wanted
    # nanoGPT's MLP has the exact GELU, so it is another model than the one above wherever a layer below is run.
    exact = replace(config, gelu="exact")
    if methods.get(method).token_dependent:
        wanted, _ = figure(ours(state, exact, folder), exact, tokens, folder / "exact.png")
    found, _ = figure(nanogpt(state, exact, folder), exact, tokens, folder / "nanogpt.png")
    assert found == wanted


@pytest.fixture(scope="module")
def backbone() -> State:
    """Half a gigabyte of weights, to which each method adds its own."""
    return random_state(config_of("alibi", SMALL))


@pytest.mark.parametrize(("method", "layout"), [("cable", cable_names), ("kerple", nanogpt)], ids=["cable", "nanogpt"])
def test_at_full_size(method: str, layout: Writer, backbone: State, tokens: Path, folder: Path) -> None:
    """124 million parameters, 512 positions, the final layer."""
    config = config_of(method, SMALL)
    state = backbone | positions(config)
    seen = []
    for write_as, kind in ((ours, "posviz"), (layout, {"cable": "CABLE", "kerple": "nanoGPT"}[method])):
        path = write_as(state, config, folder)
        checkpoint = open_checkpoint(path)
        assert checkpoint.format == kind
        assert 123e6 < checkpoint.n_parameters < 125e6
        seen.append(figure(path, config, tokens, folder / "f.png", 512))
        path.unlink()  # half a gigabyte each
    (first, stack), (second, again) = seen
    np.testing.assert_array_equal(again.values, stack.values)
    assert stack.values.shape == (12, 512, 512)
    assert first == second
