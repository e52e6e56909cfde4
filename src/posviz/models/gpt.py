"""Our GPT-2, with any positional method: read it top to bottom."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu, layer_norm, scaled_dot_product_attention

from posviz import methods
from posviz.config import ModelConfig
from posviz.methods.base import PositionalMethod
from posviz.models.attention import AttentionView


class Linear(nn.Linear):
    def reset_parameters(self) -> None:
        """Left to `GPT`: weights come from its seed or from a checkpoint, and filling them twice takes its time."""


class Embedding(nn.Embedding):
    def reset_parameters(self) -> None:
        """Left to `GPT`, as above."""


class Norm(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(config.n_embd))
        self.bias = nn.Parameter(torch.zeros(config.n_embd)) if config.norm_bias else None

    def forward(self, x: Tensor) -> Tensor:
        return layer_norm(x, self.weight.shape, self.weight, self.bias)


class PositionParameters(nn.Module):
    """A method's parameters under its own dotted names (`mlp.0.weight`), so that checkpoints read naturally."""

    def __init__(self, method: PositionalMethod, values: Mapping[str, Tensor]) -> None:
        super().__init__()
        for suffix, value in values.items():
            *path, leaf = suffix.split(".")
            place: nn.Module = self
            for part in path:
                if part not in dict(place.named_children()):
                    place.add_module(part, nn.Module())
                place = place.get_submodule(part)
            if suffix in method.buffers:
                place.register_buffer(leaf, value)
            else:
                place.register_parameter(leaf, nn.Parameter(value))

    def values(self) -> Mapping[str, Tensor]:
        return dict(self.named_parameters()) | dict(self.named_buffers())


class Attention(nn.Module):
    def __init__(self, config: ModelConfig, generator: torch.Generator | None) -> None:
        super().__init__()
        self.n_head, self.head_dim = config.n_head, config.head_dim
        self.scale = config.head_dim**-0.5 if config.scale_scores else 1.0
        self.method = methods.get(config.method)(config.n_head, config.n_embd, **config.method_options)
        self.c_attn = Linear(config.n_embd, 3 * config.n_embd, bias=config.bias)
        self.c_proj = Linear(config.n_embd, config.n_embd, bias=config.bias)
        self.pos = PositionParameters(self.method, {} if generator is None else self.method.initial(generator))

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values `[batch, head, position, dim]`."""
        parts = self.c_attn(x).chunk(3, dim=-1)
        q, k, v = (part.unflatten(-1, (self.n_head, self.head_dim)).transpose(1, 2) for part in parts)
        return q, k, v

    def view(self, x: Tensor) -> AttentionView:
        q, k, _ = self.project(x)
        return AttentionView(self.method, self.pos.values(), x, q, k, self.scale)

    def forward(self, x: Float[Tensor, "batch position width"]) -> Float[Tensor, "batch position width"]:
        q, k, v = self.project(x)
        view = AttentionView(self.method, self.pos.values(), x, q, k, self.scale)
        if not self.method.additive:
            y = scaled_dot_product_attention(view.q_seen, view.k_seen, v, is_causal=True, scale=self.scale)
        elif torch.is_grad_enabled():
            y = view.attention(0, view.length).to(v) @ v
        else:
            y = view.gathered(v)
        return self.c_proj(y.transpose(1, 2).flatten(2))


class MLP(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.c_fc = Linear(config.n_embd, 4 * config.n_embd, bias=config.bias)
        self.c_proj = Linear(4 * config.n_embd, config.n_embd, bias=config.bias)
        self.approximate = "tanh" if config.gelu == "tanh" else "none"

    def forward(self, x: Tensor) -> Tensor:
        return self.c_proj(gelu(self.c_fc(x), approximate=self.approximate))


class DecoderLayer(nn.Module):
    def __init__(self, config: ModelConfig, generator: torch.Generator | None) -> None:
        super().__init__()
        self.ln_1 = Norm(config)
        self.attn = Attention(config, generator)
        self.ln_2 = Norm(config)
        self.mlp = MLP(config)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Decoder(nn.Module):
    """Everything but the output head."""

    def __init__(self, config: ModelConfig, generator: torch.Generator | None) -> None:
        super().__init__()
        self.wte = Embedding(config.vocab_size, config.n_embd)
        self.wpe = Embedding(config.block_size, config.n_embd) if config.learned_positions else None
        self.h = nn.ModuleList(DecoderLayer(config, generator) for _ in range(config.n_layer))
        self.ln_f = Norm(config)

    def forward(self, ids: Int[Tensor, "batch position"]) -> Float[Tensor, "batch position width"]:
        x = self.wte(ids)
        if self.wpe is not None:
            x = x + self.wpe.weight[: ids.shape[1]]
        for layer in self.h:
            x = layer(x)
        return self.ln_f(x)


class GPT(nn.Module):
    """A decoder whose names are those of GPT-2: `transformer.wte`, `transformer.h.0.attn.c_attn`, ..."""

    def __init__(self, config: ModelConfig, seed: int | None = 0) -> None:
        """Seeded at GPT-2's start; without a seed the weights are left to be filled in."""
        super().__init__()
        generator = None if seed is None else torch.Generator().manual_seed(seed)
        self.config = config
        self.transformer = Decoder(config, generator)
        self.lm_head = Linear(config.n_embd, config.vocab_size, bias=False)
        self.lm_head.weight = self.transformer.wte.weight
        if generator is not None:
            self._initialise(generator)

    def _initialise(self, generator: torch.Generator) -> None:
        """GPT-2's start: N(0, 0.02), smaller where a layer writes into the residual stream."""
        for name, parameter in self.named_parameters():
            if ".pos." in name or ".ln_" in name:
                continue
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            else:
                depth = (2 * self.config.n_layer) ** -0.5 if name.endswith("c_proj.weight") else 1.0
                nn.init.normal_(parameter, std=0.02 * depth, generator=generator)

    @classmethod
    def from_state(cls, config: ModelConfig, state: Mapping[str, Tensor]) -> GPT:
        """A model that holds these tensors themselves, no copies; what `state` leaves out cannot be run."""
        with torch.device("meta"):
            model = cls(config, seed=None)
        for index in range(config.n_layer):
            attention = model.layer(index).attn
            prefix = f"transformer.h.{index}.attn.pos."
            own = {name.removeprefix(prefix): t for name, t in state.items() if name.startswith(prefix)}
            attention.pos = PositionParameters(attention.method, own)
        model.load_state_dict(dict(state), strict=False, assign=True)
        return model.eval().requires_grad_(False)

    def layer(self, index: int) -> DecoderLayer:
        found = self.transformer.h[index]
        assert isinstance(found, DecoderLayer)
        return found

    def forward(self, ids: Int[Tensor, "batch position"]) -> Float[Tensor, "batch position vocabulary"]:
        return self.lm_head(self.transformer(ids))

    def loss(self, ids: Int[Tensor, "batch position+1"]) -> Tensor:
        """The mean cross-entropy of every token given those before it, in nats."""
        logits = self(ids[:, :-1])
        return cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten())
