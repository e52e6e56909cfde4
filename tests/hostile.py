"""A trap for readers of pickles."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


class Hostile:
    """A pickle that would leave a file behind if anything in it ran."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.mark}",)
