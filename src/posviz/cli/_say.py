"""What every command tells a person: which checkpoint was used, what would mislead, which files were written."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from posviz.options import CaptureRequest

if TYPE_CHECKING:
    from posviz.stack import HeadStack


def note(stack: HeadStack, request: CaptureRequest) -> None:
    """Notes go to stderr, so that stdout holds results only."""
    if request.ckpt is None and stack.meta.get("sha256") is not None and request.model is None:
        print(f"posviz: using the bundled checkpoint {stack.meta['source']}", file=sys.stderr)
    for line in stack.meta.get("notes", ()):
        print(f"posviz: note: {line}", file=sys.stderr)


def wrote(paths: Iterable[Path]) -> None:
    for path in paths:
        print(path)
