"""How often Python looks for garbage. Importing torch makes a million objects, all of which stay."""

from __future__ import annotations

import atexit
import gc


def collect_seldom() -> None:
    """Look for cycles once for many new objects, and not at all in a process that ends: it takes a fifth of a command.

    Not so seldom that figures, each a large cycle, would pile up.
    """
    gc.set_threshold(200_000, 2, 10)
    atexit.register(gc.freeze)
