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

    def at(self, index: int, path: str) -> nn.Module | None:
        """The module of this name inside a layer; None where the layer has none."""
        if self.modules is None or not 0 <= index < self.count:
            return None
        return dict(self.modules[index].named_modules()).get(path)


def find_layers(model: nn.Module, stack: str | None) -> Layers:
    """The layers of the asked stack, None for a model that has but one."""
    whole: Any = model
    root = model if stack is None else whole.get_encoder() if stack == "encoder" else whole.get_decoder()
    expected = _expected(whole.config, stack)
    lists = [module for name, module in root.named_modules() if _holds_layers(name, module)]
    exact = [module for module in lists if len(module) == expected]
    longest = max(lists, key=len, default=None)
    if exact:
        return Layers(root, exact[0], len(exact[0]), stack == "cross")
    if longest is not None and (expected is None or len(longest) > expected):
        return Layers(root, longest, len(longest), stack == "cross")
    if expected is None:
        raise CaptureError(f"{type(model).__name__} does not say how many layers it has, and no list of them was found")
    return Layers(root, None, expected, stack == "cross")


def _expected(config: Any, stack: str | None) -> int | None:
    """The number of layers by the configuration; the two halves of a model name theirs each in its own way."""
    text = config.get_text_config(decoder=stack != "encoder" and stack is not None)
    named = {None: (), "encoder": ("encoder_layers",), "decoder": ("decoder_layers", "num_decoder_layers")}
    names = named["decoder" if stack == "cross" else stack] + ("num_hidden_layers",)
    return next((value for name in names if isinstance(value := getattr(text, name, None), int)), None)


def _holds_layers(name: str, module: nn.Module) -> bool:
    if not isinstance(module, nn.ModuleList) or len(module) == 0 or OTHER_SENSES.search(name):
        return False
    return any(re.search("att", type(part).__name__, re.IGNORECASE) for layer in module for part in layer.modules())


def head_count(config: Any, stack: str | None) -> int | None:
    text = config.get_text_config(decoder=stack != "encoder" and stack is not None)
    half = "encoder_attention_heads" if stack == "encoder" else "decoder_attention_heads"
    return next((v for n in (half, "num_attention_heads") if isinstance(v := getattr(text, n, None), int)), None)


def context_length(config: Any) -> int | None:
    """The longest sequence the model was made for; None where it says nothing, as T5 does not."""
    text = config.get_text_config()
    return next((v for n in CONTEXT if isinstance(v := getattr(text, n, None), int) and 0 < v < 10**9), None)
