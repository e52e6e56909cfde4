"""What every kind of weights file gives: names and shapes at once, a tensor only when asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    import torch

Shape = tuple[int, ...]


@dataclass(frozen=True)
class TensorInfo:
    """What a header says of a tensor."""

    shape: Shape
    dtype: str  # safetensors' short names: F32, BF16, ...
    place: Any = field(default=None, compare=False)  # equal for two names of the same numbers

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))


class Store(Protocol):
    """One or more files of tensors, under the names that the files use."""

    @property
    def infos(self) -> Mapping[str, TensorInfo]: ...

    @property
    def files(self) -> tuple[Path, ...]: ...

    def read(self, name: str) -> np.ndarray:
        """The tensor as float32."""
        ...

    def torch(self, name: str) -> torch.Tensor:
        """The tensor as stored, mapped from the file where possible."""
        ...


class Shards:
    """Several stores as one. A name in two of them is taken from the first."""

    def __init__(self, stores: list[Store]) -> None:
        self.files = tuple(file for store in stores for file in store.files)
        self._home = {name: store for store in reversed(stores) for name in store.infos}
        self.infos = {name: store.infos[name] for name, store in self._home.items()}

    def read(self, name: str) -> np.ndarray:
        return self._home[name].read(name)

    def torch(self, name: str) -> torch.Tensor:
        return self._home[name].torch(name)


def looks_like(head: bytes) -> str:
    """What a file that is no checkpoint seems to be, from its first bytes: the end of an error message."""
    if head.startswith(b"version https://git-lfs"):
        return "it is a Git LFS pointer: fetch the file itself with 'git lfs pull'"
    if head.startswith(b"PK\x03\x04") or head[:1] == b"\x80":
        return "it seems to be written by torch.save: name it .pt"
    for start, kind in (
        (b"\x89PNG", "a PNG picture"),
        (b"%PDF", "a PDF document"),
        (b"\x1f\x8b", "a gzip archive"),
        (b"GGUF", "a GGUF file: posviz reads safetensors and torch.save's files"),
        (b"\x93NUMPY", "a NumPy array"),
        (b"<", "a web page: was the download refused?"),
        (b"{", "JSON text"),
    ):
        if head.startswith(start):
            return f"it seems to be {kind}"
    return f"it begins with {head[:8]!r}" if head else "it is empty"
