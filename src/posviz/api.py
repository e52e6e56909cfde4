"""posviz from Python: the same requests as the command line's, as keyword arguments."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from posviz.errors import PosvizError, unknown_name
from posviz.options import CaptureRequest
from posviz.stack import HeadStack


def capture(ckpt: str | Path | None = None, **options: Any) -> HeadStack:
    """What the heads of one layer see: `posviz.capture("model.safetensors", layer=-1, quantity="scores")`.

    `options` are those of `posviz capture`, with underscores. Without `ckpt`, the bundled checkpoint of `method`.
    """
    from posviz.session import Session

    types = {f.name: f.type for f in fields(CaptureRequest)}
    for name, value in options.items():
        if name not in types:
            raise PosvizError(unknown_name("option", name, types))
        if types[name] == "Path | None" and value is not None:
            options[name] = Path(value)
    request = CaptureRequest(ckpt=None if ckpt is None else str(ckpt), **options)
    return Session([request]).stack(request)


def load(path: str | Path) -> HeadStack:
    """A capture that was stored as `.npz` or `.safetensors`."""
    from posviz.outputs.arrays import load_stack

    return load_stack(Path(path))
