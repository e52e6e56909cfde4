"""From a checkpoint and what a person adds to the positional method and the model, never guessing in silence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from posviz import methods
from posviz.checkpoint.facts import (
    FLAGS,
    SCALE_FLAG,
    Facts,
    Overrides,
    agreed,
    read_gelu,
    read_options,
    read_scaling,
    read_sizes,
    root,
    whole,
)
from posviz.checkpoint.opened import Checkpoint
from posviz.checkpoint.parameters import Located, holds, locate
from posviz.config import ModelConfig
from posviz.errors import CheckpointError
from posviz.methods.base import PositionalMethod


@dataclass(frozen=True)
class Resolved:
    """A checkpoint's method and model, as far as they are known."""

    config: Facts
    method: str
    why: str
    notes: tuple[str, ...]
    missing: tuple[str, ...]  # options without which the model cannot run
    checkpoint: Checkpoint = field(repr=False)

    def positional(self) -> PositionalMethod:
        """The method, which is all that a bias without tokens needs."""
        self._demand([flag for flag in self.missing if flag != SCALE_FLAG], "draw it")
        assert self.config.n_head is not None
        return methods.get(self.method)(self.config.n_head, self.config.n_embd or 0, **self.config.method_options)

    def parameters(self, layer: int) -> dict[str, np.ndarray]:
        """The method's own parameters in a layer (from 0), float32 and checked."""
        found = self.located(layer)
        return found.read(self.checkpoint)

    def located(self, layer: int) -> Located:
        """Where the method's parameters of a layer (from 0) are, in shapes that have been checked."""
        method = self.positional()
        found = locate(self.checkpoint, layer, type(method))
        method.check(found.shapes, f"layer {layer + 1} of {self.checkpoint.name}")
        return found

    def model_config(self) -> ModelConfig:
        """Everything that is needed to run the model."""
        self._demand(self.missing, "run it")
        self._check_layout()
        return ModelConfig(**{**asdict(self.config), "method": self.method, "block_size": self.config.block_size or 0})

    def _demand(self, missing: tuple[str, ...] | list[str], why: str) -> None:
        if missing:
            raise CheckpointError(
                f"{self.checkpoint.path} does not say enough of its {self.method} model to {why}: "
                f"give {', and '.join(missing)} (or --config FILE.json)"
            )

    def _check_layout(self) -> None:
        """Raise unless the tensors are those of a GPT-2 that our own code can run."""
        checkpoint, begin = self.checkpoint, root(self.checkpoint)
        if f"{begin}wte.weight" not in checkpoint.tensors or self.config.n_embd is None:
            raise CheckpointError(
                f"{checkpoint.path} cannot be run: it has no {begin}wte.weight, so it is no GPT-2; "
                "give the folder of a transformers model, or your own module with --model"
            )
        if checkpoint.layer_numbers != checkpoint.layers():
            absent = sorted(set(range(checkpoint.layer_numbers[-1])) - set(checkpoint.layer_numbers))
            raise CheckpointError(f"{checkpoint.path} has no tensors of {begin}h.{absent[0]}; is a file missing?")
        found = checkpoint.layer_shapes(0).get("attn.c_attn.weight")
        if found == (self.config.n_embd, 3 * self.config.n_embd):
            raise CheckpointError(
                f"{checkpoint.path} holds GPT-2 as transformers stores it, attn.c_attn.weight {list(found)}; "
                "give its folder with config.json instead"
            )


def resolve(checkpoint: Checkpoint, overrides: Overrides | None = None) -> Resolved:
    """Decide the method, and gather what is known of the model. What is missing is listed, not guessed."""
    overrides = overrides or Overrides()
    if checkpoint.is_transformers:
        raise CheckpointError(
            f"{checkpoint.path} is a transformers model ({checkpoint.config.get('model_type', 'of unknown type')}), "
            "which its own code must run; leave --method out"
        )
    config = {**checkpoint.config, **(overrides.config or {})}
    sizes = read_sizes(checkpoint, config)
    name, why, notes = _method(checkpoint, config, overrides, bool(sizes["learned_positions"]))
    method = methods.get(name)
    located = locate(checkpoint, _layer_of(checkpoint, method), method)
    n_head = _heads(checkpoint, method, located, config, overrides)
    options = read_options(method, config, overrides)
    scaling = read_scaling(checkpoint, config, overrides)
    unclear = [o for o in method.unsaid(n_head) if o not in options and o not in located.names]
    missing = [] if n_head else ["--n-head"]
    if checkpoint.format != "posviz":  # ours leaves out an option only where it is the default
        missing += [f"{FLAGS[o]} {'|'.join(method.choices[o])}" for o in unclear]
    if scaling is None:
        missing.append(SCALE_FLAG)
    tokenizer = config.get("tokenizer")
    facts = Facts(
        n_head=n_head,
        scale_scores=scaling,
        gelu=read_gelu(checkpoint, config),
        method_options=options,
        tokenizer=tokenizer if isinstance(tokenizer, str) else None,
        **sizes,
    )
    if n_head:
        method(n_head, facts.n_embd or 0, **options).check(located.shapes, f"a layer of {checkpoint.name}")
    if len(checkpoint.layers()) > 1 and locate(checkpoint, 1, method).shared:
        why += ", in the first layer only, which lends it to all"
    notes += [*_replaced(checkpoint, method, overrides), *_scaling_notes(checkpoint, scaling)]
    return Resolved(facts, name, why, tuple(notes), tuple(missing), checkpoint)


