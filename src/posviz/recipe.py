"""A figure's recipe: what must be known to draw it again, carried in the figure's own metadata."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from posviz import __version__, bundled
from posviz.options import CaptureRequest, to_command, to_options
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


def inputs_digest(request: CaptureRequest, sha256: str | None = None) -> str:
    """A hash of everything that decides the figure: options, contents of the files they name, and our version.

    Where the files lie is not part of it, so a project can move without being drawn again. `sha256` is that of the
    checkpoint, if it is known already.
    """
    said = to_options(request)
    said.pop("out", None)
    for name, path in _files(request).items():
        known = sha256 if name == "ckpt" else None
        said[name] = known or _content(path.absolute(), _stamp(path))
    text = json.dumps([__version__, said], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _files(request: CaptureRequest) -> dict[str, Path]:
    """The files that a request reads, by option name."""
    found = {
        "text-file": request.text_file,
        "tokens": request.tokens,
        "config": request.config,
        "from": getattr(request, "from_file", None),
    }
    files = {name: path for name, path in found.items() if path is not None}
    if request.ckpt is not None and Path(request.ckpt).expanduser().exists():
        files["ckpt"] = Path(request.ckpt).expanduser()
    elif request.ckpt is None and request.method in bundled.names():
        files["ckpt"] = bundled.path(request.method)
    return files


def _stamp(path: Path) -> tuple[int, int]:
    """What changes when a file does; only ever compared within one process."""
    at = path.stat()
    return at.st_mtime_ns, at.st_size


@lru_cache(maxsize=256)
def _content(path: Path, stamp: tuple[int, int]) -> str:
    if path.is_dir():
        from posviz.checkpoint import open_checkpoint

        return open_checkpoint(path).sha256()
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
