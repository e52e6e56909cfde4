"""Our own format: one safetensors file whose header holds the configuration and the notes as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from posviz.checkpoint.opened import HEADER_KEY
from posviz.config import ModelConfig
from posviz.errors import OutputError
from posviz.outputs.atomic import replacing

if TYPE_CHECKING:
    import torch

TIED = ("lm_head.weight", "transformer.wte.weight")


def save_checkpoint(
    state: Mapping[str, torch.Tensor],
    config: ModelConfig,
    path: str | Path,
    notes: Mapping[str, Any] | None = None,
) -> Path:
    """Write weights whole or not at all; `notes` (training data, losses, ...) come back under `config["notes"]`."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    path = Path(path)
    tensors = {name: t.detach().cpu().contiguous() for name, t in state.items() if not _is_tied(name, state)}
    # One key only: the library writes several in no fixed order, and the same model should make the same bytes.
    header = {HEADER_KEY: json.dumps({**asdict(config), "notes": dict(notes or {})}, sort_keys=True)}
    with replacing(path) as temporary:
        try:
            save_file(tensors, temporary, metadata=header)
        except SafetensorError as error:
            raise OutputError(f"cannot write {path}: {error}") from None
    return path


def _is_tied(name: str, state: Mapping[str, torch.Tensor]) -> bool:
    """The output head, where it is the embedding table once more."""
    if name != TIED[0] or TIED[1] not in state:
        return False
    head, table = state[TIED[0]], state[TIED[1]]
    return head.shape == table.shape and (head.data_ptr() == table.data_ptr() or bool(head.equal(table)))
