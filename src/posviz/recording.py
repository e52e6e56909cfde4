"""Recording the attention of a module of one's own while it runs.

with posviz.record(model, layer=-1) as rec:
    model(x)
rec.stack("scores")
"""

from __future__ import annotations

import difflib
from collections import deque
from types import TracebackType
from typing import Any

from torch import Tensor, nn

from posviz import __version__
from posviz.errors import CaptureError
from posviz.models.intercept import Interceptor
from posviz.models.seen import SeenAttention
from posviz.rows import Folding, fold
from posviz.stack import HeadStack

LOOKED_FOR = (
    "looked for torch.nn.functional.scaled_dot_product_attention, torch.nn.MultiheadAttention and a softmax over the "
    "last axis of q @ k.T (compiled code, flex_attention and other fused kernels cannot be looked into)"
)


class Recording:
    """Keeps one attention call of every forward pass of `model`: the newest pass is what `stack` shows."""

    def __init__(self, model: nn.Module, layer: int | str) -> None:
        if isinstance(layer, bool) or layer == 0:
            raise CaptureError(
                f"layer is {layer!r}; expected 1 for the first attention call, -1 for the last, or a name"
            )
        self.model, self.layer = model, layer
        self.n_layers = 0  # attention calls in the newest forward pass
        self._scope = set() if isinstance(layer, int) else set(_named(model, layer).modules())
        self._running: list[nn.Module] = []  # the model, and what is in scope
        self._passes, self._batch = 0, 1
        self._kept: deque[SeenAttention] = deque(maxlen=-layer if isinstance(layer, int) and layer < 0 else 1)
        self._interceptor: Any = Interceptor(self._found, lambda: self._batch)
        self._hooks: list[Any] = []

    def __enter__(self) -> Recording:
        for module in {self.model, *self._scope}:
            self._hooks.append(module.register_forward_pre_hook(self._entered, with_kwargs=True))
            self._hooks.append(module.register_forward_hook(self._left, always_call=True))
        self._interceptor.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._interceptor.__exit__(kind, error, trace)
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()

    def _entered(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        self._running.append(module)
        if module is not self.model:
            return
        self.n_layers, self._passes = 0, self._passes + 1
        self._kept.clear()
        given = next((x for x in (*args, *kwargs.values()) if isinstance(x, Tensor)), None)
        self._batch = 1 if given is None or given.ndim == 0 else given.shape[0]

    def _left(self, module: nn.Module, args: Any, output: Any) -> None:
        self._running.remove(module)

    def _found(self, seen: SeenAttention) -> None:
        if not self._running:
            return
        self.n_layers += 1
        if isinstance(self.layer, str):
            wanted = not self._scope.isdisjoint(self._running) and not self._kept
        else:
            wanted = self.layer < 0 or self.layer == self.n_layers
        if wanted:
            self._kept.append(seen)

    @property
    def seen(self) -> SeenAttention:
        """The recorded call, as a source of rows."""
        whole = isinstance(self.layer, str) or self.layer > 0 or len(self._kept) == -self.layer
        if not self._kept or not whole:
            raise CaptureError(self._nothing())
        return self._kept[0]

    @property
    def notes(self) -> tuple[str, ...]:
        """What a figure of the recorded call alone would not tell."""
        said = [f"a batch of {self._batch} was run; its first sample is shown"] if self._batch > 1 else []
        if self.seen.q is None:
            said.append(
                "the way from queries and keys to the scores could not be followed: the softmax's input is shown"
            )
        return tuple(said)

    def _nothing(self) -> str:
        name = type(self.model).__name__
        if not self._passes:
            return f"{name} was not run while it was recorded; call it inside the with block"
        if self.n_layers:
            where = f"inside {self.layer}" if isinstance(self.layer, str) else f"number {self.layer}"
            return f"{name} made {self.n_layers} attention calls, but none {where}"
        return f"no attention was seen in {name}; {LOOKED_FOR}; found {self._interceptor.summary()}"

    def stack(self, quantity: str = "scores", *, mask: bool = True, reduce: str = "mean") -> HeadStack:
        """What the recorded heads see: `scores`, `content`, `bias` or `attention`; the first sample of a batch."""
        seen = self.seen
        calls, layer = self.n_layers, self.layer
        meta = {
            "posviz_version": __version__,
            "method": "custom",
            "title": type(self.model).__name__,
            "quantity": quantity,
            "layer": layer if isinstance(layer, str) or layer > 0 else calls + 1 + layer,
            "n_layers": calls,
            "seed": None,
            "source": type(self.model).__name__,
            "notes": list(self.notes),
        }
        return fold(seen, quantity, Folding(mask=mask, reduce=reduce), meta=meta)


def record(model: nn.Module, layer: int | str = -1) -> Recording:
    """Record an attention call of `model` in a with block: by its number (1 is the first, -1 the last) or by the name
    of the module that makes it, such as `"blocks.11.attn"`."""
    if not isinstance(model, nn.Module):
        raise CaptureError(f"record was given a {type(model).__name__}; expected a torch.nn.Module")
    return Recording(model, layer)


def _named(model: nn.Module, name: str) -> nn.Module:
    modules = dict(model.named_modules())
    if not name or name not in modules:
        near = difflib.get_close_matches(name, modules, n=3, cutoff=0.4)
        raise CaptureError(
            f"{type(model).__name__} has no module {name!r}; the nearest names: {', '.join(near) or 'none'}"
        )
    return modules[name]
