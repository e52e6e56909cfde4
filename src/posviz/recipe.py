"""A figure's recipe: what must be known to draw it again, carried in the figure's own metadata."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from posviz import __version__
from posviz.inputs import inputs_digest
from posviz.options import to_command, to_options
from posviz.stack import HeadStack

CARRIED = ("seed", "token_ids_sha256", "method", "title", "quantity", "layer")  # facts that a stack hands on


def recipe_of(
    command: str, request: Any, stack: HeadStack, said: Mapping[str, Any] | None = None, arguments: Sequence[str] = ()
) -> dict[str, Any]:
    """The recipe of a figure of `stack`, made by `command` with the options of `request` and those `said` beside it."""
    options = to_options(request) | dict(said or {})
    options.pop("out", None)  # where the figure lies now is not part of how it was made
    return _recipe(command, options, stack, arguments) | {"inputs": inputs_digest(request, stack.meta.get("sha256"))}


def recipe_of_stack(stack: HeadStack, look: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe of a figure that was drawn from Python, as the command that would draw it."""
    return _recipe("render", {**stack.meta.get("options", {}), **look}, stack)


def _recipe(
    command: str, options: Mapping[str, Any], stack: HeadStack, arguments: Sequence[str] = ()
) -> dict[str, Any]:
    return {
        "posviz": __version__,
        "command": command,
        "options": dict(options),
        "arguments": list(arguments),
        "command_line": shlex.join(to_command(command, options, arguments)),
        "checkpoint": {"name": stack.meta.get("source"), "sha256": stack.meta.get("sha256")},
        "seq_len": stack.seq_len,
        **{name: stack.meta.get(name) for name in CARRIED},
    }
