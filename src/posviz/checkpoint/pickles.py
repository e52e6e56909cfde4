"""Files written by torch.save, read so that nothing in them can run."""

from __future__ import annotations

import pickle
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from posviz.checkpoint.safetensors_file import TORCH_NAMES
from posviz.checkpoint.store import TensorInfo
from posviz.errors import CheckpointError

if TYPE_CHECKING:
    import torch

WRAPPERS = ("model", "state_dict", "model_state_dict", "module")  # what trainers call the weights among other things
SHORT_NAMES = {f"torch.{long}": short for short, long in TORCH_NAMES.items()}


class PickleFile:
    """A state dict, alone or inside what a trainer saved beside it."""

    def __init__(self, path: Path) -> None:
        import torch

        self.files = (path,)
        saved = _load(path)
        weights = _weights(path, saved)
        self._tensors = {name: t for name, t in weights.items() if isinstance(t, torch.Tensor)}
        self.infos = {name: _info(t) for name, t in self._tensors.items()}
        self.model_args = _mapping(saved, "model_args")
        self.config: dict[str, Any] = dict(self.model_args or _mapping(saved, "config") or {})

    def read(self, name: str) -> np.ndarray:
        return self._tensors[name].detach().float().contiguous().numpy()

    def torch(self, name: str) -> torch.Tensor:
        return self._tensors[name].detach()


def _load(path: Path) -> Any:
    import torch

    with path.open("rb") as file:
        zipped = file.read(4) == b"PK\x03\x04"  # the older format cannot be mapped
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a pickle's age; what matters about it is said below
            return torch.load(path, map_location="cpu", weights_only=True, mmap=zipped)
    except pickle.UnpicklingError as error:
        wanted = re.search(r"GLOBAL ([\w.]+)", str(error))
        if wanted is None:
            raise CheckpointError(f"{path} is damaged or no checkpoint; copy or download it again") from None
        raise CheckpointError(
            f"{path} holds a Python object ({wanted[1]}) besides tensors; loading it could run any code, so posviz "
            "does not: save the weights alone with torch.save(model.state_dict(), ...) where the model was trained"
        ) from None
    except Exception as error:  # torch raises whatever it stumbles over: OSError, EOFError, RuntimeError, KeyError, ...
        if "TorchScript" in str(error):
            raise CheckpointError(
                f"{path} is a TorchScript program, not weights; save its state_dict() with torch.save"
            ) from None
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise CheckpointError(f"{path} is cut short or damaged ({reason[0]}); copy or download it again") from None


def _weights(path: Path, saved: Any) -> Mapping[str, Any]:
    """The state dict in what was saved."""
    for candidate in (*(_mapping(saved, key) for key in WRAPPERS), saved):
        if isinstance(candidate, Mapping) and any(_is_tensor(name, value) for name, value in candidate.items()):
            return {name: value for name, value in candidate.items() if isinstance(name, str)}
    seen = ", ".join(map(str, list(saved)[:8])) if isinstance(saved, Mapping) else type(saved).__name__
    raise CheckpointError(f"{path} holds no state dict: found {seen or 'nothing'}; expected names with tensors")


def _is_tensor(name: Any, value: Any) -> bool:
    import torch

    return isinstance(name, str) and isinstance(value, torch.Tensor)


def _mapping(saved: Any, key: str) -> Mapping[str, Any] | None:
    value = saved.get(key) if isinstance(saved, Mapping) else None
    return value if isinstance(value, Mapping) else None


def _info(t: torch.Tensor) -> TensorInfo:
    kind = str(t.dtype)
    place = (t.data_ptr(), t.storage_offset()) if t.numel() else None
    return TensorInfo(tuple(t.shape), SHORT_NAMES.get(kind, kind.removeprefix("torch.")), place)
