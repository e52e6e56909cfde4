"""A text to train on, a plan that is over in a moment, and what is in a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from posviz.checkpoint import open_checkpoint

# The smallest model that every method can be trained in: RoPE needs heads of an even size.
SMALL = {"layers": 1, "heads": 2, "width": 12, "context": 16, "batch": 4}


def write_text(path: Path, size: int = 6000, seed: int = 0) -> Path:
    """Words in random order: easy to learn something about, and never the same window twice."""
    words = [b"a small bird ", b"in the tall tree ", b"sings at noon ", b"over the wide water ", b"and waits. "]
    order = np.random.default_rng(seed).integers(len(words), size=size)
    path.write_bytes(b"".join(words[i] for i in order)[:size])
    return path


def words(options: dict[str, Any]) -> list[str]:
    """Options as they are said on the command line."""
    return [str(word) for name, value in options.items() for word in (f"--{name}", value)]


def tensors(path: Path) -> dict[str, np.ndarray]:
    opened = open_checkpoint(path)
    return {name: opened.read(name) for name in opened.tensors}


def training(path: Path) -> dict[str, Any]:
    """What the header says of the training."""
    return dict(open_checkpoint(path).config["notes"]["training"])
