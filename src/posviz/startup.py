"""What a process of posviz sets before anything heavy is imported."""

from __future__ import annotations

import atexit
import gc
import os


def be_brisk() -> None:
    """Spend less on garbage and on waiting: both are set for long-running servers, not for commands.

    Importing torch makes a million objects, all of which stay: looking for cycles among them, the last time when the
    process ends, takes a fifth of a command. It is not done so seldom that figures, each a large cycle, would pile up.

    Threads that have done their share of a matrix product spin until the others have, too. On a machine that is busy
    with anything else they spin in the others' way, and a forward pass takes four times as long.
    """
    gc.set_threshold(200_000, 2, 10)
    atexit.register(gc.freeze)
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
