"""Where a model keeps its layers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from torch import nn

from posviz.errors import CaptureError
from posviz.models.huggingface.watch import Watch

OTHER_SENSES = re.compile(r"vision|visual|image|audio|speech|video")
CONTEXT = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx", "max_seq_length")


@dataclass(frozen=True)
class Layers:
    """The layers of one stack: as a list of modules, or, where one module is run again and again, by their number."""

    root: nn.Module
    modules: nn.ModuleList | None
    count: int
    cross: bool

    def watch(self, index: int) -> Watch:
        if self.modules is None:
            return Watch(self.root, self.cross, skip=index)
        return Watch(self.modules[index], self.cross)

    @property
    def first(self) -> nn.Module:
        """Where the token embeddings arrive."""
        if self.modules is not None:
            return self.modules[0]
        return next(module[0] for module in self.root.modules() if isinstance(module, nn.ModuleList))

    def with_attention(self) -> list[int]:
        """The layers that look as if they attend; others of a hybrid model convolve or recur."""
        if self.modules is None:
            return list(range(self.count))
        return [index for index, module in enumerate(self.modules) if _attends(module)]

    def at(self, index: int, path: str) -> nn.Module | None:
        """The module of this name inside a layer; None where the layer has none."""
        if self.modules is None or not 0 <= index < self.count:
            return None
        return dict(self.modules[index].named_modules()).get(path)


def find_layers(model: nn.Module, stack: str | None) -> Layers:
    """The layers of the asked stack, None for a model that has but one."""
    whole: Any = model
    root = model if stack is None else whole.get_encoder() if stack == "encoder" else whole.get_decoder()
    expected = _first(stack_config(root, stack), _HALVES[stack], "num_hidden_layers")
    lists = [module for name, module in root.named_modules() if _holds_layers(name, module)]
    fitting = [module for module in lists if expected is None or len(module) == expected]
    if fitting:
        best = max(fitting, key=len)
        return Layers(root, best, len(best), stack == "cross")
    if expected is None:
        raise CaptureError(f"{type(model).__name__} does not say how many layers it has, and no list of them was found")
    return Layers(root, None, expected, stack == "cross")


_HALVES = {
    None: (),
    "encoder": ("encoder_layers",),
    "decoder": ("decoder_layers", "num_decoder_layers"),
    "cross": ("decoder_layers", "num_decoder_layers"),
}


def stack_config(root: Any, stack: str | None) -> Any:
    """The configuration that speaks of this stack: half of a model may have its own, and so may its text part."""
    return root.config.get_text_config() if stack is None else root.config


def _first(config: Any, *names: str | tuple[str, ...]) -> int | None:
    """The first of these that the configuration gives a number for."""
    flat = [name for group in names for name in (group if isinstance(group, tuple) else (group,))]
    return next((value for name in flat if isinstance(value := getattr(config, name, None), int) and value > 0), None)


def _holds_layers(name: str, module: nn.Module) -> bool:
    if not isinstance(module, nn.ModuleList) or OTHER_SENSES.search(name):
        return False
    return any(_attends(layer) for layer in module)


def _attends(layer: nn.Module) -> bool:
    return any("attention" in type(part).__name__.lower() for part in layer.modules())


def head_count(root: nn.Module, stack: str | None) -> int | None:
    """The number of heads by the configuration; a capture tells the number that a layer really has."""
    half = "encoder_attention_heads" if stack == "encoder" else "decoder_attention_heads"
    return _first(stack_config(root, stack), half, "num_attention_heads")


def context_length(root: nn.Module, stack: str | None) -> int | None:
    """The longest sequence the model was made for; None where it says nothing, as T5 does not."""
    return _first(stack_config(root, stack), CONTEXT)
