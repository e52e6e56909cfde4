"""The checkpoints that are measured, all of random weights: run as a program, because it needs torch."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

from posviz import methods
from posviz.checkpoint import save_checkpoint
from posviz.config import ModelConfig
from posviz.models.gpt import GPT

GPT2_SMALL = {"n_layer": 12, "n_head": 12, "n_embd": 768, "vocab_size": 50304, "block_size": 512}
FOUR_LAYERS = {"n_layer": 4, "n_head": 12, "n_embd": 192, "vocab_size": 256, "block_size": 512, "tokenizer": "bytes"}
SPARSE_BYTES = 20 * 10**9


def own(folder: Path, method: str, sizes: dict[str, object], name: str) -> None:
    """A checkpoint in our own format: weights as GPT-2's start, positional parameters as the method's."""
    config = ModelConfig(method=method, **sizes)  # type: ignore[arg-type]
    generator = torch.Generator().manual_seed(0)
    with torch.device("meta"):
        shapes = {key: value.shape for key, value in GPT(config, seed=None).state_dict().items() if ".pos." not in key}
    state = {key: _weights(key, shape, generator) for key, shape in shapes.items() if key != "lm_head.weight"}
    initial = methods.get(method)(config.n_head, config.n_embd, **config.method_options).initial
    for layer in range(config.n_layer):
        begin = f"transformer.h.{layer}.attn.pos."
        state |= {begin + suffix: value for suffix, value in initial(generator).items()}
    save_checkpoint(state, config, folder / f"{name}.safetensors")


def _weights(name: str, shape: torch.Size, generator: torch.Generator) -> torch.Tensor:
    if ".ln_" in name or name.endswith("bias"):
        return torch.full(shape, float(".ln_" in name and name.endswith("weight")))
    return torch.empty(shape).normal_(std=0.02, generator=generator)


def transformers_folders(folder: Path) -> None:
    """GPT-2 Small for the hand-written script, and a LLaMA of the same size."""
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    GPT2LMHeadModel(GPT2Config(vocab_size=50304, n_positions=512)).save_pretrained(folder / "gpt2")
    llama = LlamaConfig(
        vocab_size=50304,
        hidden_size=768,
        intermediate_size=2048,
        num_hidden_layers=12,
        num_attention_heads=12,
        max_position_embeddings=512,
        tie_word_embeddings=True,
    )
    LlamaForCausalLM(llama).save_pretrained(folder / "llama")


def sparse(path: Path) -> None:
    """A file of 20 GB whose header is real and whose numbers are a hole on the disk."""
    width, layers = 4096, 49
    shapes: dict[str, list[int]] = {"transformer.wte.weight": [50304, width]}
    for layer in range(layers):
        begin = f"transformer.h.{layer}"
        shapes |= {
            f"{begin}.ln_1.weight": [width],
            f"{begin}.attn.c_attn.weight": [3 * width, width],
            f"{begin}.attn.c_proj.weight": [width, width],
            f"{begin}.attn.bias_p": [32, 1, 1],
            f"{begin}.attn.bias_a": [32, 1, 1],
            f"{begin}.ln_2.weight": [width],
            f"{begin}.mlp.c_fc.weight": [4 * width, width],
            f"{begin}.mlp.c_proj.weight": [width, 4 * width],
        }
    header, at = {}, 0
    for name, shape in shapes.items():
        size = 2 * torch.Size(shape).numel()
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    assert at >= SPARSE_BYTES, at
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + at)


def main(folder: Path, wanted: list[str]) -> None:
    """`small:METHOD`, `long:METHOD`, `folders` or `sparse`, as many as are wanted."""
    for each in wanted:
        kind, _, method = each.partition(":")
        if kind == "folders":
            transformers_folders(folder)
        elif kind == "sparse":
            sparse(folder / "sparse.safetensors")
        else:
            own(folder, method, GPT2_SMALL if kind == "small" else FOUR_LAYERS, f"{kind}-{method}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
