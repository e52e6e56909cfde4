"""What a process of posviz sets before anything heavy is imported."""

from __future__ import annotations

import atexit
import gc
import os

WHILE_IMPORTING = (1_000_000, 2, 10)  # more objects than torch and transformers bring, which all stay
AFTERWARDS = (200_000, 2, 10)  # a few figures, each a large cycle, before the first are let go


def be_brisk() -> None:
    """Spend less on garbage and on waiting: both are set for long-running servers, not for commands.

    Importing torch makes half a million objects: looking for cycles among them, the last time when the process ends,
    takes a fifth of a command.

    Threads that have done their share of a matrix product spin until the others have, too. On a machine that is busy
    with anything else they spin in the others' way, and a forward pass takes four times as long.
    """
    gc.set_threshold(*WHILE_IMPORTING)
    atexit.register(gc.freeze)
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def settle() -> None:
    """Look for garbage again, but only in what is made from now on. Does nothing in a process that is not ours."""
    if gc.get_threshold() == WHILE_IMPORTING:
        gc.freeze()
        gc.set_threshold(*AFTERWARDS)
