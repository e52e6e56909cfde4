"""Checkpoint: a path opened; names, shapes and configuration at once, a tensor only when asked for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from posviz import methods
from posviz.checkpoint.folder import has_tokenizer, open_folder, open_weights, read_json
from posviz.checkpoint.layers import Layers, LayerShapes, strip
from posviz.checkpoint.pickles import PickleFile
from posviz.checkpoint.safetensors_file import SafetensorsFile
from posviz.checkpoint.store import Store, TensorInfo
from posviz.errors import CheckpointError

if TYPE_CHECKING:
    import torch

HEADER_KEY = "posviz"  # under it, our own files hold their configuration as JSON
CHUNK = 2**24  # hashed at a time, without the interpreter; between two chunks it must be waited for


def open_checkpoint(path: str | Path) -> Checkpoint:
    """Open a file or folder. Only headers are read."""
    path = Path(path)
    if not path.exists():
        raise CheckpointError(f"there is no checkpoint at {path}; expected a .safetensors or .pt file, or a folder")
    try:
        if path.is_dir():
            config = read_json(path / "config.json") if (path / "config.json").is_file() else {}
            return Checkpoint(path, "folder", open_folder(path), config)
        store = open_weights(path)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror or error}") from None
    kind, config = _file_kind(path, store)
    return Checkpoint(path, kind, store, config)


def _file_kind(path: Path, store: SafetensorsFile | PickleFile) -> tuple[str, dict[str, Any]]:
    """The format of a single file, and the configuration that it brings."""
    if isinstance(store, PickleFile):
        return ("nanoGPT" if store.model_args is not None else "state dict"), store.config
    if HEADER_KEY not in store.metadata:
        return "safetensors", {}
    try:
        config = json.loads(store.metadata[HEADER_KEY])
    except ValueError as error:
        raise CheckpointError(f"{path} is damaged: its configuration is no JSON ({error})") from None
    if not isinstance(config, dict):
        raise CheckpointError(f"{path} is damaged: its configuration is no JSON object")
    return "posviz", config


class Checkpoint:
    """Names, shapes and configuration of a model's weights. Tensor names have no wrappers' prefixes."""

    def __init__(self, path: Path, kind: str, store: Store, config: Mapping[str, Any]) -> None:
        self.path = path
        self.name = path.name or path.resolve().name
        self.config: dict[str, Any] = dict(config)
        self._store = store
        self._stored = strip(store.infos)
        self.tensors: dict[str, TensorInfo] = {name: store.infos[key] for name, key in self._stored.items()}
        if not self.tensors:
            raise CheckpointError(f"{path} holds no tensors")
        self._layers = Layers(self.tensors)
        self._shapes: dict[int, LayerShapes] = {}
        self.format = "CABLE" if kind in ("state dict", "safetensors") and not config and self._is_cable() else kind

    # -- reading ------------------------------------------------------------------------------------------------

    def read(self, name: str) -> np.ndarray:
        """One tensor as float32; nothing else of the file is touched."""
        values = self._store.read(self._key(name))
        bad = values.size - np.count_nonzero(np.isfinite(values))
        if bad:
            raise CheckpointError(
                f"{self.path}: {name} holds {bad} NaN or infinite values of {values.size}; the training went wrong "
                "or the file is damaged"
            )
        return values

    def torch(self, name: str) -> torch.Tensor:
        """One tensor in its stored type, mapped from the file where possible."""
        return self._store.torch(self._key(name))

    def _key(self, name: str) -> str:
        if name not in self._stored:
            raise CheckpointError(f"{self.path} has no tensor {name}")
        return self._stored[name]

    # -- layers -------------------------------------------------------------------------------------------------

    def layers(self) -> list[int]:
        return list(range(len(self._layers)))

    @property
    def layer_numbers(self) -> list[int]:
        """The layers' numbers as the names have them, which may begin anywhere."""
        return self._layers.numbers

    def layer_shapes(self, layer: int) -> LayerShapes:
        """Shapes of a layer's tensors by every ending of their names."""
        if layer not in self._shapes:
            where = f"layer {layer + 1} of {self.name}"
            self._shapes[layer] = LayerShapes(where, self._layers.names(layer), self.tensors)
        return self._shapes[layer]

    def layer_name(self, layer: int, suffix: str) -> str:
        """The one tensor of a layer whose name ends so."""
        return self.layer_shapes(layer).name(suffix)

    def layer_tensor(self, layer: int, suffix: str) -> np.ndarray:
        """The one tensor of a layer whose name ends so, as float32."""
        return self.read(self.layer_name(layer, suffix))

    def layer_summary(self, layer: int) -> str:
        """The layer's tensors in a few words, for error messages."""
        rests = sorted(self._layers.names(layer).values())
        return ", ".join(rests[:16]) + (f" and {len(rests) - 16} more" if len(rests) > 16 else "")

    # -- what it is ---------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Bytes of the weight files."""
        return sum(file.stat().st_size for file in self._store.files)

    @property
    def n_parameters(self) -> int:
        """Numbers stored, tied tensors counted once, whole numbers and stored causal masks not at all."""
        floats = {name: info for name, info in self.tensors.items() if info.dtype.startswith(("F", "BF"))}
        masks = {name for name, info in floats.items() if name.endswith("attn.bias") and len(info.shape) == 4}
        places = {info.place or name: info.size for name, info in floats.items() if name not in masks}
        return sum(places.values())

    def sha256(self) -> str:
        """The hash of the file. Of a folder: the hash of lines `name hash`, for config.json and each weight file."""
        return self._sha256

    @cached_property
    def _sha256(self) -> str:
        if self.path.is_file():
            return _hash(self.path)
        files = {*self._store.files, self.path / "config.json"}
        lines = [f"{file.name} {_hash(file)}\n" for file in sorted(files) if file.is_file()]
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    @property
    def tokenizer(self) -> str | Path | None:
        """What the checkpoint says of its tokenizer: a name such as "bytes", its own folder, or nothing."""
        named = self.config.get("tokenizer")
        if isinstance(named, str):
            return named
        return self.path if self.path.is_dir() and has_tokenizer(self.path) else None

    @cached_property
    def is_transformers(self) -> bool:
        """Whether it is the folder of a transformers model, whose own code must run it."""
        if self.format != "folder" or "method" in self.config:
            return False
        return ("model_type" in self.config or "architectures" in self.config) and not self._is_ours()

    def _is_ours(self) -> bool:
        """GPT-2's names with a positional method's own parameters among them."""
        if not any(name.startswith("transformer.h.") for name in self.tensors):
            return False
        here = set(self.layer_shapes(0))
        return any(needed and needed <= here for needed in (methods.get(name).required() for name in methods.names()))

    def _is_cable(self) -> bool:
        """CABLE's own training code: its step projection right under the attention, and no table of positions."""
        return "transformer.h.0.attn.h_attn.weight" in self.tensors and "transformer.wpe.weight" not in self.tensors


def _hash(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
