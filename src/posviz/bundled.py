"""The small trained checkpoints that ship with posviz."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from posviz.errors import MethodError


def folder() -> Path:
    return Path(str(resources.files("posviz") / "data"))


def names() -> list[str]:
    """The methods that have a bundled checkpoint."""
    return sorted(file.stem for file in folder().glob("*.safetensors"))


def path(method: str | None) -> Path:
    """The bundled checkpoint of a method."""
    if method is None:
        raise MethodError(
            "neither --ckpt nor --method was given; say which checkpoint to draw, or --method for a bundled one"
        )
    file = folder() / f"{method}.safetensors"
    if not file.exists():
        raise MethodError(f"no checkpoint of {method} is bundled; give one with --ckpt (bundled: {', '.join(names())})")
    return file
