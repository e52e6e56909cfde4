"""Running a model up to one attention call and no further, and making that call again with other arguments."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from posviz.models.huggingface.interface import Call, Report
from posviz.models.seen import SeenAttention

CROSS_NAMES = re.compile(r"cross|encdec|encoder_attn|enc_attn", re.IGNORECASE)
CROSS_INPUTS = ("key_value_states", "encoder_hidden_states")

Listening = Callable[[Report], AbstractContextManager[None]]


class _Stop(BaseException):
    """Leaves the forward pass; not an Exception, so that no model catches it."""


@dataclass(frozen=True)
class Frame:
    """A module being run, its name inside its layer, and what it was called with."""

    name: str
    module: nn.Module
    inputs: inspect.BoundArguments

    def cross(self) -> bool:
        """Whether its keys come from another sequence than its queries."""
        given = any(self.inputs.arguments.get(name) is not None for name in CROSS_INPUTS)
        return given or bool(CROSS_NAMES.search(f"{self.name} {type(self.module).__name__}"))


@dataclass(frozen=True)
class Caught:
    """A call that was waited for, and the module that made it."""

    seen: SeenAttention
    frame: Frame
    call: Call | None


class Watch:
    """Waits for an attention call inside `scope`: self- or cross-attention, after letting `skip` others pass."""

    def __init__(self, scope: nn.Module, cross: bool, skip: int = 0) -> None:
        self.scope, self.cross, self.skip = scope, cross, skip
        self.frames: list[Frame] = []
        self.caught: Caught | None = None

    def report(self, seen: SeenAttention, call: Call | None) -> None:
        if not self.frames or self.caught is not None:
            return
        frame = next((f for f in reversed(self.frames) if call is None or f.module is call.module), self.frames[-1])
        if frame.cross() == self.cross:
            if self.skip == 0:
                self.caught = Caught(seen, frame, call)
            self.skip -= 1

    @contextmanager
    def hooks(self) -> Iterator[None]:
        """Keep the chain of modules being run. Modules without children are projections and norms: not needed."""
        handles = []
        for name, module in self.scope.named_modules():
            if any(True for _ in module.children()) and not isinstance(module, nn.ModuleList):
                handles.append(module.register_forward_pre_hook(self._enter(name), with_kwargs=True))
                handles.append(module.register_forward_hook(self._leave))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _enter(self, name: str) -> Callable[[nn.Module, Any, Any], None]:
        def enter(module: nn.Module, args: Any, kwargs: Any) -> None:
            # The class's own signature: a module spread over devices has its `forward` replaced by a wrapper.
            bound = inspect.signature(type(module).forward).bind(module, *args, **kwargs)
            self.frames.append(Frame(name, module, _without_self(bound)))

        return enter

    def _leave(self, module: nn.Module, args: Any, output: Any) -> None:
        self.frames.pop()


def _without_self(bound: inspect.BoundArguments) -> inspect.BoundArguments:
    parameters = list(bound.signature.parameters.values())
    arguments = dict(bound.arguments)
    arguments.pop(parameters[0].name)
    return inspect.BoundArguments(bound.signature.replace(parameters=parameters[1:]), arguments)


def run_until_caught(watches: Sequence[Watch], forward: Callable[[], Any], listening: Listening) -> None:
    """Run the model, and leave it as soon as every watch has caught its call."""

    def report(seen: SeenAttention, call: Call | None) -> None:
        for watch in watches:
            watch.report(seen, call)
        if all(watch.caught is not None for watch in watches):
            raise _Stop

    with ExitStack() as stack:
        for watch in watches:
            stack.enter_context(watch.hooks())
        stack.enter_context(listening(report))
        with suppress(_Stop):
            forward()


def again(module: nn.Module, listening: Listening, inputs: inspect.BoundArguments) -> SeenAttention | None:
    """The attention call that `module` makes when called with these inputs."""
    caught: list[SeenAttention] = []

    def report(seen: SeenAttention, call: Call | None) -> None:
        caught.append(seen)
        raise _Stop

    with suppress(_Stop), listening(report):
        module(*inputs.args, **inputs.kwargs)
    return caught[0] if caught else None


def first_input(module: nn.Module, forward: Callable[[], Any]) -> Tensor | None:
    """The hidden states that `module` is called with when the model runs."""
    found: list[Tensor] = []

    def enter(_: nn.Module, args: Any, kwargs: Any) -> None:
        given = [x for x in (*args, *kwargs.values()) if isinstance(x, Tensor) and x.is_floating_point()]
        found.extend(given[:1])
        raise _Stop

    handle = module.register_forward_pre_hook(enter, with_kwargs=True)
    try:
        with suppress(_Stop):
            forward()
    finally:
        handle.remove()
    return found[0] if found else None
