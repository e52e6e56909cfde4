"""What a figure is made from, as one hash: equal hashes make equal figures."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from posviz import __version__, bundled
from posviz.options import CaptureRequest, to_options

SMALL_FILES = (".json", ".txt", ".model", ".jinja")  # of a model's folder: its configuration and its tokenizer
Stamp = tuple[tuple[str, int, int], ...]


def inputs_digest(request: CaptureRequest, sha256: str | None = None) -> str:
    """A hash of everything that decides the figure: options, contents of the files they name, and our version.

    Where the files lie and when they were touched is not part of it, so a project can move without being drawn again.
    `sha256` is that of the checkpoint, if it is known already.
    """
    said: dict[str, Any] = to_options(request)
    said.pop("out", None)
    checkpoint = _checkpoint(request)
    if checkpoint is not None:
        weights = _weights if checkpoint.is_dir() else _content
        said["ckpt"] = sha256 or weights(checkpoint, _stamp(checkpoint))
        if checkpoint.is_dir():  # its tokenizer decides the tokens
            said["ckpt's folder"] = _content(checkpoint, _stamp(checkpoint))
    for name, path in _files(request).items():
        said[name] = _content(path, _stamp(path))
    text = json.dumps([__version__, said], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _checkpoint(request: CaptureRequest) -> Path | None:
    """The checkpoint, if it is on this machine."""
    if request.ckpt is not None:
        path = Path(request.ckpt).expanduser().absolute()
        return path if path.exists() else None
    return bundled.path(request.method) if request.method in bundled.names() else None


def _files(request: CaptureRequest) -> dict[str, Path]:
    """The other files that a request reads, by option name."""
    named = {
        "text-file": request.text_file,
        "tokens": request.tokens,
        "config": request.config,
        "from": getattr(request, "from_file", None),
        "tokenizer": request.tokenizer and Path(request.tokenizer),
        "model's code": request.model and Path(*request.model.partition(":")[0].split(".")).with_suffix(".py"),
    }
    found = {name: path.expanduser().absolute() for name, path in named.items() if path}
    optional = ("tokenizer", "model's code")  # which may be names of something that is installed or on the hub
    return {name: path for name, path in found.items() if name not in optional or path.exists()}


def _stamp(path: Path) -> Stamp:
    """What changes when a file or a folder's files do; only ever compared within one process."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return tuple((file.name, at.st_mtime_ns, at.st_size) for file in files for at in [file.stat()])


@lru_cache(maxsize=256)
def _weights(path: Path, stamp: Stamp) -> str:
    """The hash of a folder's weights; that of a single file is the hash of its bytes."""
    from posviz.checkpoint import open_checkpoint

    return open_checkpoint(path).sha256()


@lru_cache(maxsize=256)
def _content(path: Path, stamp: Stamp) -> str:
    """The hash of a file; of a folder, that of its small files."""
    digest = hashlib.sha256()
    if path.is_dir():
        for file in sorted(path.iterdir()):
            if file.suffix in SMALL_FILES and file.is_file():
                digest.update(f"{file.name} {_content(file, _stamp(file))}\n".encode())
        return digest.hexdigest()
    with path.open("rb") as opened:
        while chunk := opened.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
