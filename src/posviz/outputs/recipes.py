"""The recipe of a figure as the text that goes into its file, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from posviz import __version__
from posviz.errors import OutputError

KEY = "posviz"
CREATOR = f"posviz {__version__}"


def to_text(recipe: Mapping[str, Any]) -> str:
    """One line of JSON in ASCII, which every kind of metadata can hold unchanged."""
    return json.dumps({KEY: dict(recipe)}, sort_keys=True, default=plain)


def from_text(text: str | None) -> dict[str, Any] | None:
    """The recipe that `to_text` wrote; None if the text is something else."""
    try:
        found = json.loads(text or "").get(KEY)
    except (ValueError, AttributeError):
        return None
    return found if isinstance(found, dict) else None


def plain(value: object) -> Any:
    """What JSON does not know by itself: numpy's numbers and arrays, paths."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Path):
        return str(value)
    raise OutputError(f"a recipe holds a {type(value).__name__}: {value!r}; expected text, numbers or lists of them")
