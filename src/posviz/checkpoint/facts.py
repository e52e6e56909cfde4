"""What a checkpoint says of its model, and what the person adds: the facts, before any is found missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from posviz.checkpoint.opened import Checkpoint
from posviz.errors import CheckpointError
from posviz.methods.base import PositionalMethod

# What configurations call the same thing.
ALIASES = {
    "n_layer": ("n_layer", "num_hidden_layers", "num_layers", "n_layers"),
    "n_head": ("n_head", "num_attention_heads", "num_heads", "n_heads"),
    "n_embd": ("n_embd", "hidden_size", "d_model"),
    "vocab_size": ("vocab_size",),
    "block_size": ("block_size", "n_positions", "n_ctx", "max_position_embeddings", "max_seq_len"),
}
OPTION_ALIASES = {
    "slopes": ("alibi_slopes",),
    "pairing": ("rope_pairing",),
    "base": ("rope_base", "rope_theta"),
    "rotary_dim": ("rotary_dim",),
    "max_distance": ("relative_attention_max_distance",),
}
FLAGS = {"slopes": "--alibi-slopes", "pairing": "--rope-pairing", "base": "--rope-base", "rotary_dim": "--rotary-dim"}
SCALE_FLAG = "--scale-scores or --no-scale-scores"


@dataclass(frozen=True)
class Overrides:
    """What a person says of a checkpoint; None where they leave it to the file."""

    method: str | None = None
    config: Mapping[str, Any] | None = None
    n_head: int | None = None
    alibi_slopes: str | None = None
    rope_pairing: str | None = None
    rope_base: float | None = None
    rotary_dim: int | None = None
    scale_scores: bool | None = None

    def method_options(self) -> dict[str, Any]:
        """The options of a method that were given, by the method's own names."""
        given = {
            "slopes": self.alibi_slopes, "pairing": self.rope_pairing,
            "base": self.rope_base, "rotary_dim": self.rotary_dim,
        }  # fmt: skip
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True)
class Facts:
    """What is known of a model; None where nothing says."""

    n_layer: int
    n_head: int | None
    n_embd: int | None
    vocab_size: int | None
    block_size: int | None
    bias: bool
    norm_bias: bool
    scale_scores: bool | None
    learned_positions: bool
    gelu: str
    tokenizer: str | None
    method_options: Mapping[str, Any] = field(default_factory=dict)


def root(checkpoint: Checkpoint) -> str:
    """What stands before `wte.weight` and `h.0`: GPT-2's own names begin with it, a bare decoder's do not."""
    return "" if "wte.weight" in checkpoint.tensors else "transformer."


def whole(config: Mapping[str, Any], name: str) -> int | None:
    """A size from a configuration, by any of its names."""
    for alias in ALIASES[name]:
        value = config.get(alias)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise CheckpointError(f"the configuration's {alias} is {value!r}; expected a whole number from 1 up")
        return value
    return None


def agreed(what: str, said: int | None, seen: int | None, where: str) -> int | None:
    """A size that both the configuration and the tensors may tell; they must not contradict each other."""
    if said is not None and seen is not None and said != seen:
        raise CheckpointError(f"the configuration says {what} {said}, but {where} says {seen}; one of them is wrong")
    return seen if seen is not None else said


def read_sizes(checkpoint: Checkpoint, config: Mapping[str, Any]) -> dict[str, Any]:
    """The facts that do not depend on the positional method."""
    tensors, begin = checkpoint.tensors, root(checkpoint)
    table = tensors.get(f"{begin}wte.weight")
    positions = tensors.get(f"{begin}wpe.weight")
    seen = table.shape if table is not None and len(table.shape) == 2 else (None, None)
    wte = f"{begin}wte.weight"
    context = positions.shape[0] if positions is not None and positions.shape else None
    layers = len(checkpoint.layers())
    if not layers:
        raise CheckpointError(f"{checkpoint.path} has no layers: no tensor's name holds a layer's number")
    first = checkpoint.layer_shapes(0)
    return {
        "n_layer": agreed("n_layer", whole(config, "n_layer"), layers, "the tensors' names"),
        "vocab_size": agreed("vocab_size", whole(config, "vocab_size"), seen[0], wte),
        "n_embd": agreed("n_embd", whole(config, "n_embd"), seen[1], wte),
        "block_size": context or whole(config, "block_size"),
        "learned_positions": positions is not None,
        "bias": "attn.c_attn.bias" in first,
        "norm_bias": "ln_1.bias" in first,
    }


def read_options(method: type[PositionalMethod], config: Mapping[str, Any], overrides: Overrides) -> dict[str, Any]:
    """The method's options, as the configuration and then the person say."""
    stored = config.get("method_options")
    given = {**stored} if isinstance(stored, Mapping) else {}
    for option, aliases in OPTION_ALIASES.items():
        said = [config[alias] for alias in aliases if config.get(alias) is not None]
        if said:
            given[option] = said[0]
    options = {name: value for name, value in given.items() if name in method.options}
    for name, value in overrides.method_options().items():
        if name not in method.options:
            raise CheckpointError(f"{FLAGS[name]} means nothing for {method.name}; leave it out, or is --method right?")
        options[name] = value
    return options


def read_gelu(checkpoint: Checkpoint, config: Mapping[str, Any]) -> str:
    """Which GELU the MLPs use: nanoGPT's is exact, GPT-2's and CABLE's is the approximation by tanh."""
    said = config.get("gelu")
    if said is None:
        known = {"gelu": "exact", "gelu_new": "tanh", "gelu_pytorch_tanh": "tanh"}
        said = known.get(str(config.get("activation_function"))) or (
            "exact" if checkpoint.format == "nanoGPT" else "tanh"
        )
    if said not in ("exact", "tanh"):
        raise CheckpointError(f"the configuration's gelu is {said!r}; expected exact or tanh")
    return str(said)


def read_scaling(checkpoint: Checkpoint, config: Mapping[str, Any], overrides: Overrides) -> bool | None:
    """Whether scores are divided by the square root of the head's size; None where nothing says."""
    said = overrides.scale_scores
    if said is None:
        said = config.get("scale_scores", config.get("scale_attn_weights"))
    if said is not None and not isinstance(said, bool):
        raise CheckpointError(f"the configuration's scale_scores is {said!r}; expected true or false")
    return said if said is not None else {"CABLE": False, "nanoGPT": True, "posviz": True}.get(checkpoint.format)
