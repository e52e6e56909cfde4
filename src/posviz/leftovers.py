"""What a killed process leaves behind: a file is written beside its place and renamed, so half of one has a hidden
name. Nothing reads it, but it takes room and would go into an archive of the folder."""

from __future__ import annotations

import glob
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_RANDOM = "[0-9a-f]" * 12  # as `posviz.outputs.atomic` names what it has not finished


def sweep(paths: Iterable[Path]) -> None:
    """Remove the unfinished neighbours of these files; nobody may be writing the files just now."""
    for path in paths:
        target = path.resolve() if path.is_symlink() else path
        pattern = f".{glob.escape(target.stem)}.{_RANDOM}{glob.escape(target.suffix)}"
        for unfinished in target.parent.glob(pattern):
            with suppress(OSError):
                unfinished.unlink()
