"""What `posviz info` tells of a checkpoint, from headers alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from posviz.checkpoint.facts import read_sizes, whole
from posviz.checkpoint.foreign import method_in
from posviz.checkpoint.opened import Checkpoint
from posviz.checkpoint.resolved import resolve
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
    if checkpoint.is_transformers:
        method, why = method_in(checkpoint.config)
        layers = len(checkpoint.layers())
        return {"method": method, "why": why, "layers": layers, **_sizes(checkpoint), "missing": None}
    try:
        known = resolve(checkpoint)
    except PosvizError as error:
        sizes = _sizes(checkpoint)
        return {"method": None, "why": str(error), "layers": len(checkpoint.layers()), **sizes, "missing": None}
    facts = known.config
    return {
        "method": known.method,
        "why": known.why,
        "layers": facts.n_layer,
        "heads": facts.n_head,
        "width": facts.n_embd,
        "context": facts.block_size,
        "vocabulary": facts.vocab_size,
        "missing": list(known.missing) or None,
    }


def _sizes(checkpoint: Checkpoint) -> dict[str, int | None]:
    """The sizes that are known without the method."""
    names = {"heads": "n_head", "width": "n_embd", "context": "block_size", "vocabulary": "vocab_size"}
    try:
        seen = {**read_sizes(checkpoint, checkpoint.config), "n_head": whole(checkpoint.config, "n_head")}
    except PosvizError:  # the file contradicts itself; why says how
        seen = {}
    return {shown: seen.get(name) for shown, name in names.items()}


def _tokenizer(checkpoint: Checkpoint) -> str | None:
    found = checkpoint.tokenizer
    return "in the folder" if isinstance(found, Path) else found
