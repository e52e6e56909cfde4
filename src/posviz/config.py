"""ModelConfig: the shape of a GPT-2 with one positional method. No torch, so that headers can be read without it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from posviz.errors import CheckpointError


@dataclass(frozen=True)
class ModelConfig:
    """Everything that must be known, besides the tensors, to run a GPT-2-like model."""

    method: str
    n_layer: int
    n_head: int
    n_embd: int
    vocab_size: int
    block_size: int = 512  # the context it was trained with; 0 where nothing says
    bias: bool = True  # biases in the linear layers
    norm_bias: bool = True  # biases in the layer norms
    scale_scores: bool = True  # divide q.k by sqrt(head_dim); CABLE's own models do not
    gelu: str = "tanh"  # "exact" in nanoGPT
    learned_positions: bool = False  # a table added to the token embeddings
    tokenizer: str | None = None  # "bytes", or what the checkpoint's folder names
    method_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.n_head < 1 or self.n_embd % self.n_head:
            raise CheckpointError(
                f"a width of {self.n_embd} cannot be split over {self.n_head} heads; "
                "expected a multiple: check n_head (--n-head) and n_embd"
            )

    @property
    def head_dim(self) -> int:
        return self.n_embd // self.n_head

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any]) -> ModelConfig:
        """A configuration from JSON; keys that are not part of it (training notes, say) are left alone."""
        known = {f.name for f in fields(cls)}
        try:
            return cls(**{key: value for key, value in data.items() if key in known})
        except TypeError as error:
            missing = [n for n in ("method", "n_layer", "n_head", "n_embd", "vocab_size") if n not in data]
            raise CheckpointError(f"the configuration lacks {', '.join(missing)}") from error
