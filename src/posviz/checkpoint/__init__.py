"""A path becomes names, shapes and a configuration; a tensor is read only when asked for."""

from posviz.checkpoint.description import describe
from posviz.checkpoint.facts import Facts, Overrides
from posviz.checkpoint.load import load_state
from posviz.checkpoint.opened import Checkpoint, open_checkpoint
from posviz.checkpoint.resolved import Resolved, resolve
from posviz.checkpoint.save import save_checkpoint
from posviz.checkpoint.store import TensorInfo

__all__ = [
    "Checkpoint",
    "Facts",
    "Overrides",
    "Resolved",
    "TensorInfo",
    "describe",
    "load_state",
    "open_checkpoint",
    "resolve",
    "save_checkpoint",
]