def _method(
    checkpoint: Checkpoint, config: Mapping[str, Any], overrides: Overrides, learned: bool
) -> tuple[str, str, list[str]]:
    """The method's name, why it is this one, and what should be said about it."""
    told = next((found for layer in checkpoint.layers() if (found := _recognise(checkpoint, layer, learned))), [])
    stored = checkpoint.config.get("method")
    if isinstance(stored, str) and stored in methods.names():
        told = [methods.Found(stored, "its configuration says so")]
    named = overrides.method or (overrides.config or {}).get("method")
    if named is not None:
        why = "--method says so" if overrides.method else "--config says so"
        return str(named), why, _check_named(checkpoint, str(named), why, told)
    if isinstance(stored, str):
        return stored, "its configuration says so", _check_named(checkpoint, stored, "its configuration says so", told)
    if len(told) == 1:
        return told[0].method, told[0].why, []
    if told:
        seen = "; ".join(f"{found.method} because {found.why}" for found in told)
        raise CheckpointError(f"{checkpoint.path} could be of several methods: {seen}; say which with --method")
    beside = " (there is a config.json beside it: or give the folder)" if _has_config(checkpoint) else ""
    raise CheckpointError(
        f"no positional method is recognised in {checkpoint.path}: its layers hold "
        f"{checkpoint.layer_summary(0)}; name it with --method ({', '.join(methods.names())}){beside}"
    )


def _recognise(checkpoint: Checkpoint, layer: int, learned: bool) -> list[methods.Found]:
    return methods.recognise(checkpoint.layer_shapes(layer), {**checkpoint.config, "learned_positions": learned})


def _has_config(checkpoint: Checkpoint) -> bool:
    return checkpoint.path.is_file() and (checkpoint.path.parent / "config.json").is_file()


def _check_named(checkpoint: Checkpoint, name: str, source: str, told: list[methods.Found]) -> list[str]:
    """Raise unless the checkpoint can be of the method that somebody named; what to note if it is a bold claim."""
    needed = methods.get(name).required()
    layer = _layer_of(checkpoint, methods.get(name))
    lacking = sorted(needed - set(checkpoint.layer_shapes(layer)))
    if lacking:
        raise CheckpointError(
            f"{checkpoint.path} has no {', '.join(lacking)}, which {name} needs ({source}); "
            f"its layers hold {checkpoint.layer_summary(layer)}; is --method right?"
        )
    others = [found for found in told if found.method not in (name, "none")]
    if not others or name in {found.method for found in told}:
        return []
    if not needed:
        raise CheckpointError(
            f"{checkpoint.path} is of {others[0].method} ({others[0].why}), not of {name} ({source}); "
            f"name {others[0].method}, or leave --method out"
        )
    return [f"{source}; by itself the checkpoint would be taken for {others[0].method} ({others[0].why})"]


def _layer_of(checkpoint: Checkpoint, method: type[PositionalMethod]) -> int:
    """The first layer that holds the method's parameters, or simply the first."""
    return next((layer for layer in checkpoint.layers() if holds(checkpoint, layer, method)), 0)


def _heads(
    checkpoint: Checkpoint,
    method: type[PositionalMethod],
    located: Located,
    config: Mapping[str, Any],
    overrides: Overrides,
) -> int | None:
    """The head count from the method's own parameters, a configuration, or --n-head."""
    seen = method.heads_of(located.shapes)
    known = agreed("n_head", whole(config, "n_head"), seen, f"the shape of the {method.name} parameters")
    given = overrides.n_head
    if given is not None and given < 1:
        raise CheckpointError(f"--n-head is {given}; expected 1 or more")
    if given is not None and known is not None and given != known:
        raise CheckpointError(f"--n-head is {given}, but {checkpoint.path} is of {known} heads; leave --n-head out")
    return known or given


def _replaced(checkpoint: Checkpoint, method: type[PositionalMethod], overrides: Overrides) -> list[str]:
    """What a person says against our own file, which knows: allowed, but not the model that was trained."""
    if checkpoint.format != "posviz":
        return []
    trained = {**method.options, **read_options(method, checkpoint.config, Overrides())}
    given = overrides.method_options()
    return [f"{FLAGS[o]} {v} replaces the checkpoint's own {trained[o]}" for o, v in given.items() if v != trained[o]]


def _scaling_notes(checkpoint: Checkpoint, scaling: bool | None) -> list[str]:
    if checkpoint.format == "CABLE" and scaling is False:
        return ["CABLE's own checkpoint: scores are not divided by sqrt(head size), as in its training code"]
    return []
