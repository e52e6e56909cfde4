"""What `posviz info` tells of a checkpoint, from headers alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from posviz.checkpoint.facts import whole
from posviz.checkpoint.opened import Checkpoint
from posviz.checkpoint.resolved import Resolved, resolve
from posviz.errors import PosvizError


def describe(checkpoint: Checkpoint) -> dict[str, Any]:
    """Everything that the headers say, ready for JSON; None where nothing says."""
    sizes: Counter[str] = Counter()
    for info in checkpoint.tensors.values():
        sizes[info.dtype] += info.size
    notes = checkpoint.config.get("notes") if checkpoint.format == "posviz" else None
    return {
        "path": str(checkpoint.path),
        "format": "transformers folder" if checkpoint.is_transformers else checkpoint.format,
        **_model(checkpoint),
        "parameters": checkpoint.n_parameters,
        "dtype": ", ".join(kind for kind, _ in sizes.most_common()),
        "size": checkpoint.size,
        "tokenizer": _tokenizer(checkpoint),
        "notes": notes or None,
    }


def _model(checkpoint: Checkpoint) -> dict[str, Any]:
    """The method and the model's sizes, or why they are not known."""
    known: Resolved | None = None
    try:
        known = resolve(checkpoint)
        why = known.why
    except PosvizError as error:
        why = str(error)
    facts = known.config if known else None
    heads = facts.n_head if facts else _said(checkpoint, "n_head")
    return {
        "method": known.method if known else None,
        "why": why,
        "layers": len(checkpoint.layers()),
        "heads": heads,
        "width": facts.n_embd if facts else _said(checkpoint, "n_embd"),
        "context": facts.block_size if facts else _said(checkpoint, "block_size"),
        "vocabulary": facts.vocab_size if facts else _said(checkpoint, "vocab_size"),
        "missing": list(known.missing) if known and known.missing else None,
    }


def _said(checkpoint: Checkpoint, name: str) -> int | None:
    try:
        return whole(checkpoint.config, name)
    except PosvizError:
        return None


def _tokenizer(checkpoint: Checkpoint) -> str | None:
    found = checkpoint.tokenizer
    return "in the folder" if isinstance(found, Path) else found
