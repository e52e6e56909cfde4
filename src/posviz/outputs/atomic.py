"""Everything written is written whole: to a temporary neighbour, then renamed. A failure leaves the old file."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from posviz.errors import OutputError
from posviz.outputs.reasons import cannot_write


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a path to write to, which becomes `path` when the block ends well and vanishes when it does not."""
    path = Path(path)
    target = path.resolve() if path.is_symlink() else path  # write through a link rather than over it
    temporary = target.with_name(f".{target.stem}.{secrets.token_hex(6)}{target.suffix}")
    try:
        if target.is_dir():
            raise IsADirectoryError(f"{path} is a folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.touch()
        mode = temporary.stat().st_mode  # as the person's umask wants it; some writers would make it private
        yield temporary
        temporary.chmod(mode)
        os.replace(temporary, target)
    except OSError as error:
        raise OutputError(cannot_write(path, error)) from error
    finally:
        with suppress(OSError):  # after a success it is gone already
            temporary.unlink()


def probe(path: Path) -> None:
    """Raise an OutputError if `replacing(path)` could not write; creates nothing."""
    folder = Path(path).absolute().parent
    try:
        if Path(path).is_dir():
            raise IsADirectoryError(f"{path} is a folder")
        while not folder.exists():  # missing folders are made when the file is
            folder = folder.parent
        # A real attempt: permission bits say little to root, on read-only disks or in /proc.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OutputError(cannot_write(path, error)) from error
