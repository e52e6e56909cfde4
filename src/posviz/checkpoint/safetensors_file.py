"""Safetensors files, read without torch: eight bytes of length, a JSON header, then the numbers."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from posviz.checkpoint.store import TensorInfo, looks_like
from posviz.errors import CheckpointError

if TYPE_CHECKING:
    import torch

LONGEST_HEADER = 100_000_000  # the format's own limit
# How each type lies in the file; NumPy has no bfloat16, which is the upper half of a float32.
LAYOUT = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "F8_E4M3": "u1", "F8_E5M2": "u1",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1",
    "BOOL": "?",
}  # fmt: skip
TORCH_NAMES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
    "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
    "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool",
}  # fmt: skip


class SafetensorsFile:
    """One file, of which only the header is read until a tensor is asked for."""

    def __init__(self, path: Path) -> None:
        self.files = (path,)
        self._path = path
        header, self._start = _header(path)
        self.metadata: dict[str, str] = header.pop("__metadata__", {})
        self._offset: dict[str, int] = {}
        self.infos: dict[str, TensorInfo] = {}
        room = path.stat().st_size - self._start
        for name, entry in header.items():
            info, begin, end = _entry(path, name, entry)
            if end > room:
                raise CheckpointError(
                    f"{path} is cut short: {self._start + room} bytes, but {name} ends at byte {self._start + end}; "
                    "copy or download it again"
                )
            self._offset[name] = self._start + begin
            self.infos[name] = info

    def read(self, name: str) -> np.ndarray:
        stored = self._map(name)
        kind = self.infos[name].dtype
        if kind == "BF16":
            return (stored.astype(np.uint32) << 16).view(np.float32)
        if kind.startswith("F8"):
            raise CheckpointError(
                f"{self._path}: {name} is stored as {kind}, which means nothing without its scales; "
                "convert the checkpoint to BF16 or F32"
            )
        return stored.astype(np.float32)

    def torch(self, name: str) -> torch.Tensor:
        import torch

        stored = self._map(name)
        if not stored.flags.aligned:
            stored = stored.copy()
        return torch.from_numpy(stored).view(getattr(torch, TORCH_NAMES[self.infos[name].dtype]))

    def _map(self, name: str) -> np.ndarray:
        """The tensor's bytes as they lie in the file; copied on write, so that nobody can change the file."""
        info = self.infos[name]
        if info.dtype not in LAYOUT:
            raise CheckpointError(
                f"{self._path}: {name} is stored as {info.dtype}; expected one of {', '.join(LAYOUT)}"
            )
        if not info.size:
            return np.empty(info.shape, LAYOUT[info.dtype])
        mapped = np.memmap(self._path, LAYOUT[info.dtype], mode="c", offset=self._offset[name], shape=info.shape)
        return mapped.view(np.ndarray)


def _header(path: Path) -> tuple[dict[str, Any], int]:
    """The header, and where the numbers begin."""
    with path.open("rb") as file:
        start = file.read(8)
        length = int.from_bytes(start, "little")
        opening = file.read(1)
        if len(start) < 8 or length > LONGEST_HEADER or opening != b"{":
            file.seek(0)
            raise CheckpointError(f"{path} is no safetensors file: {looks_like(file.read(64))}")
        text = opening + file.read(length - 1)
    if len(text) < length:
        raise CheckpointError(
            f"{path} is cut short: its header should be {length} bytes and {len(text)} are there; "
            "copy or download it again"
        )
    try:
        header = json.loads(text)
    except ValueError as error:
        raise CheckpointError(
            f"{path} is damaged: its header is no JSON ({error}); copy or download it again"
        ) from None
    return header, 8 + length


def _entry(path: Path, name: str, entry: Any) -> tuple[TensorInfo, int, int]:
    """What the header says of one tensor, and its first and last byte after the header."""
    try:
        shape = tuple(int(n) for n in entry["shape"])
        begin, end = (int(n) for n in entry["data_offsets"])
        kind = str(entry["dtype"])
    except (TypeError, KeyError, ValueError):
        raise CheckpointError(f"{path} is damaged: its header does not say where {name!r} lies") from None
    wrong = begin < 0 or end < begin or any(n < 0 for n in shape)
    if wrong or (kind in LAYOUT and end - begin != math.prod(shape) * np.dtype(LAYOUT[kind]).itemsize):
        raise CheckpointError(
            f"{path} is damaged: its header gives {name!r} the bytes {begin} to {end} for {list(shape)} of {kind}"
        )
    return TensorInfo(shape, kind, (str(path), begin)), begin, end
