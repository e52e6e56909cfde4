"""Why a file cannot be read or written, in one line, and what to do."""

from __future__ import annotations

from pathlib import Path


def cannot_write(path: Path, error: OSError) -> str:
    if isinstance(error, IsADirectoryError):
        return f"cannot write {path}: it is a folder; give the name of a file"
    if isinstance(error, (NotADirectoryError, FileExistsError)):
        return f"cannot write {path}: a part of its folder's path is a file; choose another folder"
    if isinstance(error, PermissionError):
        return f"cannot write {path}: no permission; choose another folder"
    return f"cannot write {path}: {(error.strerror or str(error)).lower()}; choose another folder or make room"


def cannot_read(path: Path, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"cannot read {path}: there is no such file"
    if isinstance(error, IsADirectoryError):
        return f"cannot read {path}: it is a folder; give the name of a file"
    return f"cannot read {path}: {(error.strerror or str(error)).lower()}"
