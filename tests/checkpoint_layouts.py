"""One small model, saved in every layout that posviz reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import save_file

from posviz.checkpoint import Overrides, save_checkpoint
from posviz.config import ModelConfig
from posviz.models.gpt import GPT

State = dict[str, torch.Tensor]


def config_of(method: str, **changes: object) -> ModelConfig:
    sizes = {"n_layer": 2, "n_head": 3, "n_embd": 12, "vocab_size": 64, "block_size": 32}
    return ModelConfig(**{"method": method, "learned_positions": method == "none", **sizes, **changes})


def state_of(config: ModelConfig) -> State:
    """A seeded model's weights, with none left at a round number that a mix-up would not show."""
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(7)
    state = GPT(config, seed=3).state_dict()
    seeded = {name: t + 0.1 * torch.rand(t.shape, generator=generator) for name, t in state.items()}
    seeded["lm_head.weight"] = seeded["transformer.wte.weight"]
    return seeded


def said_of(config: ModelConfig, **changes: object) -> Overrides:
    """Everything a person can say of the model; what a file says too must agree with it."""
    slopes = "geometric" if config.method in ("alibi", "dapev2-alibi") else None
    pairing = "halves" if config.method == "rope" else None
    said = {"method": config.method, "n_head": config.n_head, "scale_scores": config.scale_scores}
    return Overrides(**{**said, "alibi_slopes": slopes, "rope_pairing": pairing, **changes})


def without_head(state: State) -> State:
    return {name: t for name, t in state.items() if name != "lm_head.weight"}


def bare_names(state: State) -> State:
    """The method's parameters right under the attention, as CABLE and GPT-NeoX have them."""
    return {name.replace(".attn.pos.", ".attn."): t for name, t in state.items()}


def ours(state: State, config: ModelConfig, folder: Path) -> Path:
    return save_checkpoint(state, config, folder / "ours.safetensors", {})


def bare_safetensors(state: State, config: ModelConfig, folder: Path) -> Path:
    save_file(without_head(state), folder / "bare.safetensors")
    return folder / "bare.safetensors"


def state_dict(state: State, config: ModelConfig, folder: Path) -> Path:
    torch.save(state, folder / "state.pt")
    return folder / "state.pt"


def old_state_dict(state: State, config: ModelConfig, folder: Path) -> Path:
    torch.save(state, folder / "old.pth", _use_new_zipfile_serialization=False)
    return folder / "old.pth"


def lightning(state: State, config: ModelConfig, folder: Path) -> Path:
    torch.save({"state_dict": {f"model.{n}": t for n, t in state.items()}, "epoch": 3}, folder / "last.ckpt")
    return folder / "last.ckpt"


def nanogpt(state: State, config: ModelConfig, folder: Path) -> Path:
    names = ("n_layer", "n_head", "n_embd", "block_size", "bias", "vocab_size")
    saved = {
        "model": {f"module._orig_mod.{name}": t for name, t in state.items()},
        "model_args": {name: getattr(config, name) for name in names},
        "iter_num": 5,
        "best_val_loss": torch.tensor(3.1),
        "config": {"dataset": "any"},
    }
    torch.save(saved, folder / "ckpt.pt")
    return folder / "ckpt.pt"


def cable_names(state: State, config: ModelConfig, folder: Path) -> Path:
    torch.save(bare_names(state), folder / "model_19072.pt")
    return folder / "model_19072.pt"


def sharded_folder(state: State, config: ModelConfig, folder: Path) -> Path:
    path = folder / "sharded"
    path.mkdir()
    names = sorted(without_head(state))
    halves = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
    for file, held in halves.items():
        save_file({name: state[name] for name in held}, path / file)
    index = {"weight_map": {name: file for file, held in halves.items() for name in held}}
    (path / "model.safetensors.index.json").write_text(json.dumps(index))
    (path / "config.json").write_text(json.dumps({"n_head": config.n_head, "n_positions": config.block_size}))
    return path


def bin_folder(state: State, config: ModelConfig, folder: Path) -> Path:
    path = folder / "bin"
    path.mkdir()
    torch.save(state, path / "pytorch_model.bin")
    (path / "config.json").write_text(json.dumps({"num_attention_heads": config.n_head}))
    return path


Writer = Callable[[State, ModelConfig, Path], Path]
LAYOUTS: dict[str, tuple[Writer, str]] = {
    "ours": (ours, "posviz"),
    "bare safetensors": (bare_safetensors, "safetensors"),
    "state dict": (state_dict, "state dict"),
    "old state dict": (old_state_dict, "state dict"),
    "lightning": (lightning, "state dict"),
    "nanogpt": (nanogpt, "nanoGPT"),
    "cable's names": (cable_names, "state dict"),
    "sharded folder": (sharded_folder, "folder"),
    "bin folder": (bin_folder, "folder"),
}
