"""Stacks as arrays in a file, to draw or compute with later: `.npz` and `.safetensors`."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from posviz.errors import OutputError, PosvizError, unknown_name
from posviz.outputs.atomic import replacing
from posviz.outputs.reasons import cannot_read
from posviz.outputs.recipes import plain
from posviz.stack import HeadStack

SUFFIXES = (".npz", ".safetensors")
REQUIRED = ("values", "heads", "meta")
HEADER = "posviz"  # the one entry of a safetensors file's metadata; several would be written in no fixed order


def save_stack(stack: HeadStack, path: Path) -> Path:
    """Write a stack; the suffix says how."""
    path = Path(path)
    suffix = _suffix(path)
    arrays = {
        "values": np.ascontiguousarray(stack.values),
        "heads": np.asarray(stack.heads, dtype=np.int64),
        "token_ids": np.asarray([] if stack.token_ids is None else stack.token_ids, dtype=np.int64),
        "cell": np.asarray(stack.cell, dtype=np.int64),
    }
    arrays |= {name: getattr(stack, name) for name in ("ranges", "profile") if getattr(stack, name) is not None}
    meta = json.dumps(dict(stack.meta), sort_keys=True, default=plain)
    with replacing(path) as temporary:
        if suffix == ".npz":
            # numpy's strings end at their last character that is not NUL, so a NUL becomes the sign for it.
            tokens = np.asarray([token.replace("\0", "\u2400") for token in stack.tokens], dtype=np.str_)
            np.savez(temporary, tokens=tokens, meta=np.asarray(meta), **arrays)  # type: ignore[arg-type]
        else:
            from safetensors.numpy import save_file

            save_file(arrays, temporary, {HEADER: json.dumps({"meta": meta, "tokens": stack.tokens})})
    return path


def load_stack(path: Path) -> HeadStack:
    """Read what `save_stack` wrote."""
    path = Path(path)
    read = _read_npz if _suffix(path) == ".npz" else _read_safetensors
    try:
        arrays = read(path)
    except OSError as error:
        raise OutputError(cannot_read(path, error)) from error
    missing = [name for name in REQUIRED if name not in arrays]
    if missing:
        raise OutputError(f"{path} has no {', '.join(missing)}; expected a file made by posviz capture")
    try:
        return _stack(arrays)
    except (PosvizError, ValueError, TypeError) as error:
        raise OutputError(f"{path} does not hold a stack of heads: {error}") from error


def read_meta(path: Path) -> dict[str, Any]:
    """What is known about a stored stack, without reading its values."""
    path = Path(path)
    read = _read_npz if _suffix(path) == ".npz" else _read_safetensors
    found = read(path, only="meta").get("meta")
    try:
        meta = json.loads(str(found))
    except ValueError:
        meta = None
    if not isinstance(meta, dict):
        raise OutputError(f"{path} has no meta; expected a file made by posviz capture")
    return meta


def _suffix(path: Path) -> str:
    if path.suffix.lower() not in SUFFIXES:
        raise OutputError(unknown_name("kind of array file", path.suffix or path.name, SUFFIXES))
    return path.suffix.lower()


def _read_npz(path: Path, only: str | None = None) -> dict[str, Any]:
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files if only in (None, name)}
    except (zipfile.BadZipFile, ValueError, EOFError, AttributeError, TypeError) as error:
        raise OutputError(f"{path} is no .npz file of plain arrays, or a broken one: {_line(error)}") from error


def _read_safetensors(path: Path, only: str | None = None) -> dict[str, Any]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as stored:
            header = json.loads((stored.metadata() or {}).get(HEADER, "{}"))
            names = [] if only == "meta" else stored.keys()
            return {**header, **{name: stored.get_tensor(name) for name in names}}
    except (SafetensorError, ValueError, TypeError) as error:
        raise OutputError(f"{path} is no .safetensors file, or a broken one: {_line(error)}") from error


def _stack(arrays: Mapping[str, Any]) -> HeadStack:
    meta = json.loads(str(arrays["meta"]))
    if not isinstance(meta, dict):
        raise ValueError(f"its meta is a {type(meta).__name__}, expected a table of names")
    if arrays["values"].dtype.kind != "f":
        raise ValueError(f"its values are {arrays['values'].dtype}, expected float32")
    token_ids = arrays.get("token_ids")
    return HeadStack(
        values=arrays["values"],
        heads=tuple(int(head) for head in arrays["heads"]),
        token_ids=token_ids if token_ids is not None and len(token_ids) else None,
        tokens=tuple(str(token) for token in arrays.get("tokens", ())),
        meta=meta,
        cell=int(arrays.get("cell", 1)),
        ranges=arrays.get("ranges"),
        profile=arrays.get("profile"),
    )


def _line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
