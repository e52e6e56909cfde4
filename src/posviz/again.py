"""Drawing a figure again from its recipe, and telling whether it came out the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from posviz.errors import CheckpointError, OutputError
from posviz.options import to_command


def words_for(recipe: Mapping[str, Any], out: Path, ckpt: str | None = None) -> list[str]:
    """The command line, without the program's name, that draws the figure into `out`."""
    options = {name: _home(value) for name, value in recipe["options"].items()}
    if ckpt is not None:
        options["ckpt"] = ckpt
    _check_source(recipe, options)
    arguments = [_home(each) for each in recipe.get("arguments", ())]
    return to_command(recipe["command"], options | {"out": [str(out)]}, arguments)[1:]


def _home(value: Any) -> Any:
    return str(Path(value).expanduser()) if isinstance(value, str) and value.startswith("~/") else value


def _check_source(recipe: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Raise unless the checkpoint is still where it was, with the same content."""
    path, wanted = options.get("ckpt"), (recipe.get("checkpoint") or {}).get("sha256")
    if path is None or wanted is None:
        return
    from posviz.checkpoint import open_checkpoint

    if not Path(path).exists():
        raise CheckpointError(f"the checkpoint is no longer at {path}; say where it lies with --ckpt")
    found = open_checkpoint(path).sha256()
    if found != wanted:
        raise CheckpointError(f"{path} has changed since: its sha256 is {found[:12]}..., the recipe's {wanted[:12]}...")


def compare_files(first: Path, second: Path) -> str | None:
    """None if two figures show the same; otherwise what differs. Rasters by pixels, everything else by content."""
    if first.suffix.lower() in (".png", ".gif"):
        return _compare_pixels(first, second)
    if first.read_bytes() == second.read_bytes():
        return None
    return f"the content differs ({first.stat().st_size} and {second.stat().st_size} bytes)"


def _compare_pixels(first: Path, second: Path) -> str | None:
    import numpy as np
    from PIL import Image, ImageSequence

    with Image.open(first) as a, Image.open(second) as b:
        if a.size != b.size or getattr(a, "n_frames", 1) != getattr(b, "n_frames", 1):
            return f"the sizes differ: {a.size} and {b.size}"
        pairs = zip(ImageSequence.Iterator(a), ImageSequence.Iterator(b), strict=True)
        different = sum(
            int((np.asarray(x.convert("RGBA")) != np.asarray(y.convert("RGBA"))).any(axis=-1).sum()) for x, y in pairs
        )
        total = a.size[0] * a.size[1] * getattr(a, "n_frames", 1)
    return None if not different else f"{different} of {total} pixels differ"


def as_manifest(name: str, options: Mapping[str, Any]) -> str:
    """The options as a [[figure]] table."""
    lines = ["[[figure]]", f"name = {json.dumps(name)}"]
    for key, value in options.items():
        if not isinstance(value, (str, int, float, bool, list)):
            raise OutputError(f"the recipe's {key} is {value!r}, which no manifest can hold")
        lines.append(f"{key} = {json.dumps(value)}")
    return "\n".join(lines)
