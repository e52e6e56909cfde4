"""PDF: text stays text, a heatmap is one image, the recipe is in the document's information."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from posviz.errors import OutputError
from posviz.outputs import recipes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The information dictionary has a fixed set of names; a recipe serves best as what a document is searched by.
_KEYWORDS = re.compile(rb"/Keywords \(((?:[^()\\]|\\.)*)\)", re.DOTALL)
_ESCAPES = {b"n": b"\n", b"r": b"\r"}


def write(figure: Figure, path: Path, recipe: Mapping[str, Any]) -> None:
    known = {
        "Creator": recipes.CREATOR,
        "Producer": recipes.CREATOR,
        "Title": figure.get_suptitle().replace("\n", " ") or None,
        "Keywords": recipes.to_text(recipe),
        "CreationDate": None,  # the same call makes the same bytes
    }
    figure.savefig(path, format="pdf", metadata=known)


def read(path: Path) -> str | None:
    content = path.read_bytes()
    if not content.startswith(b"%PDF"):
        raise OutputError(f"{path} is no PDF document; expected a figure that posviz made")
    found = _KEYWORDS.search(content)
    if not found:
        return None
    text = re.sub(rb"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[1]), found[1], flags=re.DOTALL)
    return text.decode("latin-1")
