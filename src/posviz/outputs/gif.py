"""GIF: frames drawn elsewhere, with the recipe as the file's comment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from posviz.outputs.atomic import replacing
from posviz.outputs.recipes import to_text

if TYPE_CHECKING:
    from PIL.Image import Image


def write(frames: Sequence[Image], durations: Sequence[int], path: Path, recipe: Mapping[str, Any]) -> Path:
    """The frames, each for so many milliseconds, over and over."""
    options: dict[str, Any] = {"duration": list(durations), "loop": 0, "comment": to_text(recipe).encode("ascii")}
    with replacing(path) as temporary:
        frames[0].save(temporary, "GIF", save_all=True, append_images=frames[1:], **options)
    return path


def read(path: Path) -> str | None:
    """The text of the recipe, or None."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as picture:
            comment = picture.info.get("comment")
    except UnidentifiedImageError:
        return None
    return comment.decode("ascii", "replace") if isinstance(comment, bytes) else None
