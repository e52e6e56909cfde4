"""Taking the rotation out of an attention call, by calling it again with every angle set to zero.

It works on the model's own inputs, whatever pairs of numbers it turns, however many and at whatever frequencies.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

import torch
from torch import Tensor, nn

from posviz.models.huggingface.watch import Frame, Listening, again
from posviz.models.seen import SeenAttention

ANGLES = re.compile(r"position_emb|rotary|rope|freqs|sinusoidal")


def unturned(inputs: inspect.BoundArguments) -> inspect.BoundArguments | None:
    """The same inputs with no rotation in them; None if they hold none."""
    arguments: dict[str, Any] = dict(inputs.arguments)
    found = _unturn_named(arguments)
    extra = _extras(inputs)
    if extra is not None and isinstance(arguments.get(extra), dict):
        arguments[extra] = dict(arguments[extra])
        found = _unturn_named(arguments[extra]) or found
    return inspect.BoundArguments(inputs.signature, arguments) if found else None


def _extras(inputs: inspect.BoundArguments) -> str | None:
    """The name of the parameter that takes all other keywords."""
    kinds = inputs.signature.parameters.values()
    return next((p.name for p in kinds if p.kind is inspect.Parameter.VAR_KEYWORD), None)


def _unturn_named(arguments: dict[str, Any]) -> bool:
    """Change the angles in place; where there are none but positions, every token is put at position 0."""
    named = [name for name, value in arguments.items() if ANGLES.search(name) and value is not None]
    for name in named:
        arguments[name] = _flat(arguments[name])
    positions = arguments.get("position_ids")
    if named or not isinstance(positions, Tensor):
        return bool(named)
    arguments["position_ids"] = torch.zeros_like(positions)
    return True


def _flat(angles: Any) -> Any:
    """Angles of zero in the form in which they came. A factor on cosine and sine (YaRN's) is kept: it is no angle."""
    if isinstance(angles, dict):
        return {name: _flat(value) for name, value in angles.items()}
    if isinstance(angles, (tuple, list)) and len(angles) == 2:
        first, second = angles
        length = torch.hypot(first.float(), second.float()).to(first.dtype)
        none = torch.zeros_like(length)
        return (none, length) if _is_sine(first) else (length, none)
    if isinstance(angles, Tensor) and angles.is_complex():
        return angles.abs().to(angles.dtype)
    if isinstance(angles, Tensor) and angles.is_floating_point():
        return torch.cat(_flat(angles.chunk(2, dim=-1)), dim=-1)
    return angles


def _is_sine(table: Tensor) -> bool:
    """The sine is zero at the first position, the cosine is not."""
    return not bool(table[..., 0, :].any())


def plain(seen: SeenAttention, frame: Frame, module: nn.Module, listening: Listening) -> tuple[Tensor, Tensor] | None:
    """The queries and keys of `seen` before rotation; None if `module` does not rotate them."""
    inside = [m for m in module.modules() if m is not module and "rotary" in type(m).__name__.lower()]
    inputs = unturned(frame.inputs)
    if inputs is None and not inside:
        return None
    handles = [m.register_forward_hook(_pass_through) for m in inside]
    try:
        still = again(module, listening, inputs or frame.inputs)
    finally:
        for handle in handles:
            handle.remove()
    if still is None or still.q is None or still.k is None or seen.q is None or seen.k is None:
        return None
    return None if _alike(still.q, seen.q) and _alike(still.k, seen.k) else (still.q, still.k)


def _alike(a: Tensor, b: Tensor) -> bool:
    return bool((a - b).abs().max() <= 1e-6 * b.abs().max())


def _pass_through(module: nn.Module, args: Any, output: Any) -> Any:
    """What a module inside attention would give without turning: either its inputs, or a cosine and a sine."""
    if not isinstance(output, tuple) or len(output) != 2:
        return output
    tensors = [x for x in args if isinstance(x, Tensor)][:2]
    turned = len(tensors) == 2 and all(x.shape == y.shape for x, y in zip(tensors, output, strict=True))
    return tuple(tensors) if turned else _flat(output)
