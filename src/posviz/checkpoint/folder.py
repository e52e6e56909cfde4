"""A model folder: config.json, and weights in one file or in several that an index lists."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from posviz.checkpoint.pickles import PickleFile
from posviz.checkpoint.safetensors_file import SafetensorsFile
from posviz.checkpoint.store import Shards, Store, looks_like
from posviz.errors import CheckpointError

INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
SINGLES = ("model.safetensors", "pytorch_model.bin")
TOKENIZER_FILES = (
    "tokenizer.json", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "vocab.json", "vocab.txt",
)  # fmt: skip


def open_weights(path: Path) -> SafetensorsFile | PickleFile:
    """One file, by what it holds rather than by its name."""
    with path.open("rb") as file:
        head = file.read(64)
    # A safetensors file may begin with the byte of a pickle, so it is asked first.
    if head[8:9] == b"{" or path.suffix == ".safetensors":
        return SafetensorsFile(path)
    if head.startswith(b"PK\x03\x04") or head[:1] == b"\x80":
        return PickleFile(path)
    raise CheckpointError(f"{path} is no checkpoint: {looks_like(head)}")


def open_folder(path: Path) -> Store:
    """The weights of a folder."""
    for name in INDEXES:
        if (path / name).is_file():
            return _sharded(path, name)
    for name in SINGLES:
        if (path / name).is_file():
            return open_weights(path / name)
    others = sorted(path.glob("*.safetensors"))
    if len(others) == 1:
        return open_weights(others[0])
    if others:
        raise CheckpointError(
            f"{path} holds {len(others)} safetensors files and no {INDEXES[0]}; give one of them: "
            f"{', '.join(file.name for file in others[:6])}"
        )
    raise CheckpointError(f"{path} is a folder without weights; expected {' or '.join((*SINGLES, *INDEXES))}")


def _sharded(path: Path, index: str) -> Store:
    listed = read_json(path / index).get("weight_map")
    if not isinstance(listed, dict) or not listed:
        raise CheckpointError(f"{path / index} lists no weights; expected a weight_map from names to files")
    names = sorted({str(file) for file in listed.values()})
    for name in names:
        if Path(name).name != name:
            raise CheckpointError(f"{path / index} names {name!r}; expected a file of the same folder")
    gone = [name for name in names if not (path / name).is_file()]
    if gone:
        raise CheckpointError(
            f"{path} lacks {len(gone)} of its {len(names)} weight files: {', '.join(gone[:4])}; download them again"
        )
    store = Shards([open_weights(path / name) for name in names])
    lost = sorted(set(listed) - set(store.infos))
    if lost:
        raise CheckpointError(f"{path / index} lists {lost[0]!r} in {listed[lost[0]]}, which does not hold it")
    return store


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise CheckpointError(f"{path} cannot be read as JSON: {error}") from None
    if not isinstance(data, dict):
        raise CheckpointError(f"{path} holds a JSON {type(data).__name__}; expected an object with names and values")
    return data


def has_tokenizer(path: Path) -> bool:
    return any((path / name).is_file() for name in TOKENIZER_FILES)
